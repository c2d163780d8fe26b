//! The table and the report of `bench compare`.

use ropewalk_lab::report::{Report, ReportKind};
use ropewalk_lab::reproduce::{Figure, FigureSeries, Origin, Style, Value};
use ropewalk_lab::result::Unit;

use super::row::Row;
use crate::args::command_line;
use crate::files::VERSION;
use crate::table::{Cell, Table};

/// Text instead of a goodput whose runs do not count.
pub const SHORT_OF_CPU: &str = "short of CPU";

/// A row for each transport. `for_programs`: unknown goodputs are empty.
pub fn table(rows: &[Row], for_programs: bool) -> Table {
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
        let goodput = match row.reason {
            Some(_) if !for_programs => Cell::from(SHORT_OF_CPU),
            _ => Cell::known(row.goodput_bps, Unit::BitsPerSecond),
        };
        table.row(vec![
            Cell::from(row.transport.as_str()),
            Cell::from(row.paths.join(" + ")),
            goodput,
            Cell::known(row.range_bps.map(|[least, _]| least), Unit::BitsPerSecond),
            Cell::known(row.range_bps.map(|[_, most]| most), Unit::BitsPerSecond),
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
    let measured = bars("measured", Origin::Peer, &|row| row.goodput_bps.map(|bps| bps * 1e-6));
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
