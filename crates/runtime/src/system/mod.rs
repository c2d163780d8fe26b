//! What a tunnel needs of Linux: a TUN device, addresses and routes, and packet filter rules.
//!
//! Everything is changed by netlink messages, and applies to the network namespace of the calling thread. Nothing is
//! remembered here: the caller records what it changes, and undoes it.

pub mod firewall;
mod netlink;
mod route_monitor;
pub mod routes;
mod tun;

pub use route_monitor::RouteMonitor;
pub use tun::{TunDevice, TunError, TunReader, TunWriter};
