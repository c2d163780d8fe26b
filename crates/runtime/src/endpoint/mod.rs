//! Endpoints: sockets, and the associations that share them.
//!
//! An [`Endpoint`] has one or more shards. Each shard has its own sockets and associations behind one lock, and a
//! task that drives it. Handles modify the engine under the lock and wake the driver. Only the driver uses the
//! sockets, except for probes: the call that requests probes sends them, because the time of sending matters.

mod address_filter;
mod address_following;
mod address_reconfiguration;
mod admission;
mod association;
mod association_authentication;
mod association_control;
mod association_counts;
mod association_nonblocking;
mod association_streams;
mod association_table;
mod backlog;
mod batch;
mod binding;
mod challenge;
mod connect;
mod datagrams;
mod df_bit;
mod driver;
mod dscp;
mod encapsulation;
#[cfg(target_os = "linux")]
mod error_queue;
mod handshake;
mod handshake_payload;
mod inbound;
mod incoming;
mod initiation;
mod interface_monitor;
mod interface_watch;
mod joint_sockets;
mod limits;
mod liveness;
mod local_interfaces;
mod observer;
mod open;
mod options;
mod out_of_the_blue;
mod outbound;
mod own_addresses;
mod owned_ports;
mod packet_capture;
mod path_pairing;
mod path_validation;
mod peer;
mod plain;
mod probes;
mod publish;
mod raw;
mod refusals;
mod renewal;
mod responder;
mod send_errors;
mod send_marked;
mod services;
mod shards;
mod socket;
mod state;
mod stats;
mod translated_addresses;
mod transport;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
pub use self::dscp::Dscp;
pub use self::handshake::Silence;
pub use self::incoming::{Decision, IncomingFilter, IncomingInfo, LimitReport, OnLimit};
pub use self::limits::{Limit, LimitCounters, Limits};
pub use self::observer::{
    AssociationInfo, AssociationSnapshot, DELAY_BOUNDS_NS, DelayCounts, EndpointSnapshot, Observer,
    PathCause, TransportEvent, TransportEventKind,
};
pub use self::open::OpenError;
pub use self::options::{Options, PORT, Sealing};
pub use self::peer::PathEvent;
pub use self::probes::{ProbeBurst, ReceivedProbe, SentProbes};
pub use self::publish::PathTraffic;
pub use self::raw::{Carrier, RawError, UnknownCarrier};
pub use self::shards::SHARDS_LIMIT;
pub use self::socket::{BindAddress, SocketGrants};
pub use self::state::Counters;
pub use self::stats::{LocalAddress, PathStats, Stats};
pub use self::transport::{Profile, Transport, UnknownName, UnknownProfile};
pub use ropewalk_engine::path::{FailureLimits, RtoLimits};
pub use ropewalk_engine::path::{PathStatus, PathUse};
pub use ropewalk_engine::sctp::association::{
    CloseReason, ParameterError, Parameters, PathCounters, ResetDirection, SenderStats, State,
};
pub use ropewalk_engine::sctp::{
    AbandonedMessages, AcceptedRequests, AddressChange, AddressError, ChunkTypes, Copies, Delivery,
    HmacId, HmacList, HmacListError, Outcome, Part, ReconfigurationError, Reconfigured, Refusal,
    ReliabilityPolicy, SharedKeyError, SharedKeys, StreamScheduler, Streams, Urgency,
};

use self::association_counts::Admissions;
use self::association_table::PortPair;
use self::driver::Driver;
use self::open::{bind, check, sockets_of_shards};
#[cfg(target_os = "linux")]
use self::owned_ports::OwnedPorts;
use self::responder::HandshakeResponder;
use self::shards::Shard;
use self::socket::Socket;
use self::state::{EndpointSignals, EndpointState, Shared};
use crate::clock::Clock;
use crate::interfaces;

/// Random bytes from the system for one listener or association.
fn secret() -> Option<Secret> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(Secret::new(bytes))
}

/// Sockets, and the associations that share them.
#[derive(Debug)]
pub struct Endpoint {
    /// Parts with their own sockets and associations; at least one.
    shards: Vec<Arc<Shared>>,
    signals: Arc<EndpointSignals>,
    /// Index of the shard that the next call of accept or connect starts with.
    turn: AtomicUsize,
    locals: Vec<SocketAddr>,
}

impl Endpoint {
    /// Binds the sockets and starts the driver task of each shard.
    ///
    /// # Errors
    /// [`OpenError`]; in that case nothing stays bound.
    ///
    /// # Panics
    /// If called outside a tokio runtime.
    pub fn open(mut options: Options) -> Result<Self, OpenError> {
        check(&options)?;
        if options.carrier == Carrier::Ip {
            options.locals.iter_mut().for_each(|local| local.address.set_port(0));
        }
        let all = interfaces::list().unwrap_or_default();
        let (sockets, links) = bind(&options, &all)?;
        let locals: Vec<SocketAddr> = sockets.iter().map(Socket::local).collect();
        let (signals, clock) = (Arc::<EndpointSignals>::default(), Clock::start());
        let admissions = Admissions::default();
        let limits = options.limits.of_one_of(options.shards);
        let options = Options { limits, ..options };
        let members = Shard::all(options.sealing.is_some(), options.shards);
        let mut sockets = sockets_of_shards(sockets, &options)?.into_iter();
        let mut drivers = Vec::with_capacity(members.len());
        for member in members {
            let mut sockets = sockets.next().unwrap_or_default();
            if !options.offload {
                sockets.iter_mut().for_each(Socket::without_offload);
            }
            let responder = options.sealing.as_ref().map(HandshakeResponder::new);
            let responder = responder.transpose().map_err(|_| OpenError::Random)?;
            let seed = Seed::root(getrandom::u64().map_err(|_| OpenError::Random)?);
            let (shard, misdeliveries) = member.unzip();
            let (links, options) = (links.clone(), options.clone());
            let shard = (shard, admissions.clone());
            let mut core =
                EndpointState::new(clock, options, sockets, links, responder, shard, seed);
            if core.responder.is_none() {
                core.listen_unsealed()?;
            }
            core.own_listening_ports()?;
            if core.monitors_interfaces() {
                // Started here and not in the task, whose thread may be in another network namespace than
                // the sockets.
                core.interface_watch.start(clock.now());
            }
            drivers.push((Shared::new(core, signals.clone()), misdeliveries));
        }
        let mut shards = Vec::with_capacity(drivers.len());
        for (shared, misdeliveries) in drivers {
            tokio::spawn(Driver::new(shared.clone(), misdeliveries));
            shards.push(shared);
        }
        Ok(Self { shards, signals, turn: AtomicUsize::new(0), locals })
    }

    /// The addresses that the sockets are bound to, in the order of the options.
    pub fn locals(&self) -> &[SocketAddr] {
        &self.locals
    }

    /// The open descriptors of the sockets and of their SCTP ports over IP. A child of `fork` has them too, and holds
    /// addresses and ports until it closes them.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn descriptors(&self) -> Vec<std::os::fd::RawFd> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let state = shard.lock();
            all.extend(state.sockets.iter().flat_map(Socket::descriptors));
            all.extend(state.owned_ports.iter().flat_map(OwnedPorts::descriptors));
        }
        all
    }

    /// The shard for an association that is opened with these SCTP ports.
    fn shard_for(&self, ports: SctpPorts) -> &Arc<Shared> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.shards.len();
        let state = self.shards[turn].lock();
        let own = state.options.sctp_ports.first().copied().filter(|_| state.options.listen);
        let fixed = state.shard.as_ref().filter(|_| state.responder.is_none());
        let chosen = ports.local.or(own).zip(fixed).map(|(local, shard)| {
            shard.steering.shard_of_ports(PortPair { local, remote: ports.remote })
        });
        &self.shards[chosen.unwrap_or(turn)]
    }

    /// Waits for the next association that a peer has opened.
    pub async fn accept(&self) -> Association {
        loop {
            let somebody = self.signals.accept.notified();
            tokio::pin!(somebody);
            somebody.as_mut().enable();
            if let Some(association) = self.take_accepted() {
                return association;
            }
            somebody.await;
        }
    }

    fn take_accepted(&self) -> Option<Association> {
        let from = self.turn.fetch_add(1, Ordering::Relaxed);
        for offset in 0..self.shards.len() {
            let shard = &self.shards[from.wrapping_add(offset) % self.shards.len()];
            let mut core = shard.lock();
            while let Some(key) = core.accepted.pop_front() {
                if let Some(peer) = core.peer(key) {
                    peer.liveness.on_accepted();
                    let signals = peer.signals.clone();
                    return Some(Association::new(shard.clone(), key, signals));
                }
            }
        }
        None
    }

    /// Number of associations, including those that are being set up or shut down.
    pub fn associations(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().count()).sum()
    }

    /// Counters since the endpoint was opened.
    pub fn counters(&self) -> Counters {
        let mut all = Counters::default();
        self.shards.iter().for_each(|shard| all.add(&shard.lock().counters));
        all
    }

    /// Stops accepting associations, and waits until all existing ones have ended. Shut down the associations that
    /// you hold. Associations that have not been accepted are aborted.
    pub async fn close(self) {
        self.begin_to_close();
        loop {
            let gone = self.signals.gone.notified();
            tokio::pin!(gone);
            gone.as_mut().enable();
            if self.associations() == 0 {
                return;
            }
            gone.await;
        }
    }

    fn begin_to_close(&self) {
        for shard in &self.shards {
            let mut core = shard.lock();
            core.closing = true;
            core.options.listen = false;
            core.abort_unaccepted();
            core.wake();
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.begin_to_close();
    }
}
