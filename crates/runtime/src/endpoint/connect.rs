//! Opening associations: ours, and those of others.

use std::fmt;
use std::net::SocketAddr;

use ropewalk_base::Time;
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::wire::Ports;
use ropewalk_engine::sctp::{Association as Machine, Packet};

use super::core::{Core, Key};
use super::cover::Cover;
use super::options::{PORT, UnknownName};
use super::pairing::pair;
use super::peer::{Peer, Route};
use super::{Association, Endpoint};

/// Whom to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The peer's addresses, the first one to be tried first.
    pub addresses: Vec<SocketAddr>,
}

/// Why an association did not come about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// No local address can reach any of the peer's (IPv4 against IPv6).
    NoPath,
    /// A name is not known.
    Unknown(UnknownName),
    /// The endpoint is closing.
    Closing,
    /// The peer did not answer, refused, or went away.
    Ended(CloseReason),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPath => f.write_str(
                "no local address can reach the peer: both need an address of one family (IPv4 or IPv6)",
            ),
            Self::Unknown(unknown) => unknown.fmt(f),
            Self::Closing => f.write_str("the endpoint is closing"),
            Self::Ended(reason) => reason.fmt(f),
        }
    }
}

impl std::error::Error for ConnectError {}

impl Endpoint {
    /// Opens an association; waits until it is up.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(&self, target: &Target) -> Result<Association, ConnectError> {
        let association = {
            let mut core = self.shared.lock();
            let key = core.begin(target)?;
            core.wake();
            let peer = core.peer(key).ok_or(ConnectError::Closing)?;
            Association::new(self.shared.clone(), key, peer.signals.clone())
        };
        association.up().await.map_err(ConnectError::Ended)?;
        Ok(association)
    }
}

impl Core {
    fn begin(&mut self, target: &Target) -> Result<Key, ConnectError> {
        if self.closing {
            return Err(ConnectError::Closing);
        }
        let locals: Vec<_> = self.sockets.iter().map(super::socket::Socket::local).collect();
        let routes = pair(&locals, &target.addresses);
        let Some(first) = routes.first() else { return Err(ConnectError::NoPath) };
        let ipv6 = first.remote.is_ipv6();
        let transport = &self.options.transport;
        let config = transport.config(routes.len(), ipv6, 0).map_err(ConnectError::Unknown)?;
        let scheduler = transport.scheduler().map_err(ConnectError::Unknown)?;
        let (seed, now) = (self.next_seed(), self.clock.now());
        let machine = Machine::connect(config, scheduler, seed, now);
        let cover = Cover::Plain(Ports { source: PORT, destination: PORT });
        let routes = routes.into_iter().map(Some).collect();
        Ok(self.insert(Peer::new(machine, cover, routes, false)))
    }

    /// A packet for nobody here: a peer that wants to open an association, or a mistake.
    pub(super) fn take_stranger(
        &mut self,
        now: Time,
        route: Route,
        ports: Ports,
        packet: &mut Packet,
    ) {
        if !self.options.listen
            || !matches!(packet.chunks.first(), Some(ropewalk_engine::sctp::Chunk::Init(_)))
        {
            self.counters.unknown += 1;
            return;
        }
        let transport = &self.options.transport;
        let (Ok(config), Ok(scheduler)) =
            (transport.config(1, route.remote.is_ipv6(), 0), transport.scheduler())
        else {
            return;
        };
        let seed = self.next_seed();
        let mut machine = Machine::listen(config, scheduler, seed);
        machine.handle_in_place(now, ropewalk_base::PathId(0), packet);
        let cover = Cover::Plain(ports.swapped());
        self.insert(Peer::new(machine, cover, vec![Some(route)], true));
    }
}
