//! Grids of values, run on all cores, or assembled from runs executed elsewhere.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use ropewalk_lab::sweep::{
    self as lab, Axis, Grid, RunRow, Seeds, SweepError, SweepOptions, SweepPlan, Tables,
};

use crate::error;
use crate::scenario::Scenario;
use crate::table::Table;
use crate::watch::watched;

/// Values of a key: a text with lists and ranges, or one item each.
#[derive(FromPyObject)]
pub(crate) enum Values {
    Text(String),
    Items(Vec<String>),
}

type Vary = Vec<(String, Values)>;

/// The tables: single runs, and means over them.
type Both = (Table, Table);

fn both(tables: Tables) -> Both {
    (Table::new(tables.runs), Table::new(tables.means))
}

fn numbers(seeds: &str) -> PyResult<Seeds> {
    seeds.parse().map_err(|text: String| error::value(format!("seeds: {text}")))
}

fn axes(vary: Vary) -> Result<Vec<Axis>, SweepError> {
    let axis = |(key, values): (String, Values)| match values {
        Values::Text(text) => Axis::parse(&format!("{key}={text}")),
        Values::Items(items) => Axis::new(&key, &items),
    };
    vary.into_iter().map(axis).collect()
}

/// A sweep in progress.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Sweep {
    /// `None` once the result is written.
    begun: Mutex<Option<lab::Sweep>>,
}

#[pymethods]
impl Sweep {
    /// Checks every point, and starts the sweep or resumes it.
    #[new]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        vary: Vary,
        seeds: &str,
        out: Option<PathBuf>,
        shard: Option<&str>,
        fresh: bool,
    ) -> PyResult<Self> {
        let shard = shard.map(str::parse).transpose();
        let shard = shard.map_err(|text: String| error::value(format!("shard: {text}")))?;
        let (source, seeds) = (scenario.source(), numbers(seeds)?);
        let begun = py.detach(|| {
            let plan = SweepPlan::new(source, axes(vary)?, seeds)?;
            lab::Sweep::open(&plan, SweepOptions { out: out.as_deref(), shard, fresh })
        });
        let begun = begun.map_err(|error| raised(py, error))?;
        Ok(Self { begun: Mutex::new(Some(begun)) })
    }

    /// The points with runs left to do, each with the numbers of its seeds.
    fn left(&self) -> Vec<(usize, Vec<u32>)> {
        let left = self.lock().as_ref().map(lab::Sweep::left).unwrap_or_default();
        let points = left.chunk_by(|a, b| a.0 == b.0);
        points.map(|runs| (runs[0].0, runs.iter().map(|(_, seed)| *seed).collect())).collect()
    }

    /// Runs everything that is left; Ctrl-C, or an exception of `progress`, stops it between two runs.
    fn run(
        &self,
        py: Python<'_>,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Both> {
        if threads == Some(0) {
            return Err(error::value("threads must be at least 1"));
        }
        let cores = || available_parallelism().map_or(1, usize::from);
        let threads = threads.unwrap_or_else(cores);
        let sweep = self.take()?;
        let (left, done) = (sweep.left().len() as f64, AtomicU64::new(0));
        let tables = watched(py, progress, move |watch| {
            sweep.finish(threads, &|| {
                watch.set((done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / left);
                if watch.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        })?;
        tables.map(both).map_err(|error| raised(py, error))
    }

    /// Takes runs from [`sweep_point`] and records them.
    fn keep(&self, py: Python<'_>, runs: &str) -> PyResult<()> {
        let rows: Vec<RunRow> = serde_json::from_str(runs).map_err(error::value)?;
        let mut begun = self.lock();
        let sweep = begun.as_mut().ok_or_else(over)?;
        let mut rows = rows.into_iter();
        rows.try_for_each(|row| sweep.keep(row)).map_err(|error| raised(py, error))
    }

    /// Writes the result when no run is left.
    fn close(&self, py: Python<'_>) -> PyResult<Both> {
        self.take()?.close().map(both).map_err(|error| raised(py, error))
    }
}

impl Sweep {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<lab::Sweep>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> PyResult<lab::Sweep> {
        self.lock().take().ok_or_else(over)
    }
}

fn over() -> PyErr {
    error::value("this sweep is over; begin another one")
}

/// Runs one point of a sweep with these seeds on this thread; other Python threads continue.
#[pyfunction]
pub(crate) fn sweep_point(
    py: Python<'_>,
    scenario: &Scenario,
    vary: Vary,
    point: usize,
    seeds: Vec<u32>,
) -> PyResult<String> {
    let source = scenario.source();
    let one = numbers("1")?;
    let rows = py.detach(|| {
        let grid = Grid::new(source, axes(vary)?, one)?;
        if point >= grid.points() {
            let message = format!("there is no point {point}");
            let help = format!("the sweep has points 0 to {}", grid.points() - 1);
            return Err(SweepError::Input { message, help });
        }
        Ok(seeds.into_iter().map(|seed| grid.run(point, seed)).collect::<Vec<_>>())
    });
    let rows = rows.map_err(|error| raised(py, error))?;
    serde_json::to_string(&rows).map_err(error::run)
}

/// Joins the results of shards; writes all runs to `out` if it is given.
#[pyfunction]
pub(crate) fn merge_sweeps(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    out: Option<PathBuf>,
) -> PyResult<Both> {
    let merged = py.detach(|| {
        out.as_deref().map_or(Ok(()), |out| lab::check_out("--out", out))?;
        let tables = lab::merge(&paths)?;
        out.as_deref().map_or(Ok(()), |out| lab::write(out, &tables.runs))?;
        Ok(tables)
    });
    merged.map(both).map_err(|error| raised(py, error))
}

fn raised(py: Python<'_>, error: SweepError) -> PyErr {
    match error {
        SweepError::Scenario(error) => error::scenario(py, *error),
        SweepError::Input { .. } => error::value(in_python(&error.to_string())),
        SweepError::File { .. } => PyOSError::new_err(error.to_string()),
        SweepError::Stopped => error::run(error),
    }
}

/// The lab names options as the command line spells them; Python spells them differently.
fn in_python(text: &str) -> String {
    let fresh = text.replace("--fresh", "fresh=True");
    ["vary", "seeds", "seed", "shard", "out"]
        .iter()
        .fold(fresh, |text, name| text.replace(&format!("--{name}"), name))
}
