//! Packets in the clear from those who have no association here, and what peers in the clear say of
//! their addresses.

use std::net::{IpAddr, SocketAddr};

use ropewalk_base::{PathId, Time};
use ropewalk_engine::sctp::wire::Ports;
use ropewalk_engine::sctp::{Accepted, Answer, Association as Machine, Chunk, Listener, Packet};

use super::core::Core;
use super::cover::Cover;
use super::listed::may_be_asked;
use super::options::UnknownName;
use super::pairing::nearest;
use super::path_validation::lower_headers;
use super::peer::{Peer, Route};
use super::socket::Socket;
use crate::interfaces;

/// What a cookie is bound to: the address and the port it came from.
fn context(remote: SocketAddr) -> Vec<u8> {
    let mut context = match remote.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    context.extend(remote.port().to_be_bytes());
    context
}

impl Core {
    /// Strangers in the clear are answered from now on.
    pub(super) fn listen_in_the_clear(&mut self) -> Result<(), UnknownName> {
        let ipv6 = self.sockets.iter().any(|socket| socket.local().is_ipv6());
        let config = self.options.transport.config(1, &self.in_the_clear(ipv6))?;
        self.listener = Some(Listener::new(config, self.next_seed()));
        Ok(())
    }

    /// A packet for nobody here: a peer that wants to open an association, or a mistake.
    pub(super) fn take_stranger(
        &mut self,
        now: Time,
        route: Route,
        ports: Ports,
        packet: &mut Packet,
    ) {
        self.counters.unknown += 1;
        let opens = matches!(packet.chunks.first(), Some(Chunk::Init(_) | Chunk::CookieEcho(_)));
        // RFC 9260, 8.4, 1; and who sends to itself is answered with nothing.
        let odd =
            route.remote.ip().is_multicast() || self.sockets[route.socket].local() == route.remote;
        if odd || opens && !self.options.listen {
            return;
        }
        if opens && self.turned_away(now, route, ports, packet) {
            return;
        }
        let Some(listener) = &mut self.listener else { return };
        match listener.handle(now, &context(route.remote), packet) {
            Answer::Nothing => {}
            Answer::Reply(reply) => {
                let mut datagram = Vec::new();
                let written = Cover::Plain(ports.swapped()).write(PathId(0), &reply, &mut datagram);
                if written.is_ok() {
                    self.send_alone(route, &datagram);
                }
            }
            Answer::Accept(accepted) => self.accept(now, route, ports, *accepted, packet),
        }
    }

    fn accept(
        &mut self,
        now: Time,
        route: Route,
        ports: Ports,
        accepted: Accepted,
        packet: &mut Packet,
    ) {
        let ipv6 = route.remote.is_ipv6();
        let Ok(config) = self.config(1, &self.in_the_clear(ipv6)) else { return };
        let Ok(scheduler) = self.options.transport.scheduler() else { return };
        let seed = self.next_seed();
        let bytes = u64::from(packet.wire_len()) + lower_headers(&route.remote);
        let mut machine = Machine::accepted(config, scheduler, seed, now, PathId(0), accepted);
        // What came beside the cookie.
        machine.handle_in_place(now, PathId(0), packet);
        let cover = Cover::Plain(ports.swapped());
        let mut peer = Peer::new(now, machine, cover, None, vec![Some(route)], true);
        peer.validation.on_packet(now, 0, route, route, bytes);
        peer.admitted = Some(self.counts.admit(None, route.remote.ip()));
        self.insert(peer);
    }

    /// The peer is known: each address that it listed beyond those in use is a path more. All have the
    /// port of the first until they show another (RFC 6951, 5.4).
    pub(super) fn learn_addresses(&mut self, now: Time, peer: &mut Peer) {
        let Some(first) = peer.routes.iter().flatten().map(|route| route.remote).next() else {
            return;
        };
        let listed = peer.machine.peer_addresses().to_vec();
        if listed.is_empty() {
            return;
        }
        let locals: Vec<_> = self.sockets.iter().map(Socket::local).collect();
        // None where the system does not tell.
        let own = interfaces::look().unwrap_or_default();
        for ip in listed {
            let known = |route: &Route| route.remote.ip() == ip;
            let remote = SocketAddr::new(ip, first.port());
            if peer.routes.iter().flatten().any(known)
                || locals.contains(&remote)
                || !may_be_asked(ip, first.ip(), &own)
            {
                continue;
            }
            let Some(socket) = nearest(&locals, &remote) else { continue };
            let path = self.options.transport.path();
            if peer.machine.add_path(now, path).is_none() {
                return;
            }
            peer.routes.push(Some(Route { socket, remote }));
            peer.validation.on_listed(peer.routes.len() - 1);
        }
    }
}
