//! `ropewalk run`: one scenario, once or with several seeds.

mod show;

use std::thread::available_parallelism;

use clap::Args;
use ropewalk_lab::compare::{CompareOptions, Repeated, Variant, compare};
use ropewalk_lab::result::Group;
use ropewalk_lab::{
    BufferHint, CustomSchedulers, Run, RunOptions, RunResult, buffer_hint, result_notes,
    run_traced, run_watched,
};
use ropewalk_scenario::Scenario;
use serde::Serialize;

use crate::args::ScenarioArgs;
use crate::console::{Console, width, wrapped};
use crate::failure::Failure;
use crate::files::{CheckedFiles, OutputFiles};
use crate::format::{Format, FormatArgs, print_markdown};
use crate::output;
use crate::packet_files::PacketFileArgs;
use crate::printer::{percent, rate, size, time};
use crate::progress::{Progress, with_bar};
use show::Results;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk run wifi-lte\n  \
    ropewalk run wifi-lte --scheduler round-robin --set path.lte.rtt=40ms --json\n  \
    ropewalk run lossy-wifi --seeds 5 --markdown\n  \
    ropewalk run sarwar --seed 7 --report sarwar.html --out sarwar.parquet\n  \
    ropewalk run wifi-lte --set transfer.duration=30s --capture sender.pcapng --qlog sender.sqlog")]
pub struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Number of runs, with consecutive seeds; figures are then means with 95 % confidence intervals.
    /// Time series are those of the first
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// Threads for several seeds; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    files: OutputFiles,
    #[command(flatten)]
    packets: PacketFileArgs,
}

/// Runs the scenario and shows its result.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &RunArgs, console: Console) -> Result<(), Failure> {
    let scenario = args.scenario.load()?;
    let files = args.files.check(console)?;
    if args.seeds > 1 {
        args.packets.refuse("with several seeds")?;
        repeat(args, &scenario, &files, console)
    } else {
        once(args, &scenario, &files, console)
    }
}

fn once(
    args: &RunArgs,
    scenario: &Scenario,
    files: &CheckedFiles,
    console: Console,
) -> Result<(), Failure> {
    let options = RunOptions {
        series: files.wants_series(),
        sequence: files.sequence(),
        ..RunOptions::default()
    };
    let label = format!("simulating {}", args.scenario.title());
    let progress = Progress::share();
    let trace = args.packets.open(scenario, &args.scenario.title())?;
    let on_progress = |share| progress.on_progress(share);
    let work = || match trace {
        Some(trace) => {
            let traced = run_traced(scenario, &options, &on_progress, trace);
            traced.map(|(run, trace)| (run, Some(trace)))
        }
        None => run_watched(scenario, &options, &on_progress).map(|run| (run, None)),
    };
    let (run, trace) = with_bar(console, &label, &progress, work)?;
    if let Some(trace) = trace {
        args.packets.finish(trace, console)?;
    }
    let title = format!("{}, {}", args.scenario.title(), run.result.scheduler);
    files.write_run(title, scenario, &run)?;
    print(args, scenario, &Results::One(&run.result), &run.result)?;
    if args.format.is_data() {
        return Ok(());
    }
    if let Some(speed) = show::line(&Results::One(&run.result), Group::Engine) {
        console.note(speed);
    }
    give_hint(scenario, &run, console);
    Ok(())
}

fn repeat(
    args: &RunArgs,
    scenario: &Scenario,
    files: &CheckedFiles,
    console: Console,
) -> Result<(), Failure> {
    let title = args.scenario.title();
    let label = scenario.scheduler.label().to_owned();
    let variants = [Variant { label, scenario: scenario.clone() }];
    let cores = available_parallelism().map_or(1, usize::from);
    let options = CompareOptions {
        seeds: args.seeds,
        threads: args.threads.map_or(cores, usize::from),
        series: files.wants_series(),
        sequence: files.sequence(),
        single_paths: false,
        custom_schedulers: CustomSchedulers::default(),
    };
    let progress = Progress::share();
    let bar = format!("simulating {title}");
    let work = || compare(&variants, &options, &|share| progress.on_progress(share));
    let runs = with_bar(console, &bar, &progress, work);
    let repeated = Repeated::new(&runs).map_err(Failure::Run)?;
    files.write_repeated(format!("{title}, {}", repeated.scheduler), &runs)?;
    let first = runs.iter().find_map(|run| run.outcome.as_ref().ok());
    let first = first.expect("one run succeeded");
    print(args, scenario, &Results::Many(&repeated), &first.result)?;
    if !args.format.is_data() {
        give_hint(scenario, first, console);
    }
    let failed = runs.iter().filter_map(|run| {
        let error = run.outcome.as_ref().err()?;
        Some(format!("seed {}: {error}", run.scenario.transfer.seed))
    });
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::Run(failed.join("\n"))) }
}

/// Prints the results. `first` is the run that the notes explain.
fn print(
    args: &RunArgs,
    scenario: &Scenario,
    results: &Results<'_>,
    first: &RunResult,
) -> Result<(), Failure> {
    match args.format.format() {
        Format::Json => output::print_json(&Document(results)),
        Format::Csv => output::print(&results.tidy().csv()),
        Format::Markdown => print_markdown(&results.tables()),
        Format::Text => {
            let notes = result_notes(scenario, first);
            output::print(&show::text(&args.scenario.title(), results, first, &notes))
        }
    }
}

/// The JSON document of the results.
struct Document<'a>(&'a Results<'a>);

impl Serialize for Document<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Results::One(result) => result.serialize(serializer),
            Results::Many(repeated) => repeated.serialize(serializer),
        }
    }
}

fn give_hint(scenario: &Scenario, run: &Run, console: Console) {
    if console.is_quiet() {
        return;
    }
    let threads = available_parallelism().map_or(1, usize::from);
    if let Some(hint) = buffer_hint(scenario, &run.result, threads) {
        console.note(wrapped("hint: ", &sentence(&hint), width()).trim_end());
    }
}

/// The hint in words.
fn sentence(hint: &BufferHint) -> String {
    let length = hint.shortened_s.map_or_else(String::new, |s| format!(" over {}", time(s)));
    format!(
        "{} carries {} of its rate: the receive buffer of {} is too small. With {} the simulation{length} \
         gives {} instead of {}. Set transfer.receive_buffer; `ropewalk tune --reach` finds the smallest \
         sufficient one.",
        hint.path,
        percent(hint.utilisation),
        size(hint.receive_buffer_bytes as f64),
        size(hint.sufficient_bytes as f64),
        rate(hint.sufficient_bps),
        rate(hint.goodput_bps),
    )
}
