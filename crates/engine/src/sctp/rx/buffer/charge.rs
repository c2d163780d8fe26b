//! Accounting of the receive buffer: user data, and the memory to keep it.
//!
//! There are two sums. Chunks are charged by their length on the wire, which senders count (RFC 9260,
//! 6.2.1). Bookkeeping is the additional cost of small or scattered chunks: slots, map entries, messages
//! and gap ack blocks. The advertised window is the room that the larger of the two sums leaves. For
//! chunks of several hundred bytes, bookkeeping is less than their length and has no effect. A sender of
//! tiny messages sees the window close earlier.
//!
//! ```text
//!   memory <= chunks + shared datagrams + bookkeeping
//!          <=   B    +       B / 5      +  3/4 B + 20 KiB    <=  2 B + 64 KiB
//! ```

use super::{ReceiveBuffer, messages};
use crate::meter::{self, Defect};
use crate::sctp::{Data, DataFlags};

/// Bookkeeping that is free of charge, bytes. Small buffers hold few chunks, whose first slots would cost
/// more than the chunks.
const FREE_BOOKKEEPING: u64 = 20 << 10;
/// Memory of a payload in addition to its data, bytes: a counted reference to it, and the allocator's
/// overhead for both.
const PAYLOAD_COST: u64 = 112;
/// Memory of a readable message, bytes. A deque may have twice the capacity that it uses.
const MESSAGE_COST: u64 = 2 * size_of::<super::Message>() as u64;
/// Memory of a gap ack block, bytes. A vector may have twice the capacity that it uses.
const BLOCK_COST: u64 = 8;
/// Bookkeeping of a chunk if every second TSN is missing, bytes.
const CHUNK_COST: u64 = 400;
/// Number of waiting chunks below which a chunk that must be accepted may also wait.
const OWED_CHUNKS: usize = 16;

/// Bookkeeping that closes the window of a buffer of `capacity` bytes.
pub(super) const fn most_bookkeeping(capacity: u64) -> u64 {
    capacity / 4 * 3 + FREE_BOOKKEEPING
}

impl ReceiveBuffer {
    /// Bytes of all chunks in the buffer, with their headers.
    #[inline]
    pub(super) const fn chunk_bytes(&self) -> u64 {
        self.held_bytes + self.ready.bytes()
    }

    /// The window to advertise: the free bytes without the headroom.
    #[inline]
    pub fn window(&self) -> u64 {
        match self.headroom {
            0 => self.free(),
            _ => self.free().saturating_sub(self.headroom_now()),
        }
    }

    /// The window of an empty buffer, bytes.
    #[inline]
    pub fn most_window(&self) -> u64 {
        match self.headroom {
            0 => self.most_free(),
            _ => self.most_free() - self.headroom_now(),
        }
    }

    /// The headroom, scaled to the room for chunks in an empty buffer. Tiny chunks leave less of it,
    /// because they need more bookkeeping.
    #[inline(never)]
    fn headroom_now(&self) -> u64 {
        let headroom = u64::from(self.headroom);
        let parts = (self.capacity / headroom.max(1)).max(2);
        headroom.min(self.most_free() / parts)
    }

    /// Free bytes.
    ///
    /// The room that bookkeeping leaves is converted to bytes of chunks. If all chunks are shorter than
    /// the bookkeeping of one, the window is the number of them that can be kept. So an advertised window
    /// never has to be withdrawn.
    #[inline]
    pub fn free(&self) -> u64 {
        let chunks = self.capacity.saturating_sub(self.chunk_bytes());
        let bookkeeping = self.bookkeeping();
        if bookkeeping <= FREE_BOOKKEEPING && u64::from(self.largest) >= self.chunk_cost() {
            return chunks;
        }
        chunks.min(self.left_by(bookkeeping))
    }

    /// Room that bookkeeping leaves, in bytes of chunks.
    #[inline(never)]
    fn left_by(&self, bookkeeping: u64) -> u64 {
        if self.holds_tiny_chunks() {
            return self.room_for_tiny_chunks(bookkeeping);
        }
        let extra = bookkeeping.saturating_sub(FREE_BOOKKEEPING);
        self.capacity.saturating_sub(extra + extra / 3)
    }

    /// Free bytes of an empty buffer.
    #[inline]
    pub fn most_free(&self) -> u64 {
        if self.holds_tiny_chunks() {
            return self.capacity.min(self.room_for_tiny_chunks(0));
        }
        self.capacity
    }

    /// Whether all chunks so far were shorter than the bookkeeping of one.
    #[inline]
    fn holds_tiny_chunks(&self) -> bool {
        (1..self.chunk_cost()).contains(&u64::from(self.largest))
    }

    /// Room for tiny chunks with this much bookkeeping, bytes of chunks.
    #[inline]
    fn room_for_tiny_chunks(&self, bookkeeping: u64) -> u64 {
        let left = most_bookkeeping(self.capacity).saturating_sub(bookkeeping);
        left * u64::from(self.largest) / self.chunk_cost()
    }

    /// Maximum bookkeeping of a chunk, bytes.
    #[inline]
    fn chunk_cost(&self) -> u64 {
        if self.messages.is_some() { CHUNK_COST + messages::CHUNK_COST } else { CHUNK_COST }
    }

    /// Upper bound of the memory in addition to the user data, bytes.
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
            + self.message_cost
            + self.reserved
    }

    /// Sets the number of bytes kept elsewhere on account of this buffer.
    pub const fn reserve(&mut self, bytes: u64) {
        self.reserved = bytes;
    }

    /// Whether a chunk must be accepted although bookkeeping fills the buffer: it is the next in
    /// sequence, and without it the waiting chunks cannot be freed; user data leaves room for it; and no
    /// message can be read. It must be deliverable immediately, unless few chunks wait or the waiting
    /// ones must not be dropped.
    pub(super) fn is_owed(&self, tsn: u64, data: &Data) -> bool {
        let fits = self.chunk_bytes() + super::charge_of(data) <= self.capacity;
        let passes = match &self.messages {
            Some(messages) => messages.passes(data),
            None if data.flags.has(DataFlags::UNORDERED) => data.flags.has(DataFlags::WHOLE),
            None => data.flags.has(DataFlags::WHOLE) && self.streams.is_next(data.stream, data.ssn),
        };
        let next = tsn == self.cumulative() + 1 && self.ready.is_empty();
        next && (fits && (passes || self.slots.held_count() < OWED_CHUNKS) || self.is_bound())
    }
}
