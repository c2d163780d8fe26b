//! Filter of the round trip without queueing, which determines the bandwidth-delay product of a path.

use ropewalk_base::Time;

use super::nanos;

/// Recent maximum of the round trip without queueing.
///
/// If acknowledgements return on several paths, the measured value varies within a round trip: the round
/// trip and the queueing delay are means over different packets. A limit that follows each decrease
/// leaves the path half empty. The measured rate then decreases as well, and the limit never recovers.
/// The filter therefore returns the maximum of about one round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BdpFilter {
    longest: f64,
    looked: Time,
}

impl BdpFilter {
    /// Processes the current measurement and the round trip with queueing. Returns the filtered value in
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
        // A short decrease has little effect,
        assert!(at(1_003, 12e6) > 19e6);
        // a lasting decrease has a full effect.
        let later: Vec<f64> = (1_004..1_080).map(|ms| at(ms, 12e6)).collect();
        assert!(later.is_sorted_by(|a, b| a >= b));
        assert!((12e6..12.5e6).contains(&later[75]), "{}", later[75]);
        assert_eq!(at(2_000, 10e6), 10e6, "not looked at for long");
    }
}
