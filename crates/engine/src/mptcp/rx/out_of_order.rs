//! Out-of-order data of a byte stream, by its first byte.

use std::collections::{BTreeMap, VecDeque};

use ropewalk_base::Time;

use crate::meter;
use crate::payload::Payload;

/// Out-of-order bytes.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// Data sequence number of the first.
    pub dsn: u64,
    pub payload: Payload,
    pub arrived: Time,
    pub first_sent: Time,
}

impl Held {
    /// End of the data sequence numbers (exclusive).
    #[inline]
    fn end(&self) -> u64 {
        self.dsn + self.payload.len() as u64
    }
}

/// Binary logarithm of the minimum slot size in bytes.
const LEAST_SHIFT: u32 = 8;
/// Maximum number of slots: with full packets they cover a window of 64 MB.
const SLOTS_LIMIT: u64 = 1 << 16;
/// Empty slots that are kept allocated for the next out-of-order piece.
const KEPT_SLOTS: usize = 4096;

/// Pieces without overlaps. Nearly all segments have the same length, so a ring of slots that are
/// slightly shorter has space for each of them without a search. Pieces whose slot is occupied or does
/// not exist are stored in a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct OutOfOrderSegments {
    /// Each slot holds a piece that begins within its `1 << shift` bytes; the first slot starts at
    /// `base << shift`.
    slots: VecDeque<Option<Held>>,
    base: u64,
    shift: u32,
    crowded: BTreeMap<u64, Held>,
    /// Number of pieces.
    count: usize,
    /// The longest piece so far, bytes.
    longest: u64,
}

impl OutOfOrderSegments {
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Upper limit of the bytes that slots, tree and payload headers take in addition to the data.
    #[inline]
    pub fn cost(&self) -> u64 {
        /// A counted reference, and the header of the allocation.
        const PAYLOAD_COST: usize = 96;
        let slots = 2 * self.slots.len() * size_of::<Option<Held>>();
        let crowded = 2 * self.crowded.len() * (size_of::<Held>() + 16);
        (slots + crowded + self.count * PAYLOAD_COST) as u64
    }

    /// The piece in a slot.
    #[inline]
    fn at(&self, slot: u64) -> Option<&Held> {
        meter::count(1);
        self.slots.get(slot.checked_sub(self.base)? as usize)?.as_ref()
    }

    /// Stores a piece that overlaps no other one. `next` is the next byte in order, before the piece.
    pub fn insert(&mut self, next: u64, held: Held) {
        let length = held.payload.len();
        if self.count == 0 {
            self.slots.clear();
            if self.slots.capacity() > KEPT_SLOTS {
                self.slots = VecDeque::new();
            }
            self.shift = length.max(1).ilog2().max(LEAST_SHIFT);
            self.base = next >> self.shift;
        }
        self.count += 1;
        self.longest = self.longest.max(length as u64);
        let at = (held.dsn >> self.shift) - self.base;
        if at >= SLOTS_LIMIT {
            self.crowded.insert(held.dsn, held);
            return;
        }
        while self.slots.len() as u64 <= at {
            self.slots.push_back(None);
            meter::count(1);
        }
        match &mut self.slots[at as usize] {
            slot @ None => *slot = Some(held),
            Some(_) => {
                self.crowded.insert(held.dsn, held);
            }
        }
    }

    /// Removes the piece that begins at `dsn`. All earlier ones have been removed.
    #[inline]
    pub fn take(&mut self, dsn: u64) -> Option<Held> {
        if self.count == 0 {
            return None;
        }
        let slot = dsn >> self.shift;
        while self.base < slot && self.slots.pop_front().is_some() {
            self.base += 1;
        }
        self.base = self.base.max(slot);
        let taken = match self.slots.front_mut() {
            Some(first) => first.take_if(|held| held.dsn == dsn),
            None => None,
        };
        let taken = taken.or_else(|| self.crowded.remove(&dsn))?;
        self.count -= 1;
        Some(taken)
    }

    /// End of the last piece that begins at `dsn` or before; 0 if no such piece can reach beyond `dsn`.
    #[inline]
    pub fn end_before(&self, dsn: u64) -> u64 {
        let (least, most) = (dsn.saturating_sub(self.longest) >> self.shift, dsn >> self.shift);
        let mut begun = (least.max(self.base)..=most).rev().filter_map(|slot| self.at(slot));
        let end = begun.find(|held| held.dsn <= dsn).map_or(0, Held::end);
        match self.crowded.range(..=dsn).next_back() {
            Some((_, held)) => end.max(held.end()),
            None => end,
        }
    }

    /// First byte of the first piece within this range; the end of the range if there is none.
    #[inline]
    pub fn start_within(&self, from: u64, until: u64) -> u64 {
        let slots = from >> self.shift..=until.saturating_sub(1) >> self.shift;
        let mut begins = slots.filter_map(|slot| self.at(slot)).map(|held| held.dsn);
        let start = begins.find(|dsn| *dsn >= from).unwrap_or(until).min(until);
        match self.crowded.range(from..).next() {
            Some((dsn, _)) => start.min(*dsn),
            None => start,
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;

    fn piece(dsn: u64, length: u32) -> Held {
        let payload = Payload::Length(length);
        Held { dsn, payload, arrived: Time::ZERO, first_sent: Time::ZERO }
    }

    #[test]
    fn pieces_of_any_length_agree_with_a_sorted_map() {
        let mut rng = Seed::root(7).rng();
        for usual in [1u64, 300, 1448, 9000] {
            let (mut early, mut model) =
                (OutOfOrderSegments::default(), BTreeMap::<u64, u64>::new());
            let mut next = 0;
            for _ in 0..3000 {
                let odd = rng.chance(0.2);
                let length = if odd { 1 + rng.below(2 * usual) } else { usual };
                let from =
                    next + 1 + rng.below(60) * usual + if odd { rng.below(usual) } else { 0 };
                let before = model.range(..=from).next_back().map_or(0, |(at, len)| at + len);
                if before > from {
                    assert_eq!(early.end_before(from), before);
                } else {
                    assert!(early.end_before(from) <= from);
                    let first = model.range(from..).next().map_or(u64::MAX, |(at, _)| *at);
                    let until = from + length;
                    assert_eq!(early.start_within(from, until), first.min(until));
                    if first >= until {
                        early.insert(next, piece(from, length as u32));
                        model.insert(from, length);
                    }
                }
                if rng.chance(0.3)
                    && let Some((at, length)) = model.pop_first()
                {
                    assert_eq!(early.take(at).map(|held| held.dsn), Some(at));
                    next = at + length;
                    assert!(model.contains_key(&next) || early.take(next).is_none());
                }
                assert_eq!(early.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn what_lies_far_ahead_takes_no_slots() {
        let mut early = OutOfOrderSegments::default();
        early.insert(0, piece(1000, 1000));
        early.insert(0, piece(1 << 60, 1000));
        assert!(early.slots.len() < 10);
        assert_eq!(early.end_before((1 << 60) + 5), (1 << 60) + 1000);
        assert!(early.take(1000).is_some() && early.take(2000).is_none());
        assert!(early.take(1 << 60).is_some() && early.is_empty());
    }
}
