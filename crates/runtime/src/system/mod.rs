//! What a tunnel needs of Linux: a TUN device, addresses and routes, packet filter rules, and notifications of changes.
//!
//! Everything is changed by netlink messages, and applies to the network namespace of the calling thread. Nothing is
//! remembered here: the caller records what it changes, and undoes it.

mod file_monitor;
pub mod firewall;
mod netlink;
mod network_monitor;
pub mod routes;
pub mod rules;
mod tun;

pub use file_monitor::FileMonitor;
pub use network_monitor::{Changes, NetworkMonitor};
pub use tun::{TunDevice, TunError, TunReader, TunWriter};
