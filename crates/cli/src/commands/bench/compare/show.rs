//! The table and the report of `bench compare`.

use ropewalk_lab::report::{Report, ReportKind};
use ropewalk_lab::reproduce::{Figure, FigureSeries, Origin, Style, Value};
use ropewalk_lab::result::Unit;
use serde::Serialize;

use crate::args::command_line;
use crate::files::VERSION;
use crate::table::{Cell, Table};

/// One row of the result.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The transport.
    pub transport: String,
    /// The paths that it uses.
    pub paths: Vec<String>,
    /// Median over the runs, bit/s.
    pub goodput_bps: f64,
    /// The least and the most, bit/s.
    pub range_bps: [f64; 2],
    /// Retransmitted part of the data sent; null if unknown.
    pub retransmitted: Option<f64>,
    /// Median round trip of the path that carries most, s; null if unknown. Ropewalk's is the last one.
    pub rtt_s: Option<f64>,
    /// Goodput of the same in the simulator, bit/s; null for other programs.
    pub simulated_bps: Option<f64>,
    /// How late the emulator was at most, s.
    pub lateness_s: f64,
}

/// A row for each transport.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::empty();
    table.name("transport", "transport");
    table.name("paths", "paths");
    table.columns(&[
        ("goodput", "goodput_bps"),
        ("least", "least_bps"),
        ("most", "most_bps"),
        ("simulated", "simulated_bps"),
        ("RTT", "rtt_s"),
        ("retransmitted", "retransmitted"),
    ]);
    for row in rows {
        table.row(vec![
            Cell::from(row.transport.as_str()),
            Cell::from(row.paths.join(" + ")),
            Cell::of(row.goodput_bps, Unit::BitsPerSecond),
            Cell::of(row.range_bps[0], Unit::BitsPerSecond),
            Cell::of(row.range_bps[1], Unit::BitsPerSecond),
            Cell::known(row.simulated_bps, Unit::BitsPerSecond),
            Cell::known(row.rtt_s, Unit::Seconds),
            Cell::known(row.retransmitted, Unit::Ratio),
        ]);
    }
    table
}

/// The report: a chart of bars for each figure.
pub fn report(scenario: &str, rows: &[Row]) -> Report {
    let title = format!("Transports over {scenario}");
    let mut report = Report::new(title, ReportKind::Compare, VERSION.to_owned(), command_line());
    let bars = |name: &str, source: Origin, value: &dyn Fn(&Row) -> Option<f64>| FigureSeries {
        name: name.to_owned(),
        source,
        style: Style::Bars,
        x: rows.iter().map(|row| Value::Text(row.transport.clone())).collect(),
        y: rows.iter().map(value).collect(),
    };
    let figure = |id: &str, title: &str, y_label: &str, series: Vec<FigureSeries>| Figure {
        series,
        ..Figure::empty(scenario, id, title, ("", y_label))
    };
    let measured = bars("measured", Origin::Peer, &|row| Some(row.goodput_bps * 1e-6));
    let simulated =
        bars("simulated", Origin::Simulated, &|row| row.simulated_bps.map(|bps| bps * 1e-6));
    let rtt = bars("measured", Origin::Peer, &|row| row.rtt_s.map(|seconds| seconds * 1e3));
    let again = bars("measured", Origin::Peer, &|row| row.retransmitted.map(|part| part * 1e2));
    let figures = [
        figure("goodput", "Goodput, median", "Mbit/s", vec![measured, simulated]),
        figure("rtt", "Round trip of the busiest path", "ms", vec![rtt]),
        figure("retransmitted", "Retransmitted part of the data", "%", vec![again]),
    ];
    report.add(&[], &figures);
    report
}
