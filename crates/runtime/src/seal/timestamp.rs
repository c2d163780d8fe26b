//! The time in a first message, which identifies replays.

#![allow(
    clippy::disallowed_methods,
    reason = "a first message must be newer than those of an earlier process: only the date knows"
)]

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use ropewalk_base::Duration;
use ropewalk_base::date::utc_text;

/// Nanoseconds since 1970 by a machine's clock. Timestamps of first messages are only compared with others of the same key,
/// so the clocks of two machines need not agree. The clock of one machine must not go backwards while no process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The system's date; 1970 if its clock is set to an earlier date.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(since.as_nanos() as u64)
    }

    /// The date for a first message: the system's date, but later than those of all previous first messages of this
    /// process, even if the clock was set back meanwhile.
    pub fn of_first_message() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self::now().after(&LAST)
    }

    /// This date, or one later than `last`, the last date returned.
    fn after(self, last: &AtomicU64) -> Self {
        let later = |last: u64| self.0.max(last.saturating_add(1));
        let update =
            last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(later(last)));
        Self(update.map_or(self.0, later))
    }

    /// `nanos` nanoseconds since 1970.
    pub const fn from_unix_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since 1970.
    pub const fn as_unix_nanos(self) -> u64 {
        self.0
    }

    /// The absolute difference between this date and another.
    pub(super) const fn apart_from(self, other: Self) -> Duration {
        Duration::from_nanos(self.0.abs_diff(other.0))
    }
}

/// How much later `a` is than `b`, seconds; negative if it is earlier.
pub fn difference(a: Timestamp, b: Timestamp) -> f64 {
    let apart = a.apart_from(b).as_secs_f64();
    if a < b { -apart } else { apart }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&utc_text(self.0 / 1_000_000_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_messages_of_a_process_have_rising_dates_although_its_clock_is_set_back() {
        let last = AtomicU64::new(0);
        let dates = [10, 20, 20, 5, 6, 30].map(|now| Timestamp(now).after(&last).0);
        assert_eq!(dates, [10, 20, 21, 22, 23, 30]);
    }
}
