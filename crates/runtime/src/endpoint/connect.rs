//! Opens associations of this endpoint, and configures those that peers open.

use std::net::{IpAddr, SocketAddr};

use ropewalk_base::Time;
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{Association as Machine, Config};

use super::association_table::PortPair;
use super::encapsulation::Encapsulation;
use super::handshake::{HandshakeInProgress, Silence};
use super::handshake_payload::Hello;
use super::local_interfaces::BoundInterface;
use super::options::PORT;
use super::own_addresses::{Bound, listed};
use super::path_pairing::pair;
use super::peer::{Peer, Route};
use super::raw::Carrier;
use super::shards::Shard;
use super::state::{AssociationKey, EndpointState};
use super::transport::{Encryption, UnknownName};
use super::{Association, Endpoint, secret};
use crate::seal::{ClockRefusal, PublicKey};

/// The peer to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The peer's addresses; the first one is tried first.
    pub addresses: Vec<SocketAddr>,
    /// The peer's key, if the endpoint uses sealing.
    pub key: Option<PublicKey>,
}

/// The SCTP ports of an unsealed association. Sealed associations are identified by their sessions and have no ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpPorts {
    /// Local port. If `None`, a listening endpoint uses its listening port, so that two endpoints that connect to
    /// each other share one association. Any other endpoint uses a free port (49152 to 65535), which allows many
    /// associations between two hosts.
    pub local: Option<u16>,
    /// Port of the service at the peer (9899).
    pub remote: u16,
}

impl Default for SctpPorts {
    fn default() -> Self {
        Self { local: None, remote: PORT }
    }
}

/// Client ports: the dynamic range of RFC 6335, 6.
const DYNAMIC: std::ops::RangeInclusive<u16> = 49_152..=65_535;

/// Why an association could not be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// No local address can reach any address of the peer (IPv4 against IPv6).
    #[error(
        "no local address can reach the peer: both need an address of one family (IPv4 or IPv6)"
    )]
    NoPath,
    /// The name of a scheduler or congestion control is unknown.
    #[error("{0}")]
    Unknown(UnknownName),
    /// The endpoint is closing.
    #[error("the endpoint is closing")]
    Closing,
    /// The endpoint uses sealing and the peer's key was not given, or the other way round.
    #[error("a sealed endpoint needs the peer's public key, and an unencrypted one takes none")]
    Key,
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    Random,
    /// The handshake before a sealed association got no valid answer.
    #[error("{0}")]
    NoSession(Silence),
    /// The peer refused the handshake because its date is old: a clock is wrong.
    #[error("{0}")]
    OldDate(ClockRefusal),
    /// There is no SCTP port 0.
    #[error("there is no SCTP port 0: give one from 1 to 65535")]
    SctpPort,
    /// An association with that peer and the same SCTP ports exists.
    #[error(
        "there is an association with {} between SCTP ports {} and {} already: use that, or give another local port",
        .0.ip(), .1.local.unwrap_or(PORT), .1.remote
    )]
    Exists(SocketAddr, SctpPorts),
    /// Another endpoint on this machine owns the local SCTP port, over IP alone.
    #[error("another program on this machine uses SCTP port {0} over IP: give another local port")]
    PortTaken(u16),
    /// All client ports are in use with that peer.
    #[error("all SCTP ports from 49152 to 65535 are in use with that peer: close associations")]
    NoFreePort,
    /// The peer did not answer, refused, or ended the association.
    #[error("{0}")]
    Ended(CloseReason),
}

impl Endpoint {
    /// Opens an association and waits until it is established.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(&self, target: &Target) -> Result<Association, ConnectError> {
        let ports = self.shards[0].lock().options.connect_ports;
        self.connect_with_ports(target, ports).await
    }

    /// Like [`Endpoint::connect`], with explicit SCTP ports. For endpoints without sealing.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect_with_ports(
        &self,
        target: &Target,
        ports: SctpPorts,
    ) -> Result<Association, ConnectError> {
        let association = self.start_connect(target, ports)?;
        match association.up().await {
            Ok(()) => Ok(association),
            Err(reason) => {
                Err(association.failed_handshake().unwrap_or(ConnectError::Ended(reason)))
            }
        }
    }
}

impl EndpointState {
    pub(super) fn initiate(
        &mut self,
        target: &Target,
        ports: SctpPorts,
    ) -> Result<AssociationKey, ConnectError> {
        if self.closing {
            return Err(ConnectError::Closing);
        }
        let locals: Vec<_> = self.links.iter().map(BoundInterface::address).collect();
        // The order of automatically found interfaces has no meaning.
        let by_place = !self.options.automatic && !self.options.all_interfaces;
        let mut addresses = target.addresses.clone();
        if self.options.carrier == Carrier::Ip {
            addresses.iter_mut().for_each(|remote| remote.set_port(0));
        }
        let mut routes = pair(&locals, &addresses, by_place);
        // The first routes carry the handshake, so routes over interfaces that are absent come last.
        let avoided = |route: &Route| self.handshake_avoids(*route);
        routes.sort_by_key(|route| (self.links[route.socket].is_gone(), avoided(route)));
        routes.truncate(Machine::PATHS_LIMIT);
        let Some(first) = routes.first() else { return Err(ConnectError::NoPath) };
        let ipv6 = first.remote.is_ipv6();
        let (first, now) = (first.remote.ip(), self.clock.now());
        let secret = secret().ok_or(ConnectError::Random)?;
        let scheduler = self.options.transport.scheduler().map_err(ConnectError::Unknown)?;
        let count = routes.len();
        let remotes: Vec<_> = routes.iter().map(|route| route.remote.ip()).collect();
        let slots: Vec<_> = routes.iter().copied().map(Some).collect();
        let mut peer = match (self.options.sealing.clone(), target.key) {
            (None, None) => {
                let pair = self.port_pair(&routes, ports)?;
                let encryption = self.plain_encryption(now, first);
                let config = self.config(&remotes, &encryption)?;
                let machine = Machine::connect(config, scheduler, secret, now);
                let encapsulation = Encapsulation::Plain(pair.departure());
                Peer::new(now, machine, encapsulation, None, slots, false)
            }
            (Some(sealing), Some(key)) => {
                let config = self.config(&remotes, &Encryption::Sealed { ipv6 })?;
                let session = self.free_session();
                let handshake_payload = Hello { paths: count as u8 }.encode();
                let handshake = HandshakeInProgress::initiate(
                    now,
                    &sealing.secret,
                    key,
                    sealing.psk,
                    session,
                    &handshake_payload,
                )
                .map_err(|_| ConnectError::Random)?;
                // The association starts once there is a session.
                let machine = Machine::listen(config, scheduler, secret);
                let encapsulation = Encapsulation::HandshakeInProgress(Box::new(handshake));
                Peer::new(now, machine, encapsulation, Some(session), slots, false)
            }
            _ => return Err(ConnectError::Key),
        };
        peer.remotes = addresses;
        let sealed = peer.session.is_some();
        let key = self.insert(peer);
        if !sealed {
            self.setting_up.insert(key);
        }
        Ok(key)
    }

    /// Whether handshakes avoid this route while there are others.
    pub(super) fn handshake_avoids(&self, route: Route) -> bool {
        let link = &self.links[route.socket];
        self.options.handshake_avoids.iter().any(|name| link.is_called(name))
    }

    pub(super) fn config(
        &self,
        remotes: &[IpAddr],
        encryption: &Encryption,
    ) -> Result<Config, ConnectError> {
        self.options.transport.config(remotes, encryption).map_err(ConnectError::Unknown)
    }

    /// Chooses the SCTP ports of an association that this end opens.
    fn port_pair(&mut self, routes: &[Route], ports: SctpPorts) -> Result<PortPair, ConnectError> {
        let SctpPorts { local, remote } = ports;
        if remote == 0 || local == Some(0) {
            return Err(ConnectError::SctpPort);
        }
        let own = self.options.sctp_ports.first().copied().filter(|_| self.options.listen);
        let Some(local) = local.or(own) else {
            let peer: Vec<IpAddr> = routes.iter().map(|route| route.remote.ip()).collect();
            let local = self.free_port(&peer, remote)?;
            return Ok(PortPair { local, remote });
        };
        let pair = PortPair { local, remote };
        for route in routes {
            let found = self.associations.by_address(pair, [&route.remote.ip()]);
            if found.is_some_and(|key| self.live_key(key).is_some()) {
                let ports = SctpPorts { local: Some(local), remote };
                return Err(ConnectError::Exists(route.remote, ports));
            }
        }
        self.own_port(local).map_err(|_| ConnectError::PortTaken(local))?;
        Ok(pair)
    }

    /// A local port that no association with this peer and `remote` uses. RFC 6056, 3.3.1: start at a random port and
    /// take the next free one.
    fn free_port(&mut self, peer: &[IpAddr], remote: u16) -> Result<u16, ConnectError> {
        let drawn = getrandom::u32().map_err(|_| ConnectError::Random)?;
        let from = usize::from(*DYNAMIC.start()) + drawn as usize % DYNAMIC.len();
        let rest = DYNAMIC.skip(from - usize::from(*DYNAMIC.start()));
        for local in rest.chain(DYNAMIC) {
            let pair = PortPair { local, remote };
            let elsewhere = |shard: &Shard| shard.steering.shard_of_ports(pair) != shard.index;
            if !self.options.sctp_ports.contains(&local)
                && !self.shard.as_ref().is_some_and(elsewhere)
                && self.associations.by_address(pair, peer).is_none()
                && self.own_port(local).is_ok()
            {
                return Ok(local);
            }
        }
        Err(ConnectError::NoFreePort)
    }

    /// Encryption setting of an unsealed association with a peer at address `peer`.
    pub(super) fn plain_encryption(&mut self, now: Time, peer: IpAddr) -> Encryption {
        let addresses = self.listed_addresses(now, peer);
        Encryption::Plain { carrier: self.options.carrier, ipv6: peer.is_ipv6(), addresses }
    }

    /// Own addresses to list to a peer at address `peer`.
    pub(super) fn listed_addresses(&mut self, now: Time, peer: IpAddr) -> Vec<IpAddr> {
        let avoided = &self.options.avoided_interfaces;
        let mut all = self.own_addresses.get(now).to_vec();
        all.retain(|seen| !avoided.contains(&seen.name));
        let sockets = self.sockets.iter().zip(&self.links);
        let bound: Vec<_> = sockets.map(|(socket, link)| Bound::of(socket, &link.local)).collect();
        listed(&bound, peer, &all)
    }
}
