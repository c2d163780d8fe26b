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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The run behind it did not come to its end; the reason says why.
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
            Self::Failed => "failed",
        }
    }

    /// Whether the printed number or claim came out, or there is none.
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Agrees | Self::ClaimHolds | Self::Shown)
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

/// One number or claim of a paper, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Whether it is off and nobody says why.
    pub fn is_unexplained(&self) -> bool {
        !self.verdict.is_good() && self.reason.is_none()
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
        use Verdict::{Agrees, ClaimFails, ClaimHolds, Differs, Failed, Shown};
        for verdict in [Agrees, Differs, ClaimHolds, ClaimFails, Shown, Failed] {
            let json = serde_json::to_string(&verdict).unwrap();
            assert_eq!(json, format!("\"{verdict}\""));
            assert_eq!(verdict.is_good(), matches!(verdict, Agrees | ClaimHolds | Shown));
        }
    }
}
