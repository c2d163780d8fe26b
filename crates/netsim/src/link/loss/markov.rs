//! Loss by a Markov chain of any number of states.

use ropewalk_base::Rng;

use super::{LossError, probability};

/// A Markov chain that takes one step per packet. Each state has a loss rate; the first state is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Markov {
    /// Cumulative sums of each row, so that one draw and a search give the next state.
    cumulative: Vec<f64>,
    loss: Vec<f64>,
    state: usize,
}

impl Markov {
    /// A chain with the given transition matrix, one row per state, and the loss rate of each state.
    ///
    /// # Errors
    /// If there is no state, the matrix is not square, an entry is not a probability, or a row does
    /// not sum to 1 within 1e-9.
    pub fn new(matrix: &[Vec<f64>], loss: &[f64]) -> Result<Self, LossError> {
        let states = loss.len();
        if states == 0 {
            return Err(LossError::Empty);
        }
        if matrix.len() != states {
            let row = matrix.len().min(states);
            let length = matrix.get(row).map_or(0, Vec::len);
            return Err(LossError::RowLength { row, length, states });
        }
        for value in loss {
            probability("the loss rate of a state", *value)?;
        }
        let mut cumulative = Vec::with_capacity(states * states);
        for (row, entries) in matrix.iter().enumerate() {
            if entries.len() != states {
                return Err(LossError::RowLength { row, length: entries.len(), states });
            }
            let mut sum = 0.0;
            for entry in entries {
                sum += probability("a transition", *entry)?;
                cumulative.push(sum);
            }
            if (sum - 1.0).abs() > 1e-9 {
                return Err(LossError::RowSum { row, sum });
            }
        }
        Ok(Self { cumulative, loss: loss.to_vec(), state: 0 })
    }

    pub(super) fn lost(&mut self, rng: &mut Rng) -> bool {
        let states = self.loss.len();
        let row = &self.cumulative[self.state * states..][..states];
        let draw = rng.unit();
        // The last state takes the remainder that rounding leaves.
        self.state = row.iter().position(|sum| draw < *sum).unwrap_or(states - 1);
        rng.chance(self.loss[self.state])
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;

    #[test]
    fn a_ring_of_states_loses_by_its_stationary_distribution() {
        // The matrix is doubly stochastic, so each state takes a third of the packets.
        let matrix = vec![vec![0.9, 0.1, 0.0], vec![0.0, 0.9, 0.1], vec![0.1, 0.0, 0.9]];
        let mut model = Markov::new(&matrix, &[0.0, 0.1, 0.5]).expect("a chain");
        let mut rng = Seed::root(2).rng();
        let n = 2_000_000;
        let lost = (0..n).filter(|_| model.lost(&mut rng)).count() as f64 / f64::from(n);
        assert!((lost - 0.2).abs() < 0.003, "{lost} of all lost");
    }

    #[test]
    fn two_states_agree_with_gilbert_elliott() {
        let matrix = vec![vec![0.95, 0.05], vec![0.3, 0.7]];
        let mut chain = Markov::new(&matrix, &[0.01, 0.8]).expect("a chain");
        let mut two = super::super::GilbertElliott::new(0.05, 0.3, 0.01, 0.8).expect("a model");
        let n = 1_000_000;
        let (mut a, mut b) = (Seed::root(1).rng(), Seed::root(2).rng());
        let by_chain = (0..n).filter(|_| chain.lost(&mut a)).count() as f64 / f64::from(n);
        let by_two = (0..n).filter(|_| two.lost(&mut b)).count() as f64 / f64::from(n);
        assert!((by_chain - by_two).abs() < 0.003, "{by_chain} and {by_two}");
    }

    #[test]
    fn what_is_no_chain_is_refused() {
        let row = |a: f64, b: f64| vec![a, b];
        for (matrix, loss, message) in [
            (vec![], vec![], "the loss model is empty"),
            (vec![row(1.0, 0.0)], vec![0.0, 1.0], "row 1 of the transition matrix has 0 entries"),
            (
                vec![row(0.5, 0.5), vec![1.0]],
                vec![0.0, 1.0],
                "row 1 of the transition matrix has 1",
            ),
            (
                vec![row(0.5, 0.4), row(0.0, 1.0)],
                vec![0.0, 1.0],
                "row 0 of the transition matrix sums",
            ),
            (vec![row(1.5, -0.5), row(0.0, 1.0)], vec![0.0, 1.0], "a transition is 1.5"),
            (vec![row(1.0, 0.0), row(0.0, 1.0)], vec![0.0, 2.0], "the loss rate of a state is 2"),
        ] {
            let error = Markov::new(&matrix, &loss).expect_err(message).to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
