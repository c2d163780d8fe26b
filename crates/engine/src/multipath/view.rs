//! The scheduler's view of the paths, created for each input and updated during the drain.

use ropewalk_base::{Duration, PathId, Rate, Time};

use super::sender::nothing_in_flight;
use super::{Outstanding, Sender, TxPath};
use crate::congestion::CongestionControl;
use crate::path::{PathStatus, PathUse, Shape, clock_offset};
use crate::scheduler::{DelaySource, PathView};
use crate::window::ManageWindows;

/// Minimum time for which an acknowledgement is overdue before backups replace the path (at least its
/// round trip, and earlier after a timeout). Short delays of acknowledgements are frequent, and backups
/// may cost money.
const SILENT: Duration = Duration::from_millis(100);

impl<O: Outstanding> Sender<O> {
    /// Creates the views of all paths. `is_usable` returns whether a path may carry data now.
    pub fn update_views(&mut self, now: Time, is_usable: impl Fn(PathId, &O::Path) -> bool) {
        let mut views = std::mem::take(&mut self.views);
        if views.len() != self.paths.len() {
            let blank = |(i, path): (usize, &O::Path)| {
                self.blank_view(PathId::from_index(i), path.as_ref())
            };
            views = self.paths.iter().enumerate().map(blank).collect();
        }
        self.set_pace(now);
        let offset = self.clock_offset();
        for view in &mut views {
            view.usable = is_usable(view.id, &self.paths[view.id.index()]);
            self.bring_up_to_date(now, view, offset);
        }
        self.has_reserves = apply_uses(&mut views);
        self.views = views;
        self.sendable_left = self.sendable();
        if nothing_in_flight(&self.paths) {
            PathView::allow_one_chunk(&mut self.views);
        }
    }

    /// A path as schedulers see it, also between two inputs. Has no side effects.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_view(&self, now: Time, id: PathId) -> PathView {
        let path = self.paths[id.index()].as_ref();
        // A path that is not in use now, such as a backup, is not usable although it works.
        let in_use = |view: &PathView| view.usable || view.usage.is_regular();
        let known = self.views.get(id.index());
        let in_use = known.map_or_else(|| path.config.usage.is_regular(), in_use);
        let usable = path.state.status() == PathStatus::Active && in_use;
        let mut view = PathView { usable, ..self.blank_view(id, path) };
        self.bring_up_to_date(now, &mut view, self.clock_offset());
        view
    }

    /// The constant part of a view.
    fn blank_view(&self, id: PathId, path: &TxPath) -> PathView {
        PathView::blank(id, &path.config, self.config.delay_source)
    }

    /// Updates all other parts of a view, except whether the path is usable.
    #[inline]
    fn bring_up_to_date(&self, now: Time, view: &mut PathView, clock_offset: Option<i64>) {
        let path = self.paths[view.id.index()].as_ref();
        let budget = self.outstanding.budget();
        let estimates = path.estimates(self.config.delay_source);
        let drained = estimates.drained(now);
        view.usage = path.config.usage;
        view.overdue =
            path.overdue_from(self.config.peer_acks).map_or(Duration::ZERO, |at| now.since(at));
        view.srtt = path.rtt.srtt();
        view.last_rtt = path.rtt.last();
        view.rttvar = path.rtt.rttvar();
        view.queueing = estimates.queueing().saturating_sub(drained);
        view.rtt_age = now.since(path.rtt.sampled_at());
        view.forward_delay = estimates.forward_delay(clock_offset, drained);
        view.cwnd = self.congestion_window(view.id);
        view.ssthresh = self.congestion.ssthresh(view.id);
        let most = self.manager.in_flight_most(view.id, &budget, self.paths.len(), path.held);
        view.window = path.within_one_packet(view.cwnd.min(most));
        view.in_flight = path.in_flight();
        view.unacknowledged = path.unacknowledged.max(view.in_flight);
        view.delivered = path.rate.delivered();
        view.burst_room = path.burst_room(now, budget.chunk);
        view.rate = path.rate.rate().or(path.config.rate_hint);
        view.pacing_rate = self.congestion.pace(view.id).map_or(Rate::ZERO, |pace| pace.rate);
        let is_slower =
            |drain: &Rate| view.rate.is_some_and(|rate| drain.as_bps() < rate.as_bps() / 2);
        view.drain = path.drain.rate(now).filter(is_slower);
        view.rate_confidence = path.rate.confidence();
        view.loss = path.loss.aged(path.idle(now));
        view.probing = self.congestion.disturbance(view.id).is_probe();
    }

    /// Offset of the peer's clock, if there are timestamp measurements.
    pub fn clock_offset(&self) -> Option<i64> {
        let source = self.config.delay_source;
        if source != DelaySource::Timestamp {
            return None;
        }
        clock_offset(self.paths.iter().map(|path| path.as_ref().estimates(source)))
    }

    /// Number of unassigned units that may be sent: those that the span rule permits, or one as a
    /// zero-window probe.
    #[inline]
    pub fn sendable(&self) -> u64 {
        let sendable = self.outstanding.within_window(&self.paths);
        if sendable == 0 && self.outstanding.may_probe_window() && nothing_in_flight(&self.paths) {
            return 1;
        }
        sendable
    }

    /// Sets the pacing rate of all paths: that of congestion control, or else a multiple of the window
    /// per round trip, once that is known.
    fn set_pace(&mut self, now: Time) {
        let full = self.outstanding.budget().chunk;
        let burst_time = self.config.pacing.map_or(Duration::ZERO, |pacing| pacing.burst_time);
        for (i, path) in self.paths.iter_mut().enumerate() {
            let (id, path) = (PathId::from_index(i), path.as_mut());
            if let Some(pace) = self.congestion.pace(id) {
                path.pacer.obey(now, pace, burst_time);
                continue;
            }
            let Some(pacing) = self.config.pacing else { return };
            let (window, threshold) = (self.congestion.window(id), self.congestion.ssthresh(id));
            if let Some(srtt) = path.rtt.srtt() {
                let slow_start = window < threshold;
                path.pacer.set(now, &pacing, Shape { window, srtt, slow_start }, full);
            }
        }
    }
}

/// Excludes the paths that are not to be used now: those that are never used, and backups while a regular
/// path or a cheaper backup works. Returns whether there are paths that are used only when needed.
fn apply_uses(views: &mut [PathView]) -> bool {
    if views.iter().all(|view| view.usage == PathUse::Always) {
        return false;
    }
    let silent = |view: &PathView| view.overdue >= view.srtt.unwrap_or(SILENT).max(SILENT);
    let works = |view: &&PathView| view.usable && !silent(view);
    let mut regular = views.iter().filter(|view| view.usage.is_regular());
    let needs_backup = !regular.any(|view| works(&view));
    let backups = views.iter().filter(|view| view.usage == PathUse::Backup);
    let cheapest = backups.filter(works).map(|view| view.cost).min();
    for view in views.iter_mut() {
        view.usable &= match view.usage {
            PathUse::Always | PathUse::WhenNeeded => true,
            PathUse::Backup => needs_backup && cheapest.is_none_or(|cost| view.cost <= cost),
            PathUse::Never => false,
        };
    }
    reserve(views);
    views.iter().any(|view| view.usage == PathUse::WhenNeeded)
}

/// Reserves the paths that are used only when needed, while a path before them has room.
pub(super) fn reserve(views: &mut [PathView]) {
    views.iter_mut().for_each(|view| view.reserved = false);
    for i in 0..views.len() {
        let path = &views[i];
        let has_room =
            |other: &PathView| other.is_open() && other.overdue.is_zero() && other.is_before(path);
        let reserved = path.usage == PathUse::WhenNeeded && views.iter().any(has_room);
        views[i].reserved = reserved;
    }
}

/// The path that carries data while none of these is active: the one with the fewest errors, then the one
/// used last (RFC 7829, 3, rule 3). `None` if one of them is active.
pub(crate) fn fallback_path<'a>(
    candidates: impl Iterator<Item = (PathId, &'a TxPath)> + Clone,
) -> Option<PathId> {
    if candidates.clone().any(|(_, path)| path.state.status() == PathStatus::Active) {
        return None;
    }
    let key = |(_, path): &(PathId, &TxPath)| {
        (path.state.errors(), Time::FAR_FUTURE.since(path.last_sent_at))
    };
    candidates.min_by_key(key).map(|(id, _)| id)
}
