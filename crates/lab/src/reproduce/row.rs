//! Results of a reproduction: rows with a verdict, and figures.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A number, or a text in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// In the unit of the row.
    Number(f64),
    /// A row of a table, or a bound such as `> 1.95 Mbit/s (round-robin)`.
    Text(String),
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Verdict on a number or claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The number agrees within its tolerance.
    #[serde(rename = "agrees")]
    Agrees,
    /// The number differs by more than its tolerance.
    #[serde(rename = "differs")]
    Differs,
    /// The paper's claim holds.
    #[serde(rename = "claim holds")]
    ClaimHolds,
    /// The paper's claim does not hold.
    #[serde(rename = "claim fails")]
    ClaimFails,
    /// The paper prints no number for comparison.
    #[serde(rename = "shown")]
    Shown,
    /// The interval of the measured value contains the limit: more seeds are needed.
    #[serde(rename = "undecided")]
    Undecided,
    /// The run behind the row failed; the reason states why.
    #[default]
    #[serde(rename = "failed")]
    Failed,
}

impl Verdict {
    /// Name of the verdict in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::ClaimHolds => "claim holds",
            Self::ClaimFails => "claim fails",
            Self::Shown => "shown",
            Self::Undecided => "undecided",
            Self::Failed => "failed",
        }
    }

    /// Whether the printed number or claim is confirmed, or there is none.
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Agrees | Self::ClaimHolds | Self::Shown)
    }

    /// Whether the printed number or claim is not confirmed.
    pub const fn is_off(self) -> bool {
        matches!(self, Self::Differs | Self::ClaimFails | Self::Failed)
    }

    /// Verdict on a number.
    pub(super) const fn of_value(met: bool) -> Self {
        if met { Self::Agrees } else { Self::Differs }
    }

    /// Verdict on a claim.
    pub(super) const fn of_claim(holds: bool) -> Self {
        if holds { Self::ClaimHolds } else { Self::ClaimFails }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Number of runs whose mean is a simulated value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub enum Seeds {
    /// One run: nothing in the scenario is random, so every seed gives the same result.
    Deterministic,
    /// One run for each of this many seeds.
    Drawn(u32),
}

impl From<Seeds> for Value {
    fn from(seeds: Seeds) -> Self {
        match seeds {
            Seeds::Deterministic => Self::Text("deterministic".to_owned()),
            Seeds::Drawn(count) => Self::Number(f64::from(count)),
        }
    }
}

impl TryFrom<Value> for Seeds {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::Text(word) if word == "deterministic" => Ok(Self::Deterministic),
            Value::Number(count) if count >= 1.0 && count.fract() == 0.0 => {
                Ok(Self::Drawn(count as u32))
            }
            other => Err(format!("{other:?} is no number of seeds")),
        }
    }
}

/// One number or claim of a paper, with its result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Folder of the paper, or name of the peer.
    pub paper: String,
    /// Item of the paper, without the paper's name.
    pub item: String,
    /// Row, figure or set-up.
    pub case: String,
    /// Key of the result vocabulary, or of a model.
    pub quantity: String,
    /// `bit/s`, `B`, `s`, `ratio`, `packets`, or empty for a pure number.
    pub unit: String,
    /// The printed number; for an inequality, the bound as text.
    pub paper_value: Option<Value>,
    /// Value by closed-form or slot model; for `alheid2016`, with the preset of the study's own model.
    pub model_value: Option<Value>,
    /// Value by the packet engine.
    pub simulated_value: Option<Value>,
    /// Value by another simulator.
    pub peer_value: Option<Value>,
    /// The reference of a claim, in `unit`; for a number, the number.
    pub reference_value: Option<f64>,
    /// Difference as a fraction of the reference, 0.05 for 5 % more. `None` if the reference is not a number above
    /// 0, or is a percentage.
    pub difference: Option<f64>,
    /// Difference of two percentages in percentage points, 0.05 for 5 points more. `None` for other
    /// rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_points: Option<f64>,
    /// 95 % confidence interval of the judged quantity: the simulated value in `unit`, or its `difference` if
    /// the reference was simulated too. `None` if a single run suffices.
    pub interval: Option<[f64; 2]>,
    /// Runs behind the simulated value. `None` if there is no such value.
    pub seeds: Option<Seeds>,
    /// Settings that the paper's text leaves open, such as `sctp.sack_every=1`. They were fixed for all of its
    /// items before the run.
    pub readings: Vec<String>,
    /// Verdict on the number or claim.
    pub verdict: Verdict,
    /// `model` if `difference` and verdict are those of the model although the row also shows a simulated value;
    /// otherwise `None`.
    pub judged_by: Option<String>,
    /// The paper's claim, in our words.
    pub claim: Option<String>,
    /// Equation, table, figure or section of the paper.
    pub source: String,
    /// Reason for a difference.
    pub reason: Option<String>,
}

impl Row {
    /// Whether the row differs without a reason.
    pub fn is_unexplained(&self) -> bool {
        self.verdict.is_off() && self.reason.is_none()
    }
}

/// Origin of a series in a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Printed in the paper.
    Paper,
    /// Closed-form or slot model.
    Model,
    /// Packet engine.
    Simulated,
    /// Another simulator.
    Peer,
}

/// Style of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// Points connected by a line.
    Line,
    /// Dots.
    Points,
    /// Bars side by side.
    Bars,
}

/// One series of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureSeries {
    /// Name in the legend.
    pub name: String,
    /// Origin of the values.
    pub source: Origin,
    /// Style.
    pub style: Style,
    /// Numbers, or the names of categories.
    pub x: Vec<Value>,
    /// Values, with the same length as `x`.
    pub y: Vec<Option<f64>>,
}

/// A figure of the report page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Identifier, unique in a report.
    pub id: String,
    /// Section of the report.
    pub paper: String,
    /// Heading.
    pub title: String,
    /// Text below the figure.
    pub note: Option<String>,
    /// Label of the x axis, with its unit.
    pub x_label: String,
    /// Label of the y axis, with its unit.
    pub y_label: String,
    /// `linear` or `log`.
    pub x_scale: String,
    /// `linear` or `log`.
    pub y_scale: String,
    /// The series of the figure.
    pub series: Vec<FigureSeries>,
}

impl Figure {
    /// A figure without series and with linear axes. `paper`: section of the report; `id` is unique in it.
    pub fn empty(paper: &str, id: &str, title: &str, (x_label, y_label): (&str, &str)) -> Self {
        Self {
            id: format!("{paper}-{id}"),
            paper: paper.to_owned(),
            title: title.to_owned(),
            note: None,
            x_label: x_label.to_owned(),
            y_label: y_label.to_owned(),
            x_scale: "linear".to_owned(),
            y_scale: "linear".to_owned(),
            series: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_reads_the_same_in_a_document_and_in_a_table() {
        use Verdict::{Agrees, ClaimFails, ClaimHolds, Differs, Failed, Shown, Undecided};
        for verdict in [Agrees, Differs, ClaimHolds, ClaimFails, Shown, Undecided, Failed] {
            let json = serde_json::to_string(&verdict).unwrap();
            assert_eq!(json, format!("\"{verdict}\""));
            assert_eq!(verdict.is_good(), matches!(verdict, Agrees | ClaimHolds | Shown));
            assert_eq!(verdict.is_off(), matches!(verdict, Differs | ClaimFails | Failed));
        }
    }

    #[test]
    fn seeds_are_a_number_or_a_word_in_documents() {
        for (seeds, json) in
            [(Seeds::Deterministic, "\"deterministic\""), (Seeds::Drawn(10), "10.0")]
        {
            assert_eq!(serde_json::to_string(&seeds).unwrap(), json);
            assert_eq!(serde_json::from_str::<Seeds>(json).unwrap(), seeds);
        }
        for wrong in ["0", "1.5", "\"some\""] {
            assert!(serde_json::from_str::<Seeds>(wrong).is_err(), "{wrong}");
        }
    }
}
