//! `ropewalk predict --model slot`: Sarwar et al. 2013, packet by packet.

use ropewalk_lab::predict::{
    Planned, SlotPrediction, SlotRow, SlotSchedulerPrediction, predict_slot,
};
use ropewalk_scenario::Scenario;

use crate::console::{width, wrapped};
use crate::failure::Failure;
use crate::output;
use crate::printer::{count, percent, rate, size, time};
use crate::table::Table;

/// Rows of the packet table shown on the terminal; the document has the whole period.
const ROWS_SHOWN: usize = 12;

/// Runs the slot model and shows its results.
///
/// # Errors
/// A scenario that the model does not support.
pub fn execute(
    title: &str,
    scenario: &Scenario,
    planned: Option<Planned>,
    json: bool,
) -> Result<(), Failure> {
    let found = predict_slot(scenario, planned.unwrap_or_default()).map_err(|why| {
        let help = "the closed forms (without --model slot) take more scenarios";
        Failure::input(format!("the slot model has no answer: {why}"), help)
    })?;
    if json {
        return output::print_json(&found);
    }
    let measured = found.duration_s - found.warmup_s;
    let mut parts = vec![
        format!(
            "{title}: slot model, {} after {} of warm-up\n",
            time(measured),
            time(found.warmup_s)
        ),
        paths(&found),
        figures(&found),
    ];
    parts.extend(found.schedulers.iter().map(|one| packets(&found, one)));
    parts.push(notes(&found));
    output::print(&parts.join("\n"))
}

fn paths(found: &SlotPrediction) -> String {
    let mut table = Table::new(&["path", "forward delay", "packets per delay", "delay error"]);
    for path in &found.paths {
        table.row(vec![
            path.name.clone(),
            time(path.delay_ticks as f64 * found.quantum_s),
            count(path.capacity_packets),
            percent(path.delay_error),
        ]);
    }
    table.text(width())
}

fn figures(found: &SlotPrediction) -> String {
    let headings = [
        "scheduler",
        "goodput",
        "of rates",
        "longest silence",
        "held",
        "held at most",
        "unacknowledged",
    ];
    let mut table = Table::new(&headings);
    for one in &found.schedulers {
        let figures = &one.figures;
        table.row(vec![
            one.name.to_owned(),
            rate(figures.goodput_bps),
            percent(figures.goodput_bps / found.capacity_bps),
            time(figures.longest_silence_s),
            format!("{:.1}", figures.mean_in_buffer_packets),
            count(figures.max_in_buffer_packets),
            format!("{:.1}", figures.mean_unacknowledged_packets),
        ]);
    }
    table.text(width())
}

/// The first period, in the columns of the paper's Tables I and II.
fn packets(found: &SlotPrediction, one: &SlotSchedulerPrediction) -> String {
    let names = found.paths.iter().map(|path| path.name.as_str());
    let headings: Vec<String> = [one.name.to_owned()]
        .into_iter()
        .chain(names.clone().map(|name| format!("sent, {name}")))
        .chain(["received".to_owned()])
        .chain(names.map(|name| format!("received, {name}")))
        .chain(["delivered".to_owned(), "held".to_owned()])
        .collect();
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for row in one.table.iter().take(ROWS_SHOWN) {
        table.row(cells(found.quantum_s, row));
    }
    table.text(width())
}

fn cells(quantum_s: f64, row: &SlotRow) -> Vec<String> {
    let at = |tick: u64| time(tick as f64 * quantum_s);
    let or_dash = |text: &String| if text.is_empty() { "-".to_owned() } else { text.clone() };
    let mut cells = vec![at(row.sent_tick)];
    cells.extend(row.sent.iter().map(or_dash));
    cells.push(at(row.received_tick));
    cells.extend(row.received.iter().map(or_dash));
    cells.extend([or_dash(&row.delivered), count(row.in_buffer_packets)]);
    cells
}

fn notes(found: &SlotPrediction) -> String {
    let buffer = format!(
        "receive buffer of {} packets of {}; no loss, no queue, no headers; packets are held while \
         an earlier one is missing",
        count(found.buffer_packets),
        size(found.packet_bytes)
    );
    let mut text = wrapped("note: ", &buffer, width());
    if found.paths.iter().any(|path| path.delay_error != 0.0) {
        let kept = match found.planned {
            Planned::PerWindow => "packets per forward delay",
            Planned::PerRate => "rate",
        };
        let planned =
            format!("delay-aware plans with the wrong delays and keeps each path's {kept}");
        text += &wrapped("note: ", &planned, width());
    }
    text
}
