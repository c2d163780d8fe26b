//! The scheduler's view, made afresh for each input and kept up to date while it is drained.

use ropewalk_base::{PathId, Time};

use super::Session;
use crate::congestion::CongestionControl;
use crate::path::{Estimates, PathStatus, clock_offset};
use crate::scheduler::{DelaySource, Occasion, PathView, View};
use crate::window::{Budget, ManagedPath, SharedWindow};

impl Session {
    /// Makes the views of all paths.
    pub(super) fn refresh_views(&mut self, now: Time) {
        let mut views = core::mem::take(&mut self.views);
        if views.len() != self.subflows.len() {
            views = self.ids().map(|path| self.blank_view(path)).collect();
        }
        let fallback = self.fallback_path();
        let offset = self.clock_offset();
        for view in &mut views {
            let subflow = &self.subflows[view.id.index()];
            let active = match fallback {
                Some(path) => path == view.id,
                None => subflow.tx.state.status() == PathStatus::Active,
            };
            view.usable = active && subflow.is_open();
            self.bring_up_to_date(now, view, offset);
        }
        self.views = views;
        self.sendable_left = self.sendable();
        let shared = SharedWindow {
            buffer: self.offered(),
            chunk: self.segment_limit as u64,
            acknowledged: self.board.una(),
            busy: !(self.queue.is_empty() && self.board.holes().is_empty()),
            shared: self.scheduler.shares_window(),
            in_order: true,
        };
        if self.config.receive_buffer.is_some() {
            self.guard.apply(now, self.epoch, shared, &mut self.views);
        }
        if self.nothing_in_flight() {
            PathView::let_one_go(&mut self.views);
        }
    }

    /// What of a view never changes.
    pub(super) fn blank_view(&self, id: PathId) -> PathView {
        let config = &self.subflows[id.index()].tx.config;
        PathView { burst_room: u64::MAX, ..PathView::blank(id, config, self.config.delay_source) }
    }

    /// All of a view that changes, but whether the path may be used.
    pub(super) fn bring_up_to_date(&self, now: Time, view: &mut PathView, offset: Option<i64>) {
        let subflow = &self.subflows[view.id.index()];
        let estimates = self.estimates(view.id);
        let drained = estimates.drained(now);
        view.srtt = subflow.tx.rtt.srtt();
        view.last_rtt = subflow.tx.rtt.last();
        view.rttvar = subflow.tx.rtt.rttvar();
        view.queueing = estimates.queueing().saturating_sub(drained);
        view.rtt_age = now.since(subflow.tx.rtt.sampled_at());
        view.forward_delay = estimates.forward_delay(offset, drained);
        view.cwnd = self.congestion.window(view.id);
        view.ssthresh = self.congestion.ssthresh(view.id);
        let most = self.manager.in_flight_most(
            view.id,
            &self.budget(),
            self.subflows.len(),
            subflow.tx.held,
        );
        view.window = view.cwnd.min(most);
        view.in_flight = subflow.tx.in_flight();
        view.delivered = subflow.tx.rate.delivered();
        view.rate = subflow.tx.rate.rate().or(subflow.tx.config.rate_hint);
        view.rate_confidence = subflow.tx.rate.confidence();
        view.loss = subflow.tx.loss.aged(now.since(subflow.tx.last_sent_at));
        view.earliest_position = 0;
    }

    fn estimates(&self, path: PathId) -> Estimates<'_> {
        let subflow = &self.subflows[path.index()];
        Estimates {
            rtt: &subflow.tx.rtt,
            forward: &subflow.tx.forward,
            config: &subflow.tx.config,
            idle: subflow.tx.flights.is_empty(),
            source: self.config.delay_source,
        }
    }

    pub(super) fn clock_offset(&self) -> Option<i64> {
        if self.config.delay_source != DelaySource::Timestamp {
            return None;
        }
        clock_offset(self.ids().map(|path| self.estimates(path)))
    }

    /// With no path active, the one with the fewest errors, then the latest used, carries on.
    fn fallback_path(&self) -> Option<PathId> {
        let open = || self.subflows.iter().filter(|s| s.is_open());
        if open().any(|s| s.tx.state.status() == PathStatus::Active) {
            return None;
        }
        let all = self.ids().filter(|path| self.subflows[path.index()].is_open());
        all.min_by_key(|path| {
            let subflow = &self.subflows[path.index()];
            (subflow.tx.state.errors(), Time::FAR_FUTURE.since(subflow.tx.last_sent_at))
        })
    }

    /// The peer's window, from the data-level acknowledgement on, bytes.
    #[inline]
    pub(super) const fn offered(&self) -> u64 {
        self.edge.saturating_sub(self.board.una())
    }

    /// What the scheduler sees, the paths apart: they are lent to it while it changes itself.
    #[inline]
    pub(super) fn outlook(&self, now: Time, occasion: Occasion) -> View<'static> {
        let limit = self.segment_limit as u64;
        View {
            now,
            occasion,
            backlog_chunks: self.queue.bytes().div_ceil(limit) + self.board.holes().len(),
            backlog_bytes: self.queue.bytes(),
            sendable: self.sendable_left,
            window_room: self.edge.saturating_sub(self.board.next()),
            receive_buffer: self.offered(),
            unordered: false,
            acknowledged_chunks: self.board.acknowledged(),
            closing: self.closing || self.ending.wanted,
            chunk_bytes: limit,
            epoch: self.epoch,
            paths: &[],
        }
    }

    /// The span rule: how many of the unassigned units lie, with all before them, within the
    /// window that the peer offered. One may always go when nothing is on its way: the
    /// probe of a shut window (RFC 9293, 3.8.6.1).
    #[inline]
    pub(super) fn sendable(&self) -> u64 {
        let holes = self.board.holes_within(self.offered());
        let beyond = self.edge.saturating_sub(self.board.next());
        let limit = self.segment_limit as u64;
        let fresh = match self.queue.bytes() {
            0 => 0,
            // The last segment of what there is may be short.
            bytes if bytes <= beyond => bytes.div_ceil(limit),
            _ => beyond / limit,
        };
        let sendable = holes + if holes == self.board.holes().len() { fresh } else { 0 };
        if sendable == 0 && self.nothing_in_flight() { 1 } else { sendable }
    }

    #[inline]
    pub(super) fn nothing_in_flight(&self) -> bool {
        self.subflows.iter().all(|subflow| subflow.tx.flights.is_empty())
    }

    /// An acknowledgement may have opened the window of `grown`.
    #[inline]
    pub(super) fn manage_windows(&mut self, now: Time, grown: PathId) {
        if !self.manager.is_none() {
            self.fit_windows(now, grown);
        }
    }

    fn fit_windows(&mut self, now: Time, grown: PathId) {
        let budget = self.budget();
        let mut managed = core::mem::take(&mut self.managed);
        managed.clear();
        managed.extend(self.subflows.iter().enumerate().map(|(i, subflow)| {
            let id = PathId::from_index(i);
            let estimates = self.estimates(id);
            ManagedPath {
                window: self.congestion.window(id),
                rate: subflow.tx.config.rate_hint.or(subflow.tx.rate.rate()),
                round_trip: subflow.tx.rtt.base(),
                empty_round_trip: estimates.empty_round_trip(),
                last_queueing: estimates.last_queueing(),
                sent: subflow.tx.flights.next_number(),
                lost: subflow.tx.losses,
            }
        }));
        self.manager.manage(now, grown, &budget, &mut managed);
        for (i, path) in managed.iter().enumerate() {
            self.congestion.limit(PathId::from_index(i), path.window);
        }
        self.managed = managed;
    }

    const fn budget(&self) -> Budget {
        Budget { buffer: self.offered(), chunk: self.segment_limit as u64 }
    }
}
