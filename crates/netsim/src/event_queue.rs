//! The event queue: for each actor, at most one instant at which it wants to be woken.
//!
//! A tournament: the slots are the leaves of a binary tree, and every node holds the earlier of the two below it, so
//! that the root is what comes first. A slot keeps its leaf for good: an instant is replaced where it stands, and then
//! played up to the root, or to the first node that it does not change. That is one comparison without a branch per
//! level, where a heap would compare more at each and move entries about; the tree is as large as there are actors,
//! however many packets are in flight.

use ropewalk_base::Time;

/// Time, sequence number and slot in one integer, most significant first: entries compare in one
/// step. Sequence numbers are unique, so the slot decides nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry(u128);

/// Bits of the slot; a world has fewer than 16 million actors.
const SLOT_BITS: u32 = 24;
/// Bits of the sequence number: enough for 10^12 schedulings.
const SEQUENCE_BITS: u32 = 40;

impl Entry {
    const NEVER: Self = Self(u128::MAX);

    #[inline]
    fn time(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }

    #[inline]
    fn slot(self) -> u32 {
        self.0 as u32 & ((1 << SLOT_BITS) - 1)
    }
}

/// The two that meet in a node of the tree.
type Pair = [Entry; 2];

/// Pending instants by slot.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    /// The root's children are at 1; those of the winner of pair `p` at `p / 2` meet at `p`. The
    /// leaves of slots 2 k and 2 k + 1 are the pair `k` of the second half. Index 0 has but the root.
    pairs: Vec<Pair>,
    /// How many slots there are.
    slots: u32,
    sequence: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self { pairs: vec![[Entry::NEVER; 2]; 2], slots: 0, sequence: 0 }
    }
}

impl EventQueue {
    /// A new slot with nothing pending.
    pub(crate) fn add_slot(&mut self) -> u32 {
        let slot = self.slots;
        assert!(slot < 1 << SLOT_BITS, "a world has fewer than 2^{SLOT_BITS} actors");
        if slot as usize == self.pairs.len() {
            self.grow();
        }
        self.slots += 1;
        slot
    }

    /// Doubles the number of leaves.
    fn grow(&mut self) {
        let half = self.pairs.len() / 2;
        let leaves = self.pairs[half..].to_vec();
        self.pairs = vec![[Entry::NEVER; 2]; half * 4];
        self.pairs[half * 2..half * 3].copy_from_slice(&leaves);
        for at in (1..half * 4).rev() {
            let pair = self.pairs[at];
            self.pairs[at / 2][at % 2] = earlier(pair);
        }
    }

    /// The earliest pending instant and its slot.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(Time, u32)> {
        let first = self.pairs[0][1];
        (first != Entry::NEVER).then(|| (first.time(), first.slot()))
    }

    /// What `slot` waits for.
    #[cfg(test)]
    fn pending(&self, slot: u32) -> Option<Time> {
        let entry = self.pairs[(self.pairs.len() + slot as usize) / 2][slot as usize % 2];
        (entry != Entry::NEVER).then(|| entry.time())
    }

    /// Makes `slot` wait for `time` and nothing else. An unchanged time keeps its place among equals.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, time: Time) {
        let at = self.pairs.len() + slot as usize;
        if self.pairs[at / 2][at % 2].time() == time {
            return;
        }
        self.sequence += 1;
        debug_assert!(self.sequence < 1 << SEQUENCE_BITS);
        let low = self.sequence << SLOT_BITS | u64::from(slot);
        self.play(at, Entry(u128::from(time.as_nanos()) << 64 | u128::from(low)));
    }

    /// Makes `slot` wait for nothing.
    #[inline]
    pub(crate) fn clear(&mut self, slot: u32) {
        let at = self.pairs.len() + slot as usize;
        if self.pairs[at / 2][at % 2] != Entry::NEVER {
            self.play(at, Entry::NEVER);
        }
    }

    /// Puts `entry` at `at`, and the winners above it.
    #[inline]
    fn play(&mut self, mut at: usize, mut entry: Entry) {
        loop {
            let pair = &mut self.pairs[at / 2];
            if pair[at % 2] == entry {
                return;
            }
            pair[at % 2] = entry;
            if at < 2 {
                return;
            }
            entry = earlier(*pair);
            at /= 2;
        }
    }
}

/// The earlier of two.
#[inline]
fn earlier(pair: Pair) -> Entry {
    if pair[1] < pair[0] { pair[1] } else { pair[0] }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ropewalk_base::Seed;

    use super::*;

    #[test]
    fn equal_times_come_out_in_the_order_they_went_in() {
        let mut queue = EventQueue::default();
        let slots: Vec<_> = (0..20).map(|_| queue.add_slot()).collect();
        for slot in slots.iter().rev() {
            queue.set(*slot, Time::from_millis(1));
        }
        for expected in slots.iter().rev() {
            assert_eq!(queue.peek(), Some((Time::from_millis(1), *expected)));
            queue.clear(*expected);
        }
        assert_eq!(queue.peek(), None);
    }

    #[test]
    fn any_mixture_of_operations_agrees_with_a_sorted_map() {
        let mut rng = Seed::root(3).rng();
        let mut queue = EventQueue::default();
        for _ in 0..50 {
            queue.add_slot();
        }
        // The model: slot to (time, order of insertion).
        let mut model: BTreeMap<u32, (Time, u64)> = BTreeMap::new();
        for order in 0..20_000 {
            let slot = rng.below(50) as u32;
            if rng.chance(0.3) {
                queue.clear(slot);
                model.remove(&slot);
            } else {
                let time = Time::from_nanos(rng.below(40));
                queue.set(slot, time);
                if model.get(&slot).is_none_or(|(old, _)| *old != time) {
                    model.insert(slot, (time, order));
                }
            }
            assert_eq!(queue.pending(slot), model.get(&slot).map(|(time, _)| *time));
            let first = model.iter().min_by_key(|(_, key)| **key).map(|(s, (t, _))| (*t, *s));
            assert_eq!(queue.peek(), first);
        }
    }
}
