//! How long the pipe of a path is.

use ropewalk_base::Time;

use super::nanos;

/// The round trip without queueing that a path is filled for.
///
/// What is measured swings within a round trip where acknowledgements return by several paths: round
/// trip and queueing are means over different packets. Whoever follows each swing down leaves the pipe
/// half empty, is shown the rate of that, and fills it no more. So the longest of about a round trip
/// counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BdpFilter {
    longest: f64,
    looked: Time,
}

impl BdpFilter {
    /// Takes what is measured now beside a round trip with queueing, and gives what counts,
    /// nanoseconds.
    pub fn look(&mut self, now: Time, measured: f64, round_trip: f64) -> f64 {
        let part = (nanos(now.since(self.looked)) / round_trip).min(1.0);
        self.looked = now;
        self.longest = measured.max(self.longest + (measured - self.longest) * part);
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_one_counts_at_once_and_is_forgotten_within_some_round_trips() {
        let mut pipe = BdpFilter::default();
        let mut at = |ms: u64, measured: f64| pipe.look(Time::from_millis(ms), measured, 20e6);
        assert_eq!(at(1_000, 16e6), 16e6);
        assert_eq!(at(1_001, 20e6), 20e6);
        // A short swing down hardly counts,
        assert!(at(1_003, 12e6) > 19e6);
        // a lasting one does.
        let later: Vec<f64> = (1_004..1_080).map(|ms| at(ms, 12e6)).collect();
        assert!(later.is_sorted_by(|a, b| a >= b));
        assert!((12e6..12.5e6).contains(&later[75]), "{}", later[75]);
        assert_eq!(at(2_000, 10e6), 10e6, "not looked at for long");
    }
}
