//! The tables of Alheid et al. 2016 as bars: printed, under `chihani2011` and under `rfc8684`.

use ropewalk_base::statistics::mean;

use super::super::alheid::PAPER;
use super::super::alheid::cell::{Cell, Preset, Printed, SEEDS, printed};
use super::super::row::{Figure, Origin};
use super::{FigureSources, bars};

/// A quantity: id, heading, axis label, name in statements, number of the axis's units per unit, and printed
/// values.
type Quantity =
    (&'static str, &'static str, &'static str, (&'static str, f64), Option<fn(&Printed) -> f64>);

const QUANTITIES: [Quantity; 3] = [
    ("goodput", "goodput", "Mbit/s", ("goodput_bps", 1e-6), None),
    ("ratio", "packets stored", "%", ("out_of_order.ratio", 100.0), Some(|p| p.ratio * 100.0)),
    ("buffer", "most stored", "kB", ("out_of_order.max_bytes", 1e-3), Some(|p| p.max_bytes * 1e-3)),
];

/// The figures of each item.
///
/// # Errors
/// A run that failed.
pub fn figures(item: &str, sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    let scenario = item.strip_prefix("scenario-").and_then(|digits| digits.parse().ok());
    let Some(scenario) = scenario else { return Ok(Vec::new()) };
    QUANTITIES.iter().map(|quantity| figure(scenario, quantity, sources)).collect()
}

fn figure(
    scenario: u32,
    (id, heading, unit, (quantity, scale), paper): &Quantity,
    sources: FigureSources<'_>,
) -> Result<Figure, String> {
    let expected = sources.expected.ok_or("the paper has no statements")?;
    let cells = || Cell::all(scenario, Preset::Chihani2011);
    let names: Vec<String> = cells().map(|cell| cell.label()).collect();
    let of = |preset: Preset| {
        let value = |cell| {
            let cell = Cell { preset, ..cell };
            Ok(scale * mean(&cell.values(expected, quantity, sources.runs)?))
        };
        let each = cells().map(value);
        each.collect::<Result<Vec<f64>, String>>()
    };
    let title = format!("Scenario {scenario}: {heading}");
    let mut figure = Figure::empty(PAPER, &format!("{scenario}-{id}"), &title, ("", unit));
    if let Some(paper) = paper {
        let values = printed(scenario)?.iter().map(paper).collect();
        figure.series.push(bars("paper", Origin::Paper, &names, values));
    }
    figure.series.push(bars("chihani2011", Origin::Model, &names, of(Preset::Chihani2011)?));
    figure.series.push(bars("rfc8684", Origin::Simulated, &names, of(Preset::Rfc8684)?));
    figure.note = Some(format!("Means of {SEEDS} runs"));
    Ok(figure)
}
