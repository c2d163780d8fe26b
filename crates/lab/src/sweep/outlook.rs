//! How much there is to do, told beforehand.

use serde::Serialize;

use super::error::SweepError;
use super::plan::Plan;
use super::work::{Rows, SweepOptions, left, peek, points};
use crate::cost::Stopwatch;

/// Runs that are tried to tell how long all of them will take.
const SAMPLES: usize = 3;

/// How much there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outlook {
    /// Points of the sweep, or of the shard.
    pub points: usize,
    /// Those of which runs are left.
    pub points_left: usize,
    /// Runs that are left.
    pub runs_left: u64,
    /// Mean CPU time of some of the runs that are left, s; none if none is left.
    pub run_cpu_s: Option<f64>,
}

/// Tells how much there is to do, without changing a file; tries a few runs to time them.
///
/// # Errors
/// As [`Sweep::open`](super::Sweep::open).
pub fn outlook(plan: &Plan, options: &SweepOptions<'_>) -> Result<Outlook, SweepError> {
    let rows = options.out.map_or(Ok(Rows::new()), |out| peek(plan, options, out))?;
    let todo = left(plan, options.shard, &rows);
    let samples = todo.len().min(SAMPLES);
    let watch = Stopwatch::start();
    for sample in 0..samples {
        // From the first to the last: a point's cost often grows along an axis.
        let at = if samples > 1 { sample * (todo.len() - 1) / (samples - 1) } else { 0 };
        // A run that fails takes its time as well.
        let _ = plan.grid().run(todo[at].0, todo[at].1);
    }
    Ok(Outlook {
        points: points(plan, options.shard).count(),
        points_left: todo.chunk_by(|a, b| a.0 == b.0).count(),
        runs_left: todo.len() as u64,
        run_cpu_s: (samples > 0).then(|| watch.seconds() / samples as f64),
    })
}
