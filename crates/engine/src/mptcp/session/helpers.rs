//! What helps a scheduler while the peer's window is shut (Raiciu et al., 2012, 4.2).

use ropewalk_base::Time;

use super::super::segment::Segment;
use super::Session;
use super::board::Place;
use crate::congestion::CongestionControl;
use crate::departure::Departure;
use crate::scheduler::{Decision, Reason, resend_on};

impl Session {
    /// Halves the window of the path that keeps the peer's window shut, and sends the oldest unit
    /// again on the fast path, as far as either is asked for and the rules allow.
    pub(super) fn help(&mut self, now: Time, segment: &mut Segment) -> Option<Departure> {
        let helpers = self.config.helpers;
        let (unit, record) = self.board.front()?;
        let Place::Given { to: holder, .. } = record.place else { return None };
        let first_copy = record.given == 1;
        // A path that repairs a loss has been halved for it.
        let repairs = self.subflows[holder.index()].tx.recovery_exit.is_some();
        if helpers.penalise && !repairs && self.penalty.due(now, &self.views, holder) {
            self.congestion.penalise(holder);
            self.accounts.stats.penalised += 1;
            let cwnd = self.congestion.window(holder);
            let view = &mut self.views[holder.index()];
            view.cwnd = cwnd;
            view.window = view.window.min(cwnd);
        }
        if !helpers.opportunistic || !first_copy {
            return None;
        }
        let path = resend_on(&self.views, holder, self.segment_limit as u64)?;
        self.accounts.stats.unblocked += 1;
        self.record(now, Decision::send(path, 0, Reason::Unblock), Some(unit));
        Some(self.send_unit(now, path, unit, segment))
    }
}
