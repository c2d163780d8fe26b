//! Where a packet goes.

use ropewalk_base::PathId;

/// How long a packet is, beside what its path is known to carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PacketSize {
    /// It fits.
    #[default]
    Usual,
    /// It finds out whether so much fits (RFC 8899): it leaves alone and whole, or not at all.
    Probe,
    /// It is too long, since it was made when the path carried more, and cannot be cut any more: whatever
    /// lies below has to (RFC 9260, 6.9).
    TooLong,
}

/// How a packet that was made in place leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransmitInfo {
    /// On which path.
    pub path: PathId,
    /// Number of the sender's round on this path, for networks that lose by rounds.
    pub round: u64,
    /// How it may be sent.
    pub size: PacketSize,
    /// Whether the network may mark it instead of dropping it (ECT(0), RFC 3168).
    pub ect: bool,
}
