//! `ropewalk advise`: which links to use, and how.

use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use clap::Args;
use ropewalk_lab::advise::{Advice, AdviseOptions, Goal, advise, written};
use ropewalk_lab::output::write_atomically;
use ropewalk_scenario::Scenario;
use serde::Serialize;

use crate::args::{FileArgs, quoted};
use crate::console::Console;
use crate::failure::Failure;
use crate::files::{check_place, failed, verified};
use crate::format::{Captioned, Format, FormatArgs, print_markdown};
use crate::output;
use crate::progress::{Progress, with_bar};

mod live;
mod show;

/// Arguments of `advise`.
#[derive(Debug, Args)]
#[command(
    mut_arg("to", |arg| arg.requires("live")),
    mut_arg("port", |arg| arg.hide(true)),
    after_help = "Examples:\n  \
    ropewalk advise wifi-lte\n  \
    ropewalk advise wifi-lte --goal calls --write advised.toml\n  \
    ropewalk advise links.toml --live --to 192.0.2.7 --peer PUBKEY"
)]
pub struct AdviseArgs {
    #[command(flatten)]
    file: FileArgs,
    /// What to optimise: throughput; latency (goodput over the 99th percentile of delay); or calls (the
    /// delay of a video call; through a tunnel, how the worst call sounds, then the goodput of other flows)
    #[arg(long, value_name = "GOAL", default_value = "throughput", value_parser = str::parse::<Goal>)]
    goal: Goal,
    /// Runs behind each figure of the answer
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(2..=1000))]
    seeds: u64,
    /// Threads; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Write the scenario with the advice in effect
    #[arg(long, value_name = "FILE.toml")]
    write: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    live: live::LiveArgs,
}

/// The advice, and with `--live` what was measured.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<Vec<live::LiveRow>>,
}

/// Simulates, then prints and writes the advice.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &AdviseArgs, console: Console) -> Result<(), Failure> {
    let scenario = args.file.load_with(&[])?;
    args.write.as_deref().map_or(Ok(()), |path| check_place("--write", path))?;
    let live = args.live.plan(&scenario, args.goal, console)?;
    let cores = || available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(cores, usize::from);
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
    let format = args.format.format();
    if format == Format::Text {
        // The advice is printed first, because the live comparison takes time.
        output::print(&show::text(&args.file.title(), &advice))?;
    }
    let live = live.map(|plan| plan.run(&advice, console)).transpose()?;
    match format {
        Format::Json => output::print_json(&Document { advice: &advice, live }),
        Format::Csv => output::print(&show::choices_table(&advice).csv()),
        Format::Markdown => {
            let measured = live.map(|rows| Captioned::new("Live", live::table(&rows)));
            let tables: Vec<_> = show::tables(&advice).into_iter().chain(measured).collect();
            print_markdown(&tables)
        }
        Format::Text => {
            live.map_or(Ok(()), |rows| output::print(&format!("\n{}", live::text(&rows))))
        }
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
    // The advice cannot be inserted into the text of the file, so every value is written.
    let text = advised.to_toml();
    verified(text, &place, &advised, &source.name)
}
