//! Access control: the peers that may use a server, and what each may do (`peers.toml`).
//!
//! ```toml
//! [[peer]]
//! name = "anna"
//! key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
//! addresses = ["192.0.2.7", "198.51.100.7"]
//! psk_file = "anna.psk"
//! expires = "2027-01-31"
//!
//! [peer.files]
//! directory = "anna"
//! quota     = "20 GB"
//!
//! [peer.exit]
//! targets = ["*.example.org:443", "192.0.2.0/24:22"]
//!
//! [peer.tunnel]
//! addresses = ["10.88.0.9", "fd88::9"]
//! rate      = "20 Mbit/s"
//! quota     = "20 GB/month"
//! ```
//!
//! An entry only restricts its peer further than the command's options. It never permits what they refuse.

mod date;
mod error;
mod file;
mod known;
mod list;
mod named;
mod policy;
mod size;
#[cfg(test)]
mod tests;

pub use self::error::AccessError;
pub use self::file::{PEER_NAME_LIMIT, is_peer_name};
pub use self::known::{Added, KnownPeers};
pub use self::list::{AccessList, Changes, Refusal};
pub use self::named::{FindPeerError, NamedPeer, default_key, peers_file};
pub use self::policy::{ClientLimits, FilePolicy, PeerPolicy, TunnelPolicy};
pub use self::size::{parse_monthly, parse_rate};
