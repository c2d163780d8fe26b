//! Figures of the slides of 2013: blocking times, and three pairs of paths.

use super::super::data;
use super::super::expected::Kind;
use super::super::peers;
use super::super::plan::RunKey;
use super::super::quantity;
use super::super::row::{Figure, Origin};
use super::{FigureSources, SCHEDULERS, bars, simulated};

const PAPER: &str = "slides2013";

const CASES: [&str; 3] = ["case-1.toml", "case-2.toml", "case-3.toml"];

/// The runs behind the bars.
pub fn keys(item: &str) -> Vec<RunKey> {
    if item == "cases" {
        let keys =
            |file| SCHEDULERS.iter().map(move |(scheduler, _)| RunKey::new(PAPER, file, scheduler));
        return CASES.into_iter().flat_map(keys).collect();
    }
    let folder = data::folder(PAPER).into_iter().flat_map(|folder| folder.files);
    let files = folder.map(|(name, _)| *name).filter(|name| name.starts_with("tmaxblock"));
    files.map(|file| RunKey::new(PAPER, file, "round-robin")).collect()
}

/// The table of blocking times as bars: printed, closed form, ours, ns-2's.
pub fn blocking(sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    let expected = sources.expected.ok_or("the slides are missing")?;
    let printed = expected.items.iter().filter(|e| e.group == "tmaxblock" && e.kind == Kind::Value);
    let printed: Vec<_> = printed.collect();
    let files: Vec<String> = printed.iter().filter_map(|e| e.scenario.clone()).collect();
    let cases: Vec<String> = printed.iter().map(|e| e.case.clone()).collect();
    let model = |file: &String| {
        let scenario = RunKey::new(PAPER, file, "round-robin").scenario()?;
        Ok(quantity::of_model(&scenario, "blocking_time_max_s")? * 1e3)
    };
    let models = files.iter().map(model).collect::<Result<Vec<f64>, String>>()?;
    let label = ("fast Mbit/s - slow Mbit/s - slow RTT ms", "Longest wait (ms)");
    let mut figure = Figure::empty(PAPER, "tmaxblock", "Maximum blocking time", label);
    let paper = printed.iter().filter_map(|e| e.paper_value).map(|s| s * 1e3).collect();
    figure.series.push(bars("printed model", Origin::Paper, &cases, paper));
    figure.series.push(bars("closed form", Origin::Model, &cases, models));
    let ours =
        simulated(sources.runs, (PAPER, "round-robin"), &files, ("blocking_time_s.max", 1e3))?;
    figure.series.push(bars("round robin", Origin::Simulated, &cases, ours));
    let peer: Vec<_> =
        peers::cases("blocking")?.into_iter().filter(|c| c.variant == "base").collect();
    let known: Vec<String> = peer.iter().map(|c| c.short.clone()).collect();
    let waits = peer.iter().map(|c| c.wait_max_s * 1e3).collect();
    figure.series.push(bars("ns-2 round robin", Origin::Peer, &known, waits));
    figure.note = Some(
        "The closed form knows no queues; where a path of 10 Mbit/s fills its own, packets wait longer."
            .to_owned(),
    );
    Ok(vec![figure])
}

/// Cases 1 to 3: goodput and waiting.
pub fn cases(sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    let files = CASES.map(str::to_owned);
    let names: Vec<String> = (1..=files.len()).map(|i| format!("case {i}")).collect();
    let kinds = [
        ("cases-goodput", "Goodput", "goodput_wire_bps", 1e-6, "Goodput on the wire (Mbit/s)"),
        ("cases-wait", "Wait in the receive buffer", "blocking_time_s.mean", 1e3, "Mean wait (ms)"),
    ];
    let mut figures = Vec::new();
    for (id, title, quantity, factor, y_label) in kinds {
        let mut figure = Figure::empty(PAPER, id, title, ("", y_label));
        for (scheduler, name) in SCHEDULERS {
            let y = simulated(sources.runs, (PAPER, scheduler), &files, (quantity, factor))?;
            figure.series.push(bars(name, Origin::Simulated, &names, y));
        }
        figures.push(figure);
    }
    Ok(figures)
}
