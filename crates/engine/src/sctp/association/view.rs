//! The scheduler's view, made afresh for each input and kept up to date while it is drained.

use ropewalk_base::{Duration, PathId, Time};

use super::Association;
use crate::congestion::CongestionControl;
use crate::path::PathStatus;
use crate::scheduler::{DelaySource, Occasion, PathView, View};
use crate::window::SharedWindow;

impl Association {
    /// Makes the views of all paths.
    pub(super) fn refresh_views(&mut self, now: Time) {
        let mut views = std::mem::take(&mut self.views);
        if views.len() != self.paths.len() {
            views = (0..self.paths.len()).map(|i| self.blank_view(PathId::from_index(i))).collect();
        }
        let held_back = self.config.cmt.hold_data_until_confirmed && !self.all_confirmed();
        let fallback = self.fallback_path();
        let only = (!self.config.cmt.concurrent).then(|| self.single_path());
        let clock_offset = self.clock_offset();
        for view in &mut views {
            let active = match fallback {
                Some(path) => path == view.id,
                None => self.paths[view.id.index()].state.status() == PathStatus::Active,
            };
            view.usable = active && !held_back && only.is_none_or(|only| only == view.id);
            self.bring_up_to_date(now, view, clock_offset);
        }
        self.views = views;
        self.sendable_left = self.sendable();
        let shared = SharedWindow {
            buffer: self.offered,
            chunk: self.full_chunk(),
            acknowledged: self.board.acknowledged_bytes(),
            busy: !(self.queue.is_empty() && self.board.holes().is_empty()),
            shared: self.scheduler.shares_window(),
        };
        self.guard.apply(now, self.epoch, shared, &mut self.views);
        // With nothing on its way nothing will come that changes the guard's mind: some path must
        // be let go, if only with the probe of a shut window.
        let goes = |v: &PathView| v.is_open() && v.earliest_position == 0;
        if self.nothing_in_flight() && !self.views.iter().any(goes) {
            for view in &mut self.views {
                (view.window, view.earliest_position) = (view.cwnd, 0);
            }
        }
    }

    /// What of a view never changes.
    pub(super) fn blank_view(&self, id: PathId) -> PathView {
        let config = &self.paths[id.index()].config;
        PathView {
            id,
            usable: false,
            cost: config.cost,
            weight: config.weight,
            srtt: None,
            last_rtt: None,
            rttvar: Duration::ZERO,
            queueing: Duration::ZERO,
            rtt_age: Duration::ZERO,
            forward_delay: None,
            delay_source: self.config.delay_source,
            cwnd: 0,
            ssthresh: 0,
            window: 0,
            in_flight: 0,
            delivered: 0,
            burst_room: 0,
            rate: None,
            rate_confidence: 0.0,
            loss: 0.0,
            mtu: config.mtu,
            earliest_position: 0,
        }
    }

    /// All of a view that changes, but whether the path may be used.
    pub(super) fn bring_up_to_date(
        &self,
        now: Time,
        view: &mut PathView,
        clock_offset: Option<i64>,
    ) {
        let path = &self.paths[view.id.index()];
        let drained = self.drained(now, view.id);
        view.srtt = path.rtt.srtt();
        view.last_rtt = path.rtt.last();
        view.rttvar = path.rtt.rttvar();
        view.queueing = self.measured_queueing(view.id).saturating_sub(drained);
        view.rtt_age = now.since(path.rtt.sampled_at());
        view.forward_delay = self.forward_delay(view.id, clock_offset, drained);
        view.cwnd = self.cwnd(view.id);
        view.ssthresh = self.congestion.ssthresh(view.id);
        let most = self.manager.in_flight_most(&self.budget(), self.paths.len(), path.held);
        view.window = view.cwnd.min(most);
        view.in_flight = path.flights.bytes();
        view.delivered = path.rate.delivered();
        view.burst_room = path.burst_left as u64 * self.full_chunk();
        view.rate = path.rate.rate().or(path.config.rate_hint);
        view.rate_confidence = path.rate.confidence();
        view.loss = path.aged_loss(now);
        view.earliest_position = 0;
    }

    /// Clock offset between the ends as the timestamps see it: the path with the least round trip
    /// is taken to be symmetric, and what its timestamps say beyond half its round trip is offset.
    /// The same for all paths, so that it cancels where paths are compared.
    pub(super) fn clock_offset(&self) -> Option<i64> {
        if self.config.delay_source != DelaySource::Timestamp {
            return None;
        }
        let measured =
            self.paths.iter().filter_map(|p| Some((p.rtt.srtt()?, p.forward.raw_nanos()?)));
        let (srtt, raw) = measured.min_by_key(|(srtt, _)| *srtt)?;
        Some(raw.saturating_sub((srtt / 2).as_nanos() as i64))
    }

    fn forward_delay(
        &self,
        id: PathId,
        clock_offset: Option<i64>,
        drained: Duration,
    ) -> Option<Duration> {
        let path = &self.paths[id.index()];
        let half = path.rtt.srtt().map(|r| r / 2);
        let honest = match self.config.delay_source {
            DelaySource::Oracle => path.config.oracle_delay.or(half),
            DelaySource::HalfRtt => half.map(|d| d.saturating_sub(drained)),
            DelaySource::Timestamp => match (path.forward.raw_nanos(), clock_offset) {
                (Some(raw), Some(offset)) => {
                    let delay = Duration::from_nanos(raw.saturating_sub(offset).max(0) as u64);
                    Some(delay.saturating_sub(drained))
                }
                _ => half,
            },
        };
        let error = path.config.delay_error;
        if error == 1.0 { honest } else { honest.map(|d| d.mul_f64(error)) }
    }

    /// What of a path's delay was queueing when it was last measured.
    fn measured_queueing(&self, id: PathId) -> Duration {
        let path = &self.paths[id.index()];
        let by_round_trip = match (path.rtt.srtt(), path.rtt.base()) {
            (Some(srtt), Some(least)) => srtt.saturating_sub(least),
            _ => Duration::ZERO,
        };
        match self.config.delay_source {
            // The round trip also changes when SACKs return by another path; this does not.
            DelaySource::Timestamp => path.forward.queueing().unwrap_or(by_round_trip),
            DelaySource::HalfRtt | DelaySource::Oracle => by_round_trip,
        }
    }

    /// A path on which nothing is in flight empties its queue while time passes, and its last
    /// estimate says less and less: without this a path that once queued looks slow for ever, is
    /// given nothing, and is never measured again.
    fn drained(&self, now: Time, id: PathId) -> Duration {
        let path = &self.paths[id.index()];
        if !path.flights.is_empty() {
            return Duration::ZERO;
        }
        self.measured_queueing(id).min(now.since(path.rtt.sampled_at()))
    }

    fn all_confirmed(&self) -> bool {
        self.paths.iter().all(|p| p.state.status() != PathStatus::Unconfirmed)
    }

    /// With no path active, the one with the fewest errors, then the latest used, carries on
    /// (RFC 7829, 3, rule 3).
    fn fallback_path(&self) -> Option<PathId> {
        if self.paths.iter().any(|p| p.state.status() == PathStatus::Active) {
            return None;
        }
        let proved = |p: &super::Path| p.state.status() != PathStatus::Unconfirmed;
        let all = (0..self.paths.len()).filter(|i| proved(&self.paths[*i]));
        let best = all.min_by_key(|i| {
            let path = &self.paths[*i];
            (path.state.errors(), Time::FAR_FUTURE.since(path.last_sent_at))
        });
        best.map(PathId::from_index)
    }

    /// Plain SCTP sends on the primary path, path 0, and on another only while that has failed.
    pub(super) fn single_path(&self) -> PathId {
        let active = |p: &super::Path| p.state.status() == PathStatus::Active;
        let first = self.paths.iter().position(active);
        PathId::from_index(first.unwrap_or_else(|| self.fallback_path().map_or(0, |p| p.index())))
    }

    /// What the scheduler sees, the paths apart: they are lent to it while it changes itself.
    #[inline]
    pub(super) fn outlook(&self, now: Time, occasion: Occasion) -> View<'static> {
        let span = self.board.span();
        View {
            now,
            occasion,
            backlog_chunks: self.queue.chunks() + self.board.holes().len(),
            backlog_bytes: self.queue.bytes(),
            sendable: self.sendable_left,
            window_room: self.offered.saturating_sub(span),
            receive_buffer: self.offered,
            acknowledged_chunks: self.chunk_number(self.board.cumulative() + 1),
            closing: self.closing,
            chunk_bytes: self.full_chunk(),
            epoch: self.epoch,
            paths: &[],
        }
    }

    /// The span rule: how many of the unassigned chunks lie, with all before them, within the
    /// buffer that the peer offered. One may always go when nothing is on its way: the
    /// zero-window probe (RFC 9260, 6.1 A).
    #[inline]
    pub(super) fn sendable(&self) -> u64 {
        let span = self.board.span();
        let holes = self.board.holes_within(self.offered);
        let beyond = self.offered.saturating_sub(span);
        let fresh = match self.queue.next_bytes() {
            Some(next) if next as u64 <= beyond => {
                (beyond / self.full_chunk()).max(1).min(self.board.tsns_left())
            }
            _ => 0,
        };
        let sendable = holes + if holes == self.board.holes().len() { fresh } else { 0 };
        if sendable == 0 && self.nothing_in_flight() { 1 } else { sendable }
    }

    /// Which chunk of the stream a TSN is, counted from 0.
    #[inline]
    pub(super) fn chunk_number(&self, tsn: u64) -> u64 {
        tsn - ((1u64 << 32) + self.local_tsn as u64)
    }

    #[inline]
    pub(super) fn nothing_in_flight(&self) -> bool {
        self.paths.iter().all(|p| p.flights.is_empty())
    }
}
