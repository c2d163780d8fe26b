//! Correlated loss within a round: after the first lost packet of a round, the rest of the round is lost
//! (Padhye, Firoiu, Towsley and Kurose 1998, section II: the drop-tail assumption).

use std::collections::BTreeMap;

use ropewalk_base::Rng;

use super::{LossError, probability};

/// Loss with probability p until the first lost packet of a flow's round, then loss of every packet of that
/// round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    p: f64,
    /// For each flow, its latest round and whether that has lost a packet.
    rounds: BTreeMap<u32, (u64, bool)>,
}

impl Round {
    /// A model with probability `p` of a first loss.
    ///
    /// # Errors
    /// If `p` is not within 0 and 1.
    pub fn new(p: f64) -> Result<Self, LossError> {
        Ok(Self { p: probability("the loss rate", p)?, rounds: BTreeMap::new() })
    }

    pub(super) fn lost(&mut self, rng: &mut Rng, flow: u32, round: u64) -> bool {
        let (latest, lossy) = self.rounds.entry(flow).or_insert((round, false));
        if *latest != round {
            (*latest, *lossy) = (round, false);
        }
        // Draw only while the round has no loss, so that the random stream depends on first losses only.
        *lossy = *lossy || rng.chance(self.p);
        *lossy
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;

    #[test]
    fn within_a_round_losses_are_a_tail_and_tails_begin_with_probability_p() {
        let (p, length, rounds) = (0.02, 20, 100_000u64);
        let mut model = Round::new(p).expect("a probability");
        let mut rng = Seed::root(4).rng();
        let mut lossy = 0u64;
        for round in 0..rounds {
            let fates: Vec<bool> = (0..length).map(|_| model.lost(&mut rng, 1, round)).collect();
            assert!(fates.is_sorted(), "a packet came through after a loss: {fates:?}");
            lossy += u64::from(fates[length - 1]);
        }
        let expected = 1.0 - (1.0 - p).powi(length as i32);
        let deviation = (expected * (1.0 - expected) / rounds as f64).sqrt();
        let share = lossy as f64 / rounds as f64;
        assert!((share - expected).abs() < 4.0 * deviation, "{share} of rounds, not {expected}");
    }

    #[test]
    fn one_flow_s_bad_round_is_not_another_s() {
        let mut model = Round::new(0.5).expect("a probability");
        let mut rng = Seed::root(4).rng();
        while !model.lost(&mut rng, 1, 0) {}
        let other = (0..100).filter(|round| !model.lost(&mut rng, 2, *round)).count();
        assert!(other > 20, "only {other} of 100 packets of the other flow came through");
        assert!(model.lost(&mut rng, 1, 0), "the lossy round goes on");
    }
}
