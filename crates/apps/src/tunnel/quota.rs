//! Limits of a hub's client: a rate in each direction, and a volume in each calendar month.
//!
//! All arithmetic uses integers, and no clock is read: the time and the month are arguments.

use std::fmt;
use std::str::FromStr;

use parking_lot::Mutex;
use ropewalk_base::date::civil_from_days;
use ropewalk_base::{Duration, Time};
use serde::{Deserialize, Serialize};

use crate::access::ClientLimits;

/// Units of a bucket's level per bit: at 1 bit/s, a nanosecond adds one unit.
const NANOS: u128 = 1_000_000_000;
/// Time for which a client that was idle before may exceed the rate.
const BURST: Duration = Duration::from_millis(250);
/// Minimum burst, bytes: the largest IP packet.
const LEAST_BURST: u64 = 65_536;
/// Interval of the answers that tell a client that its volume is used up.
const ANSWER_INTERVAL: Duration = Duration::from_secs(1);

/// A calendar month, as text `2026-11`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Month {
    year: u16,
    month: u8,
}

impl Month {
    /// The month (UTC) that contains a time, seconds since 1970.
    pub fn of_unix(seconds: u64) -> Self {
        let (year, month, _) = civil_from_days(seconds / 86_400);
        Self { year, month }
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

impl FromStr for Month {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('-').and_then(|(year, month)| {
            Some(Self { year: year.parse().ok()?, month: month.parse().ok()? })
        });
        let month = parts.filter(|found| (1..=12).contains(&found.month));
        month.ok_or_else(|| format!("`{text}` is no month, such as 2026-11"))
    }
}

impl From<Month> for String {
    fn from(month: Month) -> Self {
        month.to_string()
    }
}

impl TryFrom<String> for Month {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A token bucket. It admits at most its burst, and its rate for the time that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    rate_bps: u64,
    /// Bits divided by [`NANOS`].
    level: u128,
    at: Time,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(rate_bps: u64, now: Time) -> Self {
        Self { rate_bps, level: Self::depth(rate_bps), at: now }
    }

    /// The burst, bytes.
    pub fn burst_bytes(rate_bps: u64) -> u64 {
        let bits = u128::from(rate_bps) * u128::from(BURST.as_nanos()) / NANOS;
        u64::try_from(bits / 8).unwrap_or(u64::MAX).max(LEAST_BURST)
    }

    fn depth(rate_bps: u64) -> u128 {
        u128::from(Self::burst_bytes(rate_bps)) * 8 * NANOS
    }

    /// Adds the tokens that have accrued. A time before the last one adds nothing.
    fn refill(&mut self, now: Time) {
        let accrued = u128::from(self.rate_bps) * u128::from(now.since(self.at).as_nanos());
        self.level = (self.level + accrued).min(Self::depth(self.rate_bps));
        self.at = self.at.max(now);
    }

    /// Whether it has enough for `bytes`.
    fn has(&mut self, now: Time, bytes: u64) -> bool {
        self.refill(now);
        self.level >= u128::from(bytes) * 8 * NANOS
    }

    /// Takes `bytes` that it has.
    const fn take(&mut self, bytes: u64) {
        self.level -= bytes as u128 * 8 * NANOS;
    }
}

/// Bytes of one month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// The month.
    pub month: Month,
    /// Bytes that were carried in it.
    pub bytes: u64,
}

impl Volume {
    /// Starts a new month. An earlier month changes nothing: a clock that was set back grants no new volume.
    fn follow(&mut self, month: Month) {
        if month > self.month {
            *self = Self { month, bytes: 0 };
        }
    }
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    Up,
    /// To the client.
    Down,
}

/// Why a packet exceeds the limits of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// The rate.
    Rate,
    /// The volume of the month.
    Quota {
        /// Whether the sender of the packet is notified, at most once a second.
        answer: bool,
        /// Whether it is the first such packet of the month.
        is_first: bool,
    },
}

/// Usage and limits of one client. Tasks share it.
#[derive(Debug)]
pub struct Meter(Mutex<State>);

#[derive(Debug)]
struct State {
    limits: ClientLimits,
    /// Up and down. `None` without a rate limit.
    buckets: Option<[TokenBucket; 2]>,
    volume: Volume,
    answered_at: Option<Time>,
    /// The month in which the volume was found to be used up.
    used_up: Option<Month>,
    /// Whether the volume has changed since it was last stored.
    changed: bool,
}

impl Meter {
    /// A client that has carried this volume.
    pub fn new(limits: ClientLimits, volume: Volume, now: Time) -> Self {
        let buckets = buckets(limits, now);
        let (answered_at, used_up) = (None, None);
        Self(Mutex::new(State { limits, buckets, volume, answered_at, used_up, changed: false }))
    }

    /// Replaces the limits. Earlier usage still counts.
    pub fn set_limits(&self, limits: ClientLimits, now: Time) {
        let mut state = self.0.lock();
        if state.limits.rate_bps != limits.rate_bps {
            state.buckets = buckets(limits, now);
        }
        if state.limits.quota_bytes != limits.quota_bytes {
            state.used_up = None;
        }
        state.limits = limits;
    }

    /// Counts a packet, if it is within the limits.
    ///
    /// # Errors
    /// [`Excess`]; in that case nothing is counted.
    pub fn admit(
        &self,
        (now, month): (Time, Month),
        direction: Direction,
        bytes: usize,
    ) -> Result<(), Excess> {
        let mut state = self.0.lock();
        let bytes = bytes as u64;
        state.volume.follow(month);
        let total = state.volume.bytes.saturating_add(bytes);
        if state.limits.quota_bytes.is_some_and(|most| total > most) {
            let answer = state.answered_at.is_none_or(|at| now.since(at) >= ANSWER_INTERVAL);
            if answer {
                state.answered_at = Some(now);
            }
            let month = Some(state.volume.month);
            let is_first = std::mem::replace(&mut state.used_up, month) != month;
            return Err(Excess::Quota { answer, is_first });
        }
        if let Some(buckets) = &mut state.buckets {
            let bucket = &mut buckets[direction as usize];
            if !bucket.has(now, bytes) {
                return Err(Excess::Rate);
            }
            bucket.take(bytes);
        }
        state.volume.bytes = total;
        state.changed = true;
        Ok(())
    }

    /// The limits, and the usage of the month of the last packet.
    pub fn read(&self) -> (ClientLimits, Volume) {
        let state = self.0.lock();
        (state.limits, state.volume)
    }

    /// Whether the volume has changed since the last call.
    pub fn take_changed(&self) -> bool {
        std::mem::take(&mut self.0.lock().changed)
    }
}

fn buckets(limits: ClientLimits, now: Time) -> Option<[TokenBucket; 2]> {
    limits.rate_bps.map(|rate| [TokenBucket::new(rate, now); 2])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MONTH: Month = Month { year: 2026, month: 11 };

    #[test]
    fn a_month_is_that_of_the_calendar() {
        // From `date --utc --date=... +%s`.
        for (seconds, month) in [
            (0, "1970-01"),
            (951_868_799, "2000-02"),
            (951_868_800, "2000-03"),
            (1_798_761_599, "2026-12"),
            (1_798_761_600, "2027-01"),
            (4_107_542_399, "2100-02"),
            (4_107_542_400, "2100-03"),
        ] {
            assert_eq!(Month::of_unix(seconds).to_string(), month, "{seconds}");
            assert_eq!(month.parse(), Ok(Month::of_unix(seconds)));
        }
        assert!("2026-13".parse::<Month>().is_err() && "2026".parse::<Month>().is_err());
    }

    #[test]
    fn the_volume_begins_again_with_the_month_and_not_when_the_clock_is_set_back() {
        let limits = ClientLimits { rate_bps: None, quota_bytes: Some(1000) };
        let meter = Meter::new(limits, Volume::default(), Time::ZERO);
        let admit = |month, bytes| meter.admit((Time::ZERO, month), Direction::Up, bytes);
        let (october, december) = (Month { month: 10, ..MONTH }, Month { month: 12, ..MONTH });
        assert_eq!(admit(MONTH, 600), Ok(()));
        let quota = |answer, is_first| Err(Excess::Quota { answer, is_first });
        assert_eq!(admit(MONTH, 401), quota(true, true));
        assert_eq!(admit(MONTH, 401), quota(false, false));
        assert_eq!(admit(october, 401), quota(false, false), "set back");
        assert_eq!(admit(MONTH, 400), Ok(()), "a smaller packet fits");
        assert_eq!(admit(december, 1000), Ok(()));
        assert_eq!(meter.read().1, Volume { month: december, bytes: 1000 });
        meter.set_limits(ClientLimits { quota_bytes: Some(2000), ..limits }, Time::ZERO);
        assert_eq!(admit(december, 1000), Ok(()));
        assert_eq!(admit(december, 1), quota(false, true), "of another month and limit");
    }

    #[test]
    fn the_answers_about_a_used_up_volume_are_limited() {
        let limits = ClientLimits { rate_bps: None, quota_bytes: Some(1) };
        let meter = Meter::new(limits, Volume::default(), Time::ZERO);
        let answers = (0..10_000).filter(|ms| {
            let now = Time::from_millis(*ms);
            let admitted = meter.admit((now, MONTH), Direction::Down, 100);
            matches!(admitted, Err(Excess::Quota { answer: true, .. }))
        });
        assert_eq!(answers.count(), 10);
    }

    proptest! {
        /// Between any two packets that pass, at most the burst and the rate for the time pass. A packet is refused
        /// only if that much has been used.
        #[test]
        fn a_rate_is_kept_and_is_available(
            rate in 1_u64..50_000_000_000,
            steps in proptest::collection::vec((0_u64..2_000_000_000, 1_usize..65_536), 1..200),
        ) {
            let limits = ClientLimits { rate_bps: Some(rate), quota_bytes: None };
            let meter = Meter::new(limits, Volume::default(), Time::ZERO);
            let burst = u128::from(TokenBucket::burst_bytes(rate)) * 8 * NANOS;
            let mut now = 0_u64;
            // The expected level of the bucket, computed differently: bits passed, and time since it was full.
            let (mut full_at, mut used) = (0_u64, 0_u128);
            let mut passed: Vec<(u64, u128)> = Vec::new();
            for (pause, bytes) in steps {
                now += pause;
                let accrued = u128::from(rate) * u128::from(now - full_at);
                if accrued >= used {
                    (full_at, used) = (now, 0);
                }
                let accrued = u128::from(rate) * u128::from(now - full_at);
                let cost = bytes as u128 * 8 * NANOS;
                let at = (Time::from_nanos(now), MONTH);
                let admitted = meter.admit(at, Direction::Up, bytes).is_ok();
                prop_assert_eq!(admitted, used + cost <= burst + accrued);
                if admitted {
                    used += cost;
                    passed.push((now, cost));
                }
            }
            for from in 0..passed.len() {
                let mut sum = 0;
                for (at, cost) in &passed[from..] {
                    sum += cost;
                    prop_assert!(sum <= burst + u128::from(rate) * u128::from(at - passed[from].0));
                }
            }
        }

        /// The volume of a month is the sum of what has passed in it, and never exceeds the quota.
        #[test]
        fn a_volume_is_exact(
            quota in proptest::option::of(0_u64..100_000),
            rate in proptest::option::of(1_u64..1_000_000),
            steps in proptest::collection::vec((0_u64..20_000_000, 1_usize..9000, any::<bool>()), 1..200),
        ) {
            let limits = ClientLimits { rate_bps: rate, quota_bytes: quota };
            let meter = Meter::new(limits, Volume::default(), Time::ZERO);
            let mut sums = std::collections::BTreeMap::<Month, u64>::new();
            let mut seconds = 1_700_000_000_u64;
            for (pause, bytes, up) in steps {
                seconds += pause / 10;
                let month = Month::of_unix(seconds);
                let direction = if up { Direction::Up } else { Direction::Down };
                let at = (Time::from_nanos(pause), month);
                let sum = sums.entry(month).or_default();
                let fits = quota.is_none_or(|quota| *sum + bytes as u64 <= quota);
                match meter.admit(at, direction, bytes) {
                    Ok(()) => *sum += bytes as u64,
                    Err(Excess::Rate) => prop_assert!(rate.is_some()),
                    Err(Excess::Quota { .. }) => prop_assert!(!fits),
                }
                prop_assert!(quota.is_none_or(|quota| *sum <= quota));
                prop_assert_eq!(meter.read().1, Volume { month, bytes: *sum });
            }
        }
    }
}
