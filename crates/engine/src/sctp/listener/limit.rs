//! Rate limit of replies to packets that belong to no association.

use ropewalk_base::{Duration, Time};

/// A token bucket of replies.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerLimit {
    left: u32,
    filled: Time,
}

/// Maximum number of replies in a burst.
const BURST: u32 = 50;
/// Interval of further replies: enough to tell a peer that its association no longer exists, too few for an
/// attack.
const INTERVAL: Duration = Duration::from_millis(20);

impl AnswerLimit {
    pub const FULL: Self = Self { left: BURST, filled: Time::ZERO };

    /// Whether one more reply may be sent; counts it if so.
    pub fn allows(&mut self, now: Time) -> bool {
        let more = now.since(self.filled).as_nanos() / INTERVAL.as_nanos();
        if more > 0 {
            self.left = (self.left as u64).saturating_add(more).min(BURST as u64) as u32;
            self.filled = now;
        }
        let some = self.left > 0;
        self.left -= some as u32;
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_one_burst_and_then_fifty_a_second() {
        let mut limit = AnswerLimit::FULL;
        let mut answers = |from_ms: u64, count: u64| {
            (0..count).filter(|i| limit.allows(Time::from_millis(from_ms + i))).count()
        };
        assert_eq!(answers(0, 19), 19);
        let first_second = answers(19, 981);
        assert!((79..=81).contains(&first_second), "{first_second}");
        let next = answers(1000, 1000);
        assert!((48..=51).contains(&next), "{next}");
        assert_eq!(answers(1_000_000, 50), 50, "full again");
    }
}
