//! Delivery rate of a path, sampled per acknowledgement (draft-cheng-iccrg-delivery-rate-estimation).

use ropewalk_base::{Duration, Rate, Time};

/// State of the estimator when a packet was sent; kept with the packet until it is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSnapshot {
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    limited: bool,
}

impl RateSnapshot {
    /// Bytes that had been delivered at that time.
    #[inline]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether the application or the receive window, not the path, was the limit at that time.
    #[inline]
    pub const fn is_limited(&self) -> bool {
        self.limited
    }
}

/// Rounds over which the largest sample counts: long enough to bridge a pause, short enough to forget an
/// outdated rate.
const FILTER_ROUNDS: u64 = 10;

/// Maximum delivery rate of the last rounds.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// Current and previous half of the filter window: (largest sample, round it began in).
    best: u64,
    best_before: u64,
    half_began: u64,
    round: u64,
    round_ends_at_delivered: u64,
    /// Share of recent samples in which the path, not the sender, was the limit; EWMA 1/16.
    confidence: f64,
    sampled_at: Time,
}

impl DeliveryRate {
    /// The state to keep with a packet that is sent now. `idle`: nothing was in flight before it. `limited`:
    /// the application or the receive window kept the path from being full.
    #[inline]
    pub fn on_sent(&mut self, now: Time, idle: bool, limited: bool) -> RateSnapshot {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        RateSnapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            limited,
        }
    }

    /// Counts `bytes` as delivered.
    #[inline]
    pub fn on_delivered(&mut self, now: Time, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
    }

    /// Takes a sample from the newest packet that an acknowledgement covers, and returns it, `None` if no
    /// time has passed.
    pub fn sample(&mut self, now: Time, sent_at: Time, snapshot: &RateSnapshot) -> Option<Rate> {
        self.first_sent_at = sent_at;
        let bytes = self.delivered - snapshot.delivered;
        let sending = sent_at.since(snapshot.first_sent_at);
        let acking = now.since(snapshot.delivered_at);
        let took = sending.max(acking);
        if took.is_zero() || bytes == 0 {
            return None;
        }
        // Floating point is accurate enough for an estimate and much faster than a wide division.
        // Conversion from a signed integer takes one instruction, and these numbers are far below half of
        // the range.
        let bps = (bytes as i64 as f64 * 8e9 / took.as_nanos() as i64 as f64) as i64 as u64;
        if snapshot.delivered >= self.round_ends_at_delivered {
            self.round += 1;
            self.round_ends_at_delivered = self.delivered;
        }
        if self.round - self.half_began >= FILTER_ROUNDS / 2 {
            self.best_before = self.best;
            self.best = 0;
            self.half_began = self.round;
        }
        // A sample limited by the sender is only a lower bound of the path's rate.
        if !snapshot.limited || bps >= self.best.max(self.best_before) {
            self.best = self.best.max(bps);
        } else {
            self.best = self.best.max(self.best_before.min(bps));
        }
        let trust = if snapshot.limited { 0.0 } else { 1.0 };
        self.confidence += (trust - self.confidence) / 16.0;
        self.sampled_at = now;
        Some(Rate::from_bps(bps))
    }

    /// Resets the estimate when the path returns from failure: earlier rates are no longer relevant.
    pub const fn forget(&mut self) {
        self.best = 0;
        self.best_before = 0;
        self.confidence = 0.0;
    }

    /// Maximum recent delivery rate, `None` before the first sample.
    #[inline]
    pub fn rate(&self) -> Option<Rate> {
        let best = self.best.max(self.best_before);
        (best > 0).then_some(Rate::from_bps(best))
    }

    /// Share of recent samples in which the path, not the sender, was the limit, 0 to 1.
    #[inline]
    pub const fn confidence(&self) -> f64 {
        self.confidence
    }

    /// All bytes delivered so far.
    #[inline]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Time since the last sample.
    pub fn age(&self, now: Time) -> Duration {
        now.since(self.sampled_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of one packet of 1250 B per millisecond (10 Mbit/s), 20 ms round trip, window `window`.
    fn run(window: u64) -> Rate {
        let mut rate = DeliveryRate::default();
        let (mut link_free, mut flight) = (Time::ZERO, std::collections::VecDeque::new());
        let mut now = Time::ZERO;
        for _ in 0..2_000 {
            while (flight.len() as u64) < window {
                let snapshot = rate.on_sent(now, flight.is_empty(), false);
                link_free = link_free.max(now) + Duration::from_millis(1);
                flight.push_back((now, snapshot, link_free + Duration::from_millis(19)));
            }
            let (sent_at, snapshot, acked_at) = flight.pop_front().unwrap();
            now = acked_at;
            rate.on_delivered(now, 1250);
            rate.sample(now, sent_at, &snapshot);
        }
        rate.rate().unwrap()
    }

    #[test]
    fn a_full_pipe_shows_the_rate_of_the_link_and_a_small_window_its_own() {
        for (window, bps) in [(40, 10_000_000.0), (20, 10_000_000.0), (5, 2_500_000.0)] {
            let measured = run(window).as_bps() as f64;
            assert!((measured / bps - 1.0).abs() < 0.06, "window {window}: {measured}");
        }
    }
}
