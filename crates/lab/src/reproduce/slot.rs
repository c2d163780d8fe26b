//! Judges the statements that the slot model answers: tables row by row, and claims.

use ropewalk_models::slot::{Plan, SlotScheduler, SlotTrace};

use super::csv::Table;
use super::data;
use super::expected::{Entry, ErrorOn, Expected, Relation, SlotErrors};
use super::judge::{Pair, empty_row, fraction, holds, inequality};
use super::row::{Row, Value, Verdict};
use crate::slot::{Planned, SlotRow, SlotSetup};

/// The paper's slot model with this scheduler.
///
/// # Errors
/// A message if there is no such scheduler, or if the model rejects the setup.
pub fn run(setup: &SlotSetup, scheduler: &str, plan: Plan) -> Result<SlotTrace, String> {
    let scheduler = match scheduler {
        "round-robin" => SlotScheduler::RoundRobin,
        "delay-aware" => SlotScheduler::DelayAware(plan),
        other => return Err(format!("the slot model has no scheduler `{other}`")),
    };
    setup.run(scheduler).map_err(|e| e.to_string())
}

fn setup(expected: &Expected) -> Result<&SlotSetup, String> {
    expected.slot.as_ref().ok_or_else(|| "this paper has no slot model".to_owned())
}

fn errors(expected: &Expected) -> Result<&SlotErrors, String> {
    expected.slot_errors.as_ref().ok_or_else(|| "this paper has no wrong delays".to_owned())
}

/// A quantity of a run of the slot model.
///
/// # Errors
/// A message if there is no such quantity.
pub fn measure(setup: &SlotSetup, trace: &SlotTrace, quantity: &str) -> Result<f64, String> {
    let figures = setup.figures(trace);
    match quantity {
        "slot.goodput_bps" => Ok(figures.goodput_bps),
        "slot.longest_silence_s" => Ok(figures.longest_silence_s),
        "slot.mean_in_buffer_packets" => Ok(figures.mean_in_buffer_packets),
        "slot.mean_unacknowledged_packets" => Ok(figures.mean_unacknowledged_packets),
        other => Err(format!("the slot model has no `{other}`")),
    }
}

/// One row for each row of the printed table.
///
/// # Errors
/// A message if the table or the model is invalid.
pub fn table(expected: &Expected, entry: &Entry) -> Result<Vec<Row>, String> {
    let name = entry.table.as_deref().ok_or("a table without its file")?;
    let file = data::folder(&expected.paper).and_then(|folder| folder.file(name));
    let printed = Table::parse(file.ok_or_else(|| format!("there is no file {name}"))?)?;
    let subject = entry.subject.as_deref().unwrap_or_default();
    let ours = run(setup(expected)?, subject, Plan::perfect())?.table();
    let mut rows = Vec::new();
    for line in printed.lines() {
        let tick = line.number("sent_ms")? as u64;
        let ours = ours.iter().find(|row| row.sent_tick == tick).map(|row| cells(row.into()));
        let ours = ours.ok_or_else(|| format!("the slot model has no row at {tick} ms"))?;
        let same = ours.iter().map(String::as_str).eq(line.cells().iter().copied());
        rows.push(Row {
            case: format!("{}, sent at {tick} ms", entry.case),
            paper_value: Some(shown(line.cells()).into()),
            model_value: Some(shown(&ours).into()),
            verdict: Verdict::of_value(same),
            ..empty_row(expected, entry)
        });
    }
    Ok(rows)
}

/// A row of the model in the columns of the printed tables, which have two paths.
fn cells(row: SlotRow) -> Vec<String> {
    let of = |lists: &[String], path: usize| lists.get(path).cloned().unwrap_or_default();
    vec![
        row.sent_tick.to_string(),
        of(&row.sent, 0),
        of(&row.sent, 1),
        row.received_tick.to_string(),
        of(&row.received, 0),
        of(&row.received, 1),
        row.delivered,
        row.in_buffer_packets.to_string(),
    ]
}

/// Formats `1-2, 3-7 → 1-2, – : 1-2; 0 held`: sent, received, delivered, left in the buffer.
fn shown<S: AsRef<str>>(cells: &[S]) -> String {
    let cell = |i: usize| {
        let text = cells.get(i).map(AsRef::as_ref).unwrap_or_default();
        if text.is_empty() { "–" } else { text }
    };
    let (sent, received) = ([cell(1), cell(2)].join(", "), [cell(4), cell(5)].join(", "));
    format!("{sent} → {received}: {}; {} held", cell(6), cell(7))
}

/// Judges a claim by the slot model. A claim about wrong delays is judged in the stated reading at every error;
/// the other readings are shown as separate rows without a verdict.
///
/// # Errors
/// A message if the statement is incomplete.
pub fn claim(expected: &Expected, entry: &Entry, relation: Relation) -> Result<Vec<Row>, String> {
    let setup = setup(expected)?;
    if !entry.wrong_delays {
        let trace = run(setup, entry.subject.as_deref().unwrap_or_default(), Plan::perfect())?;
        let subject = measure(setup, &trace, &entry.quantity)?;
        let pair = Pair { subject, reference: reference(setup, entry)? };
        let (row, holds) = judged(expected, entry, relation, (pair, holds(entry, relation, pair)));
        return Ok(vec![Row { verdict: Verdict::of_claim(holds), ..row }]);
    }
    let stated = errors(expected)?;
    let mut rows = Vec::new();
    let mut holding = 0;
    for reading in Reading::all() {
        let values = by_error(setup, stated, reading)?;
        let decided = decide(setup, entry, relation, &values)?;
        let (mut row, holds) = judged(expected, entry, relation, decided);
        holding += usize::from(holds);
        row.readings.extend(reading.settings());
        if reading == Reading::stated(stated) {
            row.readings.push(stated.text.clone());
            rows.insert(0, Row { verdict: Verdict::of_claim(holds), ..row });
        } else {
            let word = if holds { "holds" } else { "fails" };
            let case = format!("{}, {reading}: {word}", entry.case);
            rows.push(Row { case, verdict: Verdict::Shown, ..row });
        }
    }
    let count = format!("; holds in {holding} of {} readings", rows.len());
    if let Some(Value::Text(bound)) = rows.first_mut().and_then(|row| row.paper_value.as_mut()) {
        *bound += &count;
    }
    Ok(rows)
}

fn judged(
    expected: &Expected,
    entry: &Entry,
    relation: Relation,
    (pair, holds): (Pair, bool),
) -> (Row, bool) {
    let mut row = inequality(expected, entry, relation, pair);
    row.model_value = Some(pair.subject.into());
    row.difference = fraction(pair.subject, pair.reference);
    (row, holds)
}

/// One interpretation of a wrong delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    error_on: ErrorOn,
    planned: Planned,
}

impl Reading {
    /// All six readings.
    pub fn all() -> impl Iterator<Item = Self> {
        let each = |error_on| Planned::ALL.map(|planned| Self { error_on, planned });
        ErrorOn::ALL.into_iter().flat_map(each)
    }

    /// The reading that the statement uses.
    pub fn stated(errors: &SlotErrors) -> Self {
        Self { error_on: errors.error_on, planned: errors.planned_capacity }
    }

    /// The plan with an error of `error`, 1 for 100 %.
    pub fn plan(self, error: f64) -> Plan {
        Plan::with_errors(&self.error_on.errors(error), self.planned.into())
    }

    fn settings(self) -> [String; 2] {
        let (on, planned) = (self.error_on.as_str(), self.planned.as_str());
        [format!("error on {on}"), format!("capacity planned {planned}")]
    }
}

impl std::fmt::Display for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}", self.error_on.as_str(), self.planned.as_str())
    }
}

/// Goodput at each error, bit/s.
///
/// # Errors
/// A message if the model rejects the setup.
pub fn by_error(
    setup: &SlotSetup,
    errors: &SlotErrors,
    reading: Reading,
) -> Result<Vec<f64>, String> {
    let one = |error: &f64| {
        let trace = setup.run_delay_aware(reading.plan(*error)).map_err(|e| e.to_string())?;
        Ok(setup.figures(&trace).goodput_bps)
    };
    errors.values.iter().map(one).collect()
}

/// The value closest to failing, and whether the claim holds at each error.
fn decide(
    setup: &SlotSetup,
    entry: &Entry,
    relation: Relation,
    values: &[f64],
) -> Result<(Pair, bool), String> {
    if relation == Relation::NotRising {
        return not_rising(entry, values);
    }
    let (first, rest) = values.split_first().ok_or("no errors to try")?;
    let (reference, values) = match entry.against.as_deref() {
        Some("no error") => (*first, rest),
        _ => (reference(setup, entry)?, values),
    };
    let pairs = values.iter().map(|&subject| Pair { subject, reference });
    let all_hold = pairs.clone().all(|pair| holds(entry, relation, pair));
    let up = matches!(relation, Relation::Less | Relation::NotGreater);
    let worst = pairs.reduce(|a, b| {
        let b_is_worse = if up { b.subject > a.subject } else { b.subject < a.subject };
        if b_is_worse { b } else { a }
    });
    Ok((worst.ok_or("no errors to try")?, all_hold))
}

fn reference(setup: &SlotSetup, entry: &Entry) -> Result<f64, String> {
    match entry.against.as_deref() {
        Some("capacity") => Ok(setup.capacity_bps()),
        Some(scheduler) => {
            let trace = run(setup, scheduler, Plan::perfect())?;
            measure(setup, &trace, &entry.quantity)
        }
        None => Err("a claim without its reference".to_owned()),
    }
}

/// The step with the largest rise, and whether no step rises.
fn not_rising(entry: &Entry, values: &[f64]) -> Result<(Pair, bool), String> {
    let steps = values.windows(2).map(|w| Pair { subject: w[1], reference: w[0] });
    let all = steps.clone().all(|pair| holds(entry, Relation::NotRising, pair));
    let rise = |pair: &Pair| pair.subject - pair.reference;
    let worst = steps.reduce(|a, b| if rise(&b) > rise(&a) { b } else { a });
    Ok((worst.ok_or("a series of one value")?, all))
}
