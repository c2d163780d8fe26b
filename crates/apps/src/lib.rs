//! What people do with the sockets: files, proxies, measurements; and which peers may do it.
//!
//! A library: it neither prints nor reads arguments. The command and the Python package use it.

pub mod access;
pub mod files;
pub mod measure;
pub mod mux;
pub mod proxy;
