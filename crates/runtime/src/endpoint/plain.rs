//! Unsealed packets: finds their association and path, and learns the peer's addresses from the handshake (RFC 9260,
//! 5.1.2, 5.2 and 8.5; RFC 6951, 5.4).

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
use super::state::{AssociationKey, EndpointState};

/// The association that a packet belongs to.
#[derive(Clone, Copy)]
struct Found {
    key: AssociationKey,
    /// Whether the packet carries this end's verification tag: its sender has seen packets of the association.
    by_tag: bool,
    /// Whether its source is not an address of the peer, and its ASCONF may add it.
    admitted: bool,
}

impl EndpointState {
    /// Handles an unsealed packet.
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
                None => {
                    self.log_received(None, route, packet);
                    let pair = PortPair::of_arrival(ports);
                    if self.is_from_former_address(pair, route.remote.ip(), packet)
                        || self.has_wrong_tag(
                            route.remote.ip(),
                            PortPair::of_arrival(ports),
                            packet,
                        )
                    {
                        self.counters.unknown += 1;
                    } else if !self.is_after_shutdown(PortPair::of_arrival(ports), packet) {
                        self.take_out_of_the_blue(now, route, ports, packet);
                    }
                }
            },
            None => self.counters.unknown += 1,
        }
    }

    /// RFC 9260, 5.1.2: an INIT belongs to an existing association if its source address or any address that it lists
    /// identifies that association.
    fn take_init(&mut self, now: Time, route: Route, ports: Ports, packet: &mut Packet) {
        let Some(Chunk::Init(init)) = packet.chunks.first() else { return };
        let source = route.remote.ip();
        let pair = PortPair::of_arrival(ports);
        let found = self.associations.by_address(pair, init.addresses.iter().chain([&source]));
        let live = found.and_then(|key| self.live_key(key));
        self.log_received(live, route, packet);
        let Some(key) = live else {
            self.take_out_of_the_blue(now, route, ports, packet);
            return;
        };
        let Some(peer) = self.known(key) else { return };
        // RFC 9260, 5.2.1: in COOKIE-WAIT, the INIT ACK goes to an address that the application named. In all other
        // states the source is an address of the peer, or the answer tells the peer that it may not be one.
        let waits = matches!(peer.machine.state(), State::CookieWait { .. });
        let to = match waits && !self.associations.has(key, source) {
            false => Some(route),
            true => peer.route_to_one_of(&init.addresses),
        };
        let Some(to) = to else { return };
        // RFC 9260, 5.4: the cookie confirms the address that the INIT ACK is sent to.
        let path = peer.path_to_address(to.remote.ip()).unwrap_or(Machine::NO_PATH);
        let answer = peer.machine.answer_to_init(now, path, packet, Some(source.to_canonical()));
        if let Some(answer) = answer {
            self.send_packet(to, ports.swapped(), &answer);
        }
    }

    fn take_packet(&mut self, now: Time, found: Found, route: Route, packet: &mut Packet) {
        let key = found.key;
        self.log_received(Some(key), route, packet);
        let path = self.path_of(now, found, route, packet);
        let Some(peer) = self.peer(key) else { return };
        let before = peer.machine.tags();
        peer.take_heartbeat_answers(now, path, packet);
        peer.machine.handle_from(now, path, route.remote.ip(), packet);
        let source = route.remote.ip().to_canonical();
        let reconfigures = peer.machine.reconfigures_addresses();
        let after = peer.machine.tags();
        let unauthenticated = peer.machine.take_unauthenticated();
        if after != before {
            self.on_tags_changed(key, path, route);
        }
        self.counters.unauthenticated += unauthenticated;
        if reconfigures {
            self.follow_packet(now, found, source);
        }
        self.mark_ready(key);
    }

    /// Applies the address changes of a packet from this source, before anything is sent.
    fn follow_packet(&mut self, now: Time, found: Found, source: IpAddr) {
        let key = found.key;
        let Some(mut peer) = self.take_out(key) else { return };
        self.follow_addresses(now, key, &mut peer);
        if found.admitted && !peer.machine.peer_has(source) {
            // A path was added for the answer to an ASCONF that did not add its source.
            peer.leave(now, source);
        }
        self.put_back(key, peer);
    }

    /// The association that a packet other than an INIT belongs to.
    fn find(&mut self, source: IpAddr, pair: PortPair, packet: &Packet) -> Option<Found> {
        let table = &self.associations;
        let by_tag = |key| Found { key, by_tag: true, admitted: false };
        let by_address = |key| Found { key, by_tag: false, admitted: false };
        let tagged = table.by_tag(packet.tag, pair);
        // RFC 4895, 6.3: an AUTH chunk is verified by the association that the chunks after it belong to.
        let found = match packet.leading()? {
            // The tag is that of the INIT ACK, which is a new one if the peer restarts (RFC 9260, 5.2.2).
            Chunk::CookieEcho(_) => {
                tagged.map(by_tag).or_else(|| table.by_address(pair, [&source]).map(by_address))
            }
            // RFC 9260, 8.5.1: with the T bit set, these chunks carry the tag of packets to the peer.
            Chunk::Abort { reflected: true, .. } | Chunk::ShutdownComplete { reflected: true } => {
                table.by_address(pair, [&source]).map(by_address)
            }
            // RFC 9260, 5.1.2: an INIT ACK may come from any address of the peer, if it lists one that the INIT was
            // sent to.
            Chunk::InitAck(both) => {
                let lists = |key| both.0.addresses.iter().any(|ip| table.has(key, *ip));
                tagged.filter(|key| table.has(*key, source) || lists(*key)).map(by_tag)
            }
            // RFC 9260, 8.4: a packet from an address that is not the peer's is out of the blue.
            _ => {
                let admitted = |key: &AssociationKey| !table.has(*key, source);
                let key = tagged.filter(|key| !admitted(key) || self.admits_source(*key, packet));
                key.map(|key| Found { key, by_tag: true, admitted: admitted(&key) })
            }
        }?;
        self.live_key(found.key)?;
        Some(found)
    }

    /// Whether a packet comes from the peer of an association but does not carry its tag. RFC 9260, 8.5: such a
    /// packet is discarded, and is not out of the blue. 8.5.1 (E): a SHUTDOWN ACK is out of the blue if the
    /// association is being set up.
    fn has_wrong_tag(&mut self, source: IpAddr, pair: PortPair, packet: &Packet) -> bool {
        let found = self.associations.by_address(pair, [&source]);
        let Some(peer) = found.and_then(|key| self.live_key(key)).and_then(|key| self.known(key))
        else {
            return false;
        };
        let begins =
            matches!(peer.machine.state(), State::CookieWait { .. } | State::CookieEchoed { .. });
        !(begins && matches!(packet.leading(), Some(Chunk::ShutdownAck)))
    }

    /// The association, unless it has ended. Packets do not find an ended association, even if a handle still exists.
    pub(super) fn live_key(&mut self, key: AssociationKey) -> Option<AssociationKey> {
        let peer = self.known(key)?;
        let State::Ended(reason) = *peer.machine.state() else { return Some(key) };
        self.associations.remove_ended(key, reason);
        None
    }

    /// Whether a packet is a late one of an association that was shut down. An ABORT in response could overtake
    /// the SHUTDOWN COMPLETE on another path, and the peer would consider the association lost. A SHUTDOWN ACK
    /// shows that the SHUTDOWN COMPLETE was lost, and is answered.
    fn is_after_shutdown(&self, pair: PortPair, packet: &Packet) -> bool {
        let first = packet.leading();
        let opens =
            matches!(first, Some(Chunk::Init(_) | Chunk::CookieEcho(_) | Chunk::ShutdownAck));
        !opens && self.associations.was_shut_down(packet.tag, pair)
    }

    /// The path on which a packet arrived.
    fn path_of(&mut self, now: Time, found: Found, route: Route, packet: &Packet) -> PathId {
        let fresh = self.options.transport.path(route.remote.ip());
        let Some(peer) = self.peer(found.key) else { return PathId(0) };
        let known = peer.path_to(route);
        if let Some(path) = known {
            peer.answer_from(path, route.source);
        }
        // RFC 6951, 5.4: the UDP port of an address is learned from packets with the right tag. The path moves to
        // another port once that port has answered.
        if found.by_tag
            && let Some(path) = peer.path_from(now, route, packet)
        {
            return path;
        }
        if let Some(path) = known.or_else(|| peer.path_to_address(route.remote.ip())) {
            return path;
        }
        // An address of the peer that has not been used yet.
        if found.by_tag
            && let Some(path) = peer.machine.add_path(now, fresh)
        {
            peer.set_route(path, route);
            let bytes = u64::from(packet.wire_len()) + lower_headers(&route.remote);
            peer.validation.on_new_path(path.index(), bytes);
            return path;
        }
        PathId(0)
    }

    /// The peer's INIT or INIT ACK was accepted, so its addresses are known now.
    fn on_tags_changed(&mut self, key: AssociationKey, path: PathId, route: Route) {
        let Some(peer) = self.peer(key) else { return };
        let (tag, peer_tag) = peer.machine.tags();
        let ended = matches!(peer.machine.state(), State::Ended(_));
        if peer_tag != 0 && !ended {
            peer.learn_initiation(path, route);
        }
        let ports = PortPair::of_departure(peer.encapsulation.ports());
        let addresses = peer.addresses();
        self.associations.set(key, ports, tag, addresses);
    }

    /// Sends one packet that belongs to no association, or goes to an address that its association does not use yet.
    pub(super) fn send_packet(&mut self, route: Route, ports: Ports, packet: &Packet) {
        let mut datagram = Vec::new();
        if Encapsulation::Plain(ports).write(PathId(0), packet, &mut datagram).is_ok() {
            self.record_sent_alone(route, ports, packet);
            self.send_alone(route, self.options.transport.dscp, &datagram);
        }
    }
}

impl Peer {
    /// The addresses that identify an unsealed peer: those that it has listed, and those of its paths.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let used = self.routes.iter().flatten().map(|route| route.remote.ip());
        used.chain(self.machine.peer_addresses().iter().copied()).collect()
    }

    /// Sets the source address of a path to the local address at which its packets arrived. All packets of the path
    /// are sent from it until the path fails: for the network, another source address would be another path.
    fn answer_from(&mut self, path: PathId, source: Option<IpAddr>) {
        let active = self.machine.path_status(path) == PathStatus::Active;
        if let Some(Some(route)) = self.routes.get_mut(path.index())
            && (route.source.is_none() || !active)
        {
            route.source = source;
        }
    }

    /// The path to this address, regardless of its port.
    fn path_to_address(&self, ip: IpAddr) -> Option<PathId> {
        let same = |known: &Option<Route>| known.is_some_and(|known| known.remote.ip() == ip);
        self.routes.iter().position(same).map(PathId::from_index)
    }

    /// A route to one of these addresses.
    fn route_to_one_of(&self, addresses: &[IpAddr]) -> Option<Route> {
        let listed = |route: &&Route| addresses.contains(&route.remote.ip().to_canonical());
        self.routes.iter().flatten().find(listed).copied()
    }

    /// Learns the peer's addresses from its INIT ACK, or from the cookie of its INIT, which arrived on `path` by
    /// `route`. RFC 9260, 5.1.2: the source and the listed addresses are the peer's; other destinations are no longer
    /// used.
    fn learn_initiation(&mut self, path: PathId, route: Route) {
        self.machine.set_peer_source(route.remote.ip().to_canonical());
        if let Some(known) = self.routes.get_mut(path.index()) {
            *known = Some(route);
        }
        // RFC 9260, 5.4: a cookie confirms the destination of its INIT ACK, regardless of the source of the
        // COOKIE ECHO.
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
