//! What helps a scheduler while the peer's window is shut (Raiciu et al., 2012, 4.2).

use ropewalk_base::Time;

use super::super::packet::Packet;
use super::{Association, Departure};
use crate::congestion::CongestionControl;
use crate::recovery::RecordState;
use crate::scheduler::{Decision, Reason, resend_on};

impl Association {
    /// Halves the window of the path that keeps the peer's window shut, and sends the oldest chunk
    /// again on the fast path, as far as either is asked for and the rules allow.
    pub(super) fn help(&mut self, now: Time, packet: &mut Packet) -> Option<Departure> {
        let helpers = self.config.helpers;
        let tsn = self.board.cumulative() + 1;
        let record = self.board.get(tsn)?;
        let RecordState::InFlight { path: holder, .. } = record.state else { return None };
        let first_copy = record.transmissions == 1;
        // A path that repairs a loss has been halved for it.
        let repairs = self.paths[holder.index()].tx.recovery_exit.is_some();
        if helpers.penalise && !repairs && self.penalty.due(now, &self.views, holder) {
            self.congestion.penalise(holder);
            self.accounts.stats.penalised += 1;
            let cwnd = self.cwnd(holder);
            let view = &mut self.views[holder.index()];
            view.cwnd = cwnd;
            view.window = view.window.min(cwnd);
        }
        if !helpers.opportunistic || !first_copy {
            return None;
        }
        let path = resend_on(&self.views, holder, self.full_chunk())?;
        self.accounts.stats.unblocked += 1;
        self.record(now, Decision::send(path, 0, Reason::Unblock), Some(tsn));
        Some(self.send_chunk(now, path, tsn, packet))
    }
}
