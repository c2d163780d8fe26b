//! Binary exponential backoff of one station (IEEE 802.11-2012, 9.3.3).

use ropewalk_base::{Rng, Seed};

/// Maximum number of transmissions of a frame: dot11ShortRetryLimit, including the first one.
pub const ATTEMPTS: u32 = 7;
/// The largest contention window (aCWmax).
const CW_MAX: u32 = 1023;

/// Contention window, attempts and random stream of a station.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    cw_min: u32,
    cw: u32,
    /// Failed transmissions of the current frame.
    failed: u32,
    rng: Rng,
}

/// Whether a failed frame is sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Again,
    GiveUp,
}

impl Backoff {
    pub(super) fn new(cw_min: u32, seed: Seed) -> Self {
        Self { cw_min, cw: cw_min, failed: 0, rng: seed.rng() }
    }

    /// Lowers the minimum contention window of a station.
    pub(super) fn lower(&mut self, cw_min: u32) {
        self.cw_min = self.cw_min.min(cw_min);
        self.cw = self.cw_min;
    }

    /// Draws the backoff in slots, uniform from 0 to the contention window.
    pub(super) fn draw(&mut self) -> u64 {
        self.rng.below(u64::from(self.cw) + 1)
    }

    /// Resets the window after an acknowledgement.
    pub(super) fn succeeded(&mut self) {
        (self.cw, self.failed) = (self.cw_min, 0);
    }

    /// Enlarges the window after a missing acknowledgement.
    pub(super) fn failed(&mut self) -> Verdict {
        self.failed += 1;
        if self.failed == ATTEMPTS {
            self.succeeded();
            return Verdict::GiveUp;
        }
        self.cw = (self.cw * 2 + 1).min(CW_MAX);
        Verdict::Again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_doubles_to_its_maximum_and_begins_again_after_the_last_attempt() {
        let mut backoff = Backoff::new(31, Seed::root(1));
        let windows: Vec<u32> = (0..6)
            .map(|_| {
                assert_eq!(backoff.failed(), Verdict::Again);
                backoff.cw
            })
            .collect();
        assert_eq!(windows, [63, 127, 255, 511, 1023, 1023]);
        assert_eq!(backoff.failed(), Verdict::GiveUp);
        assert_eq!(backoff.cw, 31);
    }

    #[test]
    fn every_slot_of_the_window_is_drawn_and_none_beyond() {
        let mut backoff = Backoff::new(15, Seed::root(1));
        let mut seen = [0u32; 16];
        for _ in 0..16_000 {
            seen[backoff.draw() as usize] += 1;
        }
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
    }
}
