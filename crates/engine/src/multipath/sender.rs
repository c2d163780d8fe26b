//! The sender: its state, and the assignment of new data to paths.

use ropewalk_base::{PathId, Time};

use super::bottleneck::detector;
use super::view::reserve;
use super::{Outstanding, PeerAcks, TxPath};
use crate::congestion::{BottleneckCoupling, Congestion, CongestionControl};
use crate::measurements::{Measurements, PathCounters, SenderStats};
use crate::path::{Pacing, SharedBottlenecks};
use crate::record::DecisionRecord;
use crate::scheduler::{
    Action, BlockingMitigation, Decision, DecisionKind, DelaySource, FragmentEnd, PathSet,
    PathView, Reason, Schedule, Scheduler, SentReport, View,
};
use crate::window::{ManageWindows, ManagedPath, Penalty, WindowManager};

/// Settings of a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderConfig {
    /// Source of forward delays.
    pub delay_source: DelaySource,
    /// Measures while the receive window is closed.
    pub mitigation: BlockingMitigation,
    /// Pacing. `None`: a full window may be sent in one burst.
    pub pacing: Option<Pacing>,
    /// Acknowledgement behaviour of the peer.
    pub peer_acks: PeerAcks,
    /// Whether windows are reduced in proportion to delivered data (RFC 6937bis).
    pub prr: bool,
    /// Whether only whole packets of a window may be in flight. Otherwise the last one may exceed it.
    pub whole_packets: bool,
    /// Whether each decision is recorded.
    pub record_decisions: bool,
    /// Paths that congestion control treats as one flow.
    pub coupling: BottleneckCoupling,
}

/// The sending side of a connection: its data, its paths, and the components that assign the data to the
/// paths (scheduler, congestion control and window management).
///
/// `repr(C)` keeps the order of the fields, with those that every input accesses first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Sender<O: Outstanding> {
    /// When a waiting scheduler must decide again.
    pub wait_until: Option<Time>,
    pub paths: Vec<O::Path>,
    /// Whether `views` includes the effects of the last input.
    views_are_current: bool,
    /// Whether some paths are used only when needed.
    pub(super) has_reserves: bool,
    /// Data that is unassigned or unacknowledged.
    pub outstanding: O,
    /// Units of the unassigned queue that the span rule still permits, updated while draining.
    pub sendable_left: u64,
    /// Losses, failures and returns so far. A scheduler's plan is valid for one epoch.
    pub epoch: u64,
    /// Units of the unassigned queue that end data which is assigned to one path together.
    pub fragment_ends: Vec<FragmentEnd>,
    /// Further copies requested by the scheduler: path and unit.
    pub copies: Vec<(PathId, u64)>,
    /// The scheduler's view of the paths.
    pub views: Vec<PathView>,
    pub measurements: Measurements,
    pub congestion: Congestion,
    pub scheduler: Scheduler,
    pub records: Vec<DecisionRecord>,
    pub config: SenderConfig,
    pub(super) penalty: Penalty,
    pub(super) manager: WindowManager,
    /// When the application or the receive window last held all paths back.
    pub(super) held_back_at: Option<Time>,
    /// Detector of shared bottlenecks, if congestion control needs it.
    pub bottlenecks: Option<Box<SharedBottlenecks>>,
    /// Scratch space of the window manager.
    pub(super) managed: Vec<ManagedPath>,
}

/// The next step for unassigned data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Assignment {
    /// The unit at `position` of the unassigned queue, on `path`.
    Send { path: PathId, position: u64, decision: Decision },
    /// Nothing: the scheduler waits or is blocked.
    Nothing,
}

impl<O: Outstanding> Sender<O> {
    /// Creates an unused sender.
    pub fn new(
        config: SenderConfig,
        outstanding: O,
        paths: Vec<O::Path>,
        scheduler: Scheduler,
        congestion: Congestion,
        manager: WindowManager,
    ) -> Self {
        Self {
            views_are_current: false,
            has_reserves: false,
            wait_until: None,
            sendable_left: 0,
            held_back_at: None,
            bottlenecks: detector(config.coupling, paths.len()),
            outstanding,
            paths,
            views: Vec::new(),
            fragment_ends: Vec::new(),
            copies: Vec::new(),
            scheduler,
            congestion,
            epoch: 0,
            measurements: Measurements::default(),
            records: Vec::new(),
            config,
            penalty: Penalty::default(),
            manager,
            managed: Vec::new(),
        }
    }

    /// Called after an input: the views are updated before the next decision.
    #[inline]
    pub fn invalidate_views(&mut self) {
        self.views_are_current = false;
    }

    /// Called after a change of a path's configuration or of the set of paths: the views are created
    /// again.
    pub fn discard_views(&mut self) {
        self.views.clear();
        self.invalidate_views();
    }

    /// Whether the caller must update the views before the next decision.
    #[inline]
    pub fn views_need_update(&mut self) -> bool {
        !std::mem::replace(&mut self.views_are_current, true)
    }

    /// Discards state that depends on the set of paths.
    pub fn forget_paths(&mut self) {
        self.copies.clear();
        self.discard_views();
        self.penalty = Penalty::default();
        self.bottlenecks = detector(self.config.coupling, self.paths.len());
        self.epoch += 1;
    }

    /// Requests the path for the next unit of the unassigned queue from the scheduler. `None` if the
    /// decision is still pending.
    #[inline]
    pub fn assign(&mut self, now: Time) -> Option<Assignment> {
        let occasion = DecisionKind::NewData;
        let seen = self.seen(now, occasion);
        let view = View { paths: &self.views, fragment_ends: &self.fragment_ends, ..seen };
        let mut decision = self.scheduler.decide(&view);
        if self.scheduler.is_thinking() || !self.scheduler.may(&view, &decision) {
            return None;
        }
        if decision.action == Action::Blocked && nothing_in_flight(&self.paths) {
            decision =
                Self::assign_when_stalled(&view, self.outstanding.has_lost()).unwrap_or(decision);
        }
        Some(match decision.action {
            Action::Send { path, position } => Assignment::Send { path, position, decision },
            Action::Copies { paths, position } => match paths.iter().next() {
                Some(path) => Assignment::Send { path, position, decision },
                None => Assignment::Nothing,
            },
            Action::Wait { .. } | Action::Blocked => {
                if let Action::Wait { until } = decision.action {
                    self.wait_until = Some(until);
                }
                self.record(now, decision, None);
                Assignment::Nothing
            }
        })
    }

    /// The decision if the scheduler sends nothing and nothing is in flight, so that no acknowledgement
    /// would lead to another decision. The open path with the lowest forward delay takes the head of the
    /// queue, if the receive window permits it.
    #[cold]
    fn assign_when_stalled(view: &View<'_>, has_lost: bool) -> Option<Decision> {
        let quickest = view.open().min_by_key(|path| path.forward_delay)?.id;
        let may = view.takeable() > 0 && !has_lost;
        may.then(|| Decision::send(quickest, 0, Reason::NothingOnTheWay))
    }

    /// Records that `unit` of the given size is sent as assigned.
    #[inline]
    pub fn on_assigned(
        &mut self,
        now: Time,
        (path, position, decision): (PathId, u64, &Decision),
        (unit, bytes): (u64, u64),
    ) {
        self.record(now, *decision, Some(unit));
        let sequence = self.outstanding.sequence(unit);
        let report = SentReport { path, position, sequence, bytes };
        if let Action::Copies { paths, .. } = decision.action {
            self.note_copies(paths, unit, report);
        }
        self.scheduler.on_sent(&report);
    }

    /// Requests that the unit is also sent on all other paths of the set.
    #[cold]
    fn note_copies(&mut self, paths: PathSet, unit: u64, first: SentReport) {
        for path in paths.iter().skip(1) {
            self.copies.push((path, unit));
            self.scheduler.on_sent(&SentReport { path, ..first });
        }
    }

    /// The scheduler's view, without the paths.
    #[inline]
    pub fn seen(&self, now: Time, occasion: DecisionKind) -> View<'static> {
        self.outstanding.view(&self.paths, now, occasion, self.sendable_left, self.epoch)
    }

    /// Updates the view of a path after a data packet was sent on it.
    #[inline(always)]
    pub fn on_packet_sent(&mut self, now: Time, id: PathId, full: u64) {
        let path = self.paths[id.index()].as_ref();
        if let Some(view) = self.views.get_mut(id.index()) {
            view.in_flight = path.in_flight();
            view.unacknowledged = path.unacknowledged.max(view.in_flight);
            view.burst_room = path.burst_room(now, full);
            if path.one_packet {
                view.window = view.window.min(view.in_flight);
            }
        }
        if self.has_reserves {
            reserve(&mut self.views);
        }
    }

    /// Ends a drain. Records which paths had space, and whether the receive window held them back.
    pub fn finish_drain(&mut self, now: Time, idle: bool) {
        let closed = !idle && self.sendable_left == 0;
        let full = self.outstanding.budget().chunk;
        let mut open = false;
        for (view, path) in self.views.iter().zip(&mut self.paths) {
            let path = path.as_mut();
            let has_room = view.usable && view.in_flight < view.window;
            let held_back = has_room && path.pacer.is_on() && view.burst_room == 0;
            path.limited = has_room && !held_back;
            path.out_of_data = path.limited && idle;
            open |= has_room;
            if held_back
                && !closed
                && !idle
                && let Some(at) = path.pacer.ready_at(full)
            {
                self.wait_until = Some(earlier(self.wait_until, at));
            }
        }
        if idle || closed && open {
            self.held_back_at = Some(now);
        }
        self.measurements.set_blocked(now, closed && open);
    }

    /// Records a decision, if configured.
    #[inline]
    pub fn record(&mut self, now: Time, decision: Decision, unit: Option<u64>) {
        if self.config.record_decisions {
            self.keep_record(now, decision, unit.map(|unit| self.outstanding.sequence(unit)));
        }
    }

    #[cold]
    fn keep_record(&mut self, now: Time, decision: Decision, chunk: Option<u64>) {
        self.records.push(DecisionRecord {
            at: now,
            chunk,
            action: decision.action,
            reason: decision.reason,
            sendable: self.sendable_left,
            paths: self.views.iter().map(Into::into).collect(),
        });
    }

    /// Resets all measurements, at the end of a warm-up.
    pub fn reset_measurements(&mut self, now: Time) {
        self.measurements.settle(now);
        self.measurements.stats = SenderStats::default();
        for path in &mut self.paths {
            path.as_mut().counters = PathCounters::default();
        }
    }

    /// Counters of each path.
    pub fn path_counters(&self) -> impl ExactSizeIterator<Item = &PathCounters> {
        self.paths.iter().map(|path| &path.as_ref().counters)
    }

    /// Updates window management after an acknowledgement, which may have opened the window of `grown`.
    #[inline]
    pub fn manage_windows(&mut self, now: Time, grown: PathId) {
        if !self.manager.is_none() {
            self.fit_windows(now, grown);
        }
    }

    #[inline(never)]
    fn fit_windows(&mut self, now: Time, grown: PathId) {
        let (source, congestion) = (self.config.delay_source, &self.congestion);
        self.managed.clear();
        self.managed.extend(self.paths.iter().enumerate().map(|(i, path)| {
            let path = path.as_ref();
            let estimates = path.estimates(source);
            ManagedPath {
                window: congestion.window(PathId::from_index(i)),
                rate: path.config.rate_hint.or(path.rate.rate()),
                round_trip: path.rtt.base(),
                empty_round_trip: estimates.empty_round_trip(),
                last_queueing: estimates.last_queueing(),
                sent: path.flights.next_number(),
                lost: path.losses,
            }
        }));
        self.manager.manage(now, grown, &self.outstanding.budget(), &mut self.managed);
        for (i, path) in self.managed.iter().enumerate() {
            self.congestion.limit(PathId::from_index(i), path.window);
        }
    }
}

/// The earlier of two times. The first may not be set.
pub(super) fn earlier(known: Option<Time>, at: Time) -> Time {
    known.map_or(at, |known| known.min(at))
}

/// Whether nothing is in flight on any path.
#[inline]
pub(crate) fn nothing_in_flight<P: AsRef<TxPath>>(paths: &[P]) -> bool {
    paths.iter().all(|path| path.as_ref().flights.is_empty())
}
