//! Loss: fast retransmit and recovery (RFC 9260, 7.2.4), the retransmission timer (6.3.3).

use ropewalk_base::{PathId, Time};

use super::{Association, CloseReason, Path};
use crate::congestion::CongestionControl;
use crate::path::PathStatus;
use crate::recovery::{LossDetection, RoundTrips};
use crate::sctp::tx::RecordState;

impl Association {
    /// Whether losses are found and timers run as RFC 9260 has it for one path at a time, by TSNs and over all paths
    /// (6.3.2, 7.2.4). CMT and RACK count what each path sent instead.
    #[inline]
    pub(super) fn counts_by_tsn(&self) -> bool {
        self.config.recovery == LossDetection::MissingReports
            && !self.config.cmt.split_fast_retransmit
    }

    /// Whether fast recovery lasts on `id`. 7.2.4, 6: until all TSNs that were outstanding when it began have been
    /// acknowledged, and on all paths alike.
    #[inline]
    pub(super) fn recovers(&mut self, id: PathId) -> bool {
        if !self.counts_by_tsn() {
            return self.paths[id.index()].in_recovery();
        }
        let known = self.outstanding.board.cumulative();
        self.recovery_exit = self.recovery_exit.filter(|exit| known < *exit);
        self.recovery_exit.is_some()
    }

    /// T3 of `id` after an acknowledgement. 6.3.2, R3: it restarts once the earliest chunk in flight there is
    /// acknowledged, and not before; R2: it stops with the last one. `moved`: that was the one which left first;
    /// `heard`: the acknowledgement shows that the path works.
    pub(super) fn settle_t3(&mut self, now: Time, id: PathId, moved: bool, heard: bool) {
        if self.counts_by_tsn() {
            self.settle_t3_by_tsn(now, id);
        } else if moved && heard {
            self.paths[id.index()].restart_t3(now);
        } else if moved {
            self.paths[id.index()].restart_t3_as_sent(now);
        }
    }

    fn settle_t3_by_tsn(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id.index()];
        let tsn = path.t3_tsn;
        let flies = self.outstanding.board.get(tsn).is_some_and(
            |record| matches!(record.state, RecordState::InFlight { path, .. } if path == id),
        );
        if !flies || path.tx.flights.is_empty() {
            path.restart_t3(now);
            path.t3_tsn = path.tx.flights.lowest_tsn().unwrap_or(0);
        }
    }

    /// A chunk leaves on `id`. 6.1: T3 restarts if that is the lowest TSN in flight there, sent again.
    #[inline]
    pub(super) fn settle_t3_at_launch(&mut self, now: Time, id: PathId, tsn: u64) {
        let path = &mut self.paths[id.index()];
        if path.tx.flights.is_empty() {
            path.t3_tsn = tsn;
        } else if tsn <= path.t3_tsn {
            path.t3_tsn = tsn;
            path.restart_t3(now);
        }
    }

    /// Split fast retransmit: reports of later transmissions on the same path.
    pub(super) fn count_split_misses(&mut self, now: Time, id: PathId, newest: u64, twice: u64) {
        let mut lost = std::mem::take(&mut self.scratch.lost);
        lost.clear();
        self.misses.count(&mut self.paths[id.index()].tx.flights, newest, twice, &mut lost);
        self.fast_retransmit(now, id, &lost);
        self.scratch.lost = lost;
    }

    /// Loss by time, if that is how it is found.
    pub(super) fn find_lost_by_time(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id.index()];
        let in_recovery = path.in_recovery();
        let (Some(smoothed), Some(least)) = (path.tx.rtt.srtt(), path.tx.rtt.base()) else {
            return;
        };
        let trips = RoundTrips { smoothed, least };
        let mut lost = std::mem::take(&mut self.scratch.lost);
        lost.clear();
        path.tx.rack.find_lost(now, trips, in_recovery, &mut path.tx.flights, &mut lost);
        self.fast_retransmit(now, id, &lost);
        self.scratch.lost = lost;
        self.doubt_silent(now, id);
    }

    /// All that was on its way there is lost. T3 tells of a silence only while something is on its way, and
    /// what is repaired elsewhere by time never waits for it: a heartbeat asks whether anybody is there.
    fn doubt_silent(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id.index()];
        let silent = path.tx.flights.is_empty() && path.tx.state.status() == PathStatus::Active;
        if silent && path.heartbeat.pending.is_none() && !self.scratch.lost.is_empty() {
            path.heartbeat.forced = true;
            path.heartbeat.due = Some(now);
            self.timers_moved = true;
        }
    }

    /// When RACK wants to look again, or a probe of the tail is due (RFC 8985, 6.3 and 7.2).
    #[inline]
    pub(super) fn loss_deadline(&self, path: &Path) -> Option<Time> {
        if self.config.recovery != LossDetection::RackTlp
            || !self.outstanding.window_probe.is_idle()
        {
            return None;
        }
        let probes =
            path.tx.recovery_exit.is_none() && path.tx.state.status() == PathStatus::Active;
        path.tx.rack.deadline().or_else(|| {
            let delay = self.peer.sack_delay;
            probes.then(|| {
                path.tx.tail.deadline(path.tx.rtt.srtt(), path.tx.flights.count(), delay)
            })?
        })
    }

    /// [`Association::loss_deadline`] has come.
    pub(super) fn on_loss_timer(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id.index()];
        if path.tx.rack.deadline().is_some() {
            self.find_lost_by_time(now, id);
            return;
        }
        let Some((_, flight)) = path.tx.flights.newest() else { return };
        let tsn = flight.tsn;
        path.tx.tail.on_probe(path.tx.flights.next_number());
        path.tx.begin_round();
        path.restart_t3(now);
        self.sender.copies.push((id, tsn));
    }

    /// The probe of a tail repaired a loss, which nothing else shows (RFC 8985, 7.4.2).
    pub(super) fn on_tail_lost(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id.index()];
        if path.in_recovery() {
            return;
        }
        path.tx.recovery_exit = Some(path.tx.flights.next_number());
        self.sender.congestion.on_loss(id, now);
    }

    /// The unsplit rule: TSN order over all paths, up to the highest TSN newly acknowledged
    /// (7.2.4), or in fast recovery, if the cumulative one moved, to the highest of all.
    pub(super) fn count_unsplit_misses(&mut self, now: Time, cumulative_moved: bool) {
        let by_time = self.config.recovery == LossDetection::RackTlp;
        if by_time || self.config.cmt.split_fast_retransmit {
            return;
        }
        let recovers = self.recovers(PathId(0));
        let highest = match self.outstanding.board.acked().last() {
            Some(last) if recovers && cumulative_moved => last,
            _ => self.scratch.highest,
        };
        let mut lost = std::mem::take(&mut self.scratch.lost);
        let exit = self.outstanding.board.next_tsn() - 1;
        for i in 0..self.paths.len() {
            lost.clear();
            self.misses.count_by_tsn(&mut self.paths[i].tx.flights, highest, &mut lost);
            if !lost.is_empty() {
                let id = PathId::from_index(i);
                self.give_up_by_tsn(now, id, &lost, !recovers);
                self.recovery_exit = self.recovery_exit.or(Some(exit));
            }
        }
        self.scratch.lost = lost;
    }

    /// 7.2.4, after the third report of chunks on `id`. `begins`: fast recovery does with it.
    #[cold]
    fn give_up_by_tsn(&mut self, now: Time, id: PathId, lost: &[u64], begins: bool) {
        self.give_up_reported(now, id, lost);
        let path = &mut self.paths[id.index()];
        if path.tx.flights.is_empty() {
            path.t3 = None;
        }
        if begins {
            // 7.2.4, 2: one reduction until the exit point.
            self.begin_recovery(now, id);
        }
    }

    #[inline]
    fn fast_retransmit(&mut self, now: Time, id: PathId, lost: &[u64]) {
        if !lost.is_empty() {
            self.give_up_all(now, id, lost);
        }
    }

    #[cold]
    fn give_up_all(&mut self, now: Time, id: PathId, lost: &[u64]) {
        self.give_up_reported(now, id, lost);
        let path = &mut self.paths[id.index()];
        path.restart_t3(now);
        if !path.in_recovery() {
            // 7.2.4, 2 and 5: one reduction per window of data.
            path.tx.recovery_exit = Some(path.tx.flights.next_number());
            self.begin_recovery(now, id);
        }
    }

    /// These transmissions on `id` are given up without a timer.
    fn give_up_reported(&mut self, now: Time, id: PathId, lost: &[u64]) {
        let largest = lost.iter().map(|number| self.give_up(id, *number, false)).max();
        self.on_suspected_black_hole(now, id, largest.unwrap_or(0));
        self.sender.epoch += 1;
    }

    /// Fast recovery begins after a loss on `id`: its window is reduced, and one retransmission may exceed it.
    fn begin_recovery(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id.index()];
        path.tx.loss.note_loss();
        path.tx.fast_credit = true;
        path.tx.counters.fast_retransmits += 1;
        self.sender.congestion.on_loss(id, now);
    }

    /// One transmission is given up. Returns its bytes.
    fn give_up(&mut self, id: PathId, number: u64, by_timer: bool) -> u32 {
        let path = &mut self.paths[id.index()];
        let Some(flight) = path.tx.flights.end(number) else { return 0 };
        path.tx.counters.lost += 1;
        path.tx.losses += !by_timer as u64;
        self.outstanding.board.on_lost(flight.tsn, id, number, by_timer);
        flight.bytes
    }

    /// All that is on its way on `id` is given up by a timer.
    pub(super) fn give_up_flights(&mut self, id: PathId) {
        let mut lost = std::mem::take(&mut self.scratch.lost);
        lost.clear();
        lost.extend(self.paths[id.index()].tx.flights.live().map(|(number, _)| number));
        for number in &lost {
            self.give_up(id, *number, true);
        }
        self.scratch.lost = lost;
        self.sender.epoch += 1;
    }

    /// T3 of `id` expired (6.3.3).
    pub(super) fn on_t3(&mut self, now: Time, id: PathId) {
        if self.on_probe_unanswered(now, id) {
            return;
        }
        let path = &mut self.paths[id.index()];
        path.tx.losses += 1;
        path.tx.loss.note_loss();
        path.t3 = None;
        path.heartbeat.counted = true;
        path.tx.one_packet = true;
        path.tx.fast_credit = false;
        // 6.1, A: a peer that has shut its window and answers the probes is alive.
        let heard = now.since(self.heard_at) <= path.tx.rtt.rto();
        let probing = heard && self.outstanding.board.span() > self.outstanding.peer_rwnd;
        path.tx.counters.timeouts += 1;
        path.tx.rtt.back_off();
        path.tx.rack.on_timeout();
        path.tx.tail.on_timeout();
        path.tx.recovery_exit = None;
        self.recovery_exit = None;
        let path = &mut self.paths[id.index()];
        // What is sent now answers to a timer, not to an acknowledgement of the last round. A network
        // that loses by rounds would else lose all of it, for good.
        path.tx.begin_round();
        self.give_up_flights(id);
        if let Some(ecn) = &mut self.paths[id.index()].ecn {
            ecn.on_timeout();
        }
        // Small chunks may have been in large packets, and all of them are lost.
        self.on_suspected_black_hole(now, id, self.paths[id.index()].tx.config.mtu);
        self.sender.congestion.on_timeout(id, now);
        if !probing {
            self.note_path_error(now, id, true);
        }
    }

    /// A timeout or an unanswered heartbeat on `id`. `counts`: also against the association.
    pub(super) fn note_path_error(&mut self, now: Time, id: PathId, counts: bool) {
        let path = &mut self.paths[id.index()];
        if path.tx.state.on_error() {
            let status = path.tx.state.status();
            if status == PathStatus::PotentiallyFailed {
                // RFC 7829, 3, rule 4: ask at once.
                path.heartbeat.due = Some(now);
            }
            self.sender.epoch += 1;
            self.path_changed(now, id, status);
        }
        if counts {
            self.errors += 1;
            let paths = if self.config.max_retrans_per_path { self.paths.len() as u32 } else { 1 };
            if self.errors > self.config.association_max_retrans.saturating_mul(paths) {
                self.close(CloseReason::Unreachable);
            }
        }
    }

    /// `id` works again.
    #[cold]
    pub(super) fn on_path_returned(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id.index()];
        let status = path.tx.state.status();
        path.tx.rtt.forget();
        path.tx.rate.forget();
        path.tx.loss.forget();
        self.sender.epoch += 1;
        if self.config.cmt.concurrent {
            self.sender.congestion.on_return(id, now);
        }
        self.path_changed(now, id, status);
    }
}
