//! Packets in flight, ordered by arrival time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ropewalk_base::Time;

use super::stats::DropCause;
use crate::packet::Packet;

/// Fate of a packet at the end of the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Delivered,
    Dropped(DropCause),
}

#[derive(Clone, Debug)]
pub(super) struct InFlightPacket<P> {
    pub(super) arrive: Time,
    pub(super) fate: Fate,
    pub(super) packet: Packet<P>,
}

/// Packets in flight on a link.
#[derive(Clone, Debug)]
pub(super) struct InFlight<P> {
    /// Arrival time of the next packet; cached because every event reads it.
    next: Time,
    store: Store<P>,
}

/// A queue suffices for packets in order; only a link that may reorder needs a heap.
#[derive(Clone, Debug)]
enum Store<P> {
    InOrder(VecDeque<InFlightPacket<P>>),
    AnyOrder { heap: BinaryHeap<Reverse<ByArrival<P>>>, sequence: u64 },
}

impl<P> InFlight<P> {
    pub(super) fn new(may_reorder: bool) -> Self {
        let store = if may_reorder {
            Store::AnyOrder { heap: BinaryHeap::new(), sequence: 0 }
        } else {
            Store::InOrder(VecDeque::new())
        };
        Self { next: Time::FAR_FUTURE, store }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, in_flight_packet: InFlightPacket<P>) {
        self.next = self.next.min(in_flight_packet.arrive);
        match &mut self.store {
            Store::InOrder(queue) => {
                debug_assert!(
                    queue.back().is_none_or(|last| last.arrive <= in_flight_packet.arrive)
                );
                queue.push_back(in_flight_packet);
            }
            Store::AnyOrder { heap, sequence } => {
                *sequence += 1;
                heap.push(Reverse(ByArrival { sequence: *sequence, in_flight_packet }));
            }
        }
    }

    /// Arrival time of the next packet; [`Time::FAR_FUTURE`] without one.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Takes the next packet if it has arrived by `now`.
    #[inline(always)]
    pub(super) fn pop(&mut self, now: Time) -> Option<InFlightPacket<P>> {
        if self.next > now {
            return None;
        }
        let popped = match &mut self.store {
            Store::InOrder(queue) => queue.pop_front(),
            Store::AnyOrder { heap, .. } => heap.pop().map(|Reverse(keyed)| keyed.in_flight_packet),
        };
        let head = match &self.store {
            Store::InOrder(queue) => queue.front(),
            Store::AnyOrder { heap, .. } => {
                heap.peek().map(|Reverse(keyed)| &keyed.in_flight_packet)
            }
        };
        self.next = head.map_or(Time::FAR_FUTURE, |in_flight_packet| in_flight_packet.arrive);
        popped
    }

    /// All packets, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &InFlightPacket<P>> {
        let (queue, heap) = match &self.store {
            Store::InOrder(queue) => (Some(queue), None),
            Store::AnyOrder { heap, .. } => (None, Some(heap)),
        };
        let of_heap = heap.into_iter().flatten().map(|Reverse(keyed)| &keyed.in_flight_packet);
        queue.into_iter().flatten().chain(of_heap)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        match &self.store {
            Store::InOrder(queue) => queue.len(),
            Store::AnyOrder { heap, .. } => heap.len(),
        }
    }
}

/// A packet ordered by its arrival, then by the order of sending.
#[derive(Clone, Debug)]
struct ByArrival<P> {
    sequence: u64,
    in_flight_packet: InFlightPacket<P>,
}

impl<P> ByArrival<P> {
    fn key(&self) -> (Time, u64) {
        (self.in_flight_packet.arrive, self.sequence)
    }
}

impl<P> PartialEq for ByArrival<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for ByArrival<P> {}

impl<P> PartialOrd for ByArrival<P> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for ByArrival<P> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
