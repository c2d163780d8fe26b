//! One run, with the interpreter free to do something else meanwhile.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use ropewalk_lab::output::{SeriesOrigin, series_to_record_batch};
use ropewalk_lab::{self as lab, RunOptions, SequencePath};

use crate::error;
use crate::scenario::Scenario;
use crate::table::Table;

/// A finished run.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Run {
    run: lab::Run,
    scenario_toml: String,
}

/// Runs `scenario`; other Python threads go on meanwhile.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    series: bool,
    sequence: Option<&str>,
) -> PyResult<Run> {
    let sequence = sequence.map(ropewalk_scenario::parse_duration).transpose();
    let sequence =
        sequence.map_err(|text| PyValueError::new_err(format!("sequence: {text}")))?;
    let checked = scenario.checked();
    let run = py.detach(|| {
        let options = RunOptions { series, sequence, scheduler: None };
        lab::run(checked, &options)
    });
    Ok(Run { run: run.map_err(error::run)?, scenario_toml: checked.to_toml() })
}

#[pymethods]
impl Run {
    /// The result as the command prints it, without the line feed at the end.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&self.run.result).map_err(error::run)
    }

    /// The scenario that was run, every value spelled out.
    #[getter]
    fn scenario_toml(&self) -> &str {
        &self.scenario_toml
    }

    /// The time series, if they were kept.
    fn series(&self) -> PyResult<Option<Table>> {
        let Some(series) = &self.run.series else { return Ok(None) };
        let origin = SeriesOrigin {
            scenario_toml: self.scenario_toml.clone(),
            seed: self.run.result.seed.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let batch = series_to_record_batch(series, &origin).map_err(error::run)?;
        Ok(Some(Table::new(batch)))
    }

    /// The first arrivals: for each path, and last for the application, name, times and numbers.
    fn sequence(&self) -> Option<Vec<(String, Vec<f64>, Vec<u64>)>> {
        let column = |path: &SequencePath| (path.name.clone(), path.time_s.clone(), path.seq.clone());
        let sequence = self.run.sequence.as_ref()?;
        Some(sequence.paths.iter().chain([&sequence.delivered]).map(column).collect())
    }
}
