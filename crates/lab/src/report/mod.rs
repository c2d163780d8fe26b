//! The report page: one self-contained HTML file.
//!
//! The document is described in `docs/reference/report-format.md`.

mod template;

pub use self::template::live_page;

use ropewalk_scenario::{Outage, Path, Scenario};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::compare::{Compared, Comparison};
use crate::measure::Run;
use crate::notes::result_notes;
use crate::reproduce::{Figure, Row};
use crate::result::{RunResult, compared};
use crate::series::{Distributions, Sequence, Series};

/// The subject of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportKind {
    /// One run.
    Run,
    /// Several runs compared.
    Compare,
    /// Figures and tables of papers, reproduced.
    Reproduce,
    /// Window limits.
    Tune,
    /// A tournament of schedulers.
    Tournament,
    /// A sweep over a grid.
    Sweep,
    /// The simulator compared with the kernel.
    Validate,
}

/// The document of a report page, `ropewalk.report/1`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    /// Heading.
    pub title: String,
    /// The subject of the report.
    pub kind: ReportKind,
    /// Version of ropewalk.
    pub version: String,
    /// The command line that produced the report.
    pub generated_from: String,
    /// The runs. A single one is shown in full; several are shown side by side.
    pub runs: Vec<ReportRun>,
    /// Means of each variant over several seeds: the `summary` of a `ropewalk.compare/1` document. Empty for one
    /// seed.
    pub summary: Vec<Value>,
    /// The figures of every run behind `summary`: `label`, `seed`, and the columns of `summary` as numbers.
    pub repeats: Vec<Value>,
    /// Differences between runs, seed by seed: the `paired` of a `ropewalk.compare/1` document.
    pub paired: Vec<Value>,
    /// Figures, as described on the format's page.
    pub figures: Vec<Value>,
    /// Rows of tables, as described on the format's page.
    pub rows: Vec<Value>,
    /// Surfaces over two parameters, as described on the format's page.
    pub surfaces: Vec<Value>,
    /// A `ropewalk.tune/1` document.
    pub tuning: Option<Value>,
    /// A `ropewalk.tournament/1` document.
    pub tournament: Option<Value>,
    /// The points of a sweep, as described on the format's page.
    pub sweep: Option<Value>,
}

/// One run of a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReportRun {
    /// Label of the run in tables and legends.
    pub label: String,
    /// The scenario.
    pub scenario_toml: String,
    /// Root seed, as text.
    pub seed: String,
    /// Result of the run.
    pub result: RunResult,
    /// Time series, if recorded.
    pub series: Option<Series>,
    /// How delays are distributed, if recorded.
    pub distributions: Option<Distributions>,
    /// The first seconds packet by packet, if recorded.
    pub sequence: Option<Sequence>,
    /// When the scenario takes a path down.
    pub outages: Vec<PathOutage>,
    /// Sentences that explain figures which seem to contradict the scenario.
    pub notes: Vec<String>,
}

/// An outage of a path.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct PathOutage {
    /// Name of the path.
    pub path: String,
    /// Beginning, s since the start.
    pub from_s: f64,
    /// End, s since the start, at most that of the run.
    pub to_s: f64,
}

impl ReportRun {
    /// Converts a finished run of `scenario` to a part of a report.
    pub fn new(label: String, scenario: &Scenario, run: &Run) -> Self {
        Self {
            label,
            scenario_toml: scenario.to_toml(),
            seed: run.result.seed.clone(),
            result: run.result.clone(),
            series: run.series.clone(),
            distributions: run.series.as_ref().map(|_| run.delays.distributions()),
            sequence: run.sequence.clone(),
            outages: outages(scenario),
            notes: result_notes(scenario, &run.result),
        }
    }
}

fn outages(scenario: &Scenario) -> Vec<PathOutage> {
    let end = scenario.transfer.duration.as_secs_f64();
    let of_path = |path: &Path| {
        let name = path.name.clone();
        let outage = move |outage: &Outage| PathOutage {
            path: name.clone(),
            from_s: outage.from.as_secs_f64(),
            to_s: outage.to.as_secs_f64().min(end),
        };
        path.outages.iter().map(outage).filter(|outage| outage.from_s < end).collect::<Vec<_>>()
    };
    scenario.paths.iter().flat_map(of_path).collect()
}

impl Report {
    /// An empty report.
    pub fn new(title: String, kind: ReportKind, version: String, generated_from: String) -> Self {
        Self {
            schema: "ropewalk.report/1",
            title,
            kind,
            version,
            generated_from,
            runs: Vec::new(),
            summary: Vec::new(),
            repeats: Vec::new(),
            paired: Vec::new(),
            figures: Vec::new(),
            rows: Vec::new(),
            surfaces: Vec::new(),
            tuning: None,
            tournament: None,
            sweep: None,
        }
    }

    /// Adds the means over several seeds, and every run behind them. Does nothing if each variant ran once.
    pub fn add_seeds(&mut self, runs: &[Compared]) {
        let comparison = Comparison::new(runs);
        if comparison.summary.iter().all(|summary| summary.runs < 2) {
            return;
        }
        // Cannot fail: the values are only numbers and text.
        let summaries = comparison.summary.iter().map(serde_json::to_value);
        self.summary = summaries.filter_map(Result::ok).collect();
        self.repeats = runs.iter().filter_map(repeat).collect();
    }

    /// Adds rows with verdicts, and figures.
    pub fn add(&mut self, rows: &[Row], figures: &[Figure]) {
        // Cannot fail: the values are only numbers and text.
        self.rows.extend(rows.iter().map(serde_json::to_value).filter_map(Result::ok));
        self.figures.extend(figures.iter().map(serde_json::to_value).filter_map(Result::ok));
    }

    /// Renders the complete page.
    pub fn to_html(&self) -> String {
        // Serialisation cannot fail: floats that are not finite become `null`, and every key is text.
        let document = serde_json::to_string(self).expect("a report is plain JSON");
        template::fill(&document)
    }
}

/// The figures of one of several runs. `None` if it failed.
fn repeat(run: &Compared) -> Option<Value> {
    let result = &run.outcome.as_ref().ok()?.result;
    let mut row = json!({ "label": run.label, "seed": result.seed });
    for figure in compared() {
        row[figure.column()] = figure.value(result);
    }
    let best = run.best_path.as_ref().map(|best| best.goodput_bps).filter(|bps| *bps > 0.0);
    row["gain"] = Value::from(best.map(|best| result.goodput_bps / best));
    Some(row)
}
