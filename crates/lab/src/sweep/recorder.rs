//! Records finished runs from several threads.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::error::SweepError;
use super::grid::Grid;
use super::work::FinishedRuns;
use crate::compare::map_in_parallel;

/// Records each run as soon as it has finished.
pub(super) struct RunRecorder {
    finished: Mutex<(FinishedRuns, Option<SweepError>)>,
    stopped: AtomicBool,
}

impl RunRecorder {
    pub(super) fn new(finished: FinishedRuns) -> Self {
        Self { finished: Mutex::new((finished, None)), stopped: AtomicBool::new(false) }
    }

    /// Executes these runs on `threads` threads. `done` is called after each and decides whether to continue.
    pub(super) fn run_all(
        self,
        grid: &Grid,
        runs: &[(usize, u32)],
        threads: usize,
        done: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<FinishedRuns, SweepError> {
        map_in_parallel(runs, threads, |(point, seed)| {
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
            let row = grid.run(*point, *seed);
            let written = self.finished.lock().0.keep(row);
            if let Err(error) = written {
                // Stop if results cannot be written: further work would be lost.
                self.stop(error);
            }
            if done().is_break() {
                self.stop(SweepError::Stopped);
            }
        });
        let (finished, failure) = self.finished.into_inner();
        failure.map_or(Ok(finished), Err)
    }

    fn stop(&self, why: SweepError) {
        self.stopped.store(true, Ordering::Relaxed);
        self.finished.lock().1.get_or_insert(why);
    }
}
