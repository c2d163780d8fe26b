//! Many threads, one account of what is finished.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::error::SweepError;
use super::plan::Plan;
use super::row::{Outcome, PointRow};
use super::work::Kept;
use crate::compare::map_in_parallel;

/// Who brings the last run of a point writes the point down.
pub(super) struct Ledger<'a> {
    plan: &'a Plan,
    points: Vec<usize>,
    /// Of each point, the runs that are over while others are not, with the number of their seed.
    outcomes: Vec<Mutex<Vec<(u64, Outcome)>>>,
    kept: Mutex<(Kept, Option<SweepError>)>,
    stopped: AtomicBool,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(plan: &'a Plan, points: Vec<usize>, kept: Kept) -> Self {
        let outcomes = points.iter().map(|_| Mutex::default()).collect();
        let stopped = AtomicBool::new(false);
        Self { plan, points, outcomes, kept: Mutex::new((kept, None)), stopped }
    }

    /// Runs everything on so many threads; `done` hears of each run and says whether to go on.
    pub(super) fn work_on(
        self,
        threads: usize,
        done: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<Kept, SweepError> {
        // One point after the other: there are never more unfinished ones than threads.
        let seeds = self.plan.grid().seeds() as u32;
        let positions = 0..self.points.len() as u32;
        let jobs: Vec<(u32, u32)> =
            positions.flat_map(|position| (0..seeds).map(move |seed| (position, seed))).collect();
        map_in_parallel(&jobs, threads, |(position, seed)| {
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
            self.run(*position as usize, u64::from(*seed));
            if done().is_break() {
                self.stop(SweepError::Stopped);
            }
        });
        let (kept, failure) = self.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(kept), Err)
    }

    fn run(&self, position: usize, seed: u64) {
        let point = self.points[position];
        let outcome = self.plan.grid().run(point, seed);
        let mut outcomes = self.outcomes[position].lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.push((seed, outcome));
        if (outcomes.len() as u64) < self.plan.grid().seeds() {
            return;
        }
        let mut all = std::mem::take(&mut *outcomes);
        drop(outcomes);
        // A mean over other orders may differ in its last digit.
        all.sort_by_key(|(seed, _)| *seed);
        let all: Vec<Outcome> = all.into_iter().map(|(_, outcome)| outcome).collect();
        let row = PointRow::new(point, &all);
        let written = self.kept.lock().unwrap_or_else(PoisonError::into_inner).0.keep(row);
        if let Err(error) = written {
            // Hours of work that cannot be written down are not worth doing.
            self.stop(error);
        }
    }

    fn stop(&self, why: SweepError) {
        self.stopped.store(true, Ordering::Relaxed);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).1.get_or_insert(why);
    }
}
