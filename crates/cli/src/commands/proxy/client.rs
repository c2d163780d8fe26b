//! The client end of the proxy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use ropewalk_apps::mux::Limits;
use ropewalk_apps::observe::{Sources, clock};
use ropewalk_apps::proxy::client::{
    ConnectTimeouts, Credentials, ExitConnection, ListenProtocol, ProxyClient, Service,
    parse_forward, parse_listen,
};
use ropewalk_apps::proxy::live::Live;
use ropewalk_apps::proxy::{Notice, NoticeSink, Target as Destination};
use ropewalk_apps::whereabouts::Whereabouts;
use ropewalk_runtime::clock::unix_time;
use ropewalk_runtime::endpoint::{Endpoint, Options};
use ropewalk_runtime::seal::{Allowed, PresharedKey};
use tokio::net::TcpListener;

use super::CommonArgs;
use crate::console::Console;
use crate::failure::Failure;
use crate::live::{
    Announcer, Flow, Notes, Outputs, PeerArg, Reload, addresses, given, identity, locals, refused,
    remotes, start,
};

/// Arguments of `proxy`.
#[derive(Clone, Debug, Args)]
pub struct ClientArgs {
    /// Addresses of the exit, one per path
    #[arg(long, value_name = "ADDR[:PORT]", value_delimiter = ',')]
    to: Vec<String>,
    /// Own address or network interface, one per path; all interfaces that are up by default
    #[arg(long, value_name = "ADDR|INTERFACE", value_delimiter = ',')]
    from: Vec<String>,
    /// The exit, by the name under which it was paired (`ropewalk pair`), or by the public key that it prints
    #[arg(long, value_name = "NAME|PUBKEY", value_parser = str::parse::<PeerArg>)]
    peer: Option<PeerArg>,
    /// Pre-shared key, if the exit requires one (`ropewalk keygen --psk FILE` makes it)
    #[arg(long, value_name = "FILE")]
    psk_file: Option<PathBuf>,
    /// Accept SOCKS 5 on this address; a port alone means 127.0.0.1
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = parse_listen)]
    socks: Vec<SocketAddr>,
    /// Accept HTTP on this address: CONNECT, and requests for http://
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = parse_listen)]
    http: Vec<SocketAddr>,
    /// Forward connections to this port to HOST:PORT, which the exit resolves; may be repeated
    #[arg(long, value_name = "[ADDR:]PORT=HOST:PORT", value_parser = parse_forward)]
    forward: Vec<(SocketAddr, Destination)>,
    /// File with one line NAME:PASSWORD that programs must give
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// Let other machines connect without a password, where the address is reachable for them
    #[arg(long)]
    open: bool,
    /// Most connections at a time; further ones wait
    #[arg(long, value_name = "N", default_value_t = 2000)]
    connections: usize,
    #[command(flatten)]
    common: CommonArgs,
}

/// Serves until the near end is interrupted.
pub async fn run(args: &ClientArgs, console: Console) -> Result<(), Failure> {
    let credentials = args.credentials.as_deref().map(credentials).transpose()?;
    let services = services(args, credentials.is_some())?;
    let observation = args.common.observe.bind("proxy", console)?;
    let mut live = live(args, console)?;
    live.options.observer = Some(observation.observer());
    let outputs = Outputs::default().with(Notes(move |text: &str| console.note(text)));
    let outputs = args.common.observe.stream(outputs, "proxy", Flow::Both, false)?;
    let announcer = Announcer::with_notes(observation.reporter(), console);
    let _monitor = start(observation, Sources::default(), outputs)?;
    let mut bound = Vec::with_capacity(services.len());
    for (address, protocol) in services {
        bound.push(bind(address, protocol).await?);
    }
    let verbose = Arc::new(AtomicBool::new(args.common.verbose));
    let notify = notice_sink(console, verbose.clone());
    let exit_connection =
        ExitConnection::maintain(live, ConnectTimeouts::default(), notify.clone());
    let proxy = ProxyClient::new(exit_connection, credentials, args.connections, notify);
    let limited = proxy.clone();
    Reload::<ClientArgs>::new(announcer)
        .set(&["connections"], move |args| limited.set_limit(args.connections))
        .set(&["verbose"], move |args| verbose.store(args.common.verbose, Ordering::Relaxed))
        .watch(args.common.transport.config());
    bound.iter().for_each(|service| announce(service, console));
    proxy.serve(bound).await;
    Ok(())
}

/// Prints notices of the near end.
fn notice_sink(console: Console, verbose: Arc<AtomicBool>) -> NoticeSink {
    Arc::new(move |notice: Notice| {
        if verbose.load(Ordering::Relaxed) || !notice.is_detail() {
            console.note(format_args!("{} {notice}", clock(unix_time().as_secs_f64())));
        }
    })
}

/// The configuration of the connection to the exit.
fn live(args: &ClientArgs, console: Console) -> Result<Live, Failure> {
    let exit = args.peer.as_ref().ok_or_else(|| {
        Failure::input("--peer is missing", "give the public key that `ropewalk proxy exit` prints")
    })?;
    let exit = exit.find("--peer")?;
    let secret = identity(args.common.key.as_deref(), console)?;
    let found = remotes(&args.to, Some(&exit))?;
    console
        .note(format_args!("public key of this end, for the exit's --allow: {}", secret.public()));
    let psk = args.psk_file.as_deref().map(PresharedKey::read_file).transpose()?;
    let sealed = Options::connecting(&[]).sealed(secret, Allowed::Keys([exit.key].into()));
    let mut options = sealed.with_psk(psk);
    options.locals = locals(&args.from, &found);
    options.transport = args.common.transport()?;
    options.capture = args.common.transport.capture(true, console)?;
    if args.from.is_empty() {
        options = options.automatic(&found);
    }
    // Resolve names and bind addresses once before the start: an error here would recur with each attempt to connect.
    drop(Endpoint::open(options.clone()).map_err(refused)?);
    let finder = addresses::finder(given(&args.to, Some(&exit))?);
    let place = Arc::new(Whereabouts::new(found, finder));
    Ok(Live { options, key: Some(exit.key), place, limits: Limits::default() })
}

fn credentials(path: &Path) -> Result<Credentials, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Input(format!("cannot read {shown}: {error}")))?;
    Credentials::parse(&text).map_err(|error| {
        Failure::input(format!("{shown}: {error}"), "write for example anne:a-long-password")
    })
}

/// The addresses to listen on, each with its protocol.
fn services(
    args: &ClientArgs,
    guarded: bool,
) -> Result<Vec<(SocketAddr, ListenProtocol)>, Failure> {
    let socks = args.socks.iter().map(|at| (*at, ListenProtocol::Socks));
    let http = args.http.iter().map(|at| (*at, ListenProtocol::Http));
    let forward = args.forward.iter().map(|(at, to)| (*at, ListenProtocol::Forward(to.clone())));
    let all: Vec<_> = socks.chain(http).chain(forward).collect();
    if all.is_empty() {
        return Err(Failure::input(
            "nothing to listen to",
            "give --socks 1080, --http 8080 or --forward 8080=example.org:80",
        ));
    }
    for (at, protocol) in &all {
        let requires_password = guarded && !matches!(protocol, ListenProtocol::Forward(_));
        if !at.ip().is_loopback() && !requires_password && !args.open {
            return Err(Failure::input(
                format!("{at} can be reached by other machines, which could all use the exit"),
                "ask for a password with --credentials FILE (not for --forward), or admit everyone with --open",
            ));
        }
    }
    Ok(all)
}

async fn bind(at: SocketAddr, protocol: ListenProtocol) -> Result<Service, Failure> {
    let listener = TcpListener::bind(at).await.map_err(|error| {
        Failure::input(
            format!("cannot listen on {at}: {error}"),
            "choose another port, or stop the program that uses it",
        )
    })?;
    Ok(Service { listener, protocol })
}

/// Prints where programs can connect.
fn announce(service: &Service, console: Console) {
    let Ok(at) = service.listener.local_addr() else { return };
    match &service.protocol {
        ListenProtocol::Socks => console.note(format_args!("SOCKS 5 on {at}")),
        ListenProtocol::Http => console.note(format_args!("HTTP proxy on {at}")),
        ListenProtocol::Forward(to) => console.note(format_args!("{at} forwards to {to}")),
    }
}
