//! How late things happened.

use ropewalk_base::histogram::Histogram;
use ropewalk_base::{Duration, Time};

/// How much later than they should things happened.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    nanos: Histogram,
}

impl Lateness {
    /// Counts a thing that was due at `due` and happened at `at`.
    pub fn add(&mut self, due: Time, at: Time) {
        self.nanos.add(at.since(due).as_nanos());
    }

    /// How many things were counted.
    pub const fn count(&self) -> u64 {
        self.nanos.total_weight()
    }

    /// The mean.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.nanos.mean() as u64)
    }

    /// What a share `q` of the things did not exceed, to 0.8 %.
    ///
    /// # Panics
    /// If `q` is not in `[0, 1]`.
    pub fn quantile(&self, q: f64) -> Duration {
        Duration::from_nanos(self.nanos.quantile(q))
    }

    /// The worst.
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.nanos.max())
    }
}
