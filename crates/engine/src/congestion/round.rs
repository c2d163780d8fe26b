//! Rounds: a round lasts until all data in flight at its beginning is acknowledged.

use super::AckSample;

/// Counts down the bytes that were in flight when the round began. This is equivalent to waiting for the
/// acknowledgement of the next sequence number at that time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    pub(super) left: u64,
}

impl Round {
    /// Processes an acknowledgement. Returns whether it ends a round, and begins the next one.
    pub(super) fn on_ack(&mut self, sample: &AckSample) -> bool {
        self.left = self.left.saturating_sub(sample.acked_bytes);
        let ends = self.left == 0;
        if ends {
            self.left = sample.in_flight_before.saturating_sub(sample.acked_bytes);
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::ack;
    use super::*;

    #[test]
    fn a_round_lasts_until_what_was_in_flight_at_its_beginning_is_acknowledged() {
        let mut round = Round::default();
        let ends: Vec<bool> = (0..9).map(|_| round.on_ack(&ack(1000, 5000))).collect();
        // The first round begins with 4000 B in flight, and so does each following one.
        assert_eq!(ends, [true, false, false, false, true, false, false, false, true]);
    }
}
