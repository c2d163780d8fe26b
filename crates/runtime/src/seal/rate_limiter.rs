//! Rate limiter of handshakes that cost a Diffie-Hellman. Its counters have a fixed size.

use ropewalk_base::{Duration, Time};

const SECOND: Duration = Duration::from_secs(1);
/// Number of counters for sources. Sources with the same counter share its allowance.
const BUCKETS: usize = 1024;
/// Handshakes per second allowed for a source that has proved its address.
const PER_SOURCE: u8 = 20;

/// Counters of the current second.
pub(super) struct RateLimiter {
    began: Time,
    /// Handshakes per second that are accepted without a proved address.
    unvalidated_limit: u32,
    unvalidated: u32,
    by_source: Box<[u8; BUCKETS]>,
}

impl RateLimiter {
    pub(super) fn new(unvalidated_limit: u32) -> Self {
        Self {
            began: Time::ZERO,
            unvalidated_limit,
            unvalidated: 0,
            by_source: Box::new([0; BUCKETS]),
        }
    }

    /// Counts a handshake without a proved address. Returns whether it is within the allowance.
    pub(super) fn admits_unvalidated(&mut self, now: Time) -> bool {
        self.begin_second(now);
        let room = self.unvalidated < self.unvalidated_limit;
        self.unvalidated += u32::from(room);
        room
    }

    /// Counts a handshake with a proved address. Returns whether it is within the source's allowance.
    pub(super) fn admits_validated(&mut self, now: Time, bucket: u16) -> bool {
        self.begin_second(now);
        let count = &mut self.by_source[usize::from(bucket) % BUCKETS];
        let room = *count < PER_SOURCE;
        *count += u8::from(room);
        room
    }

    fn begin_second(&mut self, now: Time) {
        if now.since(self.began) >= SECOND {
            self.began = now;
            self.unvalidated = 0;
            self.by_source.fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_allowance() {
        let mut limiter = RateLimiter::new(3);
        for second in 5..8 {
            let now = Time::from_secs(second);
            let admitted = (0..10).filter(|_| limiter.admits_unvalidated(now)).count();
            assert_eq!(admitted, 3, "second {second}");
        }
    }

    #[test]
    fn a_loud_source_does_not_silence_another() {
        let mut limiter = RateLimiter::new(0);
        let now = Time::from_secs(5);
        assert!(!limiter.admits_unvalidated(now));
        let admitted = (0..1000).filter(|_| limiter.admits_validated(now, 1)).count();
        assert_eq!(admitted, usize::from(PER_SOURCE));
        assert!(limiter.admits_validated(now, 2));
    }
}
