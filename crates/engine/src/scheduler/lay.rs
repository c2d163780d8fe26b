//! `lay`: the strands of a rope are laid so that they meet.
//!
//! For each path it predicts when a chunk that leaves now arrives, behind what is on its way there.
//! The quickest path takes the head of the queue. Any other takes the chunk that will be due when it
//! arrives there: as far behind the head as quicker paths deliver until then. What is left follows
//! from that.
//!
//! * **It keeps a cushion where quicker paths lose**: what they carry is often held up for a repair there, and a
//!   chunk that then arrives when it would have been due waits. It goes nearer to the head.
//! * **It waits where waiting is faster**: a path whose chunk would be due only beyond the end of the
//!   queue sends nothing.
//! * **It shares the window by what it is worth**: a slow path reaches far ahead, and is used only if
//!   the window spans that, or if what the buffer has to spare covers the rest.
//! * **It fills pipes, not queues**: no path holds more than its round trip without queueing carries,
//!   and a little more by which a rate that grows is noticed. Where others fill the queue, which it
//!   finds out by a pause, it takes its part like anybody.
//! * **It distrusts silence**: a path that owes an acknowledgement is late by as long as it owes it.
//!   One that has said nothing for a while carries a copy of what goes elsewhere, until it speaks.
//! * **It lets a path rest that holds up the stream for little**: one that carries a small share of the data and holds
//!   the oldest unacknowledged chunk for a larger share of the time.
//! * **It hedges the tail**: the last chunks of a transfer go on a second path as well, if that has
//!   nothing better to do: nothing follows them that would show their loss.

mod bdp_filter;
mod head;
mod loss_stall_filter;
mod queue;

use ropewalk_base::{Duration, PathId, Time};

use self::bdp_filter::BdpFilter;
use self::head::{Holders, Share};
use self::loss_stall_filter::LossStallFilter;
use self::queue::{Limit, Queue};
use super::daps::oldest_first;
use super::{Decision, PathSet, PathView, Reason, Schedule, SentReport, View};

/// Options of `lay`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LayOptions {
    /// Behind a quicker path that often stands still for a repair a chunk goes nearer to the head by this
    /// share of the way, 0 to 1: whatever is late then finds it waiting, and all others a little of its delay.
    /// Default 0.6.
    pub reorder_margin: f64,
    /// What a chunk may take from its departure to its arrival. Paths that take longer are left
    /// out while another does not, and where a loss would overrun it a second copy goes elsewhere.
    /// Default none: goodput first.
    pub latency_budget: Option<Duration>,
}

impl Default for LayOptions {
    fn default() -> Self {
        Self { reorder_margin: 0.6, latency_budget: None }
    }
}

/// Share of a pipe that may be in flight.
const PIPE_GAIN: f64 = 1.2;
/// The same on a path that loses: each loss halves its window, and from a little above the pipe that
/// would leave it half empty.
const LOSSY_PIPE_GAIN: f64 = 2.5;
/// More loss than this is not our own queueing.
const LOSSY: f64 = 1e-3;
/// So many chunks more: acknowledgements come for every second one, and pipes may be tiny.
const SLACK_CHUNKS: f64 = 2.0;
/// Queueing beyond what our own packets explain by this share of the round trip is others'.
const OTHERS: f64 = 0.125;
/// A path that was not measured for so long carries a copy.
const SILENCE: Duration = Duration::from_secs(2);
/// Chunks at the end of a transfer that have too few behind them to show their loss.
const TAIL_CHUNKS: u64 = 4;
/// So many mean deviations of the round trip are too late.
const DEVIATIONS: f64 = 4.0;

/// What is known of a path; times in nanoseconds from now, rates in bytes per nanosecond.
#[derive(Clone, Copy, Debug)]
struct PathEstimate {
    id: PathId,
    rate: f64,
    /// When a chunk that leaves now arrives, behind what is on its way.
    arrival: f64,
    /// By how much that may be wrong.
    doubt: f64,
    round_trip: f64,
    /// It may carry a chunk now.
    open: bool,
    loss: f64,
    /// Chunks often wait for a repair here.
    stalls: bool,
    /// It has carried nothing of late.
    idle: bool,
    /// The same, and it was not measured lately, if ever.
    silent: bool,
}

/// Each chunk on the path on which it is due when it arrives: docs/concepts/lay.md has the rules.
#[derive(Clone, Debug, Default)]
pub struct Lay {
    options: LayOptions,
    strands: Vec<PathEstimate>,
    /// By path identifier.
    memories: Vec<Memory>,
    holders: Holders,
    now: Time,
    /// Ordered data has been waiting to be sent since `now`, so that each acknowledgement leads to a decision.
    busy: bool,
}

/// What is kept of a path from one decision to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// When we last sent something on it.
    used: Time,
    /// How long its pipe is.
    pipe: BdpFilter,
    /// How often it stands still.
    stalls: LossStallFilter,
    /// Whose its queue is.
    queue: Queue,
    /// What it carries, and how long it holds up the rest.
    share: Share,
}

impl Lay {
    /// With the given options.
    pub fn new(options: LayOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Looks at the paths that may carry something, the quickest first. What they cost is not its
    /// business; to which the guard leaves nothing, nothing is to be expected of.
    fn observe(&mut self, view: &View<'_>) {
        let usable = || view.paths.iter().filter(|p| p.usable && p.window > 0);
        // One that the guard tries alone has others beside it, and is not to fill its queue meanwhile.
        let alone = view.paths.iter().filter(|p| p.usable).count() == 1;
        self.strands.clear();
        for path in usable() {
            let memory = memory_of(&mut self.memories, path.id);
            self.strands.push(PathEstimate::of(view, path, alone, memory));
        }
        self.let_rest(view.now);
        self.strands.sort_by(|a, b| a.arrival.total_cmp(&b.arrival));
        self.keep_budget();
    }

    /// Charges the time since the last decision to the path that holds the oldest unacknowledged chunk. That path may
    /// begin a rest now.
    fn settle(&mut self, view: &View<'_>) {
        if view.now > self.now {
            let head = self.holders.oldest().filter(|_| self.busy);
            let mut all = 0.0;
            for path in view.paths {
                let share = &mut memory_of(&mut self.memories, path.id).share;
                share.look(view.now, path.delivered, head == Some(path.id));
                all += share.carried();
            }
            if let Some(head) = head {
                let needed = self.is_needed(view, head);
                let share = &mut memory_of(&mut self.memories, head).share;
                if !share.rests(view.now) && !needed && share.hinders(all) {
                    share.begin_rest(view.now);
                }
            }
            self.now = view.now;
        }
        self.holders.advance(view.acknowledged_chunks);
        self.busy = view.backlog_chunks > 1 && !view.unordered;
    }

    /// Whether a small share of the data says nothing about this path: it is in slow start and has not shown yet what it
    /// can carry, no other path has a higher rate, or none that is in use has carried more. The latter two
    /// hold at the beginning and during an outage of the other paths.
    fn is_needed(&self, view: &View<'_>, path: PathId) -> bool {
        let in_slow_start = |seen: &PathView| seen.id == path && seen.cwnd < seen.ssthresh;
        let share = |id: PathId| &self.memories[id.index()].share;
        let rate = self.strands.iter().find(|s| s.id == path).map_or(0.0, |s| s.rate);
        let others = || self.strands.iter().filter(|s| s.id != path);
        let mut used = others().filter(|s| !share(s.id).rests(view.now));
        view.paths.iter().any(in_slow_start)
            || others().all(|s| s.rate <= rate)
            || !used.any(|s| share(s.id).carried() > share(path).carried())
    }

    /// Expects nothing of the paths that rest, unless all do. They carry copies, as silent ones do.
    fn let_rest(&mut self, now: Time) {
        let memories = &self.memories;
        let rests = |strand: &PathEstimate| memories[strand.id.index()].share.rests(now);
        if !self.strands.iter().all(rests) {
            for strand in self.strands.iter_mut().filter(|s| rests(s)) {
                strand.rest();
            }
        }
    }

    fn keep_budget(&mut self) {
        let Some(budget) = self.options.latency_budget else { return };
        let within = |strand: &PathEstimate| strand.arrival <= budget.as_nanos() as f64;
        if self.strands.iter().any(within) {
            self.strands.retain(within);
        }
    }

    /// Bytes that quicker strands deliver before `strand` would, doubt included; and the same with a cushion
    /// for those that often stand still.
    fn before(&self, strand: &PathEstimate) -> (f64, f64) {
        let due = strand.arrival + strand.doubt;
        let others = self.strands.iter().filter(|o| o.id != strand.id && o.arrival < due);
        others.fold((0.0, 0.0), |(all, cushioned), other| {
            let bytes = other.rate * (due - other.arrival);
            let part = if other.stalls { 1.0 - self.options.reorder_margin } else { 1.0 };
            (all + bytes, cushioned + part * bytes)
        })
    }

    /// Bytes of the receive buffer that are left over when all strands deliver in order.
    fn spare(&self, view: &View<'_>, strand: &PathEstimate) -> f64 {
        let rates: f64 = self.strands.iter().map(|s| s.rate).sum();
        let back = self.strands.iter().map(|s| (s.round_trip - s.arrival).max(0.0));
        let need = rates * (strand.arrival + back.fold(f64::MAX, f64::min));
        (view.receive_buffer as f64 - need).max(0.0)
    }

    /// The position that `strand` takes, if it should take any.
    fn position(&self, view: &View<'_>, strand: &PathEstimate) -> Option<u64> {
        let chunk = view.chunk_bytes.max(1) as f64;
        let (before, cushioned) = self.before(strand);
        let ahead = before / chunk;
        if ahead >= view.backlog_chunks as f64 {
            // Quicker strands deliver all there is before this one delivers anything.
            return None;
        }
        let last = view.reach().checked_sub(1)?;
        if view.unordered {
            let path = view.path(strand.id)?;
            return view.admit(path, (ahead as u64).min(last));
        }
        let least = (ahead - self.spare(view, strand) / chunk).max(0.0);
        if least > last as f64 {
            return None;
        }
        let path = view.path(strand.id)?;
        let aim = least.max(cushioned / chunk);
        view.admit(path, (aim as u64).min(last))
    }

    /// A strand that carries a copy of what goes on `first`: one that is to be heard of again, or
    /// that has nothing better to do at the tail.
    fn second(&self, view: &View<'_>, first: &PathEstimate) -> Option<PathId> {
        let others = || self.strands.iter().filter(|s| s.id != first.id && s.open);
        let may = |s: &&PathEstimate| view.path(s.id).is_some_and(|p| view.admit(p, 0) == Some(0));
        if let Some(silent) = others().filter(may).find(|s| s.silent) {
            return Some(silent.id);
        }
        let tail = view.closing && view.backlog_chunks <= TAIL_CHUNKS;
        let budget = self.options.latency_budget.map(|budget| budget.as_nanos() as f64);
        let repaired = first.arrival + first.round_trip + DEVIATIONS * first.doubt;
        let risky = first.loss > 0.0 && budget.is_some_and(|budget| repaired > budget);
        if !(tail || risky) {
            return None;
        }
        // It helps if it arrives before a loss would have been repaired.
        others().filter(may).find(|s| s.arrival < repaired).map(|s| s.id)
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

    fn of(view: &View<'_>, path: &PathView, alone: bool, memory: &mut Memory) -> Self {
        let open = path.is_open();
        let idle = !alone && path.in_flight == 0 && view.now.since(memory.used) >= SILENCE;
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
        let rate = path.potential_rate().max(1e-12);
        let pipe_time = nanos(srtt.saturating_sub(path.queueing)).max(1.0);
        let (round_trip, queueing) = (nanos(srtt), nanos(path.queueing));
        let doubt = nanos(path.rttvar) / 2.0;
        // What a window would allow is not what a queue is emptied with.
        let seen = path.rate.map_or(rate, |seen| (seen.as_bps() as i64 as f64 / 8e9).max(1e-12));
        let own_queue = (path.in_flight as i64 as f64 / seen - pipe_time).max(0.0);
        let unqueued = (nanos(forward) - queueing).max(0.0);
        // Measured delays lag by what has been sent since; where the queue is our own, that is known.
        let others = queueing > own_queue + OTHERS * round_trip;
        let mut arrival = unqueued + own_queue;
        if others {
            arrival = arrival.max(nanos(forward));
        }
        // What it owes: silent beyond what its round trips explain.
        let owed = nanos(path.rtt_age) - (round_trip + DEVIATIONS * nanos(path.rttvar));
        if path.in_flight > 0 && owed > 0.0 {
            arrival += owed;
        }
        let gain = if path.loss > LOSSY { LOSSY_PIPE_GAIN } else { PIPE_GAIN };
        let longest = memory.pipe.look(view.now, pipe_time, round_trip);
        let pipe = rate * (gain * longest + doubt) + SLACK_CHUNKS * view.chunk_bytes as i64 as f64;
        let room = alone
            || match memory.queue.look(view, path, (rate, pipe_time, pipe)) {
                Limit::BdpFilter => (path.in_flight as i64 as f64) < pipe,
                Limit::Bytes(most) => path.in_flight < most,
                Limit::Window => true,
            };
        let in_round_trip = rate * round_trip / view.chunk_bytes.max(1) as i64 as f64;
        let stalls = memory.stalls.look(view.now, path.loss, in_round_trip);
        let silent = idle && path.rtt_age >= SILENCE;
        Self { rate, arrival, doubt, round_trip, open: open && room, stalls, silent, ..unknown }
    }
}

fn memory_of(memories: &mut Vec<Memory>, path: PathId) -> &mut Memory {
    if memories.len() <= path.index() {
        memories.resize(path.index() + 1, Memory::default());
    }
    &mut memories[path.index()]
}

/// A time as a number. Signed ones are converted in one step, and no delay is half of the range.
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
            // Rates and queues are measured while the window is shut as well.
            if view.paths.len() > 1 {
                self.observe(view);
            }
            return view.nobody();
        }
        self.observe(view);
        for (rank, strand) in self.strands.iter().enumerate() {
            if !strand.open || (strand.silent && rank > 0) {
                continue;
            }
            // Nobody delivers the head sooner than the quickest.
            let position = match rank {
                0 => view.path(strand.id).and_then(|path| view.admit(path, 0)),
                _ => self.position(view, strand),
            };
            let Some(position) = position else { continue };
            if position == 0
                && let Some(second) = self.second(view, strand)
            {
                let both = PathSet::EMPTY.with(strand.id).with(second);
                return Decision::copies(both, 0, Reason::Hedged);
            }
            let reason = if rank == 0 { Reason::SoonestDelivery } else { Reason::AcrossTheGap };
            return Decision::send(strand.id, position, reason);
        }
        // Nobody else may: a strand of which nothing is known is better than none.
        let silent = self.strands.iter().find(|s| s.open && s.silent);
        let head = silent.and_then(|s| Some((s.id, view.admit(view.path(s.id)?, 0)?)));
        match head {
            Some((path, position)) if self.strands.iter().all(|s| s.silent) => {
                Decision::send(path, position, Reason::NoEstimate)
            }
            _ => view.nobody(),
        }
    }

    fn on_sent(&mut self, sent: &SentReport) {
        memory_of(&mut self.memories, sent.path).used = self.now;
        self.holders.on_sent(sent.sequence, sent.path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Action;
    use super::super::kit::{CHUNK, path_view, view};
    use super::*;

    fn millis(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    /// 20 ms there and back with 10 chunks per round trip; beside 100 ms.
    fn unequal() -> [PathView; 2] {
        let slow = PathView { forward_delay: millis(50), srtt: millis(100), ..path_view(1) };
        [path_view(0), slow]
    }

    #[test]
    fn the_quick_path_takes_the_head_and_the_slow_one_what_is_due_when_it_arrives() {
        let mut paths = unequal();
        let head = Lay::default().decide(&view(&paths)).action;
        assert_eq!(head, Action::Send { path: PathId(0), position: 0 });
        paths[0].in_flight = paths[0].window;
        let Action::Send { path, position } = Lay::default().decide(&view(&paths)).action else {
            panic!("the slow path may send");
        };
        assert_eq!(path, PathId(1));
        // 40 ms of 10 chunks per 20 ms, as far as deviations let it be known.
        assert!((18..=30).contains(&position), "{position}");
    }

    #[test]
    fn behind_a_path_that_often_loses_a_chunk_goes_nearer_to_the_head() {
        let mut paths = unequal();
        paths[0].in_flight = paths[0].window;
        let mut position = |loss: f64| {
            paths[0].loss = loss;
            let mut lay = Lay::default();
            let late = View { now: Time::from_secs(60), ..view(&paths) };
            match lay.decide(&late).action {
                Action::Send { path: PathId(1), position } => position,
                other => panic!("the slow path may send: {other:?}"),
            }
        };
        let (clean, lossy) = (position(0.0), position(0.01));
        let least = (1.0 - LayOptions::default().reorder_margin) * clean as f64;
        assert!((least - 1.0..least + 2.0).contains(&(lossy as f64)), "{clean} and {lossy}");
    }

    /// Whether a path is left alone that held the head for 40 ms of each 100 ms and carried so many chunks of 100.
    fn is_left_alone(chunks: u64, ssthresh: u64) -> bool {
        let mut lay = Lay::default();
        let mut paths = unequal();
        paths[1].ssthresh = ssthresh;
        let mut sequence = 0;
        for round in 0..100 {
            for (path, carried, millis) in [(0, 100 - chunks, 60), (1, chunks, 40)] {
                let path = PathId(path);
                for _ in 0..carried {
                    lay.on_sent(&SentReport { path, position: 0, sequence, bytes: CHUNK });
                    sequence += 1;
                }
                let began = round * 100 + if path.0 == 0 { 0 } else { 60 };
                for ms in (0..millis).step_by(20) {
                    let now = Time::from_millis(began + ms);
                    lay.decide(&View {
                        now,
                        acknowledged_chunks: sequence - carried,
                        ..view(&paths)
                    });
                }
                paths[path.index()].delivered += carried * CHUNK;
            }
        }
        paths[0].in_flight = paths[0].window;
        let now = Time::from_millis(10_010);
        let last = View { now, acknowledged_chunks: sequence, ..view(&paths) };
        lay.decide(&last).action == Action::Blocked
    }

    #[test]
    fn a_path_that_holds_up_the_stream_for_little_is_left_alone() {
        let reached = path_view(1).cwnd;
        assert!(is_left_alone(1, reached));
        assert!(!is_left_alone(40, reached), "a path that carries as much as it holds up is used");
        assert!(!is_left_alone(1, reached + 1), "in slow start it has not shown what it can carry");
    }

    #[test]
    fn it_waits_where_the_quick_path_delivers_all_there_is_sooner() {
        let mut paths = unequal();
        paths[0].in_flight = paths[0].window;
        let few = View { backlog_chunks: 10, ..view(&paths) };
        assert_eq!(Lay::default().decide(&few).action, Action::Blocked);
    }

    #[test]
    fn a_path_that_owes_an_acknowledgement_is_late_by_as_long() {
        let mut paths = unequal();
        paths[0].in_flight = CHUNK;
        paths[0].rtt_age = Duration::from_millis(500);
        let Action::Send { path, .. } = Lay::default().decide(&view(&paths)).action else {
            panic!("something may be sent");
        };
        assert_eq!(path, PathId(1));
    }

    #[test]
    fn a_path_that_was_not_heard_of_for_long_carries_a_copy_and_only_one() {
        let mut paths = unequal();
        paths[1].rtt_age = Duration::from_secs(5);
        let mut lay = Lay::default();
        let late = View { now: Time::from_secs(10), ..view(&paths) };
        let both = PathSet::EMPTY.with(PathId(0)).with(PathId(1));
        assert_eq!(lay.decide(&late).action, Action::Copies { paths: both, position: 0 });
        for path in both.iter() {
            lay.on_sent(&SentReport { path, position: 0, sequence: 0, bytes: CHUNK });
        }
        assert_eq!(lay.decide(&late).action, Action::Send { path: PathId(0), position: 0 });
    }

    #[test]
    fn the_last_chunks_go_twice_where_the_second_path_is_soon_enough() {
        for (backlog_chunks, closing, copies) in
            [(TAIL_CHUNKS, true, true), (TAIL_CHUNKS + 1, true, false), (1, false, false)]
        {
            let paths = [path_view(0), path_view(1)];
            let tail = View { backlog_chunks, closing, ..view(&paths) };
            let action = Lay::default().decide(&tail).action;
            let hedged = matches!(action, Action::Copies { .. });
            assert_eq!(hedged, copies, "{backlog_chunks} chunks, closing: {closing}");
        }
    }

    #[test]
    fn a_latency_budget_leaves_slow_paths_out_while_a_quick_one_works() {
        let budget = LayOptions { latency_budget: millis(40), ..LayOptions::default() };
        let mut paths = unequal();
        paths[0].in_flight = paths[0].window;
        assert_eq!(Lay::new(budget).decide(&view(&paths)).action, Action::Blocked);
        paths[0].usable = false;
        let action = Lay::new(budget).decide(&view(&paths)).action;
        assert!(matches!(action, Action::Send { path: PathId(1), .. }), "{action:?}");
    }
}
