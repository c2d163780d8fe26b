//! `ropewalk bench compare`: Ropewalk, the kernel's transports and other programs over the same emulated links.

#[cfg(target_os = "linux")]
mod contender;
#[cfg(target_os = "linux")]
mod row;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod show;
#[cfg(target_os = "linux")]
mod show_set;
#[cfg(target_os = "linux")]
mod summary;

use std::path::PathBuf;

use clap::Args;
use ropewalk_base::Duration;
use ropewalk_scenario::parse_duration;

use crate::format::FormatArgs;

/// Arguments of `bench compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "Transports: ropewalk (sealed, and simulated beside it), ropewalk-in-order (the same as one stream of bytes); \
    tcp-cubic and tcp-bbr, TCP of the kernel; mptcp-cubic and mptcp-bbr, Multipath TCP of the kernel; iperf3, and the \
    peers quinn-peer and usrsctp-peer of Ropewalk's benchmarks, if they are in PATH. Those that use a single link run on \
    each link, and the best one is shown. Each reads into the scenario's transfer.receive_buffer; iperf3 and quinn have \
    their own. Needs Linux and root.\n\n\
    A run in which the emulator was late, or an end waited long for a CPU, does not count and is repeated up to three \
    times. If no attempt counts, the table says `short of CPU` instead of a figure, and the exit status is 1.\n\n\
    With --access or several --emulate, a table has a row per scenario, and a second one says in how many of them \
    Ropewalk is at least as fast as TCP on the best link, and as Multipath TCP. --access takes about half an hour.\n\n\
    Examples:\n  \
    sudo ropewalk bench compare --emulate wifi-lte\n  \
    sudo ropewalk bench compare --access --report access.html\n  \
    sudo ropewalk bench compare --emulate access/dsl-lte --emulate access/two-lte --runs 3\n  \
    sudo ropewalk bench compare --emulate wifi-lte --transport ropewalk,mptcp-cubic --time 10s --warmup 3s\n  \
    sudo ropewalk bench compare --emulate links.toml --time 20s --runs 3 --report compared.html"
)]
pub struct CompareArgs {
    /// Scenario file, or the name of a ready scenario, whose links are emulated; may be repeated
    #[arg(long, value_name = "SCENARIO", required_unless_present = "access")]
    emulate: Vec<PathBuf>,
    /// Emulate ten ready bundles of ordinary access links in turn: DSL, cable, LTE, 5G, Wi-Fi, satellites
    #[arg(long, conflicts_with = "emulate")]
    access: bool,
    /// Transports to compare [default: all that this machine has]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    transport: Vec<String>,
    /// Change a key before the file is checked; may be repeated, and the last one wins
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Length of each transfer, its warm-up included
    #[arg(long, value_name = "TIME", default_value = "15 s", value_parser = parse_duration)]
    time: Duration,
    /// Initial time that all figures leave out
    #[arg(long, value_name = "TIME", default_value = "5 s", value_parser = parse_duration)]
    warmup: Duration,
    /// Runs of each; the median is shown
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: u64,
    /// Seed of the first run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write a report, one file that opens in any browser
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
}

#[cfg(target_os = "linux")]
pub use run::execute;

/// Refuses to run: the links cannot be emulated on this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn execute(_: &CompareArgs, _: crate::console::Console) -> Result<(), crate::failure::Failure> {
    Err(crate::failure::Failure::input(
        "an emulation needs Linux, for its network namespaces",
        "`ropewalk compare` simulates the same scenario anywhere",
    ))
}
