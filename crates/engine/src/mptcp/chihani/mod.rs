//! Quirks of a public ns-3 model of Multipath TCP (Chihani and Collange, 2011), to repeat measurements made
//! with it. They differ from RFC 8684; `docs/decisions/paper-presets.md` explains how the model was
//! interpreted.
//!
//! The main difference: a subflow acknowledges only data that is also in order at data level. A difference in
//! delay alone then causes duplicate acknowledgements on the faster subflow, and every third of them halves
//! its window.

mod ack_loss_bursts;
mod dup_ack_tracker;
mod reorder_buffer;

use ropewalk_base::{PathId, Rng};

pub(super) use ack_loss_bursts::AckLossBursts;
pub(super) use dup_ack_tracker::{DupAckTracker, Front, Verdict};
pub(super) use reorder_buffer::DataReorderBuffer;

/// Options of the model.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Quirks {
    /// Whether acknowledgements begin bursts that the sender discards (never). A deliberate defect.
    pub ack_burst_loss: AckBurstLoss,
    /// Whether data waits until all subflows are open (false). The programs that accompany the model
    /// start to write one second after the connection is established.
    pub data_waits: bool,
}

/// Probability that an acknowledgement begins a burst, of about a window, that the sender discards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AckBurstLoss {
    /// The same for all subflows; 0 is off.
    Fixed(f64),
    /// Each subflow draws its probability when the session begins, uniformly from 0 to `max`. The model's
    /// F-RTO draws up to 0.061.
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

/// State of a session with these quirks, in addition to that of its subflows.
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

/// Timeout state of the model's F-RTO. It never detects a spurious timeout, because its test does not let
/// any acknowledgement pass. Only its last step has an effect: duplicate acknowledgements open the
/// windows of all subflows like other acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct Timeouts {
    /// Whether the timer of each subflow has ever expired.
    expired: Vec<bool>,
    /// Whether duplicates open windows.
    opens: bool,
}

impl Timeouts {
    fn new(subflows: usize) -> Self {
        Self { expired: vec![false; subflows], opens: false }
    }

    /// Records that the timer of `path` expired: duplicates do not open windows until
    /// [`Timeouts::on_ack`].
    pub fn on_timeout(&mut self, path: PathId) {
        self.expired[path.index()] = true;
        self.opens = false;
    }

    /// Records an acknowledgement on `path` that leaves data unacknowledged.
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
