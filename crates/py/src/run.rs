//! One run, with the interpreter released meanwhile.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use ropewalk_base::Duration;
use ropewalk_lab::explain::{Question, explain_run};
use ropewalk_lab::output::{
    SeriesOrigin, packets_to_record_batch, series_to_record_batch, write_atomically,
};
use ropewalk_lab::report::{Report, ReportKind, ReportRun};
use ropewalk_lab::{self as lab, DelayHistogram, DelayHistograms, RunOptions, SequencePath};
use ropewalk_scenario as file;

use crate::error;
use crate::scenario::Scenario;
use crate::table::{Table, from_ipc, to_ipc};
use crate::watch::watched;

/// Name, times and numbers of the arrivals on a path.
type Arrivals = (String, Vec<f64>, Vec<u64>);

/// A finished run: what its results need, so that it can leave the process.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Run {
    /// The figures, the scenario's text, the series and the sequence. Its label is empty.
    report: ReportRun,
    delays: DelayHistograms,
    packets: Option<Packets>,
    explanation: Option<Explanation>,
}

/// The packets of a run, as they are recorded or as a table that has been stored.
enum Packets {
    Recorded(lab::packet_log::Packets),
    Stored(RecordBatch),
}

/// The decisions of a run, as they are recorded or as a document that has been stored.
enum Explanation {
    Recorded(Box<(file::Scenario, lab::Run)>),
    Stored(String),
}

/// A run as it is stored: a JSON document, the packets in Arrow's format, and the explanation.
type Stored = (String, Option<Vec<u8>>, Option<String>);

impl Run {
    pub(crate) fn new(mut run: lab::Run, scenario: file::Scenario) -> Self {
        let report = ReportRun::new(String::new(), &scenario, &run);
        let delays = std::mem::take(&mut run.delays);
        let packets = run.packets.take().map(Packets::Recorded);
        let explanation =
            scenario.record.decisions.then(|| Explanation::Recorded(Box::new((scenario, run))));
        Self { report, delays, packets, explanation }
    }

    fn origin(&self) -> SeriesOrigin {
        SeriesOrigin {
            scenario_toml: self.report.scenario_toml.clone(),
            seed: self.report.seed.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn packet_batch(&self) -> PyResult<Option<RecordBatch>> {
        match &self.packets {
            None => Ok(None),
            Some(Packets::Stored(batch)) => Ok(Some(batch.clone())),
            Some(Packets::Recorded(packets)) => {
                packets_to_record_batch(packets, &self.origin()).map(Some).map_err(error::run)
            }
        }
    }

    fn explained(&self) -> PyResult<Option<String>> {
        match &self.explanation {
            None => Ok(None),
            Some(Explanation::Stored(document)) => Ok(Some(document.clone())),
            Some(Explanation::Recorded(recorded)) => {
                let all = Question { idle: true, first: usize::MAX, ..Question::default() };
                let document = explain_run(&recorded.0, &recorded.1, &all);
                serde_json::to_string(&document).map(Some).map_err(error::run)
            }
        }
    }

    pub(crate) fn in_report(&self, label: String) -> ReportRun {
        ReportRun { label, ..self.report.clone() }
    }
}

/// The delays of one kind.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Delays {
    histogram: DelayHistogram,
}

#[pymethods]
impl Delays {
    /// The same delays from their stored form.
    #[staticmethod]
    fn restore(stored: &str) -> PyResult<Self> {
        Ok(Self { histogram: serde_json::from_str(stored).map_err(error::value)? })
    }

    /// The form for [`Delays::restore`].
    fn stored(&self) -> PyResult<String> {
        serde_json::to_string(&self.histogram).map_err(error::run)
    }

    /// The delay, s, that a share of the chunks does not exceed; `None` without chunks.
    fn quantile(&self, share: f64) -> Option<f64> {
        self.histogram.quantile_s(share)
    }

    /// The delays that occurred, s, and the share of the chunks up to each.
    fn ecdf(&self) -> (Vec<f64>, Vec<f64>) {
        let ecdf = self.histogram.ecdf();
        (ecdf.values, ecdf.shares)
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

/// Runs `scenario`; other Python threads continue meanwhile. `progress` is called with the completed share.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    series: bool,
    sequence: Option<&str>,
    packets: ListedPackets,
    progress: Option<Py<PyAny>>,
) -> PyResult<Run> {
    let packets = packets.length()?;
    let sequence = sequence.map(ropewalk_scenario::parse_duration).transpose();
    let sequence = sequence.map_err(|text| error::value(format!("sequence: {text}")))?;
    let checked = scenario.checked();
    let custom_schedulers = scenario.custom_schedulers();
    let options = || RunOptions {
        series,
        sequence,
        packets,
        custom_schedulers: custom_schedulers.clone(),
        ..RunOptions::default()
    };
    // A scheduler in Python runs on the caller's thread, where debuggers look for it. It receives Ctrl-C itself.
    let run = if checked.scheduler.custom.is_some() && progress.is_none() {
        py.detach(|| lab::run(checked, &options()))
    } else {
        watched(py, progress, |watch| {
            lab::run_watched(checked, &options(), &|share| watch.set_or_stop(share))
        })?
    };
    let run = run.map_err(|failed| {
        // The scheduler may have received Ctrl-C.
        py.check_signals().err().unwrap_or_else(|| error::run(failed))
    })?;
    Ok(Run::new(run, checked.clone()))
}

#[pymethods]
impl Run {
    /// The result as the command prints it, without the final line feed.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string_pretty(&self.report.result).map_err(error::run)
    }

    /// The scenario of the run, with every value written out.
    fn scenario_toml(&self) -> String {
        self.report.scenario_toml.clone()
    }

    /// The time series, if they were recorded.
    fn series(&self) -> PyResult<Option<Table>> {
        let Some(series) = &self.report.series else { return Ok(None) };
        let batch = series_to_record_batch(series, &self.origin()).map_err(error::run)?;
        Ok(Some(Table::new(batch)))
    }

    /// The packets, if they were listed.
    fn packets(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        Ok(py.detach(|| self.packet_batch())?.map(Table::new))
    }

    /// The delays of this kind; `figure` is a key of the result.
    fn delays(&self, figure: &str) -> PyResult<Delays> {
        let histogram = match figure {
            "app_delay_s" => self.delays.app_delay.clone(),
            "blocking_time_s" => self.delays.blocking_time.clone(),
            other => return Err(error::value(format!("{other} is not a distribution of delays"))),
        };
        Ok(Delays { histogram })
    }

    /// The form for [`Run::restore`].
    fn stored(&self, py: Python<'_>) -> PyResult<Stored> {
        py.detach(|| {
            let run = serde_json::to_string(&(&self.report, &self.delays)).map_err(error::run)?;
            let packets = self.packet_batch()?.map(|batch| to_ipc(&batch)).transpose()?;
            Ok((run, packets, self.explained()?))
        })
    }

    /// The same run from its stored form.
    #[staticmethod]
    fn restore(stored: Stored) -> PyResult<Self> {
        let (run, packets, explanation) = stored;
        let (report, delays) = serde_json::from_str(&run).map_err(error::value)?;
        let packets = packets.map(|bytes| from_ipc(&bytes)).transpose()?.map(Packets::Stored);
        Ok(Self { report, delays, packets, explanation: explanation.map(Explanation::Stored) })
    }

    /// The first arrivals: those of each path, then those released to the application.
    fn sequence(&self) -> Option<Vec<Arrivals>> {
        let column =
            |path: &SequencePath| (path.name.clone(), path.time_s.clone(), path.seq.clone());
        let sequence = self.report.sequence.as_ref()?;
        Some(sequence.paths.iter().chain([&sequence.delivered]).map(column).collect())
    }

    /// Every decision with its reason, as a `ropewalk.explain/1` document; `None` if the scenario did not
    /// record them.
    fn explanation(&self, py: Python<'_>) -> PyResult<Option<String>> {
        py.detach(|| self.explained())
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
