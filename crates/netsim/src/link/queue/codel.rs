//! CoDel, controlled delay (RFC 8289, sections 4 and 5).

use std::collections::VecDeque;

use ropewalk_base::{Duration, Time};

use super::Limit;
use crate::packet::Packet;

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// Acceptable standing delay: 5 ms (section 4.2).
    pub target: Duration,
    /// About the round trip of those who use the link: 100 ms (section 4.2).
    pub interval: Duration,
    /// With so many bytes or fewer left in the queue, nothing is dropped: one full packet.
    pub mtu: u32,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// What the queue holds at most.
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

/// A packet and when it joined the queue.
#[derive(Clone, Debug)]
struct Waiting<P> {
    since: Time,
    packet: Packet<P>,
}

/// What left the queue: at most one packet to send, and those dropped on the way to it.
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
    /// Packet- and byte-nanoseconds waited by those that have left.
    waited: (u128, u128),
    /// When the delay, if it stays above the target, will have done so for an interval.
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

    pub(in crate::link) fn packets(&self) -> usize {
        self.waiting.len()
    }

    pub(in crate::link) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Since when the head has waited.
    pub(in crate::link) fn head_since(&self) -> Option<Time> {
        self.waiting.front().map(|head| head.since)
    }

    /// Packet- and byte-nanoseconds waited until `now`.
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
            // Section 5.5: after a recent dropping state, begin near the rate that controlled the queue.
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

    /// Marks the packet in place of dropping it, if that is allowed.
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

    /// Drops come closer with the square root of their number (section 3.3).
    fn control_law(&self, from: Time) -> Time {
        from + self.codel.interval.mul_f64(1.0 / f64::from(self.count).sqrt())
    }
}
