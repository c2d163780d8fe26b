//! Measurements of an association.

use ropewalk_base::Time;

use crate::measurements::{PathCounters, SenderStats};

impl super::Association {
    /// Resets all measurements, at the end of a warm-up.
    pub fn reset_measurements(&mut self, now: Time) {
        self.sender.measurements.settle(now);
        self.sender.measurements.stats = SenderStats::default();
        self.receiver.buffer.stats.reset(now);
        for path in &mut self.sender.paths {
            path.tx.counters = PathCounters::default();
        }
    }

    /// Updates time-weighted measurements to `now`.
    pub fn settle_measurements(&mut self, now: Time) {
        self.sender.measurements.settle(now);
        self.receiver.buffer.stats.settle(now);
    }

    /// Statistics of the sending side.
    pub const fn sender_stats(&self) -> &SenderStats {
        &self.sender.measurements.stats
    }

    /// Counters of each path.
    pub fn path_counters(&self) -> impl ExactSizeIterator<Item = &PathCounters> {
        self.sender.paths.iter().map(|p| &p.tx.counters)
    }
}
