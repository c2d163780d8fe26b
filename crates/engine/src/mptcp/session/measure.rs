//! Measurements of a session.

use ropewalk_base::{PathId, Time};

use super::Session;
use crate::measurements::{PathCounters, SenderStats};
use crate::receive::ReceiveStats;
use crate::record::DecisionRecord;
use crate::scheduler::PathView;

impl Session {
    /// Measurements of the receiving side.
    pub const fn receive_stats(&self) -> &ReceiveStats {
        &self.receiver.buffer.stats
    }

    /// Bytes held out of order now, and the window advertised now. With the rules of Linux, the window is
    /// the remainder up to the right edge that was announced last.
    pub fn receive_occupancy(&self) -> (u64, u64) {
        let buffer = &self.receiver.buffer;
        let window = match &self.receiver.linux {
            Some(linux) => linux.edge().saturating_sub(buffer.next()),
            None => buffer.window(),
        };
        (buffer.held_bytes(), window)
    }

    /// Measurements of the sending side.
    pub const fn sender_stats(&self) -> &SenderStats {
        &self.sender.measurements.stats
    }

    /// Counters of each path.
    pub fn path_counters(&self) -> impl ExactSizeIterator<Item = &PathCounters> {
        self.sender.path_counters()
    }

    /// A path as schedulers see it, for time series and reports. Has no side effects.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_view(&self, now: Time, path: PathId) -> PathView {
        self.sender.path_view(now, path)
    }

    /// Takes the decisions recorded since the last call.
    pub fn take_records(&mut self) -> Vec<DecisionRecord> {
        core::mem::take(&mut self.sender.records)
    }

    /// Resets all measurements, at the end of a warm-up.
    pub fn reset_measurements(&mut self, now: Time) {
        self.sender.reset_measurements(now);
        self.receiver.buffer.stats.reset(now);
    }

    /// Brings time-weighted measurements up to date.
    pub fn settle_measurements(&mut self, now: Time) {
        self.sender.measurements.settle(now);
        self.receiver.buffer.stats.settle(now);
    }
}
