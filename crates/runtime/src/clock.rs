//! The clock of an endpoint: nanoseconds since it was started, by the system's monotonic time.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime is the room that reads the clock, and this the file in which it does"
)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ropewalk_base::Time;

/// A monotonic clock that starts at zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts a clock at 0.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Nanoseconds since the clock was started; never goes back.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }

    /// The system's instant of a time of this clock. If the system cannot represent it, an instant one hour
    /// from now.
    pub fn instant(&self, time: Time) -> Instant {
        const HOUR: Duration = Duration::from_secs(3600);
        let far = Instant::now() + HOUR;
        let offset = Duration::from_nanos(time.as_nanos());
        self.origin.checked_add(offset).map_or(far, |at| at.min(far))
    }
}

/// Time since 1970 (UTC) by the system's clock, for records that people read. It may jump.
pub fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_starts_at_zero_and_never_goes_back() {
        let clock = Clock::start();
        let first = clock.now();
        assert!(clock.now() >= first);
        assert!(clock.instant(Time::FAR_FUTURE) > clock.instant(first));
    }
}
