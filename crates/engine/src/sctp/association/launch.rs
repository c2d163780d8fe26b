//! Transmission of one chunk: copies it into the packet and records it as in flight.

use ropewalk_base::{PathId, Time};
use smallvec::SmallVec;

use super::super::chunk::{Chunk, Data, DataFlags};
use super::Association;
use crate::recovery::{Flight, LossDetection};
use crate::sctp::tx::Launched;

/// A chunk that is being sent.
struct SentChunk {
    tsn: u64,
    bytes: u32,
    again: bool,
}

/// Adds a copy of a chunk to a packet, written in place: see [`Data::BLANK`].
#[inline(always)]
fn push_copy(chunks: &mut SmallVec<[Chunk; 1]>, data: &Data) {
    /// One constant, so that it is not assembled at run time.
    const BLANK: Chunk = Chunk::Data(Data::BLANK);
    chunks.push(BLANK);
    if let Some(Chunk::Data(copy)) = chunks.last_mut() {
        copy.copy_from(data);
    }
}

/// Sets the I bit (RFC 7053) on the last chunk.
#[inline]
fn ask_for_sack(chunks: &mut SmallVec<[Chunk; 1]>) {
    if let Some(Chunk::Data(data)) = chunks.last_mut() {
        data.flags = data.flags.and(DataFlags::IMMEDIATE);
    }
}

impl Association {
    /// Sends a chunk that has a record.
    #[inline]
    pub(super) fn launch(
        &mut self,
        now: Time,
        path: PathId,
        tsn: u64,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) -> Launched {
        let number = self.sender.paths[path.index()].tx.flights.next_number();
        let (data, launched) = self.sender.outstanding.board.on_sent(now, tsn, path, number);
        push_copy(chunks, data);
        self.book(now, path, SentChunk { tsn, bytes: launched.bytes, again: launched.again });
        if self.wants_sack_at_once(path, launched.again) {
            ask_for_sack(chunks);
        }
        launched
    }

    /// Sends the next chunk of the queue and returns its size. Its record is created as it is sent: writing
    /// it earlier and reading it again would cost more than all other steps.
    #[inline]
    pub(super) fn launch_fresh(
        &mut self,
        now: Time,
        path: PathId,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) -> Option<u32> {
        if self.sender.outstanding.queue.is_empty() {
            return None;
        }
        let tsn = self.sender.outstanding.board.next_tsn();
        let number = self.sender.paths[path.index()].tx.flights.next_number();
        let cut = |chunk: &mut Data| self.sender.outstanding.queue.next_chunk(chunk);
        let (data, bytes) = self.sender.outstanding.board.assign_sent(now, path, number, cut);
        push_copy(chunks, data);
        self.book(now, path, SentChunk { tsn, bytes, again: false });
        if self.wants_sack_at_once(path, false) {
            ask_for_sack(chunks);
        }
        Some(bytes)
    }

    /// Records one chunk as in flight.
    #[inline(always)]
    fn book(&mut self, now: Time, path: PathId, SentChunk { tsn, bytes, again }: SentChunk) {
        if self.counts_by_tsn() {
            self.settle_t3_at_launch(now, path, tsn);
        }
        let state = &mut self.sender.paths[path.index()];
        if !again {
            self.sender.sendable_left = self.sender.sendable_left.saturating_sub(1);
        }
        let snapshot = state.tx.rate.on_sent(now, state.tx.flights.is_empty(), state.tx.limited);
        state.tx.flights.push(Flight::new(tsn, bytes, now, snapshot, again));
        state.tx.counters.sent_chunks += 1;
        state.tx.counters.retransmitted += again as u64;
    }

    /// Whether the chunk just recorded asks for an immediate SACK (RFC 7053, 5): a retransmission, since the
    /// window opens when it arrives; the chunk that fills a small window or one in recovery; and the chunk
    /// that fills a small receive buffer of the peer if ordering does not close the window. After these,
    /// nothing may follow that would make the peer send its delayed SACK, and a small window loses a good
    /// part of its round trip by waiting for it.
    #[inline]
    fn wants_sack_at_once(&self, path: PathId, again: bool) -> bool {
        /// Window in chunks up to which a delayed SACK costs a good part of a round trip.
        const SMALL_WINDOW: u64 = 16;
        if self.config.recovery != LossDetection::RackTlp {
            return false;
        }
        let full = self.sender.outstanding.full_chunk();
        let state = &self.sender.paths[path.index()];
        let window = self.sender.views.get(path.index()).map_or(0, |v| v.window);
        let fills = state.tx.flights.bytes() + full > window;
        let small = self.is_small(self.sender.outstanding.peer_rwnd);
        again
            || small
                && self.sender.outstanding.is_unordered_unfragmented()
                && self.sender.outstanding.board.span() + full > self.sender.outstanding.peer_rwnd
            || fills
                && (state.tx.recovery_exit.is_some()
                    || state.tx.losses > 0 && window <= SMALL_WINDOW * full)
    }
}
