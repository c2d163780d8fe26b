//! Forward delay from timestamps (Sarwar et al., 2013, Section II-C).

use ropewalk_base::Duration;

use super::min_delay::MinDelayFilter;

/// Smoothed difference of the receiver's clock at arrival and the sender's at departure (Eq 6:
/// `T_r - T_e - T_s`). It holds the offset of the two clocks; only differences between paths that
/// were measured with the same clocks mean anything.
#[derive(Clone, Debug, Default)]
pub struct ForwardDelay {
    smoothed_nanos: Option<i64>,
    last_nanos: i64,
    floor: MinDelayFilter,
}

impl ForwardDelay {
    /// Takes a sample: receiver's clock when the packet arrived, sender's when it left. EWMA 1/8,
    /// as for the round trip.
    pub fn sample(&mut self, departed: u64, arrived: u64) {
        let raw = arrived.wrapping_sub(departed) as i64;
        let smoothed = match self.smoothed_nanos {
            None => raw,
            // The peer chooses the numbers.
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

    /// How much longer it takes than it did at best: our own queueing, and others'.
    #[inline]
    pub fn queueing(&self) -> Option<Duration> {
        let above = self.smoothed_nanos?.saturating_sub(self.floor.least()?);
        Some(Duration::from_nanos(above.max(0) as u64))
    }

    /// The same of the last packet alone: a burst queues behind itself, but its first packet does not.
    pub fn last_queueing(&self) -> Option<Duration> {
        let above = self.last_nanos.saturating_sub(self.floor.least()?);
        Some(Duration::from_nanos(above.max(0) as u64))
    }

    /// The floor under the delays.
    pub const fn floor_mut(&mut self) -> &mut MinDelayFilter {
        &mut self.floor
    }
}
