//! Endpoints: sockets, and the associations that share them.
//!
//! An [`Endpoint`] owns its sockets and all associations behind one lock, and a task drives it. Handles modify the
//! engine under the lock and wake the driver. Only the driver uses the sockets, except for probes: these are sent by the
//! call that requests them, because their time of sending matters.

mod address_filter;
mod admission;
mod association;
mod association_control;
mod association_counts;
mod association_nonblocking;
mod association_streams;
mod association_table;
mod batch;
mod binding;
mod challenge;
mod connect;
mod datagrams;
mod df_bit;
mod driver;
mod encapsulation;
mod handshake;
mod handshake_payload;
mod inbound;
mod incoming;
mod initiation;
mod interface_monitor;
mod limits;
mod liveness;
mod local_interfaces;
mod observer;
mod options;
mod out_of_the_blue;
mod outbound;
mod own_addresses;
mod packet_capture;
mod path_pairing;
mod path_validation;
mod peer;
mod plain;
mod probes;
mod publish;
mod responder;
mod services;
mod socket;
mod state;
mod stats;

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ropewalk_base::Seed;
use ropewalk_engine::sctp::Secret;

pub use self::admission::Admission;
pub use self::association::{Association, Received, SendError};
pub use self::association_control::Undelivered;
pub use self::association_nonblocking::{AssociationStatus, PathTimers, TrySendError};
pub use self::association_streams::UpToEvent;
pub use self::binding::BindingResponse;
pub use self::connect::{ConnectError, SctpPorts, Target};
pub use self::datagrams::{PathEstimate, PathLink};
pub use self::handshake::Silence;
pub use self::incoming::{Decision, IncomingFilter, IncomingInfo, LimitReport, OnLimit};
pub use self::limits::{Limit, LimitCounters, Limits};
pub use self::observer::{
    AssociationInfo, AssociationSnapshot, DELAY_BOUNDS_NS, DelayCounts, EndpointSnapshot, Observer,
    PathCause, TransportEvent, TransportEventKind,
};
pub use self::options::{Options, PORT, Profile, Sealing, Transport, UnknownName, UnknownProfile};
pub use self::peer::PathEvent;
pub use self::probes::{ProbeBurst, ReceivedProbe, SentProbes};
pub use self::publish::PathTraffic;
pub use self::socket::{BindAddress, SocketGrants};
pub use self::state::Counters;
pub use self::stats::{LocalAddress, PathStats, Stats};
pub use ropewalk_engine::path::{FailureLimits, RtoLimits};
pub use ropewalk_engine::path::{PathStatus, PathUse};
pub use ropewalk_engine::sctp::association::{
    CloseReason, ParameterError, Parameters, PathCounters, ResetDirection, SenderStats, State,
};
pub use ropewalk_engine::sctp::{
    AcceptedRequests, Copies, Delivery, Outcome, Part, ReconfigurationError, Reconfigured,
    StreamScheduler, Streams, Urgency,
};

use self::driver::Driver;
use self::local_interfaces::BoundInterface;
use self::options::Encryption;
use self::responder::HandshakeResponder;
use self::socket::Socket;
use self::state::{EndpointState, Shared};
use crate::clock::Clock;
use crate::interfaces::{self, InterfaceAddress};

/// Why an endpoint could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// A socket could not be bound there.
    Bind(BindAddress, io::Error),
    /// No address was given.
    NoAddress,
    /// The name of a scheduler or congestion control is unknown.
    Unknown(UnknownName),
    /// The system provides no random numbers.
    Random,
    /// There is no SCTP port 0.
    SctpPort,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bind(local, error) => write!(f, "cannot bind {local}: {error}{}", hint(error)),
            Self::NoAddress => f.write_str("no local address: name at least one"),
            Self::Unknown(unknown) => unknown.fmt(f),
            Self::Random => f.write_str("the system provides no random numbers"),
            Self::SctpPort => f.write_str("there is no SCTP port 0: give one from 1 to 65535"),
        }
    }
}

impl std::error::Error for OpenError {}

/// Random bytes from the system for one listener or association.
fn secret() -> Option<Secret> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(Secret::new(bytes))
}

/// Advice for an error of binding.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another program has this port: stop it, or choose another port"
        }
        io::ErrorKind::AddrNotAvailable => {
            "; no interface has this address: `ip address` lists the addresses"
        }
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need a privilege: choose a higher one, or run it as root"
        }
        _ => "",
    }
}

/// Binds all sockets, or none.
fn bind(
    options: &Options,
    all: &[InterfaceAddress],
) -> Result<(Vec<Socket>, Vec<BoundInterface>), OpenError> {
    let mut bound = Vec::with_capacity(options.locals.len());
    let found = options.automatic || options.all_interfaces;
    if found {
        // Nobody named these interfaces: a missing one is left out and may appear later.
        bound.extend(
            options.locals.iter().filter_map(|local| interface_monitor::bind_automatic(local, all)),
        );
    }
    let ipv6 = options.locals.iter().all(|local| local.address.is_ipv6());
    let anywhere = [BindAddress::of(local_interfaces::unspecified(ipv6))];
    let locals = if found { &anywhere[..] } else { &options.locals };
    if bound.is_empty() {
        let beside_ipv4 = locals.iter().any(|local| local.address.is_ipv4());
        let bind = if beside_ipv4 { Socket::bind_beside_ipv4 } else { Socket::bind };
        for local in locals {
            let socket = bind(local).map_err(|e| OpenError::Bind(local.clone(), e))?;
            bound.push((socket, BoundInterface::new(local.clone(), all)));
        }
    }
    Ok(bound.into_iter().unzip())
}

/// Sockets, and the associations that share them.
#[derive(Debug)]
pub struct Endpoint {
    shared: Arc<Shared>,
    locals: Vec<SocketAddr>,
}

impl Endpoint {
    /// Binds the sockets and starts the driver task.
    ///
    /// # Errors
    /// [`OpenError`]; in that case nothing stays bound.
    ///
    /// # Panics
    /// If called outside a tokio runtime.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        if options.locals.is_empty() {
            return Err(OpenError::NoAddress);
        }
        if options.sctp_ports.contains(&0) {
            return Err(OpenError::SctpPort);
        }
        // Checks the names before anything is bound.
        options.transport.scheduler().map_err(OpenError::Unknown)?;
        let encryption = Encryption::Sealed { ipv6: false };
        options
            .transport
            .config(&[Ipv4Addr::LOCALHOST.into()], &encryption)
            .map_err(OpenError::Unknown)?;
        let all = interfaces::list().unwrap_or_default();
        let (mut sockets, links) = bind(&options, &all)?;
        if !options.offload {
            sockets.iter_mut().for_each(Socket::without_offload);
        }
        let responder = options.sealing.as_ref().map(HandshakeResponder::new);
        let responder = responder.transpose().map_err(|_| OpenError::Random)?;
        let locals = sockets.iter().map(Socket::local).collect();
        let seed = Seed::root(getrandom::u64().map_err(|_| OpenError::Random)?);
        let mut core = EndpointState::new(Clock::start(), options, sockets, links, responder, seed);
        if core.responder.is_none() {
            core.listen_unsealed()?;
        }
        let shared = Shared::new(core);
        tokio::spawn(Driver::new(shared.clone()));
        Ok(Self { shared, locals })
    }

    /// The addresses that the sockets are bound to, in the order of the options.
    pub fn locals(&self) -> &[SocketAddr] {
        &self.locals
    }

    /// Waits for the next association that a peer has opened.
    pub async fn accept(&self) -> Association {
        loop {
            let somebody = self.shared.accept.notified();
            tokio::pin!(somebody);
            somebody.as_mut().enable();
            if let Some(association) = self.take_accepted() {
                return association;
            }
            somebody.await;
        }
    }

    fn take_accepted(&self) -> Option<Association> {
        let mut core = self.shared.lock();
        while let Some(key) = core.accepted.pop_front() {
            if let Some(peer) = core.peer(key) {
                peer.liveness.on_accepted();
                let signals = peer.signals.clone();
                return Some(Association::new(self.shared.clone(), key, signals));
            }
        }
        None
    }

    /// Number of associations, including those that are being set up or shut down.
    pub fn associations(&self) -> usize {
        self.shared.lock().count()
    }

    /// Counters since the endpoint was opened.
    pub fn counters(&self) -> Counters {
        self.shared.lock().counters
    }

    /// Accepts no more associations, and waits until all existing ones have ended. Shut down the associations that
    /// you hold. Associations that nobody has accepted are aborted.
    pub async fn close(self) {
        {
            let mut core = self.shared.lock();
            core.closing = true;
            core.options.listen = false;
            core.abort_unaccepted();
            core.wake();
        }
        loop {
            let gone = self.shared.gone.notified();
            tokio::pin!(gone);
            gone.as_mut().enable();
            if self.associations() == 0 {
                return;
            }
            gone.await;
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let mut core = self.shared.lock();
        core.closing = true;
        core.options.listen = false;
        core.abort_unaccepted();
        core.wake();
    }
}
