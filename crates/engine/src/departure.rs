//! Where a packet goes.

use ropewalk_base::PathId;

/// How a packet that was made in place leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// On which path.
    pub path: PathId,
    /// Number of the sender's round on this path, for networks that lose by rounds.
    pub round: u64,
}
