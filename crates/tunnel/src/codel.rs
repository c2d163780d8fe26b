//! CoDel on the queue of one flow (RFC 8289, 5).

use std::collections::VecDeque;

use ropewalk_base::{Duration, Time};

use crate::config::{CodelConfig, packet_cost};
use crate::tunnel::Ecn;

/// Nothing is dropped while the queue holds at most this many bytes: one full packet (RFC 8289, 5.3).
const FULL_PACKET: u64 = 1500;
/// Intervals without drops after which the drop rate of the last time is forgotten (RFC 8289, 5.5).
const MEMORY: u64 = 16;

/// A queued packet.
#[derive(Clone, Debug)]
pub(crate) struct Waiting<P> {
    pub since: Time,
    pub bytes: u32,
    pub ecn: Ecn,
    pub payload: P,
}

/// Result of a dequeue.
#[derive(Debug)]
pub(crate) struct Dequeued<P> {
    /// The packet to send.
    pub packet: Option<Waiting<P>>,
    /// Whether the packet gets a CE mark.
    pub marked: bool,
    /// Packets and bytes that were dropped before it.
    pub dropped: (u64, u64),
}

/// A first-in-first-out queue with the state of CoDel.
#[derive(Clone, Debug)]
pub(crate) struct Codel<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: u64,
    /// When dropping starts, if the delay stays above the target until then.
    first_above: Option<Time>,
    dropping: bool,
    drop_next: Time,
    count: u32,
    last_count: u32,
}

impl<P> Default for Codel<P> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            first_above: None,
            dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
        }
    }
}

impl<P> Codel<P> {
    pub fn push(&mut self, packet: Waiting<P>) {
        self.bytes += u64::from(packet.bytes);
        self.waiting.push_back(packet);
    }

    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Memory cost of the packets, bytes.
    pub fn cost(&self) -> u64 {
        self.bytes + packet_cost(0) * self.waiting.len() as u64
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Removes the head without checking its delay.
    pub fn drop_head(&mut self) -> Option<u32> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet.bytes)
    }

    /// RFC 8289, 5.4 `dodequeue`: the head, and whether it may be dropped.
    fn take(&mut self, now: Time, config: &CodelConfig) -> (Option<Waiting<P>>, bool) {
        let Some(packet) = self.waiting.pop_front() else {
            self.first_above = None;
            return (None, false);
        };
        self.bytes -= u64::from(packet.bytes);
        if now.since(packet.since) < config.target || self.bytes <= FULL_PACKET {
            self.first_above = None;
            return (Some(packet), false);
        }
        let begins = *self.first_above.get_or_insert(now + config.interval);
        (Some(packet), now >= begins)
    }

    /// RFC 8289, 5.5 `dequeue`, with marks instead of drops for packets that can carry them.
    pub fn pop(&mut self, now: Time, config: &CodelConfig) -> Dequeued<P> {
        let (packet, may_drop) = self.take(now, config);
        let mut out = Dequeued { packet, marked: false, dropped: (0, 0) };
        if self.dropping {
            if !may_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if self.punish(now, config, &mut out) {
                    self.drop_next = self.control_law(self.drop_next, config.interval);
                } else {
                    self.dropping = false;
                }
                if out.marked {
                    break;
                }
            }
        } else if may_drop {
            self.punish(now, config, &mut out);
            self.begin_dropping(now, config.interval);
        }
        out
    }

    /// Marks the packet in `out`, or drops it and takes the next. Returns whether dropping continues.
    fn punish(&mut self, now: Time, config: &CodelConfig, out: &mut Dequeued<P>) -> bool {
        let Some(packet) = &out.packet else { return false };
        if packet.ecn.is_capable() {
            out.marked = true;
            return true;
        }
        out.dropped.0 += 1;
        out.dropped.1 += u64::from(packet.bytes);
        let (next, may_drop) = self.take(now, config);
        out.packet = next;
        may_drop
    }

    fn begin_dropping(&mut self, now: Time, interval: Duration) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.since(self.drop_next) < interval * MEMORY;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now, interval);
    }

    fn control_law(&self, from: Time, interval: Duration) -> Time {
        let pause = interval.as_nanos() as f64 / f64::from(self.count.max(1)).sqrt();
        from + Duration::from_nanos(pause as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: CodelConfig =
        CodelConfig { target: Duration::from_millis(5), interval: Duration::from_millis(100) };

    /// Sends one packet per millisecond for two seconds from a queue of `length` packets. Returns marks
    /// and drops.
    fn run(length: u64, ecn: Ecn) -> (u64, u64) {
        let mut queue = Codel::default();
        let (mut marks, mut drops) = (0, 0);
        for ms in 0..2000 {
            let now = Time::from_millis(ms);
            while (queue.len() as u64) < length {
                queue.push(Waiting { since: now, bytes: 1000, ecn, payload: () });
            }
            let out = queue.pop(now, &CONFIG);
            assert!(out.packet.is_some(), "{length} packets are queued");
            marks += u64::from(out.marked);
            drops += out.dropped.0;
        }
        (marks, drops)
    }

    #[test]
    fn a_queue_below_the_target_is_left_alone_and_one_above_it_is_punished_more_and_more() {
        assert_eq!(run(5, Ecn::NotEct), (0, 0));
        let (marks, drops) = run(50, Ecn::NotEct);
        assert_eq!(marks, 0);
        // The n-th drop follows the one before after 100 ms / sqrt(n): 90 of them take 1.8 s.
        assert!((60..110).contains(&drops), "{drops}");
    }

    #[test]
    fn packets_that_can_carry_a_mark_are_not_dropped() {
        let (marks, drops) = run(50, Ecn::Ect0);
        assert_eq!(drops, 0);
        assert!((60..110).contains(&marks), "{marks}");
    }
}
