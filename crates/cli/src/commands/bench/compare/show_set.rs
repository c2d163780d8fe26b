//! The tables and the report of several scenarios.

use ropewalk_lab::report::{Report, ReportKind};
use ropewalk_lab::reproduce::{Figure, FigureSeries, Origin, Style, Value};
use ropewalk_lab::result::Unit;

use super::contender::Contender;
use super::row::Row;
use super::show::SHORT_OF_CPU;
use super::summary::{Bundle, Verdict};
use crate::args::command_line;
use crate::files::VERSION;
use crate::format::Captioned;
use crate::table::{Cell, Table};

/// A row per scenario, with the goodput of each transport. `for_programs`: unknown goodputs are empty.
pub fn table(bundles: &[Bundle], contenders: &[Contender], for_programs: bool) -> Table {
    let mut table = Table::empty();
    table.name("links", "scenario");
    for contender in contenders {
        let key = contender.name().replace('-', "_");
        table.column(&contender.heading(), &format!("{key}_bps"));
        if contender.is_simulated() {
            table.column("simulated", &format!("{key}_simulated_bps"));
        }
    }
    for bundle in bundles {
        let mut cells = vec![Cell::from(bundle.scenario.as_str())];
        for contender in contenders {
            let row = bundle.row(contender.name());
            let is_short = !for_programs && row.is_some_and(|row| row.reason.is_some());
            cells.push(if is_short {
                Cell::from(SHORT_OF_CPU)
            } else {
                Cell::known(row.and_then(|row| row.goodput_bps), Unit::BitsPerSecond)
            });
            if contender.is_simulated() {
                let simulated = row.and_then(|row| row.simulated_bps);
                cells.push(Cell::known(simulated, Unit::BitsPerSecond));
            }
        }
        table.row(cells);
    }
    table
}

/// The goodputs, and the summary.
pub fn tables(
    bundles: &[Bundle],
    contenders: &[Contender],
    verdicts: &[Verdict],
) -> Vec<Captioned> {
    let caption = "Goodput, median; TCP on the best link";
    let mut tables = vec![Captioned::new(caption, table(bundles, contenders, false))];
    if !verdicts.is_empty() {
        tables.push(Captioned::new("Number of scenarios in which", summary(verdicts)));
    }
    tables
}

fn summary(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(&[
        "transport",
        ">= TCP",
        ">= 98 % of TCP",
        ">= MPTCP",
        ">= 98 % of MPTCP",
        "simulated within 5 %",
    ]);
    for Verdict { transport, tcp, multipath_tcp, simulated, .. } in verdicts {
        let cell = |count: usize, of: usize| match of {
            0 => Cell::Unknown,
            of => Cell::from(format!("{count} of {of}")),
        };
        table.row(vec![
            Cell::from(transport.as_str()),
            cell(tcp.at_least, tcp.of),
            cell(tcp.at_least_98_percent, tcp.of),
            cell(multipath_tcp.at_least, multipath_tcp.of),
            cell(multipath_tcp.at_least_98_percent, multipath_tcp.of),
            cell(simulated.within_5_percent, simulated.of),
        ]);
    }
    table
}

/// The report: bars for each transport, by scenario.
pub fn report(title: &str, bundles: &[Bundle], contenders: &[Contender]) -> Report {
    let mut report =
        Report::new(title.to_owned(), ReportKind::Compare, VERSION.to_owned(), command_line());
    let bars =
        |name: String, source: Origin, contender: Contender, value: fn(&Row) -> Option<f64>| {
            FigureSeries {
                name,
                source,
                style: Style::Bars,
                x: bundles.iter().map(|one| Value::Text(one.scenario.clone())).collect(),
                y: bundles.iter().map(|one| value(one.row(contender.name())?)).collect(),
            }
        };
    let measured = |value: fn(&Row) -> Option<f64>| -> Vec<FigureSeries> {
        let one = |of: &Contender| bars(of.title(), Origin::Peer, *of, value);
        contenders.iter().map(one).collect()
    };
    let mut goodput = measured(|row| row.goodput_bps.map(|bps| bps * 1e-6));
    for contender in contenders.iter().filter(|of| of.is_simulated()) {
        let name = format!("{}, simulated", contender.title());
        let value = |row: &Row| row.simulated_bps.map(|bps| bps * 1e-6);
        goodput.push(bars(name, Origin::Simulated, *contender, value));
    }
    let rtt = measured(|row| row.rtt_s.map(|seconds| seconds * 1e3));
    let figure = |id: &str, name: &str, y_label: &str, series: Vec<FigureSeries>| Figure {
        series,
        ..Figure::empty(title, id, name, ("", y_label))
    };
    let figures = [
        figure("goodput", "Goodput, median", "Mbit/s", goodput),
        figure("rtt", "Round trip of the busiest path", "ms", rtt),
    ];
    report.add(&[], &figures);
    report
}
