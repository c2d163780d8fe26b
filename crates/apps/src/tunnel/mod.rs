//! The tunnel: carries the IP packets of a machine or a network over all its links together, between a client and a
//! hub.
//!
//! ```text
//!   programs                                                       Internet
//!      |                                                              |
//!   TUN device                                                    TUN device
//!      |                                                              |
//!   checks, class, queue  --- messages over all links, sealed ---  checks, addresses
//! ```
//!
//! Each inner packet is one unordered message. The hub assigns each client its inner addresses by the client's key,
//! and refuses packets from other addresses.

pub mod addresses;
mod admission;
pub mod class;
pub mod client;
pub mod control;
pub mod counters;
mod error;
pub mod hub;
pub mod hubs;
pub mod lane;
mod link_state;
mod links;
pub mod machine;
mod meters;
mod moderation;
mod network_watch;
pub mod packet;
mod packet_memory;
pub mod path_mtu;
pub mod quota;
pub mod service_manager;
mod store;
mod unusable_links;

pub use self::error::TunnelError;
pub use self::lane::LaneSettings;
pub use self::links::{LinkLedger, LinkSpec};
pub use self::moderation::ThreadModeration;
pub use self::packet_memory::{PacketMemory, QueueShare};
pub use ropewalk_tunnel::{Config, Redundancy};

/// A seed for [`LaneSettings`].
///
/// # Errors
/// The system provides no random numbers.
pub fn random_seed() -> std::io::Result<u64> {
    getrandom::u64().map_err(std::io::Error::other)
}
