//! What is measured of a flow at one of its ends.

use ropewalk_base::{Duration, Histogram, Time};

/// The last part of a run is left out of losses: its packets may still be on their way.
const TAIL: Duration = Duration::from_secs(1);

/// Measurements at the end where data arrives, and of what the other end sends.
#[derive(Clone, Debug)]
pub(super) struct FlowMeter {
    /// Packets that were sent from here on and before `until` count.
    from: Time,
    until: Time,
    /// User data that has arrived, bytes.
    pub bytes: u64,
    /// Packets with data that this end has sent and that have the time to arrive within the run.
    pub sent: u64,
    /// Packets with data that have arrived at this end, of those that the other end has counted as sent; replies, of the
    /// requests.
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

    /// Begins again at `now`, with what is sent later. A gap that has begun before is measured from now on.
    pub fn reset(&mut self, now: Time) {
        let (until, highest) = (self.until, self.highest);
        let last = self.last.map(|_| now);
        // What has been sent at this very time was counted before.
        let from = now + Duration::from_nanos(1);
        *self = Self { from, until, highest, last, ..Self::new(until) };
    }

    fn counts(&self, sent: Time) -> bool {
        (self.from..self.until).contains(&sent)
    }

    /// A packet is sent at `now`.
    pub fn on_sent(&mut self, now: Time) {
        self.sent += u64::from(self.counts(now));
    }

    /// A packet of `bytes` bytes that was sent at `sent` arrives.
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

    /// Ends at `now`: a gap that lasts counts up to here.
    pub fn finish(&mut self, now: Time) {
        if let Some(last) = self.last {
            self.longest_gap = self.longest_gap.max(now.since(last));
        }
    }
}
