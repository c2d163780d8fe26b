//! Options of the commands that communicate with a peer.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::TypedValueParser as _;
use ropewalk_apps::access::{AccessList, PeerPolicy};
use ropewalk_apps::observe::Observation;
use ropewalk_apps::whereabouts::Whereabouts;
use ropewalk_runtime::capture::{Capture, Vantage};
use ropewalk_runtime::endpoint::{
    BindAddress, Carrier, Endpoint, Observer, OpenError, Options, PORT, Profile, SctpPorts, Target,
    Transport,
};
use ropewalk_runtime::seal::{Allowed, PresharedKey, PublicKey};
use ropewalk_scenario::{Congestion, parse_size};

use super::access::AccessArgs;
use super::addresses;
use super::extensions::ExtensionArgs;
use super::identity::identity;
use super::limits::LimitArgs;
use super::peers::PeerArg;
use crate::args::{SchedulerParser, command_line};
use crate::console::Console;
use crate::failure::Failure;

/// The default address to listen on without sealing.
const ANYWHERE: &str = "0.0.0.0";
const ADDRESSES_HELP: &str =
    "give the addresses at which the peer listens: --to 192.0.2.7,198.51.100.7";
/// The smallest receive buffer that an association may have (RFC 9260, 3.3.2), bytes.
const LEAST_BUFFER: u64 = 1500;

/// Properties of associations.
#[derive(Clone, Debug, Args)]
pub struct TransportArgs {
    /// Scheduler: which data goes on which path, and when
    #[arg(long, value_name = "NAME", default_value = "lay", hide_possible_values = true,
        value_parser = SchedulerParser.map(|name| name.to_string()))]
    scheduler: String,
    /// Congestion control of each path [default: bbr; rfc9260 with that profile]
    #[arg(long, value_name = "NAME", value_parser = str::parse::<Congestion>)]
    congestion: Option<Congestion>,
    /// SCTP profile: live, or rfc9260 for strictly what RFC 9260 allows
    #[arg(long, value_name = "NAME", default_value = "live", value_parser = str::parse::<Profile>)]
    profile: Profile,
    /// Receive buffer. Paths that differ more need a larger one; it costs memory
    #[arg(long, visible_alias = "buffer", value_name = "SIZE", default_value = "16 MiB", value_parser = parse_size)]
    receive_buffer: u64,
    /// Capture all packets, as they are inside the seal, in a file for Wireshark (pcapng)
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Record all packets, as they are inside the seal, and the measurements of each path as qlog (JSON text sequence)
    #[arg(long, value_name = "FILE")]
    qlog: Option<PathBuf>,
    /// Take options from this TOML file; those on the command line have precedence
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl TransportArgs {
    /// The file of `--config`.
    pub fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// The files of `--capture` and `--qlog`, if an option is given. `opens`: whether this end opens associations.
    ///
    /// # Errors
    /// A file cannot be written, or both options name the same file.
    pub fn capture(&self, opens: bool, console: Console) -> Result<Option<Capture>, Failure> {
        if self.capture.is_none() && self.qlog.is_none() {
            return Ok(None);
        }
        if self.capture == self.qlog {
            let message = "--capture and --qlog name the same file";
            return Err(Failure::input(
                message,
                "name two files: --capture a.pcapng --qlog a.sqlog",
            ));
        }
        let refused = |option: &str, path: &Path, example: &str, error: std::io::Error| {
            let message = format!("{option} {}: {error}", path.display());
            Failure::input(
                message,
                format_args!("name a file that can be created, such as {example}"),
            )
        };
        let stopped = |path: &Path| {
            let shown = path.display().to_string();
            move |error| console.note(format_args!("stopped writing to `{shown}`: {error}"))
        };
        let mut files = Capture::default();
        if let Some(path) = &self.capture {
            let with = files.with_pcapng(path, stopped(path));
            files = with.map_err(|error| refused("--capture", path, "packets.pcapng", error))?;
        }
        if let Some(path) = &self.qlog {
            let vantage = Vantage { title: &command_line(), opens };
            let with = files.with_qlog(path, vantage, stopped(path));
            files = with.map_err(|error| refused("--qlog", path, "packets.sqlog", error))?;
        }
        Ok(Some(files))
    }

    /// The transport with the options applied to the defaults.
    ///
    /// # Errors
    /// The receive buffer is too small.
    pub fn transport(&self) -> Result<Transport, Failure> {
        if self.receive_buffer < LEAST_BUFFER {
            let message = format!("--receive-buffer {} B is too small", self.receive_buffer);
            return Err(Failure::input(message, "give at least 1500 B; 16 MiB is usual"));
        }
        let scheduler = self.scheduler.clone();
        let congestion = self.congestion.map(|name| name.to_string());
        let (profile, receive_buffer) = (self.profile, self.receive_buffer);
        Ok(Transport { profile, scheduler, congestion, receive_buffer, ..Transport::default() })
    }
}

/// The carrier with an encapsulation that the parser has accepted.
fn carrier(encapsulation: &str) -> Carrier {
    encapsulation.parse().unwrap_or_default()
}

/// The SCTP port, which an encrypted association does not have: users who give it mean the UDP port.
fn service_port(given: Option<u16>, plain: bool, address: &str) -> Result<u16, Failure> {
    match given {
        Some(port) if !plain => Err(Failure::input(
            "--port is the SCTP port of --plain, and this connection is encrypted",
            format!("the UDP port is part of the address: {address}:{port}"),
        )),
        port => Ok(port.unwrap_or(PORT)),
    }
}

/// Port 0 does not exist.
fn sctp_port() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..)
}

/// A server's endpoint.
pub struct Listening {
    /// The endpoint itself.
    pub endpoint: Endpoint,
    /// Its public key; none without encryption.
    pub public: Option<PublicKey>,
    /// What each peer may do: everything if no peer is named.
    pub access: AccessList,
}

/// Addresses to listen on, and the peers to admit.
#[derive(Clone, Debug, Args)]
pub struct ListenArgs {
    /// Address of this machine, one per path; all addresses by default, of IPv4 and, without --plain, IPv6
    #[arg(long, value_name = "ADDR[:PORT]")]
    listen: Vec<String>,
    /// Own secret key file, instead of your default key, which is created when first needed
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    access: AccessArgs,
    /// No encryption and no authentication: anyone on the way can read and change the data
    #[arg(long, conflicts_with_all = ["key", "allow", "allow_file", "psk_file"])]
    plain: bool,
    /// With --plain, the SCTP port to accept associations on, 9899 by default. The UDP port is part of --listen
    #[arg(long, value_name = "PORT", value_parser = sctp_port())]
    port: Option<u16>,
    /// With --plain, what SCTP packets are encapsulated in: udp, or none, which needs CAP_NET_RAW
    #[arg(long, value_name = "NAME", default_value = "udp", requires = "plain", value_parser = Carrier::NAMES)]
    encapsulation: String,
    #[command(flatten)]
    limits: LimitArgs,
}

impl ListenArgs {
    /// Opens the endpoint. Returns it with its public key and who may use it.
    ///
    /// # Errors
    /// Wrong options. Needs a tokio runtime.
    pub fn listen(
        &self,
        transport: &TransportArgs,
        extensions: &ExtensionArgs,
        observation: &Observation,
        console: Console,
    ) -> Result<Listening, Failure> {
        let port = service_port(self.port, self.plain, "--listen 0.0.0.0")?;
        let default = [ANYWHERE.to_owned()];
        let is_default = self.plain && self.listen.is_empty();
        let texts = if is_default { &default[..] } else { &self.listen };
        let mut options = addresses::listening(texts)?.on_sctp_ports(&[port]);
        options.carrier = carrier(&self.encapsulation);
        options.limits = self.limits.limits()?;
        options.transport = transport.transport()?;
        extensions.offer(self.plain, &mut options.transport)?;
        options.capture = transport.capture(false, console)?;
        options.observer = Some(observation.observer());
        let access = self.access.open()?;
        let mut public = None;
        if !self.plain {
            let secret = identity(self.key.as_deref(), console)?;
            public = Some(secret.public());
            options = access.seal(options, secret);
        }
        let endpoint = Endpoint::open(options).map_err(refused)?;
        access.watch(&endpoint, observation.reporter(), console, |_| {});
        extensions.watch(&observation.observer(), console);
        Ok(Listening { endpoint, public, access: access.list().clone() })
    }

    /// Admits only paired peers if there are any and no peer is named. Returns their names.
    ///
    /// # Errors
    /// The list of paired peers has an error.
    pub fn admit_paired(&mut self) -> Result<Vec<String>, Failure> {
        if self.plain { Ok(Vec::new()) } else { self.access.admit_paired() }
    }

    /// The options that a client of an unencrypted server needs.
    pub fn plain_options(&self) -> String {
        let mut options = "--plain".to_owned();
        if let Some(port) = self.port.filter(|port| *port != PORT) {
            options.push_str(&format!(" --port {port}"));
        }
        if carrier(&self.encapsulation) != Carrier::default() {
            options.push_str(&format!(" --encapsulation {}", self.encapsulation));
        }
        options
    }

    /// The options that say who may use the server.
    pub const fn access(&self) -> &AccessArgs {
        &self.access
    }

    /// The options that limit what peers can use.
    pub const fn limits(&self) -> &LimitArgs {
        &self.limits
    }

    /// Whether everyone who can reach the server may use it.
    pub fn is_open(&self) -> bool {
        self.access.is_anyone()
    }
}

/// The peer, and the addresses to send from.
#[derive(Clone, Debug, Args)]
pub struct ReachArgs {
    /// Addresses of the peer, one per path; with --peer NAME, the addresses at which it was paired by default
    #[arg(long, value_name = "ADDR[:PORT]", value_delimiter = ',')]
    to: Vec<String>,
    /// The peer, by the name under which it was paired (`ropewalk pair`), or by the public key that it prints
    #[arg(long, value_name = "NAME|PUBKEY", value_parser = str::parse::<PeerArg>)]
    peer: Option<PeerArg>,
    /// Own address or network interface, one per path; all interfaces that are up by default
    #[arg(long, value_name = "ADDR|INTERFACE", value_delimiter = ',')]
    from: Vec<String>,
    /// Own secret key file, instead of your default key, which is created when first needed
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Pre-shared key, if the peer requires one (`ropewalk keygen --psk FILE` creates it)
    #[arg(long, value_name = "FILE")]
    psk_file: Option<PathBuf>,
    /// No encryption and no authentication, as a peer with --plain expects
    #[arg(long, conflicts_with_all = ["key", "peer", "psk_file"])]
    plain: bool,
    /// With --plain, the SCTP port of the service at the peer, 9899 by default. The UDP port is part of --to
    #[arg(long, value_name = "PORT", value_parser = sctp_port())]
    port: Option<u16>,
    /// With --plain, what SCTP packets are encapsulated in: udp, or none, which needs CAP_NET_RAW
    #[arg(long, value_name = "NAME", default_value = "udp", requires = "plain", value_parser = Carrier::NAMES)]
    encapsulation: String,
}

impl ReachArgs {
    /// Whether a peer is given.
    pub const fn is_given(&self) -> bool {
        !self.to.is_empty() || self.peer.is_some()
    }

    /// Whether the user named the links to use.
    pub const fn names_links(&self) -> bool {
        !self.from.is_empty()
    }

    /// The key file that is given instead of the default key.
    pub fn key_file(&self) -> Option<&Path> {
        self.key.as_deref()
    }

    /// Whether the association is not encrypted.
    pub const fn is_plain(&self) -> bool {
        self.plain
    }

    /// Opens the endpoint, and returns it with the peer.
    ///
    /// # Errors
    /// Wrong options. Needs a tokio runtime.
    pub fn open(
        &self,
        transport: &TransportArgs,
        extensions: &ExtensionArgs,
        observer: Option<Observer>,
        console: Console,
    ) -> Result<(Endpoint, Target), Failure> {
        let (mut options, target) = self.options(transport, console)?;
        extensions.offer(self.plain, &mut options.transport)?;
        if let Some(observer) = &observer {
            extensions.watch(observer, console);
        }
        options.observer = observer;
        let endpoint = Endpoint::open(options).map_err(refused)?;
        Ok((endpoint, target))
    }

    /// The configuration of the endpoint, and the peer.
    ///
    /// # Errors
    /// Wrong options.
    pub fn options(
        &self,
        transport: &TransportArgs,
        console: Console,
    ) -> Result<(Options, Target), Failure> {
        let (mut options, target) = self.options_with(transport.transport()?, console)?;
        options.capture = transport.capture(true, console)?;
        Ok((options, target))
    }

    /// Where the peer is that these options name, which was found at `addresses`.
    ///
    /// # Errors
    /// The peer is not known.
    pub fn whereabouts(&self, addresses: Vec<SocketAddr>) -> Result<Whereabouts, Failure> {
        let peer = self.peer.as_ref().map(|peer| peer.find("--peer")).transpose()?;
        let finder = addresses::finder(given(&self.to, peer.as_ref())?);
        Ok(Whereabouts::new(addresses, finder))
    }

    /// The own addresses and interfaces that are given.
    pub fn from(&self) -> &[String] {
        &self.from
    }

    /// Like [`ReachArgs::options`], with these properties of associations.
    ///
    /// # Errors
    /// Wrong options.
    pub fn options_with(
        &self,
        transport: Transport,
        console: Console,
    ) -> Result<(Options, Target), Failure> {
        let port = service_port(self.port, self.plain, "--to ADDR")?;
        if !self.is_given() {
            return Err(Failure::input("--to is missing", ADDRESSES_HELP));
        }
        if !self.plain && self.peer.is_none() {
            return Err(Failure::input(
                "--peer is missing",
                "give the name of a paired peer (`ropewalk pair`), the public key that `ropewalk recv` prints, or \
                 --plain on both sides",
            ));
        }
        let peer = self.peer.as_ref().map(|peer| peer.find("--peer")).transpose()?;
        let remotes = remotes(&self.to, peer.as_ref())?;
        let key = peer.map(|peer| peer.key);
        let mut options = Options::connecting(&[]);
        options.locals = addresses::locals(&self.from, &remotes);
        options.carrier = carrier(&self.encapsulation);
        options.connect_ports = SctpPorts { remote: port, ..SctpPorts::default() };
        options.transport = transport;
        if let Some(peer) = key {
            let secret = identity(self.key.as_deref(), console)?;
            let psk = self.psk_file.as_deref().map(PresharedKey::read_file).transpose()?;
            options = options.sealed(secret, Allowed::Keys(BTreeSet::from([peer]))).with_psk(psk);
        }
        if self.from.is_empty() {
            options = options.automatic(&remotes);
        }
        Ok((options, Target { addresses: remotes, key }))
    }
}

/// The addresses of the peer: those of --to, else those of its entry in the list of peers.
///
/// # Errors
/// There is none, or one is wrong.
pub fn remotes(to: &[String], peer: Option<&PeerPolicy>) -> Result<Vec<SocketAddr>, Failure> {
    addresses::remotes(given(to, peer)?)
}

/// The addresses of a peer as they were given.
///
/// # Errors
/// There is none.
pub fn given<'a>(to: &'a [String], peer: Option<&'a PeerPolicy>) -> Result<&'a [String], Failure> {
    match peer {
        Some(peer) if to.is_empty() && peer.addresses.is_empty() => {
            let message = format!("--to is missing: no address of {} is known", peer.name);
            Err(Failure::input(message, ADDRESSES_HELP))
        }
        None if to.is_empty() => Err(Failure::input("--to is missing", ADDRESSES_HELP)),
        Some(peer) if to.is_empty() => Ok(&peer.addresses),
        _ => Ok(to),
    }
}

/// The failure for an endpoint that could not be opened.
pub fn refused(error: OpenError) -> Failure {
    match &error {
        OpenError::Bind(BindAddress { interface: Some(name), .. }, cause) => Failure::input(
            format!("cannot send from `{name}`: {cause}"),
            "give an address of this machine, or an interface: `ip -brief address` lists both",
        ),
        OpenError::Random => Failure::Run(error.to_string()),
        _ => Failure::Input(error.to_string()),
    }
}
