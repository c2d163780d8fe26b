//! The habits of a public ns-3 model of Multipath TCP (Chihani and Collange, 2011), for repeating what was
//! measured with it. They are not those of RFC 8684; `docs/decisions/chihani2011.md` says what was read
//! how.
//!
//! What makes the model: a subflow acknowledges only what is also in order at data level. A difference
//! in delay alone then makes duplicate acknowledgements on the faster subflow, and every third of
//! them halves its window.

mod ack_loss_bursts;
mod dup_ack_tracker;
mod reorder_buffer;

use ropewalk_base::{PathId, Rng};

pub(super) use ack_loss_bursts::AckLossBursts;
pub(super) use dup_ack_tracker::{DupAckTracker, Front, Verdict};
pub(super) use reorder_buffer::DataReorderBuffer;

/// What of the model is a choice.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Quirks {
    /// Whether acknowledgements begin bursts that the sender throws away (never). A fault put in on
    /// purpose.
    pub ack_burst_loss: AckBurstLoss,
    /// Data waits until all subflows are open (false). The programs that come with the model begin to
    /// write one second after the connection is established.
    pub data_waits: bool,
}

/// Chance of an acknowledgement to begin a burst, of about a window, that the sender throws away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AckBurstLoss {
    /// The same for all subflows; 0 is off.
    Fixed(f64),
    /// Each subflow draws its own when the session begins, evenly from 0 to `max`. The model's F-RTO
    /// draws up to 0.061.
    Drawn {
        /// Upper end.
        max: f64,
    },
}

impl Default for AckBurstLoss {
    fn default() -> Self {
        Self::Fixed(0.0)
    }
}

/// State of a session with these habits, beside that of its subflows.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub doubts: DupAckTracker,
    pub bursts: AckLossBursts,
    pub timeouts: Timeouts,
}

impl Model {
    pub fn new(quirks: Quirks, subflows: usize, rng: Rng) -> Self {
        Self {
            doubts: DupAckTracker::new(subflows),
            bursts: AckLossBursts::new(quirks, subflows, rng),
            timeouts: Timeouts::new(subflows),
        }
    }
}

/// What the model's F-RTO remembers of timeouts. It never finds one spurious: the test that would lets
/// no acknowledgement pass. What remains is its last step, in which duplicate acknowledgements open the
/// windows of all subflows as others do.
#[derive(Clone, Debug)]
pub(super) struct Timeouts {
    /// Whether the timer of each subflow has ever expired.
    expired: Vec<bool>,
    /// Duplicates open windows.
    opens: bool,
}

impl Timeouts {
    fn new(subflows: usize) -> Self {
        Self { expired: vec![false; subflows], opens: false }
    }

    /// The timer of `path` expired: duplicates open nothing until [`Timeouts::on_ack`].
    pub fn on_timeout(&mut self, path: PathId) {
        self.expired[path.index()] = true;
        self.opens = false;
    }

    /// An acknowledgement arrived on `path` that leaves something unacknowledged.
    pub fn on_ack(&mut self, path: PathId) {
        self.opens |= self.expired[path.index()];
    }

    /// Whether a duplicate opens the window.
    pub const fn opens(&self) -> bool {
        self.opens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_open_windows_from_the_first_acknowledgement_after_a_timeout_on() {
        let (a, b) = (PathId(0), PathId(1));
        let mut timeouts = Timeouts::new(2);
        timeouts.on_ack(a);
        assert!(!timeouts.opens(), "no timer has expired");
        timeouts.on_timeout(a);
        timeouts.on_ack(b);
        assert!(!timeouts.opens(), "the timer of that subflow has not expired");
        timeouts.on_ack(a);
        assert!(timeouts.opens());
        timeouts.on_timeout(b);
        assert!(!timeouts.opens(), "until the next acknowledgement");
        timeouts.on_ack(a);
        assert!(timeouts.opens());
    }
}
