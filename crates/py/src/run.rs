//! One run, with the interpreter released meanwhile.

use std::path::PathBuf;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use ropewalk_base::Duration;
use ropewalk_lab::explain::{Question, explain_run};
use ropewalk_lab::output::{
    SeriesOrigin, packets_to_record_batch, series_to_record_batch, write_atomically,
};
use ropewalk_lab::report::{Report, ReportKind, ReportRun};
use ropewalk_lab::{self as lab, DelayHistogram, RunOptions, SequencePath};
use ropewalk_scenario as file;

use crate::error;
use crate::scenario::Scenario;
use crate::table::Table;

/// Name, times and numbers of the arrivals on a path.
type Arrivals = (String, Vec<f64>, Vec<u64>);

/// A finished run.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Run {
    run: lab::Run,
    scenario: file::Scenario,
}

impl Run {
    pub(crate) fn new(run: lab::Run, scenario: file::Scenario) -> Self {
        Self { run, scenario }
    }

    fn origin(&self) -> SeriesOrigin {
        SeriesOrigin {
            scenario_toml: self.scenario.to_toml(),
            seed: self.run.result.seed.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn delays(&self, figure: &str) -> PyResult<&DelayHistogram> {
        match figure {
            "app_delay_s" => Ok(&self.run.delays.app_delay),
            "blocking_time_s" => Ok(&self.run.delays.blocking_time),
            other => Err(error::value(format!("{other} is not a distribution of delays"))),
        }
    }

    pub(crate) fn in_report(&self, label: String) -> ReportRun {
        ReportRun::new(label, &self.scenario, &self.run)
    }
}

/// The packets to list: all or none, or those of an initial time.
#[derive(FromPyObject)]
pub(crate) enum ListedPackets {
    All(bool),
    Initial(String),
}

impl ListedPackets {
    fn length(&self) -> PyResult<Option<Duration>> {
        match self {
            Self::All(all) => Ok(all.then_some(Duration::from_nanos(u64::MAX))),
            Self::Initial(text) => ropewalk_scenario::parse_duration(text)
                .map(Some)
                .map_err(|error| error::value(format!("packets: {error}"))),
        }
    }
}

/// Runs `scenario`; other Python threads continue meanwhile.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    series: bool,
    sequence: Option<&str>,
    packets: ListedPackets,
) -> PyResult<Run> {
    let packets = packets.length()?;
    let sequence = sequence.map(ropewalk_scenario::parse_duration).transpose();
    let sequence = sequence.map_err(|text| error::value(format!("sequence: {text}")))?;
    let checked = scenario.checked();
    let custom_schedulers = scenario.custom_schedulers();
    let run = py.detach(|| {
        let options =
            RunOptions { series, sequence, packets, custom_schedulers, ..RunOptions::default() };
        lab::run(checked, &options)
    });
    let run = run.map_err(|failed| {
        // A scheduler in Python may have received Ctrl-C.
        py.check_signals().err().unwrap_or_else(|| error::run(failed))
    })?;
    Ok(Run::new(run, checked.clone()))
}

#[pymethods]
impl Run {
    /// The result as the command prints it, without the final line feed.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&self.run.result).map_err(error::run)
    }

    /// The scenario of the run, with every value written out.
    fn scenario_toml(&self) -> String {
        self.scenario.to_toml()
    }

    /// The time series, if they were recorded.
    fn series(&self) -> PyResult<Option<Table>> {
        let Some(series) = &self.run.series else { return Ok(None) };
        let batch = series_to_record_batch(series, &self.origin()).map_err(error::run)?;
        Ok(Some(Table::new(batch)))
    }

    /// The packets, if they were listed.
    fn packets(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let Some(packets) = &self.run.packets else { return Ok(None) };
        let batch = py.detach(|| packets_to_record_batch(packets, &self.origin()));
        Ok(Some(Table::new(batch.map_err(error::run)?)))
    }

    /// The delay, s, that a share of the chunks does not exceed; `None` without chunks. `figure` is a key of the
    /// result.
    fn delay_quantile(&self, figure: &str, share: f64) -> PyResult<Option<f64>> {
        Ok(self.delays(figure)?.quantile_s(share))
    }

    /// The delays that occurred, s, and the share of the chunks up to each.
    fn delay_ecdf(&self, figure: &str) -> PyResult<(Vec<f64>, Vec<f64>)> {
        let ecdf = self.delays(figure)?.ecdf();
        Ok((ecdf.values, ecdf.shares))
    }

    /// The first arrivals: those of each path, then those released to the application.
    fn sequence(&self) -> Option<Vec<Arrivals>> {
        let column =
            |path: &SequencePath| (path.name.clone(), path.time_s.clone(), path.seq.clone());
        let sequence = self.run.sequence.as_ref()?;
        Some(sequence.paths.iter().chain([&sequence.delivered]).map(column).collect())
    }

    /// Every decision with its reason, as a `ropewalk.explain/1` document; `None` if the scenario did not
    /// record them.
    fn explanation(&self, py: Python<'_>) -> PyResult<Option<String>> {
        if !self.scenario.record.decisions {
            return Ok(None);
        }
        let all = Question { idle: true, first: usize::MAX, ..Question::default() };
        let document =
            py.detach(|| serde_json::to_string(&explain_run(&self.scenario, &self.run, &all)));
        document.map(Some).map_err(error::run)
    }

    /// Writes the report page.
    fn report(&self, path: PathBuf, title: String, label: String, from: String) -> PyResult<()> {
        write_report(path, ReportKind::Run, title, from, vec![self.in_report(label)])
    }
}

/// Writes a report page atomically.
pub(crate) fn write_report(
    path: PathBuf,
    kind: ReportKind,
    title: String,
    from: String,
    runs: Vec<ReportRun>,
) -> PyResult<()> {
    let mut report = Report::new(title, kind, env!("CARGO_PKG_VERSION").to_owned(), from);
    report.runs = runs;
    write_atomically(&path, report.to_html().as_bytes()).map_err(|error| {
        match error.raw_os_error() {
            // With errno and name, Python selects the class: FileNotFoundError and so on.
            Some(number) => PyOSError::new_err((number, error.to_string(), path)),
            None => PyOSError::new_err(error.to_string()),
        }
    })
}
