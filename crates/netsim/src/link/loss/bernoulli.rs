//! Independent loss.

use ropewalk_base::Rng;

use super::{LossError, probability};

/// Independent loss of each packet with the same probability.
#[derive(Clone, Debug, PartialEq)]
pub struct Bernoulli {
    p: f64,
}

impl Bernoulli {
    /// Loss with probability `p`.
    ///
    /// # Errors
    /// If `p` is not within 0 and 1.
    pub fn new(p: f64) -> Result<Self, LossError> {
        Ok(Self { p: probability("the loss rate", p)? })
    }

    #[inline]
    pub(super) fn lost(&mut self, rng: &mut Rng) -> bool {
        rng.chance(self.p)
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;

    #[test]
    fn the_loss_rate_lies_within_its_confidence_interval() {
        let mut rng = Seed::root(5).rng();
        let n = 1_000_000;
        for p in [0.0, 1e-3, 0.02, 0.5, 1.0] {
            let mut model = Bernoulli::new(p).expect("a probability");
            let lost = (0..n).filter(|_| model.lost(&mut rng)).count() as f64;
            // Four standard deviations of a binomial distribution: exceeded with probability 1/16 000, and the
            // seed is fixed.
            let bound = 4.0 * (f64::from(n) * p * (1.0 - p)).sqrt();
            assert!((lost - f64::from(n) * p).abs() <= bound, "{lost} lost at {p}");
        }
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        for p in [-0.1, 1.5, f64::NAN, f64::INFINITY] {
            let error = Bernoulli::new(p).expect_err("not a probability");
            assert!(error.to_string().contains(&p.to_string()), "{error}");
        }
    }
}
