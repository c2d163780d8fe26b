//! Figures of Sarwar et al. 2013. The paper does not print the numbers of its plots, so there is no series of
//! the paper. Figures 1 and 2 are simulated; 5 to 8 come from the slot model.

use ropewalk_models::slot::{Plan, SlotTrace};

use super::super::plan::RunKey;
use super::super::row::{Figure, Origin};
use super::super::slot::{self, Reading};
use super::{FigureSources, dots, line};
use crate::slot::SlotSetup;

const PAPER: &str = "sarwar2013";
/// Length of the paper's plots of the slot model, s.
const SHOWN_S: f64 = 5.0;

/// Five seconds packet by packet: round robin, and for comparison the delay-aware schedule.
pub fn packet_keys() -> Vec<RunKey> {
    vec![
        RunKey::new(PAPER, "figures-1-2.toml", "round-robin").with_series("1 s"),
        RunKey::new(PAPER, "delay-aware.toml", "daps-lcm").with_series("1 s"),
    ]
}

/// Figures 1 and 2.
pub fn packets(sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    let names = [("figure-1", "Figure 1: round robin"), ("figure-1-daps", "Delay-aware schedule")];
    let mut figures = Vec::new();
    for (key, (id, title)) in packet_keys().iter().zip(names) {
        let run = sources.runs.get(key)?;
        let sequence = run.sequence.as_ref().ok_or("a run without its first seconds")?;
        let title = format!("{title}, packet by packet");
        let mut figure = Figure::empty(PAPER, id, &title, ("Time (s)", "Packet"));
        for path in &sequence.paths {
            let points = path.time_s.iter().copied().zip(path.seq.iter().map(|n| *n as f64));
            figure.series.push(dots(&format!("arrived, {}", path.name), Origin::Simulated, points));
        }
        let delivered = &sequence.delivered;
        let points = delivered.time_s.iter().copied().zip(delivered.seq.iter().map(|n| *n as f64));
        figure.series.push(line("application", Origin::Simulated, points));
        figures.push(figure);
    }
    figures.push(per_second(sources)?);
    Ok(figures)
}

fn per_second(sources: FigureSources<'_>) -> Result<Figure, String> {
    let title = "Figure 2: throughput per second, round robin";
    let mut figure = Figure::empty(PAPER, "figure-2", title, ("Time (s)", "Mbit/s"));
    let key = &packet_keys()[0];
    let series = sources.runs.get(key)?.series.as_ref().ok_or("a run without its series")?;
    let rate = |name: &str, bps: &[f64]| {
        let points = series.time_s.iter().copied().zip(bps.iter().map(|b| b * 1e-6));
        line(name, Origin::Simulated, points)
    };
    for path in &series.paths {
        figure.series.push(rate(&path.name, &path.throughput_bps));
    }
    figure.series.push(rate("application", &series.goodput_bps));
    Ok(figure)
}

fn setup<'a>(sources: FigureSources<'a>) -> Result<&'a SlotSetup, String> {
    let setup = sources.expected.and_then(|e| e.slot.as_ref());
    setup.ok_or_else(|| "this paper has no slot model".to_owned())
}

/// Figures 5 and 6.
pub fn slot(sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    let setup = setup(sources)?;
    let traces = [
        ("round robin", slot::run(setup, "round-robin", Plan::perfect())?),
        ("delay-aware", slot::run(setup, "delay-aware", Plan::perfect())?),
    ];
    let label = ("Time (s)", "Delivered in order (packets)");
    let mut curve = Figure::empty(PAPER, "figure-5", "Figure 5: delivered in order", label);
    let label = ("Time (s)", "Goodput (Mbit/s)");
    let mut rate = Figure::empty(PAPER, "figure-5-rate", "Figure 5: goodput per second", label);
    let label = ("Time (s)", "Packets");
    let mut held = Figure::empty(PAPER, "figure-6", "Figure 6: buffer and flight", label);
    for (name, trace) in &traces {
        curve.series.push(line(name, Origin::Model, cumulative(setup, trace)));
        rate.series.push(line(name, Origin::Model, goodput(setup, trace)));
        let shown = trace.instants.iter().take_while(|i| i.tick as f64 * setup.quantum_s <= 1.0);
        let at = |tick: u64| tick as f64 * setup.quantum_s;
        let stored = shown.clone().map(|i| (at(i.tick), i.in_buffer_packets as f64));
        held.series.push(line(&format!("{name}: in the buffer"), Origin::Model, stored));
        let flying = shown.map(|i| (at(i.tick), i.in_flight_packets as f64));
        held.series.push(line(&format!("{name}: in flight"), Origin::Model, flying));
    }
    Ok(vec![curve, rate, held])
}

fn cumulative(setup: &SlotSetup, trace: &SlotTrace) -> Vec<(f64, f64)> {
    let points = trace.cumulative().into_iter();
    let points = points.map(|(tick, n)| (tick as f64 * setup.quantum_s, n as f64));
    points.take_while(|(at, _)| *at <= SHOWN_S).collect()
}

fn goodput(setup: &SlotSetup, trace: &SlotTrace) -> Vec<(f64, f64)> {
    let second = (1.0 / setup.quantum_s).round() as u64;
    let packets = trace.delivered_per_interval(second);
    let mbps = |n: u64| n as f64 * setup.packet_bytes * 8.0 * 1e-6;
    (1..=20).map(f64::from).zip(packets.into_iter().map(mbps)).collect()
}

/// Figures 7 and 8.
pub fn errors(sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    let setup = setup(sources)?;
    let errors = sources.expected.and_then(|expected| expected.slot_errors.as_ref());
    let errors = errors.ok_or("the paper has no wrong delays")?;
    let label = ("Error of the believed delay (%)", "Goodput (Mbit/s)");
    let mut figure = Figure::empty(PAPER, "figure-7", "Figure 7: goodput with wrong delays", label);
    let robin = slot::run(setup, "round-robin", Plan::perfect())?;
    let mbps = setup.figures(&robin).goodput_bps * 1e-6;
    let percent = || errors.values.iter().map(|e| e * 100.0);
    figure.series.push(line("round robin", Origin::Model, percent().map(|e| (e, mbps))));
    for reading in Reading::all() {
        let values = slot::by_error(setup, errors, reading)?.into_iter().map(|v| v * 1e-6);
        figure.series.push(line(&reading.to_string(), Origin::Model, percent().zip(values)));
    }
    let label = ("Time (s)", "Delivered in order (packets)");
    let reading = Reading::stated(errors);
    let title = format!("Figure 8: delivered in order, error on {reading}");
    let mut curves = Figure::empty(PAPER, "figure-8", &title, label);
    curves.series.push(line("round robin", Origin::Model, cumulative(setup, &robin)));
    for error in [0.0, 0.5, 1.0] {
        let trace = slot::run(setup, "delay-aware", reading.plan(error))?;
        let name = format!("error {:.0} %", error * 100.0);
        curves.series.push(line(&name, Origin::Model, cumulative(setup, &trace)));
    }
    Ok(vec![figure, curves])
}
