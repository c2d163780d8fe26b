//! Comparisons of several runs, and predictions of the closed forms.

use std::path::PathBuf;
use std::thread::available_parallelism;

use pyo3::prelude::*;
use ropewalk_lab::compare::{CompareOptions, Comparison, Variant, compare as compare_all};
use ropewalk_lab::predict::{Formulas, predict_by, predict_slot as slot_of};
use ropewalk_lab::report::ReportKind;

use crate::error;
use crate::run::{Run, write_report};
use crate::scenario::Scenario;
use crate::watch::watched;

/// A `ropewalk.compare/1` document and the runs in its order; `None` for a failed run.
type Compared = (String, Vec<Option<Run>>);

/// Runs every labelled scenario with every seed on all cores. `progress` is called with the completed share.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    variants: Vec<(String, PyRef<'_, Scenario>)>,
    seeds: u64,
    threads: Option<usize>,
    series: bool,
    sequence: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Compared> {
    let sequence = sequence.map(ropewalk_scenario::parse_duration).transpose();
    let sequence = sequence.map_err(|text| error::value(format!("sequence: {text}")))?;
    if seeds == 0 || threads == Some(0) {
        return Err(error::value("seeds and threads must be at least 1"));
    }
    let cores = || available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or_else(cores);
    // All variants are changes of one scenario.
    let custom_schedulers =
        variants.first().map(|(_, scenario)| scenario.custom_schedulers()).unwrap_or_default();
    let options =
        CompareOptions { seeds, threads, series, sequence, single_paths: false, custom_schedulers };
    let variants: Vec<_> = variants
        .into_iter()
        .map(|(label, scenario)| Variant { label, scenario: scenario.checked().clone() })
        .collect();
    let runs = watched(py, progress, |watch| {
        compare_all(&variants, &options, &|share| watch.set_or_stop(share))
    })?;
    let document = serde_json::to_string_pretty(&Comparison::new(&runs)).map_err(error::run)?;
    let runs = runs.into_iter().map(|one| one.outcome.ok().map(|run| Run::new(run, one.scenario)));
    Ok((document, runs.collect()))
}

/// Writes one report page about labelled runs.
#[pyfunction]
pub(crate) fn report_runs(
    path: PathBuf,
    title: String,
    from: String,
    runs: Vec<(String, PyRef<'_, Run>)>,
) -> PyResult<()> {
    let runs = runs.into_iter().map(|(label, run)| run.in_report(label)).collect();
    write_report(path, ReportKind::Compare, title, from, runs)
}

/// The prediction of the closed forms: a `ropewalk.predict/1` document as the command prints it.
#[pyfunction]
pub(crate) fn predict(scenario: &Scenario, paper: bool) -> PyResult<String> {
    let formulas = if paper { Formulas::AsPrinted } else { Formulas::OnTheWire };
    serde_json::to_string_pretty(&predict_by(formulas, scenario.checked())).map_err(error::run)
}

/// The prediction of the slot model: a `ropewalk.slot/1` document as the command prints it.
#[pyfunction]
pub(crate) fn predict_slot(scenario: &Scenario, planned: &str) -> PyResult<String> {
    let planned = planned.parse().map_err(error::value)?;
    let found = slot_of(scenario.checked(), planned).map_err(error::value)?;
    serde_json::to_string_pretty(&found).map_err(error::run)
}
