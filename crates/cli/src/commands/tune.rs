//! `ropewalk tune`: the best window limits, and the smallest receive buffer.

use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use clap::Args;
use ropewalk_lab::CustomSchedulers;
use ropewalk_lab::output::write_atomically;
use ropewalk_lab::report::{Report, ReportKind};
use ropewalk_lab::tune::{
    Check, CheckOptions, SimulatedReach, Tuning, check, drawings, simulate_reach, tune, tuned_text,
};
use ropewalk_scenario::Scenario;
use serde::Serialize;

use crate::args::{ScenarioArgs, command_line, quoted};
use crate::console::Console;
use crate::failure::Failure;
use crate::files::{VERSION, check_place, check_report, failed, save_report, verified};
use crate::format::{Format, FormatArgs, print_markdown};
use crate::output;
use crate::progress::{Progress, with_bar};

mod show;

/// Arguments of `tune`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk tune lte-satellite --reach 90%\n  \
    ropewalk tune wifi-lte --check --seeds 3 --set transfer.duration=40s\n  \
    ropewalk tune wifi-lte --report limits.html\n  \
    ropewalk tune wifi-lte --write tuned.toml --json")]
pub struct TuneArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Also find the smallest receive buffer that delivers this share of the sum of the rates, by simulation
    /// and by the models
    #[arg(long, value_name = "SHARE", value_parser = share)]
    reach: Option<f64>,
    /// How far rates and round trips may be off with --reach: the buffer suffices for all of these links, also with 1 ms of
    /// jitter. 0% finds the buffer for exactly the scenario's links
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = tolerance, requires = "reach")]
    tolerance: f64,
    /// Also simulate the window managers none, dynamic and adaptive, and static with the limits
    #[arg(long)]
    check: bool,
    /// Runs of each for --check and --reach, with consecutive seeds; means come with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// Threads; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Write the scenario with the limits in effect
    #[arg(long, value_name = "FILE.toml")]
    write: Option<PathBuf>,
    /// Write a report, one file that opens in any browser
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
}

/// The JSON document: the tuned scenario and its limits.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    tuning: &'a Tuning,
    /// Goodput with the limits; null without `--check`.
    simulated_bps: Option<ropewalk_lab::compare::Estimate>,
    check: Option<&'a Check>,
}

/// A share such as `95%` or `0.95`.
fn share(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let (number, unit) = match trimmed.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (trimmed, 1.0),
    };
    let share = number.parse::<f64>().ok().map(|number| number / unit);
    share.filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(|| {
        format!("`{text}` is not a share above 0 % and up to 100 %, such as 95% or 0.95")
    })
}

/// A share below one half, such as `5%`.
fn tolerance(text: &str) -> Result<f64, String> {
    let zero = text.trim().trim_end_matches('%').trim_end().parse() == Ok(0.0);
    let found = if zero { Ok(0.0) } else { share(text) };
    found.ok().filter(|share| *share < 0.5).ok_or_else(|| {
        format!("`{text}` is not a share from 0 % and below 50 %, such as 5% or 0.05")
    })
}

/// Evaluates the models, simulates with `--check`, then prints and writes the results.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &TuneArgs, console: Console) -> Result<(), Failure> {
    let scenario = args.scenario.load()?;
    args.write.as_deref().map_or(Ok(()), |path| check_place("--write", path))?;
    args.report.as_deref().map_or(Ok(()), check_report)?;
    let mut tuning =
        tune(&scenario, args.reach).map_err(|error| Failure::input(&error, error.help()))?;
    let text =
        args.write.as_ref().map(|path| text_for(args, &scenario, &tuning, path)).transpose()?;
    let simulated = reach(args, &scenario, &tuning, console);
    if let Some(reach) = &mut tuning.reach {
        reach.simulated = simulated;
    }
    let check = args.check.then(|| simulate(args, &scenario, &tuning, console));
    if let (Some(path), Some(text)) = (&args.write, text) {
        write_atomically(path, text.as_bytes()).map_err(|error| failed("--write", path, error))?;
        let word = quoted(&path.to_string_lossy());
        console.note(format_args!("wrote {}; next: ropewalk run {word}", path.display()));
    }
    let simulated_bps = check.as_ref().and_then(|check| check.simulated_bps);
    let document = Document { tuning: &tuning, simulated_bps, check: check.as_ref() };
    if let Some(path) = &args.report {
        report(args, &scenario, &document, path, console)?;
    }
    match args.format.format() {
        Format::Json => output::print_json(&document)?,
        Format::Csv => output::print(&show::paths(&tuning.paths).csv())?,
        Format::Markdown => print_markdown(&show::tables(&tuning, check.as_ref()))?,
        Format::Text => {
            output::print(&show::text(&args.scenario.title(), &tuning, check.as_ref()))?;
        }
    }
    let failures = check.iter().flat_map(|check| &check.managers);
    let reasons: Vec<String> = failures
        .filter_map(|one| Some(format!("{}: {}", one.window_manager, one.error.as_ref()?)))
        .collect();
    if reasons.is_empty() { Ok(()) } else { Err(Failure::Run(reasons.join("\n"))) }
}

fn report(
    args: &TuneArgs,
    scenario: &Scenario,
    document: &Document<'_>,
    path: &Path,
    console: Console,
) -> Result<(), Failure> {
    let drawn = drawings(scenario, document.tuning, document.check)
        .map_err(|error| Failure::input(&error, error.help()))?;
    let title = args.scenario.title();
    let mut report = Report::new(title, ReportKind::Tune, VERSION.to_owned(), command_line());
    report.figures = drawn.figures;
    report.surfaces = drawn.surfaces;
    let tuning = serde_json::to_value(document).map_err(|error| {
        Failure::Run(format!("--report {} cannot be written: {error}", path.display()))
    })?;
    report.tuning = Some(tuning);
    save_report(path, &report, console)
}

fn options(args: &TuneArgs) -> CheckOptions {
    let cores = || available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(cores, usize::from);
    CheckOptions { seeds: args.seeds, threads, custom_schedulers: CustomSchedulers::default() }
}

/// The smallest receive buffer by simulation, if `--reach` asks for one.
fn reach(
    args: &TuneArgs,
    scenario: &Scenario,
    tuning: &Tuning,
    console: Console,
) -> Option<SimulatedReach> {
    tuning.reach.as_ref()?;
    let progress = Progress::share();
    let label = format!("searching the receive buffer of {}", args.scenario.title());
    let (options, report) = (options(args), |share| progress.on_progress(share));
    let work = || simulate_reach(scenario, tuning, args.tolerance, &options, &report);
    with_bar(console, &label, &progress, work)
}

fn simulate(args: &TuneArgs, scenario: &Scenario, tuning: &Tuning, console: Console) -> Check {
    let options = options(args);
    let progress = Progress::share();
    let label = format!("checking the limits of {}", args.scenario.title());
    let work = || check(scenario, tuning, &options, &|share| progress.on_progress(share));
    with_bar(console, &label, &progress, work)
}

/// The tuned scenario as it will be written to `path`, after a check that it loads there.
fn text_for(
    args: &TuneArgs,
    scenario: &Scenario,
    tuning: &Tuning,
    path: &Path,
) -> Result<String, Failure> {
    let tuned = tuning.applied_to(scenario);
    let text = if args.scenario.is_changed() {
        // The file does not contain the changes of the command line, so every value is written.
        tuned.to_toml()
    } else {
        tuned_text(&args.scenario.source()?.text, &tuning.limits_packets)
            .map_err(|error| Failure::Run(error.to_string()))?
    };
    let place = path.display().to_string();
    verified(text, &place, &tuned, &args.scenario.source()?.name)
}

#[cfg(test)]
mod tests {
    use super::{share, tolerance};

    #[test]
    fn a_tolerance_is_a_share_below_one_half() {
        for (text, expected) in
            [("5%", 0.05), ("0.1", 0.1), ("0%", 0.0), ("0", 0.0), ("0.0 %", 0.0)]
        {
            assert_eq!(tolerance(text), Ok(expected), "{text}");
        }
        for text in ["50%", "5", "-1%", "much", ""] {
            assert!(tolerance(text).unwrap_err().contains(text), "{text}");
        }
    }

    #[test]
    fn shares_are_percent_or_fractions_above_nothing_and_up_to_all() {
        for (text, expected) in
            [("95%", 0.95), ("95 %", 0.95), ("0.5", 0.5), ("1", 1.0), ("100%", 1.0)]
        {
            assert_eq!(share(text), Ok(expected), "{text}");
        }
        for text in ["95", "0", "0%", "-1%", "101%", "", "%", "much", "NaN"] {
            assert!(share(text).unwrap_err().contains(text), "{text}");
        }
    }
}
