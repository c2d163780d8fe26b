//! Loss detection: by count (RFC 6675, RFC 6582), by time (RFC 8985), by the timer (RFC 6298).

use ropewalk_base::{Duration, PathId, Time};

use super::super::config::Reinjection;
use super::super::reordering::Reordering;
use super::super::segment::Segment;
use super::super::subflow::Subflow;
use super::super::subflow::sent::SegmentState;
use super::acks::SubflowAckd;
use super::{CloseReason, DataSender, Event, Session};
use crate::congestion::{CongestionControl, LostPacket};
use crate::mptcp::reordering::SpuriousRule;
use crate::path::PathStatus;

impl DataSender {
    /// Counts pieces as lost with enough reported pieces beyond them (RFC 6675, 5).
    pub(super) fn count_losses(&mut self, now: Time, path: PathId) {
        let mut lost = core::mem::take(&mut self.outstanding.lost);
        lost.clear();
        let threshold = self.outstanding.config.duplicate_threshold;
        self.paths[path.index()].sent.find_lost(threshold, |number| lost.push(number));
        self.fast_retransmit(now, path, &lost);
        self.outstanding.lost = lost;
    }

    /// Handles an acknowledgement without new data.
    pub(super) fn on_duplicate_ack(
        &mut self,
        now: Time,
        path: PathId,
        segment: &Segment,
        window_moved: bool,
    ) {
        let counts = self.outstanding.config.reordering != Reordering::RackTlp
            && !self.outstanding.config.sack;
        // RFC 5681, 2; RFC 8684, 3.3.2: an acknowledgement that changes the window or acknowledges
        // session data is not a duplicate.
        if !counts || window_moved || !segment.payload.is_empty() {
            return;
        }
        let segment_limit = self.outstanding.segment_limit as u64;
        let subflow = &mut self.paths[path.index()];
        if subflow.tx.flights.is_empty() || segment.ack != subflow.sent.una() {
            return;
        }
        subflow.duplicates += 1;
        if subflow.in_recovery() {
            subflow.tx.inflation += segment_limit;
        } else if subflow.duplicates == self.outstanding.config.duplicate_threshold {
            self.retransmit_front(now, path);
            let most = self.outstanding.config.duplicate_threshold as u64 - 1;
            self.paths[path.index()].tx.inflation = most * segment_limit;
        }
    }

    /// In recovery, a partial acknowledgement reveals the next gap (RFC 6582, 3.2, 5).
    pub(super) fn on_partial_ack(
        &mut self,
        now: Time,
        path: PathId,
        ackd: &SubflowAckd,
        in_recovery: bool,
    ) {
        if in_recovery && ackd.advanced {
            let subflow = &mut self.paths[path.index()];
            subflow.tx.inflation = subflow.tx.inflation.saturating_sub(ackd.bytes);
            self.retransmit_front(now, path);
        }
    }

    fn retransmit_front(&mut self, now: Time, path: PathId) {
        let subflow = &self.paths[path.index()];
        let Some((_, piece)) = subflow.sent.front() else { return };
        let SegmentState::InFlight { number } = piece.state else { return };
        self.fast_retransmit(now, path, &[number]);
    }

    /// Detects losses by time.
    pub(super) fn find_lost_by_time(&mut self, now: Time, path: PathId) {
        let subflow = &mut self.paths[path.index()];
        let in_recovery = subflow.in_recovery();
        let mut lost = core::mem::take(&mut self.outstanding.lost);
        subflow.tx.find_lost_by_time(now, in_recovery, &mut lost);
        self.fast_retransmit(now, path, &lost);
        self.outstanding.lost = lost;
    }

    fn fast_retransmit(&mut self, now: Time, path: PathId, lost: &[u64]) {
        if lost.is_empty() {
            return;
        }
        let elsewhere = self.outstanding.config.reinjection == Reinjection::OnLoss;
        for number in lost {
            self.mark_lost(now, path, *number, elsewhere);
        }
        self.epoch += 1;
        let most = self.timer_most(path);
        let subflow = &mut self.paths[path.index()];
        subflow.tx.losses += lost.len() as u64;
        subflow.restart_timer(now, most);
        if !subflow.in_recovery() {
            subflow.tx.loss.note_loss();
            subflow.tx.counters.fast_retransmits += 1;
            subflow.tx.fast_credit = true;
            self.reduce(now, path);
        }
    }

    /// Reduces the window once per window of data (RFC 5681, 3.2; RFC 6582, 3.2).
    pub(super) fn reduce(&mut self, now: Time, path: PathId) {
        let subflow = &mut self.paths[path.index()];
        if subflow.in_recovery() {
            return;
        }
        subflow.tx.recovery_exit = Some(subflow.sent.next_seq());
        if subflow.undo.keeps_window(now) {
            return;
        }
        subflow.by_timer = false;
        subflow.undo.on_reduction(now);
        self.reduce_window(now, path);
    }

    /// Gives up one transmission.
    fn mark_lost(&mut self, now: Time, path: PathId, number: u64, elsewhere: bool) {
        let subflow = &mut self.paths[path.index()];
        let Some(flight) = subflow.tx.flights.end(number) else { return };
        subflow.tx.counters.lost += 1;
        subflow.sent.on_lost(flight.tsn);
        let packet = LostPacket { number, bytes: flight.bytes.into() };
        self.congestion.on_lost(path, now, &packet);
        let subflow = &mut self.paths[path.index()];
        if let Some(piece) = subflow.sent.get(flight.tsn).filter(|_| elsewhere) {
            self.outstanding.board.on_reinjection_requested(piece.unit);
        }
    }

    /// Requests that all unacknowledged data of `path` is also sent on other subflows.
    pub(super) fn reinject_all(&mut self, path: PathId) {
        if self.outstanding.config.reinjection == Reinjection::Never || self.paths.len() < 2 {
            return;
        }
        for piece in self.paths[path.index()].sent.iter() {
            if piece.state != SegmentState::Sacked {
                self.outstanding.board.on_reinjection_requested(piece.unit);
            }
        }
    }

    /// Time of the next loss detection by RACK, or of a tail loss probe (RFC 8985, 6.3 and 7.2).
    #[inline]
    pub(super) fn loss_deadline(&self, subflow: &Subflow) -> Option<Time> {
        if self.outstanding.config.reordering != Reordering::RackTlp
            || self.outstanding.config.modelled
        {
            return None;
        }
        subflow.tx.loss_deadline(self.config.peer_acks)
    }

    /// Handles the expiry of [`Session::loss_deadline`].
    pub(super) fn on_loss_timer(&mut self, now: Time, path: PathId) {
        let most = self.timer_most(path);
        let subflow = &mut self.paths[path.index()];
        if subflow.tx.rack.deadline().is_some() {
            self.find_lost_by_time(now, path);
            return;
        }
        let Some((_, flight)) = subflow.tx.flights.newest() else { return };
        subflow.probe = Some(flight.tsn);
        subflow.tx.tail.on_probe(subflow.tx.flights.next_number());
        subflow.restart_timer(now, most);
    }

    /// Handles the expiry of the retransmission timer of `path` (RFC 6298, 5.4 to 5.7).
    pub(super) fn on_timeout(&mut self, now: Time, path: PathId) -> bool {
        let subflow = &mut self.paths[path.index()];
        subflow.tx.losses += 1;
        subflow.tx.loss.note_loss();
        subflow.timer = None;
        subflow.tx.fast_credit = false;
        subflow.duplicates = 0;
        subflow.tx.inflation = 0;
        subflow.tx.counters.timeouts += 1;
        // A peer that has closed its window and answers the probes is alive.
        let heard = now.since(self.outstanding.last_ack_at) <= subflow.tx.rtt.rto();
        let probing = heard && self.outstanding.board.next() > self.outstanding.edge;
        let kept = subflow.undo.keeps_window(now);
        if !kept {
            subflow.tx.rtt.back_off();
        }
        subflow.tx.rack.on_timeout();
        subflow.tx.tail.on_timeout();
        subflow.tx.recovery_exit = None;
        if subflow.sent.front().is_some_and(|(_, piece)| piece.state == SegmentState::Sacked) {
            // RFC 2018, 8: the oldest data was reported and is still not acknowledged, so the peer has
            // dropped reported data.
            subflow.sent.forget_sacked();
        }
        let lost: Vec<u64> = subflow.tx.flights.live().map(|(number, _)| number).collect();
        for number in lost {
            self.mark_lost(now, path, number, false);
        }
        self.epoch += 1;
        if probing {
            return false;
        }
        if !kept {
            let subflow = &mut self.paths[path.index()];
            subflow.by_timer = true;
            let (una, next) = (subflow.sent.una(), subflow.sent.next_seq());
            subflow.undo.on_timeout(now, una, next);
            self.congestion.on_timeout(path, now);
        }
        self.reinject_all(path);
        true
    }

    /// Maximum time that the timer of `path` may run. A failed path is tried again soon enough to detect
    /// its return.
    #[inline]
    pub(super) fn timer_most(&self, path: PathId) -> Duration {
        match self.paths[path.index()].tx.state.status() {
            PathStatus::Active | PathStatus::Unconfirmed => Duration::MAX,
            PathStatus::PotentiallyFailed | PathStatus::Inactive => {
                self.outstanding.config.probe_interval
            }
        }
    }
}

impl Session {
    /// Handles the expiry of the retransmission timer.
    pub(super) fn on_timeout(&mut self, now: Time, path: PathId) {
        if self.sender.on_timeout(now, path) {
            self.note_path_error(path);
        }
    }

    fn note_path_error(&mut self, path: PathId) {
        let subflow = &mut self.sender.paths[path.index()];
        if subflow.tx.state.on_error() {
            let status = subflow.tx.state.status();
            self.sender.epoch += 1;
            self.push_event(Event::PathChanged(path, status));
        }
        self.control.errors += 1;
        if self.control.errors > self.config.max_retransmissions {
            self.end(CloseReason::Unreachable);
        }
    }

    /// Handles the return of `path` from failure.
    pub(super) fn on_path_returned(&mut self, now: Time, path: PathId) {
        let subflow = &mut self.sender.paths[path.index()];
        let status = subflow.tx.state.status();
        subflow.tx.forget_estimates();
        self.sender.epoch += 1;
        self.sender.congestion.on_return(path, now);
        self.push_event(Event::PathChanged(path, status));
    }
}
