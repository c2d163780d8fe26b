//! A packet: the common header and its chunks (RFC 9260, 3.1).

use smallvec::SmallVec;

use super::chunk::Chunk;

/// A packet of typed chunks. One chunk costs no allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Verification tag.
    pub tag: u32,
    /// Chunks in order.
    pub chunks: SmallVec<[Chunk; 1]>,
}

impl Packet {
    /// Common header, bytes.
    pub const HEADER: u32 = 12;

    /// A packet of one chunk.
    pub fn of(tag: u32, chunk: Chunk) -> Self {
        let mut chunks = SmallVec::new();
        chunks.push(chunk);
        Self { tag, chunks }
    }

    /// Bytes of the SCTP packet, without what lies below it.
    #[inline]
    pub fn wire_len(&self) -> u32 {
        Self::HEADER + self.chunks.iter().map(Chunk::wire_len).sum::<u32>()
    }
}
