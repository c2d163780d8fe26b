//! `ropewalk emulate`: a scenario's links in real time, for any program.

#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod show;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use ropewalk_apps::proxy::client::parse_listen;
use ropewalk_base::Duration;
use ropewalk_lab::live::check_live;
use ropewalk_scenario::{Scenario, parse_duration};

use crate::args::FileArgs;
use crate::console::Console;
use crate::failure::Failure;
use crate::files::check_place;

/// Arguments of `emulate`.
#[derive(Debug, Args)]
#[command(
    after_help = "COMMAND runs at the sender, and ropewalk exits with its status. In COMMAND and in the lines of --far, \
    {local1}, {remote1}, {local6_1}, {remote6_1} and {device1} are filled in with the addresses and the device \
    of path 1, {remote2} with those of path 2. The environment has the same: ROPEWALK_PATHS, \
    ROPEWALK_LOCAL_1, ROPEWALK_REMOTE_1, ROPEWALK_DEVICE_1 and so on, ROPEWALK_SEED. Needs Linux and root.\n\n\
    Examples:\n  \
    ropewalk emulate wifi-lte -- ip -brief address\n  \
    ropewalk emulate wifi-lte -- ping -c 3 {remote1}\n  \
    ropewalk emulate wifi-lte --metrics 9464 -- ping -c 3 {remote1}\n  \
    ropewalk emulate wifi-lte --far 'iperf3 -s -1' -- iperf3 -c {remote2} -t 2"
)]
pub struct EmulateArgs {
    #[command(flatten)]
    file: FileArgs,
    /// Shell command to run at the receiver, started before COMMAND and ended after it; may be repeated
    #[arg(long, value_name = "LINE")]
    far: Vec<String>,
    /// Longest time that COMMAND waits for the --far lines: until each has a listening socket
    #[arg(long, value_name = "TIME", default_value = "5 s", value_parser = parse_duration)]
    far_ready: Duration,
    /// Write what was carried, and how late, as one JSON document
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// Do not ask for real-time priority
    #[arg(long)]
    no_realtime: bool,
    /// Serve metrics of each link for Prometheus (OpenMetrics) at http://ADDR/metrics; a port alone means 127.0.0.1
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = parse_listen)]
    metrics: Option<SocketAddr>,
    /// Take options from this TOML file; those on the command line have precedence
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Command to run at the sender; a shell by default
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command over the scenario's links.
///
/// # Errors
/// [`Failure`], with the status of the command if that is not 0.
pub fn execute(args: &EmulateArgs, console: Console) -> Result<(), Failure> {
    let scenario = args.file.load_with(&[])?;
    check_live(&scenario).map_err(|error| Failure::input(&error, error.hint))?;
    args.stats.as_deref().map_or(Ok(()), |path| check_place("--stats", path))?;
    run(args, &scenario, console)
}

#[cfg(target_os = "linux")]
fn run(args: &EmulateArgs, scenario: &Scenario, console: Console) -> Result<(), Failure> {
    let outcome = live::run(args, scenario, console)?;
    console.note(show::summary(&outcome.report));
    if let Some(path) = &args.stats {
        show::write(path, &outcome, scenario.transfer.seed)?;
    }
    match outcome.status {
        0 => Ok(()),
        status => Err(Failure::Status(status)),
    }
}

#[cfg(not(target_os = "linux"))]
fn run(_: &EmulateArgs, _: &Scenario, _: Console) -> Result<(), Failure> {
    Err(Failure::input(
        "an emulation needs Linux, for its network namespaces",
        "`ropewalk run` simulates the same scenario anywhere",
    ))
}
