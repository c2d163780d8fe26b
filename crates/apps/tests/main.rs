//! The integration tests of this crate in one program: each program links the whole crate, which takes longer than
//! compiling most of these files.

mod links;
mod measure;
mod mux;
mod proxy;
