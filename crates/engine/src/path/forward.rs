//! Forward delay from timestamps (Sarwar et al., 2013, Section II-C).

use ropewalk_base::Time;

/// Smoothed difference of the receiver's clock at arrival and the sender's at departure (Eq 6:
/// `T_r - T_e - T_s`). It holds the offset of the two clocks; only differences between paths that
/// were measured with the same clocks mean anything.
#[derive(Clone, Debug, Default)]
pub struct ForwardDelay {
    smoothed_nanos: Option<i64>,
    sampled_at: Time,
}

impl ForwardDelay {
    /// Takes a sample: receiver's clock when the packet arrived, sender's when it left. EWMA 1/8,
    /// as for the round trip.
    pub fn sample(&mut self, now: Time, departed: u64, arrived: u64) {
        let raw = arrived.wrapping_sub(departed) as i64;
        self.smoothed_nanos = Some(match self.smoothed_nanos {
            None => raw,
            // The peer chooses the numbers.
            Some(old) => old.wrapping_add(raw.wrapping_sub(old) / 8),
        });
        self.sampled_at = now;
    }

    /// The smoothed difference, nanoseconds, clock offset included.
    #[inline]
    pub const fn raw_nanos(&self) -> Option<i64> {
        self.smoothed_nanos
    }

    /// When the last sample came.
    pub const fn sampled_at(&self) -> Time {
        self.sampled_at
    }
}
