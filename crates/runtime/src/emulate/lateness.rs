//! Statistics of how late events happened.

use ropewalk_base::histogram::Histogram;
use ropewalk_base::{Duration, Time};

/// How much later than planned events happened.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    nanos: Histogram,
}

impl Lateness {
    /// Records an event that was due at `due` and happened at `at`.
    pub fn add(&mut self, due: Time, at: Time) {
        self.nanos.add(at.since(due).as_nanos());
    }

    /// Number of recorded events.
    pub const fn count(&self) -> u64 {
        self.nanos.total_weight()
    }

    /// Mean lateness.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.nanos.mean() as u64)
    }

    /// The lateness that a share `q` of the events did not exceed, to 0.8 %.
    ///
    /// # Panics
    /// If `q` is not in `[0, 1]`.
    pub fn quantile(&self, q: f64) -> Duration {
        Duration::from_nanos(self.nanos.quantile(q))
    }

    /// Maximum lateness.
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.nanos.max())
    }
}
