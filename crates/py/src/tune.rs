//! The best window limits.

use std::thread::available_parallelism;

use pyo3::prelude::*;
use ropewalk_lab::tune::{CheckOptions, check as simulate, drawings, simulate_reach, tune as find};
use serde_json::json;

use crate::error;
use crate::scenario::Scenario;
use crate::watch::watched;

/// Share of the search among the search of a receive buffer and a check, for progress.
const SEARCH: f64 = 0.8;

/// A `ropewalk.tune/1` document as the command prints it, and the figures of its report.
/// `reach` has the share, if one is wanted, and the tolerance; `seeds` is the number of runs for it and the check.
#[pyfunction]
pub(crate) fn tune(
    py: Python<'_>,
    scenario: &Scenario,
    reach: (Option<f64>, f64),
    check: bool,
    seeds: u64,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let (reach, tolerance) = reach;
    if seeds == 0 || threads == Some(0) {
        return Err(error::value("seeds and threads must be at least 1"));
    }
    if let Some(share) = reach.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
        let text =
            format!("reach = {share}: it must be a share above 0 and at most 1, such as 0.95");
        return Err(error::value(text));
    }
    if !(0.0..0.5).contains(&tolerance) {
        let text = format!(
            "tolerance = {tolerance}: it must be a share from 0 and below 0.5, such as 0.05"
        );
        return Err(error::value(text));
    }
    let custom_schedulers = scenario.custom_schedulers();
    let scenario = scenario.checked().clone();
    watched(py, progress, |watch| {
        let refused =
            |e: ropewalk_lab::tune::TuneError| error::model(format!("{e}\nhint: {}", e.help()));
        let mut tuning = find(&scenario, reach).map_err(refused)?;
        let threads = threads.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
        let options = CheckOptions { seeds, threads, custom_schedulers };
        // With both, the search takes most of the time.
        let search = if check { SEARCH } else { 1.0 };
        let simulated = simulate_reach(&scenario, &tuning, tolerance, &options, &|share| {
            watch.set_or_stop(search * share);
        });
        if let Some(reach) = &mut tuning.reach {
            reach.simulated = simulated;
        }
        let check = check.then(|| {
            let before = if reach.is_some() { SEARCH } else { 0.0 };
            simulate(&scenario, &tuning, &options, &|share| {
                watch.set_or_stop(before + (1.0 - before) * share);
            })
        });
        let drawn = drawings(&scenario, &tuning, check.as_ref()).map_err(refused)?;
        let mut document = serde_json::to_value(&tuning).map_err(error::run)?;
        document["simulated_bps"] = json!(check.as_ref().and_then(|check| check.simulated_bps));
        document["check"] = json!(check);
        let drawn = json!({ "figures": drawn.figures, "surfaces": drawn.surfaces });
        Ok((document.to_string(), drawn.to_string()))
    })?
}
