//! `ropewalk compare`: several scenarios, schedulers or values of keys, side by side.

mod show;
mod variants;

use std::path::PathBuf;
use std::thread::available_parallelism;

use clap::Args;
use ropewalk_lab::CustomSchedulers;
use ropewalk_lab::compare::{CompareOptions, Comparison, Variant, compare, paired};
use ropewalk_scenario::SchedulerName;

use crate::args::{FileArgs, SchedulerParser};
use crate::console::Console;
use crate::failure::Failure;
use crate::files::OutputFiles;
use crate::format::{Format, FormatArgs, print_markdown};
use crate::output;
use crate::progress::{Progress, with_bar};

pub use show::{figure_legend, with_gain};

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk compare kuhn-2-200-45\n  \
    ropewalk compare wifi-lte --schedulers daps,min-rtt --seeds 5 --json\n  \
    ropewalk compare wifi-lte two-dsl --schedulers lay,blest --csv\n  \
    ropewalk compare lossy-wifi --schedulers lay,min-rtt --seeds 10 --paired\n  \
    ropewalk compare sarwar --vary path.slow.rtt=50ms,200ms --report rtt.html\n  \
    ropewalk compare wifi-lte --vary path.lte.rtt=40ms,80ms --vary path.lte.loss=0.0,0.01\n\n\
    Every combination of the scenarios, the schedulers and the values is run. With more than some tens \
    of them, see `ropewalk sweep`.")]
pub struct CompareArgs {
    /// Scenario files (TOML), names of ready scenarios (`ropewalk new --list`), or - for standard input
    #[arg(value_name = "SCENARIO", required = true)]
    scenarios: Vec<PathBuf>,
    /// Change a key of all scenarios before they are checked; may be repeated, and the last one wins
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Root of all randomness, instead of transfer.seed
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Schedulers to compare [default: all; with --vary or several scenarios, that of each scenario]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',',
        value_parser = SchedulerParser, hide_possible_values = true)]
    schedulers: Vec<SchedulerName>,
    /// Compare values of any key; may be repeated for all combinations
    #[arg(long, value_name = "KEY=V1,V2")]
    vary: Vec<String>,
    /// Runs of each, with consecutive seeds; means come with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// Also show how each differs from a reference, seed by seed: effects that both share cancel. LABEL
    /// names the reference, the first one by default. Needs several seeds
    #[arg(long, value_name = "LABEL", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    paired: Option<String>,
    /// Sort the table by this figure, best first, such as app_delay_p99_s; `given` keeps the order
    /// [default: goodput_bps where only schedulers differ, else given]
    #[arg(long, value_name = "FIGURE")]
    sort: Option<String>,
    /// Threads; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    files: OutputFiles,
}

impl CompareArgs {
    /// Each scenario file with the changes of the command line.
    fn files(&self) -> Vec<FileArgs> {
        let file = |path: &PathBuf| FileArgs::new(path.clone(), self.sets.clone(), self.seed);
        self.scenarios.iter().map(file).collect()
    }

    /// The names of all scenarios.
    fn title(&self) -> String {
        let titles: Vec<String> = self.files().iter().map(FileArgs::title).collect();
        titles.join(", ")
    }
}

/// Runs everything and shows it side by side.
///
/// # Errors
/// [`Failure`]. Failed runs are shown with the others and make the command fail at the end.
pub fn execute(args: &CompareArgs, console: Console) -> Result<(), Failure> {
    let variants = variants::variants(args)?;
    let reference = reference(args, &variants.all)?;
    let order = show::order(args.sort.as_deref(), variants.only_schedulers)?;
    let files = args.files.check(console)?;
    files.check_same_paths(&variants.all)?;
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
    let title = args.title();
    let label = format!("comparing on {title}");
    let work = || compare(&variants.all, &options, &|share| progress.on_progress(share));
    let runs = with_bar(console, &label, &progress, work);
    let mut comparison = Comparison::new(&runs);
    comparison.paired = reference.map(|label| paired(&runs, &label)).unwrap_or_default();
    files.write_compared(title.clone(), &runs, &comparison)?;
    let table = || show::table(&comparison, &variants, order);
    match args.format.format() {
        Format::Json => output::print_json(&comparison)?,
        Format::Csv => output::print(&show::csv(&comparison, &variants, &table()))?,
        Format::Markdown => print_markdown(&show::tables(&comparison, &variants, table()))?,
        Format::Text => {
            let heading = show::heading(&title, &runs, args.seeds);
            output::print(&show::text(heading, table(), &comparison, (&variants, &runs)))?;
        }
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
