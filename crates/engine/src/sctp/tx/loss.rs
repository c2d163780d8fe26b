//! Loss detection and recovery: fast retransmit and fast recovery (RFC 9260, 7.2.4), T3-rtx (6.3.3), and the
//! timers of RACK-TLP (RFC 8985).

use std::num::NonZeroU64;

use ropewalk_base::{PathId, Time};

use super::{Path, RecordState, Sender};
use crate::congestion::{CongestionControl, LostPacket};
use crate::path::PathStatus;
use crate::recovery::LossDetection;

/// Result of the expiry of T3 for the path (RFC 9260, 8.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum T3Expiry {
    /// Nothing: a zero-window probe was not acknowledged, and SACKs arrive.
    Ignored,
    /// The path is silent, but the peer answers on another one.
    Silence,
    /// It is an error of the path.
    Error,
}

impl Sender {
    /// Whether misses and T3 are counted by TSN over all paths, like RFC 9260, 6.3.2 and 7.2.4, which
    /// send on one path at a time. CMT and RACK count the transmissions of each path instead.
    #[inline]
    pub fn counts_by_tsn(&self) -> bool {
        self.outstanding.config.recovery == LossDetection::MissingReports
            && !self.outstanding.config.cmt.split_fast_retransmit
    }

    /// Whether `id` is in fast recovery. RFC 9260, 7.2.4 (6): fast recovery lasts until all TSNs that
    /// were outstanding at its beginning are acknowledged. When counting by TSN, it applies to all paths.
    #[inline]
    pub fn recovers(&mut self, id: PathId) -> bool {
        if !self.counts_by_tsn() {
            return self.paths[id.index()].in_recovery();
        }
        let known = self.outstanding.board.cumulative();
        self.outstanding.recovery_exit =
            self.outstanding.recovery_exit.filter(|exit| known < exit.get());
        self.outstanding.recovery_exit.is_some()
    }

    /// Restarts or stops T3 of `id` after an acknowledgement. RFC 9260, 6.3.2 R3: T3 restarts when the
    /// earliest outstanding TSN of the path is acknowledged; R2: it stops when none is outstanding. `moved`:
    /// the earliest transmission was acknowledged. `heard`: the acknowledgement shows that the path works.
    pub fn settle_t3(&mut self, now: Time, id: PathId, moved: bool, heard: bool) {
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

    /// A chunk is sent on `id`. RFC 9260, 6.1: T3 restarts if the chunk is a retransmission of the lowest
    /// outstanding TSN of the path.
    #[inline]
    pub fn settle_t3_at_transmission(&mut self, now: Time, id: PathId, tsn: u64) {
        let path = &mut self.paths[id.index()];
        if path.tx.flights.is_empty() {
            path.t3_tsn = tsn;
        } else if tsn <= path.t3_tsn {
            path.t3_tsn = tsn;
            path.restart_t3(now);
        }
    }

    /// Split fast retransmit (SFR): counts acknowledgements of later transmissions on the same path.
    pub fn count_split_misses(&mut self, now: Time, id: PathId, newest: u64, twice: u64) {
        let mut lost = std::mem::take(&mut self.outstanding.scratch.lost);
        lost.clear();
        self.outstanding.misses.count(
            &mut self.paths[id.index()].tx.flights,
            newest,
            twice,
            &mut lost,
        );
        self.fast_retransmit(now, id, &lost);
        self.outstanding.scratch.lost = lost;
    }

    /// Time-based loss detection (RFC 8985) on path `id`.
    pub fn find_lost_by_time(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id.index()];
        let in_recovery = path.in_recovery();
        let mut lost = std::mem::take(&mut self.outstanding.scratch.lost);
        path.tx.find_lost_by_time(now, in_recovery, &mut lost);
        self.fast_retransmit(now, id, &lost);
        self.outstanding.scratch.lost = lost;
        self.report_silent(id);
    }

    /// Reports that all data in flight on the path was lost. T3 runs only while data is in flight, and data
    /// that is retransmitted on other paths never lets it expire here.
    fn report_silent(&mut self, id: PathId) {
        let path = &self.paths[id.index()];
        let silent = path.tx.flights.is_empty() && path.tx.state.status() == PathStatus::Active;
        if silent && !self.outstanding.scratch.lost.is_empty() {
            let reports = &mut self.outstanding.reports;
            reports.silent = reports.silent.with(id);
        }
    }

    /// The RACK reordering timer, or else the tail loss probe timer, of a path (RFC 8985, 6.3 and 7.2).
    #[inline]
    pub fn loss_deadline(&self, path: &Path) -> Option<Time> {
        if self.outstanding.config.recovery != LossDetection::RackTlp
            || !self.outstanding.window_probe.is_idle()
        {
            return None;
        }
        path.tx.loss_deadline(self.config.peer_acks)
    }

    /// Whether the timer of [`Sender::loss_deadline`] has expired.
    pub fn is_loss_timer_due(&self, now: Time, id: PathId) -> bool {
        self.loss_deadline(&self.paths[id.index()]).is_some_and(|at| at <= now)
    }

    /// Handles the expiry of [`Sender::loss_deadline`].
    pub fn on_loss_timer(&mut self, now: Time, id: PathId) {
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
        self.copies.push((id, tsn));
    }

    /// The tail loss probe repaired a loss that no other acknowledgement shows (RFC 8985, 7.4.2): reduce the
    /// window.
    pub fn on_tail_lost(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id.index()];
        if path.in_recovery() {
            return;
        }
        path.tx.recovery_exit = Some(path.tx.flights.next_number());
        self.reduce_window(now, id);
    }

    /// Counts miss indications in TSN order over all paths, up to the highest newly acknowledged TSN (RFC
    /// 9260, 7.2.4). In fast recovery, if the cumulative TSN advanced, it counts up to the highest
    /// acknowledged TSN.
    pub fn count_unsplit_misses(&mut self, now: Time, cumulative_moved: bool) {
        let by_time = self.outstanding.config.recovery == LossDetection::RackTlp;
        if by_time || self.outstanding.config.cmt.split_fast_retransmit {
            return;
        }
        let recovers = self.recovers(PathId(0));
        let highest = match self.outstanding.board.acked().last() {
            Some(last) if recovers && cumulative_moved => last,
            _ => self.outstanding.scratch.highest,
        };
        let mut lost = std::mem::take(&mut self.outstanding.scratch.lost);
        let exit = NonZeroU64::new(self.outstanding.board.next_tsn() - 1);
        for i in 0..self.paths.len() {
            lost.clear();
            self.outstanding.misses.count_by_tsn(&mut self.paths[i].tx.flights, highest, &mut lost);
            if !lost.is_empty() {
                let id = PathId::from_index(i);
                self.mark_lost_by_tsn(now, id, &lost, !recovers);
                self.outstanding.recovery_exit = self.outstanding.recovery_exit.or(exit);
            }
        }
        self.outstanding.scratch.lost = lost;
    }

    /// Fast retransmit after the third miss indication of chunks on `id` (RFC 9260, 7.2.4). `begins`:
    /// whether fast recovery begins now.
    #[cold]
    fn mark_lost_by_tsn(&mut self, now: Time, id: PathId, lost: &[u64], begins: bool) {
        self.mark_reported_lost(now, id, lost);
        let path = &mut self.paths[id.index()];
        if path.tx.flights.is_empty() {
            path.t3 = None;
        }
        if begins {
            // RFC 9260, 7.2.4 (2): one reduction until the exit point is passed.
            self.begin_recovery(now, id);
        }
    }

    #[inline]
    fn fast_retransmit(&mut self, now: Time, id: PathId, lost: &[u64]) {
        if !lost.is_empty() {
            self.fast_retransmit_on(now, id, lost);
        }
    }

    #[cold]
    fn fast_retransmit_on(&mut self, now: Time, id: PathId, lost: &[u64]) {
        self.mark_reported_lost(now, id, lost);
        let path = &mut self.paths[id.index()];
        path.restart_t3(now);
        if !path.in_recovery() {
            // RFC 9260, 7.2.4 (2) and (6): one reduction per window of data.
            path.tx.recovery_exit = Some(path.tx.flights.next_number());
            self.begin_recovery(now, id);
        }
    }

    /// Marks transmissions on `id` as lost, without a timeout.
    fn mark_reported_lost(&mut self, now: Time, id: PathId, lost: &[u64]) {
        let largest = lost.iter().map(|number| self.mark_lost(now, id, *number, false)).max();
        self.on_suspected_black_hole(now, id, largest.unwrap_or(0));
        self.epoch += 1;
    }

    /// Begins fast recovery after a loss on `id`: reduces its window. One retransmission may exceed the
    /// window.
    fn begin_recovery(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id.index()];
        path.tx.loss.note_loss();
        path.tx.fast_credit = true;
        path.tx.counters.fast_retransmits += 1;
        self.reduce_window(now, id);
    }

    /// The peer has skipped a transmission in flight because it was told to. A round trip has passed
    /// since the end of its lifetime, so it counts as lost (RFC 3758, 3.5 F5).
    #[cold]
    pub fn on_skipped(&mut self, now: Time, id: PathId, number: u64) {
        let path = &mut self.paths[id.index()];
        let Some(flight) = path.tx.flights.end(number) else { return };
        path.tx.counters.lost += 1;
        path.tx.losses += 1;
        path.restart_t3(now);
        let packet = LostPacket { number, bytes: flight.bytes.into() };
        self.congestion.on_lost(id, now, &packet);
        if !self.recovers(id) {
            let path = &mut self.paths[id.index()];
            path.tx.recovery_exit = Some(path.tx.flights.next_number());
            self.begin_recovery(now, id);
        }
    }

    /// Marks one transmission as lost. Returns its length in bytes.
    fn mark_lost(&mut self, now: Time, id: PathId, number: u64, by_timer: bool) -> u32 {
        let path = &mut self.paths[id.index()];
        let Some(flight) = path.tx.flights.end(number) else { return 0 };
        path.tx.counters.lost += 1;
        path.tx.losses += !by_timer as u64;
        let settled = self.outstanding.board.on_lost(flight.tsn, id, number, by_timer);
        if !settled && self.has_limits() {
            self.on_copy_lost(flight.tsn);
        }
        let packet = LostPacket { number, bytes: flight.bytes.into() };
        self.congestion.on_lost(id, now, &packet);
        flight.bytes
    }

    /// Marks everything in flight on `id` as lost by timeout.
    pub fn mark_all_lost(&mut self, now: Time, id: PathId) {
        let mut lost = std::mem::take(&mut self.outstanding.scratch.lost);
        lost.clear();
        lost.extend(self.paths[id.index()].tx.flights.live().map(|(number, _)| number));
        for number in &lost {
            self.mark_lost(now, id, *number, true);
        }
        self.outstanding.scratch.lost = lost;
        self.epoch += 1;
    }

    /// Handles the expiry of T3 of `id` (RFC 9260, 6.3.3).
    pub fn on_t3(&mut self, now: Time, id: PathId) -> T3Expiry {
        if let Some(is_error) = self.on_probe_unanswered(now, id) {
            return if is_error { T3Expiry::Error } else { T3Expiry::Ignored };
        }
        let path = &mut self.paths[id.index()];
        path.tx.losses += 1;
        path.tx.loss.note_loss();
        path.t3 = None;
        path.tx.one_packet = true;
        path.tx.fast_credit = false;
        // RFC 9260, 6.1 A: a peer that has closed its window and answers the probes is reachable.
        let heard = now.since(self.outstanding.last_sack_at) <= path.tx.rtt.rto();
        let probing = heard && self.outstanding.board.span() > self.outstanding.peer_rwnd;
        path.tx.counters.timeouts += 1;
        path.tx.rtt.back_off();
        path.tx.rack.on_timeout();
        path.tx.tail.on_timeout();
        path.tx.recovery_exit = None;
        self.outstanding.recovery_exit = None;
        let path = &mut self.paths[id.index()];
        // The next transmissions belong to a new round. Otherwise a simulated network that loses packets
        // by rounds would lose all of them forever.
        path.tx.begin_round();
        self.mark_all_lost(now, id);
        if let Some(ecn) = &mut self.paths[id.index()].ecn {
            ecn.on_timeout();
        }
        // Small chunks may have been bundled into large packets that are all lost.
        self.on_suspected_black_hole(now, id, self.paths[id.index()].tx.config.mtu);
        self.congestion.on_timeout(id, now);
        if probing { T3Expiry::Silence } else { T3Expiry::Error }
    }

    /// Counts an error of path `id`, and returns whether its status changed.
    pub fn on_path_error(&mut self, id: PathId) -> bool {
        let changed = self.paths[id.index()].tx.state.on_error();
        self.epoch += u64::from(changed);
        changed
    }

    /// Path `id` works again: old estimates are dropped.
    #[cold]
    pub fn on_path_returned(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id.index()];
        path.tx.forget_estimates();
        self.epoch += 1;
        if self.outstanding.config.cmt.concurrent {
            self.congestion.on_return(id, now);
        }
        self.outstanding.reports.changed = self.outstanding.reports.changed.with(id);
    }
}
