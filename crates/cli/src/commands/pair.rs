//! `ropewalk pair`: two machines learn each other's keys by a short code.

use std::io::{BufRead, IsTerminal, Read, stdin};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use ropewalk_apps::access::{Added, KnownPeers};
use ropewalk_apps::pair::{
    Code, Initiator, Introduction, Invitation, InvitationError, OfferSockets, PairError, Responder,
    join, offer,
};
use ropewalk_base::{Duration, PeerText};
use ropewalk_runtime::clock::Clock;
use ropewalk_runtime::endpoint::PORT;
use ropewalk_runtime::seal::{PublicKey, SecretKey};
use ropewalk_scenario::parse_duration;
use serde::Serialize;

use super::transfer::runtime;
use crate::console::Console;
use crate::failure::Failure;
use crate::files::check_place;
use crate::live::{
    Interrupt, identity, listed, listen, peers_file, private_directory, reachable, resolved,
};
use crate::output;

/// The name of a machine that has none.
const NAMELESS: &str = "peer";
const CODE_HELP: &str =
    "type the code that `ropewalk pair` shows at the other side, such as K7QF-3M25";
/// A note if the code is on the command line.
const VISIBLE: &str = "other users of this machine can see a code on the command line; without it, \
                       `ropewalk pair --to` asks for the code";
/// Number of attempts to type the code on a terminal.
const ATTEMPTS: usize = 3;
/// Longest line with a code, bytes.
const LINE_LIMIT: u64 = 4096;

/// Arguments of `pair`.
#[derive(Debug, Args)]
#[command(
    after_help = "One side runs it without --to, and shows a code. The other side gives an address of the first with --to; the command then asks \
    for the code. If standard input is not a terminal, the code is its first line. The code is valid once and for a short time; a wrong \
    code ends it. Only the side that shows the code must be reachable. Afterwards, each side knows the other by name: --peer NAME, \
    --allow NAME.\n\n\
    Exit status: 0 paired, 1 not paired, 2 the command line was wrong.\n\n\
    Examples:\n  \
    ropewalk pair\n  \
    ropewalk pair --to 192.0.2.7\n  \
    ropewalk pair --to 192.0.2.7 < code.txt\n  \
    ropewalk pair --name laptop --listen 192.0.2.7 --json"
)]
pub struct PairArgs {
    /// The code that the other side shows, or the text of its QR code. Other users of this machine can see it here: leave it out, or
    /// give `-` in place of the text of a QR code, and the command asks for it
    #[arg(value_name = "CODE", value_parser = typed)]
    code: Option<Typed>,
    /// Addresses of the side that shows the code; without them and without a code, this side shows one
    #[arg(long, value_name = "ADDR[:PORT]", value_delimiter = ',')]
    to: Vec<String>,
    /// Address of this machine at which to wait; all addresses, port 9899 if it is free, by default
    #[arg(long, value_name = "ADDR[:PORT]", conflicts_with_all = ["code", "to"])]
    listen: Vec<String>,
    /// How long the code is valid
    #[arg(long, value_name = "TIME", default_value = "5 min", value_parser = parse_duration, conflicts_with_all = ["code", "to"])]
    valid: Duration,
    /// How this machine introduces itself; its host name by default
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// Store the peer under this name, instead of the one by which it introduces itself
    #[arg(long = "as", value_name = "NAME", value_parser = name)]
    stored_as: Option<String>,
    /// Own secret key file, instead of your default key, which is created when first needed
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// List to which the peer is added, in the syntax of --allow-file; your own list by default
    #[arg(long, value_name = "FILE")]
    peers: Option<PathBuf>,
    /// Show the QR code even if this is no terminal
    #[arg(long, conflicts_with_all = ["code", "to"])]
    qr: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// How the code is given on the command line.
#[derive(Clone, Debug)]
enum Typed {
    /// The command asks for it, or reads it from standard input.
    Input,
    Here(Invitation),
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    /// The name under which the peer is stored.
    name: String,
    public_key: String,
    /// Addresses at which the peer answered.
    addresses: Vec<String>,
    /// Whether the key was stored before.
    known: bool,
    /// Its version of Ropewalk, as it says.
    release: String,
    file: String,
}

/// The other side, with all that it said.
struct Peer {
    key: PublicKey,
    introduction: Introduction,
    addresses: Vec<String>,
}

/// Pairs, and prints the peer.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &PairArgs, console: Console) -> Result<(), Failure> {
    let file = peers_file(args.peers.as_deref())?;
    // A list with an error would waste the code.
    KnownPeers::read(&file)?;
    match (&args.peers, file.parent()) {
        (Some(_), _) => check_place("--peers", &file)?,
        (None, Some(directory)) => private_directory(directory).map_err(|error| {
            let message = format!("cannot create `{}`: {error}", directory.display());
            Failure::input(message, "give another file by --peers")
        })?,
        (None, None) => {}
    }
    let invitation = match &args.code {
        Some(Typed::Here(invitation)) => {
            console.note(VISIBLE);
            Some(invitation.clone())
        }
        None if args.to.is_empty() => None,
        Some(Typed::Input) | None => Some(ask(console)?),
    };
    let secret = identity(args.key.as_deref(), console)?;
    let runtime = runtime()?;
    match invitation {
        Some(invitation) => {
            let peer = runtime.block_on(accept(args, &invitation, &secret))?;
            let added = store(args, &file, &peer).map_err(Failure::Run)?;
            report(args, &peer, added, &file)
        }
        None => {
            let (peer, added) = runtime.block_on(show(args, &file, secret, console))?;
            report(args, &peer, added, &file)
        }
    }
}

/// Reads the code from standard input. On a terminal, asks for it, and again after a slip.
fn ask(console: Console) -> Result<Invitation, Failure> {
    let is_terminal = stdin().is_terminal();
    let mut attempts = if is_terminal { ATTEMPTS } else { 1 };
    loop {
        if is_terminal {
            console.note("the code that the other side shows:");
        }
        attempts -= 1;
        match read_code() {
            Ok(invitation) => return Ok(invitation),
            Err(slip) if attempts > 0 => console.note(slip),
            Err(slip) => return Err(Failure::input(slip, CODE_HELP)),
        }
    }
}

/// # Errors
/// What is wrong with the first line of standard input.
fn read_code() -> Result<Invitation, String> {
    let mut line = String::new();
    let read = stdin().lock().take(LINE_LIMIT).read_line(&mut line);
    read.map_err(|error| format!("the code cannot be read from standard input: {error}"))?;
    if line.is_empty() {
        return Err("there is no code on standard input".to_owned());
    }
    line.parse().map_err(|error: InvitationError| error.to_string())
}

/// The side at which the code is typed.
async fn accept(
    args: &PairArgs,
    invitation: &Invitation,
    secret: &SecretKey,
) -> Result<Peer, Failure> {
    let texts = if args.to.is_empty() { &invitation.addresses } else { &args.to };
    if texts.is_empty() {
        let help = "give an address of the side that shows the code: --to 192.0.2.7";
        return Err(Failure::input("--to is missing", help));
    }
    let targets = resolved(texts)?;
    let introduction = introduction(args, None, Vec::new());
    let initiator = Initiator::new(&invitation.code, secret, &introduction, targets)
        .map_err(|error| Failure::Run(error.to_string()))?;
    let mut interrupt = Interrupt::install();
    let joined = tokio::select! {
        joined = join(initiator) => joined,
        () = interrupt.wait() => return Err(Failure::Run("stopped".to_owned())),
    };
    let joined = joined.map_err(|error| {
        let help = match error {
            PairError::NoPeer => {
                "is `ropewalk pair` waiting there, and is its UDP port open in the firewall?"
            }
            PairError::WrongCode => {
                "run `ropewalk pair` at the other side again: it shows a new code"
            }
            _ => "run `ropewalk pair` at both sides again",
        };
        Failure::Run(format!("not paired: {error}\n = help: {help}"))
    })?;
    let port = joined.introduction.port;
    let server = |address: &SocketAddr| {
        let address = SocketAddr::new(address.ip(), port.unwrap_or(address.port()));
        listed(&[(address, None)])
    };
    let mut addresses: Vec<String> = Vec::new();
    for address in joined.answered.iter().map(server) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(Peer { key: joined.peer.key, introduction: joined.introduction, addresses })
}

/// The side that shows the code.
async fn show(
    args: &PairArgs,
    file: &Path,
    secret: SecretKey,
    console: Console,
) -> Result<(Peer, Added), Failure> {
    if console.is_quiet() {
        let help = "leave out --quiet, or type the code of the other side here";
        return Err(Failure::input("--quiet would hide the code", help));
    }
    let sockets = bind(args).await?;
    let locals = sockets.locals();
    let addresses: Vec<SocketAddr> = reachable(&locals)
        .into_iter()
        .map(|(address, _)| address)
        .filter(|address| !address.ip().is_loopback())
        .collect();
    // If pairing had to avoid the default port because a server uses it, that server keeps using
    // the default port.
    let moved = args.listen.is_empty() && locals.iter().any(|local| local.port() != PORT);
    let introduction = introduction(args, moved.then_some(PORT), addresses.clone());
    let code = Code::generate().map_err(|error| Failure::Run(error.to_string()))?;
    let mut interrupt = Interrupt::install();
    present(args, &code, if addresses.is_empty() { &locals } else { &addresses }, console);
    let clock = Clock::start();
    let responder = Responder::new(code, secret, &introduction, clock.now())
        .map_err(|error| Failure::Run(error.to_string()))?;
    let limit = std::time::Duration::from_nanos(args.valid.as_nanos());
    let mut added = None;
    let stored = |paired: &ropewalk_runtime::seal::PairedPeer| {
        let introduction = Introduction::decode(&paired.introduction).unwrap_or_default();
        let peer = Peer { key: paired.key, introduction, addresses: Vec::new() };
        added = Some((store(args, file, &peer)?, peer));
        Ok(())
    };
    let result = tokio::select! {
        result = offer(sockets, responder, &clock, limit, stored) => result,
        () = interrupt.wait() => return Err(Failure::Run("stopped".to_owned())),
    };
    match (result, added) {
        (Ok(_), Some((added, peer))) => Ok((peer, added)),
        (Err(error), _) => Err(not_paired(&error, args.valid)),
        (Ok(_), None) => Err(Failure::Run("the peer was not stored".to_owned())),
    }
}

fn not_paired(error: &PairError, valid: Duration) -> Failure {
    let (message, help) = match error {
        PairError::NoPeer => (
            format!("no peer came within {}; the code is no longer valid", whole_minutes(valid)),
            "run it again for a new code; --valid sets how long it is valid",
        ),
        PairError::WrongCode => (
            "a peer used a wrong code; the code is no longer valid".to_owned(),
            "run it again for a new code",
        ),
        error => (error.to_string(), "run it again for a new code"),
    };
    Failure::Run(format!("not paired: {message}\n = help: {help}"))
}

async fn bind(args: &PairArgs) -> Result<OfferSockets, Failure> {
    let bound = if args.listen.is_empty() {
        OfferSockets::bind_all(PORT).await
    } else {
        let addresses =
            args.listen.iter().map(|text| listen(text)).collect::<Result<Vec<_>, _>>()?;
        OfferSockets::bind(&addresses).await
    };
    bound.map_err(|(address, error)| {
        let message = format!("cannot listen on {address}: {error}");
        Failure::input(message, "give an address of this machine, with a port that is free")
    })
}

/// Shows the code, its QR code and the command for the other side.
fn present(args: &PairArgs, code: &Code, addresses: &[SocketAddr], console: Console) {
    let addresses: Vec<_> = addresses.iter().map(|address| (*address, None)).collect();
    let to = listed(&addresses);
    let texts = to.split(',').take(8).map(str::to_owned).collect();
    let invitation = Invitation { code: code.clone(), addresses: texts };
    let wanted = args.qr || console.has_viewer();
    if let Some(picture) = wanted.then(|| qr(&invitation.to_string())).flatten() {
        console.note(picture);
    }
    let valid = whole_minutes(args.valid);
    console.note(format_args!("the code is {code}; it is valid once, for {valid}"));
    console.note(format_args!(
        "at the other side, which asks for the code:\n  ropewalk pair --to {to}"
    ));
}

/// A time in minutes if it has only whole ones.
fn whole_minutes(time: Duration) -> String {
    const MINUTE: u64 = 60_000_000_000;
    match time.as_nanos() {
        nanos if nanos >= MINUTE && nanos.is_multiple_of(MINUTE) => {
            format!("{} min", nanos / MINUTE)
        }
        _ => time.to_string(),
    }
}

/// The QR code as text, two rows of modules per line. Light modules are drawn, for terminals with a dark background.
fn qr(text: &str) -> Option<String> {
    use qrcode::render::unicode::Dense1x2;
    let code = qrcode::QrCode::with_error_correction_level(text, qrcode::EcLevel::L).ok()?;
    let mut renderer = code.render::<Dense1x2>();
    Some(renderer.dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build())
}

fn introduction(args: &PairArgs, port: Option<u16>, addresses: Vec<SocketAddr>) -> Introduction {
    Introduction {
        name: args.name.clone().unwrap_or_else(host_name),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        port,
        addresses,
    }
}

#[cfg(target_os = "linux")]
fn host_name() -> String {
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| NAMELESS.to_owned())
}

#[cfg(not(target_os = "linux"))]
fn host_name() -> String {
    let names = ["COMPUTERNAME", "HOSTNAME"].into_iter();
    names.filter_map(|name| std::env::var(name).ok()).next().unwrap_or_else(|| NAMELESS.to_owned())
}

/// Adds the peer to the list.
fn store(args: &PairArgs, file: &Path, peer: &Peer) -> Result<Added, String> {
    let name = args.stored_as.as_deref().unwrap_or(&peer.introduction.name);
    KnownPeers::add(file, name, peer.key, &peer.addresses).map_err(|error| error.to_string())
}

fn report(args: &PairArgs, peer: &Peer, added: Added, file: &Path) -> Result<(), Failure> {
    let Added { name, known } = added;
    if args.json {
        return output::print_json(&Document {
            schema: "ropewalk.pair/1",
            name,
            public_key: peer.key.to_string(),
            addresses: peer.addresses.clone(),
            known,
            release: PeerText::new(peer.introduction.release.clone()).to_string(),
            file: file.to_string_lossy().into_owned(),
        });
    }
    let before = if known { ", which was known before" } else { "" };
    let mut text = format!("paired with {name}{before}\nits key     {}\n", peer.key);
    if !peer.addresses.is_empty() {
        text += &format!("answers at  {}\n", peer.addresses.join(", "));
    }
    let own = if args.peers.is_none() { " --peer NAME and --allow NAME find it" } else { "" };
    text += &format!("stored in   {}{own}\n", file.display());
    output::print(&text)
}

fn typed(text: &str) -> Result<Typed, String> {
    if text == "-" {
        return Ok(Typed::Input);
    }
    let invitation = text.parse().map_err(|error: InvitationError| format!("{error}; {CODE_HELP}"));
    invitation.map(Typed::Here)
}

fn name(text: &str) -> Result<String, String> {
    if ropewalk_apps::access::is_peer_name(text) {
        return Ok(text.to_owned());
    }
    Err("a name has letters, digits and - _ . @ +, at most 64 characters".to_owned())
}
