//! One statement of a paper against model and simulation: values, differences, verdict.

use ropewalk_scenario::SchedulerName;

use super::expected::{Entry, Expected, Kind, Relation, Source};
use super::plan::{RunKey, Runs};
use super::row::{Row, Value, Verdict};
use super::{alheid, quantity, slot, text, wallace};

/// The simulations that a statement takes.
pub fn keys(paper: &str, entry: &Entry) -> Vec<RunKey> {
    if paper == alheid::PAPER {
        return alheid::keys(entry);
    }
    if !entry.by.contains(&Source::Simulation) {
        return Vec::new();
    }
    if paper == wallace::PAPER {
        return wallace::keys(&entry.group);
    }
    let schedulers = [&entry.subject, &entry.against].into_iter().flatten();
    let schedulers: Vec<&String> = schedulers.filter(|name| is_scheduler(name)).collect();
    let files = entry.scenario.iter().chain(&entry.scenarios);
    files.flat_map(|file| schedulers.iter().map(|s| RunKey::new(paper, file, s))).collect()
}

/// Judges one statement. A table yields a row for each of its own.
pub fn judge(expected: &Expected, entry: &Entry, runs: &Runs) -> Vec<Row> {
    let judged = match entry.kind {
        _ if expected.paper == alheid::PAPER => alheid::judge(expected, entry, runs),
        _ if expected.paper == wallace::PAPER => wallace::judge(expected, entry, runs),
        Kind::Table => slot::table(expected, entry),
        Kind::Value => value(expected, entry).map(|row| vec![row]),
        Kind::Claim => claim(expected, entry, runs).map(|row| vec![row]),
    };
    judged.unwrap_or_else(|error| {
        let reason = Some(format!("{}: {error}", entry.id));
        vec![Row { verdict: Verdict::Failed, reason, ..blank(expected, entry) }]
    })
}

/// A row that says what is asked, and answers nothing yet.
pub fn blank(expected: &Expected, entry: &Entry) -> Row {
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
    let ours = if entry.by.contains(&Source::Slot) {
        slot::value_at(expected, entry)?
    } else {
        let file = entry.scenario.as_ref().ok_or("a value without its scenario")?;
        let key = RunKey {
            folder: expected.paper.clone(),
            file: file.clone(),
            sets: Vec::new(),
            series: false,
        };
        quantity::of_model(&key.scenario()?, &entry.quantity)?
    };
    let allowed = entry.tolerance.map_or(0.0, |t| t.around(printed));
    Ok(Row {
        model_value: Some(ours.into()),
        difference: fraction(ours, printed),
        verdict: Verdict::of_value((ours - printed).abs() <= allowed),
        ..blank(expected, entry)
    })
}

fn claim(expected: &Expected, entry: &Entry, runs: &Runs) -> Result<Row, String> {
    let relation = entry.relation.ok_or("a claim without its relation")?;
    if entry.by.contains(&Source::Slot) {
        return slot::claim(expected, entry, relation);
    }
    let paper = &expected.paper;
    match relation {
        Relation::Gain | Relation::ReductionBest => relative(expected, entry, relation, runs),
        _ => {
            let file = entry.scenario.as_ref().ok_or("a claim without its scenario")?;
            let pair = measure(paper, entry, file, runs)?;
            let holds = holds(entry, relation, pair);
            let mut row = inequality(expected, entry, relation, pair);
            row.simulated_value = Some(pair.subject.into());
            row.model_value = bound(paper, entry, file, runs)?.map(Value::Number);
            row.verdict = Verdict::of_claim(holds);
            Ok(row)
        }
    }
}

/// A subject and what it is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// What the statement is about.
    pub subject: f64,
    /// What it is compared with, the share not yet taken.
    pub reference: f64,
}

/// Whether an inequality holds.
pub fn holds(entry: &Entry, relation: Relation, pair: Pair) -> bool {
    let limit = pair.reference * entry.share.unwrap_or(1.0);
    let allowed = entry.tolerance.map_or(0.0, |t| t.around(limit));
    match relation {
        Relation::Greater => pair.subject > limit,
        Relation::Less => pair.subject < limit,
        Relation::NotLess => pair.subject >= limit - allowed,
        Relation::NotGreater | Relation::NotRising => pair.subject <= limit + allowed,
        Relation::Near => (pair.subject - limit).abs() <= allowed,
        Relation::Gain | Relation::ReductionBest => false,
    }
}

/// The row of an inequality, with the bound in words in place of a printed number.
pub fn inequality(expected: &Expected, entry: &Entry, relation: Relation, pair: Pair) -> Row {
    let sign = match relation {
        Relation::Greater => ">",
        Relation::Less => "<",
        Relation::NotLess => "≥",
        Relation::NotGreater | Relation::NotRising => "≤",
        Relation::Near | Relation::Gain | Relation::ReductionBest => "≈",
    };
    let share = entry.share.unwrap_or(1.0);
    let whose = entry.against.as_deref().unwrap_or("the one before");
    let whose = if share == 1.0 {
        whose.to_owned()
    } else {
        format!("{} of {whose}", text::quantity(share, "ratio"))
    };
    let mut row = blank(expected, entry);
    let limit = pair.reference * share;
    row.paper_value = Some(format!("{sign} {} ({whose})", text::quantity(limit, &row.unit)).into());
    row.reference_value = Some(pair.reference);
    row.difference = fraction(pair.subject, pair.reference);
    row
}

/// `(subject - reference) / reference`; none where that is no number.
pub fn fraction(subject: f64, reference: f64) -> Option<f64> {
    if subject == reference {
        return Some(0.0);
    }
    (reference != 0.0).then_some((subject - reference) / reference)
}

/// Gains and reductions: printed as a share, measured as one.
fn relative(
    expected: &Expected,
    entry: &Entry,
    relation: Relation,
    runs: &Runs,
) -> Result<Row, String> {
    let printed = entry.paper_value.ok_or("a gain without its number")?;
    let mut best = f64::NEG_INFINITY;
    for file in entry.scenario.iter().chain(&entry.scenarios) {
        let pair = measure(&expected.paper, entry, file, runs)?;
        let change = fraction(pair.subject, pair.reference).ok_or("a gain over nothing")?;
        best = best.max(if relation == Relation::Gain { change } else { -change });
    }
    let allowed = entry.tolerance.map_or(0.0, |t| t.around(printed));
    let holds = match relation {
        Relation::Gain => (best - printed).abs() <= allowed,
        _ => best >= printed - allowed,
    };
    Ok(Row {
        simulated_value: Some(best.into()),
        difference: fraction(best, printed),
        verdict: Verdict::of_claim(holds),
        ..blank(expected, entry)
    })
}

fn measure(paper: &str, entry: &Entry, file: &str, runs: &Runs) -> Result<Pair, String> {
    let subject = entry.subject.as_deref().ok_or("a claim without its subject")?;
    let against = entry.against.as_deref().ok_or("a claim without its reference")?;
    let of = |scheduler: &str| {
        let key = RunKey::new(paper, file, scheduler);
        quantity::of_run(&runs.get(&key)?.result, &key.scenario()?, &entry.quantity)
    };
    let key = RunKey::new(paper, file, subject);
    let reference = match against {
        "model" => quantity::of_model(&key.scenario()?, &entry.quantity)?,
        "capacity" if is_share(&entry.quantity) => 1.0,
        "capacity" => quantity::capacity_bps(&key.scenario()?),
        "bound" => {
            let bound = runs.get(&key)?.result.flow_control_bound_bps;
            bound.ok_or("shared links have no flow-control bound")?
        }
        scheduler => of(scheduler)?,
    };
    Ok(Pair { subject: of(subject)?, reference })
}

/// What flow control lets through at most, beside a goodput.
fn bound(paper: &str, entry: &Entry, file: &str, runs: &Runs) -> Result<Option<f64>, String> {
    let subject = entry.subject.as_deref().ok_or("a claim without its subject")?;
    let run = runs.get(&RunKey::new(paper, file, subject))?;
    let wanted = entry.quantity == "goodput_wire_bps";
    Ok(run.result.flow_control_bound_bps.filter(|_| wanted))
}

fn is_share(quantity: &str) -> bool {
    quantity.ends_with("utilisation") || quantity == "delivered_share"
}

fn is_scheduler(name: &str) -> bool {
    name.parse::<SchedulerName>().is_ok()
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
    }

    #[test]
    fn a_claim_takes_a_run_per_scheduler_and_scenario_and_none_for_a_model() {
        let keys_of = |text: &str| keys("kuhn2014", &entry(text)).len();
        assert_eq!(keys_of("subject = 'daps'\nagainst = 'round-robin'\nscenario = 'a'"), 2);
        assert_eq!(keys_of("subject = 'daps'\nagainst = 'bound'\nscenario = 'a'"), 1);
        let two = "subject = 'daps'\nagainst = 'round-robin'\nscenarios = ['a', 'b']";
        assert_eq!(keys_of(two), 4);
    }
}
