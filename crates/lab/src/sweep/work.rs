//! The work of a sweep: on all cores, written down point by point, resumed where it was left.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;
use serde::Serialize;

use super::error::SweepError;
use super::file::{self, check_out, metadata};
use super::journal::{Header, Journal, journal_of};
use super::plan::Plan;
use super::row::{Outcome, PointRow};
use super::shard::Shard;
use super::table::to_record_batch;
use crate::compare::map_in_parallel;
use crate::cost::Stopwatch;

/// Runs that are tried to tell how long all of them will take.
const SAMPLES: usize = 3;

/// Where the result goes, and which part it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepOptions<'a> {
    /// The Parquet file. Its journal stands beside it; without it nothing is resumed.
    pub out: Option<&'a Path>,
    /// Only these points.
    pub shard: Option<Shard>,
    /// Throw away what the file and its journal have.
    pub fresh: bool,
}

/// How much there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outlook {
    /// Points of the sweep, or of the shard.
    pub points: usize,
    /// Those that are not finished.
    pub points_left: usize,
    /// Their runs.
    pub runs_left: u64,
    /// Mean CPU time of some of the runs that are left, s; none if none is left.
    pub run_cpu_s: Option<f64>,
}

/// A sweep that has been begun, perhaps by another process.
#[derive(Debug)]
pub struct Sweep<'a> {
    plan: &'a Plan,
    options: SweepOptions<'a>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The result is there already.
    Finished(RecordBatch),
    /// Some points may be.
    Begun { journal: Option<Journal>, rows: Vec<PointRow> },
}

impl<'a> Sweep<'a> {
    /// Begins a sweep, or finds what is left of it.
    ///
    /// # Errors
    /// The place of the result is no good, is in use, or holds another sweep.
    pub fn open(plan: &'a Plan, options: SweepOptions<'a>) -> Result<Self, SweepError> {
        let Some(out) = options.out else {
            let state = State::Begun { journal: None, rows: Vec::new() };
            return Ok(Self { plan, options, state });
        };
        check_out(out)?;
        let state = match finished(plan, &options, out)? {
            Some(batch) => State::Finished(batch),
            None => {
                let header = header(plan, &options);
                let (journal, rows) = Journal::open(&journal_of(out), &header, options.fresh)?;
                State::Begun { journal: Some(journal), rows }
            }
        };
        Ok(Self { plan, options, state })
    }

    /// Points that are left to do.
    pub fn points_left(&self) -> usize {
        match &self.state {
            State::Finished(_) => 0,
            State::Begun { rows, .. } => left(self.plan, &self.options, rows).len(),
        }
    }

    /// Runs that are left to do.
    pub fn runs_left(&self) -> u64 {
        self.points_left() as u64 * self.plan.grid().seeds()
    }

    /// Does what is left on so many threads and writes the result; `done` is told of each run
    /// that is over, from any thread. The table does not depend on the threads, nor on how often
    /// the work was cut short.
    ///
    /// # Errors
    /// If a file cannot be written. What was finished is resumed all the same.
    pub fn finish(
        self,
        threads: usize,
        done: &(dyn Fn() + Sync),
    ) -> Result<RecordBatch, SweepError> {
        let (journal, rows) = match self.state {
            State::Finished(batch) => return Ok(batch),
            State::Begun { journal, rows } => (journal, rows),
        };
        let points = left(self.plan, &self.options, &rows);
        let ledger = Ledger::new(self.plan, points, Kept { journal, rows, failure: None });
        let jobs = ledger.jobs();
        map_in_parallel(&jobs, threads, |(position, seed)| {
            ledger.work(*position as usize, u64::from(*seed));
            done();
        });
        let kept = ledger.close()?;
        let batch = to_record_batch(self.plan, self.options.shard, kept.rows)
            .map_err(|error| SweepError::input(error.to_string(), "vary other keys"))?;
        if let Some(out) = self.options.out {
            file::write(out, &batch)?;
        }
        kept.journal.map_or(Ok(()), Journal::remove)?;
        Ok(batch)
    }
}

/// Tells how much there is to do, without changing a file; tries a few runs to time them.
///
/// # Errors
/// As [`Sweep::open`].
pub fn outlook(plan: &Plan, options: &SweepOptions<'_>) -> Result<Outlook, SweepError> {
    let mut rows = Vec::new();
    let mut over = false;
    if let Some(out) = options.out {
        check_out(out)?;
        over = finished(plan, options, out)?.is_some();
        if !over && !options.fresh {
            rows = Journal::peek(&journal_of(out), &header(plan, options))?;
        }
    }
    let points = left(plan, options, &[]).len();
    let todo = if over { Vec::new() } else { left(plan, options, &rows) };
    let samples = todo.len().min(SAMPLES);
    let watch = Stopwatch::start();
    for sample in 0..samples {
        // From the first to the last: a point's cost often grows along an axis.
        let at = if samples > 1 { sample * (todo.len() - 1) / (samples - 1) } else { 0 };
        // A run that fails takes its time as well.
        let _ = plan.grid().run(todo[at], 0);
    }
    Ok(Outlook {
        points,
        points_left: todo.len(),
        runs_left: todo.len() as u64 * plan.grid().seeds(),
        run_cpu_s: (samples > 0).then(|| watch.seconds() / samples as f64),
    })
}

fn header(plan: &Plan, options: &SweepOptions<'_>) -> Header {
    Header::new(plan.identity().clone(), options.shard.map(|shard| shard.to_string()))
}

/// The points that have no row, in order.
fn left(plan: &Plan, options: &SweepOptions<'_>, rows: &[PointRow]) -> Vec<usize> {
    let have: BTreeSet<usize> = rows.iter().map(|row| row.point).collect();
    let wanted = |point: &usize| options.shard.is_none_or(|shard| shard.has(*point));
    (0..plan.grid().points()).filter(wanted).filter(|point| !have.contains(point)).collect()
}

/// The result, if the file has it already.
fn finished(
    plan: &Plan,
    options: &SweepOptions<'_>,
    out: &Path,
) -> Result<Option<RecordBatch>, SweepError> {
    if options.fresh || !out.exists() {
        return Ok(None);
    }
    let Some(batch) = file::read(out)? else { return Ok(None) };
    let shard = options.shard.map(|shard| shard.to_string()).unwrap_or_default();
    let other = if metadata(&batch, "identity") != plan.identity().hash {
        "another sweep"
    } else if metadata(&batch, "shard") != shard {
        "another part of this sweep"
    } else {
        return Ok(Some(batch));
    };
    let message = format!("--out {} has the result of {other}", out.display());
    Err(SweepError::input(message, "give another name, or --fresh to throw that result away"))
}

/// What is finished, and where it is written down.
struct Kept {
    journal: Option<Journal>,
    rows: Vec<PointRow>,
    failure: Option<SweepError>,
}

/// Who brings the last run of a point writes the point down.
struct Ledger<'a> {
    plan: &'a Plan,
    points: Vec<usize>,
    outcomes: Vec<Mutex<Vec<(u64, Outcome)>>>,
    kept: Mutex<Kept>,
    stopped: AtomicBool,
}

impl<'a> Ledger<'a> {
    fn new(plan: &'a Plan, points: Vec<usize>, kept: Kept) -> Self {
        let outcomes = points.iter().map(|_| Mutex::default()).collect();
        let stopped = AtomicBool::new(false);
        Self { plan, points, outcomes, kept: Mutex::new(kept), stopped }
    }

    /// Every run as position of its point and number of its seed. One point after the other:
    /// there are never more unfinished ones than threads.
    fn jobs(&self) -> Vec<(u32, u32)> {
        let seeds = self.plan.grid().seeds() as u32;
        let positions = 0..self.points.len() as u32;
        positions.flat_map(|position| (0..seeds).map(move |seed| (position, seed))).collect()
    }

    fn work(&self, position: usize, seed: u64) {
        if self.stopped.load(Ordering::Relaxed) {
            return;
        }
        let point = self.points[position];
        let outcome = self.plan.grid().run(point, seed);
        let mut outcomes = self.outcomes[position].lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.push((seed, outcome));
        if outcomes.len() as u64 == self.plan.grid().seeds() {
            let mut all = std::mem::take(&mut *outcomes);
            drop(outcomes);
            // A mean over other orders may differ in its last digit.
            all.sort_by_key(|(seed, _)| *seed);
            let all: Vec<Outcome> = all.into_iter().map(|(_, outcome)| outcome).collect();
            self.keep(PointRow::new(point, &all));
        }
    }

    fn keep(&self, row: PointRow) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let written = kept.journal.as_mut().map_or(Ok(()), |journal| journal.add(&row));
        match written {
            Ok(()) => kept.rows.push(row),
            Err(error) => {
                // Hours of work that cannot be written down are not worth doing.
                self.stopped.store(true, Ordering::Relaxed);
                kept.failure.get_or_insert(error);
            }
        }
    }

    fn close(self) -> Result<Kept, SweepError> {
        let mut kept = self.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        kept.failure.take().map_or(Ok(kept), Err)
    }
}
