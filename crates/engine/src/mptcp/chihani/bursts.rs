//! Bursts of acknowledgements that the sender throws away.

use ropewalk_base::{PathId, Rng};

use super::Habits;

/// Where each subflow is in a burst.
#[derive(Clone, Debug)]
pub struct Bursts {
    chance: f64,
    /// Acknowledgements thrown away since the burst began; none outside of one.
    thrown: Vec<Option<u64>>,
    rng: Rng,
}

impl Bursts {
    /// No burst yet.
    pub fn new(habits: Habits, subflows: usize, rng: Rng) -> Self {
        Self { chance: habits.ack_burst_loss, thrown: vec![None; subflows], rng }
    }

    /// Whether the acknowledgement that came on `path` is thrown away, with a window of `segments`. The one
    /// that begins a burst is not, and the burst ends with one that is not.
    pub fn throws_away(&mut self, path: PathId, segments: u64) -> bool {
        if self.chance <= 0.0 {
            return false;
        }
        let thrown = &mut self.thrown[path.index()];
        match thrown {
            None => {
                *thrown = self.rng.chance(self.chance).then_some(0);
                false
            }
            Some(count) if *count + 1 < segments => {
                *count += 1;
                true
            }
            Some(_) => {
                *thrown = None;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;

    fn thrown(ack_burst_loss: f64, segments: u64) -> usize {
        let mut bursts = Bursts::new(Habits { ack_burst_loss }, 1, Seed::root(1).rng());
        (0..10_000).filter(|_| bursts.throws_away(PathId(0), segments)).count()
    }

    #[test]
    fn a_burst_takes_a_window_less_one_and_none_comes_unasked() {
        assert_eq!(thrown(0.0, 50), 0);
        assert_eq!(thrown(1.0, 1), 0, "nothing between the first and the last");
        assert_eq!(thrown(1.0, 10), 10_000 / 11 * 9, "nine of eleven");
        let share = thrown(0.01, 11) as f64 / 10_000.0;
        assert!((0.05..0.15).contains(&share), "{share}");
    }
}
