//! A packet: the common header and its chunks (RFC 9260, 3.1).

use smallvec::SmallVec;

use super::chunk::{Chunk, DelayEcho, DelayStamp};
use super::gaps::GapList;

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
    /// Memory for later use.
    #[doc(hidden)]
    pub spare: SpareList,
}

/// Memory for the gap ack blocks of a SACK. Each SACK needs a list, and allocating it would cost more than
/// filling it, so a packet that is used again brings the list of an earlier SACK. No part of the packet's
/// value.
#[derive(Clone, Debug, Default)]
pub struct SpareList(GapList);

impl PartialEq for SpareList {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for SpareList {}

impl Packet {
    /// Common header, bytes.
    pub const HEADER: u32 = 12;

    /// Creates a packet of one chunk.
    pub fn of(tag: u32, chunk: Chunk) -> Self {
        let chunks = SmallVec::from_buf([chunk]);
        Self { tag, ce: false, stamp: None, echo: None, chunks, spare: SpareList::default() }
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

    /// Takes the memory of an earlier list, whose content does not matter.
    #[inline]
    pub(crate) fn take_spare(&mut self) -> GapList {
        std::mem::take(&mut self.spare.0)
    }

    /// Keeps the memory of a list that is not needed any more.
    #[inline]
    pub(crate) fn keep_spare(&mut self, list: &mut GapList) {
        /// Longer lists come from datagrams of other senders, and one of each size would be kept for ever.
        const MOST: usize = 512;
        if (1..=MOST).contains(&list.capacity()) {
            self.spare.0 = std::mem::take(list);
        }
    }

    /// Length of the SCTP packet without lower headers, bytes.
    #[inline]
    pub fn wire_len(&self) -> u32 {
        let stamp = if self.stamp.is_some() { DelayStamp::WIRE_LEN } else { 0 };
        let echo = if self.echo.is_some() { DelayEcho::WIRE_LEN } else { 0 };
        Self::HEADER + stamp + echo + self.chunks.iter().map(Chunk::wire_len).sum::<u32>()
    }
}
