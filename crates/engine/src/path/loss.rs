//! Estimate of the loss rate of a path.

use ropewalk_base::Duration;

/// Idle time in which the estimate is halved, seconds.
const HALF_LIFE_S: f64 = 10.0;

/// Share of transmissions lost, EWMA over about 256.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossEstimate {
    share: f64,
}

impl LossEstimate {
    /// Updates the estimate with one lost transmission.
    #[inline]
    pub fn note_loss(&mut self) {
        self.share += (1.0 - self.share) / 256.0;
    }

    /// Updates the estimate with `count` transmissions that arrived.
    #[inline]
    pub fn note_arrivals(&mut self, count: u32) {
        if self.share > 0.0 {
            (0..count).for_each(|_| self.share -= self.share / 256.0);
        }
    }

    /// The estimate after the path was idle for `idle`, halved per half-life, so that a path is never
    /// given up permanently.
    #[inline]
    pub fn aged(&self, idle: Duration) -> f64 {
        if idle < Duration::from_secs(1) {
            return self.share;
        }
        self.share * (-idle.as_secs_f64() / HALF_LIFE_S).exp2()
    }

    /// Resets the estimate when the path returns from failure: earlier losses are no longer relevant.
    pub const fn forget(&mut self) {
        self.share = 0.0;
    }
}
