//! Spurious retransmissions by duplicate reports (RFC 2883 reports, RFC 3708 response).
//!
//! A receiver that gets something twice says so. When every retransmission since a reduction has been
//! reported in that way nothing was lost, and the reduction is taken back. It takes a round trip
//! from the retransmission to the verdict, and a path that loses the report hides it.

use std::collections::BTreeMap;

/// What was sent again since the last reduction and has not been reported twice.
#[derive(Clone, Debug, Default)]
pub struct DSack {
    /// By its first sequence number: how many copies of it are not accounted for.
    copies: BTreeMap<u64, u32>,
    armed: bool,
}

impl DSack {
    /// A window was reduced: the account of the one before is closed.
    pub fn on_reduction(&mut self) {
        self.copies.clear();
        self.armed = true;
    }

    /// What begins at `seq` leaves once more.
    pub fn on_retransmission(&mut self, seq: u64) {
        if self.armed {
            *self.copies.entry(seq).or_default() += 1;
        }
    }

    /// The peer got the sequence numbers from `block.0` to before `block.1` twice; `pending` says that
    /// more waits to be sent again. True if with that all retransmissions were needless (RFC 3708, 3).
    pub fn on_duplicate(&mut self, block: (u64, u64), pending: bool) -> bool {
        if block.0 >= block.1 {
            return false;
        }
        let mut found = false;
        for (_, copies) in self.copies.range_mut(block.0..block.1) {
            found = true;
            *copies -= 1;
        }
        self.copies.retain(|_, copies| *copies > 0);
        // A report of what was sent once is of a duplicate that the network made: it says nothing.
        let all = found && self.copies.is_empty() && !pending;
        self.armed &= !all;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reduction_was_needless_once_every_retransmission_was_reported_twice() {
        let mut rule = DSack::default();
        rule.on_retransmission(1);
        assert!(!rule.on_duplicate((1, 101), false), "there was no reduction");
        rule.on_reduction();
        rule.on_retransmission(101);
        rule.on_retransmission(301);
        assert!(!rule.on_duplicate((101, 201), false), "one of two");
        assert!(!rule.on_duplicate((501, 601), false), "the network's own duplicate");
        assert!(rule.on_duplicate((301, 401), false));
        assert!(!rule.on_duplicate((301, 401), false), "once");
    }

    #[test]
    fn what_left_twice_must_be_reported_twice_and_what_waits_to_leave_counts_as_well() {
        let mut rule = DSack::default();
        rule.on_reduction();
        rule.on_retransmission(1);
        rule.on_retransmission(1);
        assert!(!rule.on_duplicate((1, 101), false));
        assert!(rule.on_duplicate((1, 101), false));
        rule.on_reduction();
        rule.on_retransmission(1);
        assert!(!rule.on_duplicate((1, 101), true), "another one waits");
        rule.on_reduction();
        assert!(!rule.on_duplicate((1, 101), false), "a new reduction has a new account");
    }
}
