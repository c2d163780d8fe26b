//! Rank correlation (Spearman) of a scenario's fifteen cells with the printed ones, compared with that of a
//! null rule that uses no simulation.

use super::super::decide::Accepted;
use super::super::expected::{Entry, Expected};
use super::super::interval::of_values;
use super::super::judge::{empty_row, fraction};
use super::super::plan::Runs;
use super::super::row::{Row, Seeds, Verdict};
use super::super::text;
use super::cell::{Cell, Preset, Printed, SEEDS, printed};
use super::scenarios;

/// The null rule in words.
const NULL_RULE: &str = "NoPR < all others < TCP-DOOR";

/// Rank value that the null rule assigns to a cell.
fn null_rule(cell: Cell) -> f64 {
    match cell.recovery.0 {
        "NoPR" => 0.0,
        "TCP-DOOR" => 2.0,
        _ => 1.0,
    }
}

/// A row for each scenario, and the judged one: their mean. It holds if its complete confidence interval over
/// the seeds is above the mean of the null rule.
///
/// # Errors
/// A message if the statement is incomplete, or if a run failed.
pub fn rows(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let mut means = vec![0.0; SEEDS as usize];
    let mut null_mean = 0.0;
    let scenarios = scenarios(entry)?;
    for scenario in &scenarios {
        let found = Correlations::of(expected, *scenario, &entry.quantity, runs)?;
        for (mean, value) in means.iter_mut().zip(&found.by_seed) {
            *mean += value / scenarios.len() as f64;
        }
        null_mean += found.null / scenarios.len() as f64;
        let case = format!("scenario {scenario}");
        let row = row(expected, entry, &found.by_seed, found.null)?;
        rows.push(Row { case, verdict: Verdict::Shown, claim: None, ..row });
    }
    rows.push(row(expected, entry, &means, null_mean)?);
    Ok(rows)
}

fn row(expected: &Expected, entry: &Entry, by_seed: &[f64], null: f64) -> Result<Row, String> {
    let found = of_values(by_seed, 1)?;
    Ok(Row {
        paper_value: Some(format!("> {} ({NULL_RULE})", text::quantity(null, "")).into()),
        reference_value: Some(null),
        model_value: Some(found.mean.into()),
        difference: fraction(found.mean, null),
        interval: Some(found.ends()),
        seeds: Some(Seeds::Drawn(SEEDS)),
        verdict: Accepted::POSITIVE.decide(found.map(|value| value - null)).of_claim(),
        ..empty_row(expected, entry)
    })
}

/// Correlation coefficients of one scenario with the printed cells.
struct Correlations {
    by_seed: Vec<f64>,
    null: f64,
}

impl Correlations {
    fn of(expected: &Expected, scenario: u32, quantity: &str, runs: &Runs) -> Result<Self, String> {
        let ratio = quantity.ends_with("ratio");
        let cell_quantity = if ratio { "out_of_order.ratio" } else { "out_of_order.max_bytes" };
        let theirs = printed(scenario)?;
        let theirs = theirs.iter().map(|p: &Printed| if ratio { p.ratio } else { p.max_bytes });
        let theirs: Vec<f64> = theirs.collect();
        let with = |ours: &[f64]| {
            let alike = || format!("the cells of scenario {scenario} are all alike");
            spearman(&theirs, ours).ok_or_else(alike)
        };
        let mut ours = vec![Vec::new(); SEEDS as usize];
        let mut null = Vec::new();
        for cell in Cell::all(scenario, Preset::Chihani2011) {
            null.push(null_rule(cell));
            let found = cell.values(expected, cell_quantity, runs)?;
            for (values, found) in ours.iter_mut().zip(found) {
                values.push(found);
            }
        }
        let by_seed = ours.iter().map(|values| with(values)).collect::<Result<_, String>>()?;
        Ok(Self { by_seed, null: with(&null)? })
    }
}

/// Spearman's rank correlation coefficient; equal values share the mean of their ranks. `None` if all values
/// of a side are equal, or if there are fewer than two.
fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    assert_eq!(a.len(), b.len(), "a correlation of pairs");
    let (a, b) = (ranks(a), ranks(b));
    let middle = (a.len() as f64 + 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| {
        x.iter().zip(y).map(|(x, y)| (x - middle) * (y - middle)).sum::<f64>()
    };
    let scale = (product(&a, &a) * product(&b, &b)).sqrt();
    (scale > 0.0).then(|| product(&a, &b) / scale)
}

/// Ranks of the values, from 1.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_equal_values_are_shared() {
        assert_eq!(ranks(&[10.0, 30.0, 10.0, 20.0]), [1.5, 4.0, 1.5, 3.0]);
    }

    #[test]
    fn the_coefficient_is_one_for_the_same_order_and_minus_one_for_the_opposite() {
        let up = [1.0, 2.0, 5.0, 9.0];
        for (other, expected) in [
            ([2.0, 3.0, 40.0, 41.0], Some(1.0)),
            ([9.0, 3.0, 2.0, 1.0], Some(-1.0)),
            // By hand: d² = 0, 1, 1, 0, 1 - 6 * 2 / (4 * 15).
            ([1.0, 3.0, 2.0, 4.0], Some(0.8)),
            ([7.0, 7.0, 7.0, 7.0], None),
        ] {
            let found = spearman(&up, &other);
            let same = match (found, expected) {
                (Some(found), Some(expected)) => (found - expected).abs() < 1e-12,
                (found, expected) => found == expected,
            };
            assert!(same, "{other:?}: {found:?}");
        }
    }
}
