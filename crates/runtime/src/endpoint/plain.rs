//! Packets in the clear: to which association they belong, by which path they came, and what a handshake tells of
//! the peer's addresses (RFC 9260, 5.1.2, 5.2 and 8.5; RFC 6951, 5.4).

use std::net::IpAddr;

use ropewalk_base::{PathId, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::association::State;
use ropewalk_engine::sctp::wire::Ports;
use ropewalk_engine::sctp::{Association as Machine, Chunk, Packet};

use super::association_table::PortPair;
use super::encapsulation::Encapsulation;
use super::path_validation::lower_headers;
use super::peer::{Peer, Route};
use super::state::{EndpointState, Key};

/// An association that a packet was found to belong to.
#[derive(Clone, Copy)]
struct Found {
    key: Key,
    /// The packet carries the tag of this end: who sent it has seen packets of the peer.
    by_tag: bool,
}

impl EndpointState {
    /// A packet in the clear.
    pub(super) fn take_plain(
        &mut self,
        now: Time,
        route: Route,
        ports: Ports,
        packet: &mut Packet,
    ) {
        match packet.chunks.first() {
            Some(Chunk::Init(_)) => self.take_init(now, route, ports, packet),
            Some(_) => match self.find(route.remote.ip(), PortPair::of_arrival(ports), packet) {
                Some(found) => self.take_packet(now, found, route, packet),
                None => self.take_out_of_the_blue(now, route, ports, packet),
            },
            None => self.counters.unknown += 1,
        }
    }

    /// RFC 9260, 5.1.2: an INIT belongs to an existing association if its source or any address that it lists
    /// identifies that one.
    fn take_init(&mut self, now: Time, route: Route, ports: Ports, packet: &mut Packet) {
        let Some(Chunk::Init(init)) = packet.chunks.first() else { return };
        let source = route.remote.ip();
        let pair = PortPair::of_arrival(ports);
        let found = self.associations.by_address(pair, init.addresses.iter().chain([&source]));
        let Some(key) = found.and_then(|key| self.still_there(key)) else {
            self.take_out_of_the_blue(now, route, ports, packet);
            return;
        };
        let Some(peer) = self.known(key) else { return };
        // 5.2.1: while the peer is only being asked, INIT ACKs go to addresses that the user named. In all
        // other states the source is an address of the peer, or hears that it must not be one.
        let waits = matches!(peer.machine.state(), State::CookieWait { .. });
        let to = match waits && !self.associations.has(key, source) {
            false => Some(route),
            true => peer.route_to_one_of(&init.addresses),
        };
        let Some(to) = to else { return };
        // 5.4: the address that the INIT ACK goes to is the one that its cookie confirms.
        let path = peer.path_to_address(to.remote.ip()).unwrap_or(Machine::NO_PATH);
        let answer = peer.machine.answer_to_init(now, path, packet, Some(source.to_canonical()));
        if let Some(answer) = answer {
            self.send_packet(to, ports.swapped(), &answer);
        }
    }

    fn take_packet(&mut self, now: Time, found: Found, route: Route, packet: &mut Packet) {
        let key = found.key;
        let path = self.path_of(now, found, route, packet);
        let Some(peer) = self.peer(key) else { return };
        let before = peer.machine.tags();
        peer.take_answers(now, path, packet);
        peer.machine.handle_in_place(now, path, packet);
        let after = peer.machine.tags();
        if after != before {
            self.on_tags_changed(key, path, route);
        }
        self.touch(key);
    }

    /// The association that a packet other than INIT belongs to.
    fn find(&mut self, source: IpAddr, pair: PortPair, packet: &Packet) -> Option<Found> {
        let table = &self.associations;
        let by_tag = |key| Found { key, by_tag: true };
        let by_address = |key| Found { key, by_tag: false };
        let tagged = table.by_tag(packet.tag, pair);
        let found = match packet.chunks.first()? {
            // Under the tag of the INIT ACK, which is a new one where the peer restarts (5.2.2).
            Chunk::CookieEcho(_) => {
                tagged.map(by_tag).or_else(|| table.by_address(pair, [&source]).map(by_address))
            }
            // 8.5.1: with T they carry the tag of packets to the peer, which the association knows.
            Chunk::Abort { reflected: true, .. } | Chunk::ShutdownComplete { reflected: true } => {
                table.by_address(pair, [&source]).map(by_address)
            }
            // 5.1.2: from any address of the peer, if it lists one that was asked.
            Chunk::InitAck(both) => {
                let lists = |key| both.0.addresses.iter().any(|ip| table.has(key, *ip));
                tagged.filter(|key| table.has(*key, source) || lists(*key)).map(by_tag)
            }
            // 8.4: what comes from an address that is none of the peer's is out of the blue.
            _ => tagged.filter(|key| table.has(*key, source)).map(by_tag),
        }?;
        self.still_there(found.key)?;
        Some(found)
    }

    /// An association that has ended is no more, though a handle to it may be left: packets do not find it.
    pub(super) fn still_there(&mut self, key: Key) -> Option<Key> {
        let peer = self.known(key)?;
        if matches!(peer.machine.state(), State::Ended(_)) {
            self.associations.remove(key);
            return None;
        }
        Some(key)
    }

    /// The path by which a packet came.
    fn path_of(&mut self, now: Time, found: Found, route: Route, packet: &Packet) -> PathId {
        let fresh = self.options.transport.path(route.remote.ip());
        let Some(peer) = self.peer(found.key) else { return PathId(0) };
        let known = peer.path_to(route);
        if let Some(path) = known {
            peer.answer_from(path, route.source);
        }
        // RFC 6951, 5.4: the UDP port of an address is learned from packets with the right tag. The path
        // leads to another port once that has answered.
        if found.by_tag
            && let Some(path) = peer.path_from(now, route, packet)
        {
            return path;
        }
        if let Some(path) = known.or_else(|| peer.path_to_address(route.remote.ip())) {
            return path;
        }
        // An address of the peer that nothing has been sent to yet.
        if found.by_tag
            && let Some(path) = peer.machine.add_path(now, fresh)
        {
            peer.routes.resize(path.index(), None);
            peer.routes.push(Some(route));
            let bytes = u64::from(packet.wire_len()) + lower_headers(&route.remote);
            peer.validation.on_new_path(path.index(), bytes);
            return path;
        }
        PathId(0)
    }

    /// The peer's initiation has just been taken: now it is known which addresses the peer has.
    fn on_tags_changed(&mut self, key: Key, path: PathId, route: Route) {
        let Some(peer) = self.peer(key) else { return };
        let (tag, peer_tag) = peer.machine.tags();
        let ended = matches!(peer.machine.state(), State::Ended(_));
        if peer_tag != 0 && !ended {
            peer.learn_initiation(path, route);
        }
        let ports = PortPair::of_departure(peer.cover.ports());
        let addresses = peer.addresses();
        self.associations.set(key, ports, tag, addresses);
    }

    /// One packet that belongs to no association, or whose destination its association does not use yet.
    pub(super) fn send_packet(&mut self, route: Route, ports: Ports, packet: &Packet) {
        let mut datagram = Vec::new();
        if Encapsulation::Plain(ports).write(PathId(0), packet, &mut datagram).is_ok() {
            self.send_alone(route, &datagram);
        }
    }
}

impl Peer {
    /// The addresses that a peer in the clear is known by: those that it has listed, and those where it is
    /// looked for.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let used = self.routes.iter().flatten().map(|route| route.remote.ip());
        used.chain(self.machine.peer_addresses().iter().copied()).collect()
    }

    /// Packets on a path came to that own address. Answers leave from there, and so does everything else until
    /// the path fails: another address would be another path for networks that look at it.
    fn answer_from(&mut self, path: PathId, source: Option<IpAddr>) {
        let active = self.machine.path_status(path) == PathStatus::Active;
        if let Some(Some(route)) = self.routes.get_mut(path.index())
            && (route.source.is_none() || !active)
        {
            route.source = source;
        }
    }

    /// The path that leads to this address, through whatever port.
    fn path_to_address(&self, ip: IpAddr) -> Option<PathId> {
        let same = |known: &Option<Route>| known.is_some_and(|known| known.remote.ip() == ip);
        self.routes.iter().position(same).map(PathId::from_index)
    }

    /// A way to one of these addresses.
    fn route_to_one_of(&self, addresses: &[IpAddr]) -> Option<Route> {
        let listed = |route: &&Route| addresses.contains(&route.remote.ip().to_canonical());
        self.routes.iter().flatten().find(listed).copied()
    }

    /// The peer's INIT ACK, or the cookie of its INIT, came by that path from there. RFC 9260, 5.1.2: the source
    /// and the addresses that it lists are the peer's, and other targets are not used any more.
    fn learn_initiation(&mut self, path: PathId, route: Route) {
        self.machine.set_peer_source(route.remote.ip().to_canonical());
        if let Some(known) = self.routes.get_mut(path.index()) {
            *known = Some(route);
        }
        // 5.4: a cookie of an association confirms the address that its INIT ACK went to, wherever it came from itself.
        let echoed = matches!(self.machine.state(), State::CookieEchoed { .. });
        let confirmed = |at: &usize| {
            let status = self.machine.path_status(PathId::from_index(*at));
            status == PathStatus::Active || echoed && *at == path.index()
        };
        for at in (0..self.machine.path_count()).filter(confirmed) {
            self.validation.on_set_up(at);
        }
        let kept: Vec<bool> = self
            .routes
            .iter()
            .map(|known| known.is_some_and(|k| self.machine.peer_has(k.remote.ip().to_canonical())))
            .collect();
        let before = self.machine.path_count();
        self.machine.retain_paths(|path| kept.get(path.index()) == Some(&true));
        if self.machine.path_count() < before {
            self.validation.retain_paths(&kept);
            let mut kept = kept.into_iter();
            self.routes.retain(|_| kept.next() == Some(true));
        }
    }
}
