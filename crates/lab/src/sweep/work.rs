//! Execution of a sweep: runs are recorded one by one, and a sweep can be resumed or continued with further
//! seeds.
//!
//! ```text
//!   FILE.parquet            FILE.parquet.journal
//!   runs of all points  +   runs finished since then =  finished runs;  left = all points x seeds - finished runs
//! ```
//!
//! When no run is left, FILE is replaced by one with all runs, and the journal is removed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;

use super::error::SweepError;
use super::file::{self, check_out, metadata};
use super::journal::{Header, Journal, journal_of};
use super::means::means;
use super::plan::SweepPlan;
use super::recorder::RunRecorder;
use super::row::RunRow;
use super::seeds::Seeds;
use super::shard::Shard;
use super::table::{rows_of, runs_table};

/// Output file and part of a sweep.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepOptions<'a> {
    /// The Parquet file. The journal is in the same directory. Without a file, nothing can be
    /// resumed.
    pub out: Option<&'a Path>,
    /// Restricts the sweep to these points.
    pub shard: Option<Shard>,
    /// Whether to discard the contents of the file and its journal.
    pub fresh: bool,
}

/// A sweep in progress, possibly started by another process.
#[derive(Debug)]
pub struct Sweep {
    plan: SweepPlan,
    out: Option<PathBuf>,
    shard: Option<Shard>,
    seeds: Seeds,
    finished: FinishedRuns,
}

/// The result of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables {
    /// One row per run; see [`runs_table`].
    pub runs: RecordBatch,
    /// One row per point, computed from the runs; see [`means()`].
    pub means: RecordBatch,
}

impl Tables {
    pub(super) fn of(runs: RecordBatch) -> Result<Self, SweepError> {
        let means = means(&runs);
        let means = means
            .map_err(|error| SweepError::input(error.to_string(), "start again with --fresh"))?;
        Ok(Self { runs, means })
    }
}

/// Runs by point and number of the seed.
pub(super) type Rows = BTreeMap<(usize, u32), RunRow>;

/// The finished runs, and the journal that records them.
#[derive(Debug, Default)]
pub(super) struct FinishedRuns {
    /// `None` if there is no file, or if the file contains all runs.
    journal: Option<Journal>,
    rows: Rows,
}

impl FinishedRuns {
    /// Adds a finished run. It survives a kill of the process after this returns.
    pub(super) fn keep(&mut self, row: RunRow) -> Result<(), SweepError> {
        self.journal.as_mut().map_or(Ok(()), |journal| journal.add(&row))?;
        self.rows.insert((row.point, row.seed), row);
        Ok(())
    }
}

impl Sweep {
    /// Starts or resumes a sweep. Seeds with a run in the file or its journal belong to the sweep in addition
    /// to those of the plan.
    ///
    /// # Errors
    /// If the output file is unusable, in use, or contains another sweep.
    pub fn open(plan: &SweepPlan, options: SweepOptions<'_>) -> Result<Self, SweepError> {
        let finished = match options.out {
            None => FinishedRuns::default(),
            Some(out) => resume_finished(plan, &options, out)?,
        };
        let seeds = seeds(plan, &finished.rows);
        plan.grid().limit(seeds.count())?;
        let out = options.out.map(Path::to_owned);
        Ok(Self { plan: plan.clone(), out, shard: options.shard, seeds, finished })
    }

    /// Seeds of each point in the finished sweep.
    pub fn seeds(&self) -> &Seeds {
        &self.seeds
    }

    /// Number of runs in the finished sweep.
    pub fn runs(&self) -> u64 {
        points(&self.plan, self.shard).count() as u64 * self.seeds.count()
    }

    /// The remaining runs in order, each as its point and the number of its seed.
    pub fn left(&self) -> Vec<(usize, u32)> {
        remaining(&self.plan, self.shard, &self.finished.rows)
    }

    /// Adds and records a run that was executed elsewhere.
    ///
    /// # Errors
    /// If the run is not left to do, comes from another version, or cannot be recorded.
    pub fn keep(&mut self, row: RunRow) -> Result<(), SweepError> {
        let ours = row.point < self.plan.grid().points()
            && self.shard.is_none_or(|shard| shard.has(row.point))
            && self.seeds.contains(row.seed)
            && row.figures.len() == self.plan.grid().columns().len();
        if !ours || self.finished.rows.contains_key(&(row.point, row.seed)) {
            let message = format!("seed {} of point {} is not waited for", row.seed, row.point);
            return Err(SweepError::input(message, "bring each run that is left once"));
        }
        self.finished.keep(row)
    }

    /// Executes the remaining runs on `threads` threads and writes the result. `done` is called after each run,
    /// from any thread, and decides whether to continue. The tables do not depend on the number of threads, on
    /// interruptions, or on when seeds were added.
    ///
    /// # Errors
    /// If a file cannot be written, or if `done` stopped the sweep. Finished runs can be resumed.
    pub fn finish(
        mut self,
        threads: usize,
        done: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<Tables, SweepError> {
        let runs = self.left();
        self.finished =
            RunRecorder::new(self.finished).run_all(self.plan.grid(), &runs, threads, done)?;
        self.close()
    }

    /// Writes the result.
    ///
    /// # Errors
    /// If runs are left to do, or if a file cannot be written.
    pub fn close(self) -> Result<Tables, SweepError> {
        let missing = self.left().len();
        if missing > 0 {
            let message = format!("{missing} runs are left to do");
            return Err(SweepError::input(message, "a result has all runs of its sweep"));
        }
        let runs = runs_table(&self.plan, self.shard, self.finished.rows.values())
            .map_err(|error| SweepError::input(error.to_string(), "vary other keys"))?;
        let tables = Tables::of(runs)?;
        if let (Some(out), Some(_)) = (&self.out, &self.finished.journal) {
            file::write(out, &tables.runs)?;
            Journal::remove(&journal_of(out))?;
        }
        Ok(tables)
    }
}

/// The existing runs of a sweep at `out`, opened for continuing.
fn resume_finished(
    plan: &SweepPlan,
    options: &SweepOptions<'_>,
    out: &Path,
) -> Result<FinishedRuns, SweepError> {
    check_out("--out", out)?;
    let journal_path = journal_of(out);
    let rows = stored(plan, options, out)?;
    // A finished result can be on a read-only file system.
    if !journal_path.exists() && remaining(plan, options.shard, &rows).is_empty() {
        return Ok(FinishedRuns { journal: None, rows });
    }
    let (journal, since) = Journal::open(&journal_path, &header(plan, options), options.fresh)?;
    if options.fresh && out.exists() {
        // An existing file of another sweep would prevent resuming this one.
        std::fs::remove_file(out).map_err(|error| SweepError::file(out, error))?;
    }
    // Read the file again: another process may have replaced it before this one locked the journal.
    let rows = join(plan, &journal_path, stored(plan, options, out)?, since)?;
    Ok(FinishedRuns { journal: Some(journal), rows })
}

/// The existing runs of a sweep at `out`, without changing files.
pub(super) fn read_finished(
    plan: &SweepPlan,
    options: &SweepOptions<'_>,
    out: &Path,
) -> Result<Rows, SweepError> {
    check_out("--out", out)?;
    let rows = stored(plan, options, out)?;
    let journal_path = journal_of(out);
    let since = match options.fresh {
        true => Vec::new(),
        false => Journal::peek(&journal_path, &header(plan, options))?,
    };
    join(plan, &journal_path, rows, since)
}

/// The runs of the file and its journal. After a kill between writing the file and removing the journal, both
/// contain the same runs.
fn join(
    plan: &SweepPlan,
    journal: &Path,
    mut rows: Rows,
    since: Vec<RunRow>,
) -> Result<Rows, SweepError> {
    for row in since {
        if row.point >= plan.grid().points() {
            return Err(SweepError::file(journal, format!("there is no point {}", row.point)));
        }
        rows.entry((row.point, row.seed)).or_insert(row);
    }
    Ok(rows)
}

fn header(plan: &SweepPlan, options: &SweepOptions<'_>) -> Header {
    let shard = options.shard.map(|shard| shard.to_string());
    Header::new(plan.identity().clone(), shard, plan.grid().columns().len())
}

/// The points of the shard.
pub(super) fn points(plan: &SweepPlan, shard: Option<Shard>) -> impl Iterator<Item = usize> {
    (0..plan.grid().points()).filter(move |point| shard.is_none_or(|shard| shard.has(*point)))
}

/// The seeds of the plan, and those with existing runs.
fn seeds(plan: &SweepPlan, rows: &Rows) -> Seeds {
    let mut seeds = plan.grid().seeds().clone();
    seeds.extend(rows.keys().map(|(_, seed)| *seed));
    seeds
}

/// The runs of the shard without a row, in order of points.
pub(super) fn remaining(plan: &SweepPlan, shard: Option<Shard>, rows: &Rows) -> Vec<(usize, u32)> {
    let seeds = seeds(plan, rows);
    let runs = points(plan, shard).flat_map(|point| seeds.numbers().map(move |seed| (point, seed)));
    runs.filter(|run| !rows.contains_key(run)).collect()
}

/// The runs in the file.
fn stored(plan: &SweepPlan, options: &SweepOptions<'_>, out: &Path) -> Result<Rows, SweepError> {
    if options.fresh || !out.exists() {
        return Ok(Rows::new());
    }
    let Some(batch) = file::read(out)? else { return Ok(Rows::new()) };
    let shard = options.shard.map(|shard| shard.to_string()).unwrap_or_default();
    let other = if metadata(&batch, "version") != plan.identity().version {
        format!("version {}, this is {}", metadata(&batch, "version"), plan.identity().version)
    } else if metadata(&batch, "identity") != plan.identity().hash {
        "another sweep".to_owned()
    } else if metadata(&batch, "shard") != shard {
        "another part of this sweep".to_owned()
    } else {
        let rows =
            rows_of(&batch, plan.grid().columns()).map_err(|error| SweepError::file(out, error))?;
        return Ok(rows.into_iter().map(|row| ((row.point, row.seed), row)).collect());
    };
    let message = format!("--out {} has the result of {other}", out.display());
    Err(SweepError::input(message, "give another name, or --fresh to throw that result away"))
}
