//! Estimate of the remaining work of a sweep.

use serde::Serialize;

use super::error::SweepError;
use super::plan::SweepPlan;
use super::work::{Rows, SweepOptions, points, read_finished, remaining};
use crate::cost::Stopwatch;

/// Number of sample runs for estimating the time per run.
const SAMPLES: usize = 3;

/// The remaining work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SweepEstimate {
    /// Points of the sweep, or of the shard.
    pub points: usize,
    /// Points with remaining runs.
    pub points_left: usize,
    /// Number of remaining runs.
    pub runs_left: u64,
    /// Mean CPU time of a sample of the remaining runs, s. `None` if no runs remain.
    pub run_cpu_s: Option<f64>,
}

/// Estimates the remaining work without changing a file; executes a few runs to time them.
///
/// # Errors
/// As [`Sweep::open`](super::Sweep::open).
pub fn estimate(plan: &SweepPlan, options: &SweepOptions<'_>) -> Result<SweepEstimate, SweepError> {
    let rows = options.out.map_or(Ok(Rows::new()), |out| read_finished(plan, options, out))?;
    let todo = remaining(plan, options.shard, &rows);
    let samples = todo.len().min(SAMPLES);
    let watch = Stopwatch::start();
    for sample in 0..samples {
        // Spread from the first to the last: the cost of a point often grows along an axis.
        let at = if samples > 1 { sample * (todo.len() - 1) / (samples - 1) } else { 0 };
        // A run that fails takes time as well.
        let _ = plan.grid().run(todo[at].0, todo[at].1);
    }
    Ok(SweepEstimate {
        points: points(plan, options.shard).count(),
        points_left: todo.chunk_by(|a, b| a.0 == b.0).count(),
        runs_left: todo.len() as u64,
        run_cpu_s: (samples > 0).then(|| watch.seconds() / samples as f64),
    })
}
