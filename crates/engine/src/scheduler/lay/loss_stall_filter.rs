//! Frequency of stalls of a path for the repair of losses.

use ropewalk_base::{Duration, Time};

use super::nanos;

/// Time constant of the mean loss rate. With a shorter one, a path with a loss every few seconds would
/// count as loss-free when the next loss occurs.
const MEMORY: Duration = Duration::from_secs(10);
/// Share of chunks that wait for a repair above which these waits determine the 99th percentile of delays.
const OFTEN: f64 = 0.01;

/// Recent losses of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossStallFilter {
    /// Mean share of lost transmissions.
    loss: f64,
    looked: Time,
}

impl LossStallFilter {
    /// Updates the mean with the current loss rate. Returns whether chunks often wait for a repair, which
    /// takes a round trip of `chunks_per_round_trip` chunks.
    pub fn look(&mut self, now: Time, loss: f64, chunks_per_round_trip: f64) -> bool {
        let part = nanos(now.since(self.looked)) / nanos(MEMORY);
        self.looked = now;
        self.loss += (loss - self.loss) * part.min(1.0);
        self.loss * chunks_per_round_trip > OFTEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds in which stalls count as frequent, with `lost` of 1000 packets lost in the first ten seconds.
    fn seconds_of_stalls(lost: f64) -> usize {
        let mut stalls = LossStallFilter::default();
        let at = |second: u64| Time::ZERO + Duration::from_secs(second);
        let often = (1..200).filter(|second| {
            let loss = if *second <= 10 { lost / 1000.0 } else { 0.0 };
            stalls.look(at(*second), loss, 50.0)
        });
        often.count()
    }

    #[test]
    fn losses_are_remembered_for_a_while_and_few_do_not_count() {
        assert_eq!(seconds_of_stalls(0.2), 0, "a chunk in a hundred waits at most");
        let (some, many) = (seconds_of_stalls(5.0), seconds_of_stalls(50.0));
        assert!((20..50).contains(&some), "{some}");
        assert!((some + 15..100).contains(&many), "{many}");
    }
}
