//! The report page: one self-contained HTML file.
//!
//! The document is described in `docs/reference/report-format.md`.

mod template;

pub use self::template::live_page;

use serde::Serialize;
use serde_json::Value;

use crate::measure::Run;
use crate::result::RunResult;
use crate::series::{Sequence, Series};

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
}

/// One run of a report.
#[derive(Clone, Debug, Serialize)]
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
    /// The first seconds packet by packet, if recorded.
    pub sequence: Option<Sequence>,
}

impl ReportRun {
    /// Converts a finished run to a part of a report.
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
    /// An empty report.
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

    /// Renders the complete page.
    pub fn to_html(&self) -> String {
        // Serialisation cannot fail: floats that are not finite become `null`, and every key is text.
        let document = serde_json::to_string(self).expect("a report is plain JSON");
        template::fill(&document)
    }
}
