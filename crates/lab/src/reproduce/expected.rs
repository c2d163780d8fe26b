//! `papers/*/expected.toml` and `papers/*/reasons.toml`; their keys are explained in `papers/README.md`.

use serde::Deserialize;

use super::data::Folder;
use crate::slot::{Planned, SlotSetup};

/// The statements of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Name of the paper's folder.
    pub paper: String,
    /// Title of the paper.
    pub title: String,
    /// The setup of the slot model, if the paper has one.
    pub slot: Option<SlotSetup>,
    /// Default number of seeds for simulated statements of this paper; one if not given.
    pub seeds: Option<u32>,
    /// Settings added to every simulated scenario, from a [`Variation`].
    #[serde(skip)]
    pub changes: Vec<String>,
    /// Wrong delays in the slot model.
    pub slot_errors: Option<SlotErrors>,
    /// Settings that the text leaves open, fixed for all items of the paper.
    #[serde(default, rename = "reading")]
    pub readings: Vec<Reading>,
    /// Alternative readings, to show how much the verdicts depend on each.
    #[serde(default, rename = "variation")]
    pub variations: Vec<Variation>,
    /// Numbers, tables and claims.
    #[serde(rename = "item")]
    pub items: Vec<Entry>,
}

/// Choice of a setting that the text leaves open.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// The setting as `key=value`, for every scenario of the paper.
    pub set: String,
    /// Reason for the choice.
    pub text: String,
}

/// Alternative readings of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variation {
    /// Heading of its line in the table.
    pub name: String,
    /// Settings as `key=value`.
    pub sets: Vec<String>,
}

/// Errors of the assumed delays in the slot model, and the reading of the paper's text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotErrors {
    /// The errors, in ascending order.
    pub values: Vec<f64>,
    /// The path with the wrong delay, in this reading.
    pub error_on: ErrorOn,
    /// The quantity that the planner takes as given, in this reading.
    pub planned_capacity: Planned,
    /// Reason for this reading.
    pub text: String,
}

/// One number, table or claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Identifier, unique in the file.
    pub id: String,
    /// Name of the item that it belongs to.
    pub group: String,
    /// Row, figure or set-up.
    pub case: String,
    /// Key of a result, or name of a model's quantity.
    pub quantity: String,
    /// Unit of the numbers.
    pub unit: String,
    /// Kind of statement.
    pub kind: Kind,
    /// Sources that can answer the statement.
    pub by: Vec<Source>,
    /// The printed number.
    pub paper_value: Option<f64>,
    /// The paper's claim.
    pub claim: Option<String>,
    /// Relation between subject and reference.
    pub relation: Option<Relation>,
    /// Scheduler that is the subject of the statement.
    pub subject: Option<String>,
    /// Reference that the subject is compared with.
    pub against: Option<String>,
    /// Permitted deviation.
    pub tolerance: Option<Tolerance>,
    /// Scenario file.
    pub scenario: Option<String>,
    /// Several scenario files.
    #[serde(default)]
    pub scenarios: Vec<String>,
    /// Table file.
    pub table: Option<String>,
    /// Share of the reference that the claim refers to.
    pub share: Option<f64>,
    /// Selection of the deciding point among several.
    pub pick: Option<Pick>,
    /// Curves of the figure that the statement covers; all if empty.
    #[serde(default)]
    pub curves: Vec<String>,
    /// Range of losses that the statement covers; all if not given.
    pub loss_range: Option<[f64; 2]>,
    /// Whether the statement is about wrong delays in the slot model, with each of `slot_errors`.
    #[serde(default)]
    pub wrong_delays: bool,
    /// Number of seeds of a random scenario, different for each statement; one if not given.
    pub seeds: Option<u32>,
    /// Whether the statement is known not to hold.
    #[serde(default)]
    pub expected_verdict: ExpectedVerdict,
    /// Reason for a possible difference.
    pub note: Option<String>,
    /// Place in the paper.
    pub source: String,
}

/// Kinds of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A number.
    Value,
    /// An inequality or the like.
    Claim,
    /// A table, row by row.
    Table,
}

/// Source of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A closed form.
    Model,
    /// The slot model.
    Slot,
    /// The packet engine.
    Simulation,
}

/// Relations between a subject and its reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Strictly more.
    Greater,
    /// Strictly less.
    Less,
    /// Less by no more than the tolerance.
    NotLess,
    /// More by no more than the tolerance.
    NotGreater,
    /// Within the tolerance.
    Near,
    /// (subject - against) / against equals the printed number, within the tolerance.
    Gain,
    /// (subject - against) / against exceeds the printed number.
    GainOver,
    /// (subject - against) / against rises from each scenario to the next.
    GainRises,
    /// (against - subject) / against rises from each scenario to the next.
    ReductionRises,
    /// The largest (against - subject) / against equals the printed number, within the tolerance.
    ReductionBest,
    /// No value of a series exceeds the previous one.
    NotRising,
}

/// Selection of the deciding point of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// The largest.
    Best,
    /// The smallest.
    Least,
    /// The one with the largest absolute value.
    Widest,
    /// No selection: the mean of all points.
    Mean,
}

/// Permitted deviation.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Tolerance {
    /// In the unit of the number.
    Absolute(f64),
    /// As a fraction of the reference.
    Relative(f64),
}

impl Tolerance {
    /// The permitted deviation around `reference`.
    pub fn around(self, reference: f64) -> f64 {
        match self {
            Self::Absolute(x) => x,
            Self::Relative(x) => x * reference.abs(),
        }
    }
}

/// Paths whose assumed delay is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorOn {
    /// First path.
    Fast,
    /// Second path.
    Slow,
    /// Both.
    Both,
}

impl ErrorOn {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Slow, Self::Both];

    /// Name in rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast path",
            Self::Slow => "slow path",
            Self::Both => "both paths",
        }
    }

    /// Error of each path, if that of the wrong ones is `error`.
    pub fn errors(self, error: f64) -> [f64; 2] {
        match self {
            Self::Fast => [error, 0.0],
            Self::Slow => [0.0, error],
            Self::Both => [error, error],
        }
    }
}

/// Expected result of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectedVerdict {
    /// The statement should hold.
    #[default]
    Agrees,
    /// The statement is known not to hold; the note states the reason.
    Differs,
}

/// Reasons for differing rows of one folder.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reasons {
    /// One reason for each rule that differs.
    #[serde(default, rename = "reason")]
    pub reasons: Vec<Reason>,
}

/// A reason that explains one or more rows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Item without the paper.
    pub item: String,
    /// Cases of the item that it explains.
    pub cases: Vec<String>,
    /// Quantity that it explains; any if not given.
    pub quantity: Option<String>,
    /// The rule that differs, and its effect.
    pub text: String,
}

impl Reason {
    /// Whether the reason explains this row.
    pub fn is_about(&self, item: &str, case: &str, quantity: &str) -> bool {
        self.item == item
            && self.cases.iter().any(|known| known == case)
            && self.quantity.as_deref().is_none_or(|known| known == quantity)
    }
}

/// Statements of the paper in `folder`; none for a peer.
///
/// # Errors
/// A message if the file is malformed.
pub fn expected(folder: &Folder) -> Result<Option<Expected>, String> {
    let Some(text) = folder.file("expected.toml") else { return Ok(None) };
    toml::from_str(text).map(Some).map_err(|e| format!("{}/expected.toml: {e}", folder.path))
}

/// Reasons for differing rows of `folder`.
///
/// # Errors
/// A message if the file is malformed.
pub fn reasons(folder: &Folder) -> Result<Reasons, String> {
    let text = folder.file("reasons.toml").unwrap_or_default();
    toml::from_str(text).map_err(|e| format!("{}/reasons.toml: {e}", folder.path))
}

#[cfg(test)]
mod tests {
    use super::super::data::FOLDERS;
    use super::super::plan::RunKey;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_files_of_every_folder_are_understood() {
        for folder in &FOLDERS {
            reasons(folder).unwrap();
            let Some(expected) = expected(folder).unwrap() else { continue };
            assert_eq!(expected.paper, folder.name);
            let ids: BTreeSet<&str> = expected.items.iter().map(|e| e.id.as_str()).collect();
            assert_eq!(ids.len(), expected.items.len(), "an id of {} is used twice", folder.name);
        }
    }

    #[test]
    fn every_statement_names_what_it_takes_to_judge_it() {
        for expected in FOLDERS.iter().filter_map(|f| expected(f).unwrap()) {
            for entry in &expected.items {
                let whole = match entry.kind {
                    Kind::Value => entry.paper_value.is_some() && entry.tolerance.is_some(),
                    Kind::Table => entry.table.is_some() && entry.subject.is_some(),
                    Kind::Claim => entry.relation.is_some() && entry.claim.is_some(),
                };
                assert!(whole && !entry.by.is_empty(), "{} of {}", entry.id, expected.paper);
            }
        }
    }

    #[test]
    fn every_simulated_scenario_has_the_readings_of_its_paper() {
        let mut checked = 0;
        for expected in FOLDERS.iter().filter_map(|f| expected(f).unwrap()) {
            let simulated = expected.items.iter().filter(|e| e.by.contains(&Source::Simulation));
            for file in simulated.flat_map(|e| e.scenario.iter().chain(&e.scenarios)) {
                let key = RunKey::new(&expected.paper, file, "daps");
                for reading in &expected.readings {
                    let read = key.clone().with(reading.set.as_str()).scenario().unwrap();
                    assert!(read == key.scenario().unwrap(), "{file}: {}", reading.set);
                    checked += 1;
                }
            }
        }
        assert!(checked > 100);
    }

    #[test]
    fn a_known_difference_says_why() {
        for expected in FOLDERS.iter().filter_map(|f| expected(f).unwrap()) {
            let known = |e: &&Entry| e.expected_verdict == ExpectedVerdict::Differs;
            for entry in expected.items.iter().filter(known) {
                assert!(entry.note.is_some(), "{}", entry.id);
            }
        }
    }
}
