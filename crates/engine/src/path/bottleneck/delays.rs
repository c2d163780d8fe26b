//! Mean delays of one path over intervals.

use super::STEP;

/// Number of intervals kept: those of a block, the earlier ones that it is compared with, and the later
/// ones that arrive before the comparison.
pub(super) const RING: u64 = 72;

/// Mean delays of a path, by the time of arrival and by the time of sending.
#[derive(Clone, Debug, Default)]
pub(super) struct Delays {
    pub by_arrival: Ring,
    pub by_departure: Ring,
}

/// The delay in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    /// Its number.
    at: u64,
    /// Number of delays in it, 0 if it does not count.
    count: u32,
    /// Their mean, nanoseconds above the first delay of the path. Accurate to 64 ns for one second, which
    /// suffices.
    mean: f32,
    /// Whether a delay in it did not count.
    spoilt: bool,
}

/// The latest intervals of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    /// Empty before the first delay; then [`RING`] intervals, by their numbers modulo [`RING`].
    intervals: Vec<Interval>,
    /// The first delay, which all others are relative to.
    origin: i64,
}

impl Ring {
    /// Adds a delay in interval `at`, nanoseconds. An interval with an unusable delay does not count.
    pub fn add(&mut self, at: u64, delay: i64, usable: bool) {
        if self.intervals.is_empty() {
            self.intervals.resize(RING as usize, Interval::default());
            self.origin = delay;
        }
        let interval = &mut self.intervals[(at % RING) as usize];
        if interval.at != at {
            *interval = Interval { at, ..Interval::default() };
        }
        interval.spoilt |= !usable;
        interval.count = interval.count.saturating_add(1);
        let above = delay.wrapping_sub(self.origin) as f32;
        interval.mean += (above - interval.mean) / interval.count as f32;
    }

    /// Whether packets arrived in interval `at`, but do not count.
    pub fn is_spoilt(&self, at: u64) -> bool {
        let interval = self.intervals.get((at % RING) as usize);
        interval.is_some_and(|interval| interval.at == at && interval.spoilt)
    }

    /// Change of the delay within [`STEP`] intervals, up to interval `at`, nanoseconds.
    pub fn change(&self, at: u64) -> Option<f64> {
        Some(self.mean(at)? - self.mean(at.checked_sub(STEP)?)?)
    }

    /// The mean delay in interval `at`, `None` without valid measurements.
    fn mean(&self, at: u64) -> Option<f64> {
        let interval = self.intervals.get((at % RING) as usize)?;
        (interval.at == at && interval.count > 0 && !interval.spoilt)
            .then_some(f64::from(interval.mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_the_mean_of_their_delays_until_the_ring_comes_round() {
        let mut ring = Ring::default();
        // Clocks that differ by years.
        let offset = -1_700_000_000_000_000_000;
        for (at, delay, usable) in
            [(0, 0, true), (7, 1000, true), (7, 3000, true), (8, 500, true), (8, 500, false)]
        {
            ring.add(at, offset + delay, usable);
        }
        assert_eq!([0, 7, 8, 9].map(|at| ring.mean(at)), [Some(0.0), Some(2000.0), None, None]);
        assert_eq!([0, 7, 8, 9].map(|at| ring.is_spoilt(at)), [false, false, true, false]);
        ring.add(7 + RING, offset, true);
        assert_eq!([7, 7 + RING].map(|at| ring.mean(at)), [None, Some(0.0)]);
    }
}
