//! What the buffer charges for: user data, and the memory that keeping it takes.
//!
//! Two sums are kept apart. Chunks are charged by their length on the wire, which is what senders count
//! (RFC 9260, 6.2.1). Bookkeeping is what small or scattered chunks cost beyond that: slots, map entries, messages
//! and gap blocks. The window on offer is what the larger of the two leaves. Bookkeeping of chunks of several
//! hundred bytes is less than their length, so that it changes nothing for them; a sender of tiny messages sees
//! the window close earlier.
//!
//! ```text
//!   memory <= chunks + shared datagrams + bookkeeping
//!          <=   B    +       B / 5      +  3/4 B + 20 KiB    <=  2 B + 64 KiB
//! ```

use super::ReceiveBuffer;
use crate::meter::{self, Defect};
use crate::payload::Payload;
use crate::sctp::{Data, DataFlags};

/// Bookkeeping that is free of charge, bytes: small buffers hold few chunks, and the first slots cost
/// more than those.
const FREE_BOOKKEEPING: u64 = 20 << 10;
/// Bytes of a payload beside its data: a counted reference, the header of a shared datagram, and what a
/// payload of few bytes keeps of its datagram.
const PAYLOAD_COST: u64 = 112;
/// Bytes of a message that can be read; a deque may have twice the room that it uses.
const MESSAGE_COST: u64 = 2 * size_of::<super::Message>() as u64;
/// Bytes of a gap block; a vector may have twice the room that it uses.
const BLOCK_COST: u64 = 8;
/// Bookkeeping of a chunk where every second TSN is missing, bytes.
const CHUNK_COST: u64 = 400;
/// A chunk that the peer is owed may wait if no more do than these.
const OWED_CHUNKS: usize = 16;
/// Payloads may share the datagrams that brought them while no more than this part of the buffer is used. A
/// datagram may be five times as long as the payload that keeps it, so that at most a fifth of the buffer is
/// kept for nothing.
const SHARING_PART: u64 = 20;

impl ReceiveBuffer {
    /// Bytes of all chunks that are kept, with their headers.
    #[inline]
    pub(super) const fn chunk_bytes(&self) -> u64 {
        self.held_bytes + self.ready.bytes()
    }

    /// Bytes free: what is advertised.
    ///
    /// What bookkeeping leaves is told in bytes of chunks: a sender whose chunks are all shorter than what keeping one
    /// takes is offered as many of them as can be kept. It never has to be told to take back what it was offered.
    #[inline]
    pub fn free(&self) -> u64 {
        let chunks = self.capacity.saturating_sub(self.chunk_bytes());
        let bookkeeping = self.bookkeeping();
        if bookkeeping <= FREE_BOOKKEEPING && self.largest >= CHUNK_COST {
            return chunks;
        }
        chunks.min(self.left_by(bookkeeping))
    }

    /// What bookkeeping leaves, in bytes of chunks.
    #[inline(never)]
    fn left_by(&self, bookkeeping: u64) -> u64 {
        if self.holds_tiny_chunks() {
            return self.room_for_tiny_chunks(bookkeeping);
        }
        let extra = bookkeeping.saturating_sub(FREE_BOOKKEEPING);
        self.capacity.saturating_sub(extra + extra / 3)
    }

    /// Bytes that are free while nothing is kept.
    #[inline]
    pub fn most_free(&self) -> u64 {
        if self.holds_tiny_chunks() {
            return self.capacity.min(self.room_for_tiny_chunks(0));
        }
        self.capacity
    }

    /// Whether all chunks so far were shorter than what keeping one takes.
    #[inline]
    fn holds_tiny_chunks(&self) -> bool {
        (1..CHUNK_COST).contains(&self.largest)
    }

    /// Bytes of tiny chunks that can be kept beside what takes so much bookkeeping.
    #[inline]
    const fn room_for_tiny_chunks(&self, bookkeeping: u64) -> u64 {
        let left = (self.capacity / 4 * 3 + FREE_BOOKKEEPING).saturating_sub(bookkeeping);
        left * self.largest / CHUNK_COST
    }

    /// Bytes that are needed beside the user data, at most.
    #[inline]
    pub(super) fn bookkeeping(&self) -> u64 {
        if meter::has(Defect::UncountedBookkeeping) {
            return 0;
        }
        let ready = self.ready.len() as u64;
        let payloads = (ready + self.slots.held_count() as u64) * PAYLOAD_COST;
        let blocks = self.gaps.words().len() as u64 * BLOCK_COST;
        payloads
            + ready * MESSAGE_COST
            + blocks
            + self.slots.cost()
            + self.streams.cost()
            + self.reserved
    }

    /// So many bytes are kept elsewhere on account of this buffer.
    pub const fn reserve(&mut self, bytes: u64) {
        self.reserved = bytes;
    }

    /// Whether a chunk must be taken although bookkeeping fills the buffer: user data leaves room for it, nothing
    /// can be read, and it is the next in sequence, which alone frees what waits. It must not wait itself, unless
    /// hardly anything does.
    pub(super) fn is_owed(&self, tsn: u64, data: &Data) -> bool {
        let fits = self.chunk_bytes() + super::charge_of(data) <= self.capacity;
        let passes = data.flags.has(DataFlags::WHOLE)
            && (data.flags.has(DataFlags::UNORDERED)
                || self.streams.is_next(data.stream, data.ssn));
        let next = tsn == self.cumulative() + 1 && self.ready.is_empty();
        next && fits && (passes || self.slots.held_count() < OWED_CHUNKS)
    }

    /// Whether a payload is to be copied out of the datagram that brought it: enough of the buffer is used.
    #[inline]
    pub(super) const fn must_own(&self, payload: &Payload) -> bool {
        matches!(payload, Payload::Bytes(_)) && self.chunk_bytes() > self.capacity / SHARING_PART
    }
}
