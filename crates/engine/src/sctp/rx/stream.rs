//! Ordered delivery within the streams of an association (RFC 9260, 6.6).
//!
//! Memory is proportional to the waiting messages, not to the SSNs that the peer chooses: a used stream
//! takes two bytes, and more only while one of its messages waits.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use ropewalk_base::{Serial16, StreamId};

use crate::meter::{self, Defect};

/// Maximum number of messages of one stream that may wait for an earlier one: half of the SSN space.
/// Beyond it, later and earlier SSNs cannot be distinguished (RFC 1982).
const WAITING_LIMIT: usize = 1 << 15;
/// Slots that a stream may have regardless of how few are used: stream 0, which many associations use
/// alone, and any other stream.
const SPARE_SLOTS_OF_FIRST: usize = 128;
const SPARE_SLOTS: usize = 8;
/// Empty slots whose memory is kept for reuse.
const KEPT_SLOTS: usize = 256;
/// Bookkeeping of one slot, bytes. A deque may have twice the capacity that it uses.
const SLOT_COST: u64 = 2 * size_of::<Tsns>() as u64;
/// Bookkeeping of each message beyond the slots, bytes. Tree nodes are at least half full.
const FAR_ENTRY_COST: u64 = 48;
/// Bookkeeping of the first slots and of the first message beyond them, bytes. Both allocate room for
/// several.
const FIRST_COST: u64 = 4 * size_of::<Tsns>() as u64 + 256;
/// Bookkeeping of a stream in the map, bytes. Tree nodes are at least half full.
const STREAM_COST: u64 = 2 * (size_of::<Waiting>() as u64 + 16) + FIRST_COST;

/// First and last TSN of a complete message.
type Tsns = (u64, u64);

/// No message: an unwrapped TSN is never 0.
const NOTHING: Tsns = (0, 0);

/// Complete messages of one stream that wait for an earlier one.
#[derive(Clone, Debug, Default)]
struct Waiting {
    /// Messages in SSN order; index 0 is the next to be delivered.
    slots: VecDeque<Tsns>,
    /// Messages whose SSNs are beyond the slots.
    far: BTreeMap<u16, Tsns>,
    /// Number of messages in `slots`.
    near: usize,
}

impl Waiting {
    #[inline]
    fn is_empty(&self) -> bool {
        self.near == 0 && self.far.is_empty()
    }

    /// Whether there are neither messages nor empty slots.
    #[inline]
    fn is_bare(&self) -> bool {
        self.slots.is_empty() && self.far.is_empty()
    }

    /// Bookkeeping beyond that of an empty stream, bytes.
    #[inline]
    fn cost(&self) -> u64 {
        self.slots.len() as u64 * SLOT_COST + self.far.len() as u64 * FAR_ENTRY_COST
    }

    /// Stores the complete message `ahead` of `next`. Returns false if it was stored before.
    #[inline(always)]
    fn keep(&mut self, next: Serial16, ahead: usize, spare: usize, tsns: Tsns) -> bool {
        if ahead >= self.slots.len() && !self.make_slots(next, ahead, spare) {
            return self.keep_far(next.plus(ahead as u16), tsns);
        }
        let slot = &mut self.slots[ahead];
        let fresh = *slot == NOTHING;
        self.near += usize::from(fresh);
        *slot = tsns;
        fresh
    }

    #[cold]
    fn keep_far(&mut self, ssn: Serial16, tsns: Tsns) -> bool {
        self.far.insert(ssn.0, tsns).is_none()
    }

    /// Creates slots up to `ahead` if all but `spare` of them are at least half used.
    #[inline]
    fn make_slots(&mut self, next: Serial16, ahead: usize, spare: usize) -> bool {
        let most = 2 * (self.near + self.far.len()) + spare;
        if ahead >= most && !meter::has(Defect::DenseStreams) {
            return false;
        }
        if !self.far.is_empty() {
            self.take_from_far(next, ahead);
        }
        while self.slots.len() <= ahead {
            self.slots.push_back(NOTHING);
            meter::count(1);
        }
        true
    }

    /// Creates slots up to `ahead` and moves messages from the map into them.
    #[cold]
    fn take_from_far(&mut self, next: Serial16, ahead: usize) {
        while self.slots.len() <= ahead {
            let known = self.far.remove(&next.plus(self.slots.len() as u16).0);
            self.near += usize::from(known.is_some());
            self.slots.push_back(known.unwrap_or(NOTHING));
            meter::count(1);
        }
    }

    fn forget(&mut self, next: Serial16, ssn: Serial16) {
        let Ok(ahead) = usize::try_from(ssn.distance_from(next)) else { return };
        match self.slots.get_mut(ahead) {
            Some(slot) => {
                self.near -= usize::from(*slot != NOTHING);
                *slot = NOTHING;
            }
            None => {
                self.far.remove(&ssn.0);
            }
        }
    }

    /// The message `next`, if it is complete.
    #[inline]
    fn first(&self, next: Serial16) -> Option<Tsns> {
        match self.slots.front() {
            Some(tsns) => (*tsns != NOTHING).then_some(*tsns),
            None if self.far.is_empty() => None,
            None => self.far.get(&next.0).copied(),
        }
    }

    /// Removes and returns the messages from `next` to `ahead` of it, in order.
    fn skip(&mut self, next: Serial16, ahead: usize) -> Vec<Tsns> {
        let slots = self.slots.drain(..self.slots.len().min(ahead + 1));
        let mut all: Vec<Tsns> = slots.filter(|tsns| *tsns != NOTHING).collect();
        self.near -= all.len();
        let (first, last) = (next.0, next.plus(ahead as u16).0);
        let far: Vec<u16> = if first <= last {
            self.far.range(first..=last).map(|(ssn, _)| *ssn).collect()
        } else {
            self.far.range(first..).chain(self.far.range(..=last)).map(|(ssn, _)| *ssn).collect()
        };
        meter::count(all.len() + far.len());
        all.extend(far.iter().filter_map(|ssn| self.far.remove(ssn)));
        if self.near == 0 {
            self.slots.clear();
        }
        all
    }

    /// Removes the message `next`, which is delivered.
    #[inline(always)]
    fn pop(&mut self, next: Serial16) {
        match self.slots.pop_front() {
            Some(tsns) => self.near -= usize::from(tsns != NOTHING),
            None if self.far.is_empty() => {}
            None => {
                self.far.remove(&next.0);
            }
        }
        if self.near == 0 {
            // The remaining slots are empty.
            self.slots.clear();
            if self.slots.capacity() > KEPT_SLOTS {
                self.slots = VecDeque::new();
            }
        }
    }
}

/// The streams that the peer sends on.
#[derive(Clone, Debug, Default)]
pub struct InStreams {
    /// SSN of the next message of each stream, 0 beyond the end.
    next: Vec<Serial16>,
    /// Waiting messages of stream 0, which many associations use alone.
    first: Waiting,
    /// Waiting messages of the other streams.
    others: BTreeMap<u16, Waiting>,
    /// Bookkeeping of `others`, bytes.
    others_cost: u64,
}

impl InStreams {
    /// SSN of the next message.
    #[inline]
    pub fn next_of(&self, stream: StreamId) -> Serial16 {
        self.next.get(stream.0 as usize).copied().unwrap_or_default()
    }

    /// Upper bound of the memory in addition to the messages themselves, bytes.
    #[inline]
    pub fn cost(&self) -> u64 {
        FIRST_COST + self.first.cost() + self.others_cost
    }

    #[inline]
    fn waiting(&self, stream: StreamId) -> Option<&Waiting> {
        if stream.0 == 0 { Some(&self.first) } else { self.others.get(&stream.0) }
    }

    /// Whether messages wait on a stream; for streams other than 0, on any of them.
    #[inline]
    pub fn has_waiting(&self, stream: StreamId) -> bool {
        if stream.0 == 0 { !self.first.is_empty() } else { !self.others.is_empty() }
    }

    /// Whether the message with this SSN may be delivered now.
    #[inline]
    pub fn is_next(&self, stream: StreamId, ssn: Serial16) -> bool {
        ssn == self.next_of(stream)
            && self.waiting(stream).is_none_or(|waiting| waiting.first(ssn).is_none())
    }

    /// Whether this is the next message of a stream on which no message waits.
    #[inline]
    pub fn passes(&self, stream: StreamId, ssn: Serial16) -> bool {
        ssn == self.next_of(stream) && !self.has_waiting(stream)
    }

    /// Moves to the next SSN after a message was delivered, whether or not it waited.
    #[inline(always)]
    pub fn advance(&mut self, stream: StreamId) {
        let at = stream.0 as usize;
        let next = self.next_of(stream);
        match self.next.get_mut(at) {
            Some(number) => *number = next.plus(1),
            None => self.begin(at),
        }
        if at == 0 {
            if !self.first.is_bare() {
                self.first.pop(next);
            }
        } else if !self.others.is_empty() {
            self.pop_other(stream, next);
        }
    }

    #[inline(never)]
    fn pop_other(&mut self, stream: StreamId, next: Serial16) {
        self.change(stream, |waiting| waiting.pop(next));
    }

    /// Records the delivery of the first message of a stream.
    #[cold]
    fn begin(&mut self, at: usize) {
        self.next.resize(at + 1, Serial16(0));
        self.next[at] = Serial16(1);
    }

    /// Changes the waiting messages of a stream other than 0, if there are any.
    fn change(&mut self, stream: StreamId, change: impl FnOnce(&mut Waiting)) {
        let Some(waiting) = self.others.get_mut(&stream.0) else { return };
        let before = waiting.cost();
        change(waiting);
        self.others_cost = self.others_cost - before + waiting.cost();
        if waiting.is_empty() {
            self.others_cost -= STREAM_COST + waiting.cost();
            self.others.remove(&stream.0);
        }
    }

    /// Stores a complete message that must wait. Returns false if its SSN is invalid: already delivered, too
    /// far ahead, or stored before.
    pub fn keep(&mut self, stream: StreamId, ssn: Serial16, tsns: RangeInclusive<u64>) -> bool {
        let next = self.next_of(stream);
        let ahead = ssn.distance_from(next);
        if ahead < 0 || ahead as usize >= WAITING_LIMIT {
            return false;
        }
        let tsns = (*tsns.start(), *tsns.end());
        if stream.0 == 0 {
            return self.first.keep(next, ahead as usize, SPARE_SLOTS_OF_FIRST, tsns);
        }
        let others = self.others.len();
        let waiting = self.others.entry(stream.0).or_default();
        let before = waiting.cost();
        let kept = waiting.keep(next, ahead as usize, SPARE_SLOTS, tsns);
        self.others_cost = self.others_cost - before + waiting.cost();
        self.others_cost += STREAM_COST * (self.others.len() - others) as u64;
        kept
    }

    /// Removes a message after one of its chunks was dropped: it is no longer complete.
    pub fn forget(&mut self, stream: StreamId, ssn: Serial16) {
        let next = self.next_of(stream);
        if stream.0 == 0 {
            self.first.forget(next, ssn);
        } else {
            self.change(stream, |waiting| waiting.forget(next, ssn));
        }
    }

    /// Skips all SSNs up to `ssn`, unless they were skipped before. Returns the complete messages up to
    /// it, which need not wait any longer.
    pub fn skip(&mut self, stream: StreamId, ssn: Serial16) -> Vec<RangeInclusive<u64>> {
        let (at, next) = (stream.0 as usize, self.next_of(stream));
        let Ok(ahead) = usize::try_from(ssn.distance_from(next)) else { return Vec::new() };
        let mut skipped = Vec::new();
        if at == 0 {
            skipped = self.first.skip(next, ahead);
        } else {
            self.change(stream, |waiting| skipped = waiting.skip(next, ahead));
        }
        if self.next.len() <= at {
            self.next.resize(at + 1, Serial16(0));
        }
        self.next[at] = ssn.plus(1);
        skipped.into_iter().map(|(first, last)| first..=last).collect()
    }

    /// Starts a stream over: its next message is the first one. Returns the complete messages that wait,
    /// in order. The messages they wait for will not arrive.
    pub fn restart(&mut self, stream: StreamId) -> Vec<RangeInclusive<u64>> {
        let last = self.next_of(stream).plus(WAITING_LIMIT as u16 - 1);
        let waits = self.waiting(stream).is_some_and(|waiting| !waiting.is_empty());
        let waiting = if waits { self.skip(stream, last) } else { Vec::new() };
        if let Some(next) = self.next.get_mut(stream.0 as usize) {
            *next = Serial16(0);
        }
        if stream.0 == 0 {
            self.first = Waiting::default();
        }
        waiting
    }

    /// The streams with waiting messages.
    pub fn waiting_streams(&self) -> Vec<StreamId> {
        let first = (!self.first.is_empty()).then_some(StreamId(0));
        first.into_iter().chain(self.others.keys().copied().map(StreamId)).collect()
    }

    /// Starts over all streams without waiting messages.
    pub fn restart_idle(&mut self) {
        self.next.clear();
    }

    /// Takes the next message if it is complete.
    #[inline(always)]
    pub fn take_next(&mut self, stream: StreamId) -> Option<RangeInclusive<u64>> {
        let (first, last) = self.waiting(stream)?.first(self.next_of(stream))?;
        self.advance(stream);
        Some(first..=last)
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;

    #[test]
    fn messages_that_wait_agree_with_a_plain_map_whatever_their_numbers() {
        for case in 0..100 {
            let mut rng = Seed::root(case).child("streams").rng();
            let reach = [4, 60, 1_000, 32_767][case as usize % 4];
            let mut streams = InStreams::default();
            let mut model = BTreeMap::<(u16, u16), u64>::new();
            let mut next = [0u16; 3];
            for tsn in 1..600u64 {
                let stream = rng.below(3) as u16;
                let at = &mut next[stream as usize];
                let ssn = at.wrapping_add(rng.below(reach) as u16);
                let id = StreamId(stream);
                if rng.chance(0.1) {
                    streams.forget(id, Serial16(ssn));
                    model.remove(&(stream, ssn));
                } else {
                    let fresh = model.insert((stream, ssn), tsn).is_none();
                    assert_eq!(streams.keep(id, Serial16(ssn), tsn..=tsn), fresh, "case {case}");
                }
                if rng.chance(0.05) {
                    let ssn = at.wrapping_add(rng.below(reach) as u16);
                    let skipped = streams.skip(id, Serial16(ssn));
                    let skipped: Vec<u64> = skipped.iter().map(|tsns| *tsns.start()).collect();
                    let passed = (0..=ssn.wrapping_sub(*at)).map(|ahead| at.wrapping_add(ahead));
                    let known: Vec<u64> =
                        passed.filter_map(|ssn| model.remove(&(stream, ssn))).collect();
                    assert_eq!(skipped, known, "case {case}");
                    assert!(streams.skip(id, Serial16(ssn)).is_empty(), "it is past");
                    *at = ssn.wrapping_add(1);
                }
                let there = model.get(&(stream, *at)).copied();
                assert_eq!(streams.is_next(id, Serial16(*at)), there.is_none());
                if rng.chance(0.5) {
                    let taken = streams.take_next(id).map(|tsns| *tsns.start());
                    assert_eq!(taken, model.remove(&(stream, *at)), "case {case}");
                    *at = at.wrapping_add(u16::from(taken.is_some()));
                } else if there.is_none() && rng.chance(0.5) {
                    streams.advance(id);
                    *at = at.wrapping_add(1);
                }
            }
            let waiting = |waiting: &Waiting| waiting.near + waiting.far.len();
            let kept =
                waiting(&streams.first) + streams.others.values().map(waiting).sum::<usize>();
            assert_eq!(kept, model.len());
            let cost = streams.others.values().map(|one| one.cost() + STREAM_COST).sum::<u64>();
            assert_eq!(streams.others_cost, cost);
        }
    }

    #[test]
    fn a_message_far_ahead_takes_no_slots() {
        let mut streams = InStreams::default();
        for stream in 0..1024 {
            assert!(streams.keep(StreamId(stream), Serial16(32_767), 9..=9));
            assert!(!streams.keep(StreamId(stream), Serial16(32_768), 9..=9), "beyond half");
        }
        assert!(streams.cost() <= 1024 * (STREAM_COST + 64), "{} B", streams.cost());
    }
}
