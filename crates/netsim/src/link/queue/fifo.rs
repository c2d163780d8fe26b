//! A first-in first-out queue that knows how long its packets have waited, shared by CoDel and DualPI2.

use std::collections::VecDeque;

use ropewalk_base::{Duration, Time};

use crate::packet::Packet;

/// A packet with the time at which it joined the queue.
#[derive(Clone, Debug)]
struct Waiting<P> {
    since: Time,
    packet: Packet<P>,
}

/// Result of a dequeue: at most one packet to send, and the packets dropped before it.
#[derive(Debug)]
pub(in crate::link) struct Dequeued<P> {
    pub(in crate::link) packet: Option<Packet<P>>,
    pub(in crate::link) dropped: u64,
    pub(in crate::link) marked: bool,
}

/// Packets in order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Fifo<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
    /// Packet- and byte-nanoseconds of waiting of packets that have left.
    waited: (u128, u128),
}

impl<P> Fifo<P> {
    pub(super) const fn new() -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, waited: (0, 0) }
    }

    pub(super) fn push(&mut self, now: Time, packet: Packet<P>) {
        self.bytes += u64::from(packet.size);
        self.waiting.push_back(Waiting { since: now, packet });
    }

    /// Takes the head, with the time that it has waited until `now`.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Packet<P>, Duration)> {
        let Waiting { since, packet } = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.size);
        let sojourn = now.since(since);
        let wait = u128::from(sojourn.as_nanos());
        self.waited.0 += wait;
        self.waited.1 += wait * u128::from(packet.size);
        Some((packet, sojourn))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Packet<P>> {
        self.waiting.iter().map(|entry| &entry.packet)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn packets(&self) -> usize {
        self.waiting.len()
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The time at which the head joined the queue.
    pub(super) fn head_since(&self) -> Option<Time> {
        self.waiting.front().map(|head| head.since)
    }

    /// Size of the head, bytes; 0 without one.
    pub(super) fn head_size(&self) -> u32 {
        self.waiting.front().map_or(0, |head| head.packet.size)
    }

    /// Time that the head has waited until `now`; zero without one.
    pub(super) fn head_wait(&self, now: Time) -> Duration {
        self.head_since().map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Packet- and byte-nanoseconds of waiting until `now`.
    pub(super) fn waited(&self, now: Time) -> (u128, u128) {
        self.waiting.iter().fold(self.waited, |sum, entry| {
            let wait = u128::from(now.since(entry.since).as_nanos());
            (sum.0 + wait, sum.1 + wait * u128::from(entry.packet.size))
        })
    }
}
