//! Reproduces Alheid, Doufexi and Kaleshi 2016: coupling and recovery from reordering over Wi-Fi.
//!
//! Each cell of its tables is simulated twice: with the preset `chihani2011`, which repeats the study's model
//! (column `model_value` of the rows), and with `rfc8684` (column `simulated_value`).

pub mod cell;
mod claim;
mod rank;
mod table;

use super::expected::{Entry, Expected, Kind, Source};
use super::plan::{RunKey, Runs};
use super::row::Row;
use cell::{Cell, Preset};

/// Folder of the paper.
pub const PAPER: &str = "alheid2016";

/// The presets that a statement is about.
fn presets(entry: &Entry) -> impl Iterator<Item = Preset> {
    let of = |source: &Source| match source {
        Source::Simulation => Preset::Rfc8684,
        Source::Model | Source::Slot => Preset::Chihani2011,
    };
    entry.by.iter().map(of)
}

/// The numbers of a statement's scenario files.
///
/// # Errors
/// A message if a file has another name.
fn scenarios(entry: &Entry) -> Result<Vec<u32>, String> {
    let number = |file: &String| {
        let digits = file.strip_prefix("scenario-").and_then(|rest| rest.strip_suffix(".toml"));
        let number = digits.and_then(|digits| digits.parse().ok());
        number.filter(|n| (1..=4).contains(n)).ok_or_else(|| format!("`{file}` is no scenario"))
    };
    entry.scenario.iter().chain(&entry.scenarios).map(number).collect()
}

/// The simulations of a statement. A missing file is reported when the statement is judged.
pub fn keys(expected: &Expected, entry: &Entry) -> Vec<RunKey> {
    let mut keys = Vec::new();
    for scenario in scenarios(entry).unwrap_or_default() {
        for preset in presets(entry) {
            keys.extend(Cell::all(scenario, preset).flat_map(|cell| cell.keys(&expected.changes)));
        }
        if entry.against.as_deref() == Some(claim::BOTH_LINKS) {
            keys.extend(cell::links(scenario).into_iter().flat_map(cell::Link::keys));
        }
    }
    keys
}

/// Judges one statement.
///
/// # Errors
/// A message if the statement is incomplete, or if a run failed.
pub fn judge(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Vec<Row>, String> {
    match (entry.kind, entry.quantity.as_str()) {
        (Kind::Table, _) => table::rows(expected, entry, runs),
        (_, "rank_correlation.ratio" | "rank_correlation.max_bytes") => {
            rank::rows(expected, entry, runs)
        }
        _ => claim::row(expected, entry, runs).map(|row| vec![row]),
    }
}
