//! Bundling: further chunks that fit into the packet of the first one (RFC 9260, 6.10).

use ropewalk_base::{PathId, Time};
use smallvec::SmallVec;

use super::{RecordState, Sender};
use crate::congestion::CongestionControl;
use crate::sctp::chunk::{Chunk, Data, DelayStamp};

impl Sender {
    /// Adds the next lost chunks while they fit (RFC 9260, 6.3.3 E3), if they were lost on the same path
    /// and are thus retransmitted on the same path.
    #[cold]
    pub fn bundle_lost(
        &mut self,
        now: Time,
        path: PathId,
        on: PathId,
        room: &mut u32,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) {
        while let Some(tsn) = self.outstanding.board.lost().first() {
            let record = self.outstanding.board.record(tsn);
            let same = matches!(record.state, RecordState::Lost { on: other, .. } if other == on);
            let open = self.paths[path.index()].tx.flights.bytes() < self.congestion.window(path);
            let used_up = self.outstanding.is_used_up(now, tsn);
            if !same || !open || used_up || record.bytes > *room {
                return;
            }
            *room -= record.bytes;
            self.transmit_chunk(now, path, tsn, chunks);
        }
    }

    /// Adds chunks from the head of the queue while they fit (RFC 9260, 6.10), if the scheduler assigns
    /// them to the path.
    #[inline]
    pub fn bundle(
        &mut self,
        now: Time,
        path: PathId,
        room: &mut u32,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) {
        let least = self.outstanding.queue.sizes().chunk_of(4);
        while *room >= least
            && self.outstanding.board.holes().is_empty()
            && self.outstanding.board.lost().is_empty()
        {
            let Some(next) = self.outstanding.queue.next_bytes() else { return };
            if self.outstanding.is_front_over(now) || !self.outstanding.queue.may_join_packet() {
                return;
            }
            let cut = next > *room;
            if cut
                && (!self.may_fill(*room)
                    || self.outstanding.queue.next_is_unordered_unfragmented())
            {
                return;
            }
            let next = next.min(*room);
            let open = self.views.get(path.index()).is_some_and(|v| {
                v.usable && self.paths[path.index()].tx.flights.bytes() < v.window
            });
            let fits = self.outstanding.board.span() + next as u64 <= self.outstanding.peer_rwnd;
            if !open || !fits || self.outstanding.tsns_left() == 0 {
                return;
            }
            if cut {
                let Some(tsn) = self.filling_chunk(next) else { return };
                *room -= self.transmit_chunk(now, path, tsn, chunks).bytes;
            } else {
                let Some(bytes) = self.transmit_fresh(now, path, chunks) else { return };
                *room -= bytes;
            }
        }
    }

    /// Length of the timestamp in a packet with data, bytes.
    #[inline]
    pub fn stamp_len(&self) -> u32 {
        if self.outstanding.config.stamps { DelayStamp::WIRE_LEN } else { 0 }
    }

    /// Whether a chunk may be cut to fill the rest of a packet. Messages made to fill packets of another size
    /// would otherwise leave a good part of each packet empty.
    #[inline]
    pub const fn may_fill(&self, room: u32) -> bool {
        /// Minimum length of a chunk that justifies its own header, bytes.
        const LEAST_FILL: u32 = 8 * Data::HEADER;
        self.outstanding.config.discovers_mtu() && room >= LEAST_FILL
    }

    /// The next chunk of the queue, cut to fill `room` bytes.
    #[cold]
    pub fn filling_chunk(&mut self, room: u32) -> Option<u64> {
        if self.outstanding.queue.is_empty() {
            return None;
        }
        self.outstanding.note_limit();
        Some(
            self.outstanding
                .board
                .assign(|chunk| self.outstanding.queue.next_chunk_within(room, chunk)),
        )
    }
}
