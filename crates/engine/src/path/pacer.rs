//! Pacing: spreads a window over a round trip instead of sending it in one burst.

use ropewalk_base::{Duration, Rate, Time};

/// Settings of pacing.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pacing {
    /// Windows per smoothed round trip in slow start (2): the window doubles per round trip.
    pub gain_in_slow_start: f64,
    /// Windows per smoothed round trip after slow start (1.25). With at most 1, a window would never be
    /// full and thus never grow.
    pub gain: f64,
    /// Packets that may always be sent together (10, as many as an initial window: RFC 6928).
    pub burst_packets: u64,
    /// Time whose amount of data at the paced rate may be sent together (2 ms). A timer for each packet
    /// would cost more than it reduces queues.
    pub burst_time: Duration,
}

impl Default for Pacing {
    fn default() -> Self {
        Self {
            gain_in_slow_start: 2.0,
            gain: 1.25,
            burst_packets: 10,
            burst_time: Duration::from_millis(2),
        }
    }
}

/// Pacing parameters of a congestion control that paces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// The rate.
    pub rate: Rate,
    /// Maximum number of bytes that may be sent together.
    pub burst: u64,
}

/// A token bucket that fills at the paced rate. Its depth is the burst.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// Bytes that may be sent at `at`; negative if more were sent.
    tokens: f64,
    at: Time,
    /// Bytes per nanosecond; 0 while unknown, which disables pacing.
    rate: f64,
    depth: f64,
}

impl Pacer {
    /// Sets the rate after a change of the window or the round trip. Packets have up to `full` bytes.
    pub fn set(&mut self, now: Time, pacing: &Pacing, shape: Shape, full: u64) {
        let gain = if shape.slow_start { pacing.gain_in_slow_start } else { pacing.gain };
        let trip = shape.srtt.as_nanos().max(1) as f64;
        let rate = gain * shape.window as f64 / trip;
        let burst = (pacing.burst_packets * full) as f64;
        self.fill_at(now, rate, burst.max(rate * pacing.burst_time.as_nanos() as f64));
    }

    /// Sets the rate of a congestion control that paces. `burst_time`: time whose data may be sent
    /// together even beyond the burst, because timers are not finer.
    pub fn obey(&mut self, now: Time, pace: Pace, burst_time: Duration) {
        let rate = pace.rate.as_bps() as f64 / 8e9;
        let timed = rate * burst_time.as_nanos() as f64;
        self.fill_at(now, rate, timed.max(pace.burst as f64));
    }

    fn fill_at(&mut self, now: Time, rate: f64, depth: f64) {
        let fresh = self.rate == 0.0;
        (self.tokens, self.at) = (self.level(now), now);
        (self.rate, self.depth) = (rate, depth);
        self.tokens = if fresh { depth } else { self.tokens.min(depth) };
    }

    /// Whether a rate is set.
    #[inline]
    pub const fn is_on(&self) -> bool {
        self.rate > 0.0
    }

    /// Bytes that may be sent now.
    #[inline]
    pub fn room(&self, now: Time) -> u64 {
        if self.rate == 0.0 {
            return u64::MAX;
        }
        self.level(now).max(0.0) as u64
    }

    fn level(&self, now: Time) -> f64 {
        let lasted = now.since(self.at).as_nanos() as f64;
        (self.tokens + self.rate * lasted).min(self.depth)
    }

    /// Records that `bytes` bytes were sent.
    pub fn on_sent(&mut self, bytes: u64) {
        if self.rate > 0.0 {
            self.tokens -= bytes as f64;
        }
    }

    /// When half of a burst may be sent, if less may be sent now. A wake-up for each packet would cost
    /// more.
    pub fn ready_at(&self, full: u64) -> Option<Time> {
        let wanted = (self.depth / 2.0).max(full as f64);
        let missing = wanted - self.tokens;
        let paced = self.rate > 0.0 && missing > 0.0;
        paced.then(|| self.at + Duration::from_nanos((missing / self.rate).ceil() as u64))
    }
}

/// Parameters that determine the rate.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Congestion window, bytes.
    pub window: u64,
    /// Smoothed round trip.
    pub srtt: Duration,
    /// Whether the window is below the threshold.
    pub slow_start: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(window: u64, millis: u64) -> Shape {
        Shape { window, srtt: Duration::from_millis(millis), slow_start: false }
    }

    #[test]
    fn a_window_leaves_over_less_than_a_round_trip_in_bursts() {
        let pacing = Pacing::default();
        let mut pacer = Pacer::default();
        assert_eq!(pacer.room(Time::ZERO), u64::MAX, "nothing is known yet");
        // 100 packets of 1000 bytes per 100 ms: 1.25 bytes per microsecond.
        let mut now = Time::from_secs(1);
        pacer.set(now, &pacing, shape(100_000, 100), 1000);
        let (mut sent, begin) = (0, now);
        while sent < 100 {
            while pacer.room(now) >= 1000 {
                pacer.on_sent(1000);
                sent += 1;
            }
            now = pacer.ready_at(1000).expect("it holds something back");
        }
        let took = now.since(begin);
        assert!(took > Duration::from_millis(70) && took <= Duration::from_millis(80), "{took:?}");
    }

    #[test]
    fn an_idle_path_gathers_one_burst_and_no_more() {
        let mut pacer = Pacer::default();
        pacer.set(Time::ZERO, &Pacing::default(), shape(1_000_000, 10), 1000);
        assert_eq!(pacer.room(Time::from_secs(9)), 250_000, "2 ms at 125 bytes per microsecond");
        pacer.set(Time::from_secs(9), &Pacing::default(), shape(10_000, 100), 1000);
        assert_eq!(pacer.room(Time::from_secs(20)), 10_000, "ten packets");
    }
}
