//! The order in which data should arrive, as a list of batches (Sarwar et al., 2013, Algorithms 1
//! and 2). Shared by `daps` and `daps-lcm`.
//!
//! Over one period E = lcm(D) of the forward delays D, path i appends a batch at t = D_i, 2 D_i, ... E;
//! at equal t the faster path comes first. Data is assigned along the list in sequence order. The next
//! chunk of a path is therefore as far beyond the head of the queue as there are chunks in the batches
//! before the path's first one. This number is its *position*.
//!
//! The list is computed only as far as it is read: a period of coprime delays is long, and a plan seldom
//! lasts for a complete period.

use std::collections::VecDeque;

use ropewalk_base::{Duration, PathId};
use smallvec::SmallVec;

use super::{PathSet, PathView, View};

/// Maximum number of batches that are kept. Reached only by many paths with very unequal delays.
const BATCH_LIMIT: usize = 4096;
/// Delays and periods are limited to this many quanta, so that sums cannot overflow.
const QUANTA_LIMIT: u64 = 1 << 32;
/// Maximum ratio of the period to the maximum delay.
const PERIOD_CAP_LIMIT: u64 = 1 << 20;

/// The congestion window on which a plan is based.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Windows {
    /// The window at the moment the plan is made.
    #[default]
    Frozen,
    /// A moving average: each new plan moves it by 1/8 towards the current window. Batches are steadier
    /// with oscillating windows, but follow slow start late.
    Smoothed,
}

/// The amount that a path sends in one forward delay (Sarwar's C_i).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Capacity {
    /// Its full window, as in both papers.
    Window,
    /// The window times forward delay over round trip: a window is sent once per round trip, not once per
    /// forward delay. Slow paths then reach about half as far ahead, which matches the arrival of their
    /// data. For receive buffers that the windows fill: with full windows, the slow path's data would lie
    /// beyond the buffer, and the path would stay idle.
    #[default]
    WindowPerRoundTrip,
}

/// Options of plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanOptions {
    /// Forward delays are rounded to multiples of this, at least one, before their least common multiple
    /// is computed. Default 1 ms. A finer quantum makes longer periods, a coarser one less exact
    /// positions.
    pub quantum: Duration,
    /// The period is limited to this multiple of the maximum delay. Default 64.
    pub period_cap: u64,
    /// The windows from which the batches are computed. Default [`Windows::Frozen`].
    pub windows: Windows,
    /// The part of the window that makes one batch. Default [`Capacity::WindowPerRoundTrip`].
    pub capacity: Capacity,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            quantum: Duration::from_millis(1),
            period_cap: 64,
            windows: Windows::default(),
            capacity: Capacity::default(),
        }
    }
}

/// Consecutive chunks for one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Batch {
    /// The path.
    pub path: PathId,
    /// Number of chunks not sent yet, not zero.
    pub left: u64,
}

/// A path that the plan uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Lane {
    path: PathId,
    /// Forward delay in quanta; not zero.
    delay: u64,
    /// Chunks per batch, C_i; frozen; not zero.
    chunks: u64,
    /// When its next batch is due, in quanta.
    next: u64,
    /// Chunks of this path sent since the plan was made.
    sent: u64,
}

/// The next step of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// This path takes the chunk at this position.
    Take(PathId, u64),
    /// No open path may take its chunk.
    OutOfReach,
    /// The list has ended for an open path.
    ListEnds,
}

/// Whether a plan uses the path. A path that cannot send would not send its part of the data.
#[inline]
fn counts(path: &PathView) -> bool {
    path.usable && path.window > 0 && path.forward_delay.is_some()
}

/// The list, and the state for extending it.
#[derive(Clone, Debug, Default)]
pub(super) struct DelayPlan {
    options: PlanOptions,
    /// Ascending delay, then identifier.
    lanes: Vec<Lane>,
    /// The paths of the lanes.
    members: PathSet,
    batches: VecDeque<Batch>,
    /// The period E in quanta.
    period: u64,
    /// Delays for the last computation of the least common multiple, and the result. Delays in full
    /// quanta mostly equal those of the previous plan, and the computation takes many divisions.
    multiple: (SmallVec<[u64; 4]>, Option<u64>),
    /// By path identifier: averaged window in bytes, 0 before the first.
    smoothed: Vec<u64>,
}

impl DelayPlan {
    /// A plan without paths; call [`DelayPlan::renew`].
    pub fn new(mut options: PlanOptions) -> Self {
        options.quantum = options.quantum.max(Duration::from_nanos(1));
        Self { options, ..Self::default() }
    }

    /// Computes a new plan from the usable paths that have a delay estimate and a window.
    pub fn renew(&mut self, view: &View<'_>) {
        self.lanes.clear();
        self.batches.clear();
        self.members = PathSet::EMPTY;
        for path in view.paths.iter().filter(|p| counts(p)) {
            let lane = self.lane(path, view.chunk_bytes.max(1));
            // Few paths, nearly sorted: an insertion beats a general sort.
            let at = self.lanes.iter().rposition(|l| l.delay <= lane.delay).map_or(0, |i| i + 1);
            self.lanes.insert(at, lane);
            self.members = self.members.with(path.id);
        }
        self.period = self.least_common_period();
    }

    fn lane(&mut self, path: &PathView, chunk_bytes: u64) -> Lane {
        let delay = path.forward_delay.unwrap_or_default();
        let window = match self.options.windows {
            Windows::Frozen => path.window,
            Windows::Smoothed => self.smooth(path),
        };
        let bytes = match (self.options.capacity, path.srtt) {
            (Capacity::WindowPerRoundTrip, Some(srtt)) if srtt > delay => {
                let bytes = share_of(window, delay, srtt);
                // A batch that is rounded down would leave part of the window permanently unused.
                bytes.saturating_add(chunk_bytes - 1)
            }
            _ => window,
        };
        let quantum = self.options.quantum.as_nanos();
        let quanta = delay.as_nanos().saturating_add(quantum / 2) / quantum;
        let delay = quanta.clamp(1, QUANTA_LIMIT);
        let chunks = (bytes / chunk_bytes).max(1);
        Lane { path: path.id, delay, chunks, next: delay, sent: 0 }
    }

    /// Exponentially weighted moving average with a gain of 1/8, in whole bytes.
    fn smooth(&mut self, path: &PathView) -> u64 {
        let index = path.id.index();
        if self.smoothed.len() <= index {
            self.smoothed.resize(index + 1, 0);
        }
        let old = self.smoothed[index];
        let new = if old == 0 { path.window } else { old - old / 8 + path.window / 8 };
        self.smoothed[index] = new;
        new
    }

    fn least_common_period(&mut self) -> u64 {
        let longest = self.lanes.last().map_or(0, |l| l.delay);
        let most = longest * self.options.period_cap.clamp(1, PERIOD_CAP_LIMIT);
        let (delays, lcm) = &mut self.multiple;
        if !self.lanes.iter().map(|l| l.delay).eq(delays.iter().copied()) {
            delays.clear();
            delays.extend(self.lanes.iter().map(|l| l.delay));
            *lcm = delays.iter().try_fold(1u64, |lcm, delay| {
                (lcm / greatest_common_divisor(lcm, *delay)).checked_mul(*delay)
            });
        }
        lcm.map_or(most, |lcm| lcm.min(most))
    }

    /// Among the open paths that may take their chunk, the one whose entry is first in the list, and the
    /// position of that chunk.
    #[inline]
    pub fn next(&mut self, view: &View<'_>) -> Next {
        self.next_among(view, self.open(view))
    }

    /// Like [`DelayPlan::next`], with the open paths of the plan already known.
    #[inline]
    pub fn next_among(&mut self, view: &View<'_>, open: PathSet) -> Next {
        let limit = view.reach();
        let mut waiting = open;
        let mut best: Option<(PathId, u64)> = None;
        let mut before = 0u64;
        let mut at = 0;
        // Entries behind the best one, or out of reach, cannot win. The loop nearly always ends
        // immediately.
        while !waiting.is_empty() && before < best.map_or(limit, |(_, k)| k) {
            let Some(batch) = self.batches.get(at).copied() else {
                if self.extend() {
                    continue;
                }
                return best.map_or(Next::ListEnds, |(path, k)| Next::Take(path, k));
            };
            if waiting.contains(batch.path) {
                waiting = waiting.without(batch.path);
                if let Some(k) =
                    view.admit(before).filter(|k| best.is_none_or(|(_, least)| *k < least))
                {
                    best = Some((batch.path, k));
                }
            }
            before = before.saturating_add(batch.left);
            at += 1;
        }
        best.map_or(Next::OutOfReach, |(path, k)| Next::Take(path, k))
    }

    /// The paths of the plan that are open.
    #[inline]
    pub fn open(&self, view: &View<'_>) -> PathSet {
        let open = view.open().filter(|p| self.members.contains(p.id));
        open.fold(PathSet::EMPTY, |set, p| set.with(p.id))
    }

    /// The position of the unassigned queue from which `path` takes its next chunk, `None` if the list
    /// has no further entry for it.
    #[inline]
    pub fn position(&mut self, path: PathId) -> Option<u64> {
        let mut before = 0u64;
        let mut at = 0;
        loop {
            match self.batches.get(at).copied() {
                Some(batch) if batch.path == path => return Some(before),
                Some(batch) => {
                    before = before.saturating_add(batch.left);
                    at += 1;
                }
                None if self.extend() => {}
                None => return None,
            }
        }
    }

    /// Appends the next entries in time: the batches of one path until a batch of another path is due.
    /// Returns false at the end of the period.
    fn extend(&mut self) -> bool {
        let due = self.lanes.iter().enumerate().min_by_key(|(i, lane)| (lane.next, *i));
        let Some((at, lane)) = due.map(|(i, lane)| (i, *lane)) else {
            return false;
        };
        if lane.next > self.period || self.batches.len() >= BATCH_LIMIT {
            return false;
        }
        // At equal times the earlier lane, the faster path, comes first.
        let others = self.lanes.iter().enumerate().filter(|(i, _)| *i != at);
        let until = others.map(|(i, other)| other.next - u64::from(i < at)).min();
        let until = until.unwrap_or(self.period).min(self.period);
        let times = (until - lane.next) / lane.delay + 1;
        self.lanes[at].next += times * lane.delay;
        let left = lane.chunks.saturating_mul(times);
        self.batches.push_back(Batch { path: lane.path, left });
        true
    }

    /// Records that a chunk at `position` was sent on `path`. The chunk is charged to the path's first
    /// batch, regardless of its position. If the path has no batch, it is charged to the batch at that
    /// position.
    #[inline]
    pub fn take(&mut self, path: PathId, position: u64) {
        if let Some(lane) = self.lanes.iter_mut().find(|l| l.path == path) {
            lane.sent += 1;
        }
        let own = self.batches.iter().position(|b| b.path == path);
        if let Some(at) = own.or_else(|| self.batch_at(position)) {
            self.batches[at].left -= 1;
            if self.batches[at].left == 0 {
                self.batches.remove(at);
            }
        }
    }

    fn batch_at(&self, position: u64) -> Option<usize> {
        let mut end = 0u64;
        self.batches.iter().position(|b| {
            end = end.saturating_add(b.left);
            position < end
        })
    }

    /// Whether a new plan would use the same paths.
    #[inline]
    pub fn covers(&self, view: &View<'_>) -> bool {
        let now = view.paths.iter().filter(|p| counts(p));
        now.fold(PathSet::EMPTY, |set, p| set.with(p.id)) == self.members
    }

    /// The paths that the plan uses.
    #[inline]
    pub const fn members(&self) -> PathSet {
        self.members
    }

    /// The path with the lowest forward delay.
    #[inline]
    pub fn fastest(&self) -> Option<PathId> {
        self.lanes.first().map(|l| l.path)
    }

    /// Duration of the period.
    pub fn period(&self) -> Duration {
        self.options.quantum.saturating_mul(self.period)
    }

    /// Time from the creation of the plan until `path` may send its next chunk, if it sends one batch per
    /// forward delay (Algorithm 3).
    pub fn due(&self, path: PathId) -> Option<Duration> {
        let lane = self.lanes.iter().find(|l| l.path == path)?;
        let quanta = (lane.sent / lane.chunks).saturating_mul(lane.delay);
        Some(self.options.quantum.saturating_mul(quanta))
    }
}

/// The part of `window` that corresponds to the ratio of `delay` to the longer `whole`, rounded up.
#[inline]
fn share_of(window: u64, delay: Duration, whole: Duration) -> u64 {
    let (delay, whole) = (delay.as_nanos(), whole.as_nanos());
    match window.checked_mul(delay) {
        Some(share) => share.div_ceil(whole),
        None => (u128::from(window) * u128::from(delay)).div_ceil(u128::from(whole)) as u64,
    }
}

/// Euclid's algorithm.
fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    /// A full window per forward delay, as in the papers.
    fn whole_windows() -> PlanOptions {
        PlanOptions { capacity: Capacity::Window, ..PlanOptions::default() }
    }

    /// Delay in ms and window in chunks of each path.
    fn plan(paths: &[(u64, u64)], options: PlanOptions) -> DelayPlan {
        let path = |(i, &(delay, window)): (usize, &(u64, u64))| PathView {
            forward_delay: Some(Duration::from_millis(delay)),
            window: window * CHUNK,
            ..path_view(i as u8)
        };
        let paths: Vec<_> = paths.iter().enumerate().map(path).collect();
        let mut plan = DelayPlan::new(options);
        plan.renew(&view(&paths));
        plan
    }

    /// The path of every chunk of the period.
    fn unrolled(plan: &mut DelayPlan) -> Vec<u8> {
        while plan.extend() {}
        let batches = plan.batches.iter();
        batches.flat_map(|b| std::iter::repeat_n(b.path.0, b.left as usize)).collect()
    }

    /// Algorithms 1 and 2 as printed in the paper, millisecond by millisecond.
    fn as_printed(paths: &[(u64, u64)], cap: u64) -> Vec<u8> {
        let mut sorted: Vec<_> = paths.iter().enumerate().collect();
        sorted.sort_by_key(|(i, (delay, _))| (*delay, *i));
        let lcm = |a: u64, b: u64| (1..).map(|n| n * a).find(|m| m % b == 0).unwrap();
        let period = paths.iter().fold(1, |all, (delay, _)| lcm(all, *delay));
        let longest = sorted.last().map_or(0, |(_, (delay, _))| *delay);
        let mut list = Vec::new();
        for t in 1..=period.min(longest * cap) {
            for (i, (delay, window)) in &sorted {
                if t % delay == 0 {
                    list.extend(std::iter::repeat_n(*i as u8, *window as usize));
                }
            }
        }
        list
    }

    proptest! {
        #[test]
        fn the_list_is_that_of_the_paper(
            paths in proptest::collection::vec((1..40u64, 1..6u64), 1..5),
            period_cap in 1..5u64,
        ) {
            let options = PlanOptions { period_cap, ..whole_windows() };
            let listed = unrolled(&mut plan(&paths, options));
            prop_assert_eq!(listed, as_printed(&paths, period_cap));
        }

        #[test]
        fn a_position_counts_what_is_left_before_the_path(
            paths in proptest::collection::vec((1..40u64, 1..6u64), 1..4),
            taken in proptest::collection::vec(0..4u8, 0..30),
        ) {
            let mut lazy = plan(&paths, whole_windows());
            let mut list = unrolled(&mut lazy.clone());
            for path in taken {
                let expected = list.iter().position(|p| *p == path);
                prop_assert_eq!(lazy.position(PathId(path)), expected.map(|k| k as u64));
                if let Some(k) = expected {
                    lazy.take(PathId(path), k as u64);
                    list.remove(k);
                }
            }
        }
    }

    #[test]
    fn long_periods_are_neither_walked_nor_stored() {
        // Coprime delays of some years: the list starts immediately and is computed only as far as it is
        // read.
        let mut plan = plan(&[(104_729, 3), (1 << 31, 5)], whole_windows());
        let fast_before_slow = ((1u64 << 31) / 104_729) * 3;
        assert_eq!(plan.position(PathId(1)), Some(fast_before_slow));
        assert_eq!(plan.batches.len(), 2);
    }

    #[test]
    fn many_paths_of_very_unequal_delay_stay_within_the_limit() {
        let mut plan = plan(&[(1, 1), (1, 1), (60_000, 1)], whole_windows());
        assert_eq!(plan.position(PathId(2)), None, "it stands beyond the limit");
        assert_eq!(plan.batches.len(), BATCH_LIMIT);
    }

    #[test]
    fn a_path_without_entries_takes_from_whoever_it_robs() {
        let mut plan = plan(&[(10, 2), (30, 2)], whole_windows());
        plan.position(PathId(1));
        plan.take(PathId(9), 6);
        assert_eq!(plan.position(PathId(1)), Some(6), "the fast path's six chunks are untouched");
        plan.take(PathId(9), 0);
        assert_eq!(plan.position(PathId(1)), Some(5));
    }

    #[test]
    fn a_path_that_takes_what_was_meant_for_another_pays_from_its_own_batch() {
        let mut plan = plan(&[(10, 2), (30, 2)], whole_windows());
        assert_eq!(plan.position(PathId(1)), Some(6));
        plan.take(PathId(1), 3);
        plan.take(PathId(1), 3);
        assert_eq!(plan.position(PathId(1)), None, "both are gone, the fast path's six are not");
        assert_eq!(plan.batches, [Batch { path: PathId(0), left: 6 }]);
    }

    #[test]
    fn delays_are_rounded_to_the_quantum_but_never_to_nothing() {
        for (quantum, fast, slow) in [(1, 4, 40), (10, 4, 44), (50, 4, 8), (1000, 4, 4)] {
            let options =
                PlanOptions { quantum: Duration::from_millis(quantum), ..whole_windows() };
            let mut plan = plan(&[(11, 4), (114, 4)], options);
            assert_eq!(plan.position(PathId(1)), Some(slow), "quantum {quantum} ms");
            assert_eq!(plan.lanes[0].chunks, fast);
        }
    }

    #[test]
    fn batches_are_the_window_its_average_or_its_part_per_delay() {
        let mut path = path_view(0);
        path.window = 8 * CHUNK;
        let chunks = |plan: &mut DelayPlan, path: PathView| {
            plan.renew(&view(&[path]));
            plan.lanes[0].chunks
        };
        let capacity = Capacity::WindowPerRoundTrip;
        let options = PlanOptions { capacity, ..whole_windows() };
        assert_eq!(chunks(&mut DelayPlan::new(options), path), 4, "half of the round trip");
        assert_eq!(chunks(&mut DelayPlan::new(whole_windows()), path), 8);

        let options = PlanOptions { windows: Windows::Smoothed, ..whole_windows() };
        let mut plan = DelayPlan::new(options);
        assert_eq!(chunks(&mut plan, path), 8, "the first is taken as it is");
        path.window = 16 * CHUNK;
        assert_eq!(chunks(&mut plan, path), 9);
        assert_eq!(chunks(&mut plan, PathView { window: 1, ..path }), 7);
    }
}
