//! Transmission parameters of a packet.

use ropewalk_base::{Ecn, PathId};

/// Size of a packet relative to the MTU of its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PacketSize {
    /// It fits.
    #[default]
    Usual,
    /// An MTU probe (RFC 8899): sent alone and without fragmentation, or not at all.
    Probe,
    /// Too long: it was made for a larger MTU and can no longer be split, so the IP layer has to fragment
    /// it (RFC 9260, 6.9).
    TooLong,
}

/// Transmission parameters of a packet that was written in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransmitInfo {
    /// The path.
    pub path: PathId,
    /// Number of the sender's round on this path, for networks that lose by rounds.
    pub round: u64,
    /// Size class of the packet.
    pub size: PacketSize,
    /// ECN field of its IP header.
    pub ecn: Ecn,
}
