//! Jitter: a random addition to the propagation delay.

use ropewalk_base::{Duration, Rng};

/// Distribution of the random addition. The resulting delay is never below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// Uniform between 0 and the given duration.
    Uniform(Duration),
    /// Normal with mean 0 and the given standard deviation; may shorten the delay.
    Normal(Duration),
    /// Exponential with the given mean.
    Exponential(Duration),
}

impl Jitter {
    /// The delay of the next packet on a link of `delay`.
    pub(super) fn apply(self, delay: Duration, rng: &mut Rng) -> Duration {
        match self {
            Self::Uniform(width) => {
                delay + Duration::from_nanos(rng.below(width.as_nanos().saturating_add(1)))
            }
            Self::Normal(deviation) => {
                let shift = deviation.as_nanos() as f64 * rng.normal();
                let by = Duration::from_nanos(shift.abs().round() as u64);
                if shift < 0.0 { delay.saturating_sub(by) } else { delay.saturating_add(by) }
            }
            Self::Exponential(mean) => {
                let extra = rng.exponential(mean.as_nanos() as f64).round() as u64;
                delay.saturating_add(Duration::from_nanos(extra))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;

    #[test]
    fn mean_and_deviation_are_those_of_the_distribution() {
        let unit = Duration::from_millis(6);
        // A uniform distribution of width w has standard deviation w / sqrt(12).
        for (jitter, mean, deviation) in [
            (Jitter::Uniform(unit), 3.0, 6.0 / 12f64.sqrt()),
            (Jitter::Normal(unit), 0.0, 6.0),
            (Jitter::Exponential(unit), 6.0, 6.0),
        ] {
            let mut rng = Seed::root(1).rng();
            let n = 100_000;
            let base = Duration::from_millis(100);
            let draws: Vec<f64> =
                (0..n).map(|_| (jitter.apply(base, &mut rng).as_secs_f64() - 0.1) * 1e3).collect();
            let got = draws.iter().sum::<f64>() / f64::from(n);
            let spread =
                (draws.iter().map(|x| (x - got).powi(2)).sum::<f64>() / f64::from(n)).sqrt();
            assert!((got - mean).abs() < 0.1, "{jitter:?}: mean {got} ms");
            assert!((spread - deviation).abs() < 0.1, "{jitter:?}: deviation {spread} ms");
        }
    }

    #[test]
    fn a_delay_never_goes_below_zero() {
        let mut rng = Seed::root(1).rng();
        let jitter = Jitter::Normal(Duration::from_millis(50));
        let none = (0..1000)
            .filter(|_| jitter.apply(Duration::from_millis(1), &mut rng).is_zero())
            .count();
        assert!((400..600).contains(&none), "{none} of 1000 delays were cut at zero");
    }
}
