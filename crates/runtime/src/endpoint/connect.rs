//! Opening associations: ours, and those of others.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::wire::Ports;
use ropewalk_engine::sctp::{Association as Machine, Config};

use super::core::{Core, Key};
use super::cover::Cover;
use super::hello::Hello;
use super::links::Link;
use super::options::{Carriage, PORT, UnknownName};
use super::pairing::pair;
use super::peer::Peer;
use super::shaking::{Shaking, Silence};
use super::{Association, Endpoint};
use crate::seal::PublicKey;

/// Whom to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The peer's addresses, the first one to be tried first.
    pub addresses: Vec<SocketAddr>,
    /// Its key, where the endpoint seals what it sends.
    pub key: Option<PublicKey>,
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
    /// The endpoint seals what it sends, and the peer's key was not given; or the other way round.
    Key,
    /// The system gives no random numbers.
    Random,
    /// The handshake that precedes a sealed association got no answer that counts.
    NoSession(Silence),
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
            Self::Key => f.write_str(
                "a sealed endpoint needs the peer's public key, and one in the clear has no use for it",
            ),
            Self::Random => f.write_str("the system gives no random numbers"),
            Self::NoSession(silence) => silence.fmt(f),
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
        match association.up().await {
            Ok(()) => Ok(association),
            Err(reason) => Err(association
                .silence()
                .map_or(ConnectError::Ended(reason), ConnectError::NoSession)),
        }
    }
}

impl Core {
    fn begin(&mut self, target: &Target) -> Result<Key, ConnectError> {
        if self.closing {
            return Err(ConnectError::Closing);
        }
        let locals: Vec<_> = self.links.iter().map(Link::address).collect();
        // Interfaces that nobody has named stand in no order.
        let by_place = !self.options.automatic;
        let mut routes = pair(&locals, &target.addresses, by_place);
        // The association is set up on the first ones: where an interface is away just now is no good place.
        routes.sort_by_key(|route| self.links[route.socket].is_gone());
        routes.truncate(Machine::PATHS_LIMIT);
        let Some(first) = routes.first() else { return Err(ConnectError::NoPath) };
        let ipv6 = first.remote.is_ipv6();
        let (seed, now) = (self.next_seed(), self.clock.now());
        let scheduler = self.options.transport.scheduler().map_err(ConnectError::Unknown)?;
        let count = routes.len();
        let slots = routes.into_iter().map(Some).collect();
        let mut peer = match (self.options.sealing.clone(), target.key) {
            (None, None) => {
                let config = self.config(count, &self.in_the_clear(ipv6))?;
                let machine = Machine::connect(config, scheduler, seed, now);
                let cover = Cover::Plain(Ports { source: PORT, destination: PORT });
                Peer::new(now, machine, cover, None, slots, false)
            }
            (Some(sealing), Some(key)) => {
                let config = self.config(count, &Carriage::Sealed { ipv6 })?;
                let session = self.free_session();
                let hello = Hello { paths: count as u8 }.encode();
                let shaking =
                    Shaking::begin(now, &sealing.secret, key, sealing.psk, session, &hello)
                        .map_err(|_| ConnectError::Random)?;
                // It begins when there is a session.
                let machine = Machine::listen(config, scheduler, seed);
                let cover = Cover::Shaking(Box::new(shaking));
                Peer::new(now, machine, cover, Some(session), slots, false)
            }
            _ => return Err(ConnectError::Key),
        };
        peer.remotes.clone_from(&target.addresses);
        Ok(self.insert(peer))
    }

    pub(super) fn config(&self, paths: usize, carriage: &Carriage) -> Result<Config, ConnectError> {
        self.options.transport.config(paths, carriage).map_err(ConnectError::Unknown)
    }

    /// What carries an association in the clear.
    pub(super) fn in_the_clear(&self, ipv6: bool) -> Carriage {
        Carriage::Plain { ipv6, addresses: self.own_addresses(ipv6) }
    }

    /// Addresses to be told to the peer: what the sockets are bound to, where that is one address.
    fn own_addresses(&self, ipv6: bool) -> Vec<IpAddr> {
        let bound = self.sockets.iter().map(|socket| socket.local().ip());
        let mut addresses: Vec<IpAddr> =
            bound.filter(|ip| !ip.is_unspecified() && ip.is_ipv6() == ipv6).collect();
        addresses.dedup();
        // One alone needs not be told: the peer sees it.
        if addresses.len() < 2 { Vec::new() } else { addresses }
    }
}
