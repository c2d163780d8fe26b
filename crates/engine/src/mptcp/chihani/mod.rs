//! The habits of a public ns-3 model of Multipath TCP (Chihani and Collange, 2011), for repeating what was
//! measured with it. They are not those of RFC 8684; `docs/decisions/chihani2011.md` says what was read
//! how.
//!
//! What makes the model: a subflow acknowledges only what is also in order at data level. A difference
//! in delay alone then makes duplicate acknowledgements on the faster subflow, and every third of
//! them halves its window.

mod bursts;
mod doubts;
mod gate;

use ropewalk_base::Rng;

pub(super) use bursts::Bursts;
pub(super) use doubts::{Doubts, Front, Verdict};
pub(super) use gate::Gate;

/// What of the model is a choice.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Habits {
    /// Chance of an acknowledgement to begin a burst of about a window that the sender throws away
    /// (0, off; the model's F-RTO draws up to 0.06 per subflow). A fault put in on purpose.
    pub ack_burst_loss: f64,
}

/// State of a session with these habits, beside that of its subflows.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub doubts: Doubts,
    pub bursts: Bursts,
}

impl Model {
    pub fn new(habits: Habits, subflows: usize, rng: Rng) -> Self {
        Self { doubts: Doubts::new(subflows), bursts: Bursts::new(habits, subflows, rng) }
    }
}
