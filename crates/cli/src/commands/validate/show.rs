//! The tables and the report of `validate`.

use ropewalk_lab::report::{Report, ReportKind};
use ropewalk_lab::result::Unit;
use ropewalk_lab::validate::{Cell, Judged, LIMITS, Observed, Summary, Trace};
use serde_json::{Value, json};

use crate::args::command_line;
use crate::files::VERSION;
use crate::printer::percent;
use crate::table::{Cell as Shown, Table};

/// All cells, one row each.
pub fn table(cells: &[Cell]) -> Table {
    let mut table = Table::empty();
    table.name("scenario", "scenario");
    table.name("transport", "transport");
    for (shown, key) in [
        ("kernel", "kernel_goodput_bps"),
        ("simulated", "simulated_goodput_bps"),
        ("of it", "goodput_ratio"),
        ("RTT, kernel", "kernel_rtt_s"),
        ("simulated", "simulated_rtt_s"),
        ("of it", "rtt_ratio"),
        ("resent, kernel", "kernel_retransmitted"),
        ("simulated", "simulated_retransmitted"),
        ("off", "off"),
    ] {
        table.column(shown, key);
    }
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
        report.rows.extend(rows(cell));
        report.figures.extend(figures(cell));
    }
    report
}

fn rows(cell: &Cell) -> Vec<Value> {
    let row = |quantity: &str, unit: &str, judged: &Judged| {
        json!({
            "paper": cell.scenario, "item": cell.transport, "case": cell.transport, "quantity": quantity,
            "unit": unit, "paper_value": null, "model_value": null, "simulated_value": judged.simulated,
            "peer_value": judged.kernel, "difference": judged.ratio.map(|ratio| ratio - 1.0),
            "verdict": if judged.within { "agrees" } else { "differs" }, "judged_by": null, "interval": null,
            "seeds": (cell.simulated.len() > 1).then_some(cell.simulated.len()), "readings": [], "beside": null, "reason": null,
        })
    };
    let verdict = &cell.verdict;
    let mut rows = vec![row("goodput", "bit/s", &verdict.goodput_bps)];
    rows.extend(verdict.rtt_s.as_ref().map(|rtt| row("median RTT", "s", rtt)));
    rows.push(row("retransmitted", "ratio", &verdict.retransmitted));
    rows
}

fn figures(cell: &Cell) -> Vec<Value> {
    let (Some(kernel), Some(simulated)) = (cell.kernel.first(), cell.simulated.first()) else {
        return Vec::new();
    };
    // Series of the same name have the same colour; the kernel's are dotted.
    let both = [(kernel, "peer"), (simulated, "simulated")];
    let figure = |id: &str, title: String, y_label: &str, series: Vec<Value>| {
        json!({
            "id": format!("{}-{}-{id}", cell.scenario, cell.transport), "paper": cell.scenario, "title": title,
            "note": null, "x_label": "time, s", "y_label": y_label, "x_scale": "linear", "y_scale": "linear",
            "series": series,
        })
    };
    let curve = |name: &str, source: &str, x: &[f64], y: Vec<Option<f64>>| json!({ "name": name, "source": source, "style": "line", "x": x, "y": y });
    let goodput = both.map(|(seen, source)| {
        let y = seen.trace.goodput_bps.iter().map(|bps| Some(bps * 1e-6)).collect();
        curve("all paths", source, &seen.trace.time_s, y)
    });
    let per_path = |value: fn(&Trace, usize) -> Vec<Option<f64>>| {
        let of = |(seen, source): (&Observed, &'static str)| {
            let paths = seen.trace.paths.iter().enumerate();
            let used = paths.filter(|(_, path)| !path.time_s.is_empty());
            let series = used
                .map(|(at, path)| curve(&path.name, source, &path.time_s, value(&seen.trace, at)));
            series.collect::<Vec<_>>()
        };
        both.into_iter().flat_map(of).collect::<Vec<_>>()
    };
    let windows =
        per_path(|trace, at| trace.paths[at].cwnd_bytes.iter().map(|b| Some(b * 1e-3)).collect());
    let trips =
        per_path(|trace, at| trace.paths[at].srtt_s.iter().map(|s| s.map(|s| s * 1e3)).collect());
    let of = cell.transport;
    vec![
        figure("goodput", format!("{of}: goodput"), "Mbit/s", goodput.to_vec()),
        figure("cwnd", format!("{of}: congestion window"), "kB", windows),
        figure("rtt", format!("{of}: smoothed RTT"), "ms", trips),
    ]
}
