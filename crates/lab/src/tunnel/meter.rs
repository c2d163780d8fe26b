//! Measurements of a flow at one of its ends.

use ropewalk_base::{Duration, Histogram, Time};

/// Final part of a run that is excluded from losses, because its packets may still be in flight.
const TAIL: Duration = Duration::from_secs(1);

/// Measurements at the end where data arrives, and of the packets that the other end sends.
#[derive(Clone, Debug)]
pub(super) struct FlowMeter {
    /// Packets that were sent from `from` on and before `until` count.
    from: Time,
    until: Time,
    /// User data that has arrived, bytes.
    pub bytes: u64,
    /// Packets with data that this end has sent early enough to arrive within the run.
    pub sent: u64,
    /// Packets with data that have arrived at this end, among those that the other end has counted as sent. For
    /// requests, the replies.
    pub arrived: u64,
    /// Times from sending to arrival, of packets, queries or echoes.
    pub delays: Histogram,
    /// Packets that arrived after a later one.
    pub out_of_order: u64,
    highest: u64,
    last: Option<Time>,
    /// The longest time between two arrivals.
    pub longest_gap: Duration,
}

impl FlowMeter {
    /// A meter for a run that ends at `end`.
    pub fn new(end: Time) -> Self {
        Self {
            from: Time::ZERO,
            until: end.saturating_sub(TAIL),
            bytes: 0,
            sent: 0,
            arrived: 0,
            delays: Histogram::new(),
            out_of_order: 0,
            highest: 0,
            last: None,
            longest_gap: Duration::ZERO,
        }
    }

    /// Restarts at `now` for packets sent later. A gap that has already begun is measured from now on.
    pub fn reset(&mut self, now: Time) {
        let (until, highest) = (self.until, self.highest);
        let last = self.last.map(|_| now);
        // Packets sent at exactly this time have already been counted.
        let from = now + Duration::from_nanos(1);
        *self = Self { from, until, highest, last, ..Self::new(until) };
    }

    fn counts(&self, sent: Time) -> bool {
        (self.from..self.until).contains(&sent)
    }

    /// Called when a packet is sent at `now`.
    pub fn on_sent(&mut self, now: Time) {
        self.sent += u64::from(self.counts(now));
    }

    /// Called when a packet of `bytes` bytes that was sent at `sent` arrives.
    pub fn on_arrival(&mut self, now: Time, sent: Time, number: u64, bytes: u32) {
        self.bytes += u64::from(bytes);
        if let Some(last) = self.last.replace(now) {
            self.longest_gap = self.longest_gap.max(now.since(last));
        }
        if self.counts(sent) {
            self.arrived += 1;
            self.delays.add(now.since(sent).as_nanos());
            self.out_of_order += u64::from(number < self.highest);
        }
        self.highest = self.highest.max(number);
    }

    /// Ends the measurement at `now`, which also ends an open gap.
    pub fn finish(&mut self, now: Time) {
        if let Some(last) = self.last {
            self.longest_gap = self.longest_gap.max(now.since(last));
        }
    }
}
