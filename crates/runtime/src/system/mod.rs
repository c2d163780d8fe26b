//! The parts of Linux that a tunnel uses: TUN devices, addresses, routes, packet filter rules, change notifications.
//!
//! All changes are made with netlink messages and apply to the network namespace of the calling thread. This module
//! keeps no record of them: the caller records its changes and undoes them.

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
