//! Unsealed packets that belong to no association (RFC 9260, 8.4), and the associations that begin with them.

use std::net::{IpAddr, SocketAddr};

use ropewalk_base::{PathId, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::wire::Ports;
use ropewalk_engine::sctp::{Accepted, Answer, Association as Machine, Chunk, Listener, Packet};

use super::address_filter::may_be_contacted;
use super::association_table::PortPair;
use super::encapsulation::Encapsulation;
use super::local_interfaces::BoundInterface;
use super::path_pairing::{is_nearer, nearest};
use super::path_validation::lower_headers;
use super::peer::{Peer, Route};
use super::socket::Socket;
use super::state::EndpointState;
use super::{OpenError, secret};

/// What a cookie is bound to: the peer's address and UDP port, and both SCTP ports.
///
/// RFC 9260, 5.1.5 (3): a cookie whose ports differ from those of its packet is discarded silently.
fn context(remote: SocketAddr, ports: Ports) -> Vec<u8> {
    let mut context = match remote.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    for port in [remote.port(), ports.source, ports.destination] {
        context.extend(port.to_be_bytes());
    }
    context
}

/// The address in the form of the socket that reaches `first`: an IPv6 socket may carry IPv4 as well.
fn as_seen_by(first: &SocketAddr, ip: IpAddr) -> IpAddr {
    match (first.ip(), ip) {
        (IpAddr::V6(v6), IpAddr::V4(v4)) if v6.to_ipv4_mapped().is_some() => {
            v4.to_ipv6_mapped().into()
        }
        _ => ip,
    }
}

impl EndpointState {
    /// Starts to answer packets that belong to no association.
    pub(super) fn listen_unsealed(&mut self) -> Result<(), OpenError> {
        let here = self.sockets[0].local().ip();
        let encryption = self.plain_encryption(Time::ZERO, here);
        let config =
            self.options.transport.config(&[here], &encryption).map_err(OpenError::Unknown)?;
        self.listener = Some(Listener::new(config, secret().ok_or(OpenError::Random)?));
        Ok(())
    }

    /// Handles a packet that belongs to no association: a peer opens one, or the packet is a mistake.
    pub(super) fn take_out_of_the_blue(
        &mut self,
        now: Time,
        route: Route,
        ports: Ports,
        packet: &mut Packet,
    ) {
        self.counters.unknown += 1;
        // RFC 9260, 8.4 (1): a packet from a non-unicast address is discarded. So is a packet that seems to come from
        // this socket, unless one of its associations sends such packets.
        let ip = route.remote.ip();
        if ip.is_multicast() || ip.is_unspecified() || self.is_own(now, route, ports) {
            return;
        }
        let initiates = matches!(packet.leading(), Some(Chunk::Init(_) | Chunk::CookieEcho(_)));
        let listens = self.options.listen && self.options.sctp_ports.contains(&ports.destination);
        let listens = listens && (!initiates || self.has_room(ports.destination));
        if initiates && listens && self.refuse_initiation(now, route, ports, packet) {
            return;
        }
        if matches!(packet.chunks.first(), Some(Chunk::Init(_))) {
            let addresses = self.listed_addresses(now, ip);
            if let Some(listener) = &mut self.listener {
                listener.list_addresses(addresses);
            }
        }
        let Some(listener) = &mut self.listener else { return };
        let from = context(route.remote, ports);
        let answer = match listens {
            true => listener.handle(now, &from, packet),
            false => listener.refuse(now, &from, packet),
        };
        self.counters.unauthenticated += listener.take_unauthenticated();
        match answer {
            Answer::Nothing => {}
            Answer::Reply(reply) => self.send_packet(route, ports.swapped(), &reply),
            Answer::Accept(accepted) => self.accept(now, route, ports, *accepted, packet),
        }
    }

    /// Whether a packet claims to come from the same socket, although no association of this endpoint sends such
    /// packets. A reply to it could be answered by another reply, without an end. Two ports of one endpoint may be
    /// associated with each other. Over IP alone, the SCTP port identifies the endpoint.
    fn is_own(&mut self, now: Time, route: Route, ports: Ports) -> bool {
        let (local, remote) = (self.sockets[route.socket].local(), route.remote);
        let own = &mut self.own_addresses;
        let mut is_here = |ip: IpAddr| {
            local.ip().to_canonical() == ip.to_canonical()
                || local.ip().is_unspecified() && own.has(now, ip)
        };
        let same = match &self.owned_ports {
            Some(owned) => owned.has(ports.source),
            None => local.port() == remote.port(),
        };
        let mut peers = self.associations.addresses(PortPair::of_departure(ports));
        same && is_here(remote.ip()) && !peers.any(is_here)
    }

    fn accept(
        &mut self,
        now: Time,
        route: Route,
        ports: Ports,
        accepted: Accepted,
        packet: &mut Packet,
    ) {
        let pair = PortPair::of_arrival(ports);
        let source = route.remote.ip();
        // RFC 9260, 5.2.4: discard a cookie that was created before the existing association with its addresses.
        let taken = self.associations.by_address(pair, &accepted.peer().addresses);
        if taken.is_some_and(|key| self.live_key(key).is_some()) {
            return;
        }
        let encryption = self.plain_encryption(now, source);
        let Ok(config) = self.config(&[source], &encryption) else { return };
        let Ok(scheduler) = self.options.transport.scheduler() else { return };
        let Some(secret) = secret() else { return };
        let bytes = u64::from(packet.wire_len()) + lower_headers(&route.remote);
        let mut machine = Machine::accepted(config, scheduler, secret, now, PathId(0), accepted);
        machine.set_peer_source(source.to_canonical());
        // The chunks that are bundled with the cookie.
        machine.handle_in_place(now, PathId(0), packet);
        let encapsulation = Encapsulation::Plain(ports.swapped());
        let mut peer = Peer::new(now, machine, encapsulation, None, vec![Some(route)], true);
        peer.validation.on_packet(now, 0, route, route, bytes);
        peer.admitted = Some(self.counts.admit(None, route.remote.ip()));
        let key = self.insert(peer);
        self.on_begun(ports.destination, key);
    }

    /// Adds a path for each address that the peer listed and that is not in use. All paths use the port of the first
    /// one until packets show another port (RFC 6951, 5.4).
    pub(super) fn learn_addresses(&mut self, now: Time, peer: &mut Peer) {
        let follows = peer.follows_interfaces && peer.machine.reconfigures_addresses();
        if follows {
            // Before new paths are added, which could start at addresses that the peer does not know.
            self.note_own_addresses(peer);
            self.pin_sources(peer);
        }
        let Some(first) = peer.routes.iter().flatten().map(|route| route.remote).next() else {
            return;
        };
        let listed = peer.machine.peer_addresses().to_vec();
        if listed.is_empty() {
            return;
        }
        let locals: Vec<_> = self.sockets.iter().map(Socket::local).collect();
        // The address of an interface is nearer to the peer's than the unspecified one of its socket.
        let nearby: Vec<_> = self.links.iter().map(BoundInterface::address).collect();
        let usable: Vec<usize> =
            (0..nearby.len()).filter(|socket| self.may_begin_at(peer, *socket)).collect();
        let usable_addresses: Vec<_> = usable.iter().map(|socket| nearby[*socket]).collect();
        let own = self.own_addresses.get(now);
        for ip in listed {
            let known = |route: &Route| route.remote.ip().to_canonical() == ip;
            let remote = SocketAddr::new(as_seen_by(&first, ip), first.port());
            // Over UDP, the socket itself would receive it. Over IP alone, the SCTP port leads to another endpoint.
            let itself = self.owned_ports.is_none() && locals.contains(&remote);
            if peer.routes.iter().flatten().any(known)
                || itself
                || !may_be_contacted(ip, first.ip(), own)
            {
                continue;
            }
            let Some(at) = nearest(&usable_addresses, &remote) else { continue };
            let socket = usable[at];
            if self.options.all_interfaces && peer.move_unconfirmed(socket, &nearby[socket], remote)
            {
                continue;
            }
            let path = self.options.transport.path(ip);
            let Some(id) = peer.machine.add_path(now, path) else { break };
            peer.set_route(id, Route::new(socket, remote));
            peer.validation.on_listed(id.index());
        }
        if follows {
            self.pin_sources(peer);
        }
    }
}

impl Peer {
    /// Moves a path from `socket`, whose address is `local`, to `remote`, if the path is unconfirmed and leads to an
    /// address of the peer that is farther away. Returns whether there was such a path: two paths from one interface
    /// would share its link.
    fn move_unconfirmed(&mut self, socket: usize, local: &SocketAddr, remote: SocketAddr) -> bool {
        let unconfirmed = |path: &usize| {
            let path = PathId::from_index(*path);
            self.machine.path_status(path) == PathStatus::Unconfirmed
                && !self.machine.is_announcing(path)
        };
        let farther = |path: &usize| {
            self.routes[*path].is_some_and(|known| {
                known.socket == socket && is_nearer(local, &remote, &known.remote)
            })
        };
        let paths = 0..self.machine.path_count().min(self.routes.len());
        let Some(path) = paths.filter(farther).find(unconfirmed) else { return false };
        self.routes[path] = Some(Route::new(socket, remote));
        self.validation.on_listed(path);
        true
    }
}
