//! The memory of waiting inner packets, over all clients of a hub.
//!
//! Each lane may queue as much as all lanes together leave free (dynamic thresholds: Choudhury and Hahne, 1998). A
//! single lane with a long queue then takes half of the limit, and `n` of them take `1/(n + 1)` each, which leaves
//! some for lanes with short queues. No lane has a reservation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit, and the part of it in use. Costs are bytes including bookkeeping
/// ([`ropewalk_tunnel::packet_cost`]).
#[derive(Debug)]
pub struct PacketMemory {
    limit: AtomicU64,
    used: AtomicU64,
}

impl Default for PacketMemory {
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

impl PacketMemory {
    /// Creates an unused limit, bytes.
    pub const fn new(limit: u64) -> Self {
        Self { limit: AtomicU64::new(limit), used: AtomicU64::new(0) }
    }

    /// Changes the limit. Memory in use beyond a lower limit is not reclaimed immediately.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Memory in use, bytes.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Remaining memory, bytes.
    pub fn left(&self) -> u64 {
        self.limit.load(Ordering::Relaxed).saturating_sub(self.used())
    }

    /// Takes this amount if it is available. Returns whether it was.
    pub fn take(&self, cost: u64) -> bool {
        let is_left = self.left() >= cost;
        if is_left {
            self.used.fetch_add(cost, Ordering::Relaxed);
        }
        is_left
    }

    /// Releases memory that was taken.
    pub fn give_back(&self, cost: u64) {
        self.used.fetch_sub(cost, Ordering::Relaxed);
    }
}

/// Memory used by the queues of one lane. It is released when the lane ends.
#[derive(Debug, Default)]
pub struct QueueShare {
    memory: Arc<PacketMemory>,
    taken: u64,
}

impl QueueShare {
    /// Creates an empty share of this memory.
    pub const fn of(memory: Arc<PacketMemory>) -> Self {
        Self { memory, taken: 0 }
    }

    /// The memory.
    pub const fn memory(&self) -> &Arc<PacketMemory> {
        &self.memory
    }

    /// Sets the current usage of the queues. Returns the limit of each of them from now on, bytes.
    pub fn set(&mut self, cost: u64) -> u64 {
        if cost != self.taken {
            // Wraps around if it is less than before.
            self.memory.used.fetch_add(cost.wrapping_sub(self.taken), Ordering::Relaxed);
            self.taken = cost;
        }
        self.memory.left()
    }
}

impl Drop for QueueShare {
    fn drop(&mut self) {
        self.memory.give_back(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lanes that fill their queues, one packet of 1 kB at a time. Returns what each has in the end.
    fn fill(memory: &Arc<PacketMemory>, lanes: usize) -> Vec<u64> {
        let mut shares: Vec<_> = (0..lanes).map(|_| QueueShare::of(memory.clone())).collect();
        let mut held = vec![0; lanes];
        for _ in 0..2000 {
            for (share, held) in shares.iter_mut().zip(&mut held) {
                if *held < share.set(*held) {
                    *held += 1000;
                }
            }
        }
        for (share, held) in shares.iter_mut().zip(&held) {
            share.set(*held);
        }
        assert_eq!(memory.used(), held.iter().sum::<u64>());
        held
    }

    #[test]
    fn lanes_with_long_queues_have_equal_parts_and_leave_one_free() {
        let memory = Arc::new(PacketMemory::new(1_000_000));
        for lanes in [1, 4, 19] {
            let held = fill(&memory, lanes);
            let part = 1_000_000 / (lanes as u64 + 1);
            assert!(held.iter().all(|held| held.abs_diff(part) <= 2000), "{held:?}");
            assert_eq!(memory.used(), 0, "lanes that end give back what they had");
        }
    }

    #[test]
    fn what_is_not_left_is_not_taken_and_a_lower_limit_leaves_nothing() {
        let memory = PacketMemory::new(1000);
        assert!(memory.take(600) && !memory.take(401) && memory.take(400));
        memory.set_limit(500);
        assert_eq!((memory.used(), memory.left()), (1000, 0));
        memory.give_back(600);
        assert!(memory.take(100) && !memory.take(1));
        assert!(PacketMemory::default().take(u64::MAX / 2));
    }
}
