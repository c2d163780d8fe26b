//! Adaptive limits of the data in flight per path, computed from measurements during the transfer.
//!
//! Static limits reduce congestion windows. A wrong limit is expensive: when the other paths no longer
//! need the space, a reduced window grows back by only one packet per round trip. Adaptive management
//! leaves the windows to congestion control. It limits only the data in flight, and only where that is
//! known to help:
//!
//! - A path that has been full keeps its BDP in flight. It may add a queue if the other paths leave space
//!   and the queue gains more after the next loss on its path than it costs the others
//!   ([`worthwhile_queue`]).
//! - If the buffer cannot hold the BDPs of all paths, and the models clearly favour some paths, the
//!   others leave space for those windows to grow ([`room_left`]).
//! - A path that is not worth its buffer space according to the models keeps one chunk in flight, which
//!   still reveals its losses.
//!
//! Otherwise flow control shares the buffer: it gives the space of a halved window to another path
//! immediately.

use ropewalk_base::{Duration, PathId, Rate, Time};

use super::growth_headroom::room_left;
use super::losses::{LossMemory, worthwhile_queue};
use super::manager::{Budget, LimitAdvisor, ManageWindows, ManagedPath};
use super::max_rate::{MaxRateFilter, in_flight_most};
use crate::scheduler::PathSet;

/// Measurements of a path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeasuredPath {
    /// Delivery rate. For a path that was never full: the rate that the entire buffer would allow, if
    /// that is higher.
    pub rate: Rate,
    /// Round trip without queueing.
    pub round_trip: Duration,
    /// Share of recent transmissions that were lost; above 0 even if none was.
    pub loss: f64,
}

/// Limits that the models advise.
#[derive(Clone, PartialEq, Debug)]
pub struct Advice {
    /// Buffer space of each path, bytes.
    pub limits: Vec<u64>,
    /// Predicted delivery, as a multiple of the prediction for equal shares of the buffer.
    pub over_equal_shares: f64,
}

/// Interval between two evaluations of losses and limits.
const EVERY: Duration = Duration::from_millis(500);

/// Paths with an advised limit of at most this many chunks are excluded. With so little data in flight a
/// loss is seldom reported (RFC 9260, 7.2.4: three miss indications are needed), so each loss ends in a
/// timeout, and all other paths wait for it.
const TOO_FEW: u64 = 4;
/// A path is excluded only if its limit is less than this part of its BDP: few chunks fill a path with a
/// small BDP.
const PART_OF_PIPE: u64 = 4;

/// Adaptive window management.
#[derive(Clone, Debug)]
pub struct Adaptive {
    advisor: Box<dyn LimitAdvisor>,
    advised: Option<Advice>,
    /// Paths that are not worth their buffer space according to that advice.
    left_out: PathSet,
    /// Limit of the data in flight of each path, bytes.
    limits: Vec<u64>,
    memory: Vec<LossMemory>,
    ceilings: Vec<MaxRateFilter>,
    looked: Time,
}

impl Adaptive {
    /// Starts without limits, until there are enough measurements for advice from `advisor`.
    pub const fn new(advisor: Box<dyn LimitAdvisor>) -> Self {
        Self {
            advisor,
            advised: None,
            left_out: PathSet::EMPTY,
            limits: Vec::new(),
            memory: Vec::new(),
            ceilings: Vec::new(),
            looked: Time::ZERO,
        }
    }

    fn limit(&self, i: usize, budget: &Budget, paths: &[ManagedPath]) -> Option<u64> {
        if self.left_out.contains(PathId::from_index(i)) {
            return Some(budget.chunk);
        }
        let room = self.advised.as_ref().and_then(|a| room_left(i, budget, paths, a));
        self.pipe_and_queue(i, budget, paths).into_iter().chain(room).min()
    }

    /// Limit of the data in flight of path `i` that its own queue justifies, bytes.
    fn pipe_and_queue(&self, i: usize, budget: &Budget, paths: &[ManagedPath]) -> Option<u64> {
        let (rate, round_trip) = (self.ceilings[i].rate()?, paths[i].round_trip?);
        let queue = worthwhile_queue(i, rate, round_trip, budget.chunk, &self.memory);
        in_flight_most(i, budget.buffer, budget.chunk, paths, &self.ceilings, queue)
    }

    fn look(&mut self, since: Duration, budget: &Budget, paths: &[ManagedPath]) {
        self.memory.resize(paths.len(), LossMemory::default());
        self.memory.iter_mut().zip(paths).for_each(|(memory, path)| memory.update(path, since));
        let measured =
            |((path, memory), ceiling): ((&ManagedPath, &LossMemory), &MaxRateFilter)| {
                let round_trip = path.round_trip?;
                // While a path was never full, the rate that its window delivers does not show the rate
                // of the link.
                let by_buffer = budget.buffer as f64 * 8.0 / round_trip.as_secs_f64().max(1e-9);
                let seen = path.rate?.max(Rate::from_bps(by_buffer as u64));
                let rate = ceiling.rate().unwrap_or(seen);
                Some(MeasuredPath { rate, round_trip, loss: memory.share()? })
            };
        let noted = paths.iter().zip(&self.memory).zip(&self.ceilings);
        let known: Option<Vec<_>> = noted.map(measured).collect();
        let Some(known) = known else { return };
        if let Some(better) = self.advisor.advise(budget, &known, self.advised.as_ref()) {
            self.advised = Some(better);
        }
        let Some(advised) = &self.advised else { return };
        let is_out = |(limit, path): (&u64, &MeasuredPath)| {
            let pipe = path.rate.bytes_in(path.round_trip);
            *limit <= TOO_FEW * budget.chunk && PART_OF_PIPE * limit < pipe
        };
        let out = (0..).zip(advised.limits.iter().zip(&known)).filter(|(_, path)| is_out(*path));
        self.left_out = out.fold(PathSet::EMPTY, |all, (i, _)| all.with(PathId::from_index(i)));
    }
}

impl ManageWindows for Adaptive {
    /// Updates the limits after an acknowledgement on `path`.
    fn manage(&mut self, now: Time, path: PathId, budget: &Budget, paths: &mut [ManagedPath]) {
        let i = path.index();
        self.ceilings.resize(paths.len(), MaxRateFilter::UNKNOWN);
        self.limits.resize(paths.len(), u64::MAX);
        self.ceilings[i].note(now, &paths[i], budget.chunk);
        if now.since(self.looked) >= EVERY {
            self.look(now.since(self.looked), budget, paths);
            self.looked = now;
        }
        self.limits[i] = self.limit(i, budget, paths).unwrap_or(u64::MAX);
    }

    /// Limit of the data in flight on `path`, bytes.
    #[inline]
    fn in_flight_most(&self, path: PathId, _budget: &Budget, _paths: usize, _held: u64) -> u64 {
        self.limits.get(path.index()).copied().unwrap_or(u64::MAX)
    }
}
#[cfg(test)]
mod tests {
    use super::super::manager::tests::{CHUNK, budget, path};
    use super::*;

    /// Excludes the second path as soon as it loses more than one packet in a hundred.
    #[derive(Clone)]
    struct Strict;

    impl LimitAdvisor for Strict {
        fn advise(
            &mut self,
            budget: &Budget,
            paths: &[MeasuredPath],
            current: Option<&Advice>,
        ) -> Option<Advice> {
            let bad = paths[1].loss > 0.01;
            let share = if bad { budget.buffer - budget.chunk } else { budget.buffer / 2 };
            let limits = vec![share, budget.buffer - share];
            let advice = Advice { limits, over_equal_shares: 1.0 };
            (current != Some(&advice)).then_some(advice)
        }

        fn clone_box(&self) -> Box<dyn LimitAdvisor> {
            Box::new(self.clone())
        }
    }

    /// Limit of each path in chunks. `None`: limited only by its window.
    fn limits(adaptive: &Adaptive) -> [Option<u64>; 2] {
        [PathId(0), PathId(1)].map(|id| match adaptive.in_flight_most(id, &budget(100), 2, 0) {
            u64::MAX => None,
            bytes => Some(bytes / CHUNK),
        })
    }

    fn note_both(adaptive: &mut Adaptive, now: Time, paths: &[ManagedPath]) {
        for id in [PathId(0), PathId(1)] {
            adaptive.manage(now, id, &budget(100), &mut paths.to_vec());
        }
    }

    #[test]
    fn a_path_that_is_not_worth_its_room_keeps_one_chunk_until_it_is() {
        let mut adaptive = Adaptive::new(Box::new(Strict));
        let mut paths = [path(20, 40, 70), path(20, 40, 70)];
        note_both(&mut adaptive, Time::ZERO, &paths);
        assert_eq!(limits(&adaptive), [None, None], "nothing known");
        let mut now = Time::ZERO;
        for (lost_per_look, limit) in [(0, None), (20, Some(1)), (0, None)] {
            for _ in 0..200 {
                now += EVERY;
                paths.iter_mut().for_each(|p| p.sent += 500);
                paths[1].lost += lost_per_look;
                note_both(&mut adaptive, now, &paths);
            }
            assert_eq!(limits(&adaptive), [None, limit], "{lost_per_look} lost per look");
        }
    }

    #[test]
    fn a_path_that_queues_is_held_to_its_pipe_where_the_others_need_the_room() {
        for (other, queue) in [(100, false), (0, true)] {
            let mut adaptive = Adaptive::new(Box::new(Strict));
            let queued = Some(Duration::from_millis(20));
            let mut paths =
                [path(20, 40, other), ManagedPath { last_queueing: queued, ..path(10, 40, 90) }];
            for at in 0..400 {
                paths.iter_mut().for_each(|p| p.sent += 12);
                note_both(&mut adaptive, Time::from_millis(10 * at), &paths);
            }
            let [first, second] = limits(&adaptive);
            // 10 Mbit/s for 40 ms are 50 chunks, and one chunk is being sent.
            assert_eq!((first, second > Some(51)), (None, queue), "{other} chunks elsewhere");
            assert!(second >= Some(51), "{second:?}: never below the pipe");
        }
    }
}
