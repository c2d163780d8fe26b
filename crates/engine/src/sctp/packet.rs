//! A packet: the common header and its chunks (RFC 9260, 3.1).

use smallvec::SmallVec;

use super::chunk::{Chunk, DelayEcho, DelayStamp};

/// A packet of typed chunks. A packet with one chunk needs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Verification tag.
    pub tag: u32,
    /// Whether the network has marked the packet (CE, RFC 3168). The mark is in the IP header; the driver
    /// copies it here.
    pub ce: bool,
    /// The chunk with the sender's timestamp, if there is one. Kept beside the list, so that a packet with
    /// one DATA chunk needs no allocation.
    pub stamp: Option<DelayStamp>,
    /// The chunk with the receiver's timestamps, if there is one.
    pub echo: Option<DelayEcho>,
    /// Chunks in order.
    pub chunks: SmallVec<[Chunk; 1]>,
}

impl Packet {
    /// Common header, bytes.
    pub const HEADER: u32 = 12;

    /// Creates a packet of one chunk.
    pub fn of(tag: u32, chunk: Chunk) -> Self {
        let chunks = SmallVec::from_buf([chunk]);
        Self { tag, ce: false, stamp: None, echo: None, chunks }
    }

    /// Resets this to an empty packet with `tag`.
    #[inline]
    pub fn begin(&mut self, tag: u32) {
        self.tag = tag;
        self.ce = false;
        self.stamp = None;
        self.echo = None;
        self.chunks.clear();
    }

    /// Length of the SCTP packet without lower headers, bytes.
    #[inline]
    pub fn wire_len(&self) -> u32 {
        let stamp = if self.stamp.is_some() { DelayStamp::WIRE_LEN } else { 0 };
        let echo = if self.echo.is_some() { DelayEcho::WIRE_LEN } else { 0 };
        Self::HEADER + stamp + echo + self.chunks.iter().map(Chunk::wire_len).sum::<u32>()
    }
}
