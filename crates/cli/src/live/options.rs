//! Options of the commands that talk to a peer.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use ropewalk_apps::access::AccessList;
use ropewalk_runtime::capture::Capture;
use ropewalk_runtime::endpoint::{
    BindAddress, Endpoint, OpenError, Options, PORT, Profile, SctpPorts, Target, Transport,
};
use ropewalk_runtime::seal::{Allowed, PresharedKey, PublicKey};
use ropewalk_scenario::parse_size;

use super::access::AccessArgs;
use super::addresses;
use super::identity::identity;
use super::limits::LimitArgs;
use crate::console::Console;
use crate::failure::Failure;

/// Where everybody listens who does not say where.
const ANYWHERE: &str = "0.0.0.0";
/// The least receive buffer that an association may have (RFC 9260, 3.3.2), bytes.
const LEAST_BUFFER: u64 = 1500;

/// How associations behave.
#[derive(Clone, Debug, Args)]
pub struct TransportArgs {
    /// Scheduler: which path carries what, and when
    #[arg(long, value_name = "NAME", default_value = "lay")]
    scheduler: String,
    /// Rules of SCTP: live, or rfc9260 for nothing that RFC 9260 does not allow
    #[arg(long, value_name = "NAME", default_value = "live", value_parser = str::parse::<Profile>)]
    profile: Profile,
    /// Receive buffer. Unequal paths need more of it; it is memory
    #[arg(long, visible_alias = "buffer", value_name = "SIZE", default_value = "16 MiB", value_parser = parse_size)]
    receive_buffer: u64,
    /// Write all packets, as they are inside the seal, to a file for Wireshark (pcapng)
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
}

impl TransportArgs {
    /// The file for packets, if one is wanted.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn capture(&self, console: Console) -> Result<Option<Capture>, Failure> {
        let Some(path) = &self.capture else { return Ok(None) };
        let shown = path.display().to_string();
        let stopped = {
            let shown = shown.clone();
            move |error| console.note(format_args!("no more is written to `{shown}`: {error}"))
        };
        let made = Capture::create(path, stopped);
        made.map(Some).map_err(|error| {
            Failure::input(
                format!("--capture {shown}: {error}"),
                "name a file that can be made, such as packets.pcapng",
            )
        })
    }

    /// The transport, but for what the options do not speak of.
    ///
    /// # Errors
    /// A receive buffer that is too small.
    pub fn transport(&self) -> Result<Transport, Failure> {
        if self.receive_buffer < LEAST_BUFFER {
            let message = format!("--receive-buffer {} B is too small", self.receive_buffer);
            return Err(Failure::input(message, "give at least 1500 B; 16 MiB is usual"));
        }
        let scheduler = self.scheduler.clone();
        let (profile, receive_buffer) = (self.profile, self.receive_buffer);
        Ok(Transport { profile, scheduler, receive_buffer, ..Transport::default() })
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
    /// Its public key; none in the clear.
    pub public: Option<PublicKey>,
    /// What each peer may do: everything, where nobody is named.
    pub access: AccessList,
}

/// Where to listen, and for whom.
#[derive(Clone, Debug, Args)]
pub struct ListenArgs {
    /// Address of this machine, one per path; every one of them unless said otherwise
    #[arg(long, value_name = "ADDR[:PORT]")]
    listen: Vec<String>,
    /// Own secret key, instead of the one that is made at the first use
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    #[command(flatten)]
    access: AccessArgs,
    /// Neither encrypt nor ask who it is: everybody on the way can read and change what is sent
    #[arg(long, conflicts_with_all = ["key", "allow", "allow_file", "psk_file"])]
    plain: bool,
    /// With --plain, the SCTP port to take associations on. The UDP port stands behind the address
    #[arg(long, value_name = "PORT", default_value_t = PORT, requires = "plain", value_parser = sctp_port())]
    port: u16,
    #[command(flatten)]
    limits: LimitArgs,
}

impl ListenArgs {
    /// The endpoint, its public key, and who may use it.
    ///
    /// # Errors
    /// What is wrong with the options. Needs a tokio runtime.
    pub fn listen(
        &self,
        transport: &TransportArgs,
        console: Console,
    ) -> Result<Listening, Failure> {
        let default = [ANYWHERE.to_owned()];
        let texts = if self.listen.is_empty() { &default[..] } else { &self.listen };
        let locals =
            texts.iter().map(|text| addresses::listen(text)).collect::<Result<Vec<_>, _>>()?;
        let mut options = Options::listening(&locals).on_sctp_ports(&[self.port]);
        options.limits = self.limits.limits()?;
        options.transport = transport.transport()?;
        options.capture = transport.capture(console)?;
        let access = self.access.open()?;
        let mut public = None;
        if !self.plain {
            let secret = identity(self.key.as_deref(), console)?;
            public = Some(secret.public());
            options = access.seal(options, secret);
        }
        let endpoint = Endpoint::open(options).map_err(refused)?;
        access.watch(&endpoint, console, |_| {});
        Ok(Listening { endpoint, public, access: access.list().clone() })
    }

    /// Whether anybody may send who can.
    pub fn is_open(&self) -> bool {
        self.access.is_anyone()
    }
}

/// Whom to reach, and from where.
#[derive(Clone, Debug, Args)]
pub struct ReachArgs {
    /// Addresses of the peer, one per path
    #[arg(long, value_name = "ADDR[:PORT]", value_delimiter = ',', required = true)]
    to: Vec<String>,
    /// Public key of the peer, as it prints it
    #[arg(long, value_name = "PUBKEY", value_parser = str::parse::<PublicKey>)]
    peer: Option<PublicKey>,
    /// Own address or network interface, one per path, instead of every interface that is up
    #[arg(long, value_name = "ADDR|INTERFACE", value_delimiter = ',')]
    from: Vec<String>,
    /// Own secret key, instead of the one that is made at the first use
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Pre-shared key, if the peer requires one (`ropewalk keygen --psk FILE` makes it)
    #[arg(long, value_name = "FILE")]
    psk_file: Option<PathBuf>,
    /// Neither encrypt nor ask who it is, as a peer with --plain expects
    #[arg(long, conflicts_with_all = ["key", "peer", "psk_file"])]
    plain: bool,
    /// With --plain, the SCTP port of the service at the peer
    #[arg(long, value_name = "PORT", default_value_t = PORT, requires = "plain", value_parser = sctp_port())]
    port: u16,
}

impl ReachArgs {
    /// The endpoint and the peer.
    ///
    /// # Errors
    /// What is wrong with the options. Needs a tokio runtime.
    pub fn open(
        &self,
        transport: &TransportArgs,
        console: Console,
    ) -> Result<(Endpoint, Target), Failure> {
        if !self.plain && self.peer.is_none() {
            return Err(Failure::input(
                "--peer is missing: whom do you want to reach?",
                "give the public key that `ropewalk recv` prints, or --plain on both sides",
            ));
        }
        let remotes = addresses::remotes(&self.to)?;
        let mut options = Options::connecting(&[]);
        options.locals = addresses::locals(&self.from, &remotes);
        options.connect_ports = SctpPorts { remote: self.port, ..SctpPorts::default() };
        options.transport = transport.transport()?;
        options.capture = transport.capture(console)?;
        if let Some(peer) = self.peer {
            let secret = identity(self.key.as_deref(), console)?;
            let psk = self.psk_file.as_deref().map(PresharedKey::read_file).transpose()?;
            options = options.sealed(secret, Allowed::Keys(BTreeSet::from([peer]))).with_psk(psk);
        }
        if self.from.is_empty() {
            options = options.automatic(&remotes);
        }
        let endpoint = Endpoint::open(options).map_err(refused)?;
        Ok((endpoint, Target { addresses: remotes, key: self.peer }))
    }
}

/// Why an endpoint was not opened.
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
