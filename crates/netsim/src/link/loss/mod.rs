//! Loss models: each is asked once per packet, in the order of transmission.

mod bernoulli;
mod gilbert_elliott;
mod markov;
mod round;
mod trace;

use core::fmt;

use ropewalk_base::Rng;

pub use bernoulli::Bernoulli;
pub use gilbert_elliott::GilbertElliott;
pub use markov::Markov;
pub use round::Round;
pub use trace::LossTrace;

/// Which packets are lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossModel {
    /// None.
    #[default]
    None,
    /// Each with the same probability.
    Bernoulli(Bernoulli),
    /// In bursts: two states.
    GilbertElliott(GilbertElliott),
    /// Any number of states.
    Markov(Markov),
    /// Once one packet of a round is lost, the rest of it.
    Round(Round),
    /// Those that a list says.
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

    /// Whether the next packet, of `flow` and its `round`, is lost.
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

/// Why a loss model cannot be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossError {
    /// Not a probability.
    Probability {
        /// What it was to be.
        name: &'static str,
        /// The value.
        value: f64,
    },
    /// A row of the transition matrix that does not sum to 1.
    RowSum {
        /// Its index.
        row: usize,
        /// Its sum.
        sum: f64,
    },
    /// A row of the transition matrix that has not one entry per state.
    RowLength {
        /// Its index.
        row: usize,
        /// Its length.
        length: usize,
        /// How many states there are.
        states: usize,
    },
    /// No state, or no packet in a trace.
    Empty,
    /// A lost packet's index that lies beyond the trace.
    Index {
        /// The index.
        index: usize,
        /// The length of the trace.
        length: usize,
    },
}

impl fmt::Display for LossError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Probability { name, value } => {
                write!(f, "{name} is {value}; a probability lies within 0 and 1")
            }
            Self::RowSum { row, sum } => {
                write!(f, "row {row} of the transition matrix sums to {sum}; it must sum to 1")
            }
            Self::RowLength { row, length, states } => write!(
                f,
                "row {row} of the transition matrix has {length} entries for {states} states; \
                 the matrix is square"
            ),
            Self::Empty => write!(f, "the loss model is empty; give at least one entry"),
            Self::Index { index, length } => {
                write!(f, "packet {index} lies beyond the trace of {length}; count from 0")
            }
        }
    }
}

impl core::error::Error for LossError {}

fn probability(name: &'static str, value: f64) -> Result<f64, LossError> {
    // Written so that NaN is refused.
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(LossError::Probability { name, value })
    }
}
