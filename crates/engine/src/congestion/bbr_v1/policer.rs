//! Detection of a policer: a token bucket at the bottleneck, which drops traffic above its rate.

use ropewalk_base::Time;

/// Minimum number of rounds of a measurement (`bbr_lt_intvl_min_rtts`).
const LEAST_ROUNDS: u32 = 4;
/// Rounds after which a measurement without enough losses is given up.
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
/// Lost bytes per 256 delivered bytes from which a measurement shows a policer (`bbr_lt_loss_thresh`).
const LOSS_PER_256: u64 = 50;
/// Divisor of the rate: maximum difference between two measurements of the same policer
/// (`bbr_lt_bw_ratio`).
const RATIO: u64 = 8;
/// Difference between two measurements of the same policer that is always permitted, bits per second
/// (`bbr_lt_bw_diff`).
const DIFFERENCE: u64 = 4000;
/// Rounds for which the rate of a policer is used (`bbr_lt_bw_max_rtts`).
const USE_ROUNDS: u32 = 48;

/// Totals of the path when an acknowledgement arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    pub now: Time,
    /// Bytes delivered so far.
    pub delivered: u64,
    /// Bytes lost so far.
    pub lost: u64,
    /// Whether there was a loss since the last acknowledgement.
    pub has_losses: bool,
    pub app_limited: bool,
    pub round_start: bool,
}

/// The long-term rate under a policer (`bbr_lt_bw_sampling`): if two successive measurements, each
/// between losses and with a loss of a fifth, have the same rate, that rate is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policer {
    /// Rate of the last measurement, bits per second, or 0.
    rate: u64,
    in_use: bool,
    /// Whether a measurement is in progress.
    samples: bool,
    /// Rounds of the measurement, or since the rate has been used.
    rounds: u32,
    /// Totals when the measurement began.
    since: Time,
    delivered: u64,
    lost: u64,
}

impl Policer {
    pub const fn new() -> Self {
        Self {
            rate: 0,
            in_use: false,
            samples: false,
            rounds: 0,
            since: Time::ZERO,
            delivered: 0,
            lost: 0,
        }
    }

    /// The rate of the policer, bits per second, while it is used.
    pub fn rate(&self) -> Option<u64> {
        self.in_use.then_some(self.rate)
    }

    /// Restarts without a rate.
    pub const fn reset(&mut self) {
        *self = Self::new();
    }

    const fn begin(&mut self, at: &Totals) {
        self.since = at.now;
        self.delivered = at.delivered;
        self.lost = at.lost;
        self.rounds = 0;
    }

    /// Processes an acknowledgement. `probes`: whether the algorithm is in its cycle of probes. Returns
    /// whether the rate is no longer used, so that the cycle restarts.
    pub fn on_ack(&mut self, at: &Totals, probes: bool) -> bool {
        if self.in_use {
            self.rounds += u32::from(probes && at.round_start);
            let ends = self.rounds >= USE_ROUNDS;
            if ends {
                self.reset();
            }
            return ends;
        }
        if !self.samples {
            // A measurement begins with a loss, when the tokens of the policer are exhausted.
            if !at.has_losses {
                return false;
            }
            self.begin(at);
            self.samples = true;
        }
        if at.app_limited {
            self.reset();
            return false;
        }
        self.rounds += u32::from(at.round_start);
        if self.rounds > MOST_ROUNDS {
            self.reset();
        } else if self.rounds >= LEAST_ROUNDS && at.has_losses {
            self.end_measurement(at);
        }
        false
    }

    /// Ends a measurement, if enough was lost.
    fn end_measurement(&mut self, at: &Totals) {
        let (lost, delivered) = (at.lost - self.lost, at.delivered - self.delivered);
        let lasted = at.now.since(self.since).as_nanos();
        if delivered == 0 || lost * 256 < LOSS_PER_256 * delivered || lasted < 1_000_000 {
            return;
        }
        let rate = (delivered as u128 * 8_000_000_000 / lasted as u128) as u64;
        let difference = rate.abs_diff(self.rate);
        let same = difference * RATIO <= self.rate || difference <= DIFFERENCE;
        if self.rate > 0 && same {
            self.rate = u64::midpoint(rate, self.rate);
            self.in_use = true;
            self.rounds = 0;
        } else {
            self.rate = rate;
            self.begin(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Duration;

    use super::*;

    /// Rounds of 100 ms in which `delivered` bytes arrive and `lost` bytes do not, until the rate is used.
    fn rounds_until_used(policer: &mut Policer, delivered: u64, lost: u64, most: u32) -> u32 {
        let mut at = Totals {
            now: Time::ZERO,
            delivered: 0,
            lost: 0,
            has_losses: true,
            app_limited: false,
            round_start: true,
        };
        for round in 1..=most {
            at.now += Duration::from_millis(100);
            at.delivered += delivered;
            at.lost += lost;
            policer.on_ack(&at, true);
            if policer.rate().is_some() {
                return round;
            }
        }
        most
    }

    #[test]
    fn two_measurements_of_four_rounds_with_the_same_rate_and_a_fifth_lost_show_a_policer() {
        let mut policer = Policer::new();
        assert_eq!(rounds_until_used(&mut policer, 100_000, 20_000, 100), 4 + 4);
        assert_eq!(policer.rate(), Some(8_000_000));
        let mut policer = Policer::new();
        assert_eq!(rounds_until_used(&mut policer, 100_000, 19_000, 100), 100, "19 of 100 lost");
    }

    #[test]
    fn the_rate_is_used_for_48_rounds() {
        let mut policer = Policer::new();
        rounds_until_used(&mut policer, 100_000, 30_000, 100);
        let at = Totals {
            now: Time::from_secs(9),
            delivered: 0,
            lost: 0,
            has_losses: false,
            app_limited: false,
            round_start: true,
        };
        assert!((1..48).all(|_| !policer.on_ack(&at, true)));
        assert!(policer.on_ack(&at, true) && policer.rate().is_none());
    }

    #[test]
    fn an_application_without_data_ends_a_measurement() {
        let mut policer = Policer::new();
        rounds_until_used(&mut policer, 100_000, 30_000, 4);
        let at = Totals {
            now: Time::from_secs(1),
            delivered: 400_000,
            lost: 120_000,
            has_losses: false,
            app_limited: true,
            round_start: true,
        };
        policer.on_ack(&at, true);
        assert_eq!((policer.rate, policer.samples), (0, false));
    }
}
