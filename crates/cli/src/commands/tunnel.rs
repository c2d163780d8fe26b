//! `ropewalk tunnel`: carries all IP traffic of a machine over all its links.

mod client;
mod hub;
mod links;
mod new;
mod status;
mod undo;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use ropewalk_apps::tunnel::class::ClassRule;
use ropewalk_apps::tunnel::{Config, LaneSettings, Redundancy, ThreadModeration, TunnelError};
use ropewalk_base::Duration;
use ropewalk_runtime::endpoint::Transport;
use ropewalk_scenario::{LATENCY_BUDGETS, LONGEST_PAUSE, parse_duration};

use crate::console::Console;
use crate::failure::Failure;
use crate::live::{ObserveArgs, Threads, TransportArgs, run_until_interrupted};

/// Directory of the files that `tunnel up NAME` and `tunnel serve NAME` read.
const CONFIGURATIONS: &str = "/etc/ropewalk/tunnel";
/// Directory of the journals, and of what must be known after a restart.
pub const STATE_DIRECTORY: &str = "/var/lib/ropewalk/tunnel";
/// Longest name of a network interface (IFNAMSIZ less the terminating zero).
const INTERFACE_LENGTH: usize = 15;
/// Streams of an association: packets and control messages.
const STREAMS: u16 = 2;

/// Arguments of `tunnel`.
#[derive(Debug, Args)]
#[command(
    after_help = "A tunnel carries IP packets between a client and a hub, a machine with a public address, over all links \
    of both at once, sealed. The client sends all its traffic through the tunnel, or only that to some networks. \
    It needs Linux, and root or CAP_NET_ADMIN.\n\n\
    Examples:\n  \
    ropewalk tunnel new hub --hub --allow PUBKEY                         (at the hub; writes /etc/ropewalk/tunnel/hub.toml)\n  \
    ropewalk tunnel serve hub\n  \
    ropewalk tunnel new home --to 192.0.2.7 --peer PUBKEY                (at the client)\n  \
    ropewalk tunnel up home\n  \
    ropewalk tunnel status\n  \
    ropewalk tunnel undo home                                            (after it was killed)"
)]
pub struct TunnelArgs {
    #[command(subcommand)]
    action: Action,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Action {
    /// Write the configuration of a tunnel
    New(new::NewArgs),
    /// Connect to a hub, and send traffic through it
    Up(Box<client::UpArgs>),
    /// Serve clients: the hub
    Serve(Box<hub::ServeArgs>),
    /// Show the running tunnels
    Status(status::StatusArgs),
    /// Undo what a tunnel that was killed has left
    Undo(undo::UndoArgs),
}

/// What both ends need.
#[derive(Clone, Debug, Args)]
struct CommonArgs {
    /// Name of a tunnel, whose options are in /etc/ropewalk/tunnel/NAME.toml, or the path of such a file
    #[arg(value_name = "NAME|FILE", value_parser = configuration, conflicts_with = "config")]
    tunnel: Option<PathBuf>,
    /// Name of the TUN device [default: rw-NAME]
    #[arg(long, value_name = "NAME", value_parser = interface)]
    device: Option<String>,
    /// Own secret key file, instead of your default key, which is created when first needed
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Directory of what must be known after a restart: changes on this machine, addresses of clients, volumes
    #[arg(long, value_name = "DIR", default_value = STATE_DIRECTORY)]
    state_directory: PathBuf,
    /// Directory of the journal of changes on this machine, if it is another one
    #[arg(long, value_name = "DIR", hide = true)]
    run_directory: Option<PathBuf>,
    /// When packets of calls, names and handshakes are sent on two paths
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    redundancy: RedundancyArg,
    /// Longest time that a packet waits for an earlier one of its flow at the far end, 1 ms to 5 s
    #[arg(long, value_name = "TIME", default_value_t = Config::default().latency_budget, value_parser = latency_budget)]
    latency_budget: Duration,
    /// Longest time that packets wait for others, so that they are handled together: less CPU time, while many pass
    #[arg(long, value_name = "TIME", default_value = "2 ms", value_parser = pause)]
    longest_pause: Duration,
    /// Class of packets, such as `udp 5060-5080 interactive`; the first rule that matches applies; may be repeated
    #[arg(long, value_name = "RULE", value_parser = str::parse::<ClassRule>)]
    rule: Vec<ClassRule>,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    observe: ObserveArgs,
}

impl CommonArgs {
    /// The file of the options.
    fn file(&self) -> Option<&Path> {
        self.transport.config().or(self.tunnel.as_deref())
    }

    /// The name of the tunnel.
    fn name(&self) -> String {
        name_of(self.file())
    }

    /// Directory of the journal.
    fn journal_directory(&self) -> &Path {
        self.run_directory.as_ref().unwrap_or(&self.state_directory)
    }

    /// The name of the TUN device.
    fn device(&self) -> String {
        let given = || format!("rw-{}", self.name());
        self.device.clone().unwrap_or_else(given).chars().take(INTERFACE_LENGTH).collect()
    }

    /// How packets are carried.
    fn lane(&self) -> Result<LaneSettings, Failure> {
        let redundancy = match self.redundancy {
            RedundancyArg::Off => Redundancy::Off,
            RedundancyArg::Auto => Redundancy::Auto,
            RedundancyArg::Always => Redundancy::Always,
        };
        let latency_budget = self.latency_budget;
        let longest_pause = self.longest_pause;
        let config = Config { redundancy, latency_budget, longest_pause, ..Config::default() };
        let seed = ropewalk_apps::tunnel::random_seed().map_err(|error| {
            Failure::Run(format!("the system provides no random numbers: {error}"))
        })?;
        Ok(LaneSettings {
            config,
            rules: self.rule.clone().into(),
            seed,
            ..LaneSettings::default()
        })
    }

    /// The transport: the tunnel's defaults with the changes that the options make.
    fn transport(&self) -> Result<Transport, Failure> {
        let given = self.transport.transport()?;
        Ok(Transport { streams: STREAMS, stream_reserve: 0, ..given })
    }
}

/// When interactive packets are sent on two paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum RedundancyArg {
    /// Never
    Off,
    /// While the quickest path loses packets or owes an acknowledgement
    #[default]
    Auto,
    /// Always; costs twice the bytes of these packets
    Always,
}

/// The name of the tunnel with this file of options.
fn name_of(file: Option<&Path>) -> String {
    let stem = file.and_then(Path::file_stem);
    stem.map_or_else(|| "tunnel".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// The file of a tunnel by its name or path.
fn configuration(text: &str) -> Result<PathBuf, String> {
    if text.contains('/') || text.ends_with(".toml") {
        return Ok(PathBuf::from(text));
    }
    if !ropewalk_apps::access::is_peer_name(text) {
        return Err("a name has letters, digits and - _ . @ +, at most 64 characters".to_owned());
    }
    Ok(Path::new(CONFIGURATIONS).join(format!("{text}.toml")))
}

/// A pause within the limit of scenarios.
fn pause(text: &str) -> Result<Duration, String> {
    let pause = parse_duration(text)?;
    if pause > LONGEST_PAUSE {
        return Err(format!("give at most {LONGEST_PAUSE}, or 0 s for none"));
    }
    Ok(pause)
}

/// A latency budget within the limits of scenarios.
fn latency_budget(text: &str) -> Result<Duration, String> {
    let (budget, [least, most]) = (parse_duration(text)?, LATENCY_BUDGETS);
    if (least..=most).contains(&budget) {
        return Ok(budget);
    }
    Err(format!("give {least} to {most}"))
}

fn interface(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let length = (1..=INTERFACE_LENGTH).contains(&text.len());
    if length && text.chars().all(good) && !text.starts_with('.') {
        return Ok(text.to_owned());
    }
    Err("a device has at most 15 letters, digits and - _ .".to_owned())
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &TunnelArgs, console: Console) -> Result<(), Failure> {
    let moderation = Arc::<ThreadModeration>::default();
    match &args.action {
        Action::New(args) => new::execute(args, console),
        Action::Up(args) => {
            let end = client::run(args, console, moderation.clone());
            run_until_interrupted(Threads::One, Some(moderation), end)
        }
        Action::Serve(args) => {
            let end = hub::run(args, console, moderation.clone());
            run_until_interrupted(Threads::PerCore, Some(moderation), end)
        }
        Action::Status(args) => status::execute(args),
        Action::Undo(args) => undo::execute(args),
    }
}

/// The failure for a tunnel that could not start.
fn failed(error: TunnelError) -> Failure {
    match (error.help(), error) {
        (_, TunnelError::Open(error)) => crate::live::refused(error),
        (Some(help), error) => Failure::input(error, help),
        (None, error) => Failure::Run(error.to_string()),
    }
}
