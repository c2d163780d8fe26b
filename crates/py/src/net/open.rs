//! Opening endpoints.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use ropewalk_apps::access::AccessList;
use ropewalk_apps::extensions;
use ropewalk_runtime::endpoint::{
    AcceptedRequests, Association as Native, BindAddress, Carrier, ChunkTypes, CloseReason,
    ConnectError, Dscp, Endpoint, HmacId, HmacList, OpenError, Options, Profile, SctpPorts,
    SharedKeys, StreamScheduler, Target, Transport,
};
use ropewalk_runtime::seal::Allowed;
use ropewalk_scenario::parse_size;
use tokio::time::timeout;

use super::association::Association;
use super::key::{Key, peer, public_key};
use super::limits::limits;
use super::listener::Listener;
use super::net_runtime::NetRuntime;
use super::operation::{Operation, Outcome, duration};
use crate::error;

/// Options of both ends: scheduler, congestion control, receive buffer, streams, MTU, profile, and extensions.
type SocketOptions = (String, Option<String>, Size, u16, u32, String, ExtensionOptions);

/// Extensions of SCTP: the dict that `ropewalk.net` makes of the options in its class `Extensions`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ExtensionOptions {
    interleaving: bool,
    stream_scheduler: String,
    nr_sack: bool,
    reconfiguration: bool,
    accepted_requests: Vec<String>,
    authentication: bool,
    authenticated_chunks: Vec<String>,
    hmacs: Vec<String>,
    shared_keys: Vec<(u16, Vec<u8>)>,
    active_key: u16,
    address_reconfiguration: bool,
    follow_interfaces: bool,
    translated: bool,
    adaptation: Option<u32>,
    ecn: bool,
    dscp: u8,
    send_buffer: Option<Size>,
    unsent_limit: Option<Size>,
    incoming_streams: Option<u16>,
    limits: Vec<(String, f64)>,
    encapsulation: String,
}

/// A size: bytes, or a text with a unit.
#[derive(FromPyObject)]
pub(crate) enum Size {
    Bytes(u64),
    Text(String),
}

/// The smallest receive buffer that an association may have (RFC 9260, 3.3.2), bytes.
const LEAST_BUFFER: u64 = 1500;

impl Size {
    fn bytes(&self, option: &str) -> PyResult<u64> {
        let bytes = match self {
            Self::Bytes(bytes) => *bytes,
            Self::Text(text) => parse_size(text)
                .map_err(|error| error::option(format_args!("{option} = {text:?}: {error}")))?,
        };
        if bytes < LEAST_BUFFER {
            let text = format!("{option} = {bytes} bytes: give at least {LEAST_BUFFER}");
            return Err(error::option(text));
        }
        Ok(bytes)
    }
}

/// An address and an interface.
type Place = (String, Option<String>);

/// Listens. Without a key: unencrypted, on these SCTP ports.
#[pyfunction]
pub(crate) fn net_listen(
    py: Python<'_>,
    places: Vec<Place>,
    key: Option<PyRef<'_, Key>>,
    allow: Option<Vec<String>>,
    peers: Option<PathBuf>,
    settings: SocketOptions,
    ports: Vec<u16>,
) -> PyResult<Listener> {
    let mut options = options(places, settings)?;
    options.listen = true;
    options.sctp_ports = ports;
    let public = key.as_ref().map(|key| key.secret.public().to_string());
    if let Some(key) = key {
        let list = match allow {
            None => AccessList::anyone(),
            Some(texts) => {
                let found = texts.iter().map(|text| peer("allow", text, peers.as_deref()));
                let found = found.collect::<PyResult<Vec<_>>>()?;
                AccessList::open(&found, None).map_err(error::option)?
            }
        };
        options = options.sealed(key.secret.clone(), list.allowed());
    }
    let net_runtime = NetRuntime::get()?;
    Ok(Listener::new(net_runtime, open(py, net_runtime, options)?, public))
}

/// Connects. Without a key: unencrypted, between these SCTP ports (the own port is optional).
#[pyfunction]
pub(crate) fn net_connect(
    py: Python<'_>,
    to: Vec<String>,
    places: Vec<Place>,
    key: Option<(PyRef<'_, Key>, String)>,
    settings: SocketOptions,
    ports: (Option<u16>, u16),
    seconds: f64,
) -> PyResult<Operation> {
    let patience = duration(seconds)?;
    let mut options = options(places, settings)?;
    let addresses = to.iter().map(|text| address(text)).collect::<PyResult<Vec<_>>>()?;
    let (mut peer, mut own) = (None, None);
    if let Some((key, text)) = key {
        let other = public_key("peer", &text)?;
        (peer, own) = (Some(other), Some(key.secret.public()));
        options = options.sealed(key.secret.clone(), Allowed::Keys([other].into()));
    }
    let net_runtime = NetRuntime::get()?;
    let endpoint = open(py, net_runtime, options)?;
    let attempt = Attempt {
        target: Target { addresses, key: peer },
        ports: SctpPorts { local: ports.0, remote: ports.1 },
        own: own.map(|key| key.to_string()),
        patience,
    };
    Ok(Operation::new(net_runtime, UNANSWERED, async move {
        let native = attempt.run(&endpoint).await?;
        Ok(Outcome::Association(Association::new(net_runtime, native, Some(endpoint))))
    }))
}

/// What a wait for a new association misses.
pub(super) const UNANSWERED: &str = "the peer did not answer";

/// A new association to a peer.
pub(super) struct Attempt {
    pub target: Target,
    pub ports: SctpPorts,
    /// The own public key, for the error message.
    pub own: Option<String>,
    /// How long it is tried.
    pub patience: Duration,
}

impl Attempt {
    /// Connects from the sockets of an endpoint.
    ///
    /// # Errors
    /// The exception: the peer refused, or did not answer.
    pub async fn run(self, endpoint: &Endpoint) -> PyResult<Native> {
        match timeout(self.patience, endpoint.connect_with_ports(&self.target, self.ports)).await {
            Ok(Ok(native)) => Ok(native),
            Ok(Err(ConnectError::Ended(CloseReason::NoAnswer) | ConnectError::NoSession(_)))
            | Err(_) => {
                let text = silence(&self.target, self.ports.remote, self.own.as_deref());
                Err(error::connect(text))
            }
            Ok(Err(error)) => Err(error::connect(error)),
        }
    }
}

/// Possible reasons why the peer does not answer.
fn silence(target: &Target, port: u16, own: Option<&str>) -> String {
    let addresses: Vec<_> = target.addresses.iter().map(ToString::to_string).collect();
    let addresses = addresses.join(", ");
    match own {
        None => format!(
            "{addresses}: the peer does not answer; does it listen there, with plain=True and on \
             SCTP port {port}, and is UDP let through?"
        ),
        Some(own) => format!(
            "{addresses}: the peer does not answer; does it listen there, is its public key the \
             one that was given, does it allow ours ({own}), and was the clock of this machine set \
             back? Others get no answer"
        ),
    }
}

fn options(places: Vec<Place>, settings: SocketOptions) -> PyResult<Options> {
    let locals = places
        .into_iter()
        .map(|(text, interface)| Ok(BindAddress { address: address(&text)?, interface }));
    let mut options = Options::connecting(&[]);
    options.locals = locals.collect::<PyResult<_>>()?;
    let (scheduler, congestion, receive_buffer, streams, mtu, profile, extensions) = settings;
    let profile = Profile::from_name(&profile)
        .map_err(|error| error::option(format_args!("profile: {error}")))?;
    let receive_buffer = receive_buffer.bytes("receive_buffer")?;
    let unsent_limit = extensions.unsent_limit.as_ref().map(|size| size.bytes("unsent_limit"));
    options.limits = limits(&extensions.limits)?;
    options.carrier = Carrier::from_name(&extensions.encapsulation)
        .map_err(|error| error::option(format_args!("encapsulation: {error}")))?;
    let send_buffer = extensions.send_buffer.as_ref().map(|size| size.bytes("send_buffer"));
    options.transport = Transport {
        profile,
        scheduler,
        congestion,
        receive_buffer,
        streams,
        interleaving: extensions.interleaving,
        stream_scheduler: stream_scheduler(&extensions.stream_scheduler)?,
        nr_sack: extensions.nr_sack,
        reconfiguration: extensions.reconfiguration,
        accepted_requests: accepted_requests(&extensions.accepted_requests)?,
        authentication: extensions.authentication,
        authenticated_chunks: chunk_types(&extensions.authenticated_chunks)?,
        shared_keys: shared_keys(&extensions)?,
        hmacs: hmacs(&extensions.hmacs)?,
        address_reconfiguration: extensions.address_reconfiguration,
        follow_interfaces: extensions.follow_interfaces,
        translated: extensions.translated,
        adaptation: extensions.adaptation,
        ecn: extensions.ecn,
        dscp: dscp(extensions.dscp)?,
        send_buffer: send_buffer.transpose()?,
        unsent_limit: unsent_limit.transpose()?,
        inbound_streams: extensions.incoming_streams,
        stream_limit: u16::MAX,
        mtu,
        ..Transport::default()
    };
    Ok(options)
}

/// A code point.
///
/// # Errors
/// It has more than six bits.
pub(super) fn dscp(value: u8) -> PyResult<Dscp> {
    Dscp::new(value).ok_or_else(|| error::option(format_args!("dscp = {value}: give 0 to 63")))
}

/// The names of the requests that are accepted.
pub(super) fn accepted_names(accepted: AcceptedRequests) -> Vec<&'static str> {
    let AcceptedRequests { stream_resets, association_resets, more_streams } = accepted;
    [
        ("reset-streams", stream_resets),
        ("reset-association", association_resets),
        ("add-streams", more_streams),
    ]
    .into_iter()
    .filter_map(|(name, accepted)| accepted.then_some(name))
    .collect()
}

/// The requests of these names.
pub(super) fn accepted_requests(names: &[String]) -> PyResult<AcceptedRequests> {
    let mut accepted = AcceptedRequests::default();
    for name in names {
        match name.as_str() {
            "reset-streams" => accepted.stream_resets = true,
            "reset-association" => accepted.association_resets = true,
            "add-streams" => accepted.more_streams = true,
            _ => {
                let known = "reset-streams, reset-association, add-streams are known";
                return Err(error::option(format_args!("accepted_requests = {name:?}: {known}")));
            }
        }
    }
    Ok(accepted)
}

/// The types of chunks of these names.
fn chunk_types(names: &[String]) -> PyResult<ChunkTypes> {
    extensions::chunk_types(names.iter().map(String::as_str))
        .map_err(|error| error::option(format_args!("authenticated_chunks: {error}")))
}

/// The algorithms of these names, the preferred one first.
fn hmacs(names: &[String]) -> PyResult<HmacList> {
    let number = |name: &String| match name.as_str() {
        "sha-256" => Ok(HmacId::Sha256.number()),
        "sha-1" => Ok(HmacId::Sha1.number()),
        _ => Err(error::option(format_args!("hmacs = {name:?}: sha-256, sha-1 are known"))),
    };
    let numbers = names.iter().map(number).collect::<PyResult<Vec<_>>>()?;
    HmacList::of(&numbers).map_err(|error| error::option(format_args!("hmacs: {error}")))
}

/// The secrets for authenticated chunks.
fn shared_keys(extensions: &ExtensionOptions) -> PyResult<SharedKeys> {
    let refused = |error| error::option(format_args!("shared_keys: {error}"));
    let mut keys = SharedKeys::default();
    for (id, key) in &extensions.shared_keys {
        keys.set(*id, key).map_err(refused)?;
    }
    let active = extensions.active_key;
    keys.activate(active)
        .map_err(|error| error::option(format_args!("active_key = {active}: {error}")))?;
    if active != 0 && extensions.shared_keys.iter().all(|(id, _)| *id != 0) {
        // With the well-known empty key 0, everyone who has seen the handshake could forge chunks.
        keys.delete(0).map_err(refused)?;
    }
    Ok(keys)
}

/// The stream scheduler of that name.
pub(super) fn stream_scheduler(name: &str) -> PyResult<StreamScheduler> {
    StreamScheduler::from_name(name).ok_or_else(|| {
        let all = StreamScheduler::ALL.map(|(name, _)| name).join(", ");
        error::option(format_args!("stream_scheduler = {name:?}: {all} are known"))
    })
}

pub(super) fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| error::option(format_args!("{text:?} is not an address and a port")))
}

fn open(py: Python<'_>, net_runtime: &NetRuntime, options: Options) -> PyResult<Endpoint> {
    let opened = py.detach(|| {
        let _inside = net_runtime.runtime.enter();
        Endpoint::open(options)
    });
    opened.map_err(|error| match error {
        OpenError::Unknown(_)
        | OpenError::NoAddress
        | OpenError::SctpPort
        | OpenError::Shards(_)
        | OpenError::Raw(_) => error::option(error),
        OpenError::Bind(..)
        | OpenError::NoInterface
        | OpenError::SctpPortTaken(..)
        | OpenError::Random
        | OpenError::Inherited(..)
        | OpenError::InheritedAlone(_) => error::bind(error),
    })
}
