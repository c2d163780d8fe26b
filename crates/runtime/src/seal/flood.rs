//! Rate limiter of handshakes that cost a Diffie-Hellman. Its counters have a fixed size.

use ropewalk_base::{Duration, Time};

const SECOND: Duration = Duration::from_secs(1);
/// Number of counters for sources. Sources with the same counter share its allowance.
const PLACES: usize = 1024;
/// Handshakes per second of a source that has proved its address.
const PER_SOURCE: u8 = 20;

/// Counters of the current second.
pub(super) struct Flood {
    began: Time,
    /// Handshakes per second that are accepted without a proved address.
    free: u32,
    unproved: u32,
    by_source: Box<[u8; PLACES]>,
}

impl Flood {
    pub(super) fn new(free: u32) -> Self {
        Self { began: Time::ZERO, free, unproved: 0, by_source: Box::new([0; PLACES]) }
    }

    /// Counts a handshake without a proved address. Returns whether it is within the allowance.
    pub(super) fn admits_unproved(&mut self, now: Time) -> bool {
        self.roll(now);
        let room = self.unproved < self.free;
        self.unproved += u32::from(room);
        room
    }

    /// Counts a handshake with a proved address. Returns whether it is within the source's allowance.
    pub(super) fn admits_proved(&mut self, now: Time, bucket: u16) -> bool {
        self.roll(now);
        let count = &mut self.by_source[usize::from(bucket) % PLACES];
        let room = *count < PER_SOURCE;
        *count += u8::from(room);
        room
    }

    fn roll(&mut self, now: Time) {
        if now.since(self.began) >= SECOND {
            self.began = now;
            self.unproved = 0;
            self.by_source.fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_allowance() {
        let mut flood = Flood::new(3);
        for second in 5..8 {
            let now = Time::from_secs(second);
            let admitted = (0..10).filter(|_| flood.admits_unproved(now)).count();
            assert_eq!(admitted, 3, "second {second}");
        }
    }

    #[test]
    fn a_loud_source_does_not_silence_another() {
        let mut flood = Flood::new(0);
        let now = Time::from_secs(5);
        assert!(!flood.admits_unproved(now));
        let admitted = (0..1000).filter(|_| flood.admits_proved(now, 1)).count();
        assert_eq!(admitted, usize::from(PER_SOURCE));
        assert!(flood.admits_proved(now, 2));
    }
}
