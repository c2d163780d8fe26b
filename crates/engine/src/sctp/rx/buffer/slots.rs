//! Chunks in the receive buffer that wait for earlier ones, by TSN.
//!
//! ```text
//!   base                    base + near.len()
//!    |                              |
//!    +====+----+====+ ... +====+----+-----------------> TSN
//!     held      held            missing    far: a map
//!    |<---- near: one slot per TSN --->|
//! ```
//!
//! Slots are indexed by TSN. They exist only while nearly every second one is used, so that memory is
//! proportional to the chunks held, whichever TSNs the peer chooses.

use std::collections::{BTreeMap, VecDeque};

use ropewalk_base::Time;

use crate::meter::{self, Defect};
use crate::sctp::Data;
use crate::sctp::rx::gaps::Gaps;

/// A chunk that waits for earlier ones.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub data: Data,
    pub arrived: Time,
    /// At either end of a run of fragments of one message, the TSN of the other end.
    pub run: u64,
}

#[derive(Clone, Debug)]
enum Slot {
    Missing,
    Held(Held),
    Released,
}

/// State of a TSN at or after `base`.
pub(super) enum Place<'a> {
    /// Not received.
    Missing,
    /// Received and waiting.
    Held(&'a Held),
    /// Delivered to the user.
    Released,
}

/// Number of slots that may exist regardless of the chunks held.
const SPARE_SLOTS: usize = 128;
/// Number of empty slots that may exceed the limit, so that they are removed in batches.
const BATCH: usize = 16;
/// Bookkeeping of a slot, bytes. A deque may have twice the capacity that it uses.
const SLOT_COST: u64 = 2 * size_of::<Slot>() as u64;
/// Bookkeeping of a chunk in the map, bytes. Tree nodes are at least half full.
const FAR_COST: u64 = 2 * (size_of::<Held>() as u64 + 16);

/// The waiting chunks of an association.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    near: VecDeque<Slot>,
    base: u64,
    far: BTreeMap<u64, Held>,
    /// Number of chunks in `near`.
    held_near: usize,
    /// Highest TSN that was released beyond the slots.
    released_far: u64,
}

impl Slots {
    pub const fn new(base: u64) -> Self {
        Self { near: VecDeque::new(), base, far: BTreeMap::new(), held_near: 0, released_far: 0 }
    }

    /// The lowest TSN that is not released.
    #[inline]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Whether there are neither slots nor chunks beyond them.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.near.is_empty() && self.far.is_empty()
    }

    /// Number of waiting chunks.
    #[inline]
    pub fn held_count(&self) -> usize {
        self.held_near + self.far.len()
    }

    /// Upper bound of the memory of the slots and the map, bytes.
    #[inline]
    pub fn cost(&self) -> u64 {
        self.near.len() as u64 * SLOT_COST + self.far.len() as u64 * FAR_COST
    }

    pub fn clear(&mut self) {
        *self = Self::new(self.base);
    }

    /// Index in `near`; past its end for a TSN in the map.
    #[inline]
    const fn index(&self, tsn: u64) -> usize {
        (tsn - self.base) as usize
    }

    /// State of `tsn`, which must not be below the base.
    #[inline(always)]
    pub fn at(&self, tsn: u64, gaps: &Gaps) -> Place<'_> {
        match self.near.get(self.index(tsn)) {
            Some(Slot::Held(held)) => Place::Held(held),
            Some(Slot::Released) => Place::Released,
            Some(Slot::Missing) => Place::Missing,
            None if self.far.is_empty() && tsn > self.released_far => Place::Missing,
            None => self.at_far(tsn, gaps),
        }
    }

    #[cold]
    fn at_far(&self, tsn: u64, gaps: &Gaps) -> Place<'_> {
        match self.far.get(&tsn) {
            Some(held) => Place::Held(held),
            None if self.was_released(tsn, gaps) => Place::Released,
            None => Place::Missing,
        }
    }

    /// Whether a TSN that has no slot and is not held has been received.
    #[inline]
    fn was_released(&self, tsn: u64, gaps: &Gaps) -> bool {
        tsn <= self.released_far && (tsn <= gaps.cumulative() || gaps.contains(tsn))
    }

    fn get(&self, tsn: u64) -> Option<&Held> {
        match self.near.get(tsn.checked_sub(self.base)? as usize) {
            Some(Slot::Held(held)) => Some(held),
            Some(_) => None,
            None => self.far.get(&tsn),
        }
    }

    fn get_mut(&mut self, tsn: u64) -> Option<&mut Held> {
        match self.near.get_mut(tsn.checked_sub(self.base)? as usize) {
            Some(Slot::Held(held)) => Some(held),
            Some(_) => None,
            None => self.far.get_mut(&tsn),
        }
    }

    /// The chunk `tsn`, if it is held.
    pub fn held(&self, tsn: u64) -> Option<&Data> {
        self.get(tsn).map(|held| &held.data)
    }

    /// The other end of the run that starts or ends at `tsn`.
    pub fn other_end(&self, tsn: u64) -> Option<u64> {
        self.get(tsn).map(|held| held.run)
    }

    /// Records a run of fragments from `first` to `last`.
    pub fn set_run(&mut self, first: u64, last: u64) {
        for (at, other) in [(first, last), (last, first)] {
            if let Some(held) = self.get_mut(at) {
                held.run = other;
            }
        }
    }

    /// Stores a chunk that was not received before.
    #[inline]
    pub fn keep(&mut self, tsn: u64, held: Held, gaps: &Gaps) {
        let at = self.index(tsn);
        if at < self.near.len() || self.make_slots(at, gaps) {
            self.near[at] = Slot::Held(held);
            self.held_near += 1;
        } else {
            self.far.insert(tsn, held);
        }
    }

    /// Moves the base past the first TSN, which was delivered without waiting.
    #[inline(always)]
    pub fn pass_first(&mut self) {
        self.near.pop_front();
        self.base += 1;
    }

    /// Marks `tsn` as released: it was delivered without waiting.
    pub fn mark_released(&mut self, tsn: u64, gaps: &Gaps) {
        let at = self.index(tsn);
        if at == 0 {
            self.pass_first();
        } else if at < self.near.len() || self.make_slots(at, gaps) {
            self.near[at] = Slot::Released;
        } else {
            self.released_far = self.released_far.max(tsn);
        }
    }

    /// Creates slots up to `at` if the limit allows it.
    #[inline]
    fn make_slots(&mut self, at: usize, gaps: &Gaps) -> bool {
        if at >= 2 * self.held_count() + SPARE_SLOTS && !meter::has(Defect::DenseTsns) {
            return false;
        }
        if self.far.is_empty() && self.released_far < self.base {
            while self.near.len() <= at {
                self.near.push_back(Slot::Missing);
                meter::count(1);
            }
        } else {
            self.take_from_far(at, gaps);
        }
        true
    }

    /// Creates slots up to `at` and moves chunks from the map into them.
    #[cold]
    fn take_from_far(&mut self, at: usize, gaps: &Gaps) {
        while self.near.len() <= at {
            let tsn = self.base + self.near.len() as u64;
            let slot = match self.far.remove(&tsn) {
                Some(held) => {
                    self.held_near += 1;
                    Slot::Held(held)
                }
                None if self.was_released(tsn, gaps) => Slot::Released,
                None => Slot::Missing,
            };
            self.near.push_back(slot);
            meter::count(1);
        }
    }

    /// The TSNs of the held chunks from `from` to `tsn`, in ascending order.
    pub fn held_within(&self, from: u64, tsn: u64) -> Vec<u64> {
        let from = from.max(self.base);
        let slots = self.near.iter().skip((from - self.base) as usize).zip(from..=tsn);
        let near = slots
            .inspect(|_| meter::count(1))
            .filter_map(|(slot, at)| matches!(slot, Slot::Held(_)).then_some(at));
        let far = (from <= tsn).then(|| self.far.range(from..=tsn)).into_iter().flatten();
        near.chain(far.map(|(at, _)| *at)).collect()
    }

    /// The highest TSN of the held chunks from `from` to before `end`.
    pub fn last_held_within(&self, from: u64, end: u64) -> Option<u64> {
        if from >= end {
            return None;
        }
        if let Some((tsn, _)) = self.far.range(from..end).next_back() {
            return Some(*tsn);
        }
        let from = from.max(self.base);
        let slots = end.saturating_sub(self.base).min(self.near.len() as u64);
        let tsns = (from..self.base + slots).rev();
        tsns.inspect(|_| meter::count(1))
            .find(|tsn| matches!(self.near[self.index(*tsn)], Slot::Held(_)))
    }

    /// Marks all missing TSNs from `from` to `tsn` as released, because they count as received now.
    pub fn skip_to(&mut self, from: u64, tsn: u64) {
        let from = from.max(self.base);
        let slots = self.near.iter_mut().skip((from - self.base) as usize);
        for (slot, _) in slots.zip(from..=tsn) {
            meter::count(1);
            if matches!(slot, Slot::Missing) {
                *slot = Slot::Released;
            }
        }
        if tsn >= self.base + self.near.len() as u64 {
            self.released_far = self.released_far.max(tsn);
        }
    }

    /// Takes a chunk to deliver it.
    pub fn take(&mut self, tsn: u64) -> Option<Held> {
        let at = self.index(tsn);
        match self.near.get_mut(at) {
            Some(slot @ Slot::Held(_)) => {
                self.held_near -= 1;
                match std::mem::replace(slot, Slot::Released) {
                    Slot::Held(held) => Some(held),
                    Slot::Missing | Slot::Released => None,
                }
            }
            Some(_) => None,
            None => self.take_far(tsn),
        }
    }

    /// The chunk, if it is held in a slot, to be delivered in place. Call [`Self::drop_handed_over`]
    /// next.
    #[inline(always)]
    pub fn near_mut(&mut self, tsn: u64) -> Option<&mut Held> {
        let at = self.index(tsn);
        match self.near.get_mut(at) {
            Some(Slot::Held(held)) => Some(held),
            _ => None,
        }
    }

    /// Marks the chunk in the slot of `tsn` as delivered.
    #[inline(always)]
    pub fn drop_handed_over(&mut self, tsn: u64) {
        let at = self.index(tsn);
        self.near[at] = Slot::Released;
        self.held_near -= 1;
    }

    #[cold]
    fn take_far(&mut self, tsn: u64) -> Option<Held> {
        let held = self.far.remove(&tsn)?;
        self.released_far = self.released_far.max(tsn);
        Some(held)
    }

    /// Removes a chunk as if it had never arrived.
    pub fn drop_held(&mut self, tsn: u64) -> Option<Held> {
        let at = self.index(tsn);
        let held = self.take(tsn)?;
        if let Some(slot) = self.near.get_mut(at) {
            *slot = Slot::Missing;
        }
        Some(held)
    }

    /// Moves the base past all delivered chunks in sequence, up to `cumulative`.
    #[inline(always)]
    pub fn drop_released(&mut self, cumulative: u64) {
        while self.base <= cumulative && matches!(self.near.front(), Some(Slot::Released)) {
            self.near.pop_front();
            self.base += 1;
            meter::count(1);
        }
        let most = SPARE_SLOTS + BATCH;
        if self.near.len() > most && self.near.len() > 2 * self.held_count() + most {
            self.thin_out();
        }
        if self.near.is_empty() && self.base <= cumulative {
            self.skip_to_far(cumulative);
        }
    }

    /// Without slots, moves the base to the first chunk of the map, or past `cumulative`.
    #[cold]
    fn skip_to_far(&mut self, cumulative: u64) {
        let first = self.far.first_key_value().map_or(u64::MAX, |(tsn, _)| *tsn);
        self.base = first.min(cumulative + 1);
    }

    /// Removes the slots after the last held chunk.
    pub fn trim(&mut self) {
        while self.near.back().is_some_and(|slot| !matches!(slot, Slot::Held(_))) {
            self.drop_last_slot();
        }
    }

    /// Removes the last slot. A chunk in it moves to the map.
    fn drop_last_slot(&mut self) {
        let Some(slot) = self.near.pop_back() else { return };
        let tsn = self.base + self.near.len() as u64;
        match slot {
            Slot::Missing => {}
            Slot::Released => self.released_far = self.released_far.max(tsn),
            Slot::Held(held) => {
                self.held_near -= 1;
                self.far.insert(tsn, held);
            }
        }
        meter::count(1);
    }

    /// Removes slots at the end until the limit is met again.
    #[cold]
    fn thin_out(&mut self) {
        if meter::has(Defect::DenseTsns) {
            return;
        }
        while self.near.len() > 2 * self.held_count() + SPARE_SLOTS {
            self.drop_last_slot();
        }
        if self.near.capacity() > 4 * self.near.len() + 2 * SPARE_SLOTS {
            self.near.shrink_to(2 * self.near.len());
        }
    }
}
