//! The work of a sweep: written down point by point, resumed where it was left.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;

use super::error::SweepError;
use super::file::{self, check_out, metadata};
use super::journal::{Header, Journal, journal_of};
use super::ledger::Ledger;
use super::plan::Plan;
use super::row::{FIGURES, PointRow};
use super::shard::Shard;
use super::table::to_record_batch;

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

/// A sweep that has been begun, perhaps by another process.
#[derive(Debug)]
pub struct Sweep {
    plan: Plan,
    out: Option<PathBuf>,
    shard: Option<Shard>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The result is there already.
    Finished(RecordBatch),
    /// Some points may be.
    Begun(Kept),
}

/// What is finished, and where it is written down.
#[derive(Debug, Default)]
pub(super) struct Kept {
    journal: Option<Journal>,
    rows: Vec<PointRow>,
}

impl Kept {
    /// Takes a finished point. When this returns, a kill no longer loses it.
    pub(super) fn keep(&mut self, row: PointRow) -> Result<(), SweepError> {
        self.journal.as_mut().map_or(Ok(()), |journal| journal.add(&row))?;
        self.rows.push(row);
        Ok(())
    }
}

impl Sweep {
    /// Begins a sweep, or finds what is left of it.
    ///
    /// # Errors
    /// The place of the result is no good, is in use, or holds another sweep.
    pub fn open(plan: &Plan, options: SweepOptions<'_>) -> Result<Self, SweepError> {
        let state = match options.out {
            None => State::Begun(Kept::default()),
            Some(out) => begun(plan, &options, out)?,
        };
        let out = options.out.map(Path::to_owned);
        Ok(Self { plan: plan.clone(), out, shard: options.shard, state })
    }

    /// Points that are left to do, in order.
    pub fn left(&self) -> Vec<usize> {
        match &self.state {
            State::Finished(_) => Vec::new(),
            State::Begun(kept) => left(&self.plan, self.shard, &kept.rows),
        }
    }

    /// Runs that are left to do.
    pub fn runs_left(&self) -> u64 {
        self.left().len() as u64 * self.plan.grid().seeds()
    }

    /// Takes a point that was run elsewhere and writes it down.
    ///
    /// # Errors
    /// It is not left to do, comes from another version, or the journal cannot be written.
    pub fn keep(&mut self, row: PointRow) -> Result<(), SweepError> {
        let ours = row.point < self.plan.grid().points()
            && self.shard.is_none_or(|shard| shard.has(row.point))
            && row.figures.len() == FIGURES.len();
        match &mut self.state {
            State::Begun(kept) if ours && kept.rows.iter().all(|r| r.point != row.point) => {
                kept.keep(row)
            }
            _ => {
                let message = format!("point {} is not one that is waited for", row.point);
                Err(SweepError::input(message, "bring each point that is left once"))
            }
        }
    }

    /// Does what is left on so many threads and writes the result; `done` is told of each run
    /// that is over, from any thread, and says whether to go on. The table does not depend on the
    /// threads, nor on how often the work was cut short.
    ///
    /// # Errors
    /// A file cannot be written, or `done` said stop. What was finished is resumed all the same.
    pub fn finish(
        self,
        threads: usize,
        done: &(dyn Fn() -> ControlFlow<()> + Sync),
    ) -> Result<RecordBatch, SweepError> {
        let points = self.left();
        let Self { plan, out, shard, state } = self;
        let state = match state {
            State::Begun(kept) => {
                State::Begun(Ledger::new(&plan, points, kept).work_on(threads, done)?)
            }
            finished @ State::Finished(_) => finished,
        };
        Self { plan, out, shard, state }.close()
    }

    /// Writes the result.
    ///
    /// # Errors
    /// Points are left to do, or a file cannot be written.
    pub fn close(self) -> Result<RecordBatch, SweepError> {
        let missing = self.left().len();
        if missing > 0 {
            let message = format!("{missing} points are left to do");
            return Err(SweepError::input(message, "a result has all points of its sweep"));
        }
        let kept = match self.state {
            State::Finished(batch) => return Ok(batch),
            State::Begun(kept) => kept,
        };
        let batch = to_record_batch(&self.plan, self.shard, kept.rows)
            .map_err(|error| SweepError::input(error.to_string(), "vary other keys"))?;
        if let Some(out) = &self.out {
            file::write(out, &batch)?;
        }
        self.out.map_or(Ok(()), |out| Journal::remove(&journal_of(&out)))?;
        Ok(batch)
    }
}

/// What there is of a sweep at `out`.
fn begun(plan: &Plan, options: &SweepOptions<'_>, out: &Path) -> Result<State, SweepError> {
    check_out(out)?;
    let journal_path = journal_of(out);
    if let Some(batch) = finished(plan, options, out)? {
        // Left by a kill between the last two steps.
        Journal::remove(&journal_path)?;
        return Ok(State::Finished(batch));
    }
    let (journal, rows) = Journal::open(&journal_path, &header(plan, options), options.fresh)?;
    if options.fresh && out.exists() {
        // Otherwise it would stand in the way when this sweep is resumed.
        std::fs::remove_file(out).map_err(|error| SweepError::file(out, error))?;
    }
    Ok(State::Begun(Kept { journal: Some(journal), rows }))
}

pub(super) fn header(plan: &Plan, options: &SweepOptions<'_>) -> Header {
    Header::new(plan.identity().clone(), options.shard.map(|shard| shard.to_string()))
}

/// The points of the shard that have no row, in order.
pub(super) fn left(plan: &Plan, shard: Option<Shard>, rows: &[PointRow]) -> Vec<usize> {
    let have: BTreeSet<usize> = rows.iter().map(|row| row.point).collect();
    let points = (0..plan.grid().points()).filter(|point| shard.is_none_or(|s| s.has(*point)));
    points.filter(|point| !have.contains(point)).collect()
}

/// The result, if the file has it already.
pub(super) fn finished(
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
