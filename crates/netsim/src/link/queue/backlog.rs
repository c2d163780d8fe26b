//! The queue before a shaper whose schedule is known in advance. It stores no packets, only the times at which
//! their transmissions begin.

use std::collections::VecDeque;

use ropewalk_base::{Duration, Time};

use crate::link::shaper::Service;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    service: Service,
    size: u32,
}

/// Pending transmissions, and totals over past ones.
#[derive(Clone, Debug, Default)]
pub(in crate::link) struct Backlog {
    waiting: VecDeque<Waiting>,
    bytes: u64,
    /// The last transmission that has begun.
    current: Option<Waiting>,
    totals: Totals,
}

/// Sums over all accepted packets, those with pending transmission included.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    wait_nanos: u128,
    wait_byte_nanos: u128,
    service_nanos: u128,
    bytes: u64,
}

/// Totals up to one instant.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::link) struct Snapshot {
    pub(in crate::link) waiting: u64,
    pub(in crate::link) waiting_bytes: u64,
    /// Packet-nanoseconds of waiting.
    pub(in crate::link) wait_nanos: u128,
    /// Byte-nanoseconds of waiting.
    pub(in crate::link) wait_byte_nanos: u128,
    pub(in crate::link) busy: Duration,
    pub(in crate::link) sent_bytes: u64,
}

impl Backlog {
    /// Removes packets whose transmission has begun by `now`.
    #[inline]
    pub(in crate::link) fn advance(&mut self, now: Time) {
        while let Some(head) = self.waiting.front().copied() {
            if head.service.start > now {
                break;
            }
            self.waiting.pop_front();
            self.bytes -= u64::from(head.size);
            self.current = Some(head);
        }
    }

    /// The time since which the link has been idle, if it is at `now`. Call [`Self::advance`] before.
    pub(in crate::link) fn idle_since(&self, now: Time) -> Option<Time> {
        if !self.waiting.is_empty() {
            return None;
        }
        let last = self.current.map_or(Time::ZERO, |current| current.service.depart);
        (last <= now).then_some(last)
    }

    #[inline]
    pub(in crate::link) fn packets(&self) -> usize {
        self.waiting.len()
    }

    #[inline]
    pub(in crate::link) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a packet that was offered at `now` and has the transmission `service`.
    #[inline]
    pub(in crate::link) fn push(&mut self, now: Time, service: Service, size: u32) {
        let waiting = Waiting { service, size };
        self.totals.bytes += u64::from(size);
        self.totals.service_nanos += u128::from(waiting.nanos());
        if service.start <= now {
            self.current = Some(waiting);
            return;
        }
        let wait = u128::from(service.start.since(now).as_nanos());
        self.totals.wait_nanos += wait;
        self.totals.wait_byte_nanos += wait * u128::from(size);
        self.bytes += u64::from(size);
        self.waiting.push_back(waiting);
    }

    /// The part of the totals up to `now`. The sums themselves include pending transmissions.
    pub(in crate::link) fn snapshot(&self, now: Time) -> Snapshot {
        let mut ahead = Totals::default();
        let (mut waiting, mut waiting_bytes) = (0, 0);
        for entry in self.current.iter().chain(&self.waiting) {
            let Service { start, depart } = entry.service;
            let wait = u128::from(start.since(now).as_nanos());
            ahead.wait_nanos += wait;
            ahead.wait_byte_nanos += wait * u128::from(entry.size);
            ahead.service_nanos += u128::from(depart.since(start.max(now)).as_nanos());
            ahead.bytes += if depart > now { u64::from(entry.size) } else { 0 };
            waiting += u64::from(start > now);
            waiting_bytes += if start > now { u64::from(entry.size) } else { 0 };
        }
        Snapshot {
            waiting,
            waiting_bytes,
            wait_nanos: self.totals.wait_nanos - ahead.wait_nanos,
            wait_byte_nanos: self.totals.wait_byte_nanos - ahead.wait_byte_nanos,
            busy: Duration::from_nanos((self.totals.service_nanos - ahead.service_nanos) as u64),
            sent_bytes: self.totals.bytes - ahead.bytes,
        }
    }
}

impl Waiting {
    fn nanos(&self) -> u64 {
        self.service.depart.since(self.service.start).as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_counts_only_what_has_happened() {
        let at = Time::from_millis;
        let mut backlog = Backlog::default();
        for (start, depart) in [(0, 10), (10, 20), (20, 30)] {
            backlog.push(at(0), Service { start: at(start), depart: at(depart) }, 100);
        }
        // Instant; waiting; packet-milliseconds waited; busy; bytes sent.
        for (ms, waiting, waited, busy, sent) in [
            (0, 2, 0, 0, 0),
            (5, 2, 10, 5, 0),
            (10, 1, 20, 10, 100),
            (25, 0, 30, 25, 200),
            (40, 0, 30, 30, 300),
        ] {
            let snapshot = backlog.snapshot(at(ms));
            assert_eq!(snapshot.waiting, waiting, "at {ms} ms");
            assert_eq!(snapshot.waiting_bytes, 100 * waiting, "at {ms} ms");
            assert_eq!(snapshot.wait_nanos, waited * 1_000_000, "at {ms} ms");
            assert_eq!(snapshot.wait_byte_nanos, waited * 100_000_000, "at {ms} ms");
            assert_eq!(snapshot.busy, Duration::from_millis(busy), "at {ms} ms");
            assert_eq!(snapshot.sent_bytes, sent, "at {ms} ms");
        }
        backlog.advance(at(10));
        assert_eq!((backlog.packets(), backlog.bytes()), (1, 100));
    }

    #[test]
    fn a_packet_that_is_never_served_waits_all_the_time() {
        let mut backlog = Backlog::default();
        let never = Service { start: Time::FAR_FUTURE, depart: Time::FAR_FUTURE };
        backlog.push(Time::ZERO, never, 100);
        let snapshot = backlog.snapshot(Time::from_millis(7));
        assert_eq!((snapshot.waiting, snapshot.wait_nanos), (1, 7_000_000));
        assert_eq!(snapshot.sent_bytes, 0);
    }
}
