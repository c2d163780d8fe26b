//! What a reproduction yields: rows of numbers with a verdict, and figures.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A number, or what stands in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// In the unit of the row.
    Number(f64),
    /// A table's row, or a bound such as `> 1.95 Mbit/s (round-robin)`.
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

/// What came of one number or claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The number is met within its tolerance.
    #[serde(rename = "agrees")]
    Agrees,
    /// It is not.
    #[serde(rename = "differs")]
    Differs,
    /// What the paper says is so.
    #[serde(rename = "claim holds")]
    ClaimHolds,
    /// It is not so.
    #[serde(rename = "claim fails")]
    ClaimFails,
    /// The paper prints no number to compare with.
    #[serde(rename = "shown")]
    Shown,
    /// The interval of the measured value reaches across the limit: more seeds are needed.
    #[serde(rename = "undecided")]
    Undecided,
    /// The run behind it did not come to its end; the reason says why.
    #[default]
    #[serde(rename = "failed")]
    Failed,
}

impl Verdict {
    /// In the words of the documents.
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

    /// Whether the printed number or claim came out, or there is none.
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Agrees | Self::ClaimHolds | Self::Shown)
    }

    /// Whether the printed number or claim did not come out.
    pub const fn is_off(self) -> bool {
        matches!(self, Self::Differs | Self::ClaimFails | Self::Failed)
    }

    /// Of a number.
    pub(super) const fn of_value(met: bool) -> Self {
        if met { Self::Agrees } else { Self::Differs }
    }

    /// Of a claim.
    pub(super) const fn of_claim(holds: bool) -> Self {
        if holds { Self::ClaimHolds } else { Self::ClaimFails }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How many runs a simulated value is the mean of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub enum Seeds {
    /// One: nothing in the scenario is random, so that every seed gives the same.
    Deterministic,
    /// One for each of so many seeds.
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

/// A scheduler and the baseline of its paper, each without and with Ropewalk's receive-window
/// guard. No paper has the guard: verdicts about papers are about `baseline` and `as_published`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// The scenario, where the row is about several.
    pub scenario: Option<String>,
    /// Of the four values; a gain or a reduction has its own in the row.
    pub unit: String,
    /// The baseline, guard off.
    pub baseline: f64,
    /// The scheduler, guard off.
    pub as_published: f64,
    /// The baseline, guard on.
    pub baseline_guarded: f64,
    /// The scheduler, guard on.
    pub guarded: f64,
    /// What the guard adds to the scheduler: `guarded / as_published - 1`.
    pub guard_change: Option<f64>,
}

/// One number or claim of a paper, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Folder of the paper, or name of the peer.
    pub paper: String,
    /// What of it, without the paper.
    pub item: String,
    /// Row, figure or set-up.
    pub case: String,
    /// Key of the result vocabulary, or of a model.
    pub quantity: String,
    /// `bit/s`, `B`, `s`, `ratio`, `packets`, or nothing for a pure number.
    pub unit: String,
    /// The printed number; for an inequality, the bound in words.
    pub paper_value: Option<Value>,
    /// By closed form or slot model; of `alheid2016`, under the preset of the study's own model.
    pub model_value: Option<Value>,
    /// By the packet engine.
    pub simulated_value: Option<Value>,
    /// By another simulator.
    pub peer_value: Option<Value>,
    /// What the claim compares with, in `unit`; of a number, the number.
    pub reference_value: Option<f64>,
    /// Fraction of the reference, 0.05 for 5 % more; none where the reference is 0 or no number.
    pub difference: Option<f64>,
    /// 95 % confidence interval of what the verdict is about: of the simulated value, in `unit`, or of
    /// its `difference`, if there is a reference that was simulated, too. None where one run says all.
    pub interval: Option<[f64; 2]>,
    /// Runs behind the simulated value; none if there is none.
    pub seeds: Option<Seeds>,
    /// The settings that the paper's text leaves open, as they were chosen for all of its items
    /// before the run, such as `sctp.sack_every=1`.
    pub readings: Vec<String>,
    /// The same quantity without and with the guard.
    pub beside: Option<Beside>,
    /// What came of it.
    pub verdict: Verdict,
    /// What the paper says, in our words.
    pub claim: Option<String>,
    /// Equation, table, figure or section.
    pub source: String,
    /// Why it differs.
    pub reason: Option<String>,
}

impl Row {
    /// Whether it is off and no reason is given.
    pub fn is_unexplained(&self) -> bool {
        self.verdict.is_off() && self.reason.is_none()
    }
}

/// Where a series of a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Printed.
    Paper,
    /// Closed form or slot model.
    Model,
    /// Packet engine.
    Simulated,
    /// Another simulator.
    Peer,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// Joined.
    Line,
    /// Dots.
    Points,
    /// Side by side.
    Bars,
}

/// One line of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureSeries {
    /// Shown.
    pub name: String,
    /// Where it comes from.
    pub source: Origin,
    /// How it is drawn.
    pub style: Style,
    /// Numbers, or the names of categories.
    pub x: Vec<Value>,
    /// As long as `x`.
    pub y: Vec<Option<f64>>,
}

/// A figure of the report page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Unique in a report.
    pub id: String,
    /// The section it stands in.
    pub paper: String,
    /// Heading.
    pub title: String,
    /// Below it.
    pub note: Option<String>,
    /// With its unit.
    pub x_label: String,
    /// With its unit.
    pub y_label: String,
    /// `linear` or `log`.
    pub x_scale: String,
    /// `linear` or `log`.
    pub y_scale: String,
    /// What is drawn.
    pub series: Vec<FigureSeries>,
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
