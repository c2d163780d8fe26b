//! Duplicate reports and timestamps, whichever arrives first: common in stacks with loss detection by
//! time.

use ropewalk_base::Time;

use super::{DSack, Eifel, Report, SpuriousRule};

/// Both rules of one sender.
#[derive(Clone, Debug, Default)]
pub struct DuplicatesOrTimestamps {
    duplicates: DSack,
    timestamps: Eifel,
}

impl SpuriousRule for DuplicatesOrTimestamps {
    fn on_reduction(&mut self, _now: Time) {
        self.duplicates.on_reduction();
        self.timestamps.on_reduction();
    }

    fn on_retransmission(&mut self, now: Time, seq: u64) {
        self.duplicates.on_retransmission(seq);
        self.timestamps.on_retransmission(now);
    }

    fn on_ack(&mut self, now: Time, report: &Report) -> bool {
        let found = self.duplicates.on_ack(now, report) || self.timestamps.on_ack(now, report);
        if found {
            // The other rule would report the same reduction.
            *self = Self::default();
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_reports_and_timestamps_together_take_a_reduction_back_once() {
        let late = Report { advanced: true, echo: Some(999_999), ..Report::default() };
        let twice = Report { duplicate: Some((1, 101)), ..Report::default() };
        for (first, second) in [(late, twice), (twice, late)] {
            let mut undo = DuplicatesOrTimestamps::default();
            SpuriousRule::on_reduction(&mut undo, Time::ZERO);
            SpuriousRule::on_retransmission(&mut undo, Time::from_millis(1), 1);
            assert!(undo.on_ack(Time::from_millis(2), &first), "{first:?}");
            assert!(!undo.on_ack(Time::from_millis(3), &second), "{second:?}");
        }
    }
}
