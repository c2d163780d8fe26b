//! `ropewalk predict --model slot`: Sarwar et al. 2013, packet by packet.

use ropewalk_lab::predict::{
    Planned, SlotPrediction, SlotRow, SlotSchedulerPrediction, predict_slot,
};
use ropewalk_lab::result::Unit;
use ropewalk_scenario::Scenario;

use crate::console::{layout, width, wrapped};
use crate::failure::Failure;
use crate::format::{Captioned, Format, print_markdown};
use crate::output;
use crate::printer::{count, size, time};
use crate::table::{Cell, Table};

/// Rows of the packet table shown on the terminal. The document contains the entire period.
const ROWS_SHOWN: usize = 12;

/// Runs the slot model and shows its results.
///
/// # Errors
/// A scenario that the model does not support.
pub fn execute(
    title: &str,
    scenario: &Scenario,
    planned: Option<Planned>,
    format: Format,
) -> Result<(), Failure> {
    let found = predict_slot(scenario, planned.unwrap_or_default()).map_err(|why| {
        let help = "the closed forms (without --model slot) take more scenarios";
        Failure::input(format!("the slot model has no answer: {why}"), help)
    })?;
    match format {
        Format::Json => output::print_json(&found),
        Format::Csv => output::print(&figures(&found).csv()),
        Format::Markdown => print_markdown(&tables(&found)),
        Format::Text => output::print(&text(title, &found)),
    }
}

fn tables(found: &SlotPrediction) -> Vec<Captioned> {
    let packets = found.schedulers.iter().map(|one| Captioned::new(one.name, packets(found, one)));
    let first =
        [Captioned::new("Paths", paths(found)), Captioned::new("Schedulers", figures(found))];
    first.into_iter().chain(packets).collect()
}

fn text(title: &str, found: &SlotPrediction) -> String {
    let measured = found.duration_s - found.warmup_s;
    let mut parts = vec![
        format!(
            "{title}: slot model, {} after {} of warm-up\n",
            time(measured),
            time(found.warmup_s)
        ),
        paths(found).text(layout()),
        figures(found).text(layout()),
    ];
    parts.extend(found.schedulers.iter().map(|one| packets(found, one).text(layout())));
    parts.push(notes(found));
    parts.join("\n")
}

fn paths(found: &SlotPrediction) -> Table {
    let mut table = Table::new(&["path", "forward delay", "packets per delay", "delay error"]);
    for path in &found.paths {
        table.row(vec![
            Cell::from(path.name.clone()),
            Cell::of(path.delay_ticks as f64 * found.quantum_s, Unit::Seconds),
            Cell::count(path.capacity_packets),
            Cell::of(path.delay_error, Unit::Ratio),
        ]);
    }
    table
}

fn figures(found: &SlotPrediction) -> Table {
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
            Cell::from(one.name),
            Cell::of(figures.goodput_bps, Unit::BitsPerSecond),
            Cell::of(figures.goodput_bps / found.capacity_bps, Unit::Ratio),
            Cell::of(figures.longest_silence_s, Unit::Seconds),
            Cell::of(figures.mean_in_buffer_packets, Unit::Count),
            Cell::count(figures.max_in_buffer_packets),
            Cell::of(figures.mean_unacknowledged_packets, Unit::Count),
        ]);
    }
    table
}

/// The first period, in the columns of the paper's Tables I and II.
fn packets(found: &SlotPrediction, one: &SlotSchedulerPrediction) -> Table {
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
    table
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
