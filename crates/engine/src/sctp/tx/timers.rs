//! Deadlines and burst allowances of a sender.

use ropewalk_base::{PathId, Time};

use super::zero_window::WindowProbe;
use super::{PathReports, Sender};

impl Sender {
    /// The earliest timer of any path or of the zero-window probe; [`Time::FAR_FUTURE`] if none runs.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.outstanding.deadline.get(|| self.earliest_timer())
    }

    fn earliest_timer(&self) -> Time {
        let mut next = self.outstanding.window_probe.deadline().unwrap_or(Time::FAR_FUTURE);
        // Branch-free, because it is called after every input.
        let mut consider = |at: Option<Time>| next = next.min(at.unwrap_or(Time::FAR_FUTURE));
        consider(self.limits_deadline());
        for path in &self.paths {
            consider(path.t3);
            consider(self.loss_deadline(path));
            consider(self.rescue_deadline(path));
            consider(path.mtu.as_ref().and_then(|search| search.deadline()));
        }
        next
    }

    /// Stores the earliest timer once an input has been drained. DATA changes no timer of the sender, so
    /// an association that only receives need not visit its paths.
    #[inline]
    pub fn settle_timers(&mut self) {
        if self.outstanding.deadline.is_stale() {
            self.outstanding.deadline.store(self.earliest_timer());
        }
    }

    /// A new input: refills the burst allowance of each path and invalidates the scheduler's views.
    #[inline]
    pub fn refill_bursts(&mut self) {
        self.invalidate_views();
        if !self.outstanding.bursts_spent {
            return;
        }
        self.outstanding.bursts_spent = false;
        let most = self.outstanding.config.max_burst;
        let burst = if most == 0 { u32::MAX } else { most };
        for path in &mut self.paths {
            path.tx.burst_left = burst;
        }
    }

    /// Findings of the last inputs about the paths.
    #[inline]
    pub fn take_reports(&mut self) -> PathReports {
        std::mem::take(&mut self.outstanding.reports)
    }

    /// Stops the timers of a path.
    pub fn stop_path(&mut self, id: PathId) {
        self.paths[id.index()].t3 = None;
        self.outstanding.deadline.invalidate();
        self.pause_mtu_search(id);
    }

    /// Stops all timers.
    pub fn stop(&mut self) {
        (0..self.paths.len()).for_each(|i| self.stop_path(PathId::from_index(i)));
        self.wait_until = None;
        if let Some(limits) = &mut self.outstanding.limits {
            limits.stop();
        }
        self.outstanding.window_probe = WindowProbe::Idle;
    }
}
