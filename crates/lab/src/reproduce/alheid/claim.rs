//! What the study says of its cells: each claim about several of them, of which the row shows the one
//! that decides.

use super::super::expected::{Entry, Expected, Relation, Source};
use super::super::judge::{Pair, blank, fraction, holds};
use super::super::plan::Runs;
use super::super::row::{Row, Value, Verdict};
use super::super::text;
use super::cell::{COUPLINGS, Cell, Preset, RACK, RECOVERIES, links};
use super::{presets, scenarios};

/// As what a recovery is compared with: the sum of what a single-path TCP has of each link.
pub const BOTH_LINKS: &str = "both links";

/// A pair, where it was found, and what the subject was compared with.
struct Found {
    place: String,
    against: String,
    pair: Pair,
}

/// Judges a claim.
///
/// # Errors
/// What the statement lacks, or why a run failed, in words.
pub fn row(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Row, String> {
    let relation = entry.relation.ok_or("a claim without its relation")?;
    if entry.quantity == "recovery_spread" {
        return collapse(expected, entry, relation, runs);
    }
    let found = match entry.quantity.as_str() {
        "coupling_spread" => spreads(entry, runs)?,
        _ => cells(entry, relation, runs)?,
    };
    let distance = |found: &Found| margin(relation, found.pair, entry.share.unwrap_or(1.0));
    let decides = found.into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let Found { place, against, pair } = decides.ok_or("no cell of these names")?;
    let row = blank(expected, entry);
    let limit = text::quantity(pair.reference * entry.share.unwrap_or(1.0), &row.unit);
    let share =
        entry.share.map_or(String::new(), |s| format!("{} of ", text::quantity(s, "ratio")));
    let value = Some(Value::Number(pair.subject));
    let modelled = presets(entry).any(|preset| preset == Preset::Chihani2011);
    Ok(Row {
        paper_value: Some(format!("{} {limit} ({share}{against}; {place})", sign(relation)).into()),
        model_value: value.clone().filter(|_| modelled),
        simulated_value: value.filter(|_| !modelled),
        reference_value: Some(pair.reference),
        difference: fraction(pair.subject, pair.reference),
        verdict: Verdict::of_claim(holds(entry, relation, pair)),
        ..row
    })
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

/// How far a pair is on the right side of its claim, as a fraction of the limit.
fn margin(relation: Relation, pair: Pair, share: f64) -> f64 {
    let over = pair.subject / (pair.reference * share) - 1.0;
    match relation {
        Relation::Greater | Relation::NotLess => over,
        Relation::Less | Relation::NotGreater | Relation::NotRising => -over,
        _ => -over.abs(),
    }
}

/// Names in a list, as `D-SACK, F-RTO`.
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

/// Each subject under each coupling of each scenario, against the one that comes nearest to
/// refuting the claim.
fn cells(entry: &Entry, relation: Relation, runs: &Runs) -> Result<Vec<Found>, String> {
    let subjects = named(entry.subject.as_deref().ok_or("a claim without its subject")?)?;
    let chosen = |label: &str| entry.curves.is_empty() || entry.curves.iter().any(|c| c == label);
    let mut found = Vec::new();
    for scenario in scenarios(entry)? {
        for coupling in COUPLINGS.into_iter().filter(|(label, _)| chosen(label)) {
            for recovery in &subjects {
                let cell = Cell { scenario, recovery: *recovery, coupling, preset: preset(entry) };
                let subject = cell.measured(runs)?.of(&entry.quantity)?;
                let (against, reference) = reference(entry, relation, cell, runs)?;
                let who = if subjects.len() > 1 { cell.label() } else { coupling.0.to_owned() };
                let several = !entry.scenarios.is_empty();
                let place = if several { format!("{scenario}, {who}") } else { who };
                found.push(Found { place, against, pair: Pair { subject, reference } });
            }
        }
    }
    Ok(found)
}

fn reference(
    entry: &Entry,
    relation: Relation,
    cell: Cell,
    runs: &Runs,
) -> Result<(String, f64), String> {
    let Some(against) = entry.against.as_deref() else {
        let number = entry.paper_value.ok_or("a claim without what it is compared with")?;
        return Ok(("as it says".to_owned(), number));
    };
    if against == BOTH_LINKS {
        let each = links(cell.scenario).map(|link| link.goodput_bps(runs));
        let sum = each.into_iter().sum::<Result<f64, String>>()?;
        return Ok((BOTH_LINKS.to_owned(), sum));
    }
    let mut worst: Option<(String, f64)> = None;
    for recovery in named(against)? {
        let other = Cell { recovery, ..cell }.measured(runs)?.of(&entry.quantity)?;
        let nearer = |before: f64| match relation {
            Relation::Greater | Relation::NotLess => other > before,
            _ => other < before,
        };
        if worst.as_ref().is_none_or(|(_, before)| nearer(*before)) {
            worst = Some((recovery.0.to_owned(), other));
        }
    }
    worst.ok_or_else(|| "a claim against nobody".to_owned())
}

/// By how much couplings differ: (largest - smallest goodput) / largest. Of one recovery, against a
/// number; or of the first scenario's recoveries, the widest, against those of the other scenarios.
fn spreads(entry: &Entry, runs: &Runs) -> Result<Vec<Found>, String> {
    let subjects = named(entry.subject.as_deref().ok_or("a claim without its subject")?)?;
    let mut widest = Vec::new();
    for scenario in scenarios(entry)? {
        let mut most: f64 = 0.0;
        for recovery in &subjects {
            let mut goodputs = Vec::new();
            for coupling in COUPLINGS {
                let cell = Cell { scenario, recovery: *recovery, coupling, preset: preset(entry) };
                goodputs.push(cell.measured(runs)?.goodput_bps);
            }
            most = most.max(spread(&goodputs));
        }
        widest.push((scenario, most));
    }
    let (first, rest) = widest.split_first().ok_or("a claim without its scenario")?;
    if let Some(number) = entry.paper_value {
        let pair = Pair { subject: first.1, reference: number };
        return Ok(vec![Found {
            place: "all couplings".to_owned(),
            against: "as it says".to_owned(),
            pair,
        }]);
    }
    let against = |(scenario, spread): &(u32, f64)| Found {
        place: "all recoveries".to_owned(),
        against: format!("scenario {scenario}"),
        pair: Pair { subject: first.1, reference: *spread },
    };
    Ok(rest.iter().map(against).collect())
}

fn spread(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    if most > 0.0 { (most - least) / most } else { 0.0 }
}

/// By how much the goodputs of the five recoveries differ at most, under any coupling: the model's,
/// and with acknowledgements that wait for nothing, which is judged.
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
    let widest = |preset: Preset| {
        let mut widest: f64 = 0.0;
        for coupling in COUPLINGS {
            let mut goodputs = Vec::new();
            for recovery in RECOVERIES {
                let cell = Cell { scenario, recovery, coupling, preset };
                goodputs.push(cell.measured(runs)?.goodput_bps);
            }
            widest = widest.max(spread(&goodputs));
        }
        Ok::<f64, String>(widest)
    };
    let (modelled, real) = (widest(Preset::Chihani2011)?, widest(Preset::Rfc8684)?);
    let pair = Pair { subject: real, reference: limit };
    Ok(Row {
        paper_value: Some(format!("{} {}", sign(relation), text::quantity(limit, "ratio")).into()),
        model_value: Some(modelled.into()),
        simulated_value: Some(real.into()),
        verdict: Verdict::of_claim(holds(entry, relation, pair)),
        ..blank(expected, entry)
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
    fn recoveries_are_named_as_the_study_names_them() {
        assert_eq!(named("D-SACK, F-RTO").unwrap(), [("D-SACK", "d-sack"), ("F-RTO", "f-rto")]);
        assert!(named("CUBIC").unwrap_err().contains("`CUBIC`"));
    }
}
