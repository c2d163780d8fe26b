//! How often a path stands still for the repair of a loss.

use ropewalk_base::{Duration, Time};

use super::nanos;

/// Losses are remembered for about so long: one that comes every few seconds is forgotten in between
/// otherwise, and it is the next one that counts.
const MEMORY: Duration = Duration::from_secs(10);
/// Where more than this share of the chunks waits for a repair, the 99th percentile of delays is made of them.
const OFTEN: f64 = 0.01;

/// Losses of one path of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossStallFilter {
    /// Mean share of transmissions lost.
    loss: f64,
    looked: Time,
}

impl LossStallFilter {
    /// Takes the share that is lost now. Whether chunks often wait for a repair, where so many follow
    /// each other in the round trip that it takes.
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

    /// Seconds in which it is said to stand still often: lost are so many of 1000 in the first ten seconds.
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
