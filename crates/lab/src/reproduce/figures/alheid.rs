//! The tables of Alheid et al. 2016 as bars: printed, under `chihani2011` and under `rfc8684`.

use super::super::alheid::PAPER;
use super::super::alheid::cell::{Cell, Measured, Preset, Printed, printed};
use super::super::row::{Figure, Origin};
use super::{Material, bars, frame};

/// A quantity: id, heading, axis, its value in a cell, and what is printed of it.
type Quantity =
    (&'static str, &'static str, &'static str, fn(&Measured) -> f64, Option<fn(&Printed) -> f64>);

const QUANTITIES: [Quantity; 3] = [
    ("goodput", "goodput", "Mbit/s", |m| m.goodput_bps * 1e-6, None),
    ("ratio", "packets stored", "%", |m| m.ratio * 100.0, Some(|p| p.ratio * 100.0)),
    ("buffer", "most stored", "kB", |m| m.max_bytes * 1e-3, Some(|p| p.max_bytes * 1e-3)),
];

/// The figures of each item.
///
/// # Errors
/// A run that failed.
pub fn figures(item: &str, material: Material<'_>) -> Result<Vec<Figure>, String> {
    let scenario = item.strip_prefix("scenario-").and_then(|digits| digits.parse().ok());
    let Some(scenario) = scenario else { return Ok(Vec::new()) };
    QUANTITIES.iter().map(|quantity| figure(scenario, quantity, material)).collect()
}

fn figure(
    scenario: u32,
    (id, heading, unit, value, paper): &Quantity,
    material: Material<'_>,
) -> Result<Figure, String> {
    let cells = || Cell::all(scenario, Preset::Chihani2011);
    let names: Vec<String> = cells().map(|cell| cell.label()).collect();
    let of = |preset: Preset| {
        let each = cells().map(|cell| Ok(value(&Cell { preset, ..cell }.measured(material.runs)?)));
        each.collect::<Result<Vec<f64>, String>>()
    };
    let title = format!("Scenario {scenario}: {heading}");
    let mut figure = frame(PAPER, &format!("{scenario}-{id}"), &title, ("", unit));
    if let Some(paper) = paper {
        let values = printed(scenario)?.iter().map(paper).collect();
        figure.series.push(bars("paper", Origin::Paper, &names, values));
    }
    figure.series.push(bars("chihani2011", Origin::Model, &names, of(Preset::Chihani2011)?));
    figure.series.push(bars("rfc8684", Origin::Simulated, &names, of(Preset::Rfc8684)?));
    figure.note = Some("Means of 5 (chihani2011) and 3 runs (rfc8684)".to_owned());
    Ok(figure)
}
