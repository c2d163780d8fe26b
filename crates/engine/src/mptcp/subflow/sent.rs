//! Unacknowledged data of a subflow, in the order of its sequence numbers.

use std::collections::VecDeque;
use std::ops::Range;

use ropewalk_base::{RangeSet, Time};

use crate::payload::Payload;

/// State of a mapped piece of data on its subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentState {
    /// In flight.
    InFlight {
        /// Number of the transmission.
        number: u64,
    },
    /// Given up, to be retransmitted here: the sequence numbers of a subflow have no gaps.
    Lost,
    /// Reported by a selective acknowledgement.
    Sacked,
}

/// One piece of the session's data, mapped to the subflow. It keeps the data: the sequence numbers of a
/// subflow have no gaps, so the data is sent here until it is acknowledged here, even if it has arrived
/// on another subflow.
#[derive(Clone, Debug)]
pub struct SentSegment {
    /// First sequence number on the subflow.
    pub seq: u64,
    /// Data sequence number of its first byte.
    pub dsn: u64,
    /// The data.
    pub payload: Payload,
    /// When the data was first sent, on any subflow.
    pub first_sent: Time,
    /// The unit of the session's data.
    pub unit: u64,
    /// Number of transmissions on this subflow.
    pub transmissions: u32,
    /// State of the piece.
    pub state: SegmentState,
}

impl SentSegment {
    /// End of its sequence numbers (exclusive).
    #[inline]
    pub fn end(&self) -> u64 {
        self.seq + self.payload.len() as u64
    }
}

/// The retransmission queue of one subflow. Its pieces are numbered from 0 in order.
#[derive(Clone, Debug)]
pub struct SentQueue {
    first: u64,
    pieces: VecDeque<SentSegment>,
    next_seq: u64,
    lost: RangeSet,
    sacked: RangeSet,
    /// Pieces below this number have already been examined for losses.
    judged: u64,
}

impl SentQueue {
    /// An empty queue whose first byte gets `first_seq`.
    pub fn new(first_seq: u64) -> Self {
        Self {
            first: 0,
            pieces: VecDeque::new(),
            next_seq: first_seq,
            lost: RangeSet::new(),
            sacked: RangeSet::new(),
            judged: 0,
        }
    }

    /// The oldest unacknowledged sequence number.
    #[inline]
    pub fn una(&self) -> u64 {
        self.pieces.front().map_or(self.next_seq, |piece| piece.seq)
    }

    /// The sequence number of the next new byte.
    #[inline]
    pub const fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Pieces to be retransmitted.
    #[inline]
    pub const fn lost(&self) -> &RangeSet {
        &self.lost
    }

    /// The number of the next new piece.
    #[inline]
    pub fn next_piece(&self) -> u64 {
        self.first + self.pieces.len() as u64
    }

    /// Maps a unit, which is sent immediately as transmission `number`. Returns the number of the piece.
    pub fn push(
        &mut self,
        unit: u64,
        dsn: u64,
        payload: Payload,
        first_sent: Time,
        number: u64,
    ) -> u64 {
        let piece = self.next_piece();
        let (seq, state) = (self.next_seq, SegmentState::InFlight { number });
        self.next_seq += payload.len() as u64;
        let transmissions = 1;
        let mapped = SentSegment { seq, dsn, payload, first_sent, unit, transmissions, state };
        self.pieces.push_back(mapped);
        piece
    }

    /// A piece, if it is unacknowledged.
    #[inline]
    pub fn get(&self, piece: u64) -> Option<&SentSegment> {
        self.pieces.get(piece.checked_sub(self.first)? as usize)
    }

    /// The oldest piece.
    #[inline]
    pub fn front(&self) -> Option<(u64, &SentSegment)> {
        self.pieces.front().map(|piece| (self.first, piece))
    }

    /// All pieces, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &SentSegment> {
        self.pieces.iter()
    }

    /// Records that `piece` is retransmitted as transmission `number`.
    pub fn on_sent_again(&mut self, piece: u64, number: u64) {
        let Some(at) = piece.checked_sub(self.first) else { return };
        let Some(mapped) = self.pieces.get_mut(at as usize) else { return };
        mapped.transmissions += 1;
        let before = core::mem::replace(&mut mapped.state, SegmentState::InFlight { number });
        if before == SegmentState::Lost {
            self.lost.remove(piece);
        }
    }

    /// Records that `piece`, which was given up, is in flight after all, as transmission `number`.
    pub fn on_found(&mut self, piece: u64, number: u64) {
        let Some(at) = piece.checked_sub(self.first) else { return };
        if let Some(mapped) = self.pieces.get_mut(at as usize) {
            mapped.state = SegmentState::InFlight { number };
            self.lost.remove(piece);
        }
    }

    /// Marks `piece` for retransmission.
    pub fn on_lost(&mut self, piece: u64) {
        let Some(at) = piece.checked_sub(self.first) else { return };
        if let Some(mapped) = self.pieces.get_mut(at as usize) {
            mapped.state = SegmentState::Lost;
            self.lost.insert(piece);
        }
    }

    /// Removes the oldest piece if `ack` covers it.
    #[inline]
    pub fn pop_acked(&mut self, ack: u64) -> Option<SentSegment> {
        if self.pieces.front()?.end() > ack {
            return None;
        }
        let piece = self.pieces.pop_front()?;
        if piece.state == SegmentState::Lost {
            self.lost.remove(self.first);
        }
        self.first += 1;
        if piece.state == SegmentState::Sacked {
            self.sacked.remove_below(self.first);
        }
        Some(piece)
    }

    /// Numbers of the pieces within a block of sequence numbers.
    fn within(&self, block: (u64, u64)) -> Range<u64> {
        let from = self.pieces.partition_point(|piece| piece.seq < block.0) as u64;
        let to = self.pieces.partition_point(|piece| piece.end() <= block.1) as u64;
        self.first + from..self.first + to.max(from)
    }

    /// Calls `fresh` with each piece of a block that is reported for the first time, in its previous
    /// state.
    pub fn take_block(&mut self, block: (u64, u64), mut fresh: impl FnMut(&SentSegment)) {
        let Range { start: mut piece, end } = self.within(block);
        while piece < end {
            if let Some(known) = self.sacked.range_of(piece) {
                piece = known.end;
                continue;
            }
            let mapped = &mut self.pieces[(piece - self.first) as usize];
            fresh(mapped);
            let before = core::mem::replace(&mut mapped.state, SegmentState::Sacked);
            if before == SegmentState::Lost {
                self.lost.remove(piece);
            }
            self.sacked.insert(piece);
            piece += 1;
        }
    }

    /// Finds pieces sent once with at least `threshold` reported pieces beyond them (RFC 6675, 4, IsLost).
    /// Each is found once.
    pub fn find_lost(&mut self, threshold: u32, mut found: impl FnMut(u64)) {
        let mut left = threshold as u64;
        let mut limit = None;
        for range in self.sacked.ranges().rev() {
            let count = range.end - range.start;
            if count >= left {
                limit = Some(range.end - left);
                break;
            }
            left -= count;
        }
        let Some(limit) = limit else { return };
        for piece in self.judged.max(self.first)..limit {
            let mapped = &self.pieces[(piece - self.first) as usize];
            if let SegmentState::InFlight { number } = mapped.state
                && mapped.transmissions == 1
            {
                found(number);
            }
        }
        self.judged = self.judged.max(limit);
    }

    /// Handles reneging: the peer has dropped data that it had reported (RFC 2018, 8), so all reported
    /// data counts as lost.
    pub fn forget_sacked(&mut self) {
        let reported: Vec<Range<u64>> = self.sacked.ranges().collect();
        self.sacked.clear();
        self.judged = 0;
        for range in reported {
            range.for_each(|piece| self.on_lost(piece));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten pieces of 100 B, the first with sequence number 1, all in flight.
    fn queue() -> SentQueue {
        let mut queue = SentQueue::new(1);
        for unit in 0..10 {
            queue.push(unit + 50, unit * 100, Payload::Length(100), Time::ZERO, unit);
        }
        queue
    }

    fn lost(queue: &mut SentQueue) -> Vec<u64> {
        let mut all = Vec::new();
        queue.find_lost(3, |number| all.push(number));
        all
    }

    #[test]
    fn an_acknowledgement_takes_whole_pieces_from_the_front() {
        let mut queue = queue();
        assert!(queue.pop_acked(100).is_none(), "the last byte is missing");
        assert_eq!(queue.pop_acked(101).map(|piece| piece.unit), Some(50));
        assert_eq!((queue.una(), queue.next_seq()), (101, 1001));
    }

    #[test]
    fn a_piece_is_lost_once_three_beyond_it_are_reported_and_only_once() {
        let mut queue = queue();
        let mut fresh = Vec::new();
        queue.take_block((201, 301), |piece| fresh.push(piece.unit));
        queue.take_block((201, 401), |piece| fresh.push(piece.unit));
        assert_eq!(fresh, [52, 53], "each is fresh once");
        assert_eq!(lost(&mut queue), []);
        queue.take_block((501, 601), |piece| fresh.push(piece.unit));
        assert_eq!(lost(&mut queue), [0, 1]);
        queue.take_block((501, 801), |_| ());
        assert_eq!(lost(&mut queue), [4]);
    }

    #[test]
    fn what_the_peer_drops_is_lost() {
        let mut queue = queue();
        queue.take_block((101, 301), |_| ());
        queue.forget_sacked();
        assert_eq!(queue.lost().first_range(), Some(1..3));
        queue.on_sent_again(1, 20);
        assert_eq!(queue.lost().first(), Some(2));
    }
}
