//! Judges one statement of a paper by model and simulation: values, differences, verdict.

use ropewalk_base::statistics::mean;

use super::decide::{Accepted, Decision, Spread, allowed};
use super::expected::{Entry, Expected, Kind, Relation, Source};
use super::plan::{RunKey, Runs};
use super::row::{Row, Value, Verdict};
use super::sample::{self, Sample};
use super::{alheid, quantity, sarwar, slot, text, wallace};

/// The simulations that a statement requires.
pub fn keys(expected: &Expected, entry: &Entry) -> Vec<RunKey> {
    if expected.paper == alheid::PAPER {
        return alheid::keys(expected, entry);
    }
    if !entry.by.contains(&Source::Simulation) {
        return Vec::new();
    }
    if expected.paper == wallace::PAPER {
        return wallace::keys(&entry.group);
    }
    if let Some(key) = sarwar::key(&expected.paper, entry) {
        return vec![key];
    }
    sample::keys(expected, entry)
}

/// Judges one statement. The result has one row, or for a table one per row of the table.
pub fn judge(expected: &Expected, entry: &Entry, runs: &Runs) -> Vec<Row> {
    let judged = match entry.kind {
        _ if expected.paper == alheid::PAPER => alheid::judge(expected, entry, runs),
        _ if expected.paper == wallace::PAPER => wallace::judge(expected, entry, runs),
        Kind::Table if entry.quantity == sarwar::ORDER => sarwar::order(expected, entry),
        Kind::Table => slot::table(expected, entry),
        Kind::Value if entry.quantity == sarwar::FORWARD_DELAY => {
            sarwar::forward_delay(expected, entry, runs).map(|row| vec![row])
        }
        Kind::Value => value(expected, entry).map(|row| vec![row]),
        Kind::Claim => claim(expected, entry, runs),
    };
    judged.unwrap_or_else(|error| {
        let reason = Some(format!("{}: {error}", entry.id));
        vec![Row { verdict: Verdict::Failed, reason, ..empty_row(expected, entry) }]
    })
}

/// A row with the statement, without an answer.
pub fn empty_row(expected: &Expected, entry: &Entry) -> Row {
    let unit = if entry.unit == "1" { "" } else { &entry.unit };
    Row {
        paper: expected.paper.clone(),
        item: entry.group.clone(),
        case: entry.case.clone(),
        quantity: entry.quantity.clone(),
        unit: unit.to_owned(),
        paper_value: entry.paper_value.map(Value::Number),
        reference_value: entry.paper_value,
        readings: expected.readings.iter().map(|reading| reading.set.clone()).collect(),
        claim: entry.claim.clone(),
        source: entry.source.clone(),
        ..Row::default()
    }
}

fn value(expected: &Expected, entry: &Entry) -> Result<Row, String> {
    let printed = entry.paper_value.ok_or("a value without its number")?;
    let file = entry.scenario.as_ref().ok_or("a value without its scenario")?;
    let key = RunKey {
        folder: expected.paper.clone(),
        file: file.clone(),
        sets: Vec::new(),
        series: false,
    };
    let ours = quantity::of_model(&key.scenario()?, &entry.quantity)?;
    let allowed = entry.tolerance.map_or(0.0, |t| t.around(printed));
    Ok(Row {
        model_value: Some(ours.into()),
        difference: fraction(ours, printed),
        verdict: Verdict::of_value((ours - printed).abs() <= allowed),
        ..empty_row(expected, entry)
    })
}

fn claim(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Vec<Row>, String> {
    let relation = entry.relation.ok_or("a claim without its relation")?;
    if entry.by.contains(&Source::Slot) {
        return slot::claim(expected, entry, relation);
    }
    let row = match relation {
        Relation::Gain | Relation::GainOver => gain(expected, entry, relation, runs),
        Relation::ReductionBest => reduction_best(expected, entry, runs),
        Relation::GainRises | Relation::ReductionRises => rising(expected, entry, relation, runs),
        _ => compared(expected, entry, relation, runs),
    };
    row.map(|row| vec![row])
}

/// Judges an inequality between the subject and its reference.
fn compared(
    expected: &Expected,
    entry: &Entry,
    relation: Relation,
    runs: &Runs,
) -> Result<Row, String> {
    let file = scenario(entry)?;
    let sample = sample::measure(expected, entry, file, runs)?;
    let (pair, share) = (sample.mean(), entry.share.unwrap_or(1.0));
    let accepted = Accepted::of(relation, allowed(entry, pair.reference * share));
    let off = sample.spread(|p| p.subject - p.reference * share);
    let decision = accepted.ok_or("a series instead of a pair")?.decide(off);
    let reference = pair.reference.abs();
    let change = sample.spread(|p| (p.subject - p.reference) / reference);
    Ok(Row {
        simulated_value: Some(pair.subject.into()),
        model_value: (entry.against.as_deref() == Some("bound")).then(|| pair.reference.into()),
        interval: sample.interval(change).filter(|_| reference > 0.0),
        seeds: Some(sample.seeds()),
        verdict: decision.of_claim(),
        ..inequality(expected, entry, relation, pair)
    })
}

fn scenario(entry: &Entry) -> Result<&str, String> {
    entry.scenario.as_deref().ok_or_else(|| "a claim without its scenario".to_owned())
}

/// Values of a subject and its reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Value of the subject.
    pub subject: f64,
    /// Value of the reference, before the share is applied.
    pub reference: f64,
}

/// Whether an inequality holds.
pub fn holds(entry: &Entry, relation: Relation, pair: Pair) -> bool {
    let limit = pair.reference * entry.share.unwrap_or(1.0);
    let off = Spread::point(pair.subject - limit);
    let accepted = Accepted::of(relation, allowed(entry, limit));
    accepted.is_some_and(|accepted| accepted.decide(off) == Decision::Holds)
}

/// The row of an inequality. It shows the bound as text instead of a printed number.
pub fn inequality(expected: &Expected, entry: &Entry, relation: Relation, pair: Pair) -> Row {
    let sign = match relation {
        Relation::Greater => ">",
        Relation::Less => "<",
        Relation::NotLess => "≥",
        Relation::NotGreater | Relation::NotRising => "≤",
        _ => "≈",
    };
    let share = entry.share.unwrap_or(1.0);
    let whose = entry.against.as_deref().unwrap_or("the one before");
    let whose = if share == 1.0 {
        whose.to_owned()
    } else {
        format!("{} of {whose}", text::quantity(share, "ratio"))
    };
    let mut row = empty_row(expected, entry);
    let limit = pair.reference * share;
    row.paper_value = Some(format!("{sign} {} ({whose})", text::quantity(limit, &row.unit)).into());
    row.reference_value = Some(pair.reference);
    row.difference = fraction(pair.subject, pair.reference);
    row
}

/// `(subject - reference) / reference`, 0 if both are equal. `None` if the reference is not positive, because the
/// sign of the quotient would be meaningless.
pub fn fraction(subject: f64, reference: f64) -> Option<f64> {
    if subject == reference {
        return Some(0.0);
    }
    (reference > 0.0).then_some((subject - reference) / reference)
}

/// Judges a gain in one scenario, both printed and measured as a fraction.
fn gain(
    expected: &Expected,
    entry: &Entry,
    relation: Relation,
    runs: &Runs,
) -> Result<Row, String> {
    let printed = entry.paper_value.ok_or("a gain without its number")?;
    let file = scenario(entry)?;
    let sample = sample::measure(expected, entry, file, runs)?;
    let mut row = share_row(expected, entry, relation, (&sample, 1.0))?;
    if relation == Relation::GainOver {
        row.paper_value = Some(format!("> {}", text::quantity(printed, &row.unit)).into());
    }
    Ok(row)
}

/// Judges an "up to": the largest reduction over all scenarios must equal the printed one.
fn reduction_best(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Row, String> {
    let mut best: Option<(Sample, f64)> = None;
    for file in entry.scenario.iter().chain(&entry.scenarios) {
        let sample = sample::measure(expected, entry, file, runs)?;
        let changes = sample.changes()?;
        let reduction = -mean(&changes);
        if best.as_ref().is_none_or(|(_, most)| reduction > *most) {
            best = Some((sample, reduction));
        }
    }
    let (sample, _) = best.ok_or("a reduction without scenarios")?;
    share_row(expected, entry, Relation::ReductionBest, (&sample, -1.0))
}

/// A relative change, times `sign`, compared with the printed one.
fn share_row(
    expected: &Expected,
    entry: &Entry,
    relation: Relation,
    (sample, sign): (&Sample, f64),
) -> Result<Row, String> {
    let printed = entry.paper_value.ok_or("a gain without its number")?;
    sample.changes()?;
    let change = sample.spread(|p| sign * (p.subject - p.reference) / p.reference);
    let off = Spread {
        mean: change.mean - printed,
        least: change.least - printed,
        most: change.most - printed,
    };
    let accepted = Accepted::of(relation, allowed(entry, printed)).ok_or("no single change")?;
    Ok(Row {
        simulated_value: Some(change.mean.into()),
        difference_points: Some(off.mean),
        interval: sample.interval(change),
        seeds: Some(sample.seeds()),
        verdict: accepted.decide(off).of_claim(),
        ..empty_row(expected, entry)
    })
}

/// Judges whether the relative change grows from each scenario to the next.
fn rising(
    expected: &Expected,
    entry: &Entry,
    relation: Relation,
    runs: &Runs,
) -> Result<Row, String> {
    let sign = if relation == Relation::GainRises { 1.0 } else { -1.0 };
    let measured = entry.scenarios.iter().map(|file| sample::measure(expected, entry, file, runs));
    let samples = measured.collect::<Result<Vec<Sample>, String>>()?;
    let changes: Vec<Vec<f64>> = samples.iter().map(Sample::changes).collect::<Result<_, _>>()?;
    let mut decision = Decision::Holds;
    for (from, to) in changes.iter().zip(changes.iter().skip(1)) {
        let pairs = from.iter().zip(to);
        let pairs = pairs.map(|(from, to)| Pair { subject: sign * to, reference: sign * from });
        let step = Sample::new(pairs.collect()).spread(|p| p.subject - p.reference);
        decision = decision.and(Accepted::POSITIVE.decide(step));
    }
    let shown = changes.iter().map(|c| text::signed(sign * mean(c), "%")).collect::<Vec<_>>();
    Ok(Row {
        paper_value: Some("rises".to_owned().into()),
        simulated_value: Some(shown.join(", ").into()),
        seeds: samples.first().map(Sample::seeds),
        verdict: decision.of_claim(),
        ..empty_row(expected, entry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(keys: &str) -> Entry {
        let base = "id = 'x'\ngroup = 'g'\ncase = 'c'\nquantity = 'goodput_bps'\nunit = 'bit/s'\n\
                    kind = 'claim'\nby = ['simulation']\nsource = 's'\n";
        toml::from_str(&format!("{base}{keys}")).unwrap()
    }

    #[test]
    fn inequalities_hold_where_they_should() {
        use Relation::{Greater, Less, Near, NotGreater, NotLess};
        let exact = entry("");
        let tolerant = entry("tolerance = { relative = 0.1 }");
        let half = entry("share = 0.5");
        let cases = [
            (&exact, Greater, 2.0, 1.0, true),
            (&exact, Greater, 1.0, 1.0, false),
            (&exact, Less, 1.0, 1.0, false),
            (&exact, Less, 0.9, 1.0, true),
            (&exact, NotLess, 0.99, 1.0, false),
            (&tolerant, NotLess, 0.91, 1.0, true),
            (&tolerant, NotLess, 0.89, 1.0, false),
            (&tolerant, NotGreater, 1.09, 1.0, true),
            (&tolerant, NotGreater, 1.11, 1.0, false),
            (&tolerant, Near, 1.11, 1.0, false),
            (&tolerant, Near, 0.91, 1.0, true),
            (&half, Less, 0.6, 1.0, false),
            (&half, Less, 0.4, 1.0, true),
            (&exact, Greater, f64::NAN, 1.0, false),
        ];
        for (entry, relation, subject, reference, expected) in cases {
            let pair = Pair { subject, reference };
            assert_eq!(holds(entry, relation, pair), expected, "{relation:?} {pair:?}");
        }
    }

    #[test]
    fn differences_are_fractions_of_the_reference() {
        assert_eq!(fraction(1.5, 1.0), Some(0.5));
        assert_eq!(fraction(0.0, 0.0), Some(0.0));
        assert_eq!(fraction(1.0, 0.0), None);
        assert_eq!(fraction(-0.2, -0.1), None);
    }
}
