//! Advice on links, scheduler, congestion control and receive buffer.

use std::thread::available_parallelism;

use pyo3::prelude::*;
use ropewalk_lab::advise::{AdviseOptions, Goal, advise as find};

use crate::error;
use crate::scenario::Scenario;
use crate::watch::watched;

/// A `ropewalk.advise/1` document as the command prints it, and the advised scenario with every value written out.
#[pyfunction]
pub(crate) fn advise(
    py: Python<'_>,
    scenario: &Scenario,
    goal: &str,
    seeds: u64,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let goal: Goal = goal.parse().map_err(error::value)?;
    if seeds < 2 || threads == Some(0) {
        return Err(error::value("seeds must be at least 2, threads at least 1"));
    }
    let threads = threads.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
    let options = AdviseOptions { goal, seeds, threads };
    let scenario = scenario.checked().clone();
    watched(py, progress, |watch| {
        let refused =
            |e: ropewalk_lab::advise::AdviseError| error::model(format!("{e}\nhint: {}", e.help()));
        let advice =
            find(&scenario, &options, &|share| watch.set_or_stop(share)).map_err(refused)?;
        let document = serde_json::to_string_pretty(&advice).map_err(error::run)?;
        Ok((document, advice.applied_to(&scenario).to_toml()))
    })?
}
