//! Round trip and retransmission timeout (RFC 9260, 6.3).

use ropewalk_base::{Duration, Time};

use super::min_delay::MinDelayFilter;

/// Limits of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoLimits {
    /// Value before the first sample. RFC 9260: 1 s (RFC 4960: 3 s).
    pub initial: Duration,
    /// Minimum. RFC 9260: 1 s.
    pub min: Duration,
    /// Maximum. RFC 9260: 60 s.
    pub max: Duration,
}

/// How the timeout is computed from round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoRule {
    /// Divisor of the weight of a sample in the smoothed round trip (RFC 6298: 8).
    pub smoothing: u64,
    /// Divisor of the weight of a sample in its deviation (RFC 6298: 4).
    pub deviation: u64,
    /// Maximum factor by which expiries multiply the timeout (unlimited).
    pub most_doubled: u64,
    /// Formula of the timeout.
    pub formula: RtoFormula,
}

/// How the timeout is computed from the smoothed round trip and its deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RtoFormula {
    /// SRTT + 4 RTTVAR, not below the minimum; expiries double the result. The first sample R makes
    /// RTTVAR = R / 2 (RFC 6298, 2.2 to 2.4 and 5.5).
    #[default]
    Rfc6298,
    /// ns-3 up to release 3.13: SRTT + 4 RTTVAR, or 2 SRTT while RTTVAR is below SRTT / 4. The first sample R
    /// makes RTTVAR = R. Expiries double this value, and the minimum applies to the product: on a short path
    /// the first doublings have no effect.
    Ns3,
    /// Linux: SRTT + 4 RTTVAR, where 4 RTTVAR is at least the minimum (`tcp_rtt_estimator` in
    /// net/ipv4/tcp_input.c), so the timeout is longer than with RFC 6298 by the round trip.
    Linux,
}

impl RtoFormula {
    fn first_deviation(self, rtt: Duration) -> Duration {
        match self {
            Self::Rfc6298 | Self::Linux => rtt / 2,
            Self::Ns3 => rtt,
        }
    }

    /// The timeout before the limits apply.
    fn timeout(self, srtt: Duration, rttvar: Duration, least: Duration) -> Duration {
        match self {
            Self::Linux => srtt + (rttvar * 4).max(least),
            Self::Ns3 if rttvar < srtt / 4 => srtt * 2,
            Self::Rfc6298 | Self::Ns3 => srtt + rttvar * 4,
        }
    }
}

impl Default for RtoRule {
    fn default() -> Self {
        Self { smoothing: 8, deviation: 4, most_doubled: u64::MAX, formula: RtoFormula::Rfc6298 }
    }
}

/// Smoothed round trip, mean deviation and timeout of one path.
///
/// `repr(C)` keeps the order of the fields, with those that only a sample accesses last.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct RttEstimator {
    smoothed: Option<(Duration, Duration)>,
    last: Option<Duration>,
    rto: Duration,
    /// The timeout without expiries.
    calm: Duration,
    sampled_at: Time,
    floor: MinDelayFilter,
    limits: RtoLimits,
    rule: RtoRule,
    /// Factor by which expiries have multiplied the timeout without limits, for [`RtoFormula::Ns3`].
    doubled: u64,
}

impl RttEstimator {
    /// An estimator without a sample.
    pub fn new(limits: RtoLimits) -> Self {
        Self::with_rule(limits, RtoRule::default())
    }

    /// An estimator without a sample that follows another rule.
    pub fn with_rule(limits: RtoLimits, rule: RtoRule) -> Self {
        let floor = MinDelayFilter::default();
        let (rto, calm) = (limits.initial, limits.initial);
        let (smoothed, last, sampled_at) = (None, None, Time::ZERO);
        Self { limits, rule, smoothed, last, floor, rto, calm, doubled: 1, sampled_at }
    }

    /// Takes a sample (RFC 9260, 6.3.1 C2, C3). The caller applies Karn's algorithm (C5).
    pub fn sample(&mut self, now: Time, rtt: Duration) {
        let rtt = rtt.max(Duration::from_nanos(1));
        let (srtt, rttvar) = match self.smoothed {
            None => (rtt, self.rule.formula.first_deviation(rtt)),
            Some((srtt, rttvar)) => {
                let distance = srtt.abs_diff(rtt);
                match self.rule {
                    // The usual values need no division by a variable.
                    RtoRule { smoothing: 8, deviation: 4, .. } => {
                        ((srtt * 7 + rtt) / 8, (rttvar * 3 + distance) / 4)
                    }
                    RtoRule { smoothing: s, deviation: d, .. } => {
                        ((srtt * (s - 1) + rtt) / s, (rttvar * (d - 1) + distance) / d)
                    }
                }
            }
        };
        self.smoothed = Some((srtt, rttvar));
        self.last = Some(rtt);
        self.floor.sample(srtt.as_nanos() as i64);
        self.sampled_at = now;
        self.set_timeout(srtt, rttvar);
    }

    fn set_timeout(&mut self, srtt: Duration, rttvar: Duration) {
        self.doubled = 1;
        let timeout = self.rule.formula.timeout(srtt, rttvar, self.limits.min);
        self.calm = timeout.max(self.limits.min).min(self.limits.max);
        self.rto = self.calm;
    }

    /// Changes the limits, which also apply to the current timeout.
    pub fn set_limits(&mut self, limits: RtoLimits) {
        let calm = self.rto == self.calm;
        self.limits = limits;
        self.calm = match self.smoothed {
            None => limits.initial,
            Some((srtt, rttvar)) => {
                self.rule.formula.timeout(srtt, rttvar, limits.min).max(limits.min).min(limits.max)
            }
        };
        self.rto = if calm { self.calm } else { self.rto.max(self.calm).min(limits.max) };
    }

    /// Keeps only the last sample when the path returns from failure.
    pub fn forget(&mut self) {
        let Some(last) = self.last() else { return };
        self.smoothed = None;
        self.floor = MinDelayFilter::default();
        self.sample(self.sampled_at, last);
    }

    /// Doubles the timeout after an expiry (6.3.3 E2). Only a sample resets it: data that was
    /// acknowledged without a sample may have taken longer than the timeout that expired (Karn and
    /// Partridge, 1987).
    pub fn back_off(&mut self) {
        self.rto = match self.rule.formula {
            RtoFormula::Rfc6298 | RtoFormula::Linux => {
                let most = self.calm.saturating_mul(self.rule.most_doubled).min(self.limits.max);
                self.rto.saturating_mul(2).min(most)
            }
            RtoFormula::Ns3 => {
                self.doubled = (self.doubled * 2).min(self.rule.most_doubled);
                let unlimited = self.smoothed.map_or(self.limits.initial, |(srtt, rttvar)| {
                    self.rule.formula.timeout(srtt, rttvar, self.limits.min)
                });
                let product = unlimited.saturating_mul(self.doubled);
                product.max(self.limits.min).min(self.limits.max)
            }
        };
    }

    /// Adapts the timeout after a spurious expiry: the apparently lost data took `rtt` (RFC 4015, 3.2, step
    /// 8).
    pub fn after_spurious_timeout(&mut self, now: Time, rtt: Duration) {
        let (srtt, rttvar) = self.smoothed.unwrap_or((rtt, rtt / 2));
        let (srtt, rttvar) = (srtt.max(rtt), rttvar.max(rtt / 2));
        self.smoothed = Some((srtt, rttvar));
        self.sampled_at = now;
        self.set_timeout(srtt, rttvar);
    }

    /// Smoothed round trip.
    #[inline]
    pub fn srtt(&self) -> Option<Duration> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    /// The last sample, unsmoothed.
    #[inline]
    pub const fn last(&self) -> Option<Duration> {
        self.last
    }

    /// Mean deviation; zero before the first sample.
    #[inline]
    pub fn rttvar(&self) -> Duration {
        self.smoothed.map_or(Duration::ZERO, |(_, var)| var)
    }

    /// Minimum smoothed round trip: that of the path without queueing.
    #[inline]
    pub fn base(&self) -> Option<Duration> {
        self.floor.least().map(|nanos| Duration::from_nanos(nanos as u64))
    }

    /// The filter of the minimum round trip.
    pub const fn floor_mut(&mut self) -> &mut MinDelayFilter {
        &mut self.floor
    }

    /// The current timeout.
    #[inline]
    pub const fn rto(&self) -> Duration {
        self.rto
    }

    /// When the last sample was taken.
    #[inline]
    pub const fn sampled_at(&self) -> Time {
        self.sampled_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RtoLimits = RtoLimits {
        initial: Duration::from_secs(1),
        min: Duration::from_millis(1),
        max: Duration::from_secs(60),
    };

    #[test]
    fn the_first_two_samples_follow_the_rfc() {
        let mut rtt = RttEstimator::new(LIMITS);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.sample(Time::ZERO, Duration::from_millis(80));
        assert_eq!(rtt.rto(), Duration::from_millis(80 + 4 * 40));
        rtt.sample(Time::ZERO, Duration::from_millis(160));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(90)));
        assert_eq!(rtt.rttvar(), Duration::from_millis(50));
    }

    #[test]
    fn another_rule_moves_slower_and_doubles_less() {
        let rule = RtoRule { smoothing: 10, deviation: 10, most_doubled: 4, ..RtoRule::default() };
        let mut rtt = RttEstimator::with_rule(LIMITS, rule);
        rtt.sample(Time::ZERO, Duration::from_millis(100));
        rtt.sample(Time::ZERO, Duration::from_millis(200));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(110)));
        assert_eq!(rtt.rttvar(), Duration::from_millis(55));
        let calm = rtt.rto();
        (0..9).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), calm * 4);
    }

    #[test]
    fn ns3_doubles_the_round_trip_where_the_deviation_is_small() {
        let formula = RtoFormula::Ns3;
        let rule = RtoRule { smoothing: 10, deviation: 10, most_doubled: 64, formula };
        let mut rtt = RttEstimator::with_rule(LIMITS, rule);
        rtt.sample(Time::ZERO, Duration::from_millis(100));
        assert_eq!(rtt.rto(), Duration::from_millis(500), "the first deviation is the sample");
        // 0.9^13 < 1/4 < 0.9^14: the deviation falls below a quarter with the fourteenth repetition.
        (0..13).for_each(|_| rtt.sample(Time::ZERO, Duration::from_millis(100)));
        assert!(rtt.rto() > Duration::from_millis(200), "{:?}", rtt.rto());
        rtt.sample(Time::ZERO, Duration::from_millis(100));
        assert_eq!(rtt.rto(), Duration::from_millis(200));
    }

    #[test]
    fn ns3_applies_the_minimum_to_the_doubled_timeout() {
        let limits = RtoLimits { min: Duration::from_millis(200), ..LIMITS };
        let formula = RtoFormula::Ns3;
        let rule = RtoRule { smoothing: 10, deviation: 10, most_doubled: 64, formula };
        let mut rtt = RttEstimator::with_rule(limits, rule);
        (0..20).for_each(|_| rtt.sample(Time::ZERO, Duration::from_millis(30)));
        let timeouts = [1, 2, 4, 8, 16, 32, 64, 64].map(|_| {
            let rto = rtt.rto();
            rtt.back_off();
            rto.as_nanos() / 1_000_000
        });
        assert_eq!(timeouts, [200, 200, 240, 480, 960, 1920, 3840, 3840]);
        rtt.sample(Time::ZERO, Duration::from_millis(30));
        assert_eq!(rtt.rto(), limits.min, "a sample ends the doubling");
    }

    #[test]
    fn a_timeout_that_was_too_soon_makes_the_next_one_later() {
        let mut rtt = RttEstimator::new(LIMITS);
        rtt.sample(Time::ZERO, Duration::from_millis(80));
        rtt.back_off();
        rtt.after_spurious_timeout(Time::ZERO, Duration::from_millis(400));
        assert_eq!(rtt.rto(), Duration::from_millis(400 + 4 * 200));
        rtt.after_spurious_timeout(Time::ZERO, Duration::from_millis(100));
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(400)), "never less than before");
    }

    #[test]
    fn back_off_doubles_up_to_the_limit_until_a_sample_comes() {
        let mut rtt = RttEstimator::new(LIMITS);
        rtt.sample(Time::ZERO, Duration::from_secs(4));
        let calm = rtt.rto();
        rtt.back_off();
        assert_eq!(rtt.rto(), calm * 2);
        (0..10).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), LIMITS.max);
        rtt.sample(Time::ZERO, Duration::from_secs(4));
        assert!(rtt.rto() < calm, "the deviation is smaller now");
    }

    #[test]
    fn other_limits_hold_for_the_timeout_as_it_is_and_leave_doublings_in_place() {
        let wide = RtoLimits { min: Duration::from_secs(3), ..LIMITS };
        let mut rtt = RttEstimator::new(LIMITS);
        rtt.set_limits(RtoLimits { initial: Duration::from_secs(2), ..LIMITS });
        assert_eq!(rtt.rto(), Duration::from_secs(2), "no sample yet");
        rtt.sample(Time::ZERO, Duration::from_millis(80));
        rtt.set_limits(wide);
        assert_eq!(rtt.rto(), wide.min);
        rtt.set_limits(LIMITS);
        assert_eq!(rtt.rto(), Duration::from_millis(80 + 4 * 40));
        rtt.back_off();
        rtt.set_limits(LIMITS);
        assert_eq!(rtt.rto(), Duration::from_millis(480));
        rtt.set_limits(wide);
        assert_eq!(rtt.rto(), wide.min);
        (0..9).for_each(|_| rtt.back_off());
        rtt.set_limits(RtoLimits { max: Duration::from_secs(4), ..wide });
        assert_eq!(rtt.rto(), Duration::from_secs(4));
    }

    #[test]
    fn the_minimum_of_linux_applies_to_the_deviation_alone() {
        let limits = RtoLimits {
            initial: Duration::from_secs(1),
            min: Duration::from_millis(200),
            max: Duration::from_secs(60),
        };
        for (formula, rto) in [(RtoFormula::Rfc6298, 200), (RtoFormula::Linux, 220)] {
            let rule = RtoRule { formula, ..RtoRule::default() };
            let mut estimator = RttEstimator::with_rule(limits, rule);
            for _ in 0..100 {
                estimator.sample(Time::ZERO, Duration::from_millis(20));
            }
            assert_eq!(estimator.rto(), Duration::from_millis(rto), "{formula:?}");
        }
    }
}
