//! The report of `validate`.

use ropewalk_lab::report::{Report, ReportKind};
use ropewalk_lab::reproduce::{Figure, FigureSeries, Origin, Row, Seeds, Style, Value, Verdict};
use ropewalk_lab::validate::{Cell, Judged, Observed, TracePath};

use crate::args::command_line;
use crate::files::VERSION;

/// The report: a section for each scenario, with rows and the time series of both.
pub fn report(cells: &[Cell], summary: &str) -> Report {
    let title = format!("Simulator and Linux, {}", summary.split(':').next().unwrap_or("kernel"));
    let mut report = Report::new(title, ReportKind::Validate, VERSION.to_owned(), command_line());
    for cell in cells {
        report.add(&rows(cell), &figures(cell));
    }
    report
}

fn rows(cell: &Cell) -> Vec<Row> {
    let runs = cell.simulated.len() as u32;
    let row = |quantity: &str, unit: &str, judged: &Judged| Row {
        paper: cell.scenario.clone(),
        item: cell.transport.to_owned(),
        case: cell.transport.to_owned(),
        quantity: quantity.to_owned(),
        unit: unit.to_owned(),
        simulated_value: Some(judged.simulated.into()),
        peer_value: Some(judged.kernel.into()),
        difference: judged.ratio.map(|ratio| ratio - 1.0),
        seeds: (runs > 1).then_some(Seeds::Drawn(runs)),
        verdict: if judged.within { Verdict::Agrees } else { Verdict::Differs },
        ..Row::default()
    };
    let verdict = &cell.verdict;
    let mut rows = vec![row("goodput", "bit/s", &verdict.goodput_bps)];
    rows.extend(verdict.rtt_s.as_ref().map(|rtt| row("median RTT", "s", rtt)));
    rows.extend(verdict.queueing_s.as_ref().map(|delay| row("median queueing delay", "s", delay)));
    rows.push(row("retransmitted", "ratio", &verdict.retransmitted));
    rows
}

fn figures(cell: &Cell) -> Vec<Figure> {
    let (Some(kernel), Some(simulated)) = (cell.kernel.first(), cell.simulated.first()) else {
        return Vec::new();
    };
    // Series of the same name have the same colour. The kernel's are dotted.
    let both = [(kernel, Origin::Peer), (simulated, Origin::Simulated)];
    let of = cell.transport;
    let figure = |id: &str, title: &str, y_label: &str, series: Vec<FigureSeries>| {
        let (id, title) = (format!("{of}-{id}"), format!("{of}: {title}"));
        Figure { series, ..Figure::empty(&cell.scenario, &id, &title, ("time, s", y_label)) }
    };
    let goodput = both.map(|(seen, source)| {
        let mbps = seen.trace.goodput_bps.iter().map(|bps| Some(bps * 1e-6));
        curve("all paths", source, &seen.trace.time_s, mbps)
    });
    let per_path = |values: fn(&TracePath) -> Vec<Option<f64>>| {
        let of = |(seen, source): (&Observed, Origin)| -> Vec<FigureSeries> {
            let used = seen.trace.paths.iter().filter(|path| !path.time_s.is_empty());
            used.map(|path| curve(&path.name, source, &path.time_s, values(path))).collect()
        };
        both.into_iter().flat_map(of).collect()
    };
    let windows = per_path(|path| path.cwnd_bytes.iter().map(|b| Some(b * 1e-3)).collect());
    let trips = per_path(|path| path.srtt_s.iter().map(|s| s.map(|s| s * 1e3)).collect());
    let window = both.map(|(seen, source)| {
        let bytes = seen.trace.window.bytes.iter().map(|bytes| Some(bytes * 1e-3));
        curve("receive window", source, &seen.trace.window.time_s, bytes)
    });
    vec![
        figure("goodput", "goodput", "Mbit/s", goodput.to_vec()),
        figure("cwnd", "congestion window", "kB", windows),
        figure("rtt", "smoothed RTT", "ms", trips),
        figure("window", "receive window", "kB", window.to_vec()),
    ]
}

fn curve(
    name: &str,
    source: Origin,
    x: &[f64],
    y: impl IntoIterator<Item = Option<f64>>,
) -> FigureSeries {
    let x = x.iter().map(|x| Value::Number(rounded(*x))).collect();
    let y = y.into_iter().map(|value| value.map(rounded)).collect();
    FigureSeries { name: name.to_owned(), source, style: Style::Line, x, y }
}

/// A value with four digits. More digits would double the size of the page.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_have_four_digits() {
        for (value, short) in [(12.345_678, 12.35), (0.0, 0.0), (1_234_567.0, 1_235_000.0)] {
            assert_eq!(rounded(value).to_bits(), f64::to_bits(short));
        }
    }
}
