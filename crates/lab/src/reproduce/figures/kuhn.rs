//! Figures of Kuhn et al. 2014: six cases under round robin and DAPS.

use super::super::peers;
use super::super::plan::RunKey;
use super::super::quantity;
use super::super::row::{Figure, FigureSeries, Origin};
use super::{FigureSources, SCHEDULERS, bars, line, simulated};

const PAPER: &str = "kuhn2014";
const CASES: [&str; 6] =
    ["2-100-35", "2-100-500", "1-200-45", "1-200-500", "2-200-45", "2-200-500"];
const CASE_LABEL: &str = "slow Mbit/s - slow RTT ms - buffer kB";

fn file(case: &str) -> String {
    format!("case-{case}.toml")
}

/// The figure of each item.
pub fn figures(item: &str, sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    let all = |_: &&str| true;
    let small = |case: &&str| !case.ends_with("-500");
    let large = |case: &&str| case.ends_with("-500");
    let bytes = ("receive_buffer.mean_bytes", 1e-3, "Mean held out of order (kB)");
    match item {
        "receive-buffer-min" => least_buffer(sources),
        "slow-path-use" => {
            let what = ("paths.slow.utilisation", 100.0, "Use of the slow path (%)");
            let mut figure = both(sources, item, "Use of the slow path", what, all)?;
            figure.series.push(peer(|c| c.path2_packets * 1500.0 * 8.0 / 100.0, "use")?);
            Ok(vec![figure])
        }
        "throughput" => throughput(sources),
        "application-delay" => {
            let what = ("app_delay_s.mean", 1e3, "Mean delay (ms)");
            Ok(vec![both(sources, item, "Application delay", what, all)?])
        }
        "occupancy-small" => {
            let mean = both(sources, item, "Occupancy of a small buffer", bytes, small)?;
            Ok(vec![mean, over_time(sources, item)?])
        }
        "occupancy-large" => {
            let mean = both(sources, item, "Occupancy of a large buffer", bytes, large)?;
            Ok(vec![mean, over_time(sources, item)?])
        }
        _ => Ok(Vec::new()),
    }
}

/// Round robin and DAPS side by side in some of the cases.
fn both(
    sources: FigureSources<'_>,
    id: &str,
    title: &str,
    (quantity, factor, y_label): (&str, f64, &str),
    chosen: impl Fn(&&str) -> bool,
) -> Result<Figure, String> {
    let cases: Vec<String> = CASES.iter().filter(|c| chosen(c)).map(|c| c.to_string()).collect();
    let files: Vec<String> = cases.iter().map(|case| file(case)).collect();
    let mut figure = Figure::empty(PAPER, id, title, (CASE_LABEL, y_label));
    for (scheduler, name) in SCHEDULERS {
        let y = simulated(sources.runs, (PAPER, scheduler), &files, (quantity, factor))?;
        figure.series.push(bars(name, Origin::Simulated, &cases, y));
    }
    Ok(figure)
}

/// ns-2's round robin with unlimited queues; `use` in percent of the slow path, otherwise Mbit/s.
fn peer(of: impl Fn(&peers::PeerCase) -> f64, kind: &str) -> Result<FigureSeries, String> {
    let plain = |c: &peers::PeerCase| c.variant == "base" && CASES.contains(&c.short.as_str());
    let cases: Vec<_> = peers::cases("kuhn")?.into_iter().filter(|c| plain(c)).collect();
    let mut y = Vec::new();
    for case in &cases {
        let slow = case.key.scenario()?.paths[1].up.capacity.mean_rate().as_bps() as f64;
        y.push(if kind == "use" { of(case) / slow * 100.0 } else { of(case) * 1e-6 });
    }
    let names: Vec<String> = cases.into_iter().map(|c| c.short).collect();
    Ok(bars("ns-2 round robin", Origin::Peer, &names, y))
}

fn least_buffer(sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    let expected = sources.expected.ok_or("the paper is missing")?;
    let entries = expected.items.iter().filter(|e| e.group == "receive-buffer-min");
    let entries: Vec<_> = entries.collect();
    let files: Vec<String> = entries.iter().filter_map(|e| e.scenario.clone()).collect();
    let cases: Vec<String> = entries.iter().map(|e| e.case.clone()).collect();
    let printed = entries.iter().filter_map(|e| e.paper_value).map(|b| b * 1e-3).collect();
    let model = |file: &String| {
        let scenario = RunKey::new(PAPER, file, "daps").scenario()?;
        Ok(quantity::of_model(&scenario, "receive_buffer_min_bytes")? * 1e-3)
    };
    let models = files.iter().map(model).collect::<Result<Vec<f64>, String>>()?;
    let label = ("slow Mbit/s - slow RTT ms", "Least buffer (kB)");
    let mut figure =
        Figure::empty(PAPER, "receive-buffer-min", "Least receive buffer that never blocks", label);
    figure.series.push(bars("printed", Origin::Paper, &cases, printed));
    figure.series.push(bars("closed form", Origin::Model, &cases, models));
    Ok(vec![figure])
}

fn throughput(sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    let what = ("goodput_wire_bps", 1e-6, "On the wire (Mbit/s)");
    let mut figure = both(sources, "throughput", "Throughput of both paths", what, |_| true)?;
    let cases: Vec<String> = CASES.iter().map(|c| c.to_string()).collect();
    let bound = |case: &String| {
        let key = RunKey::new(PAPER, &file(case), "daps");
        let bound = sources.runs.get(&key)?.result.flow_control_bound_bps;
        bound.map(|b| b * 1e-6).ok_or_else(|| format!("case {case} has no bound"))
    };
    let bounds = cases.iter().map(bound).collect::<Result<Vec<f64>, String>>()?;
    figure.series.push(bars("flow-control bound", Origin::Model, &cases, bounds));
    figure.series.push(peer(|c| c.goodput_steady_bps, "rate")?);
    Ok(vec![figure])
}

/// The case whose occupancy is shown over time: the one with the paper's largest gain.
fn shown(item: &str) -> String {
    file(if item == "occupancy-small" { "2-200-45" } else { "2-200-500" })
}

/// The runs behind the occupancy over time.
pub fn keys(item: &str) -> Vec<RunKey> {
    let files = || CASES.iter().map(|case| file(case));
    let bars = files().flat_map(|file| {
        SCHEDULERS.iter().map(move |(scheduler, _)| RunKey::new(PAPER, &file, scheduler))
    });
    match item {
        "receive-buffer-min" => Vec::new(),
        "occupancy-small" | "occupancy-large" => bars.chain(occupancy_keys(item)).collect(),
        _ => bars.collect(),
    }
}

fn occupancy_keys(item: &str) -> Vec<RunKey> {
    let of = |scheduler| RunKey::new(PAPER, &shown(item), scheduler).with_series("200 ms");
    ["round-robin", "daps"].map(of).to_vec()
}

fn over_time(sources: FigureSources<'_>, item: &str) -> Result<Figure, String> {
    let title = format!("Occupancy over time, {}", shown(item).trim_end_matches(".toml"));
    let label = ("Time (s)", "Held out of order (kB)");
    let mut figure = Figure::empty(PAPER, &format!("{item}-time"), &title, label);
    for (key, name) in occupancy_keys(item).iter().zip(["round robin", "DAPS as published"]) {
        let series = sources.runs.get(key)?.series.as_ref().ok_or("a run without its series")?;
        let held = series.receive_buffer_bytes.iter().map(|b| *b as f64 * 1e-3);
        let points = series.time_s.iter().copied().zip(held);
        figure.series.push(line(name, Origin::Simulated, points));
    }
    Ok(figure)
}
