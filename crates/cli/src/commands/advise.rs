//! `ropewalk advise`: which links to use, and how.

use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use clap::Args;
use ropewalk_lab::advise::{Advice, AdviseOptions, Goal, advise, written};
use ropewalk_lab::output::write_atomically;
use ropewalk_scenario::Scenario;

use crate::args::{FileArgs, quoted};
use crate::console::Console;
use crate::failure::Failure;
use crate::files::{check_place, failed};
use crate::format::{Format, FormatArgs, print_markdown};
use crate::output;
use crate::progress::{Progress, with_bar};

mod show;

/// Arguments of `advise`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk advise scenarios/wifi-lte.toml\n  \
    ropewalk advise scenarios/wifi-lte.toml --goal calls --write advised.toml")]
pub struct AdviseArgs {
    #[command(flatten)]
    file: FileArgs,
    /// What to optimise: throughput; latency (goodput over the 99th percentile of delay); or calls (the
    /// delay of a video call)
    #[arg(long, value_name = "GOAL", default_value = "throughput", value_parser = str::parse::<Goal>)]
    goal: Goal,
    /// Runs behind each figure of the answer
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=1000))]
    seeds: u64,
    /// Write the scenario with the advice in effect
    #[arg(long, value_name = "FILE.toml")]
    write: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
}

/// Simulates, then prints and writes the advice.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &AdviseArgs, console: Console) -> Result<(), Failure> {
    let scenario = args.file.load_with(&[])?;
    args.write.as_deref().map_or(Ok(()), |path| check_place("--write", path))?;
    let threads = available_parallelism().map_or(1, usize::from);
    let options = AdviseOptions { goal: args.goal, seeds: args.seeds, threads };
    let progress = Progress::share();
    let label = format!("comparing choices for {}", args.file.title());
    let work = || advise(&scenario, &options, &|share| progress.on_progress(share));
    let advice = with_bar(console, &label, &progress, work)
        .map_err(|error| Failure::input(error, error.help()))?;
    if let Some(path) = &args.write {
        let text = text_for(args, &scenario, &advice, path)?;
        write_atomically(path, text.as_bytes()).map_err(|error| failed("--write", path, error))?;
        let word = quoted(&path.to_string_lossy());
        console.note(format_args!("wrote {}; next: ropewalk run {word}", path.display()));
    }
    match args.format.format() {
        Format::Json => output::print_json(&advice),
        Format::Csv => output::print(&show::choices_table(&advice).csv()),
        Format::Markdown => print_markdown(&show::tables(&advice)),
        Format::Text => output::print(&show::text(&args.file.title(), &advice)),
    }
}

/// The advised scenario as it will be written to `path`, after a check that it loads there.
fn text_for(
    args: &AdviseArgs,
    scenario: &Scenario,
    advice: &Advice,
    path: &Path,
) -> Result<String, Failure> {
    let advised = advice.applied_to(scenario);
    let place = path.display().to_string();
    let source = args.file.source()?;
    if args.file.sets.is_empty() && args.file.seed.is_none() {
        let text = written(&source.text, scenario, advice);
        let text = text.map_err(|error| Failure::Run(error.to_string()))?;
        if Scenario::parse(&text, &place).is_ok_and(|found| found == advised) {
            return Ok(text);
        }
    }
    // The text of the file cannot hold the advice, so every value is written out.
    let text = advised.to_toml();
    match Scenario::parse(&text, &place) {
        Ok(found) if found == advised => Ok(text),
        Ok(_) => Err(Failure::Run(format!(
            "--write {place}: verification failed: the written scenario differs"
        ))),
        // Files that a scenario names are resolved relative to its directory.
        Err(error) => Err(Failure::input(
            format!("--write {place}: the scenario would not load from there\n{error}"),
            format!("write it into the directory of `{}`, where its files are", source.name),
        )),
    }
}
