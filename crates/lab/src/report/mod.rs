//! The report page: one HTML file that holds everything.
//!
//! The document is described in `docs/reference/report-format.md`.

mod template;

use serde::Serialize;
use serde_json::Value;

use crate::result::RunResult;
use crate::run::Run;
use crate::series::{Sequence, Series};

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportKind {
    /// One run.
    Run,
    /// Several runs side by side.
    Compare,
    /// Figures and tables of papers.
    Reproduce,
    /// Window limits.
    Tune,
    /// Schedulers against each other.
    Tournament,
}

/// The document of a report page, `ropewalk.report/1`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    /// Heading.
    pub title: String,
    /// What it is about.
    pub kind: ReportKind,
    /// Version of ropewalk.
    pub version: String,
    /// The command line.
    pub generated_from: String,
    /// Runs; one is shown in full, several side by side.
    pub runs: Vec<ReportRun>,
    /// Differences between runs, seed by seed: the `paired` of a `ropewalk.compare/1` document.
    pub paired: Vec<Value>,
    /// Figures, as the format's page has them.
    pub figures: Vec<Value>,
    /// Rows of tables, as the format's page has them.
    pub rows: Vec<Value>,
    /// Surfaces over two parameters, as the format's page has them.
    pub surfaces: Vec<Value>,
    /// A `ropewalk.tune/1` document.
    pub tuning: Option<Value>,
    /// A `ropewalk.tournament/1` document.
    pub tournament: Option<Value>,
}

/// One run of a report.
#[derive(Clone, Debug, Serialize)]
pub struct ReportRun {
    /// Its name in tables and legends.
    pub label: String,
    /// The scenario.
    pub scenario_toml: String,
    /// Root seed, as text.
    pub seed: String,
    /// The figures.
    pub result: RunResult,
    /// Series, if they were kept.
    pub series: Option<Series>,
    /// The first seconds packet by packet, if they were kept.
    pub sequence: Option<Sequence>,
}

impl ReportRun {
    /// A finished run as a part of a report.
    pub fn new(label: String, scenario_toml: String, run: &Run) -> Self {
        Self {
            label,
            scenario_toml,
            seed: run.result.seed.clone(),
            result: run.result.clone(),
            series: run.series.clone(),
            sequence: run.sequence.clone(),
        }
    }
}

impl Report {
    /// A report without contents.
    pub fn new(title: String, kind: ReportKind, version: String, generated_from: String) -> Self {
        Self {
            schema: "ropewalk.report/1",
            title,
            kind,
            version,
            generated_from,
            runs: Vec::new(),
            paired: Vec::new(),
            figures: Vec::new(),
            rows: Vec::new(),
            surfaces: Vec::new(),
            tuning: None,
            tournament: None,
        }
    }

    /// The whole page.
    pub fn to_html(&self) -> String {
        // Floats that are not finite become `null`, and every key is text: this cannot fail.
        let document = serde_json::to_string(self).expect("a report is plain JSON");
        template::fill(&document)
    }
}
