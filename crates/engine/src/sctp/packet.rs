//! A packet: the common header and its chunks (RFC 9260, 3.1).

use std::num::NonZeroU32;

use smallvec::SmallVec;

use super::chunk::{Chunk, Data, DelayEcho, DelayStamp, Echoed};
use super::gaps::GapList;
use super::wire::kind;

/// The layout of packets on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketForm {
    /// As in RFC 9260: every packet has the common header, and every DATA chunk a header of 16 bytes.
    #[default]
    Standard,
    /// Packets that begin with DATA, SACK or a chunk of an extension have no common header, and a
    /// datagram ([`Data::is_datagram`]) at the end of a packet has 3 bytes before its user data.
    /// Timestamps are replaced by the sender's record of its packets. For associations whose packets are
    /// authenticated, and assigned to the association, by a lower layer.
    Compact,
}

/// A packet of typed chunks. A packet with one chunk needs no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Verification tag.
    pub tag: u32,
    /// Whether the network has marked the packet (CE, RFC 3168). The mark is in the IP header; the driver
    /// copies it here.
    pub ce: bool,
    /// The chunk with the sender's timestamp, if there is one. Kept outside the list, so that a packet
    /// with one DATA chunk needs no allocation.
    pub stamp: Option<DelayStamp>,
    /// The chunk with the receiver's timestamps, if there is one.
    pub echo: Option<DelayEcho>,
    /// The number of the packet on its path, from 1. `None` if the layer below does not number packets. Gaps
    /// in these numbers show losses on the path. Not part of the packet: the layer below carries it.
    pub number: Option<NonZeroU32>,
    /// Chunks in order.
    pub chunks: SmallVec<[Chunk; 1]>,
    /// Memory for reuse.
    #[doc(hidden)]
    pub spare: SpareList,
}

/// Memory for the gap ack blocks of a SACK. Each SACK needs a list, and allocating it would cost more
/// than filling it, so a reused packet keeps the list of an earlier SACK. Not part of the packet's value.
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
        Self { tag, chunks, ..Self::default() }
    }

    /// Resets this to an empty packet with `tag`.
    #[inline]
    pub fn begin(&mut self, tag: u32) {
        self.tag = tag;
        self.ce = false;
        self.stamp = None;
        self.echo = None;
        self.number = None;
        self.chunks.clear();
    }

    /// The first chunk other than AUTH. RFC 4895, 6.3: the association of a packet is identified by the
    /// chunks after AUTH.
    pub fn leading(&self) -> Option<&Chunk> {
        self.chunks.iter().find(|chunk| chunk.kind() != kind::AUTH)
    }

    /// Takes the memory of an earlier list; its content is ignored.
    #[inline]
    pub(crate) fn take_spare(&mut self) -> GapList {
        std::mem::take(&mut self.spare.0)
    }

    /// Keeps the memory of a list that is no longer needed.
    #[inline]
    pub(crate) fn keep_spare(&mut self, list: &mut GapList) {
        /// Longer lists come from datagrams of other senders, and one of each size would be kept forever.
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
        Self::HEADER + stamp + echo + Chunk::wire_len_of(&self.chunks)
    }

    /// Length of the SCTP packet in this form without lower headers, bytes.
    #[inline]
    pub fn wire_len_in(&self, form: PacketForm) -> u32 {
        if form == PacketForm::Compact && self.has_compact_form() {
            self.compact_len()
        } else {
            self.wire_len()
        }
    }

    /// Whether the compact form exists for this packet. It omits all fields of the common header, so
    /// packets that set up, restart or abort an association have the full form.
    #[inline]
    pub(crate) fn has_compact_form(&self) -> bool {
        let echo = !matches!(self.echo, Some(DelayEcho { of: Echoed::Time(_), .. }));
        let first = matches!(
            self.chunks.first(),
            Some(Chunk::Data(_) | Chunk::Sack(_) | Chunk::Extension(_))
        );
        echo && self.stamp.is_none() && first
    }

    /// The datagram at the end of the packet and the chunks before it, or all chunks.
    #[inline]
    pub(crate) fn split_datagram(&self) -> (&[Chunk], Option<&Data>) {
        match self.chunks.split_last() {
            Some((Chunk::Data(data), before)) if data.is_datagram() => (before, Some(data)),
            _ => (&self.chunks, None),
        }
    }

    fn compact_len(&self) -> u32 {
        let (chunks, datagram) = self.split_datagram();
        let echo = if self.echo.is_some() { DelayEcho::COMPACT_LEN } else { 0 };
        let length = if datagram.is_some() && !chunks.is_empty() { Data::CHUNKS_LENGTH } else { 0 };
        let datagram = datagram.map_or(0, |data| Data::COMPACT_HEADER + data.payload.len());
        echo + length + Chunk::wire_len_of(chunks) + datagram
    }
}
