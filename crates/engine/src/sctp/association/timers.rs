//! Timers and deadlines.

use ropewalk_base::{PathId, Time};

use super::{Association, State};

impl Association {
    /// When [`Association::handle_timeout`] must be called at the latest.
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        debug_assert!(self.timers_moved || self.paths_due == self.paths_deadline());
        let mut next = if self.timers_moved { self.paths_deadline() } else { self.paths_due };
        // Without a branch per timer, because it is called after every input.
        let mut consider = |at: Option<Time>| next = next.min(at.unwrap_or(Time::FAR_FUTURE));
        consider(self.inbound.deadline);
        consider(self.sender.wait_until);
        if matches!(self.state, State::Established) {
            return (next != Time::FAR_FUTURE).then_some(next);
        }
        match &self.state {
            State::CookieWait { t1 } | State::CookieEchoed { t1, .. } => consider(Some(t1.at)),
            State::ShutdownSent { t2, guard } => consider(Some(t2.at.min(*guard))),
            State::ShutdownAckSent { t2, .. } => consider(Some(t2.at)),
            _ => {}
        }
        (next != Time::FAR_FUTURE).then_some(next)
    }

    /// The earliest timer of any path or of the zero-window probe; [`Time::FAR_FUTURE`] if none runs.
    fn paths_deadline(&self) -> Time {
        let mut next = self.sender.outstanding.window_probe.deadline().unwrap_or(Time::FAR_FUTURE);
        let mut consider = |at: Option<Time>| next = next.min(at.unwrap_or(Time::FAR_FUTURE));
        for path in &self.sender.paths {
            consider(path.t3);
            consider(self.loss_deadline(path));
            consider(path.heartbeat.due);
            consider(path.heartbeat.pending.map(|(_, at)| at));
            consider(path.mtu.as_ref().and_then(|search| search.deadline()));
        }
        next
    }

    /// Stores the earliest timer of all paths once an input has been drained. DATA changes none of these
    /// timers, so an association that only receives need not visit its paths.
    #[inline]
    pub(super) fn settle_timers(&mut self) {
        if self.timers_moved {
            self.paths_due = self.paths_deadline();
            self.timers_moved = false;
        }
    }

    /// Handles all timers that have expired by `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.timers_moved = true;
        self.refill_bursts();
        if self.sender.wait_until.is_some_and(|at| at <= now) {
            self.sender.wait_until = None;
            if matches!(self.state, State::Closed) {
                self.begin(now);
            }
        }
        self.on_sack_timer(now);
        self.on_window_timer(now);
        for i in 0..self.sender.paths.len() {
            let id = PathId::from_index(i);
            if self.sender.paths[i].t3.is_some_and(|at| at <= now) {
                self.on_t3(now, id);
            }
            if self.loss_deadline(&self.sender.paths[i]).is_some_and(|at| at <= now) {
                self.on_loss_timer(now, id);
            }
            let heartbeat = &self.sender.paths[i].heartbeat;
            let pending = heartbeat.pending.is_some_and(|(_, at)| at <= now);
            if pending || heartbeat.due.is_some_and(|at| at <= now) {
                self.on_heartbeat_timer(now, id);
            }
            if self.sender.paths[i].mtu.is_some() {
                self.on_mtu_timer(now, id);
            }
        }
        self.on_t1(now);
        self.on_t2(now);
    }

    /// A new input: refills the burst allowance of each path and invalidates the scheduler's views.
    #[inline]
    pub(super) fn refill_bursts(&mut self) {
        self.sender.drained = false;
        if !self.bursts_spent {
            return;
        }
        self.bursts_spent = false;
        let burst = if self.config.max_burst == 0 { u32::MAX } else { self.config.max_burst };
        for path in &mut self.sender.paths {
            path.tx.burst_left = burst;
        }
    }
}
