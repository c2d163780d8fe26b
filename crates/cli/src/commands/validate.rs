//! `ropewalk validate`: compares Linux TCP and Multipath TCP over emulated links with the
//! simulator.

#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod room;
#[cfg(target_os = "linux")]
mod show;

use std::path::PathBuf;

use clap::Args;
use ropewalk_base::Duration;
use ropewalk_lab::validate::KernelTransport;
use ropewalk_scenario::{
    BBR_SCENARIOS, Override, ReadyScenario, Scenario, VALIDATION_SCENARIOS, parse_duration,
};

use crate::args::FileArgs;
use crate::console::{Console, layout};
use crate::failure::Failure;
use crate::format::{Format, FormatArgs};
use crate::output;
use crate::table::Table;

/// Arguments of `validate`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each transport of the kernel runs over the links of each scenario, emulated in namespaces, and the simulator \
    runs the same with the preset linux-6. TCP uses the first path, or that of --path. Without SCENARIO, all scenarios of --list run \
    but those of BBR, which takes half an hour on two cores. Needs Linux and root.\n\n\
    Examples:\n  \
    ropewalk validate --list\n  \
    sudo ropewalk validate validation/10x20-10x20-1M --time 8s --warmup 3s\n  \
    sudo ropewalk validate --transport mptcp --runs 3 --report mptcp.html\n  \
    sudo ropewalk validate validation/bbr-cubic-20x40-queue1 --transport tcp-bbr\n  \
    sudo ropewalk validate --json > linux.json\n  \
    ropewalk validate --recorded linux.json --markdown > validation.md"
)]
pub struct ValidateArgs {
    /// Scenario files, or names of --list; all but those of BBR if none is given
    scenarios: Vec<PathBuf>,
    /// Transports of the kernel
    #[arg(
        long, value_name = "NAME", value_delimiter = ',', value_parser = str::parse::<KernelTransport>,
        default_value = "tcp-reno,tcp-cubic,tcp-bbr,mptcp"
    )]
    transport: Vec<KernelTransport>,
    /// Path of TCP [default: the first one]
    #[arg(long, value_name = "NAME")]
    path: Option<String>,
    /// Length of each transfer, its warm-up included [default: that of the scenario]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    time: Option<Duration>,
    /// Initial time that all figures leave out [default: that of the scenario]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    warmup: Option<Duration>,
    /// Runs of the kernel, and seeds of the simulator; the medians are compared
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Take the runs of the kernel from this file, which an earlier run wrote with --json, and run only the simulator
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["runs", "out", "report", "jobs"])]
    recorded: Option<PathBuf>,
    /// Seed of the first run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Transfers at the same time, if the rates of their links permit it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// List the scenarios, and run nothing
    #[arg(long, conflicts_with_all = ["report", "out", "scenarios"])]
    list: bool,
    /// Write a report with both over time, one file that opens in any browser
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Keep the samples of the kernel's sockets, the links and the simulated scenario of each run in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
}

/// Compares the simulator with the kernel.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &ValidateArgs, console: Console) -> Result<(), Failure> {
    if args.list {
        return list(args.format.format());
    }
    let scenarios = args.scenarios()?;
    run::execute(args, &scenarios, console)
}

fn listed() -> impl Iterator<Item = &'static ReadyScenario> {
    VALIDATION_SCENARIOS.iter().chain(BBR_SCENARIOS)
}

fn list(format: Format) -> Result<(), Failure> {
    let mut table = Table::new(&["scenario", "links"]);
    for ready in listed() {
        table.row(vec![ready.name.to_owned(), ready.description()]);
    }
    match format {
        Format::Json => {
            let entry = |ready: &ReadyScenario| serde_json::json!({ "scenario": ready.name, "links": ready.description() });
            output::print_json(&listed().map(entry).collect::<Vec<_>>())
        }
        Format::Csv => output::print(&table.csv()),
        Format::Markdown => output::print(&table.markdown()),
        Format::Text => output::print(&table.text(layout())),
    }
}

impl ValidateArgs {
    /// The place of the path of TCP.
    fn path(&self, name: &str, scenario: &Scenario) -> Result<usize, Failure> {
        let Some(wanted) = &self.path else { return Ok(0) };
        let found = scenario.paths.iter().position(|path| path.name == *wanted);
        found.ok_or_else(|| {
            let names: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
            let message = format!("--path {wanted}: scenario {name} has no such path");
            Failure::input(message, format!("its paths are {}", names.join(", ")))
        })
    }

    /// The scenarios with their names, all checked.
    fn scenarios(&self) -> Result<Vec<(String, Scenario)>, Failure> {
        let mut files = self.scenarios.clone();
        if files.is_empty() {
            files = VALIDATION_SCENARIOS.iter().map(|ready| ready.name.into()).collect();
        }
        let times = [("transfer.duration", self.time), ("transfer.warmup", self.warmup)];
        let changes: Vec<(&str, String)> = times
            .into_iter()
            .filter_map(|(key, time)| {
                time.map(|time| (key, format!("{key}={}ns", time.as_nanos())))
            })
            .collect();
        let mut overrides: Vec<Override<'_>> = changes
            .iter()
            .map(|(key, change)| Override {
                option: if key.ends_with("warmup") { "--warmup" } else { "--time" },
                change,
            })
            .collect();
        // Settings that follow from the preset are derived again, even if a scenario names another
        // preset.
        let preset = ["transfer.protocol=mptcp", "transfer.preset=linux-6"];
        overrides.extend(preset.map(|change| Override { option: "--set", change }));
        let load = |file: PathBuf| {
            let name = file.display().to_string();
            let name = name.strip_prefix("validation/").unwrap_or(&name).to_owned();
            let scenario = FileArgs::new(file, Vec::new(), None).load_with(&overrides)?;
            Ok((name, scenario))
        };
        files.into_iter().map(load).collect()
    }
}

#[cfg(not(target_os = "linux"))]
mod run {
    use super::{Console, Failure, Scenario, ValidateArgs};

    pub fn execute(_: &ValidateArgs, _: &[(String, Scenario)], _: Console) -> Result<(), Failure> {
        Err(Failure::input(
            "the kernel's transports need Linux",
            "`ropewalk run` simulates them anywhere: --set transfer.preset=linux-6",
        ))
    }
}

#[cfg(target_os = "linux")]
mod run;
