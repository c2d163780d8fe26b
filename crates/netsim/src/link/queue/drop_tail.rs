//! Drop-tail: what does not fit is dropped.

/// How much may wait. The packet in transmission does not wait, so a link with `Packets(n)` holds n + 1, and one with
/// `Packets(0)` sends only what it is offered while idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Everything.
    #[default]
    Unlimited,
    /// So many packets.
    Packets(u32),
    /// So many bytes; a packet waits as a whole or not at all.
    Bytes(u64),
}

impl Limit {
    /// Whether `size` more bytes may join `packets` of `bytes` in all.
    #[inline]
    pub(crate) fn admits(self, packets: usize, bytes: u64, size: u32) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Packets(limit) => packets < limit as usize,
            Self::Bytes(limit) => bytes + u64::from(size) <= limit,
        }
    }
}
