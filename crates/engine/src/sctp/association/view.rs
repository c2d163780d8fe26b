//! The scheduler's view, made afresh for each input and kept up to date while it is drained.

use ropewalk_base::{PathId, Time};

use super::Association;
use crate::congestion::CongestionControl;
use crate::path::{Estimates, PathStatus, clock_offset};
use crate::scheduler::{DelaySource, Occasion, PathView, View};
use crate::sctp::config::WindowCheck;
use crate::window::SharedWindow;

impl Association {
    /// Makes the views of all paths.
    pub(super) fn refresh_views(&mut self, now: Time) {
        self.decay_idle_windows(now);
        let mut views = std::mem::take(&mut self.views);
        if views.len() != self.paths.len() {
            views = (0..self.paths.len()).map(|i| self.blank_view(PathId::from_index(i))).collect();
        }
        let held_back = self.config.cmt.hold_data_until_confirmed && !self.all_confirmed();
        let fallback = self.fallback_path();
        let only = (!self.config.cmt.concurrent).then(|| self.single_path());
        let clock_offset = self.clock_offset();
        self.set_pace(now);
        for view in &mut views {
            let active = match fallback {
                Some(path) => path == view.id,
                None => {
                    let path = &self.paths[view.id.index()];
                    path.tx.state.status() == PathStatus::Active && !path.narrow
                }
            };
            view.usable = active && !held_back && only.is_none_or(|only| only == view.id);
            self.bring_up_to_date(now, view, clock_offset);
        }
        self.views = views;
        self.sendable_left = self.sendable();
        self.watch_window(now);
        let shared = SharedWindow {
            buffer: self.offered,
            chunk: self.full_chunk(),
            acknowledged: self.board.user_bytes(),
            busy: !(self.queue.is_empty() && self.board.holes().is_empty()),
            shared: self.scheduler.shares_window(),
            in_order: !self.is_passing(),
        };
        self.guard.apply(now, self.epoch, shared, &mut self.views);
        if self.nothing_in_flight() {
            PathView::let_one_go(&mut self.views);
        }
    }

    /// What of a view never changes.
    pub(super) fn blank_view(&self, id: PathId) -> PathView {
        let config = &self.paths[id.index()].tx.config;
        PathView::blank(id, config, self.config.delay_source)
    }

    /// All of a view that changes, but whether the path may be used.
    pub(super) fn bring_up_to_date(
        &self,
        now: Time,
        view: &mut PathView,
        clock_offset: Option<i64>,
    ) {
        let path = &self.paths[view.id.index()];
        let estimates = self.estimates(view.id);
        let drained = estimates.drained(now);
        view.srtt = path.tx.rtt.srtt();
        view.last_rtt = path.tx.rtt.last();
        view.rttvar = path.tx.rtt.rttvar();
        view.queueing = estimates.queueing().saturating_sub(drained);
        view.rtt_age = now.since(path.tx.rtt.sampled_at());
        view.forward_delay = estimates.forward_delay(clock_offset, drained);
        view.cwnd = self.cwnd(view.id);
        view.ssthresh = self.congestion.ssthresh(view.id);
        let most =
            self.manager.in_flight_most(view.id, &self.budget(), self.paths.len(), path.tx.held);
        view.window = path.tx.within_one_packet(view.cwnd.min(most));
        view.in_flight = path.tx.flights.bytes();
        view.delivered = path.tx.rate.delivered();
        view.burst_room = path.tx.burst_room(now, self.full_chunk());
        view.rate = path.tx.rate.rate().or(path.tx.config.rate_hint);
        view.rate_confidence = path.tx.rate.confidence();
        view.loss = path.tx.loss.aged(path.tx.idle(now));
        view.earliest_position = 0;
    }

    pub(super) fn estimates(&self, id: PathId) -> Estimates<'_> {
        let path = &self.paths[id.index()];
        Estimates {
            rtt: &path.tx.rtt,
            forward: &path.tx.forward,
            config: &path.tx.config,
            idle: path.tx.flights.is_empty(),
            source: self.config.delay_source,
        }
    }

    pub(super) fn clock_offset(&self) -> Option<i64> {
        if self.config.delay_source != DelaySource::Timestamp {
            return None;
        }
        clock_offset((0..self.paths.len()).map(|i| self.estimates(PathId::from_index(i))))
    }

    fn all_confirmed(&self) -> bool {
        self.paths.iter().all(|p| p.tx.state.status() != PathStatus::Unconfirmed)
    }

    /// With no path active, the one with the fewest errors, then the latest used, carries on
    /// (RFC 7829, 3, rule 3).
    fn fallback_path(&self) -> Option<PathId> {
        if self.paths.iter().any(|p| p.tx.state.status() == PathStatus::Active) {
            return None;
        }
        let proved = |p: &super::Path| p.tx.state.status() != PathStatus::Unconfirmed;
        let all = (0..self.paths.len()).filter(|i| proved(&self.paths[*i]));
        let best = all.min_by_key(|i| {
            let path = &self.paths[*i];
            (path.tx.state.errors(), Time::FAR_FUTURE.since(path.tx.last_sent_at))
        });
        best.map(PathId::from_index)
    }

    /// Plain SCTP sends on the primary path, and on another only while that has failed.
    pub(super) fn single_path(&self) -> PathId {
        let active = |p: &super::Path| p.tx.state.status() == PathStatus::Active;
        if active(&self.paths[self.primary.index()]) {
            return self.primary;
        }
        let first = self.paths.iter().position(active);
        PathId::from_index(first.unwrap_or_else(|| self.fallback_path().map_or(0, |p| p.index())))
    }

    /// What the scheduler sees, the paths apart: they are lent to it while it changes itself.
    #[inline]
    pub(super) fn outlook(&self, now: Time, occasion: Occasion) -> View<'static> {
        let span = self.board.span();
        let mut unassigned = self.queue.chunks();
        // Any of them may be taken, if it fits whichever it is, and there is a number for it.
        let passing = self.is_passing() && span + self.full_chunk() <= self.offered;
        let unordered = passing || self.takes_any() && self.within_window() > 0;
        if unordered {
            unassigned = unassigned.min(self.board.tsns_left());
        }
        View {
            now,
            occasion,
            backlog_chunks: self.board.holes().len() + unassigned,
            backlog_bytes: self.queue.bytes(),
            sendable: self.sendable_left,
            window_room: self.offered.saturating_sub(span),
            receive_buffer: self.offered,
            unordered,
            acknowledged_chunks: self.chunk_number(self.board.cumulative() + 1),
            closing: self.closing,
            chunk_bytes: self.full_chunk(),
            epoch: self.epoch,
            paths: &[],
        }
    }

    /// How many of the unassigned chunks may leave: what the span rule allows, and one where a shut window is to be
    /// probed.
    #[inline]
    pub(super) fn sendable(&self) -> u64 {
        let sendable = self.within_window();
        if sendable == 0 && self.may_probe_window() && self.nothing_in_flight() {
            1
        } else {
            sendable
        }
    }

    /// The span rule: how many of the unassigned chunks lie, with all before them, within the
    /// buffer that the peer offered.
    #[inline]
    pub(super) fn within_window(&self) -> u64 {
        if self.takes_any() {
            return self.beside_unacknowledged();
        }
        let beyond = self.offered.saturating_sub(self.board.span());
        let full = self.full_chunk();
        if beyond >= full && self.is_passing() {
            // Whichever they are.
            let unassigned = self.queue.chunks().min(self.board.tsns_left());
            return (beyond / full).min(self.board.holes().len() + unassigned);
        }
        let holes = self.board.holes_within(self.offered);
        let beyond = beyond.saturating_sub(self.board.passing_holes());
        let fresh = match self.queue.next_bytes() {
            Some(next) if next as u64 <= beyond => {
                (beyond / full).max(1).min(self.board.tsns_left())
            }
            _ => 0,
        };
        holes + if holes == self.board.holes().len() { fresh } else { 0 }
    }

    /// Whether any of the unassigned chunks may go as long as there is room for one, as under
    /// [`WindowCheck::Unacknowledged`]. A shut window takes the first only, as a probe.
    #[inline]
    fn takes_any(&self) -> bool {
        self.config.window_check == WindowCheck::Unacknowledged
    }

    /// How many of the unassigned chunks fit into the buffer beside what is in flight or held by the peer.
    fn beside_unacknowledged(&self) -> u64 {
        let in_flight: u64 = self.paths.iter().map(|path| path.tx.flights.bytes()).sum();
        let room = self.offered.saturating_sub(self.board.held_bytes() + in_flight);
        let fresh = self.queue.chunks().min(self.board.tsns_left());
        (room / self.full_chunk()).min(self.board.holes().len() + fresh)
    }

    /// Whether all that is to be sent are whole unordered messages: whatever goes first, the peer's user has
    /// it when it arrives, and no order shuts the window.
    #[inline]
    pub(super) fn is_passing(&self) -> bool {
        self.queue.is_all_passing() && self.board.has_only_passing_holes()
    }

    /// Which chunk of the stream a TSN is, counted from 0.
    #[inline]
    pub(super) fn chunk_number(&self, tsn: u64) -> u64 {
        tsn - ((1u64 << 32) + self.local_tsn as u64)
    }

    #[inline]
    pub(super) fn nothing_in_flight(&self) -> bool {
        self.paths.iter().all(|p| p.tx.flights.is_empty())
    }
}
