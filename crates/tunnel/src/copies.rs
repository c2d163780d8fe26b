//! Which packets are sent on two paths.

use ropewalk_base::Time;

use crate::config::Redundancy;
use crate::tunnel::Class;

/// Copies that are always allowed, bytes per second: a low-rate video call.
const BASE_RATE: f64 = 64_000.0;
/// Maximum share of copies in all bytes.
const SHARE: f64 = 0.1;
/// Maximum number of unused copies that accumulate, bytes.
const BURST: f64 = 16_000.0;

/// Limits the copies of `auto` by a token bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyBudget {
    tokens: f64,
    at: Time,
}

impl CopyBudget {
    pub const fn new() -> Self {
        Self { tokens: BURST, at: Time::ZERO }
    }

    /// Whether a packet that is sent now uses two paths. `doubtful` means that the fastest path may not
    /// deliver it.
    /// deliver it.
    pub fn decide(
        &mut self,
        now: Time,
        redundancy: Redundancy,
        (class, bytes): (Class, u32),
        doubtful: bool,
    ) -> bool {
        let elapsed = now.since(self.at).as_secs_f64();
        let bytes = f64::from(bytes);
        self.at = self.at.max(now);
        self.tokens = (self.tokens + elapsed * BASE_RATE + SHARE * bytes).min(BURST);
        match (redundancy, class) {
            (Redundancy::Off, _) | (_, Class::Bulk | Class::Background) => false,
            (Redundancy::Always, Class::Interactive) => true,
            (Redundancy::Auto, Class::Interactive) => {
                let copied = doubtful && self.tokens >= bytes;
                self.tokens -= if copied { bytes } else { 0.0 };
                copied
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_copies_stay_within_their_budget() {
        let mut budget = CopyBudget::new();
        let mut copied = 0;
        // 10 s with 200 bytes per millisecond, all doubtful: 1.6 Mbit/s.
        for ms in 0..10_000 {
            let packet = (Class::Interactive, 200);
            if budget.decide(Time::from_millis(ms), Redundancy::Auto, packet, true) {
                copied += 200;
            }
        }
        let allowed = BURST + 10.0 * BASE_RATE + SHARE * 2e6;
        assert!((0.98 * allowed..=allowed).contains(&f64::from(copied)), "{copied}");
    }

    #[test]
    fn only_interactive_packets_are_copied_and_only_as_configured() {
        for (redundancy, class, doubtful, copied) in [
            (Redundancy::Off, Class::Interactive, true, false),
            (Redundancy::Auto, Class::Interactive, false, false),
            (Redundancy::Auto, Class::Interactive, true, true),
            (Redundancy::Auto, Class::Bulk, true, false),
            (Redundancy::Always, Class::Interactive, false, true),
            (Redundancy::Always, Class::Background, true, false),
        ] {
            let decision = CopyBudget::new().decide(Time::ZERO, redundancy, (class, 100), doubtful);
            assert_eq!(decision, copied, "{redundancy:?} {class:?} {doubtful}");
        }
    }
}
