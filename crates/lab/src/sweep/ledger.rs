//! Records finished runs from several threads.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::error::SweepError;
use super::grid::Grid;
use super::work::Kept;
use crate::compare::map_in_parallel;

/// Records each run as soon as it has finished.
pub(super) struct Ledger {
    kept: Mutex<(Kept, Option<SweepError>)>,
    stopped: AtomicBool,
}

impl Ledger {
    pub(super) fn new(kept: Kept) -> Self {
        Self { kept: Mutex::new((kept, None)), stopped: AtomicBool::new(false) }
    }

    /// Executes these runs on `threads` threads. `done` is called after each and decides whether to continue.
    pub(super) fn work_on(
        self,
        grid: &Grid,
        runs: &[(usize, u32)],
        threads: usize,
        done: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<Kept, SweepError> {
        map_in_parallel(runs, threads, |(point, seed)| {
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
            let row = grid.run(*point, *seed);
            let written = self.kept.lock().unwrap_or_else(PoisonError::into_inner).0.keep(row);
            if let Err(error) = written {
                // Stop if results cannot be written: further work would be lost.
                self.stop(error);
            }
            if done().is_break() {
                self.stop(SweepError::Stopped);
            }
        });
        let (kept, failure) = self.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(kept), Err)
    }

    fn stop(&self, why: SweepError) {
        self.stopped.store(true, Ordering::Relaxed);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).1.get_or_insert(why);
    }
}
