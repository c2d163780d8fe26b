//! Rank correlation (Spearman) of a scenario's fifteen cells with the printed ones.

use super::super::expected::{Entry, Expected};
use super::super::judge::{Pair, blank, holds};
use super::super::plan::Runs;
use super::super::row::{Row, Verdict};
use super::super::text;
use super::cell::{Cell, Preset, Printed, printed};
use super::scenarios;

/// A row for each scenario, and the one that is judged: their mean.
///
/// # Errors
/// What the statement lacks, or why a run failed, in words.
pub fn rows(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Vec<Row>, String> {
    let relation = entry.relation.ok_or("a correlation without its relation")?;
    let aim = entry.paper_value.ok_or("a correlation without its aim")?;
    let (mut rows, mut sum) = (Vec::new(), 0.0);
    let scenarios = scenarios(entry)?;
    for scenario in &scenarios {
        let found = of_scenario(*scenario, &entry.quantity, runs)?;
        sum += found;
        rows.push(Row {
            case: format!("scenario {scenario}"),
            paper_value: None,
            reference_value: None,
            model_value: Some(found.into()),
            verdict: Verdict::Shown,
            claim: None,
            ..blank(expected, entry)
        });
    }
    let mean = sum / scenarios.len() as f64;
    let pair = Pair { subject: mean, reference: aim };
    rows.push(Row {
        paper_value: Some(format!("≥ {}", text::quantity(aim, "")).into()),
        model_value: Some(mean.into()),
        verdict: Verdict::of_claim(holds(entry, relation, pair)),
        ..blank(expected, entry)
    });
    Ok(rows)
}

fn of_scenario(scenario: u32, quantity: &str, runs: &Runs) -> Result<f64, String> {
    let ratio = quantity.ends_with("ratio");
    let theirs = printed(scenario)?;
    let theirs = theirs.iter().map(|p: &Printed| if ratio { p.ratio } else { p.max_bytes });
    let mut ours = Vec::new();
    for cell in Cell::all(scenario, Preset::Chihani2011) {
        let measured = cell.measured(runs)?;
        ours.push(if ratio { measured.ratio } else { measured.max_bytes });
    }
    spearman(&theirs.collect::<Vec<_>>(), &ours)
        .ok_or_else(|| format!("the cells of scenario {scenario} are all alike"))
}

/// Spearman's coefficient, equal values sharing the mean of their ranks; none if all of a side are
/// equal or there are fewer than two.
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

/// From 1 up.
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
