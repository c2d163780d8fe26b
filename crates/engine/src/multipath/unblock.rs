//! Measures against a receive window that the oldest unit keeps closed: opportunistic retransmission and
//! penalisation (Raiciu et al., 2012, 4.2), and the retransmission that DAPS requests.

use ropewalk_base::{PathId, Time};

use super::sender::earlier;
use super::{Oldest, Outstanding, Sender};
use crate::congestion::CongestionControl;
use crate::scheduler::{Decision, PathView, Reason, Schedule, resend_on};

impl<O: Outstanding> Sender<O> {
    /// The path on which the oldest unit must be retransmitted now, and the unit.
    #[inline]
    pub fn unblock(&mut self, now: Time) -> Option<(PathId, u64)> {
        if self.sendable_left > 0 || !self.outstanding.is_blocked_by_oldest() {
            return None;
        }
        let repeats = self.scheduler.resends_when_blocked();
        if !repeats && !self.config.mitigation.any() {
            return None;
        }
        self.repeat_oldest(now, repeats)
    }

    #[inline(never)]
    fn repeat_oldest(&mut self, now: Time, repeats: bool) -> Option<(PathId, u64)> {
        let oldest = self.outstanding.oldest(&self.paths)?;
        let mut path = None;
        if self.config.mitigation.any() {
            path = self.mitigate(now, &oldest);
        }
        if path.is_none() && repeats && oldest.transmissions == 1 {
            path = self.sooner_path(now, &oldest);
        }
        let path = path?;
        self.measurements.stats.unblocked += 1;
        let decision = Decision::send(path, 0, Reason::Unblock);
        self.record(now, decision, Some(oldest.unit));
        Some((path, oldest.unit))
    }

    /// Halves the congestion window of the path that carries the oldest unit, and returns the path for
    /// its retransmission, if configured and if the respective conditions are met.
    fn mitigate(&mut self, now: Time, oldest: &Oldest) -> Option<PathId> {
        let holder = oldest.path;
        // The window of a path in recovery has already been halved for its loss.
        let repairs = self.paths[holder.index()].as_ref().recovery_exit.is_some();
        let penalise = self.config.mitigation.penalise && !repairs;
        if penalise && self.penalty.due(now, &self.views, holder) {
            self.congestion.penalise(holder);
            self.measurements.stats.penalised += 1;
            let cwnd = self.congestion.window(holder);
            let view = &mut self.views[holder.index()];
            view.cwnd = cwnd;
            view.window = view.window.min(cwnd);
        }
        if !self.config.mitigation.opportunistic || oldest.transmissions > 1 {
            return None;
        }
        resend_on(&self.views, holder, self.outstanding.budget().chunk)
    }

    /// The open path that delivers the oldest unit soonest, if that is sooner than its current path, or
    /// if the unit is overdue there. Otherwise the scheduler decides again when the unit becomes overdue.
    fn sooner_path(&mut self, now: Time, oldest: &Oldest) -> Option<PathId> {
        let sent_at = oldest.sent_at?;
        let rtt = &self.paths[oldest.path.index()].as_ref().rtt;
        let patience = rtt.srtt()? + rtt.rttvar() * 4 + self.config.peer_acks.delay;
        let overdue = now >= sent_at + patience;
        let due = sent_at + self.views[oldest.path.index()].forward_delay?;
        let is_sooner = |view: &&PathView| {
            let another = view.id != oldest.path;
            let sooner = another && view.forward_delay.is_some_and(|delay| now + delay < due);
            let again = overdue && (another || O::REPEATS_ON_SAME_PATH);
            view.is_open() && (sooner || again)
        };
        let quickest = self.views.iter().filter(is_sooner).min_by_key(|view| view.forward_delay);
        if quickest.is_none() && !overdue {
            self.wait_until = Some(earlier(self.wait_until, sent_at + patience));
        }
        quickest.map(|view| view.id)
    }
}
