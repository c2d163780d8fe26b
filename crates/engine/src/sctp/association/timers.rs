//! Timers and deadlines, and the sender's reports after an input.

use ropewalk_base::{PathId, Time};

use super::{Association, Event, State};
use crate::congestion::{CongestionControl, IdleDecay};
use crate::path::PathStatus;
use crate::sctp::tx::{PathReports, T3Expiry};

impl Association {
    /// Latest time at which [`Association::handle_timeout`] must be called.
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        let mut next = self.sender.deadline().min(self.control.heartbeats.deadline());
        // Branch-free, because it is called after every input.
        let mut consider = |at: Option<Time>| next = next.min(at.unwrap_or(Time::FAR_FUTURE));
        consider(self.receiver.acks.deadline());
        consider(self.sender.wait_until);
        if let Some(reconfiguration) = &self.control.reconfiguration {
            consider(reconfiguration.deadline());
        }
        if let Some(addresses) = &self.control.addresses {
            consider(addresses.deadline());
        }
        if !matches!(self.state, State::Established) {
            consider(self.state.deadline());
        }
        (next != Time::FAR_FUTURE).then_some(next)
    }

    /// Handles all timers that have expired by `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.sender.outstanding.deadline.invalidate();
        self.sender.refill_bursts();
        if self.sender.wait_until.is_some_and(|at| at <= now) {
            self.sender.wait_until = None;
            if matches!(self.state, State::Closed) {
                self.begin(now);
            }
        }
        self.receiver.acks.on_timer(now);
        self.sender.on_window_timer(now);
        self.sender.drop_expired(now);
        for i in 0..self.sender.paths.len() {
            self.on_path_timers(now, PathId::from_index(i));
        }
        self.on_t1(now);
        self.on_t2(now);
        if self.control.reconfiguration.is_some() {
            self.on_reconfiguration_timer(now);
        }
        if self.control.addresses.is_some() {
            self.on_addresses_timer(now);
        }
    }

    fn on_path_timers(&mut self, now: Time, id: PathId) {
        if self.sender.paths[id.index()].t3.is_some_and(|at| at <= now) {
            self.on_t3(now, id);
        }
        if self.sender.is_loss_timer_due(now, id) {
            self.sender.on_loss_timer(now, id);
            self.follow_reports(now);
        }
        if self.sender.has_limits() {
            self.sender.rescue(now, id);
        }
        if self.control.heartbeats.has_expired(now, id) {
            self.on_heartbeat_timer(now, id);
        }
        if self.sender.paths[id.index()].mtu.is_some() {
            self.on_mtu_timer(now, id);
        }
    }

    /// Handles the expiry of T3 of `id`.
    pub(super) fn on_t3(&mut self, now: Time, id: PathId) {
        let expiry = self.sender.on_t3(now, id);
        if expiry != T3Expiry::Ignored {
            self.control.heartbeats.on_timeout(id);
        }
        if expiry == T3Expiry::Error {
            self.note_path_error(now, id, true);
        }
        self.follow_reports(now);
    }

    fn on_heartbeat_timer(&mut self, now: Time, id: PathId) {
        if !self.state.sends_heartbeats() {
            self.sender.stop_path(id);
            self.control.heartbeats.stop_path(id);
            return;
        }
        let path = &mut self.sender.paths[id.index()];
        if self.control.heartbeats.take_unanswered(now, id, &path.tx) {
            path.tx.rtt.back_off();
            // RFC 9260, 5.4: HEARTBEATs to an unconfirmed address do not count against the association.
            let confirmed = path.tx.state.status() != PathStatus::Unconfirmed;
            let counts = confirmed && self.sender.alone_carries_data(id);
            self.note_path_error(now, id, counts);
        }
        if self.state.is_up() && self.control.heartbeats.is_due(now, id) {
            self.heartbeat_due(now, id);
        }
    }

    /// Handles the HEARTBEAT that is due on `id`.
    pub(super) fn heartbeat_due(&mut self, now: Time, id: PathId) {
        let heartbeats = &mut self.control.heartbeats;
        if let Some(later) = heartbeats.postponed(now, id, &self.sender.paths) {
            heartbeats.set_due(id, later);
            return;
        }
        let tx = &self.sender.paths[id.index()].tx;
        let idle_timeout = tx.flights.is_empty() && tx.idle(now) >= tx.rtt.rto();
        if heartbeats.is_wanted(now, id, tx) {
            let chunk = self.new_heartbeat(now, id);
            self.send_control(id, chunk);
        }
        if idle_timeout && self.config.idle_decay == IdleDecay::Heartbeat {
            self.sender.congestion.on_idle(id, now);
        }
        let paths = &self.sender.paths;
        self.control.heartbeats.schedule(now, id, paths, &mut self.random.rng);
    }

    /// Counts a timeout or an unanswered HEARTBEAT on `id`. `counts`: whether it
    /// also counts against the association.
    pub(super) fn note_path_error(&mut self, now: Time, id: PathId, counts: bool) {
        if self.sender.on_path_error(id) {
            if self.path_status(id) == PathStatus::PotentiallyFailed {
                // RFC 7829, 3, rule 4: probe a potentially failed path with a HEARTBEAT immediately.
                self.control.heartbeats.set_due(id, now);
            }
            self.path_changed(now, id);
        }
        if counts {
            self.control.errors += 1;
            let per_path = self.config.max_retrans_per_path;
            let paths = if per_path { self.sender.paths.len() as u32 } else { 1 };
            let most = self.config.association_max_retrans.saturating_mul(paths);
            if self.control.errors > most {
                self.give_up();
            }
        }
    }

    /// Reports a path's new status, and starts, resumes or pauses its MTU search.
    pub(super) fn path_changed(&mut self, now: Time, id: PathId) {
        self.sender.follow_status(now, id);
        self.send_probes(now, id);
        self.push_event(Event::PathChanged(id, self.path_status(id)));
    }

    /// Acts on path changes that the sender has detected.
    #[inline]
    pub(super) fn follow_reports(&mut self, now: Time) {
        let reports = self.sender.take_reports();
        if reports.acknowledged {
            self.control.errors = 0;
        }
        if reports.needs_action() {
            self.follow_path_reports(now, reports);
        } else {
            self.control.heartbeats.on_heard(reports.heard);
        }
    }

    #[cold]
    fn follow_path_reports(&mut self, now: Time, reports: PathReports) {
        reports.changed.iter().for_each(|id| self.path_changed(now, id));
        reports.mtu.iter().for_each(|id| self.send_probes(now, id));
        self.control.heartbeats.on_heard(reports.heard);
        reports.silent.iter().for_each(|id| self.control.heartbeats.on_silent(now, id));
    }
}
