//! Bursty loss: a good and a bad state (Gilbert 1960; Elliott 1963).

use ropewalk_base::Rng;

use super::{LossError, probability};

/// A two-state chain that takes one step per packet. It begins in the good state.
///
/// The chain is in the bad state for a share of p / (p + r) of the packets, 1 / r packets at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct GilbertElliott {
    /// From good to bad, and from bad to good.
    leave: [f64; 2],
    loss: [f64; 2],
    /// 0 good, 1 bad.
    state: usize,
}

impl GilbertElliott {
    /// Transition probabilities per packet: `p` from good to bad, `r` back. Loss probabilities: `loss_good` and
    /// `loss_bad`. Gilbert's original model has `loss_good` = 0.
    ///
    /// # Errors
    /// If one of them is not within 0 and 1.
    pub fn new(p: f64, r: f64, loss_good: f64, loss_bad: f64) -> Result<Self, LossError> {
        let leave = [
            probability("the probability to turn bad", p)?,
            probability("the probability to turn good", r)?,
        ];
        let loss = [
            probability("the loss rate in the good state", loss_good)?,
            probability("the loss rate in the bad state", loss_bad)?,
        ];
        Ok(Self { leave, loss, state: 0 })
    }

    #[inline]
    pub(super) fn lost(&mut self, rng: &mut Rng) -> bool {
        if rng.chance(self.leave[self.state]) {
            self.state ^= 1;
        }
        rng.chance(self.loss[self.state])
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;

    #[test]
    fn bursts_have_the_length_and_the_share_of_the_closed_form() {
        let mut rng = Seed::root(8).rng();
        let (p, r) = (0.01, 0.25);
        let mut model = GilbertElliott::new(p, r, 0.0, 1.0).expect("probabilities");
        let (mut lost, mut bursts, mut before) = (0u64, 0u64, false);
        let n = 2_000_000;
        for _ in 0..n {
            let now = model.lost(&mut rng);
            lost += u64::from(now);
            bursts += u64::from(now && !before);
            before = now;
        }
        // A burst is geometric with mean 1/r and deviation sqrt(1-r)/r; some 77 000 of them are seen.
        let length = lost as f64 / bursts as f64;
        let deviation = (1.0 - r).sqrt() / r / (bursts as f64).sqrt();
        assert!((length - 1.0 / r).abs() < 4.0 * deviation, "{length} packets per burst");
        let share = lost as f64 / f64::from(n);
        // The share's variance is that of independent draws times (1 + c) / (1 - c), c = 1 - p - r.
        let expected = p / (p + r);
        let c = 1.0 - p - r;
        let variance = expected * (1.0 - expected) * (1.0 + c) / (1.0 - c) / f64::from(n);
        assert!((share - expected).abs() < 4.0 * variance.sqrt(), "{share} of all lost");
    }
}
