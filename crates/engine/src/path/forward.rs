//! Forward delay from timestamps (Sarwar et al., 2013, Section II-C).

use ropewalk_base::Duration;

use super::min_delay::MinDelayFilter;

/// Smoothed difference between the receiver's clock at arrival and the sender's clock at transmission (Eq 6:
/// `T_r - T_e - T_s`). It includes the offset of the two clocks. Only differences between paths measured with
/// the same clocks are meaningful.
#[derive(Clone, Debug, Default)]
pub struct ForwardDelay {
    smoothed_nanos: Option<i64>,
    last_nanos: i64,
    floor: MinDelayFilter,
}

impl ForwardDelay {
    /// Takes a sample: the sender's clock at transmission and the receiver's clock at arrival. EWMA with
    /// weight 1/8, as for the round trip.
    pub fn sample(&mut self, departed: u64, arrived: u64) {
        let raw = arrived.wrapping_sub(departed) as i64;
        let smoothed = match self.smoothed_nanos {
            None => raw,
            // The peer chooses these numbers, so the arithmetic must not overflow.
            Some(old) => old.wrapping_add(raw.wrapping_sub(old) / 8),
        };
        self.last_nanos = raw;
        self.smoothed_nanos = Some(smoothed);
        self.floor.sample(smoothed);
    }

    /// The smoothed difference, nanoseconds, clock offset included.
    #[inline]
    pub const fn raw_nanos(&self) -> Option<i64> {
        self.smoothed_nanos
    }

    /// Delay above its minimum: the queueing delay, in our own queue or that of other flows.
    #[inline]
    pub fn queueing(&self) -> Option<Duration> {
        let above = self.smoothed_nanos?.saturating_sub(self.floor.least()?);
        Some(Duration::from_nanos(above.max(0) as u64))
    }

    /// The same for the last packet alone: a burst queues behind itself, but its first packet does not.
    pub fn last_queueing(&self) -> Option<Duration> {
        let above = self.last_nanos.saturating_sub(self.floor.least()?);
        Some(Duration::from_nanos(above.max(0) as u64))
    }

    /// The minimum smoothed difference, nanoseconds, clock offset included.
    pub const fn least_nanos(&self) -> Option<i64> {
        self.floor.least()
    }

    /// The filter of the minimum delay.
    pub const fn floor_mut(&mut self) -> &mut MinDelayFilter {
        &mut self.floor
    }
}
