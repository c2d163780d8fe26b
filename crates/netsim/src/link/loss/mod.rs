//! Loss models. Each decides once per packet, in the order of transmission.

mod bernoulli;
mod gilbert_elliott;
mod markov;
mod round;
mod trace;

use ropewalk_base::Rng;

pub use bernoulli::Bernoulli;
pub use gilbert_elliott::GilbertElliott;
pub use markov::Markov;
pub use round::Round;
pub use trace::LossTrace;

/// A loss model.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossModel {
    /// No loss.
    #[default]
    None,
    /// Independent loss with a constant probability.
    Bernoulli(Bernoulli),
    /// Bursty loss by a chain of two states.
    GilbertElliott(GilbertElliott),
    /// Loss by a Markov chain of any number of states.
    Markov(Markov),
    /// After the first loss, all further packets of a round are lost.
    Round(Round),
    /// Loss by a list.
    Trace(LossTrace),
}

impl LossModel {
    /// Each packet is lost with probability `p`.
    ///
    /// # Errors
    /// If `p` is not within 0 and 1.
    pub fn bernoulli(p: f64) -> Result<Self, LossError> {
        Bernoulli::new(p).map(Self::Bernoulli)
    }

    /// Returns whether the next packet, of flow `flow` and round `round`, is lost.
    #[inline]
    pub(super) fn lost(&mut self, rng: &mut Rng, flow: u32, round: u64) -> bool {
        match self {
            Self::None => false,
            Self::Bernoulli(model) => model.lost(rng),
            Self::GilbertElliott(model) => model.lost(rng),
            Self::Markov(model) => model.lost(rng),
            Self::Round(model) => model.lost(rng, flow, round),
            Self::Trace(model) => model.lost(),
        }
    }
}

/// Error in the parameters of a loss model.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum LossError {
    /// A value is not a probability.
    #[error("{name} is {value}; a probability lies within 0 and 1")]
    Probability {
        /// Name of the parameter.
        name: &'static str,
        /// The value.
        value: f64,
    },
    /// A row of the transition matrix does not sum to 1.
    #[error("row {row} of the transition matrix sums to {sum}; it must sum to 1")]
    RowSum {
        /// Index of the row.
        row: usize,
        /// Sum of the row.
        sum: f64,
    },
    /// A row of the transition matrix does not have one entry per state.
    #[error(
        "row {row} of the transition matrix has {length} entries for {states} states; \
         the matrix is square"
    )]
    RowLength {
        /// Index of the row.
        row: usize,
        /// Length of the row.
        length: usize,
        /// Number of states.
        states: usize,
    },
    /// The model has no state, or the trace no packet.
    #[error("the loss model is empty; give at least one entry")]
    Empty,
    /// The index of a lost packet is beyond the trace.
    #[error("packet {index} lies beyond the trace of {length}; count from 0")]
    Index {
        /// The index.
        index: usize,
        /// Length of the trace.
        length: usize,
    },
}

fn probability(name: &'static str, value: f64) -> Result<f64, LossError> {
    // `contains` is false for NaN, which is thereby rejected.
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(LossError::Probability { name, value })
    }
}
