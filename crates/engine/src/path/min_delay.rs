//! The minimum of a smoothed delay: the delay of the path without queueing.

use ropewalk_base::{Duration, Rate, Time};

/// Time without a value near the minimum after which the path may have become longer.
const WINDOW: Duration = Duration::from_secs(5);
/// Queueing that a sender causes by sending more than the BDP, as a share of the delay without queueing.
const BEYOND_BDP: f64 = 0.375;

/// Minimum smoothed delay, nanoseconds from any origin: since the path last changed, and within the
/// current window. The values are smoothed, because with several paths a SACK may occasionally return on
/// a faster path, and a single sample is then shorter than the path's own round trip.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinDelayFilter {
    least: Option<i64>,
    recent: Option<i64>,
    began: Time,
}

impl MinDelayFilter {
    /// Takes a smoothed value.
    #[inline]
    pub fn sample(&mut self, nanos: i64) {
        self.least = Some(self.least.map_or(nanos, |least| least.min(nanos)));
        self.recent = Some(self.recent.map_or(nanos, |recent| recent.min(nanos)));
    }

    /// The minimum.
    #[inline]
    pub const fn least(&self) -> Option<i64> {
        self.least
    }

    /// Raises the minimum if all values of a window exceeded it by more than `explained`, the delay
    /// explained by our own queueing: the path has then become longer. Called at every acknowledgement;
    /// decides, and computes `explained`, only once per window.
    #[inline]
    pub fn reconsider(&mut self, now: Time, explained: impl FnOnce() -> Option<Duration>) {
        if now.since(self.began) >= WINDOW
            && let Some(explained) = explained()
        {
            self.renew(now, explained);
        }
    }

    fn renew(&mut self, now: Time, explained: Duration) {
        if let (Some(least), Some(recent)) = (self.least, self.recent)
            && recent.saturating_sub(least) > explained.as_nanos() as i64
        {
            self.least = Some(recent);
        }
        self.recent = None;
        self.began = now;
    }
}

/// The queueing delay that our own data may explain, on a path whose delay without queueing is `least`:
/// the data sent beyond the BDP to find a growing rate, and four chunks. A larger delay means that the
/// path itself has become longer.
pub fn explained_queueing(least: Duration, rate: Rate, chunk: u64) -> Duration {
    least.mul_f64(BEYOND_BDP) + rate.time_for(4 * chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_rises_only_when_queueing_does_not_explain_it() {
        for (explained, expected) in [(230, 20), (80, 200)] {
            let mut floor = MinDelayFilter::default();
            for (second, millis) in [(0, 20), (5, 200), (10, 200), (15, 210)] {
                let explained = || Some(Duration::from_millis(explained));
                floor.reconsider(Time::from_secs(second), explained);
                floor.sample(millis * 1_000_000);
            }
            assert_eq!(floor.least(), Some(expected * 1_000_000), "explained: {explained} ms");
        }
    }
}
