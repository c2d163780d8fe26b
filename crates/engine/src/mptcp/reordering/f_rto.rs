//! Detection of spurious timeouts: F-RTO with selective acknowledgements (RFC 5682, 3.1).
//!
//! After a timeout only the oldest segment is retransmitted. If its acknowledgement advances, new data is
//! sent next instead of the data given up. If data is then acknowledged that was not retransmitted, the
//! original was still in flight and the timeout was spurious. F-RTO does not detect spurious fast
//! retransmits.

use ropewalk_base::Time;

use super::{Report, SpuriousRule};

/// Step of the algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Idle,
    /// Step 1: the oldest segment must be retransmitted.
    Expired,
    /// Step 2: it was sent, and its acknowledgement is awaited.
    Awaited,
    /// Step 3: new data is sent.
    Probing,
}

/// State of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct FRto {
    step: Step,
    /// All data below this number had been sent when the timer expired.
    recover: u64,
}

impl FRto {
    /// Records a timeout: `una` is the oldest unacknowledged number, `next` the first one not sent yet. A
    /// second timeout within one recovery is not tested (RFC 5682, 3.1, step 1).
    pub fn on_timeout(&mut self, una: u64, next: u64) {
        self.step = if una < self.recover { Step::Idle } else { Step::Expired };
        self.recover = next;
    }

    /// Records a reduction of the window for another reason.
    pub const fn on_reduction(&mut self) {
        self.step = Step::Idle;
    }

    /// Records a retransmission.
    pub const fn on_retransmission(&mut self) {
        self.step = match self.step {
            Step::Expired => Step::Awaited,
            // New data could not be sent: continue with conventional recovery.
            Step::Probing => Step::Idle,
            other => other,
        };
    }

    /// Processes an acknowledgement. `advanced`: whether it advanced. `una`: the new oldest
    /// unacknowledged number. `late`: whether it covers data that was given up but not retransmitted.
    /// Returns true if the timeout was spurious.
    pub fn on_ack(&mut self, advanced: bool, una: u64, late: bool) -> bool {
        match self.step {
            Step::Idle | Step::Expired => {}
            Step::Awaited if !advanced => {}
            Step::Awaited => {
                self.step = if una >= self.recover { Step::Idle } else { Step::Probing };
            }
            Step::Probing => {
                self.step = Step::Idle;
                return late;
            }
        }
        false
    }

    /// Whether data that was given up must wait.
    pub const fn holds_back(&self) -> bool {
        matches!(self.step, Step::Awaited | Step::Probing)
    }

    /// No new data is available for the test: continue with conventional recovery.
    pub const fn on_nothing_new(&mut self) {
        self.step = Step::Idle;
    }
}

impl SpuriousRule for FRto {
    const DUPLICATES_COUNT_IN_MODEL: bool = false;

    fn on_reduction(&mut self, _now: Time) {
        self.on_reduction();
    }

    fn on_timeout(&mut self, _now: Time, una: u64, next: u64) {
        self.on_timeout(una, next);
    }

    fn on_retransmission(&mut self, _now: Time, _seq: u64) {
        self.on_retransmission();
    }

    fn on_ack(&mut self, _now: Time, report: &Report) -> bool {
        self.on_ack(report.advanced, report.una, report.late)
    }

    fn holds_back(&self) -> bool {
        self.holds_back()
    }

    fn on_nothing_new(&mut self) {
        self.on_nothing_new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expired() -> FRto {
        let mut rule = FRto::default();
        rule.on_timeout(100, 1000);
        assert!(!rule.holds_back(), "the oldest goes at once");
        rule.on_retransmission();
        assert!(rule.holds_back(), "and no other");
        rule
    }

    #[test]
    fn the_timeout_was_spurious_if_the_second_acknowledgement_covers_what_never_left_again() {
        for (first, second, spurious) in [
            ((true, 200, false), (true, 300, true), true),
            ((true, 200, true), (false, 200, true), true),
            ((true, 200, false), (false, 200, false), false),
            ((true, 1000, true), (true, 1100, true), false),
        ] {
            let mut rule = expired();
            assert!(!rule.on_ack(false, 100, false), "what repeats the number is waited out");
            assert!(!rule.on_ack(first.0, first.1, first.2));
            assert_eq!(rule.on_ack(second.0, second.1, second.2), spurious, "{first:?}");
            assert!(!rule.holds_back());
        }
    }

    #[test]
    fn a_second_expiry_in_one_recovery_and_one_without_new_data_go_the_usual_way() {
        let mut rule = expired();
        rule.on_timeout(100, 1000);
        rule.on_retransmission();
        assert!(!rule.holds_back());
        let mut rule = expired();
        rule.on_ack(true, 200, false);
        rule.on_nothing_new();
        assert!(!rule.holds_back() && !rule.on_ack(true, 300, true));
    }
}
