//! The tables and the report of `validate`.

use ropewalk_lab::report::{Report, ReportKind};
use ropewalk_lab::reproduce::{Figure, FigureSeries, Origin, Row, Seeds, Style, Value, Verdict};
use ropewalk_lab::result::Unit;
use ropewalk_lab::validate::{Cell, Judged, LIMITS, Observed, Summary, TracePath};

use crate::args::command_line;
use crate::files::VERSION;
use crate::printer::percent;
use crate::table::{Cell as Shown, Table};

/// All cells, one row each.
pub fn table(cells: &[Cell]) -> Table {
    let mut table = Table::empty();
    table.name("scenario", "scenario");
    table.name("transport", "transport");
    table.columns(&[
        ("kernel", "kernel_goodput_bps"),
        ("simulated", "simulated_goodput_bps"),
        ("of it", "goodput_ratio"),
        ("RTT, kernel", "kernel_rtt_s"),
        ("simulated", "simulated_rtt_s"),
        ("of it", "rtt_ratio"),
        ("resent, kernel", "kernel_retransmitted"),
        ("simulated", "simulated_retransmitted"),
        ("off", "off"),
    ]);
    for cell in cells {
        let (goodput, rtt) = (&cell.verdict.goodput_bps, cell.verdict.rtt_s);
        let resent = &cell.verdict.retransmitted;
        table.row(vec![
            Shown::from(cell.scenario.as_str()),
            Shown::from(cell.transport),
            Shown::of(goodput.kernel, Unit::BitsPerSecond),
            Shown::of(goodput.simulated, Unit::BitsPerSecond),
            Shown::known(goodput.ratio, Unit::Ratio),
            Shown::known(rtt.map(|rtt| rtt.kernel), Unit::Seconds),
            Shown::known(rtt.map(|rtt| rtt.simulated), Unit::Seconds),
            Shown::known(rtt.and_then(|rtt| rtt.ratio), Unit::Ratio),
            Shown::of(resent.kernel, Unit::Ratio),
            Shown::of(resent.simulated, Unit::Ratio),
            Shown::from(off(cell).join(", ")),
        ]);
    }
    table
}

/// The figures of a cell that do not agree.
fn off(cell: &Cell) -> Vec<&'static str> {
    let verdict = &cell.verdict;
    let rtt = verdict.rtt_s.is_none_or(|rtt| rtt.within);
    let all = [
        ("goodput", verdict.goodput_bps.within),
        ("RTT", rtt),
        ("resent", verdict.retransmitted.within),
    ];
    all.into_iter().filter(|(_, within)| !within).map(|(name, _)| name).collect()
}

/// How many cells agree.
pub fn summary(summary: Summary, kernel: &str) -> String {
    let part = |count: usize, of: usize| percent(count as f64 / of.max(1) as f64);
    let Summary { cells, goodput, rtt, rtt_cells, retransmitted } = summary;
    format!(
        "kernel {kernel}: goodput within {} in {goodput} of {cells} ({}), RTT within {} in {rtt} of {rtt_cells} ({}), \
         retransmissions within a factor of {} in {retransmitted} of {cells} ({})\n",
        percent(LIMITS.goodput),
        part(goodput, cells),
        percent(LIMITS.rtt),
        part(rtt, rtt_cells),
        LIMITS.retransmitted,
        part(retransmitted, cells),
    )
}

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
    rows.push(row("retransmitted", "ratio", &verdict.retransmitted));
    rows
}

fn figures(cell: &Cell) -> Vec<Figure> {
    let (Some(kernel), Some(simulated)) = (cell.kernel.first(), cell.simulated.first()) else {
        return Vec::new();
    };
    // Series of the same name have the same colour; the kernel's are dotted.
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
    vec![
        figure("goodput", "goodput", "Mbit/s", goodput.to_vec()),
        figure("cwnd", "congestion window", "kB", windows),
        figure("rtt", "smoothed RTT", "ms", trips),
    ]
}

fn curve(
    name: &str,
    source: Origin,
    x: &[f64],
    y: impl IntoIterator<Item = Option<f64>>,
) -> FigureSeries {
    let x = x.iter().map(|x| Value::Number(*x)).collect();
    let y = y.into_iter().collect();
    FigureSeries { name: name.to_owned(), source, style: Style::Line, x, y }
}
