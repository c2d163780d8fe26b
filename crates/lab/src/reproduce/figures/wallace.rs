//! Figures 5 to 14 of Wallace and Shami 2014.

use super::super::row::{Figure, Origin};
use super::super::wallace::gain::{self, LOSSES, SEEDS as GAIN_SEEDS};
use super::super::wallace::heuristic::{RATES_MBPS, STEPS, measured_ms, search_results};
use super::super::wallace::sweep::{Model, Point, SEEDS as SWEEP_SEEDS, Sweep, sweep};
use super::super::wallace::{PAPER, peer_points};
use super::{FigureSources, dots, line};
use crate::compare::estimate;

/// The figures of each item.
///
/// # Errors
/// A run that failed.
pub fn figures(item: &str, sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    if let Some(sweep) = sweep(item) {
        return Ok(vec![models(item, &sweep, sources)?]);
    }
    match item {
        "figure-9" => gains(item, "Figure 9: gain of static limits, b_2 varied", sources),
        "figure-10" => gains(item, "Figure 10: gain of static limits, buffer varied", sources),
        "figure-11" => gains(item, "Figure 11: gain of static limits, p_2 varied", sources),
        "figure-12" => gains(item, "Figure 12: gain of static limits, d_2 varied", sources),
        "figure-13" => Ok(vec![steps(
            item,
            "Figure 13: limits in steps of k packets",
            |rate, k| Ok(search_results(rate, k)?.throughput_bps * 1e-6),
            "Predicted throughput (Mbit/s)",
        )?]),
        "figure-14" => fourteen(item),
        _ => Ok(Vec::new()),
    }
}

fn models(item: &str, sweep: &Sweep, sources: FigureSources<'_>) -> Result<Figure, String> {
    let mut figure =
        Figure::empty(PAPER, item, sweep.title, (sweep.x_label, "On the wire (Mbit/s)"));
    figure.x_scale = sweep.x_scale.to_owned();
    for (model, name) in [(Model::Markov, "Markov"), (Model::Renewal, "renewal")] {
        let says = |(x, point): (f64, Point)| Ok((x, point.model_bps(model)? * 1e-6));
        let points = sweep.points().map(says).collect::<Result<Vec<_>, String>>()?;
        figure.series.push(line(name, Origin::Model, points));
    }
    let (mut means, mut widest) = (Vec::new(), 0.0_f64);
    for (x, point) in sweep.points() {
        let bps = point.simulated_bps(sources.runs)?;
        let bps = estimate(&bps).ok_or("a point without seeds")?;
        widest = widest.max(bps.half_width.unwrap_or(0.0) / bps.mean);
        means.push((x, bps.mean * 1e-6));
    }
    figure.series.push(dots("Ropewalk", Origin::Simulated, means));
    if item == "ns2" {
        let peer = peer_points()?.into_iter().map(|(loss, bps)| (loss, bps * 1e-6));
        figure.series.push(dots("ns-2", Origin::Peer, peer));
    }
    figure.note = Some(format!(
        "Mean of {SWEEP_SEEDS} runs of 300 s each; the widest 95 % confidence interval is ±{:.1} %",
        widest * 100.0
    ));
    Ok(figure)
}

fn gains(item: &str, title: &str, sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    let label = ("Probability of loss on path 1", "Gain over dynamic (%)");
    let mut figure = Figure::empty(PAPER, item, title, label);
    figure.x_scale = "log".to_owned();
    let mut widest = 0.0_f64;
    for curve in gain::curves(item) {
        let mut points = Vec::new();
        for loss in LOSSES {
            let gain = estimate(&curve.gains(loss, sources.runs)?);
            let gain = gain.ok_or("a point without seeds")?;
            widest = widest.max(gain.half_width.unwrap_or(0.0));
            points.push((loss, gain.mean * 100.0));
        }
        figure.series.push(line(curve.label, Origin::Simulated, points));
    }
    figure.note = Some(format!(
        "Mean of {GAIN_SEEDS} pairs of runs of 40 s each; the widest 95 % confidence interval is \
         ±{:.1} points",
        widest * 100.0
    ));
    Ok(vec![figure])
}

/// A curve over the rate of the first path for each step.
fn steps(
    item: &str,
    title: &str,
    value: impl Fn(f64, u32) -> Result<f64, String>,
    y_label: &str,
) -> Result<Figure, String> {
    let mut figure = Figure::empty(PAPER, item, title, ("Rate of path 1 (Mbit/s)", y_label));
    for step in STEPS {
        let one = |rate: f64| Ok((rate, value(rate, step)?));
        let points = RATES_MBPS.into_iter().map(one).collect::<Result<Vec<_>, String>>()?;
        figure.series.push(line(&format!("k = {step}"), Origin::Model, points));
    }
    Ok(figure)
}

fn fourteen(item: &str) -> Result<Vec<Figure>, String> {
    let combinations = |rate, k| Ok(search_results(rate, k)?.combinations as f64);
    let title = "Figure 14: combinations of an exhaustive search";
    let mut counted = steps(item, title, combinations, "Combinations")?;
    counted.y_scale = "log".to_owned();
    let title = "Figure 14: CPU time of an exhaustive search";
    let id = format!("{item}-time");
    let mut measured = steps(&id, title, measured_ms, "Measured (ms)")?;
    measured.y_scale = "log".to_owned();
    measured.note = Some("A timing of this run on this machine, tables given".to_owned());
    Ok(vec![counted, measured])
}
