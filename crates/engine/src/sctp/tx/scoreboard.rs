//! What became of every TSN from the cumulative acknowledgement on.

use std::collections::{BTreeMap, VecDeque};

use ropewalk_base::{PathId, RangeSet, Serial32, Time};

use crate::meter;
use crate::sctp::Data;

/// Where a chunk stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordState {
    /// Has its TSN, but a scheduler passed over it: a hole before later data.
    Unsent,
    /// On its way.
    InFlight {
        /// On which path.
        path: PathId,
        /// Number of the transmission there.
        number: u64,
    },
    /// Given up, to be sent again.
    Lost {
        /// Where it was lost.
        on: PathId,
        /// By the timer, not by reports.
        by_timer: bool,
    },
    /// Reported by a gap block.
    Acked {
        /// The path that brought it there.
        by: PathId,
    },
}

/// One chunk.
#[derive(Clone, Debug)]
pub struct Record {
    /// The chunk as it is sent.
    pub data: Data,
    /// Its size on the wire, bytes.
    pub bytes: u32,
    /// How often it was sent.
    pub transmissions: u32,
    /// Where it stands.
    pub state: RecordState,
    /// Bytes of all chunks up to the end of this one, since the association began.
    end: u64,
}

/// What the cumulative acknowledgement has come past.
#[derive(Clone, Copy, Debug)]
pub struct Popped {
    /// Which chunk.
    pub tsn: u64,
    /// Its size on the wire, bytes.
    pub bytes: u32,
    /// Its user data, bytes.
    pub payload: u32,
    /// Where it stood.
    pub state: RecordState,
}

impl Record {
    /// To be filled in where it lies: see [`Data::BLANK`].
    const BLANK: Self =
        Self { data: Data::BLANK, bytes: 0, transmissions: 0, state: RecordState::Unsent, end: 0 };

    /// Its bytes, if it takes no room at the peer but on its way there: the user has a whole unordered
    /// message as it comes.
    #[inline]
    fn passing_bytes(&self) -> u64 {
        if self.data.is_unordered_unfragmented() { self.bytes as u64 } else { 0 }
    }
}

/// What a chunk was when it left.
#[derive(Clone, Copy, Debug)]
pub struct Launched {
    /// Its size on the wire, bytes.
    pub bytes: u32,
    /// It had been sent before.
    pub again: bool,
    /// Where it stood.
    pub before: RecordState,
}

/// Records of all TSNs that have one and are not cumulatively acknowledged.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    base: u64,
    base_offset: u64,
    records: VecDeque<Record>,
    /// Unsent TSNs that have a record.
    holes: RangeSet,
    /// Lost TSNs that wait to be sent again.
    lost: RangeSet,
    /// TSNs reported by gap blocks.
    acked: RangeSet,
    /// Bytes of the chunks in `acked`.
    acked_bytes: u64,
    /// Of these, bytes that the peer's user has already.
    delivered_bytes: u64,
    /// Bytes of the chunks in `holes` that will take no room at the peer.
    passing_holes: u64,
    /// Holes that are not of that kind.
    waiting_holes: u64,
    /// Further transmissions of chunks that travel in several copies.
    copies: BTreeMap<u64, Vec<(PathId, u64)>>,
}

/// Most chunks outstanding: half of the 16-bit stream sequence numbers, beyond which late and early
/// ones cannot be told apart, and half of what gap blocks reach (RFC 9260, 3.3.4, 6.6). In full
/// chunks of 1500 B packets that is a window of 48 MB.
const OUTSTANDING_LIMIT: u64 = (1 << 15) - 1;

impl Scoreboard {
    /// An empty board; the first chunk gets TSN `first` (unwrapped).
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
            passing_holes: 0,
            waiting_holes: 0,
            copies: BTreeMap::new(),
        }
    }

    /// The cumulative acknowledgement.
    #[inline]
    pub const fn cumulative(&self) -> u64 {
        self.base - 1
    }

    /// The TSN that the next new chunk gets.
    #[inline]
    pub fn next_tsn(&self) -> u64 {
        self.base + self.records.len() as u64
    }

    /// How many more chunks may get a TSN before the oldest is acknowledged.
    #[inline]
    pub fn tsns_left(&self) -> u64 {
        OUTSTANDING_LIMIT.saturating_sub(self.records.len() as u64)
    }

    /// Whether every TSN that has a record was acknowledged cumulatively.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Unsent TSNs that have a record.
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

    /// Bytes from the cumulative acknowledgement to the end of the last chunk that has a TSN.
    #[inline]
    pub fn extent(&self) -> u64 {
        self.records.back().map_or(0, |r| r.end - self.base_offset)
    }

    /// Bytes of the peer's buffer that are spoken for: the whole extent, but for unordered messages that
    /// the peer's user has already, or that will reach it past any hole before them.
    #[inline]
    pub fn span(&self) -> u64 {
        self.extent() - self.delivered_bytes - self.passing_holes
    }

    /// Bytes of unsent chunks that have a number, and will take room at the peer only on their way.
    #[inline]
    pub const fn passing_holes(&self) -> u64 {
        self.passing_holes
    }

    /// Bytes of all chunks that the peer's user is known to have since the association began.
    #[inline]
    pub const fn user_bytes(&self) -> u64 {
        self.base_offset + self.delivered_bytes
    }

    /// Whether no hole is to be filled before what lies behind it can be handed over.
    #[inline]
    pub const fn has_only_passing_holes(&self) -> bool {
        self.waiting_holes == 0
    }

    /// Bytes from the cumulative acknowledgement to the end of `tsn`.
    #[inline]
    pub fn span_of(&self, tsn: u64) -> u64 {
        self.record(tsn).end - self.base_offset
    }

    /// Bytes of the chunks reported by gap blocks that wait in the peer's buffer.
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

    /// Gives the next TSN to a chunk that a scheduler passes over: it is a hole until it is sent. `cut` fills
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
            self.passing_holes += self.record(tsn).bytes as u64;
        } else {
            self.waiting_holes += 1;
        }
    }

    fn uncount_hole(&mut self, passing_bytes: u64) {
        self.passing_holes -= passing_bytes;
        self.waiting_holes -= (passing_bytes == 0) as u64;
    }

    /// Gives the next TSN to a chunk that has not left yet, which `cut` fills in.
    #[inline]
    pub fn assign(&mut self, cut: impl FnOnce(&mut Data)) -> u64 {
        let tsn = self.next_tsn();
        self.push(0, RecordState::Unsent, cut);
        tsn
    }

    /// Gives the next TSN to a chunk that leaves on `path` as transmission `number`, and which `cut` fills
    /// in; tells it as it is sent, and its size on the wire.
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

    // Inlined by force, with what fills it in: the record is written where it lies.
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
        record.bytes = Data::wire_len_of(record.data.payload.len());
        record.transmissions = transmissions;
        record.state = state;
        record.end = before + record.bytes as u64;
        record
    }

    /// The chunk leaves on `path` as transmission `number`; returns it as it is sent, and what it was
    /// before.
    #[inline]
    pub fn on_sent(&mut self, now: Time, tsn: u64, path: PathId, number: u64) -> (&Data, Launched) {
        let record = self.record_mut(tsn);
        let again = record.transmissions > 0;
        record.transmissions += 1;
        let before = std::mem::replace(&mut record.state, RecordState::InFlight { path, number });
        if before == RecordState::Unsent {
            record.data.first_sent = now;
        }
        let launched = Launched { bytes: record.bytes, again, before };
        // What was given a TSN only now never was a hole.
        if before != RecordState::Unsent {
            self.leave(tsn, before);
        } else if !self.holes.is_empty() && self.holes.remove(tsn) {
            let passing = self.record(tsn).passing_bytes();
            self.uncount_hole(passing);
        }
        (&self.record(tsn).data, launched)
    }

    /// What had been sent already leaves the state that it was in.
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
            RecordState::Acked { .. } => {
                debug_assert!(false, "an acknowledged chunk was sent again")
            }
        }
    }

    /// The chunk is given up on `path`, transmission `number`. If another copy is on its way that
    /// one counts from now on; true if the chunk must be sent again.
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

    /// Whether no copy of `tsn` is in flight on another path than this.
    #[inline]
    pub fn is_only_on(&self, tsn: u64, path: PathId) -> bool {
        let elsewhere = |copies: &Vec<(PathId, u64)>| copies.iter().any(|(on, _)| *on != path);
        self.copies.is_empty() || !self.copies.get(&tsn).is_some_and(elsewhere)
    }

    /// Whether any chunk has further transmissions beside the one in its record.
    #[inline]
    pub fn has_copies(&self) -> bool {
        !self.copies.is_empty()
    }

    /// Further transmissions of `tsn` beside the one in its record.
    pub fn take_copies(&mut self, tsn: u64) -> Vec<(PathId, u64)> {
        self.copies.remove(&tsn).unwrap_or_default()
    }

    /// Removes the lowest record, which the cumulative acknowledgement covers, and tells what is
    /// still of interest.
    #[inline]
    pub fn pop_cumulative(&mut self) -> Option<Popped> {
        let record = self.records.front()?;
        let (tsn, bytes, state) = (self.base, record.bytes, record.state);
        let (payload, passing) = (record.data.payload.len(), record.passing_bytes());
        self.base += 1;
        self.base_offset = record.end;
        // Dropped where it lies: moved out it would be copied as a whole.
        self.records.pop_front();
        match state {
            RecordState::Acked { .. } => {
                self.acked.remove_below(tsn + 1);
                self.acked_bytes -= bytes as u64;
                self.delivered_bytes -= passing;
            }
            RecordState::Lost { .. } => self.lost.remove_below(tsn + 1),
            RecordState::Unsent => {
                self.holes.remove_below(tsn + 1);
                self.uncount_hole(passing);
            }
            RecordState::InFlight { .. } => {}
        }
        Some(Popped { tsn, bytes, payload, state })
    }

    /// Marks `tsn` as reported by a gap block and tells the state it was in.
    #[inline]
    pub fn on_gap_acked(&mut self, tsn: u64) -> RecordState {
        let record = self.record_mut(tsn);
        let before = record.state;
        let by = match before {
            RecordState::InFlight { path, .. } => path,
            RecordState::Lost { on, .. } => on,
            RecordState::Acked { by } => by,
            RecordState::Unsent => return before,
        };
        record.state = RecordState::Acked { by };
        let (bytes, passing) = (record.bytes as u64, record.passing_bytes());
        if self.acked.insert(tsn) {
            self.acked_bytes += bytes;
            self.delivered_bytes += passing;
        }
        if matches!(before, RecordState::Lost { .. }) {
            self.lost.remove(tsn);
        }
        before
    }

    /// The peer has dropped what it had reported (RFC 9260, 6.2.1 D iv): every acknowledged TSN
    /// counts as lost again, to be sent anew. `on` is where they are said to have been lost.
    pub fn on_reneged(&mut self, on: PathId) {
        let tsns: Vec<u64> = self.acked.ranges().flatten().collect();
        meter::count(tsns.len());
        self.acked.clear();
        (self.acked_bytes, self.delivered_bytes) = (0, 0);
        for tsn in tsns {
            self.record_mut(tsn).state = RecordState::Lost { on, by_timer: false };
            self.lost.insert(tsn);
        }
    }

    /// How many holes, from the first one, may be filled with `limit` bytes of buffer at the peer: those
    /// that end within so many bytes of the cumulative acknowledgement, and take no more room than there is.
    pub fn holes_within(&self, limit: u64) -> u64 {
        if let Some(room) = limit.checked_sub(self.span()) {
            return if self.passing_holes <= room {
                self.holes.len()
            } else {
                self.holes_that_fit(room)
            };
        }
        let inside = self.records.partition_point(|r| r.end - self.base_offset <= limit);
        self.holes.count_below(self.base + inside as u64)
    }

    /// Waiting holes have their room already; the others need it as they are sent.
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
    use crate::payload::Payload;
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
            first_sent: Time::ZERO,
        }
    }

    #[test]
    fn unordered_messages_take_room_only_on_their_way() {
        let mut board = Scoreboard::new(1);
        for unordered in [false, true, true, false, true] {
            board.pass_over(|data| *data = message(unordered));
        }
        // Holes: 2 ordered ones have their place, whatever comes first.
        assert_eq!((board.extent(), board.span(), board.passing_holes()), (500, 200, 300));
        assert!(!board.has_only_passing_holes());
        board.on_sent(Time::ZERO, 3, PathId(0), 0);
        assert_eq!((board.span(), board.passing_holes()), (300, 200));
        board.on_gap_acked(3);
        assert_eq!((board.span(), board.held_bytes(), board.user_bytes()), (200, 0, 100));
        board.on_sent(Time::ZERO, 4, PathId(0), 1);
        board.on_gap_acked(4);
        assert_eq!((board.span(), board.held_bytes()), (200, 100));
        board.on_sent(Time::ZERO, 1, PathId(0), 2);
        assert!(board.has_only_passing_holes());
        board.on_sent(Time::ZERO, 2, PathId(0), 3);
        for _ in 0..4 {
            board.pop_cumulative();
        }
        assert_eq!((board.extent(), board.span(), board.user_bytes()), (100, 0, 400));
        assert_eq!((board.held_bytes(), board.passing_holes()), (0, 100));
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
        assert_eq!((board.span(), board.user_bytes(), board.lost().len()), (300, 0, 1));
    }
}
