//! The integration tests of this crate in one program: linking the crate into separate programs would take longer
//! than compiling most of these files.

mod between;
mod control;
#[cfg(target_os = "linux")]
mod dscp;
mod emulated_links;
mod interfaces;
mod loopback;
mod nonblocking;
mod own_ports;
#[cfg(target_os = "linux")]
mod refusals;
mod shards;
mod streams;
mod window;
