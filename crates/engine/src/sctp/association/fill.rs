//! What fits into a packet beside a chunk.

use super::super::chunk::{Data, DelayStamp};
use super::Association;
use crate::scheduler::DelaySource;

impl Association {
    /// Bytes that a timestamp takes in a packet with data.
    #[inline]
    pub(super) fn stamp_len(&self) -> u32 {
        let stamped = self.config.delay_source == DelaySource::Timestamp && self.peer.takes_stamps;
        if stamped { DelayStamp::WIRE_LEN } else { 0 }
    }

    /// Whether a chunk may be cut to fill what is left of a packet: where messages were made to fill packets of
    /// another size they would leave a good part of each empty.
    #[inline]
    pub(super) const fn may_fill(&self, room: u32) -> bool {
        /// Less is not worth a header of its own.
        const LEAST_FILL: u32 = 8 * Data::HEADER;
        self.config.mtu_discovery.is_some() && room >= LEAST_FILL
    }

    /// The next chunk of the queue, cut to fill `room` bytes.
    #[cold]
    pub(super) fn filling_chunk(&mut self, room: u32) -> Option<u64> {
        if self.outstanding.queue.is_empty() {
            return None;
        }
        Some(
            self.outstanding
                .board
                .assign(|chunk| self.outstanding.queue.next_chunk_within(room, chunk)),
        )
    }
}
