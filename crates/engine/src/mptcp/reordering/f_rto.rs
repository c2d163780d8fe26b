//! Spurious timeouts: F-RTO with selective acknowledgements (RFC 5682, 3.1).
//!
//! After the timer has expired only the oldest goes again. If its acknowledgement advances, new data
//! goes next instead of what was given up; if then something is acknowledged that was never sent again,
//! it was on its way all the time and the timer was too quick. It finds nothing about fast retransmits.

/// How far the test is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Idle,
    /// Step 1: the oldest is to go again.
    Expired,
    /// Step 2: it left, and its acknowledgement is awaited.
    Awaited,
    /// Step 3: new data leaves.
    Probing,
}

/// State of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct FRto {
    step: Step,
    /// All below had been sent when the timer expired.
    recover: u64,
}

impl FRto {
    /// The timer expired: `una` is the oldest that is not acknowledged, `next` the first number not yet
    /// sent. A second expiry within one recovery is no longer tested (RFC 5682, 3.1, step 1).
    pub fn on_timeout(&mut self, una: u64, next: u64) {
        self.step = if una < self.recover { Step::Idle } else { Step::Expired };
        self.recover = next;
    }

    /// A window was reduced for another reason.
    pub const fn on_reduction(&mut self) {
        self.step = Step::Idle;
    }

    /// Something leaves once more.
    pub const fn on_retransmission(&mut self) {
        self.step = match self.step {
            Step::Expired => Step::Awaited,
            // New data could not be sent: the usual recovery goes on.
            Step::Probing => Step::Idle,
            other => other,
        };
    }

    /// An acknowledgement came: whether it advanced, up to where everything is acknowledged now, and
    /// whether it covers something given up that was not sent again. True if the timeout was
    /// spurious.
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

    /// Whether what was given up is to wait.
    pub const fn holds_back(&self) -> bool {
        matches!(self.step, Step::Awaited | Step::Probing)
    }

    /// There is no new data to test with: the usual recovery goes on.
    pub const fn on_nothing_new(&mut self) {
        self.step = Step::Idle;
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
