//! Applications on the sockets: file transfer, proxies, tunnels, measurements; access control and pairing for them.
//!
//! This library neither prints nor parses arguments. The command and the Python package use it.

pub mod access;
pub mod captive_portal;
pub mod destinations;
pub mod extensions;
pub mod files;
pub mod measure;
pub mod mux;
pub mod observe;
pub mod pair;
mod pending;
pub mod proxy;
pub mod secrets;
#[cfg(target_os = "linux")]
pub mod tunnel;
pub mod whereabouts;
