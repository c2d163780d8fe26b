//! Bursts of acknowledgements that the sender discards: a defect of the model's F-RTO.

use ropewalk_base::{PathId, Rng};

use super::{AckBurstLoss, Quirks};

/// Progress of the current burst of each subflow.
#[derive(Clone, Debug)]
pub struct AckLossBursts {
    /// Probability, per subflow, that an acknowledgement begins a burst.
    chances: Vec<f64>,
    /// Acknowledgements counted since the burst began, `None` outside a burst.
    counted: Vec<Option<u64>>,
    rng: Rng,
}

impl AckLossBursts {
    /// Starts without a burst.
    pub fn new(quirks: Quirks, subflows: usize, mut rng: Rng) -> Self {
        let chances = match quirks.ack_burst_loss {
            AckBurstLoss::Fixed(chance) => vec![chance; subflows],
            AckBurstLoss::Drawn { max } => (0..subflows).map(|_| max * rng.unit()).collect(),
        };
        Self { chances, counted: vec![None; subflows], rng }
    }

    /// Whether the acknowledgement that arrived on `path` is discarded.
    ///
    /// `window` is the congestion window in segments, with its fraction. The acknowledgement that begins
    /// a burst is processed. The following ones are discarded while their count is below the window. A
    /// window of 10.5 has ten segments in flight, and the burst discards the acknowledgements of all ten:
    /// no later one repairs the loss, and the timer expires. A window of exactly ten loses nine.
    pub fn throws_away(&mut self, path: PathId, window: f64) -> bool {
        let chance = self.chances[path.index()];
        if chance <= 0.0 {
            return false;
        }
        let counted = &mut self.counted[path.index()];
        match counted {
            None => {
                *counted = self.rng.chance(chance).then_some(0);
                false
            }
            Some(count) if ((*count + 1) as f64) < window => {
                *count += 1;
                true
            }
            Some(_) => {
                *counted = None;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;

    fn bursts(ack_burst_loss: AckBurstLoss, subflows: usize, seed: u64) -> AckLossBursts {
        let quirks = Quirks { ack_burst_loss, ..Quirks::default() };
        AckLossBursts::new(quirks, subflows, Seed::root(seed).rng())
    }

    fn thrown(chance: f64, window: f64) -> usize {
        let mut bursts = bursts(AckBurstLoss::Fixed(chance), 1, 1);
        (0..12_000).filter(|_| bursts.throws_away(PathId(0), window)).count()
    }

    #[test]
    fn a_burst_takes_every_acknowledgement_of_a_window_that_has_a_fraction() {
        assert_eq!(thrown(1.0, 10.5), 12_000 / 12 * 10, "one begins, ten are lost, one ends");
        assert_eq!(thrown(1.0, 1.5), 12_000 / 3, "the only one in flight");
    }

    #[test]
    fn a_burst_takes_one_less_than_a_window_of_whole_segments() {
        assert_eq!(thrown(1.0, 11.0), 12_000 / 12 * 10);
        assert_eq!(thrown(1.0, 1.0), 0);
    }

    #[test]
    fn bursts_begin_by_chance_and_not_at_all_by_default() {
        assert_eq!(thrown(0.0, 50.5), 0);
        let share = thrown(0.01, 10.5) as f64 / 12_000.0;
        assert!((0.05..0.15).contains(&share), "{share}");
    }

    #[test]
    fn each_subflow_of_each_run_draws_its_own_chance() {
        let drawn = |seed| bursts(AckBurstLoss::Drawn { max: 0.06 }, 2, seed).chances;
        assert_eq!(drawn(1), drawn(1));
        let all: Vec<f64> = (0..500).flat_map(drawn).collect();
        assert!(all.iter().all(|chance| (0.0..0.06).contains(chance)));
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        // Uniform: the mean of 1000 draws has a standard error of 0.00055.
        assert!((mean - 0.03).abs() < 0.002, "{mean}");
        let product: f64 = (0..500).map(drawn).map(|two| (two[0] - 0.03) * (two[1] - 0.03)).sum();
        assert!(product.abs() / 500.0 < 0.1 * 0.06 * 0.06 / 12.0 * 2.0, "independent: {product}");
    }
}
