//! `ropewalk compare`: several schedulers, or several values of a key, on one scenario.

use std::thread::available_parallelism;

use clap::Args;
use ropewalk_lab::compare::{
    Change, CompareOptions, Compared, Comparison, Summary, Variant, compare, paired,
};
use ropewalk_lab::result::{Column, Figure, Group, Unit, compared};
use ropewalk_lab::{CustomSchedulers, RunResult};
use ropewalk_scenario::{Named, Override, SchedulerName, duration_text};

use crate::args::FileArgs;
use crate::console::{Console, width, wrapped};
use crate::failure::Failure;
use crate::files::OutputFiles;
use crate::output;
use crate::printer::{estimate, rate};
use crate::progress::{Progress, with_bar};
use crate::table::Table;
use crate::vary::Vary;

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk compare scenarios/kuhn-2-200-45.toml\n  \
    ropewalk compare scenarios/wifi-lte.toml --schedulers daps,min-rtt --seeds 5 --json\n  \
    ropewalk compare scenarios/lossy-wifi.toml --schedulers lay,min-rtt --seeds 10 --paired\n  \
    ropewalk compare scenarios/sarwar.toml --vary path.slow.rtt=50ms,200ms --report rtt.html")]
pub struct CompareArgs {
    #[command(flatten)]
    scenario: FileArgs,
    /// Schedulers to compare [default: all, or with --vary that of the scenario]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',',
        value_parser = str::parse::<SchedulerName>)]
    schedulers: Vec<SchedulerName>,
    /// Compare values of any key, with each of the schedulers
    #[arg(long, value_name = "KEY=V1,V2")]
    vary: Option<String>,
    /// Runs of each, with consecutive seeds; means come with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// Also show how each differs from a reference, seed by seed: effects that both share cancel. LABEL
    /// names the reference, the first one by default. Needs several seeds
    #[arg(long, value_name = "LABEL", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    paired: Option<String>,
    /// Threads; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Print the results as one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: OutputFiles,
}

/// Runs everything and shows it side by side.
///
/// # Errors
/// [`Failure`]. Failed runs are shown with the others and make the command fail at the end.
pub fn execute(args: &CompareArgs, console: Console) -> Result<(), Failure> {
    let vary = args.vary.as_deref().map(Vary::parse).transpose()?;
    let variants = variants(args, vary.as_ref())?;
    let reference = reference(args, &variants)?;
    let files = args.files.check(console)?;
    let cores = available_parallelism().map_or(1, usize::from);
    let options = CompareOptions {
        seeds: args.seeds,
        threads: args.threads.map_or(cores, usize::from),
        series: files.wants_series(),
        sequence: files.sequence(),
        single_paths: true,
        custom_schedulers: CustomSchedulers::default(),
    };
    let progress = Progress::share();
    let label = format!("comparing on {}", args.scenario.title());
    let work = || compare(&variants, &options, &|share| progress.on_progress(share));
    let runs = with_bar(console, &label, &progress, work);
    let mut comparison = Comparison::new(&runs);
    comparison.paired = reference.map(|label| paired(&runs, &label)).unwrap_or_default();
    files.write_compared(args.scenario.title(), &runs, &comparison.paired)?;
    if args.json {
        output::print_json(&comparison)?;
    } else {
        let text = [
            heading(&args.scenario.title(), &runs, args.seeds),
            table(&comparison, vary.as_ref()),
            paired_table(&comparison),
            legend(&comparison, &runs),
        ];
        let text: Vec<String> = text.into_iter().filter(|part| !part.is_empty()).collect();
        output::print(&text.join("\n"))?;
    }
    let failed = comparison.runs.iter().filter(|run| run.error.is_some());
    let reasons: Vec<String> = failed
        .filter_map(|run| {
            Some(format!("{}, seed {}: {}", run.label, run.seed, run.error.as_ref()?))
        })
        .collect();
    if reasons.is_empty() { Ok(()) } else { Err(Failure::Run(reasons.join("\n"))) }
}

/// The label of the reference for `--paired`, if the option was given.
fn reference(args: &CompareArgs, variants: &[Variant]) -> Result<Option<String>, Failure> {
    let Some(wanted) = &args.paired else { return Ok(None) };
    let labels: Vec<&str> = variants.iter().map(|variant| variant.label.as_str()).collect();
    if args.seeds < 2 || labels.len() < 2 {
        let message = "--paired: there is nothing to pair";
        return Err(Failure::input(
            message,
            "compare at least two variants, for example with --seeds 10",
        ));
    }
    let found =
        if wanted.is_empty() { labels.first() } else { labels.iter().find(|l| *l == wanted) };
    let Some(found) = found else {
        let message = format!("--paired: no variant is called `{wanted}`");
        return Err(Failure::input(message, format!("valid: {}", labels.join("; "))));
    };
    Ok(Some((*found).to_owned()))
}

fn variants(args: &CompareArgs, vary: Option<&Vary>) -> Result<Vec<Variant>, Failure> {
    let of_scenario = args.schedulers.is_empty() && vary.is_some();
    let names = if args.schedulers.is_empty() {
        // `compare` is meant to show quickly what a scenario gains, so it tries all schedulers by default.
        SchedulerName::ALL.iter().copied().filter(|name| is_available(*name)).collect()
    } else {
        args.schedulers.clone()
    };
    let schedulers: Vec<Option<SchedulerName>> =
        if of_scenario { vec![None] } else { names.into_iter().map(Some).collect() };
    let values: Vec<Option<(String, String)>> = match vary {
        Some(vary) => vary.changes().map(Some).collect(),
        None => vec![None],
    };
    let mut variants = Vec::with_capacity(schedulers.len() * values.len());
    for name in schedulers {
        for value in &values {
            variants.push(variant(args, name, value.as_ref())?);
        }
    }
    Ok(variants)
}

fn variant(
    args: &CompareArgs,
    scheduler: Option<SchedulerName>,
    value: Option<&(String, String)>,
) -> Result<Variant, Failure> {
    let name = scheduler.map(|name| name.to_string());
    let set = name.as_ref().map(|name| format!("transfer.scheduler={name}"));
    let scheduler = set.as_deref().map(|change| Override { option: "--schedulers", change });
    let varied = value.map(|(_, change)| Override { option: "--vary", change });
    let changes: Vec<Override<'_>> = scheduler.into_iter().chain(varied).collect();
    let scenario = args.scenario.load_with(&changes)?;
    let label: Vec<&str> =
        name.as_deref().into_iter().chain(value.map(|(label, _)| label.as_str())).collect();
    Ok(Variant { label: label.join(", "), scenario })
}

/// Whether the scheduler is available: a reserved name does not parse.
fn is_available(name: SchedulerName) -> bool {
    name.as_str().parse::<SchedulerName>().is_ok()
}

/// The scenario, the seeds, and what all runs have in common.
fn heading(title: &str, runs: &[Compared], seeds: u64) -> String {
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

fn table(comparison: &Comparison, vary: Option<&Vary>) -> String {
    let first = vary.map_or("", |vary| vary.key.as_str()).to_owned();
    let headings = shown().into_iter().map(|figure| figure.heading());
    let headings = with_gain(&shown(), headings, "of best path".to_owned());
    let headings: Vec<String> = std::iter::once(first).chain(headings).collect();
    let mut table = Table::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
    for summary in &comparison.summary {
        let label = &summary.label;
        table.row(row(vary.map_or_else(|| label.clone(), |vary| vary.value_of(label)), summary));
    }
    table.text(width())
}

fn row(label: String, summary: &Summary) -> Vec<String> {
    let cells = shown().into_iter().enumerate().map(|(number, figure)| {
        if number == 0 && summary.runs == 0 {
            return "failed".to_owned();
        }
        estimate(*summary.figures.get(&figure.column()), figure.show.unit)
    });
    let cells = with_gain(&shown(), cells, estimate(summary.gain, Unit::Ratio));
    std::iter::once(label).chain(cells).collect()
}

/// Cells of figures with the gain over the best path inserted after those about goodput.
pub fn with_gain(
    figures: &[Figure<RunResult>],
    cells: impl Iterator<Item = String>,
    gain: String,
) -> Vec<String> {
    let mut cells: Vec<String> = cells.collect();
    let goodput = figures.iter().filter(|figure| figure.show.group == Group::Goodput);
    cells.insert(goodput.count(), gain);
    cells
}

/// Each variant against the reference, seed by seed; empty without `--paired`.
fn paired_table(comparison: &Comparison) -> String {
    let Some(first) = comparison.paired.first() else { return String::new() };
    let beside = format!("beside {}", first.reference);
    let mut table =
        Table::new(&[&beside, "pairs", "goodput", "delay mean", "delay p99", "peak buffer"]);
    let signed = |share: f64| format!("{:+.1}", 100.0 * share);
    let cell = |change: Option<Change>| match change {
        None => "-".to_owned(),
        Some(Change { mean, low: Some(low), high: Some(high), .. }) => {
            format!("{} % ({} to {})", signed(mean), signed(low), signed(high))
        }
        Some(Change { mean, .. }) => format!("{} %", signed(mean)),
    };
    for pair in &comparison.paired {
        table.row(vec![
            pair.label.clone(),
            pair.pairs.to_string(),
            cell(pair.goodput),
            cell(pair.app_delay_mean),
            cell(pair.app_delay_p99),
            cell(pair.receive_buffer_max),
        ]);
    }
    table.text(width())
}

/// What the headings mean.
fn legend(comparison: &Comparison, runs: &[Compared]) -> String {
    let mut lines: Vec<(String, String)> = figure_legend(&shown());
    let best = best_paths(runs);
    lines.push(("of best path".into(), format!("goodput over that of the best path alone{best}")));
    if comparison.summary.iter().any(|summary| summary.runs > 1) {
        lines.push(("±".into(), "half of a 95 % confidence interval of the mean".to_owned()));
    }
    if !comparison.paired.is_empty() {
        let text = "mean change of the same seed, with its 95 % interval; significant where that excludes 0";
        lines.push(("beside".into(), text.to_owned()));
    }
    let width = width();
    lines.iter().map(|(name, text)| wrapped(&format!("{name:<15}"), text, width)).collect()
}

/// What the headings of figures mean.
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

/// A sentence as a phrase: it begins with a small letter and has no full stop.
fn as_phrase(sentence: &str) -> String {
    let mut characters = sentence.trim_end_matches('.').chars();
    let first = characters.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    first + characters.as_str()
}

/// Which paths are the best ones alone, if all runs agree on the figure.
fn best_paths(runs: &[Compared]) -> String {
    let mut known = runs.iter().map(|run| run.best_path.as_ref());
    match known.next() {
        Some(Some(first)) if known.all(|one| one == Some(first)) => {
            format!(": {} with {}", first.name, rate(first.goodput_bps))
        }
        _ => String::new(),
    }
}
