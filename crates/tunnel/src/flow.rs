//! The flows of the sending side, and their slots.

use std::collections::BTreeMap;

use ropewalk_base::{Duration, Time};

use crate::codel::Codel;
use crate::header::Header;
use crate::tunnel::{Class, Order};

/// Maximum number of bytes that a sparse flow sends per [`PERIOD`]: half a megabit per second.
const SPARSE_BYTES: u64 = 16_000;
const PERIOD: Duration = Duration::from_millis(250);
/// A flow that was not sparse stays so for this time. Otherwise its packets would overtake each other.
const NOT_SPARSE_FOR: Duration = Duration::from_secs(1);

/// Which of the lists of RFC 8290, 4.1, a flow is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Listed {
    #[default]
    No,
    Yes,
}

/// A flow with its queue.
#[derive(Clone, Debug)]
pub(crate) struct Flow<P> {
    pub key: u64,
    pub queue: Codel<P>,
    pub class: Class,
    pub order: Order,
    pub listed: Listed,
    pub deficit: i64,
    pub used: Time,
    generation: u8,
    sequence: u64,
    sparse: SparseFilter,
}

impl<P> Flow<P> {
    fn new(key: u64, generation: u8) -> Self {
        Self {
            key,
            queue: Codel::default(),
            class: Class::Bulk,
            order: Order::Restored,
            listed: Listed::No,
            deficit: 0,
            used: Time::ZERO,
            generation,
            sequence: 0,
            sparse: SparseFilter::default(),
        }
    }

    /// Sets the class by that of the next packet: a sparse bulk flow is interactive. A flow with packets in its queue
    /// gets no higher class, because these would overtake packets sent earlier.
    pub fn classify(&mut self, now: Time, class: Class, bytes: u32) {
        let sparse = self.sparse.look(now, bytes);
        let class = if class == Class::Bulk && sparse { Class::Interactive } else { class };
        self.class = if self.queue.is_empty() { class } else { class.max(self.class) };
    }

    /// The header of the next packet that is sent.
    pub fn next_header(&mut self, slot: u16) -> Header {
        let ordered = self.order == Order::Restored;
        let header = Header::new(slot, self.generation, ordered, self.sequence);
        self.sequence += 1;
        header
    }
}

/// Recognizes flows that send little.
#[derive(Clone, Copy, Debug, Default)]
struct SparseFilter {
    begun: Time,
    bytes: u64,
    busy_until: Time,
}

impl SparseFilter {
    /// Counts a packet; returns whether the flow is sparse.
    fn look(&mut self, now: Time, bytes: u32) -> bool {
        if now.since(self.begun) >= PERIOD {
            (self.begun, self.bytes) = (now, 0);
        }
        self.bytes += u64::from(bytes);
        if self.bytes > SPARSE_BYTES {
            self.busy_until = now + NOT_SPARSE_FOR;
        }
        now >= self.busy_until
    }
}

/// All flows. A flow keeps its slot until it is idle and another flow needs the slot.
#[derive(Clone, Debug)]
pub(crate) struct Flows<P> {
    slots: Vec<Option<Box<Flow<P>>>>,
    /// Generation of the last flow of each slot. Kept without the flow: a far end that still knows an old flow would
    /// mistake the first packets of a new one for duplicates.
    generations: Vec<u8>,
    by_key: BTreeMap<u64, u16>,
    free: Vec<u16>,
    most: u16,
}

impl<P> Flows<P> {
    pub const fn new(most: u16) -> Self {
        Self {
            slots: Vec::new(),
            generations: Vec::new(),
            by_key: BTreeMap::new(),
            free: Vec::new(),
            most,
        }
    }

    /// The slot of the flow with this key. If all slots are in use, it is shared (RFC 8290, 3: flows whose hashes
    /// collide share a queue).
    pub fn slot(&mut self, key: u64) -> u16 {
        if let Some(slot) = self.by_key.get(&key) {
            return *slot;
        }
        let unused = self.free.pop().or_else(|| self.new_slot()).or_else(|| self.evict());
        let Some(slot) = unused else { return (key % u64::from(self.most)) as u16 };
        let generation = &mut self.generations[usize::from(slot)];
        *generation = generation.wrapping_add(1);
        self.slots[usize::from(slot)] = Some(Box::new(Flow::new(key, *generation)));
        self.by_key.insert(key, slot);
        slot
    }

    fn new_slot(&mut self) -> Option<u16> {
        let slot = u16::try_from(self.slots.len()).ok().filter(|slot| *slot < self.most)?;
        self.slots.push(None);
        self.generations.push(0);
        Some(slot)
    }

    /// Takes the slot of the flow that has been idle longest.
    fn evict(&mut self) -> Option<u16> {
        let idle = self.slots.iter().enumerate().filter_map(|(slot, flow)| {
            let flow = flow.as_ref().filter(|flow| flow.listed == Listed::No)?;
            Some((flow.used, slot as u16, flow.key))
        });
        let (_, slot, key) = idle.min()?;
        self.by_key.remove(&key);
        Some(slot)
    }

    /// Forgets the flows that have not been used since `since`.
    pub fn release(&mut self, since: Time) {
        for (slot, entry) in self.slots.iter_mut().enumerate() {
            let idle = |flow: &Flow<P>| flow.listed == Listed::No && flow.used < since;
            if let Some(flow) = entry.take_if(|flow| idle(flow)) {
                self.by_key.remove(&flow.key);
                self.free.push(slot as u16);
            }
        }
    }

    /// The flow in a slot that [`Self::slot`] has returned.
    pub fn get(&mut self, slot: u16) -> &mut Flow<P> {
        self.slots[usize::from(slot)].as_mut().expect("a listed slot has a flow")
    }

    /// The slot with the longest queue, bytes.
    pub fn longest(&self) -> Option<u16> {
        let all = self.slots.iter().enumerate();
        let filled = all.filter_map(|(slot, flow)| Some((flow.as_ref()?.queue.bytes(), slot)));
        filled.max().filter(|(bytes, _)| *bytes > 0).map(|(_, slot)| slot as u16)
    }

    /// Number of known flows.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_reused_by_the_flow_that_was_idle_for_longest_with_a_new_generation() {
        let mut flows = Flows::<()>::new(2);
        assert_eq!((flows.slot(10), flows.slot(11), flows.slot(10)), (0, 1, 0));
        flows.get(0).used = Time::from_millis(5);
        flows.get(1).used = Time::from_millis(3);
        let before = flows.get(1).next_header(1);
        assert_eq!(flows.slot(12), 1);
        let after = flows.get(1).next_header(1);
        assert!(before.is_older(after.generation));
        flows.get(0).listed = Listed::Yes;
        flows.get(1).listed = Listed::Yes;
        assert_eq!(flows.slot(13), 1, "no slot is idle: 13 shares one");
        assert_eq!(flows.len(), 2);
    }

    #[test]
    fn a_released_slot_keeps_its_generation() {
        let mut flows = Flows::<()>::new(4);
        let slot = flows.slot(1);
        let before = flows.get(slot).next_header(slot);
        flows.release(Time::from_secs(1));
        assert_eq!(flows.len(), 0);
        let slot = flows.slot(2);
        let after = flows.get(slot).next_header(slot);
        assert!(before.slot == after.slot && before.is_older(after.generation));
    }

    #[test]
    fn a_flow_is_sparse_up_to_half_a_megabit_per_second() {
        for (bytes, sparse) in [(100, true), (500, true), (700, false), (1400, false)] {
            let mut filter = SparseFilter::default();
            let mut all = true;
            for ms in (0..5000).step_by(10) {
                all &= filter.look(Time::from_millis(ms), bytes);
            }
            assert_eq!(all, sparse, "{bytes} bytes each 10 ms");
        }
    }
}
