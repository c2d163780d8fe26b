//! `ropewalk sweep`: simulates a grid of points, on all cores, resumable, in shards.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use clap::Args;
use ropewalk_lab::result::{Column, Figure, Unit, swept};
use ropewalk_lab::sweep::{
    self, Axis, RecordBatch, Seeds, Shard, Source, Sweep, SweepError, SweepEstimate, SweepOptions,
    SweepPlan, Tables, to_json, value, varied,
};
use ropewalk_lab::{CustomSchedulers, RunResult};
use ropewalk_scenario::ScenarioText;
use serde_json::{Value, json};

use crate::args::FileArgs;
use crate::console::{Console, width};
use crate::failure::Failure;
use crate::output;
use crate::printer::{count, quantity, rate, size, time};
use crate::progress::{Progress, with_bar};
use crate::table::Table;

/// Most rows shown; the file has all of them.
const SHOWN: usize = 100;

/// Arguments of `sweep`.
#[derive(Debug, Args)]
#[command(mut_arg("scenario", |arg| arg.required(false).required_unless_present("merge")))]
#[command(after_help = "Examples:\n  \
    ropewalk sweep scenarios/wifi-lte.toml --vary path.lte.rtt=40ms..200ms/3 --dry-run\n  \
    ropewalk sweep scenarios/wifi-lte.toml --vary transfer.scheduler=round-robin,daps --seeds 3\n  \
    ropewalk sweep scenarios/wifi-lte.toml --vary path.lte.rtt=40ms,80ms --seeds 2 --out a.parquet\n  \
    ropewalk sweep scenarios/wifi-lte.toml --vary path.lte.rtt=40ms,80ms --seeds 3..4 --out a.parquet\n  \
    ropewalk sweep scenarios/wifi-lte.toml --vary 'transfer.receive_buffer=16kB..256kB/3 log' --json\n\n\
    VALUES is a list whose items are values or ranges: a..b/n has n values from a to b, both\n\
    included; a..b/n log spaces them by equal factors. Every --vary adds a dimension to the grid.\n\n\
    On several machines, each runs a shard (--shard 1/8 --out 1.parquet), and then\n\
    `ropewalk sweep --merge 1.parquet 2.parquet ... --out all.parquet` joins them.\n\n\
    FILE has one row per run. The same command resumes an interrupted sweep:\n\
    finished runs are in FILE.journal. Other --seeds are added to those that FILE has;\n\
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
    /// Write one row per run, and save finished runs there
    #[arg(long, value_name = "FILE.parquet")]
    out: Option<PathBuf>,
    /// Write one row per point, with the means over its runs
    #[arg(long, value_name = "FILE.parquet", conflicts_with = "dry_run")]
    means: Option<PathBuf>,
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
    /// Print the result as one JSON document, each point or run on its own line
    #[arg(long)]
    json: bool,
}

/// Runs, estimates or merges a sweep, and shows its table.
///
/// # Errors
/// [`Failure`]. Points with failed runs are kept and shown with the others and make the command fail at the
/// end.
pub fn execute(args: &SweepArgs, console: Console) -> Result<(), Failure> {
    let Some(scenario) = &args.scenario else { return join(args, console) };
    if args.shard.is_some() && args.out.is_none() && !args.dry_run {
        let message = "--shard without --out leaves nothing that can be joined";
        return Err(Failure::input(message, "give each shard a file: --out shard-1.parquet"));
    }
    check_means(args)?;
    let plan = plan(scenario, args)?;
    let cores = available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or(cores, usize::from);
    let options = SweepOptions { out: args.out.as_deref(), shard: args.shard, fresh: args.fresh };
    if args.dry_run {
        return print_estimate(&sweep::estimate(&plan, &options)?, threads, args.json);
    }
    let sweep = Sweep::open(&plan, options)?;
    let left = sweep.left().len() as u64;
    tell_what_is_there(&sweep, left, args, console);
    let progress = Progress::steps(left);
    let label = format!("sweeping {}", scenario.title());
    let step = || {
        progress.step();
        ControlFlow::Continue(())
    };
    let tables = with_bar(console, &label, &progress, || sweep.finish(threads, &step))?;
    show(&tables, args, console)
}

fn join(args: &SweepArgs, console: Console) -> Result<(), Failure> {
    let out = args.out.as_deref().unwrap_or(Path::new(""));
    sweep::check_out("--out", out)?;
    check_means(args)?;
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
    Ok(sweep::check_out("--means", means)?)
}

fn plan(scenario: &FileArgs, args: &SweepArgs) -> Result<SweepPlan, Failure> {
    let axes: Vec<Axis> =
        args.vary.iter().map(|vary| Axis::parse(vary)).collect::<Result<_, _>>()?;
    // Check the unchanged file first: its problems have nothing to do with the sweep.
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

fn print_estimate(estimate: &SweepEstimate, threads: usize, as_json: bool) -> Result<(), Failure> {
    let each = estimate.run_cpu_s.unwrap_or(0.0);
    let seconds = each * estimate.runs_left as f64 / threads as f64;
    if as_json {
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
    let table = if args.runs { runs } else { means };
    output::print(&if args.json { to_json(table) } else { text(table) })?;
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

/// The figures that the table shows.
fn shown() -> Vec<Figure<RunResult>> {
    let mut figures = swept();
    figures.retain(|figure| figure.show.sweep == Column::Shown);
    figures
}

fn text(table: &RecordBatch) -> String {
    let keys = varied(table);
    let names = keys.iter().map(|key| key.strip_suffix(unit_of(key)).unwrap_or(key));
    let single = table.column_by_name("seed_number").is_some();
    // Points share one column: a table that is too wide repeats its first column in a block below.
    let point = names.chain(single.then_some("seed")).collect::<Vec<_>>().join(", ");
    let shown = shown();
    let headings: Vec<String> =
        std::iter::once(point).chain(shown.iter().map(Figure::heading)).collect();
    let mut lines = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for row in 0..table.num_rows().min(SHOWN) {
        let values = keys.iter().map(|key| varied_cell(key, &value(table, key, row)));
        let seed = single.then(|| value(table, "seed_number", row).to_string());
        let figures = shown.iter().map(|figure| {
            let name = figure.column();
            let of = |name: &str| value(table, name, row).as_f64();
            match (of(&name), of(&format!("{name}_half_width"))) {
                (None, _) => "-".to_owned(),
                (Some(mean), None) => quantity(mean, figure.show.unit),
                (Some(mean), Some(half)) => with_interval(mean, half, figure.show.unit),
            }
        });
        let point = values.chain(seed).collect::<Vec<_>>().join(", ");
        lines.row(std::iter::once(point).chain(figures).collect());
    }
    let mut text = lines.text(width());
    if table.num_rows() > SHOWN {
        let what = if single { "runs" } else { "points" };
        text += &format!("... and {} more {what}\n", count((table.num_rows() - SHOWN) as u64));
    }
    let runs = |row| value(table, "runs", row).as_u64();
    if (0..table.num_rows()).any(|row| runs(row) > Some(1)) {
        text += "\n±  half of a 95 % confidence interval of the mean\n";
    }
    text
}

/// What the name of a column has after the key.
fn unit_of(column: &str) -> &'static str {
    ["_s", "_bps", "_bytes"].into_iter().find(|unit| column.ends_with(unit)).unwrap_or("")
}

fn varied_cell(column: &str, cell: &Value) -> String {
    match (cell.as_f64(), unit_of(column)) {
        (Some(seconds), "_s") => time(seconds),
        (Some(bps), "_bps") => rate(bps),
        (Some(bytes), "_bytes") => size(bytes),
        (Some(number), _) => number.to_string(),
        (None, _) => cell.as_str().map_or_else(|| cell.to_string(), str::to_owned),
    }
}

/// Mean and half width in the unit of the mean, which fits more columns on a screen.
fn with_interval(mean: f64, half: f64, unit: Unit) -> String {
    if unit == Unit::Count {
        return format!("{mean:.1} ± {half:.1}");
    }
    let shown = quantity(mean, unit);
    let (digits, symbol) = shown.split_once(' ').unwrap_or((&shown, ""));
    match digits.parse::<f64>() {
        Ok(number) if number != 0.0 => {
            let decimals = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
            let half = half * number / mean;
            format!("{digits} ± {half:.decimals$} {symbol}").trim_end().to_owned()
        }
        _ => format!("{shown} ± {}", quantity(half, unit)),
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
    fn an_interval_stands_in_the_unit_of_its_mean() {
        for (mean, half, unit, text) in [
            (2.862e6, 7_351.0, Unit::BitsPerSecond, "2.862 ± 0.007 Mbit/s"),
            (0.994, 0.003, Unit::Ratio, "99.4 ± 0.3 %"),
            (0.0, 0.0, Unit::Seconds, "0 s ± 0 s"),
            (1_000.0, 12.34, Unit::Count, "1000.0 ± 12.3"),
        ] {
            assert_eq!(with_interval(mean, half, unit), text);
        }
    }

    #[test]
    fn varied_values_are_shown_in_their_unit() {
        for (column, cell, text) in [
            ("path.lte.rtt_s", json!(0.02), "20.00 ms"),
            ("transfer.receive_buffer_bytes", json!(45_000), "45.00 kB"),
            ("path.lte.rate_bps", json!(2e6), "2.000 Mbit/s"),
            ("path.lte.loss", json!(0.01), "0.01"),
            ("transfer.scheduler", json!("daps"), "daps"),
            ("transfer.unordered", json!(true), "true"),
        ] {
            assert_eq!(varied_cell(column, &cell), text);
        }
    }
}
