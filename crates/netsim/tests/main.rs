//! The integration tests of this crate in one program: each program links all of the crate, which takes longer
//! than compiling most of these files.

mod common;
mod conservation;
mod cross;
mod determinism;
mod links;
mod queueing;
mod topology;
mod wifi;
