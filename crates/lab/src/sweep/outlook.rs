//! How much there is to do, told beforehand.

use serde::Serialize;

use super::error::SweepError;
use super::file::check_out;
use super::journal::{Journal, journal_of};
use super::plan::Plan;
use super::work::{SweepOptions, finished, header, left};
use crate::cost::Stopwatch;

/// Runs that are tried to tell how long all of them will take.
const SAMPLES: usize = 3;

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

/// Tells how much there is to do, without changing a file; tries a few runs to time them.
///
/// # Errors
/// As [`Sweep::open`](super::Sweep::open).
pub fn outlook(plan: &Plan, options: &SweepOptions<'_>) -> Result<Outlook, SweepError> {
    let points = left(plan, options.shard, &[]).len();
    let todo = todo(plan, options)?;
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

fn todo(plan: &Plan, options: &SweepOptions<'_>) -> Result<Vec<usize>, SweepError> {
    let Some(out) = options.out else { return Ok(left(plan, options.shard, &[])) };
    check_out(out)?;
    if finished(plan, options, out)?.is_some() {
        return Ok(Vec::new());
    }
    let rows = match options.fresh {
        true => Vec::new(),
        false => Journal::peek(&journal_of(out), &header(plan, options))?,
    };
    Ok(left(plan, options.shard, &rows))
}
