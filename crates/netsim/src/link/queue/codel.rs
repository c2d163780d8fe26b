//! CoDel, controlled delay (RFC 8289, sections 4 and 5).

use ropewalk_base::{Duration, Ecn, Time};

use super::Limit;
use super::fifo::{Dequeued, Fifo};
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

#[derive(Clone, Debug)]
pub(in crate::link) struct CoDelQueue<P> {
    codel: CoDel,
    fifo: Fifo<P>,
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
            fifo: Fifo::new(),
            first_above: None,
            dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
        }
    }

    pub(super) fn has_room(&self, size: u32) -> bool {
        self.codel.limit.admits(self.packets(), self.bytes(), size)
    }

    pub(super) fn push(&mut self, now: Time, packet: Packet<P>) {
        self.fifo.push(now, packet);
    }

    pub(super) const fn fifo(&self) -> &Fifo<P> {
        &self.fifo
    }

    pub(super) fn packets(&self) -> usize {
        self.fifo.packets()
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    pub(super) fn head_since(&self) -> Option<Time> {
        self.fifo.head_since()
    }

    pub(super) fn waited(&self, now: Time) -> (u128, u128) {
        self.fifo.waited(now)
    }

    /// The next packet to send at `now`: the RFC's `deque`, section 5.5.
    pub(super) fn pop(&mut self, now: Time) -> Dequeued<P> {
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
            Some(packet) if self.codel.ecn && packet.ecn.may_be_marked() => {
                packet.ecn = Ecn::Ce;
                out.marked = true;
                true
            }
            _ => false,
        }
    }

    /// The head, and whether the delay has been above the target for an interval: the RFC's `dodequeue`.
    fn take(&mut self, now: Time) -> (Option<Packet<P>>, bool) {
        let Some((packet, sojourn)) = self.fifo.pop(now) else {
            self.first_above = None;
            return (None, false);
        };
        if sojourn < self.codel.target || self.bytes() <= u64::from(self.codel.mtu) {
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
