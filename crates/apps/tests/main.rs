//! The integration tests of this crate in one program: linking the crate into separate programs would take longer
//! than compiling most of these files.

mod links;
mod measure;
mod mux;
mod proxy;
