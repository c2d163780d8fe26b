//! What is published from the declared figures: the reference page, a table of the guide to sweeps, the classes
//! of the Python package and the vocabulary of the report page. A test compares the files with it.

mod javascript;
mod markdown;
mod python;

pub use javascript::javascript;
pub use markdown::{reference, sweep_columns};
pub use python::python;
