//! The output of `compare`.

use ropewalk_lab::RunResult;
use ropewalk_lab::compare::{Change, Compared, Comparison, RepeatedPart, Summary};
use ropewalk_lab::result::{Better, Column, Figure, Group, Unit, compared, telling_flow_columns};
use ropewalk_scenario::duration_text;

use super::variants::Variants;
use crate::console::{width, wrapped};
use crate::failure::Failure;
use crate::format::Captioned;
use crate::printer::rate;
use crate::table::{Cell, Table};

/// The scenario, the seeds, and the properties that all runs have in common.
pub fn heading(title: &str, runs: &[Compared], seeds: u64) -> String {
    let same = |of: &dyn Fn(&Compared) -> String| {
        let first = runs.first().map(of)?;
        runs.iter().all(|run| of(run) == first).then_some(first)
    };
    let first = runs.first().map_or(0, |run| run.scenario.transfer.seed);
    let seeds = match seeds {
        1 => format!("seed {first}"),
        n => format!("seeds {first} to {}", first.wrapping_add(n - 1)),
    };
    let known = [
        same(&|run| run.scenario.transfer.protocol.to_string()),
        same(&|run| run.scenario.scheduler.label().to_owned()),
        Some(seeds),
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    let length = same(&|run| {
        let transfer = &run.scenario.transfer;
        format!(
            "; {} with a warm-up of {}",
            duration_text(transfer.duration),
            duration_text(transfer.warmup)
        )
    });
    format!("{title}: {}{}\n", known.join(", "), length.unwrap_or_default())
}

/// The figures that the table shows.
fn shown() -> Vec<Figure<RunResult>> {
    let mut figures = compared();
    figures.retain(|figure| figure.show.compare == Column::Shown);
    figures
}

/// Order of the rows: by the column of a figure, or as given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Position among the columns after the names, and whether large values come first.
    by: Option<(usize, bool)>,
}

/// Name of the order in which the variants were given.
const GIVEN: &str = "given";

/// The order that `--sort` requests.
///
/// # Errors
/// No column of the table has this name.
pub fn order(asked: Option<&str>, only_schedulers: bool) -> Result<Order, Failure> {
    let default = if only_schedulers { "goodput_bps" } else { GIVEN };
    let wanted = asked.unwrap_or(default);
    if wanted == GIVEN {
        return Ok(Order { by: None });
    }
    let columns = columns();
    let found = columns.iter().position(|column| column.key == wanted);
    let Some(position) = found else {
        let known: Vec<&str> = columns.iter().map(|column| column.key.as_str()).collect();
        let message = format!("--sort {wanted}: the table has no such column");
        return Err(Failure::input(message, format!("valid: {GIVEN}, {}", known.join(", "))));
    };
    Ok(Order { by: Some((position, columns[position].better == Better::High)) })
}

/// A column of the table after those that name the variant.
struct ShownColumn {
    heading: String,
    key: String,
    better: Better,
    of: Box<dyn Fn(&Summary) -> Cell>,
}

fn columns() -> Vec<ShownColumn> {
    let figures = shown();
    let own = figures.iter().map(|figure| {
        let (column, unit) = (figure.column(), figure.show.unit);
        let of = move |summary: &Summary| Cell::mean(*summary.figures.get(&column), unit);
        let better = figure.show.better;
        ShownColumn { heading: figure.heading(), key: figure.column(), better, of: Box::new(of) }
    });
    let gain = ShownColumn {
        heading: "of best path".to_owned(),
        key: "gain".to_owned(),
        better: Better::High,
        of: Box::new(|summary| Cell::mean(summary.gain, Unit::Ratio)),
    };
    with_gain(&figures, own, gain)
}

/// The variants side by side.
pub fn table(comparison: &Comparison, variants: &Variants, order: Order) -> Table {
    let columns = columns();
    let mut table = Table::empty();
    for name in &variants.columns {
        table.name(name, name);
    }
    for column in &columns {
        table.column(&column.heading, &column.key);
    }
    let named = variants.all.iter().zip(&variants.names);
    for (variant, names) in named {
        let summary = comparison.summary.iter().find(|one| one.label == variant.label);
        let summary = summary.expect("a summary of every variant");
        let mut cells: Vec<Cell> = columns.iter().map(|column| (column.of)(summary)).collect();
        if summary.runs == 0 {
            cells[0] = Cell::from("failed");
        }
        table.row(names.iter().cloned().map(Cell::from).chain(cells).collect());
    }
    if let Some((position, descending)) = order.by {
        table.sort(variants.columns.len() + position, descending);
    }
    table
}

/// The flows of each variant side by side. `None` if there is neither a tunnel nor a source of
/// messages.
fn flow_table(comparison: &Comparison, variants: &Variants) -> Option<Table> {
    let all = || comparison.summary.iter().flat_map(|summary| &summary.flows);
    let columns = telling_flow_columns(|figure| {
        let value =
            |flow: &RepeatedPart| flow.figures.get(&figure.column()).map(|value| value.mean);
        all().map(value).collect()
    });
    let mut table = Table::empty();
    table.name("flow", "flow");
    for name in &variants.columns {
        table.name(name, name);
    }
    for figure in &columns {
        table.column(&figure.heading(), &figure.column());
    }
    let mut names: Vec<&str> = Vec::new();
    for flow in all() {
        if !names.contains(&flow.name.as_str()) {
            names.push(&flow.name);
        }
    }
    for name in &names {
        for (variant, labels) in variants.all.iter().zip(&variants.names) {
            let summary = comparison.summary.iter().find(|one| one.label == variant.label)?;
            let Some(flow) = summary.flows.iter().find(|flow| flow.name == *name) else { continue };
            let cells = columns
                .iter()
                .map(|figure| Cell::mean(*flow.figures.get(&figure.column()), figure.show.unit));
            let labels = labels.iter().cloned().map(Cell::from);
            table.row([Cell::from(*name)].into_iter().chain(labels).chain(cells).collect());
        }
    }
    (!names.is_empty()).then_some(table)
}

/// All tables with their captions.
pub fn tables(comparison: &Comparison, variants: &Variants, table: Table) -> Vec<Captioned> {
    let flows = flow_table(comparison, variants);
    let more = flows.into_iter().chain(paired_table(comparison));
    [table].into_iter().chain(more).map(|table| Captioned::new("", table)).collect()
}

/// The variants as CSV. With a tunnel, an empty line and the flows of each variant follow.
pub fn csv(comparison: &Comparison, variants: &Variants, table: &Table) -> String {
    let flows = flow_table(comparison, variants).map(|flows| format!("\n{}", flows.csv()));
    table.csv() + &flows.unwrap_or_default()
}

/// The complete output.
pub fn text(
    heading: String,
    table: Table,
    comparison: &Comparison,
    (variants, runs): (&Variants, &[Compared]),
) -> String {
    let legend = legend(comparison, runs, table.interval_note());
    let tables = tables(comparison, variants, table);
    let tables = tables.iter().map(Captioned::text);
    let parts = [heading].into_iter().chain(tables).chain([legend]);
    parts.collect::<Vec<_>>().join("\n")
}

/// Cells of figures, with the gain over the best path after those about goodput.
pub fn with_gain<T>(
    figures: &[Figure<RunResult>],
    cells: impl Iterator<Item = T>,
    gain: T,
) -> Vec<T> {
    let mut cells: Vec<T> = cells.collect();
    let goodput = figures.iter().filter(|figure| figure.show.group == Group::Goodput);
    cells.insert(goodput.count(), gain);
    cells
}

/// Each variant compared with the reference, seed by seed. `None` without `--paired`.
fn paired_table(comparison: &Comparison) -> Option<Table> {
    let first = comparison.paired.first()?;
    let beside = format!("beside {}", first.reference);
    let mut table =
        Table::new(&[&beside, "pairs", "goodput", "delay mean", "delay p99", "peak buffer"]);
    let signed = |share: f64| format!("{:+.1}", 100.0 * share);
    let cell = |change: Option<Change>| match change {
        None => Cell::Unknown,
        Some(Change { mean, low: Some(low), high: Some(high), .. }) => {
            Cell::Text(format!("{} % ({} to {})", signed(mean), signed(low), signed(high)))
        }
        Some(Change { mean, .. }) => Cell::Text(format!("{} %", signed(mean))),
    };
    for pair in &comparison.paired {
        table.row(vec![
            Cell::from(pair.label.clone()),
            Cell::count(pair.pairs as u64),
            cell(pair.goodput),
            cell(pair.app_delay_mean),
            cell(pair.app_delay_p99),
            cell(pair.receive_buffer_max),
        ]);
    }
    Some(table)
}

/// Explanation of the headings.
fn legend(comparison: &Comparison, runs: &[Compared], intervals: Option<&str>) -> String {
    let mut lines: Vec<(String, String)> = figure_legend(&shown());
    let best = best_paths(runs);
    lines.push(("of best path".into(), format!("goodput over that of the best path alone{best}")));
    lines.extend(intervals.map(|text| ("±".into(), text.to_owned())));
    if !comparison.paired.is_empty() {
        let text = "mean change of the same seed, with its 95 % interval; significant where that excludes 0";
        lines.push(("beside".into(), text.to_owned()));
    }
    let width = width();
    lines.iter().map(|(name, text)| wrapped(&format!("{name:<15}"), text, width)).collect()
}

/// Explanation of the headings of figures.
pub fn figure_legend(figures: &[Figure<RunResult>]) -> Vec<(String, String)> {
    let mut lines: Vec<(String, String)> = Vec::new();
    for figure in figures {
        // The figures of such a group differ only in the statistic, which the heading names.
        let note = figure.show.group.note();
        let (name, text) = if note.is_empty() {
            (figure.heading(), as_phrase(figure.meaning()))
        } else {
            (figure.show.group.label().to_lowercase(), note.to_owned())
        };
        if lines.iter().all(|(known, _)| *known != name) {
            lines.push((name, text));
        }
    }
    lines
}

/// Converts a sentence to a phrase: with a lower-case initial and without the full stop.
fn as_phrase(sentence: &str) -> String {
    let mut characters = sentence.trim_end_matches('.').chars();
    let first = characters.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}

/// The best path alone, if it and its figure are the same in all runs.
fn best_paths(runs: &[Compared]) -> String {
    let mut known = runs.iter().map(|run| run.best_path.as_ref());
    match known.next() {
        Some(Some(first)) if known.all(|one| one == Some(first)) => {
            format!(": {} with {}", first.name, rate(first.goodput_bps))
        }
        _ => String::new(),
    }
}
