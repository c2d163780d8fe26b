//! Drop-tail: a packet that does not fit is dropped.

/// Capacity of a queue. The packet in transmission does not count: a link with `Packets(n)` holds n + 1
/// packets, and one with `Packets(0)` accepts a packet only while it is idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Unlimited.
    #[default]
    Unlimited,
    /// This many packets.
    Packets(u32),
    /// This many bytes. A packet must fit completely.
    Bytes(u64),
}

impl Limit {
    /// Whether a packet of `size` bytes fits behind `packets` packets of `bytes` bytes in total.
    #[inline]
    pub(crate) fn admits(self, packets: usize, bytes: u64, size: u32) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Packets(limit) => packets < limit as usize,
            Self::Bytes(limit) => bytes + u64::from(size) <= limit,
        }
    }
}
