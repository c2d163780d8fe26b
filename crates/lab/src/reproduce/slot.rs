//! Statements that the slot model answers: tables row by row, values at an instant, claims.

use ropewalk_models::slot::{
    Plan, PlannedCapacity, SlotModel, SlotPath, SlotScheduler, SlotTrace, TableRow,
};

use super::csv::Table;
use super::data;
use super::expected::{Entry, Expected, Planned, Relation, SlotSetup};
use super::judge::{Pair, blank, fraction, holds, inequality};
use super::row::{Row, Verdict};

/// The paper's slot model, run by these rules.
///
/// # Errors
/// No such rules, or a model that refuses them, in words.
pub fn run(setup: &SlotSetup, scheduler: &str, plan: Plan) -> Result<SlotTrace, String> {
    let paths = setup.delay_ticks.iter().zip(&setup.capacity_packets);
    let paths = paths
        .map(|(&delay_ticks, &capacity_packets)| SlotPath { delay_ticks, capacity_packets })
        .collect();
    let scheduler = match scheduler {
        "round-robin" => SlotScheduler::RoundRobin,
        "delay-aware" => SlotScheduler::DelayAware(plan),
        other => return Err(format!("the slot model has no scheduler `{other}`")),
    };
    let model = SlotModel { paths, buffer_packets: setup.buffer_packets, scheduler };
    let last_tick = (setup.duration_s / setup.quantum_s).round() as u64;
    model.run(last_tick).map_err(|e| e.to_string())
}

/// The plan with this error, read as the statement reads it.
pub fn plan(entry: &Entry, error: f64) -> Plan {
    let capacity = match entry.planned_capacity {
        Some(Planned::PerRate) => PlannedCapacity::PerRate,
        _ => PlannedCapacity::PerWindow,
    };
    match entry.error_on {
        Some(on) => Plan::with_errors(&on.errors(error), capacity),
        None => Plan::perfect(),
    }
}

fn setup(expected: &Expected) -> Result<&SlotSetup, String> {
    expected.slot.as_ref().ok_or_else(|| "this paper has no slot model".to_owned())
}

/// A quantity of a run of the slot model.
///
/// # Errors
/// No such quantity, in words.
pub fn measure(setup: &SlotSetup, trace: &SlotTrace, quantity: &str) -> Result<f64, String> {
    let from = (setup.warmup_s / setup.quantum_s).round() as u64;
    match quantity {
        "slot.goodput_bps" => Ok(trace.goodput_bps(from, setup.packet_bytes, setup.quantum_s)),
        "slot.longest_silence_s" => Ok(trace.longest_silence_ticks(from) as f64 * setup.quantum_s),
        "slot.mean_in_buffer_packets" => Ok(trace.mean_packets(from, |i| i.in_buffer_packets)),
        "slot.mean_unacknowledged_packets" => {
            Ok(trace.mean_packets(from, |i| i.unacknowledged_packets))
        }
        other => Err(format!("the slot model has no `{other}`")),
    }
}

/// Packets in the receive buffer at the instant of the statement.
///
/// # Errors
/// What the statement lacks, in words.
pub fn value_at(expected: &Expected, entry: &Entry) -> Result<f64, String> {
    let setup = setup(expected)?;
    let at_ms = entry.at_ms.ok_or("a value of the slot model without its instant")?;
    let tick = (at_ms as f64 * 1e-3 / setup.quantum_s).round() as u64;
    let subject = entry.subject.as_deref().unwrap_or_default();
    let trace = run(setup, subject, Plan::perfect())?;
    let until = trace.instants.partition_point(|i| i.tick <= tick);
    let instant = until.checked_sub(1).and_then(|i| trace.instants.get(i));
    match entry.quantity.as_str() {
        "slot.in_buffer_packets" => Ok(instant.map_or(0, |i| i.in_buffer_packets) as f64),
        other => Err(format!("the slot model has no `{other}` at an instant")),
    }
}

/// One row for each row of the printed table.
///
/// # Errors
/// What is wrong with the table or the model, in words.
pub fn table(expected: &Expected, entry: &Entry) -> Result<Vec<Row>, String> {
    let name = entry.table.as_deref().ok_or("a table without its file")?;
    let file = data::folder(&expected.paper).and_then(|folder| folder.file(name));
    let printed = Table::parse(file.ok_or_else(|| format!("there is no file {name}"))?)?;
    let subject = entry.subject.as_deref().unwrap_or_default();
    let ours = run(setup(expected)?, subject, Plan::perfect())?.table();
    let mut rows = Vec::new();
    for line in printed.lines() {
        let tick = line.number("sent_ms")? as u64;
        let ours = ours.iter().find(|row| row.sent_tick == tick).map(cells);
        let ours = ours.ok_or_else(|| format!("the slot model has no row at {tick} ms"))?;
        let same = ours.iter().map(String::as_str).eq(line.cells().iter().copied());
        rows.push(Row {
            case: format!("{}, sent at {tick} ms", entry.case),
            paper_value: Some(shown(line.cells()).into()),
            model_value: Some(shown(&ours).into()),
            verdict: Verdict::of_value(same),
            ..blank(expected, entry)
        });
    }
    Ok(rows)
}

/// A row of the model in the columns of the printed tables, which have two paths.
fn cells(row: &TableRow) -> Vec<String> {
    let runs = |list: &[ropewalk_models::PacketRange]| {
        list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let of = |lists: &[Vec<ropewalk_models::PacketRange>], path: usize| {
        lists.get(path).map(|list| runs(list)).unwrap_or_default()
    };
    vec![
        row.sent_tick.to_string(),
        of(&row.sent, 0),
        of(&row.sent, 1),
        row.received_tick.to_string(),
        of(&row.received, 0),
        of(&row.received, 1),
        row.delivered.map(|range| range.to_string()).unwrap_or_default(),
        row.in_buffer_packets.to_string(),
    ]
}

/// `1-2, 3-7 → 1-2, – : 1-2; 0 held`: sent, received, delivered, left in the buffer.
fn shown<S: AsRef<str>>(cells: &[S]) -> String {
    let cell = |i: usize| {
        let text = cells.get(i).map(AsRef::as_ref).unwrap_or_default();
        if text.is_empty() { "–" } else { text }
    };
    let (sent, received) = ([cell(1), cell(2)].join(", "), [cell(4), cell(5)].join(", "));
    format!("{sent} → {received}: {}; {} held", cell(6), cell(7))
}

/// A claim over the slot model; with an error of the delays it must hold at each of them, and
/// the row shows the one that comes nearest to failing.
///
/// # Errors
/// What the statement lacks, in words.
pub fn claim(expected: &Expected, entry: &Entry, relation: Relation) -> Result<Row, String> {
    let setup = setup(expected)?;
    let values = by_error(setup, entry)?;
    let (pair, all_hold) = if relation == Relation::NotRising {
        not_rising(entry, &values)?
    } else {
        let reference = reference(setup, entry)?;
        let pairs = values.iter().map(|&subject| Pair { subject, reference });
        let all_hold = pairs.clone().all(|pair| holds(entry, relation, pair));
        let up = matches!(relation, Relation::Less | Relation::NotGreater);
        let worst = pairs.reduce(|a, b| {
            let b_is_worse = if up { b.subject > a.subject } else { b.subject < a.subject };
            if b_is_worse { b } else { a }
        });
        (worst.ok_or("no errors to try")?, all_hold)
    };
    let mut row = inequality(expected, entry, relation, pair);
    row.model_value = Some(pair.subject.into());
    row.difference = fraction(pair.subject, pair.reference);
    row.verdict = Verdict::of_claim(all_hold);
    Ok(row)
}

/// The subject's quantity at each error; one value where the statement knows no error.
///
/// # Errors
/// What the statement lacks, in words.
pub fn by_error(setup: &SlotSetup, entry: &Entry) -> Result<Vec<f64>, String> {
    let subject = entry.subject.as_deref().unwrap_or_default();
    let errors: &[f64] = if entry.error_on.is_some() { &setup.delay_errors } else { &[0.0] };
    let one =
        |error: &f64| measure(setup, &run(setup, subject, plan(entry, *error))?, &entry.quantity);
    errors.iter().map(one).collect()
}

fn reference(setup: &SlotSetup, entry: &Entry) -> Result<f64, String> {
    match entry.against.as_deref() {
        Some("capacity") => {
            let paths = setup.delay_ticks.iter().zip(&setup.capacity_packets);
            let per_tick: f64 = paths.map(|(d, c)| *c as f64 / *d as f64).sum();
            Ok(per_tick * setup.packet_bytes * 8.0 / setup.quantum_s)
        }
        Some(scheduler) => {
            let trace = run(setup, scheduler, Plan::perfect())?;
            measure(setup, &trace, &entry.quantity)
        }
        None => Err("a claim without its reference".to_owned()),
    }
}

/// The step that rises most, and whether none does.
fn not_rising(entry: &Entry, values: &[f64]) -> Result<(Pair, bool), String> {
    let steps = values.windows(2).map(|w| Pair { subject: w[1], reference: w[0] });
    let all = steps.clone().all(|pair| holds(entry, Relation::NotRising, pair));
    let rise = |pair: &Pair| pair.subject - pair.reference;
    let worst = steps.reduce(|a, b| if rise(&b) > rise(&a) { b } else { a });
    Ok((worst.ok_or("a series of one value")?, all))
}
