//! What share of a path's transmissions is lost.

use ropewalk_base::Duration;

/// After so much silence the estimate counts half.
const HALF_LIFE_S: f64 = 10.0;

/// Share of transmissions lost, EWMA over about 256.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossEstimate {
    share: f64,
}

impl LossEstimate {
    /// Moves the estimate by one transmission that was lost.
    #[inline]
    pub fn note_loss(&mut self) {
        self.share += (1.0 - self.share) / 256.0;
    }

    /// Moves the estimate by so many transmissions that arrived.
    #[inline]
    pub fn note_arrivals(&mut self, count: u32) {
        if self.share > 0.0 {
            (0..count).for_each(|_| self.share -= self.share / 256.0);
        }
    }

    /// The estimate after nothing was sent for `idle`, halved for every so much silence: a path is
    /// never condemned for good.
    #[inline]
    pub fn aged(&self, idle: Duration) -> f64 {
        if idle < Duration::from_secs(1) {
            return self.share;
        }
        self.share * (-idle.as_secs_f64() / HALF_LIFE_S).exp2()
    }

    /// The path came back from failure: what it lost before says nothing of now.
    pub const fn forget(&mut self) {
        self.share = 0.0;
    }
}
