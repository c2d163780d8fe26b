//! `lay`, the default scheduler: assigns chunks to paths so that they arrive in order.
//!
//! For each path, `lay` predicts when a chunk that is sent now arrives, behind the data in flight. The
//! fastest path takes the head of the queue. Every other path takes the chunk that is due when it arrives
//! there: as far beyond the head as faster paths deliver until then. All further rules follow from this
//! prediction.
//!
//! - **Reorder margin**: chunks wait at the receiver while a loss on a faster path is repaired. A path
//!   that is slower than paths with frequent losses therefore takes a chunk nearer to the head of the
//!   queue.
//! - **Waiting**: a path sends nothing if its chunk would be due only beyond the end of the queue.
//! - **Window sharing**: a slow path reaches far ahead. It is used only if the receive window reaches
//!   that far, or if the receive buffer can spare the rest.
//! - **No standing queues**: data in flight is limited to the BDP of the path and a small margin that
//!   reveals a growing rate. The congestion window is the limit if no other path is in use, and where
//!   other flows fill the queue, which `lay` detects by a pause.
//! - **Silence**: an overdue acknowledgement delays the predicted arrival by the same time. A path
//!   without recent measurements carries copies of data that is sent on other paths, until it responds.
//! - **Rests**: a path is not used for a while if it carries a small share of the data and holds the
//!   oldest unacknowledged chunk for a larger share of the time, or if it closes the receive window for
//!   a larger share of the time than its share of the data.
//! - **Tail copies**: the last chunks of a transfer are also sent on a second path that has nothing
//!   better to do. No later data follows these chunks that would reveal their loss.

mod bdp_filter;
mod head;
mod loss_stall_filter;
mod queue;
#[cfg(test)]
mod tests;

use ropewalk_base::{Duration, PathId, Rate, Time};

use self::bdp_filter::BdpFilter;
use self::head::{Holders, Share};
use self::loss_stall_filter::LossStallFilter;
use self::queue::{Limit, Queue};
use super::daps::oldest_first;
use super::{Decision, PathSet, PathView, Reason, Schedule, SentReport, View};
use crate::path::PathUse;

/// Options of `lay`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LayOptions {
    /// How much nearer to the head of the queue a path takes its chunk if faster paths have frequent
    /// losses, 0 to 1. A larger value lowers the 99th percentile of delays and raises the median. Default
    /// 0.6.
    pub reorder_margin: f64,
    /// Maximum acceptable time from sending a chunk to its arrival. Slower paths are not used while
    /// another path stays within the budget. If the repair of a loss would exceed the budget, a copy is
    /// sent on a second path. Default `None`: goodput has priority.
    pub latency_budget: Option<Duration>,
}

impl Default for LayOptions {
    fn default() -> Self {
        Self { reorder_margin: 0.6, latency_budget: None }
    }
}

/// Maximum data in flight on a path, as a multiple of its BDP.
const PIPE_GAIN: f64 = 1.2;
/// The same for a path with link losses. Each loss halves the congestion window. From a window little
/// above the BDP, this would leave the path half empty.
const LOSSY_PIPE_GAIN: f64 = 2.5;
/// Loss rate above which losses are attributed to the link rather than to our own queueing.
const LOSSY: f64 = 1e-3;
/// Extra in-flight allowance, in chunks. The receiver acknowledges every second packet (RFC 9260, 6.2), and
/// the BDP of a slow path can be smaller than two packets.
const SLACK_CHUNKS: f64 = 2.0;
/// Share of the round trip by which queueing must exceed the amount that our own data explains before it
/// is attributed to other flows.
const OTHERS: f64 = 0.125;
/// A path without a measurement for this time carries a copy.
const SILENCE: Duration = Duration::from_secs(2);
/// Chunks at the end of a transfer that are followed by too few others to reveal their loss.
const TAIL_CHUNKS: u64 = 4;
/// Number of mean deviations of the round trip after which a loss has been repaired.
const DEVIATIONS: f64 = 4.0;

/// Estimates for a path. Times are in nanoseconds from now, rates in bytes per nanosecond.
#[derive(Clone, Copy, Debug)]
struct PathEstimate {
    id: PathId,
    rate: f64,
    /// Arrival of a chunk that is sent now, behind the data in flight.
    arrival: f64,
    /// Uncertainty of `arrival`.
    doubt: f64,
    round_trip: f64,
    /// Whether the path may send a chunk now.
    open: bool,
    loss: f64,
    /// Whether chunks often wait for the repair of a loss on this path.
    stalls: bool,
    /// Whether the path has carried nothing recently.
    idle: bool,
    /// Whether the path is idle and was not measured recently, or ever.
    silent: bool,
}

/// Scheduler that assigns each chunk to the path on which it arrives when it is due. docs/concepts/lay.md
/// describes the rules.
#[derive(Clone, Debug, Default)]
pub struct Lay {
    options: LayOptions,
    estimates: Vec<PathEstimate>,
    /// Indexed by path identifier.
    states: Vec<PathState>,
    holders: Holders,
    now: Time,
    /// Whether ordered data has been waiting to be sent since `now`, so that each acknowledgement leads to a
    /// decision.
    busy: bool,
    /// Whether the receive window has been closed since `now`.
    closed: bool,
}

/// State of a path between decisions.
#[derive(Clone, Copy, Debug, Default)]
struct PathState {
    /// When data was last sent on the path.
    used: Time,
    /// Filter of the round trip without queueing.
    pipe: BdpFilter,
    /// Detects frequent stalls for repairs.
    stalls: LossStallFilter,
    /// Distinguishes our own queue from a queue of other flows.
    queue: Queue,
    /// Share of the data that the path carries, and of the time during which it holds up the stream.
    share: Share,
}

impl Lay {
    /// Creates the scheduler with these options.
    pub fn new(options: LayOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Estimates all paths that may carry data, sorted by predicted arrival. The cost of a path does not
    /// matter here. Paths without a window are skipped.
    fn observe(&mut self, view: &View<'_>) {
        let usable = || view.paths.iter().filter(|p| p.usable && p.window > 0);
        let alone = view.paths.iter().filter(|p| p.usable).count() == 1;
        let lone = self.lone(view);
        self.estimates.clear();
        for path in usable() {
            let state = state_of(&mut self.states, path.id);
            let unlimited = alone || lone == Some(path.id);
            self.estimates.push(PathEstimate::of(view, path, alone, unlimited, state));
        }
        self.leave_reserves(view);
        self.let_rest(view.now);
        self.estimates.sort_by(|a, b| a.arrival.total_cmp(&b.arrival));
        self.keep_budget();
    }

    /// The path that is used while all others rest.
    fn lone(&self, view: &View<'_>) -> Option<PathId> {
        let rests = |path: &PathView| {
            self.states.get(path.id.index()).is_some_and(|state| state.share.rests(view.now))
        };
        let mut used = view.paths.iter().filter(|path| path.usable && !rests(path));
        used.next().map(|path| path.id).filter(|_| used.next().is_none())
    }

    /// Charges the time since the last decision to the path that holds the oldest unacknowledged chunk.
    /// That path may start a rest now.
    fn settle(&mut self, view: &View<'_>) {
        if view.now > self.now {
            let head = self.holders.oldest().filter(|_| self.busy);
            let mut all = 0.0;
            for path in view.paths {
                let share = &mut state_of(&mut self.states, path.id).share;
                let held = head == Some(path.id);
                share.look(view.now, path.delivered, (held, held && self.closed));
                all += share.carried();
            }
            if let Some(head) = head {
                let needed = self.is_needed(view, head);
                let share = &mut state_of(&mut self.states, head).share;
                if !share.rests(view.now) && !needed && share.hinders(all) {
                    share.begin_rest(view.now);
                }
            }
            self.now = view.now;
        }
        self.holders.advance(view.acknowledged_chunks);
        self.busy = view.backlog_chunks > 1 && !view.unordered;
        self.closed = view.takeable() == 0;
    }

    /// Whether a small share of the data does not speak against this path: the path is in slow start and has
    /// not yet shown what it can carry, no other path has a higher rate, or no path in use has carried more.
    /// The latter two hold at the beginning and during an outage of the other paths.
    fn is_needed(&self, view: &View<'_>, path: PathId) -> bool {
        let in_slow_start = |seen: &PathView| seen.id == path && seen.cwnd < seen.ssthresh;
        let share = |id: PathId| &self.states[id.index()].share;
        let rate = self.estimates.iter().find(|s| s.id == path).map_or(0.0, |s| s.rate);
        let others = || self.estimates.iter().filter(|s| s.id != path);
        let mut used = others().filter(|s| !share(s.id).rests(view.now));
        view.paths.iter().any(in_slow_start)
            || others().all(|s| s.rate <= rate)
            || !used.any(|s| share(s.id).carried() > share(path).carried())
    }

    /// Sets the expected rate of resting paths to zero, unless all paths rest. Resting paths carry
    /// copies, like silent ones.
    fn let_rest(&mut self, now: Time) {
        let states = &self.states;
        let rests = |estimate: &PathEstimate| states[estimate.id.index()].share.rests(now);
        if !self.estimates.iter().all(rests) {
            for estimate in self.estimates.iter_mut().filter(|s| rests(s)) {
                estimate.rest();
            }
        }
    }

    /// Excludes the paths that are used only when needed, unless all paths before them are full.
    fn leave_reserves(&mut self, view: &View<'_>) {
        if view.paths.iter().all(|path| path.usage == PathUse::Always) {
            return;
        }
        let estimates = std::mem::take(&mut self.estimates);
        let is_needed = |estimate: &&PathEstimate| {
            let Some(path) = view.path(estimate.id).filter(|path| path.usage != PathUse::Always)
            else {
                return true;
            };
            let has_room = |other: &PathEstimate| {
                let seen = view.path(other.id);
                other.open
                    && seen.is_some_and(|seen| seen.overdue.is_zero() && seen.is_before(path))
            };
            !estimates.iter().any(has_room)
        };
        self.estimates.extend(estimates.iter().filter(is_needed));
    }

    fn keep_budget(&mut self) {
        let Some(budget) = self.options.latency_budget else { return };
        let within = |estimate: &PathEstimate| estimate.arrival <= budget.as_nanos() as f64;
        if self.estimates.iter().any(within) {
            self.estimates.retain(within);
        }
    }

    /// Bytes that faster paths deliver before `estimate` does, uncertainty included; and the same with the
    /// reorder margin applied to paths that often stall.
    fn before(&self, estimate: &PathEstimate) -> (f64, f64) {
        let due = estimate.arrival + estimate.doubt;
        let others = self.estimates.iter().filter(|o| o.id != estimate.id && o.arrival < due);
        others.fold((0.0, 0.0), |(all, with_margin), other| {
            let bytes = other.rate * (due - other.arrival);
            let part = if other.stalls { 1.0 - self.options.reorder_margin } else { 1.0 };
            (all + bytes, with_margin + part * bytes)
        })
    }

    /// Bytes of the receive buffer that remain when all paths deliver in order.
    fn spare(&self, view: &View<'_>, estimate: &PathEstimate) -> f64 {
        let rates: f64 = self.estimates.iter().map(|s| s.rate).sum();
        let back = self.estimates.iter().map(|s| (s.round_trip - s.arrival).max(0.0));
        let need = rates * (estimate.arrival + back.fold(f64::MAX, f64::min));
        (view.receive_buffer as f64 - need).max(0.0)
    }

    /// The queue position from which `estimate` should send, if any.
    fn position(&self, view: &View<'_>, estimate: &PathEstimate) -> Option<u64> {
        let chunk = view.chunk_bytes.max(1) as f64;
        let (before, with_margin) = self.before(estimate);
        let ahead = before / chunk;
        if ahead >= view.backlog_chunks as f64 {
            // Faster paths deliver the entire queue before this path delivers anything.
            return None;
        }
        let last = view.reach().checked_sub(1)?;
        if view.unordered {
            return view.admit((ahead as u64).min(last));
        }
        let least = (ahead - self.spare(view, estimate) / chunk).max(0.0);
        if least > last as f64 {
            return None;
        }
        let aim = least.max(with_margin / chunk);
        view.admit((aim as u64).min(last))
    }

    /// The path that carries a copy of a chunk sent on `first`: a silent path that needs a measurement,
    /// or a path that has nothing better to do at the tail.
    fn second(&self, view: &View<'_>, first: &PathEstimate) -> Option<PathId> {
        let others = || self.estimates.iter().filter(|s| s.id != first.id && s.open);
        if let Some(silent) = others().find(|s| s.silent) {
            return Some(silent.id);
        }
        let tail = view.closing && view.backlog_chunks <= TAIL_CHUNKS;
        let budget = self.options.latency_budget.map(|budget| budget.as_nanos() as f64);
        let repaired = first.arrival + first.round_trip + DEVIATIONS * first.doubt;
        let risky = first.loss > 0.0 && budget.is_some_and(|budget| repaired > budget);
        if !(tail || risky) {
            return None;
        }
        // A copy helps if it arrives before a loss would have been repaired.
        others().find(|s| s.arrival < repaired).map(|s| s.id)
    }
}

impl PathEstimate {
    const fn rest(&mut self) {
        self.rate = 0.0;
        self.arrival = f64::MAX / 4.0;
        self.round_trip = f64::MAX / 4.0;
        self.silent = self.idle;
        self.open &= self.idle;
    }

    /// `alone`: there is no other path. `unlimited`: only the congestion window limits the data in
    /// flight.
    fn of(
        view: &View<'_>,
        path: &PathView,
        alone: bool,
        unlimited: bool,
        state: &mut PathState,
    ) -> Self {
        // A reserved path is excluded unless the paths before it are full: see `leave_reserves`.
        let open = path.may_send();
        let idle = !alone && path.in_flight == 0 && view.now.since(state.used) >= SILENCE;
        let unknown = Self {
            id: path.id,
            rate: 0.0,
            arrival: f64::MAX / 4.0,
            doubt: 0.0,
            round_trip: f64::MAX / 4.0,
            open,
            loss: path.loss,
            stalls: false,
            idle,
            silent: idle,
        };
        let (Some(srtt), Some(forward)) = (path.srtt, path.forward_delay) else { return unknown };
        let bytes_per_nano = |rate: Rate| (rate.as_bps() as i64 as f64 / 8e9).max(1e-12);
        let drain = path.drain.map_or(f64::MAX, bytes_per_nano);
        let rate = path.potential_rate().max(1e-12).min(drain);
        let pipe_time = nanos(srtt.saturating_sub(path.queueing)).max(1.0);
        let (round_trip, queueing) = (nanos(srtt), nanos(path.queueing));
        let doubt = nanos(path.rttvar) / 2.0;
        // The rate at which a queue drains is the measured rate, not the rate that the window would allow.
        let seen = path.rate.map_or(rate, bytes_per_nano).min(drain);
        let own_queue = (path.in_flight as i64 as f64 / seen - pipe_time).max(0.0);
        let unqueued = (nanos(forward) - queueing).max(0.0);
        // Measured delays do not include data sent since. If the queue is our own, its length is known. A
        // probe for bandwidth temporarily fills the queue, so that measured delays exceed the delay of
        // the data in flight now.
        let others = !path.probing && queueing > own_queue + OTHERS * round_trip;
        let mut arrival = unqueued + own_queue;
        if others {
            arrival = arrival.max(nanos(forward));
        }
        arrival += nanos(path.overdue);
        let gain = if path.loss > LOSSY { LOSSY_PIPE_GAIN } else { PIPE_GAIN };
        let longest = state.pipe.look(view.now, pipe_time, round_trip);
        let pipe = rate * (gain * longest + doubt) + SLACK_CHUNKS * view.chunk_bytes as i64 as f64;
        let room = unlimited
            || match state.queue.look(view, path, (rate, pipe_time, pipe)) {
                Limit::BdpFilter => (path.in_flight as i64 as f64) < pipe,
                Limit::Bytes(most) => path.in_flight < most,
                Limit::Window => true,
            };
        let in_round_trip = rate * round_trip / view.chunk_bytes.max(1) as i64 as f64;
        let stalls = state.stalls.look(view.now, path.loss, in_round_trip);
        let silent = idle && path.rtt_age >= SILENCE;
        Self { rate, arrival, doubt, round_trip, open: open && room, stalls, silent, ..unknown }
    }
}

fn state_of(states: &mut Vec<PathState>, path: PathId) -> &mut PathState {
    if states.len() <= path.index() {
        states.resize(path.index() + 1, PathState::default());
    }
    &mut states[path.index()]
}

/// Converts to a number. Conversion from a signed integer takes one instruction; no delay reaches half of the
/// range.
#[inline]
const fn nanos(duration: Duration) -> f64 {
    duration.as_nanos() as i64 as f64
}

impl Schedule for Lay {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        if !view.is_new_data() {
            return oldest_first(view);
        }
        self.settle(view);
        if view.takeable() == 0 {
            // Also measure rates and queues while the receive window is closed.
            if view.paths.len() > 1 {
                self.observe(view);
            }
            return view.nobody();
        }
        self.observe(view);
        for (rank, estimate) in self.estimates.iter().enumerate() {
            if !estimate.open || (estimate.silent && rank > 0) {
                continue;
            }
            // The fastest path takes the head: no other path delivers it sooner.
            let position = match rank {
                0 => view.admit(0),
                _ => self.position(view, estimate),
            };
            let Some(position) = position else { continue };
            if position == 0
                && let Some(second) = self.second(view, estimate)
            {
                let both = PathSet::EMPTY.with(estimate.id).with(second);
                return Decision::copies(both, 0, Reason::Hedged);
            }
            let reason = if rank == 0 { Reason::SoonestDelivery } else { Reason::AcrossTheGap };
            return Decision::send(estimate.id, position, reason);
        }
        // No other path may send: a path without estimates is better than none.
        let silent = self.estimates.iter().find(|s| s.open && s.silent);
        let head = silent.and_then(|s| Some((s.id, view.admit(0)?)));
        match head {
            Some((path, position)) if self.estimates.iter().all(|s| s.silent) => {
                Decision::send(path, position, Reason::NoEstimate)
            }
            _ => view.nobody(),
        }
    }

    fn on_sent(&mut self, sent: &SentReport) {
        state_of(&mut self.states, sent.path).used = self.now;
        self.holders.on_sent(sent.sequence, sent.path);
    }
}
