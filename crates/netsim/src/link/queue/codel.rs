//! CoDel, controlled delay (RFC 8289, sections 4 and 5).

use std::collections::VecDeque;

use ropewalk_base::{Duration, Time};

use super::Limit;
use crate::packet::Packet;

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// Acceptable standing delay: 5 ms (RFC 8289, 4.2).
    pub target: Duration,
    /// Approximate round-trip time of the flows on the link: 100 ms (RFC 8289, 4.2).
    pub interval: Duration,
    /// Nothing is dropped while the queue holds at most this many bytes: one full packet.
    pub mtu: u32,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Capacity of the queue.
    pub limit: Limit,
}

impl Default for CoDel {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: 1500,
            ecn: false,
            limit: Limit::Unlimited,
        }
    }
}

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

#[derive(Clone, Debug)]
pub(in crate::link) struct CoDelQueue<P> {
    codel: CoDel,
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
    /// Packet- and byte-nanoseconds of waiting of packets that have left.
    waited: (u128, u128),
    /// End of the interval after which drops begin, if the delay stays above the target until then.
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    count: u32,
    last_count: u32,
}

impl<P> CoDelQueue<P> {
    pub(in crate::link) fn new(codel: CoDel) -> Self {
        Self {
            codel,
            waiting: VecDeque::new(),
            bytes: 0,
            waited: (0, 0),
            first_above: None,
            dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    pub(in crate::link) fn has_room(&self, size: u32) -> bool {
        self.codel.limit.admits(self.waiting.len(), self.bytes, size)
    }

    pub(in crate::link) fn push(&mut self, now: Time, packet: Packet<P>) {
        self.bytes += u64::from(packet.size);
        self.waiting.push_back(Waiting { since: now, packet });
    }

    pub(in crate::link) fn iter(&self) -> impl Iterator<Item = &Packet<P>> {
        self.waiting.iter().map(|entry| &entry.packet)
    }

    pub(in crate::link) fn packets(&self) -> usize {
        self.waiting.len()
    }

    pub(in crate::link) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The time at which the head joined the queue.
    pub(in crate::link) fn head_since(&self) -> Option<Time> {
        self.waiting.front().map(|head| head.since)
    }

    /// Packet- and byte-nanoseconds of waiting until `now`.
    pub(in crate::link) fn waited(&self, now: Time) -> (u128, u128) {
        self.waiting.iter().fold(self.waited, |sum, entry| {
            let wait = u128::from(now.since(entry.since).as_nanos());
            (sum.0 + wait, sum.1 + wait * u128::from(entry.packet.size))
        })
    }

    /// The next packet to send at `now`: the RFC's `deque`, section 5.5.
    pub(in crate::link) fn pop(&mut self, now: Time) -> Dequeued<P> {
        let (packet, may_drop) = self.take(now);
        let mut out = Dequeued { packet, dropped: 0, marked: false };
        if self.dropping {
            self.go_on_dropping(now, may_drop, &mut out);
        } else if may_drop {
            if !self.mark(&mut out) {
                out.dropped += 1;
                out.packet = self.take(now).0;
            }
            self.dropping = true;
            // Section 5.5: after a recent dropping state, start near the drop rate that controlled the queue.
            let delta = self.count.saturating_sub(self.last_count);
            let recent = now.since(self.drop_next) < self.codel.interval * 16;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        out
    }

    fn go_on_dropping(&mut self, now: Time, mut may_drop: bool, out: &mut Dequeued<P>) {
        while may_drop && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            if self.mark(out) {
                self.drop_next = self.control_law(self.drop_next);
                return;
            }
            out.dropped += 1;
            (out.packet, may_drop) = self.take(now);
            if may_drop {
                self.drop_next = self.control_law(self.drop_next);
            }
        }
        self.dropping = may_drop;
    }

    /// Marks the packet instead of dropping it, if permitted; returns whether it did.
    fn mark(&self, out: &mut Dequeued<P>) -> bool {
        match &mut out.packet {
            Some(packet) if self.codel.ecn && packet.ect => {
                packet.ce = true;
                out.marked = true;
                true
            }
            _ => false,
        }
    }

    /// The head, and whether the delay has been above the target for an interval: the RFC's `dodequeue`.
    fn take(&mut self, now: Time) -> (Option<Packet<P>>, bool) {
        let Some(Waiting { since, packet }) = self.waiting.pop_front() else {
            self.first_above = None;
            return (None, false);
        };
        self.bytes -= u64::from(packet.size);
        let sojourn = now.since(since);
        let wait = u128::from(sojourn.as_nanos());
        self.waited.0 += wait;
        self.waited.1 += wait * u128::from(packet.size);
        if sojourn < self.codel.target || self.bytes <= u64::from(self.codel.mtu) {
            self.first_above = None;
            return (Some(packet), false);
        }
        let first_above = *self.first_above.get_or_insert(now + self.codel.interval);
        (Some(packet), now >= first_above)
    }

    /// The interval between drops shrinks with the square root of their number (section 3.3).
    fn control_law(&self, from: Time) -> Time {
        from + self.codel.interval.mul_f64(1.0 / f64::from(self.count).sqrt())
    }
}
