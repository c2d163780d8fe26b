//! The report of `validate`.

use ropewalk_lab::report::{Report, ReportKind};
use ropewalk_lab::validate::{Cell, Judged, Observed, Trace};
use serde_json::{Value, json};

use crate::args::command_line;
use crate::files::VERSION;

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
    // Series of the same name have the same colour. The page draws the kernel's dotted.
    let both = [(kernel, "peer"), (simulated, "simulated")];
    let figure = |id: &str, title: String, y_label: &str, series: Vec<Value>| {
        json!({
            "id": format!("{}-{}-{id}", cell.scenario, cell.transport), "paper": cell.scenario, "title": title,
            "note": null, "x_label": "time, s", "y_label": y_label, "x_scale": "linear", "y_scale": "linear",
            "series": series,
        })
    };
    let curve = |name: &str, source: &str, x: &[f64], y: Vec<Option<f64>>| {
        let x: Vec<f64> = x.iter().map(|at| rounded(*at)).collect();
        let y: Vec<Option<f64>> = y.into_iter().map(|value| value.map(rounded)).collect();
        json!({ "name": name, "source": source, "style": "line", "x": x, "y": y })
    };
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
    let window = both.map(|(seen, source)| {
        let y = seen.trace.window.bytes.iter().map(|bytes| Some(bytes * 1e-3)).collect();
        curve("receive window", source, &seen.trace.window.time_s, y)
    });
    let of = cell.transport;
    vec![
        figure("goodput", format!("{of}: goodput"), "Mbit/s", goodput.to_vec()),
        figure("cwnd", format!("{of}: congestion window"), "kB", windows),
        figure("rtt", format!("{of}: smoothed RTT"), "ms", trips),
        figure("window", format!("{of}: receive window"), "kB", window.to_vec()),
    ]
}

/// A value with four digits: more would double the size of the page.
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
