//! Sensitivity of a paper's verdicts to the readings of its text: changes the readings one at a time and counts
//! the items that hold.

use std::collections::BTreeSet;

use serde::Serialize;

use super::expected::{Expected, Source, Variation};
use super::plan::{RunKey, Runs};
use super::row::{Row, Verdict};
use super::{Options, data, expected, judge};

/// One line of the table: the readings of the paper, or one change of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sensitivity {
    /// Folder of the paper.
    pub paper: String,
    /// The changed reading.
    pub name: String,
    /// Settings as `key=value`, in addition to the readings; empty for the readings themselves.
    pub sets: Vec<String>,
    /// Simulated items that hold.
    pub hold: usize,
    /// Simulated items whose interval contains the limit.
    pub undecided: usize,
    /// Simulated items that do not hold.
    pub fail: usize,
    /// Items that hold here but not with the paper's readings, as `item case quantity`.
    pub gained: Vec<String>,
    /// Items that hold with the paper's readings but not here.
    pub lost: Vec<String>,
}

/// The table for this paper. Every line covers all simulated items of the paper with all seeds.
///
/// # Errors
/// A message if there is no such paper, if it has no variations, if a file is malformed, or if a run failed.
pub fn sensitivity(paper: &str, options: &Options<'_>) -> Result<Vec<Sensitivity>, String> {
    let variations = variations(paper)?;
    let keys: BTreeSet<RunKey> =
        variations.iter().flat_map(|(_, expected)| keys(expected)).collect();
    let runs = Runs::execute(keys, options.threads, options.progress);
    if let Some(failure) = runs.failures().first() {
        return Err(failure.clone());
    }
    let rows: Vec<Vec<Row>> =
        variations.iter().map(|(_, expected)| rows(expected, &runs)).collect();
    let lines = variations.iter().zip(&rows);
    Ok(lines.map(|((variation, _), row)| line(paper, variation, &rows[0], row)).collect())
}

/// Number of simulations for the table of this paper, for a progress bar.
///
/// # Errors
/// As [`sensitivity`], without those of runs.
pub fn sensitivity_simulations(paper: &str) -> Result<usize, String> {
    let variations = variations(paper)?;
    Ok(variations.iter().flat_map(|(_, expected)| keys(expected)).collect::<BTreeSet<_>>().len())
}

/// The paper's readings, then each variation, with the statements that it changes.
fn variations(paper: &str) -> Result<Vec<(Variation, Expected)>, String> {
    let folder = data::folder(paper).ok_or_else(|| format!("there is no paper `{paper}`"))?;
    let known = expected::expected(folder)?.filter(|expected| !expected.variations.is_empty());
    let known = known.ok_or_else(|| format!("{paper} has no readings to vary"))?;
    let base = Variation { name: "the readings".to_owned(), sets: Vec::new() };
    let all = std::iter::once(base).chain(known.variations.clone());
    Ok(all.map(|variation| (variation.clone(), changed(&known, &variation))).collect())
}

fn changed(known: &Expected, variation: &Variation) -> Expected {
    let mut expected = known.clone();
    expected.changes.clone_from(&variation.sets);
    expected.items.retain(|entry| entry.by.contains(&Source::Simulation));
    expected
}

fn keys(expected: &Expected) -> impl Iterator<Item = RunKey> {
    expected.items.iter().flat_map(|entry| judge::keys(expected, entry))
}

fn rows(expected: &Expected, runs: &Runs) -> Vec<Row> {
    expected.items.iter().flat_map(|entry| judge::judge(expected, entry, runs)).collect()
}

fn line(paper: &str, variation: &Variation, base: &[Row], rows: &[Row]) -> Sensitivity {
    let count = |of: fn(Verdict) -> bool| rows.iter().filter(|row| of(row.verdict)).count();
    let name = |row: &Row| format!("{} {} {}", row.item, row.case, row.quantity);
    let both = || base.iter().zip(rows);
    let differ = |from: &dyn Fn(&(&Row, &Row)) -> bool| {
        both().filter(from).map(|(row, _)| name(row)).collect()
    };
    Sensitivity {
        paper: paper.to_owned(),
        name: variation.name.clone(),
        sets: variation.sets.clone(),
        hold: count(Verdict::is_good),
        undecided: count(|verdict| verdict == Verdict::Undecided),
        fail: count(Verdict::is_off),
        gained: differ(&|(a, b)| !a.verdict.is_good() && b.verdict.is_good()),
        lost: differ(&|(a, b)| a.verdict.is_good() && !b.verdict.is_good()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variation_is_a_scenario_that_stands_and_differs_from_the_readings() {
        for (paper, least) in [("kuhn2014", 8), ("slides2013", 8), ("alheid2016", 7)] {
            let variations = variations(paper).unwrap();
            assert!(variations.len() >= least, "{paper}");
            for (variation, expected) in &variations[1..] {
                let keys: Vec<RunKey> = keys(expected).collect();
                let base: BTreeSet<RunKey> = self::keys(&variations[0].1).collect();
                for key in &keys {
                    key.scenario().unwrap_or_else(|e| panic!("{}: {e}", variation.name));
                }
                assert!(keys.iter().any(|key| !base.contains(key)), "{}", variation.name);
            }
        }
        assert!(sensitivity("wallace2014", &Options::default()).is_err());
    }

    #[test]
    fn a_line_counts_what_holds_and_names_what_changed() {
        let row = |case: &str, verdict| Row { case: case.to_owned(), verdict, ..Row::default() };
        use Verdict::{ClaimFails, ClaimHolds, Undecided};
        let base = [row("a", ClaimHolds), row("b", ClaimFails), row("c", Undecided)];
        let rows = [row("a", ClaimFails), row("b", ClaimHolds), row("c", Undecided)];
        let variation = Variation { name: "x".to_owned(), sets: Vec::new() };
        let line = line("p", &variation, &base, &rows);
        assert_eq!((line.hold, line.undecided, line.fail), (1, 1, 1));
        assert_eq!((line.gained.len(), line.lost.len()), (1, 1));
        assert!(line.gained[0].contains('b') && line.lost[0].contains('a'));
    }
}
