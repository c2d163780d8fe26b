//! `ropewalk sweep`: simulates a grid of points, on all cores, resumable, in shards.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, available_parallelism};

use clap::Args;
use ropewalk_lab::report::{Report, ReportKind};
use ropewalk_lab::result::{Column, Figure, Unit, flow_swept, swept};
use ropewalk_lab::sweep::{
    self, Axis, RecordBatch, Seeds, Shard, Source, Sweep, SweepError, SweepEstimate, SweepOptions,
    SweepPlan, Tables, flow_column, to_json, value, varied,
};
use ropewalk_lab::{CustomSchedulers, RunResult};
use ropewalk_scenario::ScenarioText;
use serde_json::{Value, json};

use super::transfer::runtime;
use crate::args::{FileArgs, command_line};
use crate::console::{Console, layout};
use crate::failure::Failure;
use crate::files::{VERSION, check_report, save_report};
use crate::format::{Captioned, Format, FormatArgs, print_markdown};
use crate::live::Interrupt;
use crate::output;
use crate::printer::{count, time};
use crate::progress::{Progress, with_bar};
use crate::table::{Cell, Table};

/// Most rows shown; the file has all of them.
const SHOWN: usize = 100;

/// Arguments of `sweep`.
#[derive(Debug, Args)]
#[command(mut_arg("scenario", |arg| arg.required(false).required_unless_present("merge")))]
#[command(after_help = "Examples:\n  \
    ropewalk sweep wifi-lte --vary path.lte.rtt=40ms..200ms/3 --dry-run\n  \
    ropewalk sweep wifi-lte --vary transfer.scheduler=round-robin,daps --seeds 3\n  \
    ropewalk sweep wifi-lte --vary path.lte.rtt=40ms,80ms --seeds 2 --out a.parquet\n  \
    ropewalk sweep wifi-lte --vary path.lte.rtt=40ms,80ms --seeds 3..4 --out a.parquet\n  \
    ropewalk sweep wifi-lte --vary 'transfer.receive_buffer=16kB..256kB/3 log' --json\n  \
    ropewalk sweep wifi-lte --vary path.lte.rtt=40ms,80ms --vary path.lte.loss=0.0,0.01 --out a.csv\n  \
    ropewalk sweep wifi-lte --vary path.lte.rtt=40ms..200ms/5 --seeds 2 --report rtt.html\n\n\
    VALUES is a list whose items are values or ranges: a..b/n has n values from a to b, both \
    included; a..b/n log spaces them by equal factors. Every --vary adds a dimension to the grid.\n\n\
    On several machines, each runs a shard (--shard 1/8 --out 1.parquet), and then \
    `ropewalk sweep --merge 1.parquet 2.parquet ... --out all.parquet` joins them.\n\n\
    A Parquet FILE has one row per run. The same command resumes an interrupted sweep: \
    finished runs are in FILE.journal. Other --seeds are added to those that FILE has; \
    means are then over all of them.")]
pub struct SweepArgs {
    #[command(flatten)]
    scenario: Option<FileArgs>,
    /// A key and its values; may be repeated
    #[arg(long, value_name = "KEY=VALUES")]
    vary: Vec<String>,
    /// Seeds of each point: the first N of the seed tree, or numbers such as 11..20 or 1..10,15;
    /// means come with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value = "1", value_parser = str::parse::<Seeds>)]
    seeds: Seeds,
    /// Threads; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Write one row per run: .parquet, which also saves finished runs, or .csv, which cannot be resumed
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write one row per point, with the means over its runs: .parquet or .csv
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    means: Option<PathBuf>,
    /// Write a report with charts of every figure, one file that opens in any browser
    #[arg(long, value_name = "FILE.html", conflicts_with = "dry_run")]
    report: Option<PathBuf>,
    /// Show and print one row per run instead of one per point
    #[arg(long, conflicts_with = "dry_run")]
    runs: bool,
    /// Run only every n-th point, beginning with the i-th
    #[arg(long, value_name = "I/N", value_parser = str::parse::<Shard>)]
    shard: Option<Shard>,
    /// Start from scratch: discard what FILE and its journal contain
    #[arg(long)]
    fresh: bool,
    /// Show how many points there are and how long they will take; write nothing
    #[arg(long)]
    dry_run: bool,
    /// Join the results of all shards, or of several --seeds, instead of running anything
    #[arg(long, value_name = "FILE.parquet", num_args = 1.., requires = "out", conflicts_with_all =
        ["scenario", "sets", "seed", "vary", "seeds", "threads", "shard", "fresh", "dry_run"])]
    merge: Vec<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
}

/// Runs, estimates or merges a sweep, and shows its table.
///
/// # Errors
/// [`Failure`]. Points with failed runs are kept and shown with the others and make the command fail at the
/// end.
pub fn execute(args: &SweepArgs, console: Console) -> Result<(), Failure> {
    let Some(scenario) = &args.scenario else { return join(args, console) };
    let resumable = args.out.as_deref().filter(|out| !sweep::is_csv(out));
    if args.shard.is_some() && resumable.is_none() && !args.dry_run {
        let message = "--shard without a Parquet file leaves nothing that can be joined";
        return Err(Failure::input(message, "give each shard a file: --out shard-1.parquet"));
    }
    args.out.as_deref().map_or(Ok(()), |out| sweep::check_table("--out", out))?;
    check_means(args)?;
    args.report.as_deref().map_or(Ok(()), check_report)?;
    let plan = plan(scenario, args)?;
    let cores = available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or(cores, usize::from);
    let options = SweepOptions { out: resumable, shard: args.shard, fresh: args.fresh };
    if args.dry_run {
        return print_estimate(&sweep::estimate(&plan, &options)?, threads, args.format.format());
    }
    let sweep = Sweep::open(&plan, options)?;
    let left = sweep.left().len() as u64;
    tell_what_is_there(&sweep, left, args, console);
    let progress = Progress::steps(left);
    let label = format!("sweeping {}", scenario.title());
    let stop = Arc::new(AtomicBool::new(false));
    if resumable.is_some() {
        stop_on_signal(Arc::clone(&stop));
    }
    let step = || {
        progress.step();
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let tables = with_bar(console, &label, &progress, || sweep.finish(threads, &step));
    let tables = tables.map_err(|error| match (error, resumable) {
        (SweepError::Stopped, Some(out)) => Failure::Run(format!(
            "interrupted; finished runs are kept next to {}\n = help: the same command resumes the sweep",
            out.display()
        )),
        (error, _) => error.into(),
    })?;
    if let Some(out) = args.out.as_deref().filter(|out| sweep::is_csv(out)) {
        sweep::write(out, &tables.runs)?;
    }
    show(&tables, args, console)
}

/// Sets `stop` at the first signal that ends a command: runs that have begun are finished and kept. The second signal ends
/// the process.
fn stop_on_signal(stop: Arc<AtomicBool>) {
    thread::spawn(move || {
        let Ok(runtime) = runtime() else { return };
        runtime.block_on(async {
            let mut interrupt = Interrupt::install();
            interrupt.wait().await;
            stop.store(true, Ordering::Relaxed);
            interrupt.wait().await;
            std::process::exit(1);
        });
    });
}

fn join(args: &SweepArgs, console: Console) -> Result<(), Failure> {
    let out = args.out.as_deref().unwrap_or(Path::new(""));
    sweep::check_table("--out", out)?;
    check_means(args)?;
    args.report.as_deref().map_or(Ok(()), check_report)?;
    let tables = sweep::merge(&args.merge)?;
    sweep::write(out, &tables.runs)?;
    show(&tables, args, console)
}

fn check_means(args: &SweepArgs) -> Result<(), Failure> {
    let Some(means) = &args.means else { return Ok(()) };
    if args.out.as_ref() == Some(means) {
        let message = format!("--means {}: this is the file of --out", means.display());
        return Err(Failure::input(message, "give the two tables names of their own"));
    }
    Ok(sweep::check_table("--means", means)?)
}

fn plan(scenario: &FileArgs, args: &SweepArgs) -> Result<SweepPlan, Failure> {
    let axes: Vec<Axis> =
        args.vary.iter().map(|vary| Axis::parse(vary)).collect::<Result<_, _>>()?;
    // Check the unchanged file first: its errors are independent of the sweep.
    scenario.load_with(&[])?;
    let ScenarioText { name, text } = scenario.source()?.clone();
    let source = Source {
        text,
        name,
        sets: scenario.sets.clone(),
        seed: scenario.seed,
        custom_schedulers: CustomSchedulers::default(),
    };
    Ok(SweepPlan::new(source, axes, args.seeds.clone())?)
}

fn tell_what_is_there(sweep: &Sweep, left: u64, args: &SweepArgs, console: Console) {
    let Some(out) = &args.out else { return };
    let all = sweep.runs();
    if left == 0 {
        let out = out.display();
        console.note(format_args!("{out} has all {all} runs; --fresh runs them again"));
    } else if left < all {
        console.note(format_args!("resumed: {} of {all} runs are finished", all - left));
    }
    if *sweep.seeds() != args.seeds && left < all {
        let (asked, all) = (&args.seeds, sweep.seeds());
        console.note(format_args!("seeds {asked} requested; with those in the file, {all}"));
    }
}

fn print_estimate(estimate: &SweepEstimate, threads: usize, format: Format) -> Result<(), Failure> {
    let each = estimate.run_cpu_s.unwrap_or(0.0);
    let seconds = each * estimate.runs_left as f64 / threads as f64;
    if format == Format::Json {
        return output::print_json(&json!({
            "schema": "ropewalk.sweep-outlook/1",
            "points": estimate.points,
            "points_left": estimate.points_left,
            "runs_left": estimate.runs_left,
            "run_cpu_s": estimate.run_cpu_s,
            "threads": threads,
            "estimated_s": seconds,
        }));
    }
    let finished = estimate.points - estimate.points_left;
    let mut text =
        format!("{} points, {finished} of them finished\n", count(estimate.points as u64));
    text += &format!("{} runs left", count(estimate.runs_left));
    if estimate.run_cpu_s.is_some() {
        text +=
            &format!(", about {} each: {} on {threads} threads", time(each), long_time(seconds));
    }
    output::print(&(text + "\n"))
}

/// A time that can be as long as hours.
fn long_time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => time(seconds),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

fn show(tables: &Tables, args: &SweepArgs, console: Console) -> Result<(), Failure> {
    let Tables { runs, means } = tables;
    if let Some(path) = &args.means {
        sweep::write(path, means)?;
    }
    if let Some(path) = &args.report {
        save_report(path, &report(args, means)?, console)?;
    }
    let table = if args.runs { runs } else { means };
    match args.format.format() {
        Format::Json => output::print(&to_json(table))?,
        Format::Csv => output::print(&sweep::csv(table)?)?,
        Format::Markdown => {
            let tables = [Some(shown_table(table, usize::MAX)), flow_table(table, usize::MAX)];
            let tables = tables.into_iter().flatten().map(|table| Captioned::new("", table));
            print_markdown(&tables.collect::<Vec<_>>())?;
        }
        Format::Text => output::print(&text(table))?,
    }
    for (what, path) in [("runs", &args.out), ("means", &args.means)] {
        if let Some(path) = path {
            console.note(format_args!("{what}: {}", path.display()));
        }
    }
    let error = |row: &usize| value(runs, "error", *row).as_str().map(str::to_owned);
    let failed = (0..runs.num_rows()).filter(|row| error(row).is_some()).count();
    let first = (0..runs.num_rows()).find_map(|row| Some((row, error(&row)?)));
    let Some((row, reason)) = first else { return Ok(()) };
    let (all, point) = (runs.num_rows(), value(runs, "point", row));
    let message = format!("{failed} of {all} runs failed, the first at point {point}: {reason}");
    Err(Failure::Run(message))
}

/// The report of the points.
fn report(args: &SweepArgs, means: &RecordBatch) -> Result<Report, Failure> {
    let title = args.scenario.as_ref().map_or_else(|| "Sweep".to_owned(), FileArgs::title);
    let mut report = Report::new(title, ReportKind::Sweep, VERSION.to_owned(), command_line());
    let document: Value = serde_json::from_str(&to_json(means))
        .map_err(|error| Failure::Run(format!("the result cannot be written as JSON: {error}")))?;
    let key = |column: String| {
        let unit = unit_of(&column);
        let label = column.strip_suffix(unit).unwrap_or(&column).to_owned();
        let kind = match unit {
            "_s" => "time",
            "_bps" => "rate",
            "_bytes" => "bytes",
            _ => "number",
        };
        json!({ "column": column, "label": label, "kind": kind })
    };
    let keys: Vec<Value> = varied(means).into_iter().map(key).collect();
    let schema = means.schema();
    let flows = schema.fields().iter().filter_map(|field| {
        let (flow, figure) = flow_column(field.name())?;
        Some(json!({
            "column": field.name(),
            "label": format!("{flow}: {}", figure.show.label),
            "kind": figure.show.unit.kind(),
            "better": figure.show.better.word(),
            "means": figure.meaning(),
        }))
    });
    let flows: Vec<Value> = flows.collect();
    report.sweep = Some(json!({ "keys": keys, "points": document["points"], "flows": flows }));
    Ok(report)
}

/// The figures that the table shows.
fn shown() -> Vec<Figure<RunResult>> {
    let mut figures = swept();
    figures.retain(|figure| figure.show.sweep == Column::Shown);
    figures
}

fn text(table: &RecordBatch) -> String {
    let shown = shown_table(table, SHOWN);
    let mut text = shown.text(layout());
    if table.num_rows() > SHOWN {
        let what = if is_single(table) { "runs" } else { "points" };
        text += &format!("... and {} more {what}\n", count((table.num_rows() - SHOWN) as u64));
    }
    if let Some(flows) = flow_table(table, SHOWN) {
        text += &format!("\n{}", flows.text(layout()));
        let lines = flow_names(table).len() * table.num_rows();
        if lines > SHOWN {
            text += &format!("... and {} more lines\n", count((lines - SHOWN) as u64));
        }
    }
    if let Some(note) = shown.interval_note() {
        text += &format!("\n±  {note}\n");
    }
    text
}

/// Whether each row is a run, not a point.
fn is_single(table: &RecordBatch) -> bool {
    table.column_by_name("seed_number").is_some()
}

/// The first rows with the varied keys and the main figures.
fn shown_table(table: &RecordBatch, rows: usize) -> Table {
    let figures = shown();
    let mut lines = Table::empty();
    name_points(table, &mut lines);
    for figure in &figures {
        lines.column(&figure.heading(), &figure.column());
    }
    for row in 0..table.num_rows().min(rows) {
        let cells = figures.iter().map(|f| figure_cell(table, &f.column(), (row, f.show.unit)));
        lines.row(point_cells(table, row).into_iter().chain(cells).collect());
    }
    lines
}

/// The flows of each row, as many lines as given at most; none without flows.
fn flow_table(table: &RecordBatch, most: usize) -> Option<Table> {
    let schema = table.schema();
    let columns: Vec<_> = schema.fields().iter().filter_map(|f| flow_column(f.name())).collect();
    let flows = flow_names(table);
    let mut figures = flow_swept();
    figures.retain(|figure| columns.iter().any(|(_, own)| own.key == figure.key));
    let mut lines = Table::empty();
    lines.name("flow", "flow");
    name_points(table, &mut lines);
    for figure in &figures {
        lines.column(&figure.heading(), &figure.column());
    }
    let places =
        flows.iter().flat_map(|flow| (0..table.num_rows()).map(move |row| (flow.as_str(), row)));
    for (flow, row) in places.take(most) {
        let cells = figures.iter().map(|figure| {
            let name = format!("flow.{flow}.{}", figure.column());
            figure_cell(table, &name, (row, figure.show.unit))
        });
        let names = [Cell::from(flow)].into_iter().chain(point_cells(table, row));
        lines.row(names.chain(cells).collect());
    }
    (!flows.is_empty()).then_some(lines)
}

/// The names of the flows.
fn flow_names(table: &RecordBatch) -> Vec<String> {
    let schema = table.schema();
    let names = schema.fields().iter().filter_map(|f| Some(flow_column(f.name())?.0.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.dedup();
    names
}

/// The headings that name a point, and in a table of single runs the seed.
fn name_points(table: &RecordBatch, lines: &mut Table) {
    for key in varied(table) {
        lines.name(key.strip_suffix(unit_of(&key)).unwrap_or(&key), &key);
    }
    if is_single(table) {
        lines.name("seed", "seed_number");
    }
}

/// The cells below [`name_points`].
fn point_cells(table: &RecordBatch, row: usize) -> Vec<Cell> {
    let keys = varied(table);
    let values = keys.iter().map(|key| varied_cell(key, &value(table, key, row)));
    let seed = is_single(table).then(|| Cell::Text(value(table, "seed_number", row).to_string()));
    values.chain(seed).collect()
}

/// A figure of a row with its interval.
fn figure_cell(table: &RecordBatch, name: &str, (row, unit): (usize, Unit)) -> Cell {
    let of = |name: &str| value(table, name, row).as_f64();
    let half = of(&format!("{name}_half_width"));
    of(name).map_or(Cell::Unknown, |value| Cell::Quantity { value, half, unit })
}

/// What the name of a column has after the key.
fn unit_of(column: &str) -> &'static str {
    ["_s", "_bps", "_bytes"].into_iter().find(|unit| column.ends_with(unit)).unwrap_or("")
}

fn varied_cell(column: &str, cell: &Value) -> Cell {
    match (cell.as_f64(), unit_of(column)) {
        (Some(seconds), "_s") => Cell::of(seconds, Unit::Seconds),
        (Some(bps), "_bps") => Cell::of(bps, Unit::BitsPerSecond),
        (Some(bytes), "_bytes") => Cell::of(bytes, Unit::Bytes),
        (Some(number), _) => Cell::Text(number.to_string()),
        (None, _) => Cell::Text(cell.as_str().map_or_else(|| cell.to_string(), str::to_owned)),
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Input { message, help } => Self::input(message, help),
            SweepError::Scenario(error) => (*error).into(),
            SweepError::File { .. } | SweepError::Stopped => Self::Run(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_are_told_in_the_units_of_a_clock() {
        for (seconds, text) in [(0.25, "250.0 ms"), (61.0, "1 min 1 s"), (7384.0, "2 h 3 min")] {
            assert_eq!(long_time(seconds), text);
        }
    }

    #[test]
    fn varied_values_are_shown_in_their_unit() {
        for (column, cell, text) in [
            ("path.lte.rtt_s", json!(0.02), Cell::of(0.02, Unit::Seconds)),
            ("transfer.receive_buffer_bytes", json!(45_000), Cell::of(45e3, Unit::Bytes)),
            ("path.lte.rate_bps", json!(2e6), Cell::of(2e6, Unit::BitsPerSecond)),
            ("path.lte.loss", json!(0.01), "0.01".into()),
            ("transfer.scheduler", json!("daps"), "daps".into()),
            ("transfer.unordered", json!(true), "true".into()),
        ] {
            assert_eq!(varied_cell(column, &cell), text);
        }
    }
}
