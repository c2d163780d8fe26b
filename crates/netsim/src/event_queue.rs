//! The event queue: for each actor, at most one instant at which it wants to be woken.
//!
//! An indexed 4-ary heap ordered by (time, sequence number). Four children share a cache line or two, which beats
//! two children at twice the depth; the index makes an instant replaceable in place, so that the queue is as long
//! as there are busy actors, however many packets are in flight.

use ropewalk_base::Time;

/// Where a slot stands that is not in the heap.
const ABSENT: u32 = u32::MAX;
/// Children per node.
const ARITY: usize = 4;
/// Entries behind the last one that are later than any: every node that has a child has four.
const PADDING: usize = ARITY - 1;

/// Time, sequence number and slot in one integer, most significant first: entries compare in one
/// step, and four of them fill a cache line. Sequence numbers are unique, so the slot decides nothing.
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
    fn slot(self) -> usize {
        (self.0 as u32 & ((1 << SLOT_BITS) - 1)) as usize
    }
}

/// Pending instants by slot.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    /// The entries, and [`PADDING`] times [`Entry::NEVER`].
    heap: Vec<Entry>,
    /// Position of every slot in `heap`.
    position: Vec<u32>,
    sequence: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self { heap: vec![Entry::NEVER; PADDING], position: Vec::new(), sequence: 0 }
    }
}

impl EventQueue {
    /// How many slots wait for something.
    #[inline]
    fn len(&self) -> usize {
        self.heap.len() - PADDING
    }

    /// A new slot with nothing pending.
    pub(crate) fn add_slot(&mut self) -> u32 {
        let slot = self.position.len();
        assert!(slot < 1 << SLOT_BITS, "a world has fewer than 2^{SLOT_BITS} actors");
        self.position.push(ABSENT);
        slot as u32
    }

    /// The earliest pending instant and its slot.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(Time, u32)> {
        let first = self.heap[0];
        (first != Entry::NEVER).then(|| (first.time(), first.slot() as u32))
    }

    /// What `slot` waits for.
    #[cfg(test)]
    fn pending(&self, slot: u32) -> Option<Time> {
        let position = self.position[slot as usize];
        (position != ABSENT).then(|| self.heap[position as usize].time())
    }

    /// Makes `slot` wait for `time` and nothing else. An unchanged time keeps its place among equals.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, time: Time) {
        let position = self.position[slot as usize];
        if position == ABSENT {
            let (entry, last) = (self.entry(slot, time), self.len());
            self.heap.push(Entry::NEVER);
            self.heap[last] = entry;
            self.sift_up(last);
            return;
        }
        let position = position as usize;
        let old = self.heap[position].time();
        if old == time {
            return;
        }
        self.heap[position] = self.entry(slot, time);
        if time < old { self.sift_up(position) } else { self.sift_down(position) }
    }

    /// Makes `slot` wait for nothing.
    #[inline]
    pub(crate) fn clear(&mut self, slot: u32) {
        let position = self.position[slot as usize];
        if position == ABSENT {
            return;
        }
        self.position[slot as usize] = ABSENT;
        let at = self.len() - 1;
        let last = core::mem::replace(&mut self.heap[at], Entry::NEVER);
        self.heap.pop();
        if last.slot() == slot as usize {
            return;
        }
        // The last entry fills the hole, and may belong above or below it.
        let position = position as usize;
        let removed = core::mem::replace(&mut self.heap[position], last);
        if last < removed { self.sift_up(position) } else { self.sift_down(position) }
    }

    #[inline]
    fn entry(&mut self, slot: u32, time: Time) -> Entry {
        self.sequence += 1;
        debug_assert!(self.sequence < 1 << SEQUENCE_BITS);
        let low = self.sequence << SLOT_BITS | u64::from(slot);
        Entry(u128::from(time.as_nanos()) << 64 | u128::from(low))
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if entry >= self.heap[parent] {
                break;
            }
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, entry);
    }

    #[inline]
    fn sift_down(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let first = at * ARITY + 1;
            let children = self.heap.get(first..first + ARITY).and_then(|all| all.try_into().ok());
            let Some(children) = children else { break };
            let (least, child) = least_of_four(first, children);
            if child >= entry {
                break;
            }
            self.place(at, child);
            at = least;
        }
        self.place(at, entry);
    }

    #[inline]
    fn place(&mut self, at: usize, entry: Entry) {
        self.position[entry.slot()] = at as u32;
        self.heap[at] = entry;
    }
}

/// The least of four children that begin at index `first`, and its index: no branch to mispredict.
#[inline]
fn least_of_four(first: usize, all: &[Entry; ARITY]) -> (usize, Entry) {
    let left = usize::from(all[1] < all[0]);
    let right = 2 + usize::from(all[3] < all[2]);
    let least = if all[right] < all[left] { right } else { left };
    (first + least, all[least])
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
