//! The event queue: for each actor, at most one pending wake-up time.
//!
//! The queue is a tournament tree. The slots are its leaves, and every node holds the earliest entry below each
//! of its four children, so the earliest entry of all is known at the root. A slot keeps its leaf: a new time
//! replaces the old one in place and moves up to the root, or to the first node that it does not change. A node
//! is one cache line and takes three branch-free comparisons; a heap would move entries and track their
//! positions. The size of the tree depends on the number of actors, not on that of packets in flight.

use ropewalk_base::Time;

/// Time, sequence number and slot in one integer, most significant first, so that entries compare in one step.
/// Sequence numbers are unique, so the slot never decides.
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

/// Children per node.
const ARITY: usize = 4;

/// The earliest entries of four children.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node([Entry; ARITY]);

impl Node {
    const EMPTY: Self = Self([Entry::NEVER; ARITY]);

    #[inline]
    fn earliest(&self) -> Entry {
        let [a, b, c, d] = self.0;
        let left = if b < a { b } else { a };
        let right = if d < c { d } else { c };
        if right < left { right } else { left }
    }
}

/// Pending wake-up times by slot.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    /// All levels from the root to the leaves; all leaves have equal depth. The child of entry `i` of node `n`
    /// is node `4 n + 1 + i`.
    nodes: Vec<Node>,
    /// Index of the first leaf.
    leaves: usize,
    /// The earliest entry.
    first: Entry,
    /// Number of slots.
    slots: u32,
    sequence: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self { nodes: vec![Node::EMPTY], leaves: 0, first: Entry::NEVER, slots: 0, sequence: 0 }
    }
}

impl EventQueue {
    /// A new slot with nothing pending.
    pub(crate) fn add_slot(&mut self) -> u32 {
        let slot = self.slots;
        assert!(slot < 1 << SLOT_BITS, "a world has fewer than 2^{SLOT_BITS} actors");
        if slot as usize / ARITY == self.nodes.len() - self.leaves {
            self.grow();
        }
        self.slots += 1;
        slot
    }

    /// Adds a level to the tree.
    fn grow(&mut self) {
        let pending: Vec<Node> = self.nodes[self.leaves..].to_vec();
        self.leaves = self.nodes.len();
        self.nodes = vec![Node::EMPTY; self.leaves + pending.len() * ARITY];
        self.nodes[self.leaves..self.leaves + pending.len()].copy_from_slice(&pending);
        for at in (1..self.nodes.len()).rev() {
            self.nodes[(at - 1) / ARITY].0[(at - 1) % ARITY] = self.nodes[at].earliest();
        }
    }

    /// The earliest pending instant and its slot.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(Time, u32)> {
        (self.first != Entry::NEVER).then(|| (self.first.time(), self.first.slot()))
    }

    /// Position of a slot: its node and its entry in the node.
    #[inline]
    fn leaf(&self, slot: u32) -> (usize, usize) {
        (self.leaves + slot as usize / ARITY, slot as usize % ARITY)
    }

    /// The pending time of `slot`.
    #[cfg(test)]
    fn pending(&self, slot: u32) -> Option<Time> {
        let (node, place) = self.leaf(slot);
        let entry = self.nodes[node].0[place];
        (entry != Entry::NEVER).then(|| entry.time())
    }

    /// Sets the pending time of `slot`, replacing any other. An unchanged time keeps its place among equal
    /// times.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, time: Time) {
        let (node, place) = self.leaf(slot);
        if self.nodes[node].0[place].time() == time {
            return;
        }
        self.sequence += 1;
        debug_assert!(self.sequence < 1 << SEQUENCE_BITS);
        let low = self.sequence << SLOT_BITS | u64::from(slot);
        self.play(node, place, Entry(u128::from(time.as_nanos()) << 64 | u128::from(low)));
    }

    /// Removes the pending time of `slot`.
    #[inline]
    pub(crate) fn clear(&mut self, slot: u32) {
        let (node, place) = self.leaf(slot);
        if self.nodes[node].0[place] != Entry::NEVER {
            self.play(node, place, Entry::NEVER);
        }
    }

    /// Writes `entry` to a leaf and updates the winners above it.
    #[inline]
    fn play(&mut self, mut at: usize, mut place: usize, mut entry: Entry) {
        loop {
            let node = &mut self.nodes[at];
            if node.0[place] == entry {
                return;
            }
            node.0[place] = entry;
            entry = node.earliest();
            if at == 0 {
                self.first = entry;
                return;
            }
            (at, place) = ((at - 1) / ARITY, (at - 1) % ARITY);
        }
    }
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
        // The reference model: slot to (time, order of insertion).
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
