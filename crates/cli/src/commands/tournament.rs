//! `ropewalk tournament`: compares all schedulers on several scenarios and protocols.

mod match_configs;
mod setting;
mod show;

use std::path::PathBuf;
use std::thread::available_parallelism;

use clap::Args;
use ropewalk_lab::CustomSchedulers;
use ropewalk_lab::draw::Family;
use ropewalk_lab::report::{Report, ReportKind};
use ropewalk_lab::tournament::{Tournament, TournamentOptions, tournament};
use ropewalk_scenario::{Protocol, SchedulerName};

use crate::args::{SchedulerParser, command_line};
use crate::console::Console;
use crate::failure::Failure;
use crate::files::{VERSION, check_report, save_report};
use crate::format::{Format, FormatArgs, print_markdown};
use crate::output;
use crate::progress::{Progress, with_bar};
use setting::Setting;

/// Arguments of `tournament`.
#[derive(Debug, Args)]
#[command(after_help = "Without scenarios: all ready ones of the directory `scenarios` but those \
    that measure speed; some minutes on two cores.\n\n\
    With --draws: scenarios drawn at random, the same ones for everybody. Family `access`: DSL, cable, LTE, 5G, \
    satellite and Wi-Fi links with their usual rates, round trips and queues, return rates of 1/5 to 1/40, and \
    buffers of 256 kB and more; for each setting, a table compares the bundle with its links alone. Family \
    `extreme`: 0.5 to 200 Mbit/s, 2 to 700 ms, 16 kB to 16 MB; losses alone and in bursts, cellular and \
    low-orbit links, thin and congested return paths, shared bottlenecks, other traffic.\n\n\
    Examples:\n  \
    ropewalk tournament --draws 1 --training --paths 2 --schedulers lay --settings live,linux-6\n  \
    ropewalk tournament --draws 1 --family extreme --paths 3 --schedulers lay,min-rtt --seeds 2\n  \
    ropewalk tournament two-dsl --schedulers lay,blest --report out.html\n  \
    ropewalk tournament sarwar wifi-lte --seeds 2 --json")]
pub struct TournamentArgs {
    /// Scenario files (TOML), or names of ready scenarios [default: nine ready ones]
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<PathBuf>,
    /// Draw this many scenarios for each number of paths instead, and show only the rankings
    #[arg(long, value_name = "N", conflicts_with = "scenarios",
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    draws: Option<u64>,
    /// Properties from which the links are drawn
    #[arg(long, value_name = "NAME", default_value = "access", requires = "draws")]
    family: Families,
    /// Numbers of paths of the drawn scenarios
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "2,3,4,5", requires = "draws",
        value_parser = clap::value_parser!(u8).range(1..=64))]
    paths: Vec<u8>,
    /// Draw from the training set, on which settings may be chosen, not from the set of the published figures
    #[arg(long, requires = "draws")]
    training: bool,
    /// Write the drawn scenarios and their traces to this directory, so that each can be run by itself
    #[arg(long, value_name = "DIR", requires = "draws")]
    save: Option<PathBuf>,
    /// Schedulers that take part [default: all]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',',
        value_parser = SchedulerParser, hide_possible_values = true)]
    schedulers: Vec<SchedulerName>,
    /// Protocols that each scenario is run with, under its own preset where that fits [default: cmt-sctp,mptcp;
    /// five --settings for drawn access links]
    #[arg(long, value_name = "A,B", value_delimiter = ',', conflicts_with = "settings",
        value_parser = str::parse::<Protocol>)]
    protocols: Vec<Protocol>,
    /// Presets that each scenario is run with, such as `live`; with `-unordered`, messages are delivered on arrival
    /// [default for drawn access links: live,live-unordered,rfc9260,rfc8684,linux-6]
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = str::parse::<Setting>)]
    settings: Vec<Setting>,
    /// Change a key of all scenarios before they are checked; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Runs of each, with consecutive seeds; the tables show means [default: 1; 5 with --draws]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: Option<u64>,
    /// Threads; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    #[command(flatten)]
    format: FormatArgs,
    /// Write a report, one file that opens in any browser
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

/// Runs of each with `--draws`, unless said otherwise: the best of single runs is better by chance.
const SEEDS_OF_DRAWS: u64 = 5;

/// Families of drawn scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Families {
    /// Ordinary access links
    Access,
    /// Any combination of properties, however unlikely
    Extreme,
}

impl Families {
    /// The family.
    pub const fn family(self) -> Family {
        match self {
            Self::Access => Family::Access,
            Self::Extreme => Family::Extreme,
        }
    }
}

/// Runs everything, then shows each match and the ranking.
///
/// # Errors
/// [`Failure`]. Failed runs are shown with the others and make the command fail at the end.
pub fn execute(args: &TournamentArgs, console: Console) -> Result<(), Failure> {
    args.report.as_deref().map_or(Ok(()), check_report)?;
    let match_configs = match_configs::match_configs(args)?;
    args.save.as_deref().map_or(Ok(()), |directory| match_configs::save(args, directory))?;
    let cores = available_parallelism().map_or(1, usize::from);
    let options = TournamentOptions {
        seeds: args.seeds.unwrap_or(args.draws.map_or(1, |_| SEEDS_OF_DRAWS)),
        threads: args.threads.map_or(cores, usize::from),
        custom_schedulers: CustomSchedulers::default(),
    };
    let progress = Progress::share();
    let label = format!("{} matches", match_configs.len());
    let work = || tournament(&match_configs, &options, &|share| progress.on_progress(share));
    let play = with_bar(console, &label, &progress, work);
    if let Some(path) = &args.report {
        save_report(path, &report(&play)?, console)?;
    }
    let with_matches = args.draws.is_none();
    match args.format.format() {
        Format::Json => output::print_json(&play)?,
        Format::Csv => output::print(&show::csv(&play))?,
        Format::Markdown => print_markdown(&show::tables(&play, with_matches))?,
        Format::Text => output::print(&show::text(&play, with_matches))?,
    }
    let reasons = failures(&play);
    if reasons.is_empty() { Ok(()) } else { Err(Failure::Run(reasons.join("\n"))) }
}

fn report(play: &Tournament) -> Result<Report, Failure> {
    let mut scenarios: Vec<&str> = play.matches.iter().map(|m| m.scenario.as_str()).collect();
    scenarios.sort_unstable();
    scenarios.dedup();
    let plural = if scenarios.len() == 1 { "" } else { "s" };
    let title = format!("Tournament of schedulers, {} scenario{plural}", scenarios.len());
    let kind = ReportKind::Tournament;
    let mut report = Report::new(title, kind, VERSION.to_owned(), command_line());
    let document = serde_json::to_value(play)
        .map_err(|error| Failure::Run(format!("the result cannot be written as JSON: {error}")))?;
    report.tournament = Some(document);
    Ok(report)
}

/// Every run that failed, with its reason.
fn failures(play: &Tournament) -> Vec<String> {
    let entries = play.matches.iter().flat_map(|one| one.entries.iter().map(move |e| (one, e)));
    let each = entries.flat_map(|(one, entry)| {
        entry.failures.iter().map(move |failed| {
            let (scenario, setting, scheduler) = (&one.scenario, &one.setting, &entry.scheduler);
            format!("{scenario}, {setting}, {scheduler}, seed {}: {}", failed.seed, failed.error)
        })
    });
    each.collect()
}
