//! `ropewalk preload`: runs a program with Ropewalk's SCTP sockets.

mod program;

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use ropewalk_runtime::endpoint::{Carrier, PORT, Profile, RawError};
use ropewalk_runtime::interfaces;
use ropewalk_scenario::{Congestion, SchedulerName, parse_size};

use crate::args::SchedulerParser;
use crate::console::Console;
use crate::failure::Failure;

/// The library's file name.
const LIBRARY: &str = "libropewalk.so";

/// Variable with the library's path, for installations in unusual places.
const LIBRARY_VARIABLE: &str = "ROPEWALK_LIBRARY";

/// Arguments of `preload`.
#[derive(Debug, Args)]
#[command(
    after_help = "PROGRAM speaks SCTP through the kernel's sockets (RFC 6458), and needs no change: its SCTP sockets become \
    associations over UDP (RFC 6951), which use all network interfaces at once. The peer is a program under \
    `ropewalk preload` as well, or any SCTP in UDP. Nothing is encrypted.\n\n\
    Examples:\n  \
    ropewalk preload --library\n  \
    ropewalk preload -- iperf3 --version\n  \
    ropewalk preload -- iperf3 -s                                  (at the server)\n  \
    ropewalk preload -- iperf3 --sctp -c 192.0.2.7                 (at the client)\n  \
    ropewalk preload --encapsulation none -- iperf3 -s             (as root; packets over IP alone)\n  \
    ropewalk preload --follow-addresses -- iperf3 -s               (and at the client)\n  \
    ropewalk preload --avoid wg0 --scheduler min-rtt -- ncat --sctp 192.0.2.7 5000"
)]
pub struct PreloadArgs {
    /// What SCTP packets are encapsulated in: udp, or none for packets directly over IP, which needs CAP_NET_RAW
    #[arg(long, value_name = "NAME", default_value = "udp", value_parser = Carrier::NAMES)]
    encapsulation: String,
    /// UDP port that the program's listening sockets receive on; 9899 by default
    #[arg(long, value_name = "PORT", value_parser = udp_port())]
    udp_port: Option<u16>,
    /// UDP port of the program's sockets that only connect; any free one by default
    #[arg(long, value_name = "PORT", value_parser = udp_port())]
    client_udp_port: Option<u16>,
    /// UDP port of the peers that the program connects to; 9899 by default
    #[arg(long, value_name = "PORT", value_parser = udp_port())]
    peer_udp_port: Option<u16>,
    /// Network interface that is not used; may be repeated
    #[arg(long, value_name = "INTERFACE")]
    avoid: Vec<String>,
    /// Rules of the transport: live, or rfc9260 without departures
    #[arg(long, value_name = "NAME", default_value = "live", value_parser = Profile::NAMES)]
    profile: String,
    /// Scheduler; lay by default
    #[arg(long, value_name = "NAME", value_parser = SchedulerParser)]
    scheduler: Option<SchedulerName>,
    /// Congestion control, instead of that of the profile
    #[arg(long, value_name = "NAME", value_parser = str::parse::<Congestion>)]
    congestion: Option<Congestion>,
    /// Receive buffer of each association, unless the program sets SO_RCVBUF; 16 MiB by default
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    receive_buffer: Option<u64>,
    /// Assume that every path carries packets of 1500 B, instead of probing larger and smaller ones
    #[arg(long)]
    no_mtu_discovery: bool,
    /// Announce addresses of network interfaces that appear, and give up those that disappear, if the peer does so as
    /// well (RFC 5061). Chunks about addresses are authenticated
    #[arg(long, conflicts_with = "no_extensions")]
    follow_addresses: bool,
    /// Offer peers no extension of SCTP, as an implementation of RFC 9260 alone
    #[arg(long)]
    no_extensions: bool,
    /// Print the path of the library, which other programs can link or preload, and exit
    #[arg(long)]
    library: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM", required_unless_present = "library")]
    program: Vec<OsString>,
}

fn udp_port() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..)
}

/// Runs the program in place of this process.
///
/// # Errors
/// [`Failure`]: the library or the program is missing, or options contradict each other.
pub fn execute(args: &PreloadArgs, console: Console) -> Result<(), Failure> {
    let library = library()?;
    if args.library {
        return crate::output::print(&format!("{}\n", library.display()));
    }
    let [program, arguments @ ..] = &args.program[..] else {
        return Err(Failure::input(
            "no program",
            "name it after --: ropewalk preload -- iperf3 -s",
        ));
    };
    if args.encapsulation.parse() == Ok(Carrier::Ip) {
        refuse_udp_ports(args)?;
        RawError::check().map_err(|error| Failure::Input(error.to_string()))?;
    }
    note_what_has_no_effect(args, program, console);
    let error = Command::new(program)
        .args(arguments)
        .envs(variables(args))
        .env("LD_PRELOAD", preloaded(&library))
        .exec();
    Err(program::failure(program, &error))
}

/// Packets over IP alone have no UDP ports.
fn refuse_udp_ports(args: &PreloadArgs) -> Result<(), Failure> {
    let given = [
        ("--udp-port", args.udp_port),
        ("--client-udp-port", args.client_udp_port),
        ("--peer-udp-port", args.peer_udp_port),
    ];
    match given.into_iter().find(|(_, port)| port.is_some()) {
        Some((option, _)) => Err(Failure::input(
            format!("{option} has no meaning with --encapsulation none"),
            "packets directly over IP have no UDP ports: leave out one of the two options",
        )),
        None => Ok(()),
    }
}

/// Notes interfaces that this machine does not have, and a program that the library does not reach.
fn note_what_has_no_effect(args: &PreloadArgs, program: &OsStr, console: Console) {
    let mut known: Vec<String> =
        interfaces::list().unwrap_or_default().into_iter().map(|seen| seen.name).collect();
    known.sort_unstable();
    known.dedup();
    for name in args.avoid.iter().filter(|name| !known.contains(name)) {
        console.note(format!(
            "note: --avoid {name}: no interface of this name has an address now; {} have",
            known.join(", ")
        ));
    }
    let own = std::fs::metadata("/proc/self").map(|own| (own.uid(), own.gid()));
    let path = program::find(program);
    if let (Some(path), Ok(own)) = (path, own)
        && let Some(why) = program::obstacle(&path, own)
    {
        console.note(format!("warning: `ropewalk preload` has no effect: {why}"));
    }
}

/// The library before those that are preloaded already.
fn preloaded(library: &Path) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// The options as the library reads them.
fn variables(args: &PreloadArgs) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("ROPEWALK_ENCAPSULATION", args.encapsulation.clone()),
        ("ROPEWALK_UDP_PORT", args.udp_port.unwrap_or(PORT).to_string()),
        ("ROPEWALK_PEER_UDP_PORT", args.peer_udp_port.unwrap_or(PORT).to_string()),
        ("ROPEWALK_PROFILE", args.profile.clone()),
        ("ROPEWALK_AVOID", args.avoid.join(",")),
    ];
    let port = args.client_udp_port.map(|port| port.to_string());
    variables.extend(port.map(|port| ("ROPEWALK_CLIENT_UDP_PORT", port)));
    variables.extend(args.no_mtu_discovery.then(|| ("ROPEWALK_DISCOVER_MTU", false.to_string())));
    let follows = args.follow_addresses.then(|| ("ROPEWALK_FOLLOW_ADDRESSES", true.to_string()));
    variables.extend(follows);
    variables.extend(args.no_extensions.then(|| ("ROPEWALK_EXTENSIONS", false.to_string())));
    let name = args.scheduler.map(|name| name.as_str().to_owned());
    variables.extend(name.map(|name| ("ROPEWALK_SCHEDULER", name)));
    let name = args.congestion.map(|name| name.to_string());
    variables.extend(name.map(|name| ("ROPEWALK_CONGESTION", name)));
    let bytes = args.receive_buffer.map(|bytes| bytes.to_string());
    variables.extend(bytes.map(|bytes| ("ROPEWALK_RECEIVE_BUFFER", bytes)));
    variables
}

/// Finds the library: where the variable says, beside the command, or in the library directory of the same prefix.
fn library() -> Result<PathBuf, Failure> {
    let named = env::var_os(LIBRARY_VARIABLE).map(PathBuf::from);
    let own = env::current_exe().and_then(std::fs::canonicalize).unwrap_or_default();
    let beside = own.parent().unwrap_or(Path::new("."));
    let places =
        ["", "deps", "../lib", "../lib/ropewalk"].map(|place| beside.join(place).join(LIBRARY));
    let found = named.into_iter().chain(places).find(|path| path.is_file());
    found.and_then(|path| std::fs::canonicalize(path).ok()).ok_or_else(|| {
        Failure::input(
            format!("{LIBRARY} is not beside {}", own.display()),
            format!("install the package, or name the file: {LIBRARY_VARIABLE}=/path/to/{LIBRARY}"),
        )
    })
}
