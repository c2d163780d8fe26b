//! The parts of a report page about a tuning: throughput by window, the best allocation for every buffer, and
//! the predicted throughput by the limits of two paths. `docs/reference/report-format.md` describes the format.

use ropewalk_models::optimise::{Members, PathTable, allocate};
use ropewalk_scenario::Scenario;
use serde_json::{Value, json};

use super::{Check, Reach, TuneError, Tuning, paths, total_pps};
use crate::lossy::packet_bytes;

/// Maximum number of points of a curve, and of cells along a side of the surface.
const POINTS: u32 = 60;
const CELLS: u32 = 40;
/// Maximum number of buffers with computed limits; fewer with many paths, because each takes longer.
const BUFFERS: u32 = 40;
const BUFFERS_OF_MANY: u32 = 12;

/// Figures and surfaces of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawings {
    /// For `figures` of a report.
    pub figures: Vec<Value>,
    /// For `surfaces` of a report.
    pub surfaces: Vec<Value>,
}

/// Draws a tuning of `scenario` and the results of its check.
///
/// # Errors
/// As [`super::tune`]; cannot fail for a scenario that was tuned.
pub fn drawings(
    scenario: &Scenario,
    tuning: &Tuning,
    check: Option<&Check>,
) -> Result<Drawings, TuneError> {
    let tables = paths::tables(scenario, &paths::model_paths(scenario)?)?;
    let mbps = 8e-6 * packet_bytes(scenario);
    let mut figures = vec![
        throughput(tuning, &tables, mbps),
        buffers(scenario, tuning, &tables, mbps)?,
        allocation(tuning),
    ];
    figures.extend(check.and_then(|check| checked(tuning, check)));
    figures.extend(tuning.reach.as_ref().and_then(reached));
    Ok(Drawings { figures, surfaces: vec![surface(tuning, &tables, mbps)] })
}

/// At most `count` whole numbers from `from` to `to`, both included.
fn steps(from: u32, to: u32, count: u32) -> Vec<u32> {
    let (span, parts) = (u64::from(to.max(from) - from), u64::from(count.max(2) - 1));
    let parts = parts.min(span.max(1));
    let mut all: Vec<u32> =
        (0..=parts).map(|i| from + u32::try_from(i * span / parts).unwrap_or(0)).collect();
    all.dedup();
    all
}

fn figure(id: &str, title: &str, note: &str, labels: [&str; 2], series: Vec<Value>) -> Value {
    json!({
        "id": id, "paper": "Limits", "title": title, "note": note,
        "x_label": labels[0], "y_label": labels[1], "series": series,
    })
}

fn throughput(tuning: &Tuning, tables: &[PathTable], mbps: f64) -> Value {
    let mut series = Vec::new();
    for (path, table) in tuning.paths.iter().zip(tables) {
        let x = steps(1, table.limit_packets(), POINTS);
        let y: Vec<f64> = x.iter().map(|limit| mbps * table.throughput_pps(*limit)).collect();
        series.push(json!({
            "name": path.name, "source": "model", "style": "line", "x": x, "y": y,
        }));
        let chosen = mbps * table.throughput_pps(path.limit_packets);
        series.push(json!({
            "name": path.name, "source": "limit", "style": "points",
            "x": [path.limit_packets], "y": [chosen],
        }));
    }
    let note =
        "Throughput of each path against the limit of its window; the ring marks the chosen limit.";
    let labels = ["Limit of the window (packets)", "On the wire (Mbit/s)"];
    figure("window", "Throughput against window", note, labels, series)
}

fn buffers(
    scenario: &Scenario,
    tuning: &Tuning,
    tables: &[PathTable],
    mbps: f64,
) -> Result<Value, TuneError> {
    let count = tables.len() as u32;
    let useful = tables.iter().fold(0, |sum: u32, t| sum.saturating_add(t.limit_packets()));
    let most = useful.max(tuning.buffer_packets).min(useful.saturating_mul(2));
    let points = if count > 2 { BUFFERS_OF_MANY } else { BUFFERS };
    let (mut x, mut best, mut equal) = (Vec::new(), Vec::new(), Vec::new());
    for packets in steps(count, most, points) {
        x.push(paths::bytes_for(scenario, packets) as f64 * 1e-3);
        best.push(mbps * allocate(tables, packets, Members::All)?.throughput_pps);
        equal.push(mbps * total_pps(tables, &vec![packets / count; tables.len()]));
    }
    let here = paths::bytes_for(scenario, tuning.buffer_packets) as f64 * 1e-3;
    let series = vec![
        json!({ "name": "best limits", "source": "model", "style": "line", "x": x, "y": best }),
        json!({ "name": "equal split", "source": "model", "style": "line", "x": x, "y": equal }),
        json!({
            "name": "best limits", "source": "limit", "style": "points",
            "x": [here], "y": [tuning.predicted_bps * 1e-6],
        }),
    ];
    let note = "Predicted throughput of all paths together; the ring marks the scenario's buffer.";
    let labels = ["Receive buffer (kB)", "On the wire (Mbit/s)"];
    Ok(figure("buffer", "Throughput against receive buffer", note, labels, series))
}

fn allocation(tuning: &Tuning) -> Value {
    let names: Vec<&str> = tuning.paths.iter().map(|path| path.name.as_str()).collect();
    let useful: Vec<u32> = tuning.paths.iter().map(|path| path.useful_packets).collect();
    let bars = |name: &str, packets: &[u32]| json!({ "name": name, "source": "model", "style": "bars", "x": names, "y": packets });
    let series = vec![
        bars("best limits", &tuning.limits_packets),
        bars("equal split", &tuning.equal_split.limits_packets),
        bars("of use", &useful),
    ];
    let note = format!("Of {} packets that the buffer holds.", tuning.buffer_packets);
    figure("allocation", "The allocation", &note, ["Path", "Window (packets)"], series)
}

/// The share of the rates against the receive buffer, for exactly the scenario's links and for the worst variation.
fn reached(reach: &Reach) -> Option<Value> {
    let found = reach.simulated.as_ref()?;
    let kilobytes = |bytes: u64| bytes as f64 * 1e-3;
    // The search begins with buffers that are far larger.
    let robust = found.robust.as_ref().and_then(|robust| robust.trials.last());
    let answers = [
        robust.map(|one| one.receive_buffer_bytes),
        found.least.map(|one| one.receive_buffer_bytes),
    ];
    let largest = answers.into_iter().flatten().max().map_or(u64::MAX, |most| 2 * most);
    let (x, y): (Vec<f64>, Vec<f64>) = found
        .trials
        .iter()
        .filter(|trial| trial.receive_buffer_bytes <= largest)
        .map(|trial| (kilobytes(trial.receive_buffer_bytes), 100.0 * trial.share.mean))
        .unzip();
    let ends = [x.first().copied()?, x.last().copied()?];
    let goal = [100.0 * reach.share; 2];
    let mut series = vec![
        json!({ "name": "these links", "source": "simulated", "style": "line", "x": x, "y": y }),
        json!({ "name": "goal", "source": "limit", "style": "line", "x": ends, "y": goal }),
    ];
    let mut note = "Simulated.".to_owned();
    if let Some(robust) = &found.robust {
        let (x, y): (Vec<f64>, Vec<f64>) = robust
            .trials
            .iter()
            .map(|trial| (kilobytes(trial.receive_buffer_bytes), 100.0 * trial.worst_share))
            .unzip();
        series.push(json!({
            "name": "worst variation", "source": "simulated", "style": "points", "x": x, "y": y,
        }));
        note = format!(
            "Simulated: exactly these links, and the worst of {} variations with rates and round trips up to {:.0} % off.",
            robust.variations,
            100.0 * robust.tolerance
        );
    }
    let labels = ["Receive buffer (kB)", "Share of the sum of the rates (%)"];
    Some(figure("reach", "What a receive buffer reaches", &note, labels, series))
}

fn checked(tuning: &Tuning, check: &Check) -> Option<Value> {
    let known = check.managers.iter().filter_map(|one| Some((one, one.goodput_bps?)));
    let (names, means): (Vec<&str>, Vec<f64>) =
        known.map(|(one, goodput)| (one.window_manager, goodput.mean * 1e-6)).unzip();
    let series = vec![json!({
        "name": "goodput", "source": "simulated", "style": "bars", "x": names, "y": means,
    })];
    let promised = tuning.predicted_bps * tuning.payload_share * 1e-6;
    let note = format!(
        "Mean of {} run(s) of each. The models predict {promised:.2} Mbit/s with the limits.",
        check.seeds
    );
    let labels = ["Window manager", "Goodput (Mbit/s)"];
    let title = "In simulation";
    (!names.is_empty()).then(|| figure("check", title, &note, labels, series))
}

/// The predicted throughput by the limits of the two paths with the largest useful windows; all others keep
/// their limits.
fn surface(tuning: &Tuning, tables: &[PathTable], mbps: f64) -> Value {
    let mut order: Vec<usize> = (0..tables.len()).collect();
    order.sort_by_key(|i| core::cmp::Reverse(tables[*i].limit_packets()));
    let [across, up] = [order[0].min(order[1]), order[0].max(order[1])];
    let axis = |i: usize| steps(1, tables[i].limit_packets(), CELLS);
    let (x, y) = (axis(across), axis(up));
    let mut limits = tuning.limits_packets.clone();
    let mut row = |second: u32| -> Vec<f64> {
        limits[up] = second;
        let mut cell = |first: u32| {
            limits[across] = first;
            mbps * total_pps(tables, &limits)
        };
        x.iter().map(|first| cell(*first)).collect()
    };
    let value: Vec<Vec<f64>> = y.iter().map(|second| row(*second)).collect();
    let both = tuning.limits_packets[across] + tuning.limits_packets[up];
    let rest = tuning.limits_packets.iter().sum::<u32>() - both;
    let label = |i: usize| format!("Limit of {} (packets)", tuning.paths[i].name);
    json!({
        "id": "surface",
        "title": format!("Over the limits of {} and {}", tuning.paths[across].name, tuning.paths[up].name),
        "note": "Predicted throughput of all paths together. Below the line the limits fit into the receive buffer.",
        "x_label": label(across), "y_label": label(up), "value_label": "On the wire (Mbit/s)",
        "x": x, "y": y, "value": value,
        "most": tuning.buffer_packets.saturating_sub(rest),
        "mark": { "x": tuning.limits_packets[across], "y": tuning.limits_packets[up] },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_include_both_ends_and_are_never_more_than_asked_for() {
        for (from, to, count, expected) in [
            (1, 5, 10, vec![1, 2, 3, 4, 5]),
            (1, 1, 10, vec![1]),
            (0, 100, 3, vec![0, 50, 100]),
            (2, 4_000_000_000, 2, vec![2, 4_000_000_000]),
        ] {
            assert_eq!(steps(from, to, count), expected, "{from}..{to}/{count}");
        }
    }

    #[test]
    fn the_surface_is_highest_within_the_buffer_at_the_limits() {
        let text = "[transfer]\nreceive_buffer = '126 kB'\n\
             [[path]]\nname = 'a'\nrate = '21 Mbit/s'\nrtt = '40 ms'\nloss = 1e-4\n\
             [[path]]\nname = 'b'\nrate = '21 Mbit/s'\nrtt = '40 ms'\nloss = 3e-3\n";
        let scenario = Scenario::parse(text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        let tuning = super::super::tune(&scenario, None).expect("two paths");
        let drawn = drawings(&scenario, &tuning, None).expect("two paths");
        assert_eq!(drawn.figures.len(), 3);
        let surface = &drawn.surfaces[0];
        let (xs, ys) = (surface["x"].as_array().unwrap(), surface["y"].as_array().unwrap());
        let mut most = 0.0_f64;
        for (y, row) in ys.iter().zip(surface["value"].as_array().unwrap()) {
            for (x, value) in xs.iter().zip(row.as_array().unwrap()) {
                if x.as_u64().unwrap() + y.as_u64().unwrap() <= surface["most"].as_u64().unwrap() {
                    most = most.max(value.as_f64().unwrap());
                }
            }
        }
        let promised = tuning.predicted_bps * 1e-6;
        assert!(most <= promised + 1e-9 && most > 0.98 * promised, "{most} of {promised}");
    }
}
