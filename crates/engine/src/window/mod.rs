//! Between congestion control and scheduler: what of each window may really be used, given that all
//! paths share one receive buffer.

mod guard;
mod trial;

pub use guard::{Guard, SharedWindow, explained_queueing};
