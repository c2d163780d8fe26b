//! Claims of the study about its cells. Each claim consists of several comparisons; its row shows the deciding
//! one.

use ropewalk_base::statistics::mean;

use super::super::decide::{Accepted, Decision, Spread, allowed};
use super::super::expected::{Entry, Expected, Relation, Source};
use super::super::interval::of_values;
use super::super::judge::{Pair, empty_row, fraction};
use super::super::plan::Runs;
use super::super::row::{Row, Seeds, Value};
use super::super::text;
use super::cell::{COUPLINGS, Cell, Preset, RACK, RECOVERIES, SEEDS, links};
use super::{presets, scenarios};

/// Reference of a comparison: the sum of the goodputs of single-path TCP on each link.
pub const BOTH_LINKS: &str = "both links";

/// One comparison of a claim.
struct ClaimPoint {
    place: String,
    against: String,
    /// The means.
    pair: Pair,
    /// Subject minus the share of the reference, one value for each seed.
    off: Vec<f64>,
    /// Values whose interval the row shows: the subject, or its relative difference from a simulated reference.
    shown: Vec<f64>,
}

impl ClaimPoint {
    /// A comparison from the runs of subject and reference. A fixed `limit` is not simulated.
    fn of_runs(
        (place, against): (String, String),
        share: f64,
        subject: &[f64],
        reference: Reference,
    ) -> Self {
        let pair = Pair { subject: mean(subject), reference: reference.mean() };
        let of = |values: &dyn Fn(f64, f64) -> f64| match &reference {
            Reference::Number(number) => subject.iter().map(|s| values(*s, *number)).collect(),
            Reference::Runs(runs) => {
                subject.iter().zip(runs).map(|(s, r)| values(*s, *r)).collect()
            }
        };
        let off = of(&|s, r| s - share * r);
        let shown = match &reference {
            Reference::Number(_) => subject.to_vec(),
            Reference::Runs(_) => of(&|s, r| (s - r) / pair.reference.abs()),
        };
        Self { place, against, pair, off, shown }
    }

    fn decide(&self, accepted: Accepted, points: usize) -> Result<(Decision, Spread), String> {
        let off = of_values(&self.off, points)?;
        Ok((accepted.decide(off), of_values(&self.shown, points)?))
    }
}

/// The reference of a subject.
enum Reference {
    /// A fixed number.
    Number(f64),
    /// One value for each run.
    Runs(Vec<f64>),
}

impl Reference {
    fn mean(&self) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Runs(runs) => mean(runs),
        }
    }
}

/// Judges a claim. It holds if all of its comparisons hold. The runs that judge the comparisons also select the
/// one that the row shows, so their intervals are simultaneous (Bonferroni).
///
/// # Errors
/// A message if the statement is incomplete, or if a run failed.
pub fn row(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Row, String> {
    let relation = entry.relation.ok_or("a claim without its relation")?;
    if entry.quantity == "recovery_spread" {
        return collapse(expected, entry, relation, runs);
    }
    let found = match entry.quantity.as_str() {
        "coupling_spread" => spreads(expected, entry, runs)?,
        _ => cells(expected, entry, runs)?,
    };
    let share = entry.share.unwrap_or(1.0);
    let points = found.len();
    let mut decided = Vec::new();
    for found in found {
        let allowed = allowed(entry, found.pair.reference * share);
        let accepted = Accepted::of(relation, allowed).ok_or("a series instead of a pair")?;
        let (decision, interval) = found.decide(accepted, points)?;
        decided.push((decision, interval, found));
    }
    let all = decided.iter().map(|(decision, ..)| *decision).reduce(Decision::and);
    let all = all.ok_or("no cell of these names")?;
    let distance = |found: &ClaimPoint| margin(relation, found.pair, share);
    let nearest = decided.into_iter().filter(|(decision, ..)| *decision == all);
    let nearest = nearest.min_by(|a, b| distance(&a.2).total_cmp(&distance(&b.2)));
    let (_, interval, found) = nearest.ok_or("no cell of these names")?;
    Ok(shown(expected, entry, (all, relation, interval), &found))
}

/// The row with the deciding comparison.
fn shown(
    expected: &Expected,
    entry: &Entry,
    (decision, relation, interval): (Decision, Relation, Spread),
    ClaimPoint { place, against, pair, .. }: &ClaimPoint,
) -> Row {
    let row = empty_row(expected, entry);
    let limit = text::quantity(pair.reference * entry.share.unwrap_or(1.0), &row.unit);
    let share =
        entry.share.map_or(String::new(), |s| format!("{} of ", text::quantity(s, "ratio")));
    let value = Some(Value::Number(pair.subject));
    let modelled = presets(entry).any(|preset| preset == Preset::Chihani2011);
    Row {
        paper_value: Some(format!("{} {limit} ({share}{against}; {place})", sign(relation)).into()),
        model_value: value.clone().filter(|_| modelled),
        simulated_value: value.filter(|_| !modelled),
        reference_value: Some(pair.reference),
        difference: fraction(pair.subject, pair.reference),
        interval: Some(interval.ends()),
        seeds: Some(Seeds::Drawn(SEEDS)),
        verdict: decision.of_claim(),
        ..row
    }
}

const fn sign(relation: Relation) -> &'static str {
    match relation {
        Relation::Greater => ">",
        Relation::Less => "<",
        Relation::NotLess => "≥",
        Relation::NotGreater | Relation::NotRising => "≤",
        _ => "≈",
    }
}

/// Distance of a pair from the limit of its claim, as a fraction of the limit; positive if the claim holds.
fn margin(relation: Relation, pair: Pair, share: f64) -> f64 {
    let over = pair.subject / (pair.reference * share) - 1.0;
    match relation {
        Relation::Greater | Relation::NotLess => over,
        Relation::Less | Relation::NotGreater | Relation::NotRising => -over,
        _ => -over.abs(),
    }
}

/// Parses a list of names such as `D-SACK, F-RTO`.
fn named(list: &str) -> Result<Vec<(&'static str, &'static str)>, String> {
    let of = |name: &str| {
        let known = RECOVERIES.into_iter().chain([RACK]).find(|(label, _)| *label == name);
        known.ok_or_else(|| format!("`{name}` is no recovery of the study"))
    };
    list.split(", ").map(of).collect()
}

fn preset(entry: &Entry) -> Preset {
    match entry.by.first() {
        Some(Source::Simulation) => Preset::Rfc8684,
        _ => Preset::Chihani2011,
    }
}

/// Compares each subject with each of its references, under each coupling of each scenario.
fn cells(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Vec<ClaimPoint>, String> {
    let subjects = named(entry.subject.as_deref().ok_or("a claim without its subject")?)?;
    let chosen = |label: &str| entry.curves.is_empty() || entry.curves.iter().any(|c| c == label);
    let share = entry.share.unwrap_or(1.0);
    let mut found = Vec::new();
    for scenario in scenarios(entry)? {
        for coupling in COUPLINGS.into_iter().filter(|(label, _)| chosen(label)) {
            for recovery in &subjects {
                let cell = Cell { scenario, recovery: *recovery, coupling, preset: preset(entry) };
                let subject = cell.values(expected, &entry.quantity, runs)?;
                let who = if subjects.len() > 1 { cell.label() } else { coupling.0.to_owned() };
                let several = !entry.scenarios.is_empty();
                let place = if several { format!("{scenario}, {who}") } else { who };
                for (against, reference) in references(expected, entry, cell, runs)? {
                    let names = (place.clone(), against);
                    found.push(ClaimPoint::of_runs(names, share, &subject, reference));
                }
            }
        }
    }
    Ok(found)
}

fn references(
    expected: &Expected,
    entry: &Entry,
    cell: Cell,
    runs: &Runs,
) -> Result<Vec<(String, Reference)>, String> {
    let Some(against) = entry.against.as_deref() else {
        let number = entry.paper_value.ok_or("a claim without what it is compared with")?;
        return Ok(vec![("as it says".to_owned(), Reference::Number(number))]);
    };
    if against == BOTH_LINKS {
        let [a, b] = links(cell.scenario).map(|link| link.goodputs_bps(runs));
        let sums = a?.into_iter().zip(b?).map(|(a, b)| a + b).collect();
        return Ok(vec![(BOTH_LINKS.to_owned(), Reference::Runs(sums))]);
    }
    let of = |recovery: (&'static str, &'static str)| {
        let other = Cell { recovery, ..cell }.values(expected, &entry.quantity, runs)?;
        Ok((recovery.0.to_owned(), Reference::Runs(other)))
    };
    named(against)?.into_iter().map(of).collect()
}

/// The spread of couplings: (largest - smallest goodput) / largest. Compares that of one recovery with a
/// number, or the widest one in the first scenario with those in the other scenarios.
fn spreads(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Vec<ClaimPoint>, String> {
    let subjects = named(entry.subject.as_deref().ok_or("a claim without its subject")?)?;
    let preset = preset(entry);
    let of_scenario = |scenario| {
        let each = subjects.iter().map(|recovery| {
            COUPLINGS.map(|coupling| Cell { scenario, recovery: *recovery, coupling, preset })
        });
        widest(expected, each, runs)
    };
    let scenarios = scenarios(entry)?;
    let (first, rest) = scenarios.split_first().ok_or("a claim without its scenario")?;
    let subject = of_scenario(*first)?;
    if let Some(number) = entry.paper_value {
        let names = ("all couplings".to_owned(), "as it says".to_owned());
        return Ok(vec![ClaimPoint::of_runs(names, 1.0, &subject, Reference::Number(number))]);
    }
    let against = |scenario: &u32| {
        let names = ("all recoveries".to_owned(), format!("scenario {scenario}"));
        Ok(ClaimPoint::of_runs(names, 1.0, &subject, Reference::Runs(of_scenario(*scenario)?)))
    };
    rest.iter().map(against).collect()
}

/// The widest spread of the mean goodputs of a group of cells. Returns one value for each seed; their mean is
/// that spread, and their variance is that of the jackknife (Quenouille 1956, Tukey 1958). The mean of the
/// spreads of each seed would be too large, because noise widens each of them.
fn widest<const N: usize>(
    expected: &Expected,
    groups: impl Iterator<Item = [Cell; N]>,
    runs: &Runs,
) -> Result<Vec<f64>, String> {
    let values = |cell: &Cell| cell.values(expected, "goodput_bps", runs);
    let of = |group: [Cell; N]| group.iter().map(values).collect::<Result<Vec<_>, String>>();
    let groups = groups.map(of).collect::<Result<Vec<_>, String>>()?;
    Ok(jackknife(SEEDS as usize, |without| {
        let mean_of = |values: &Vec<f64>| {
            let kept = values.iter().enumerate().filter(|(i, _)| Some(*i) != without);
            mean(kept.map(|(_, value)| *value))
        };
        let each = groups.iter().map(|g| spread(&g.iter().map(mean_of).collect::<Vec<f64>>()));
        each.fold(0.0, f64::max)
    }))
}

/// Jackknife values. `statistic` uses all of `count` values, or all but the given one.
fn jackknife(count: usize, statistic: impl Fn(Option<usize>) -> f64) -> Vec<f64> {
    let whole = statistic(None);
    let without: Vec<f64> = (0..count).map(|i| statistic(Some(i))).collect();
    let middle = mean(&without);
    without.iter().map(|value| whole + (count as f64 - 1.0) * (middle - value)).collect()
}

fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    if most > 0.0 { (most - least) / most } else { 0.0 }
}

/// The largest difference between the goodputs of the five recoveries, under any coupling: in the study's
/// model, and with immediate acknowledgements, which is the judged one.
fn collapse(
    expected: &Expected,
    entry: &Entry,
    relation: Relation,
    runs: &Runs,
) -> Result<Row, String> {
    let limit = entry.paper_value.ok_or("a spread without its bound")?;
    let [scenario] = scenarios(entry)?[..] else {
        return Err("a spread of one scenario".to_owned());
    };
    let of_preset = |preset| {
        let each = COUPLINGS.iter().map(|coupling| {
            RECOVERIES.map(|recovery| Cell { scenario, recovery, coupling: *coupling, preset })
        });
        widest(expected, each, runs)
    };
    let (modelled, real) = (of_preset(Preset::Chihani2011)?, of_preset(Preset::Rfc8684)?);
    let accepted = Accepted::of(relation, allowed(entry, limit)).ok_or("a series")?;
    let spread = of_values(&real, 1)?;
    Ok(Row {
        paper_value: Some(format!("{} {}", sign(relation), text::quantity(limit, "ratio")).into()),
        model_value: Some(mean(&modelled).into()),
        simulated_value: Some(spread.mean.into()),
        interval: Some(spread.ends()),
        seeds: Some(Seeds::Drawn(SEEDS)),
        verdict: accepted.decide(spread.map(|value| value - limit)).of_claim(),
        ..empty_row(expected, entry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pair_that_decides_is_the_one_nearest_to_refuting_the_claim() {
        let pair = |subject| Pair { subject, reference: 10.0 };
        for (relation, worse, better) in [
            (Relation::Greater, 11.0, 12.0),
            (Relation::Less, 9.0, 8.0),
            (Relation::Near, 8.0, 11.0),
        ] {
            let margin = |subject| margin(relation, pair(subject), 1.0);
            assert!(margin(worse) < margin(better), "{relation:?}");
        }
        assert!(margin(Relation::Greater, pair(6.0), 0.5) > 0.0);
    }

    #[test]
    fn a_spread_is_a_share_of_the_largest() {
        assert!((spread(&[4.0, 5.0, 4.5]) - 0.2).abs() < 1e-12);
        assert_eq!(spread(&[0.0, 0.0]), 0.0);
    }

    #[test]
    fn the_jackknife_of_a_mean_is_the_mean_and_its_variance() {
        let values: [f64; 4] = [1.0, 2.0, 4.0, 9.0];
        let found = jackknife(4, |without| {
            let kept = (0..4).filter(|i| Some(*i) != without).map(|i| values[i]);
            mean(kept)
        });
        for (found, value) in found.iter().zip(values) {
            assert!((found - value).abs() < 1e-12, "{found} {value}");
        }
    }

    #[test]
    fn a_reference_that_was_simulated_brings_its_own_spread() {
        let names = || ("p".to_owned(), "a".to_owned());
        let number = ClaimPoint::of_runs(names(), 0.5, &[4.0, 6.0], Reference::Number(4.0));
        assert_eq!((&number.off[..], &number.shown[..]), (&[2.0, 4.0][..], &[4.0, 6.0][..]));
        let runs = ClaimPoint::of_runs(names(), 0.5, &[4.0, 6.0], Reference::Runs(vec![2.0, 6.0]));
        assert_eq!((&runs.off[..], &runs.shown[..]), (&[3.0, 3.0][..], &[0.5, 0.0][..]));
        assert_eq!(runs.pair, Pair { subject: 5.0, reference: 4.0 });
    }

    #[test]
    fn recoveries_are_named_as_the_study_names_them() {
        assert_eq!(named("D-SACK, F-RTO").unwrap(), [("D-SACK", "d-sack"), ("F-RTO", "f-rto")]);
        assert!(named("CUBIC").unwrap_err().contains("`CUBIC`"));
    }
}
