//! `papers/*/expected.toml` and `papers/*/reasons.toml`; their keys are explained in `papers/README.md`.

use serde::Deserialize;

use super::data::Folder;
use crate::slot::{Planned, SlotSetup};

/// What a paper says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Name of the folder.
    pub paper: String,
    /// Title of the paper.
    pub title: String,
    /// The set-up of the slot model, where the paper has one.
    pub slot: Option<SlotSetup>,
    /// The paper's own scheduler, which rows set beside round robin.
    pub scheduler: Option<String>,
    /// Seeds of each simulated statement that names no number of its own; one if left out.
    pub seeds: Option<u32>,
    /// Settings on top of every simulated scenario, as a [`Variation`] has them.
    #[serde(skip)]
    pub changes: Vec<String>,
    /// Whether this is a variation, whose rows have no columns beside them.
    #[serde(skip)]
    pub is_variation: bool,
    /// Wrong delays in it.
    pub slot_errors: Option<SlotErrors>,
    /// Settings that the text leaves open, chosen once for all items of the paper.
    #[serde(default, rename = "reading")]
    pub readings: Vec<Reading>,
    /// Other choices of them, to show how far the verdicts hang on each.
    #[serde(default, rename = "variation")]
    pub variations: Vec<Variation>,
    /// Numbers, tables and claims.
    #[serde(rename = "item")]
    pub items: Vec<Entry>,
}

/// A setting that the text leaves open.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// As `key=value` of a scenario. Every scenario of the paper has it.
    pub set: String,
    /// What speaks for it.
    pub text: String,
}

/// Readings that differ from those of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variation {
    /// Heading of its line in the table.
    pub name: String,
    /// Settings as `key=value`.
    pub sets: Vec<String>,
    /// The paper's scheduler has the guard, its baseline has not.
    #[serde(default)]
    pub guarded: bool,
}

/// Errors of the believed delays in the slot model, and how the paper's text is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotErrors {
    /// The errors, rising.
    pub values: Vec<f64>,
    /// The path whose delay is wrong, as the text is read.
    pub error_on: ErrorOn,
    /// What the planner takes as given, as the text is read.
    pub planned_capacity: Planned,
    /// What speaks for these two.
    pub text: String,
}

/// One number, table or claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Unique in the file.
    pub id: String,
    /// The item it belongs to.
    pub group: String,
    /// Row, figure or set-up.
    pub case: String,
    /// Key of the result vocabulary or of a model.
    pub quantity: String,
    /// Unit of the numbers.
    pub unit: String,
    /// What kind of statement it is.
    pub kind: Kind,
    /// What can answer.
    pub by: Vec<Source>,
    /// The printed number.
    pub paper_value: Option<f64>,
    /// What the paper says.
    pub claim: Option<String>,
    /// Of subject to reference.
    pub relation: Option<Relation>,
    /// Scheduler that the statement is about.
    pub subject: Option<String>,
    /// What it is compared with.
    pub against: Option<String>,
    /// How far off still agrees.
    pub tolerance: Option<Tolerance>,
    /// Scenario file.
    pub scenario: Option<String>,
    /// Several of them.
    #[serde(default)]
    pub scenarios: Vec<String>,
    /// Table file.
    pub table: Option<String>,
    /// The claim is about this share of the reference.
    pub share: Option<f64>,
    /// Which of many points decides.
    pub pick: Option<Pick>,
    /// Curves of the figure that it is about; all if empty.
    #[serde(default)]
    pub curves: Vec<String>,
    /// Losses that it is about, from and to; all if left out.
    pub loss_range: Option<[f64; 2]>,
    /// The statement is about wrong delays in the slot model, under each of `slot_errors`.
    #[serde(default)]
    pub wrong_delays: bool,
    /// Seeds of a random scenario, fresh ones for each statement; one if left out.
    pub seeds: Option<u32>,
    /// The statement is about the subject with Ropewalk's receive-window guard. No paper has it, so
    /// that such a statement is our own.
    #[serde(default)]
    pub guarded: bool,
    /// Whether it is known not to hold.
    #[serde(default)]
    pub expected_verdict: ExpectedVerdict,
    /// Why something may differ.
    pub note: Option<String>,
    /// Where it is printed.
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

/// Who can answer.
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

/// Relations of a subject to what it is compared with.
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
    /// (subject - against) / against is the printed number.
    Gain,
    /// (subject - against) / against is more than the printed number.
    GainOver,
    /// (subject - against) / against rises from each scenario to the next.
    GainRises,
    /// (against - subject) / against rises from each scenario to the next.
    ReductionRises,
    /// The largest (against - subject) / against is the printed number.
    ReductionBest,
    /// No value of a series is above the one before it.
    NotRising,
}

/// Which of many points decides a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// The largest.
    Best,
    /// The smallest.
    Least,
    /// The one furthest from zero.
    Widest,
    /// None: their mean.
    Mean,
}

/// How far off still agrees.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Tolerance {
    /// In the unit of the number.
    Absolute(f64),
    /// Of the reference.
    Relative(f64),
}

impl Tolerance {
    /// What is allowed around `reference`.
    pub fn around(self, reference: f64) -> f64 {
        match self {
            Self::Absolute(x) => x,
            Self::Relative(x) => x * reference.abs(),
        }
    }
}

/// Where the error of a believed delay sits.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Slow, Self::Both];

    /// As rows name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast path",
            Self::Slow => "slow path",
            Self::Both => "both paths",
        }
    }

    /// Error of each path if that of the wrong ones is `error`.
    pub fn errors(self, error: f64) -> [f64; 2] {
        match self {
            Self::Fast => [error, 0.0],
            Self::Slow => [0.0, error],
            Self::Both => [error, error],
        }
    }
}

/// What is known beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpectedVerdict {
    /// It should come out.
    #[default]
    Agrees,
    /// It is known not to; the note says why.
    Differs,
}

/// Why rows of one folder differ.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reasons {
    /// One for each rule that differs.
    #[serde(default, rename = "reason")]
    pub reasons: Vec<Reason>,
}

/// One reason, for one or more rows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Item without the paper.
    pub item: String,
    /// Which cases of it.
    pub cases: Vec<String>,
    /// Which quantity; any if left out.
    pub quantity: Option<String>,
    /// What is different, and so why.
    pub text: String,
}

impl Reason {
    /// Whether it speaks of this row.
    pub fn is_about(&self, item: &str, case: &str, quantity: &str) -> bool {
        self.item == item
            && self.cases.iter().any(|known| known == case)
            && self.quantity.as_deref().is_none_or(|known| known == quantity)
    }
}

/// What the paper of `folder` says; none for a peer.
///
/// # Errors
/// What is wrong with the file, in words.
pub fn expected(folder: &Folder) -> Result<Option<Expected>, String> {
    let Some(text) = folder.file("expected.toml") else { return Ok(None) };
    toml::from_str(text).map(Some).map_err(|e| format!("{}/expected.toml: {e}", folder.path))
}

/// Why rows of `folder` differ.
///
/// # Errors
/// What is wrong with the file, in words.
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
