//! Closing a session: the end of the data at both ends (RFC 8684, 3.3.3), and aborting (3.5).

use ropewalk_base::{PathId, Time};

use super::super::segment::{MpOption, Segment};
use super::super::subflow::{Phase, Subflow};
use super::{CloseReason, Event, Session, State};

impl Session {
    /// Sends the queued data, then signals the end of the data.
    pub fn close(&mut self) {
        self.control.ending.wanted = true;
        self.sender.outstanding.closing = true;
        self.sender.invalidate_views();
    }

    /// Aborts the session and notifies the peer.
    pub fn abort(&mut self, now: Time) {
        if matches!(self.state, State::Ended(_)) {
            return;
        }
        for path in self.ids() {
            if self.sender.paths[path.index()].is_open() {
                let option =
                    if self.handshake.multipath { MpOption::FastClose } else { MpOption::None };
                let reset = Segment { rst: true, option, ..self.plain_ack(now, path) };
                self.control.queue.push_back((path, reset));
            }
        }
        self.end(CloseReason::Aborted);
    }

    pub(super) fn end(&mut self, reason: CloseReason) {
        if matches!(self.state, State::Ended(_)) {
            return;
        }
        self.state = State::Ended(reason);
        self.sender.paths.iter_mut().for_each(Subflow::end);
        self.sender.wait_until = None;
        self.push_event(Event::Ended(reason));
    }

    /// The subflow for the DATA_FIN: the fastest open one.
    pub(super) fn quickest(&self) -> Option<PathId> {
        let open = self.ids().filter(|path| self.sender.paths[path.index()].is_open());
        open.min_by_key(|path| {
            let subflow = &self.sender.paths[path.index()];
            (subflow.tx.state.errors(), subflow.tx.rtt.srtt())
        })
    }

    /// Our DATA_FIN, if it is due: once all data before it is acknowledged.
    pub(super) fn next_ending(&mut self, now: Time, segment: &mut Segment) -> Option<PathId> {
        let ending = self.control.ending;
        let again = match ending.sent {
            None => 0,
            Some((due, again)) if due <= now => again + 1,
            Some(_) => return None,
        };
        if !ending.wanted || ending.acknowledged || !self.is_flushed() {
            return None;
        }
        if again > self.config.max_retransmissions {
            self.end(CloseReason::Unreachable);
            return None;
        }
        let path = self.quickest()?;
        let wait = self.sender.paths[path.index()].tx.rtt.rto().saturating_mul(1 << again.min(6));
        self.control.ending.sent = Some((now + wait, again));
        *segment = self.plain_ack(now, path);
        (segment.data_fin, segment.dsn) = (true, self.sender.outstanding.board.next());
        Some(path)
    }

    /// Handles the peer's DATA_FIN.
    pub(super) fn on_data_fin(&mut self, path: PathId, dsn: u64) {
        // Data before it is still missing. The peer will retransmit the DATA_FIN.
        if dsn != self.receiver.buffer.next() {
            return;
        }
        self.sender.paths[path.index()].received.make_due();
        if !self.control.ending.by_peer {
            self.control.ending.by_peer = true;
            self.push_event(Event::PeerClosed);
        }
    }

    /// Handles the acknowledgement of our DATA_FIN.
    pub(super) const fn on_ending_acknowledged(&mut self) {
        self.control.ending.acknowledged = true;
    }

    /// Ends the session if both ends have closed and no acknowledgement is due.
    pub(super) fn end_if_done(&mut self) {
        let owes = self.sender.paths.iter().any(|s| s.is_open() && s.received.is_due());
        if self.control.ending.acknowledged && self.control.ending.by_peer && !owes {
            self.end(CloseReason::Closed);
        }
    }

    /// The peer resets a subflow or aborts the session.
    pub(super) fn on_reset(&mut self, path: PathId, segment: &Segment) {
        if segment.option == MpOption::FastClose || !self.handshake.multipath {
            self.end(CloseReason::AbortedByPeer);
            return;
        }
        self.sender.reinject_all(path);
        self.sender.paths[path.index()].end();
        self.sender.epoch += 1;
        let left = |s: &Subflow| s.phase != Phase::Ended;
        if !self.sender.paths.iter().any(left) {
            self.end(CloseReason::AbortedByPeer);
        }
    }
}
