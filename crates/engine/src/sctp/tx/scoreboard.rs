//! The scoreboard: the state of every TSN after the cumulative TSN.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use ropewalk_base::{PathId, RangeSet, Serial32, Time};

use super::record::{Popped, Record, RecordState, SentRecord};
use crate::meter;
use crate::payload::Payload;
use crate::sctp::Data;
use crate::sctp::extensions::non_renegable::Kept;
use crate::sctp::gaps::GapList;

/// Records of all TSNs that are assigned and not acknowledged cumulatively.
///
/// `repr(C)` keeps the order of the fields, with those that every input accesses first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Scoreboard {
    /// Lost TSNs that wait for their retransmission.
    lost: RangeSet,
    base: u64,
    base_offset: u64,
    records: VecDeque<Record>,
    /// TSNs reported by gap blocks.
    acked: RangeSet,
    /// Bytes of the chunks in `acked`.
    acked_bytes: u64,
    /// Bytes of `acked_bytes` that have been delivered to the peer's user.
    delivered_bytes: u64,
    /// TSNs of `acked` that the peer will not drop, `None` if it has not reported any. Their user data is
    /// freed.
    kept: Option<Box<Kept>>,
    /// Assigned TSNs that were never sent.
    holes: RangeSet,
    /// Bytes of the unordered unfragmented messages in `holes`: they will not occupy the peer's buffer.
    unordered_holes: u64,
    /// Number of the other holes.
    waiting_holes: u64,
    /// Bytes of the abandoned chunks, which will not occupy the peer's buffer.
    abandoned_bytes: u64,
    /// Further transmissions of chunks that are in flight in several copies.
    copies: BTreeMap<u64, Vec<(PathId, u64)>>,
}

impl Scoreboard {
    /// Creates an empty scoreboard; the first chunk gets TSN `first` (unwrapped).
    pub fn new(first: u64) -> Self {
        Self {
            base: first,
            base_offset: 0,
            records: VecDeque::new(),
            holes: RangeSet::new(),
            lost: RangeSet::new(),
            acked: RangeSet::new(),
            acked_bytes: 0,
            delivered_bytes: 0,
            kept: None,
            unordered_holes: 0,
            waiting_holes: 0,
            abandoned_bytes: 0,
            copies: BTreeMap::new(),
        }
    }

    /// The cumulative TSN.
    #[inline]
    pub const fn cumulative(&self) -> u64 {
        self.base - 1
    }

    /// The TSN that the next new chunk gets.
    #[inline]
    pub fn next_tsn(&self) -> u64 {
        self.base + self.records.len() as u64
    }

    /// Number of TSNs beyond the cumulative one.
    #[inline]
    pub fn tsns_outstanding(&self) -> u64 {
        self.records.len() as u64
    }

    /// Skips `count` TSNs without chunks. No TSN may be outstanding.
    pub fn skip(&mut self, count: u64) {
        debug_assert!(self.records.is_empty());
        self.kept = None;
        self.base += count;
    }

    /// Whether every assigned TSN has been acknowledged cumulatively.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Assigned TSNs that were never sent.
    #[inline]
    pub const fn holes(&self) -> &RangeSet {
        &self.holes
    }

    /// Lost TSNs.
    #[inline]
    pub const fn lost(&self) -> &RangeSet {
        &self.lost
    }

    /// TSNs reported by gap blocks.
    #[inline]
    pub const fn acked(&self) -> &RangeSet {
        &self.acked
    }

    /// TSNs reported by non-renegable gap ack blocks.
    pub fn kept(&self) -> impl Iterator<Item = u64> {
        self.kept.iter().flat_map(|kept| kept.tsns().ranges().flatten())
    }

    /// Whether `tsn` is reported by a non-renegable gap ack block.
    #[inline]
    pub fn is_kept(&self, tsn: u64) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.tsns().contains(tsn))
    }

    /// Adds the TSNs that non-renegable gap ack blocks report for the first time to `fresh`.
    pub fn find_kept(&mut self, blocks: GapList, fresh: &mut Vec<Range<u64>>) {
        if blocks.is_empty() {
            return;
        }
        let (cumulative, end) = (self.cumulative(), self.next_tsn());
        self.kept.get_or_insert_default().find_fresh(cumulative, blocks, end, fresh);
    }

    /// Must be called for each step of the cumulative TSN: see [`GapDiff::forget_below`](super::GapDiff::forget_below).
    #[inline]
    pub fn forget_reports_below(&mut self, cumulative: u64) {
        if let Some(kept) = &mut self.kept {
            kept.forget_below(cumulative);
        }
    }

    /// Bytes of the send buffer that the chunks with a TSN occupy.
    #[inline]
    pub fn buffered(&self) -> u64 {
        self.extent() - self.kept.as_ref().map_or(0, |kept| kept.freed())
    }

    /// Bytes from the cumulative TSN to the end of the last chunk with a TSN.
    #[inline]
    pub fn extent(&self) -> u64 {
        self.records.back().map_or(0, |r| r.end - self.base_offset)
    }

    /// Bytes of the peer's buffer that are used or reserved: the full extent, without unordered messages
    /// that have been delivered to the peer's user or will be regardless of holes before them.
    #[inline]
    pub fn span(&self) -> u64 {
        self.extent() - self.delivered_bytes - self.unordered_holes - self.abandoned_bytes
    }

    /// Bytes of the holes that occupy the peer's buffer only in transit.
    #[inline]
    pub const fn unordered_holes(&self) -> u64 {
        self.unordered_holes
    }

    /// Whether all holes are unordered unfragmented messages, so that no later chunk has to wait for them.
    #[inline]
    pub const fn has_only_unordered_holes(&self) -> bool {
        self.waiting_holes == 0
    }

    /// Bytes from the cumulative TSN to the end of `tsn`.
    #[inline]
    pub fn span_of(&self, tsn: u64) -> u64 {
        self.record(tsn).end - self.base_offset
    }

    /// Bytes of the chunks reported by gap ack blocks that wait in the peer's buffer.
    #[inline]
    pub const fn held_bytes(&self) -> u64 {
        self.acked_bytes - self.delivered_bytes
    }

    /// The record of `tsn`.
    ///
    /// # Panics
    /// If it has none.
    #[inline]
    pub fn record(&self, tsn: u64) -> &Record {
        &self.records[(tsn - self.base) as usize]
    }

    /// The record of `tsn`, if it has one.
    #[inline]
    pub fn get(&self, tsn: u64) -> Option<&Record> {
        self.records.get(tsn.checked_sub(self.base)? as usize)
    }

    /// All records, lowest TSN first.
    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    #[inline]
    fn record_mut(&mut self, tsn: u64) -> &mut Record {
        &mut self.records[(tsn - self.base) as usize]
    }

    /// Assigns the next TSN to a chunk that a scheduler skips; it is a hole until it is sent. `cut` fills
    /// it in.
    #[inline]
    pub fn pass_over(&mut self, cut: impl FnOnce(&mut Data)) {
        let tsn = self.next_tsn();
        let record = self.push(0, RecordState::Unsent, cut);
        let passing = record.data.is_unordered_unfragmented();
        self.holes.insert(tsn);
        self.count_hole(passing, tsn);
    }

    fn count_hole(&mut self, passing: bool, tsn: u64) {
        if passing {
            self.unordered_holes += self.record(tsn).bytes as u64;
        } else {
            self.waiting_holes += 1;
        }
    }

    fn uncount_hole(&mut self, passing_bytes: u64) {
        self.unordered_holes -= passing_bytes;
        self.waiting_holes -= (passing_bytes == 0) as u64;
    }

    /// Assigns the next TSN to a chunk that is not sent yet. `cut` fills it in.
    #[inline]
    pub fn assign(&mut self, cut: impl FnOnce(&mut Data)) -> u64 {
        let tsn = self.next_tsn();
        self.push(0, RecordState::Unsent, cut);
        tsn
    }

    /// Assigns the next TSN to a chunk that is sent on `path` as transmission `number`. `cut` fills it in.
    /// Returns the chunk and its size on the wire.
    #[inline(always)]
    pub fn assign_sent(
        &mut self,
        now: Time,
        path: PathId,
        number: u64,
        cut: impl FnOnce(&mut Data),
    ) -> (&Data, u32) {
        let record = self.push(1, RecordState::InFlight { path, number }, cut);
        record.data.first_sent = now;
        (&record.data, record.bytes)
    }

    /// Abandons a chunk that is lost or was never sent (RFC 3758, 3.5 A2). Returns whether it was in one
    /// of these states.
    pub fn abandon(&mut self, tsn: u64) -> bool {
        let record = self.record_mut(tsn);
        let (bytes, passing) = (u64::from(record.bytes), record.passing_bytes());
        let on = match record.state {
            RecordState::Lost { on, .. } => on,
            RecordState::Unsent => PathId(0),
            _ => return false,
        };
        let before = std::mem::replace(&mut record.state, RecordState::Abandoned { on });
        record.data.payload = Payload::Length(record.data.payload.len());
        match before {
            RecordState::Unsent if self.holes.remove(tsn) => self.uncount_hole(passing),
            RecordState::Lost { .. } => _ = self.lost.remove(tsn),
            _ => {}
        }
        self.abandoned_bytes += bytes;
        true
    }

    // Inlined by force together with `cut`, so that the record is written in place.
    #[inline(always)]
    fn push(
        &mut self,
        transmissions: u32,
        state: RecordState,
        cut: impl FnOnce(&mut Data),
    ) -> &mut Record {
        let tsn = self.next_tsn();
        let before = self.records.back().map_or(self.base_offset, |r| r.end);
        self.records.push_back(Record::BLANK);
        let record = self.records.back_mut().expect("it has just been added");
        cut(&mut record.data);
        record.data.tsn = Serial32::wrap(tsn);
        record.bytes = record.data.wire_len();
        record.transmissions = transmissions;
        record.state = state;
        record.end = before + record.bytes as u64;
        record
    }

    /// Records that `tsn` is sent on `path` as transmission `number`. Returns the chunk and its previous
    /// state.
    #[inline]
    pub fn on_sent(
        &mut self,
        now: Time,
        tsn: u64,
        path: PathId,
        number: u64,
    ) -> (&Data, SentRecord) {
        let record = self.record_mut(tsn);
        let again = record.transmissions > 0;
        record.transmissions += 1;
        let before = std::mem::replace(&mut record.state, RecordState::InFlight { path, number });
        if before == RecordState::Unsent {
            record.data.first_sent = now;
        }
        let sent = SentRecord { bytes: record.bytes, again, before };
        // A chunk that has just got its TSN was never a hole.
        if before != RecordState::Unsent {
            self.leave(tsn, before);
        } else if !self.holes.is_empty() && self.holes.remove(tsn) {
            let passing = self.record(tsn).passing_bytes();
            self.uncount_hole(passing);
        }
        (&self.record(tsn).data, sent)
    }

    /// Ends the previous state of a chunk that is retransmitted.
    #[cold]
    fn leave(&mut self, tsn: u64, before: RecordState) {
        match before {
            RecordState::Unsent => unreachable!("never sent"),
            RecordState::Lost { .. } => {
                self.lost.remove(tsn);
            }
            RecordState::InFlight { path, number } => {
                self.copies.entry(tsn).or_default().push((path, number));
            }
            RecordState::Acked { .. } | RecordState::Abandoned { .. } => {
                debug_assert!(false, "a chunk was sent that is done with")
            }
        }
    }

    /// Marks transmission `number` of a chunk on `path` as lost. If another copy is in flight, the record
    /// refers to that one from now on. Returns true if the chunk must be retransmitted.
    pub fn on_lost(&mut self, tsn: u64, path: PathId, number: u64, by_timer: bool) -> bool {
        let mut others = self.copies.remove(&tsn).unwrap_or_default();
        let record = self.record_mut(tsn);
        let RecordState::InFlight { path: p, number: n } = record.state else {
            return false;
        };
        others.push((p, n));
        others.retain(|copy| *copy != (path, number));
        match others.pop() {
            Some((path, number)) => {
                record.state = RecordState::InFlight { path, number };
                if !others.is_empty() {
                    self.copies.insert(tsn, others);
                }
                false
            }
            None => {
                record.state = RecordState::Lost { on: path, by_timer };
                self.lost.insert(tsn);
                true
            }
        }
    }

    /// Whether no copy of `tsn` is in flight on a path other than `path`, the path of its record.
    #[inline]
    pub fn is_only_on(&self, tsn: u64, path: PathId) -> bool {
        let elsewhere = |copies: &Vec<(PathId, u64)>| copies.iter().any(|(on, _)| *on != path);
        self.copies.is_empty() || !self.copies.get(&tsn).is_some_and(elsewhere)
    }

    /// Whether any chunk has copies in flight in addition to the transmission in its record.
    #[inline]
    pub fn has_copies(&self) -> bool {
        !self.copies.is_empty()
    }

    /// Removes and returns the transmissions of `tsn` other than the one in its record.
    pub fn take_copies(&mut self, tsn: u64) -> Vec<(PathId, u64)> {
        self.copies.remove(&tsn).unwrap_or_default()
    }

    /// Removes the lowest record, which the cumulative TSN covers, and returns its essential fields.
    #[inline]
    pub fn pop_cumulative(&mut self) -> Option<Popped> {
        let record = self.records.front()?;
        let (tsn, bytes, state) = (self.base, record.bytes, record.state);
        let (payload, passing) = (record.data.payload.len(), record.passing_bytes());
        let first_sent = record.data.first_sent;
        self.base += 1;
        self.base_offset = record.end;
        // Dropped in place: moving it out would copy the full record.
        self.records.pop_front();
        match state {
            RecordState::Acked { .. } => {
                self.acked.remove_below(tsn + 1);
                self.acked_bytes -= bytes as u64;
                self.delivered_bytes -= passing;
                if let Some(kept) = &mut self.kept {
                    kept.pass(tsn, bytes);
                }
            }
            RecordState::Lost { .. } => self.lost.remove_below(tsn + 1),
            RecordState::Unsent => {
                self.holes.remove_below(tsn + 1);
                self.uncount_hole(passing);
            }
            RecordState::Abandoned { .. } => self.abandoned_bytes -= bytes as u64,
            RecordState::InFlight { .. } => {}
        }
        Some(Popped { tsn, bytes, payload, first_sent, state })
    }

    /// Marks `tsn` as reported by a gap ack block and returns its previous state.
    #[inline]
    pub fn on_gap_acked(&mut self, tsn: u64) -> RecordState {
        let record = self.record_mut(tsn);
        let before = record.state;
        let by = match before {
            RecordState::InFlight { path, .. } => path,
            RecordState::Lost { on, .. } | RecordState::Abandoned { on } => on,
            RecordState::Acked { by } => by,
            RecordState::Unsent => return before,
        };
        record.state = RecordState::Acked { by };
        let (bytes, passing) = (record.bytes as u64, record.passing_bytes());
        if self.acked.insert(tsn) {
            self.acked_bytes += bytes;
            self.delivered_bytes += passing;
        }
        match before {
            RecordState::Lost { .. } => _ = self.lost.remove(tsn),
            RecordState::Abandoned { .. } => self.abandoned_bytes -= bytes,
            _ => {}
        }
        before
    }

    /// Frees the user data of `tsn`, which a non-renegable gap ack block reports. Does nothing if it is
    /// not acknowledged.
    pub fn keep(&mut self, tsn: u64) {
        let record = self.record_mut(tsn);
        if matches!(record.state, RecordState::Acked { .. }) {
            record.data.payload = Payload::Length(record.data.payload.len());
            let bytes = record.bytes;
            self.kept.get_or_insert_default().add(tsn, bytes);
        }
    }

    /// Handles reneging by the peer (RFC 9260, 6.2.1 D iv): every TSN reported by gap ack blocks counts
    /// as lost on path `on` and is retransmitted, except those reported as non-renegable.
    pub fn on_reneged(&mut self, on: PathId) {
        let tsns: Vec<u64> = self.acked.ranges().flatten().collect();
        meter::count(tsns.len());
        self.acked.clear();
        (self.acked_bytes, self.delivered_bytes) = (0, 0);
        for tsn in tsns {
            if self.is_kept(tsn) {
                let record = self.record(tsn);
                let (bytes, passing) = (u64::from(record.bytes), record.passing_bytes());
                self.acked.insert(tsn);
                self.acked_bytes += bytes;
                self.delivered_bytes += passing;
                continue;
            }
            self.record_mut(tsn).state = RecordState::Lost { on, by_timer: false };
            self.lost.insert(tsn);
        }
    }

    /// Number of holes, from the first one, that may be sent with a receive buffer of `limit` bytes at
    /// the peer: those that end within `limit` of the cumulative TSN and fit into the remaining room.
    pub fn holes_within(&self, limit: u64) -> u64 {
        if let Some(room) = limit.checked_sub(self.span()) {
            return if self.unordered_holes <= room {
                self.holes.len()
            } else {
                self.holes_that_fit(room)
            };
        }
        let inside = self.records.partition_point(|r| r.end - self.base_offset <= limit);
        self.holes.count_below(self.base + inside as u64)
    }

    /// Room for ordered chunks is already reserved; the others need room when they are sent.
    #[cold]
    fn holes_that_fit(&self, mut room: u64) -> u64 {
        let tsns = self.holes.ranges().flatten();
        let fit = |tsn: &u64| {
            let left = room.checked_sub(self.record(*tsn).passing_bytes());
            room = left.unwrap_or(0);
            left.is_some()
        };
        tsns.take_while(fit).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::{Serial16, Serial32, StreamId};

    use super::*;
    use crate::sctp::DataFlags;

    fn message(unordered: bool) -> Data {
        let kind = if unordered { DataFlags::UNORDERED } else { DataFlags::default() };
        Data {
            tsn: Serial32(0),
            stream: StreamId(0),
            ssn: Serial16(0),
            ppid: 0,
            flags: DataFlags::WHOLE.and(kind),
            payload: Payload::Length(84),
            message_high: 0,
            first_sent: Time::ZERO,
        }
    }

    #[test]
    fn unordered_messages_take_room_only_on_their_way() {
        let mut board = Scoreboard::new(1);
        for unordered in [false, true, true, false, true] {
            board.pass_over(|data| *data = message(unordered));
        }
        // Holes: the 2 ordered ones have reserved room, regardless of the order.
        assert_eq!((board.extent(), board.span(), board.unordered_holes()), (500, 200, 300));
        assert!(!board.has_only_unordered_holes());
        board.on_sent(Time::ZERO, 3, PathId(0), 0);
        assert_eq!((board.span(), board.unordered_holes()), (300, 200));
        board.on_gap_acked(3);
        assert_eq!((board.span(), board.held_bytes()), (200, 0));
        board.on_sent(Time::ZERO, 4, PathId(0), 1);
        board.on_gap_acked(4);
        assert_eq!((board.span(), board.held_bytes()), (200, 100));
        board.on_sent(Time::ZERO, 1, PathId(0), 2);
        assert!(board.has_only_unordered_holes());
        board.on_sent(Time::ZERO, 2, PathId(0), 3);
        for _ in 0..4 {
            board.pop_cumulative();
        }
        assert_eq!((board.extent(), board.span()), (100, 0));
        assert_eq!((board.held_bytes(), board.unordered_holes()), (0, 100));
    }

    #[test]
    fn holes_are_filled_as_far_as_there_is_room() {
        let mut board = Scoreboard::new(1);
        for unordered in [true, false, true, true] {
            board.pass_over(|data| *data = message(unordered));
        }
        for (limit, holes) in [(100, 0), (199, 0), (200, 2), (299, 2), (300, 3), (400, 4), (900, 4)]
        {
            assert_eq!(board.holes_within(limit), holes, "{limit} B");
        }
    }

    #[test]
    fn what_the_peer_drops_again_takes_room_again() {
        let mut board = Scoreboard::new(1);
        for (tsn, unordered) in [(1, false), (2, true), (3, false)] {
            board.assign(|data| *data = message(unordered));
            board.on_sent(Time::ZERO, tsn, PathId(0), tsn);
        }
        board.on_gap_acked(2);
        assert_eq!(board.span(), 200);
        board.on_reneged(PathId(0));
        assert_eq!((board.span(), board.lost().len()), (300, 1));
    }
}
