//! Detection of spurious retransmissions by duplicate reports (reported as in RFC 2883, response as in RFC
//! 3708).
//!
//! A receiver reports data that arrives twice. If every retransmission since a reduction was reported as
//! a duplicate, no data was lost, and the reduction is undone. The decision is made a round trip after
//! the retransmission, and a lost report prevents it.

use std::collections::BTreeMap;

use ropewalk_base::Time;

use super::{Report, SpuriousRule};

/// Retransmissions since the last reduction that have not been reported as duplicates.
#[derive(Clone, Debug, Default)]
pub struct DSack {
    /// For each first sequence number, the number of copies that have not been reported yet.
    copies: BTreeMap<u64, u32>,
    armed: bool,
}

impl DSack {
    /// Records a reduction of the window. Discards the copies of the previous one.
    pub fn on_reduction(&mut self) {
        self.copies.clear();
        self.armed = true;
    }

    /// Records a retransmission of the data that begins at `seq`.
    pub fn on_retransmission(&mut self, seq: u64) {
        if self.armed {
            *self.copies.entry(seq).or_default() += 1;
        }
    }

    /// Processes a duplicate report for the sequence numbers from `block.0` to before `block.1`.
    /// `pending`: whether more retransmissions are waiting. Returns true if all retransmissions were
    /// spurious (RFC 3708, 3).
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
        // A duplicate of data that was sent once was created by the network, and proves nothing.
        let all = found && self.copies.is_empty() && !pending;
        self.armed &= !all;
        all
    }
}

impl SpuriousRule for DSack {
    fn on_reduction(&mut self, _now: Time) {
        self.on_reduction();
    }

    fn on_retransmission(&mut self, _now: Time, seq: u64) {
        self.on_retransmission(seq);
    }

    fn on_ack(&mut self, _now: Time, report: &Report) -> bool {
        report.duplicate.is_some_and(|block| self.on_duplicate(block, report.pending))
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
