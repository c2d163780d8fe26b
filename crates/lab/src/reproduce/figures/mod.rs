//! Figures of the report page: printed, predicted and simulated values in one frame.

mod alheid;
mod kuhn;
mod peers;
mod sarwar;
mod slides;
mod wallace;

use super::catalogue::Item;
use super::expected::Expected;
use super::plan::{RunKey, Runs};
use super::quantity;
use super::row::{Figure, FigureSeries, Origin, Style, Value};

/// Sources for figures.
#[derive(Clone, Copy, Debug)]
pub struct FigureSources<'a> {
    /// The paper. `None` for a peer.
    pub expected: Option<&'a Expected>,
    /// Finished simulations.
    pub runs: &'a Runs,
}

/// Simulations that only figures need.
pub fn keys(item: Item) -> Vec<RunKey> {
    match (item.paper, item.name) {
        ("slides2013", name) => slides::keys(name),
        ("kuhn2014", name) => kuhn::keys(name),
        ("sarwar2013", "figures-1-2") => sarwar::packet_keys(),
        _ => Vec::new(),
    }
}

/// The figures of an item.
///
/// # Errors
/// If a run failed; the rows of the item state which run and why.
pub fn figures(item: Item, sources: FigureSources<'_>) -> Result<Vec<Figure>, String> {
    match (item.paper, item.name) {
        ("slides2013", "tmaxblock") => slides::blocking(sources),
        ("slides2013", "cases") => slides::cases(sources),
        ("kuhn2014", name) => kuhn::figures(name, sources),
        ("sarwar2013", "figures-1-2") => sarwar::packets(sources),
        ("sarwar2013", "figures-5-6") => sarwar::slot(sources),
        ("sarwar2013", "figures-7-8") => sarwar::errors(sources),
        ("alheid2016", name) => alheid::figures(name, sources),
        ("wallace2014", name) => wallace::figures(name, sources),
        ("ns2", name) => peers::figures(name, sources),
        _ => Ok(Vec::new()),
    }
}

/// A series with a bar for each category.
fn bars(name: &str, source: Origin, categories: &[String], y: Vec<f64>) -> FigureSeries {
    let x = categories.iter().cloned().map(Value::Text).collect();
    let y = y.into_iter().map(Some).collect();
    FigureSeries { name: name.to_owned(), source, style: Style::Bars, x, y }
}

/// A curve through points.
fn line(name: &str, source: Origin, points: impl IntoIterator<Item = (f64, f64)>) -> FigureSeries {
    let (x, y) = points.into_iter().map(|(x, y)| (Value::Number(x), Some(y))).unzip();
    FigureSeries { name: name.to_owned(), source, style: Style::Line, x, y }
}

/// A series of points.
fn dots(name: &str, source: Origin, points: impl IntoIterator<Item = (f64, f64)>) -> FigureSeries {
    FigureSeries { style: Style::Points, ..line(name, source, points) }
}

/// The schedulers in the figures of the two papers on DAPS, with their names.
const SCHEDULERS: [(&str, &str); 2] =
    [("round-robin", "round robin"), ("daps", "DAPS as published")];

/// A quantity of one scheduler over several scenario files, times `factor`, with one run each.
fn simulated(
    runs: &Runs,
    (paper, scheduler): (&str, &str),
    files: &[String],
    (name, factor): (&str, f64),
) -> Result<Vec<f64>, String> {
    let one = |file: &String| {
        let key = RunKey::new(paper, file, scheduler);
        let value = quantity::of_run(&runs.get(&key)?.result, &key.scenario()?, name)?;
        Ok(value * factor)
    };
    files.iter().map(one).collect()
}
