//! Receive path: from sockets to associations.

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::ops::Range;

use ropewalk_base::{PathId, Time};
use ropewalk_engine::sctp::Packet;
use ropewalk_engine::sctp::wire::{self, Checksum, compact};

use super::binding::is_binding;
use super::encapsulation::Encapsulation;
use super::handshake::Progress;
use super::peer::Route;
use super::probes::is_probe;
use super::socket::ReceivedDatagrams;
use super::state::{AssociationKey, EndpointState};
use crate::seal;

/// An opened datagram: its association, its path, and the form and place of its packet.
pub(super) struct Opened {
    pub key: AssociationKey,
    pub path: PathId,
    pub form: u8,
    /// The number of the datagram on its path, which shows losses on that path.
    pub number: Option<NonZeroU32>,
    pub body: Range<usize>,
    /// Whether the session has something to send that renews its keys.
    pub wants_renewal: bool,
}

/// The engine's number for the datagram with the peer's counter `counter`.
pub(super) const fn packet_number(counter: u64) -> Option<NonZeroU32> {
    NonZeroU32::new((counter as u32).wrapping_add(1))
}

impl EndpointState {
    /// Takes the datagrams of a row.
    pub(super) fn receive_row(
        &mut self,
        now: Time,
        socket: usize,
        row: &mut ReceivedDatagrams<'_>,
        packet: &mut Packet,
    ) {
        let Some(route) = self.route_of(now, socket, row) else { return };
        for datagram in row.bytes.chunks_mut(row.stride) {
            if self.options.sealing.is_some() {
                self.receive_sealed(now, route, row.ce, datagram, packet);
            } else {
                self.receive_plain(now, route, row.ce, datagram, packet);
            }
        }
    }

    fn receive_plain(
        &mut self,
        now: Time,
        route: Route,
        ce: bool,
        datagram: &[u8],
        packet: &mut Packet,
    ) {
        match wire::decode(datagram, Checksum::Crc32c, packet) {
            Ok(ports)
                if self.owned_ports.as_ref().is_some_and(|own| !own.has(ports.destination)) =>
            {
                self.counters.unknown += 1;
            }
            Ok(ports) => {
                self.capture_received(route, datagram);
                packet.ce = ce;
                self.take_plain(now, route, ports, packet);
            }
            Err(_) => self.counters.unknown += 1,
        }
    }

    fn receive_sealed(
        &mut self,
        now: Time,
        route: Route,
        ce: bool,
        datagram: &mut [u8],
        packet: &mut Packet,
    ) {
        let Some(one) = self.open(now, route, datagram) else {
            self.counters.unknown += 1;
            return;
        };
        let body = &datagram[one.body.clone()];
        if one.wants_renewal {
            self.offer_renewal(now, &one, route);
        }
        if one.form == compact::STANDARD && self.take_other_content(now, route, &one, body)
            || !self.decode_sealed(route, &one, body, packet)
        {
            return;
        }
        (packet.ce, packet.number) = (ce, one.number);
        self.log_received(Some(one.key), route, packet);
        if let Some(peer) = self.peer(one.key) {
            peer.take_heartbeat_answers(now, one.path, packet);
            peer.machine.handle_in_place(now, one.path, packet);
            self.mark_ready(one.key);
        }
    }

    /// Handles the content of an opened datagram that is not an SCTP packet. Returns whether that was the case.
    fn take_other_content(&mut self, now: Time, route: Route, one: &Opened, body: &[u8]) -> bool {
        if is_probe(body) {
            if let Some(peer) = self.peer(one.key) {
                peer.on_probe(now, one.path, body);
            }
            self.mark_ready(one.key);
            return true;
        }
        if is_binding(body) {
            self.on_binding(one.key, one.path, route, body);
            return true;
        }
        if seal::is_renewal(body) {
            self.on_renewal(now, one, route, body);
            return true;
        }
        false
    }

    /// Decodes the packet in an opened datagram into `packet`, and captures it. Returns whether it is valid.
    fn decode_sealed(
        &mut self,
        route: Route,
        one: &Opened,
        body: &[u8],
        packet: &mut Packet,
    ) -> bool {
        if one.form == compact::STANDARD {
            self.capture_received(route, body);
            return wire::decode(body, Checksum::None, packet).is_ok();
        }
        let Some(peer) = self.peer(one.key) else { return false };
        let context = peer.machine.compact_context();
        let decoded = compact::decode(one.form, body, context, packet);
        if decoded.is_ok() {
            self.capture_decoded(route, packet);
        }
        decoded.is_ok()
    }

    /// The route on which a row arrived, which is also the route of its answers. A socket that is bound to the
    /// unspecified address answers from the address that the row was sent to. `None` if that address is a multicast
    /// or broadcast address: RFC 9260, 8.4 (1), such packets are discarded.
    fn route_of(&mut self, now: Time, socket: usize, row: &ReceivedDatagrams<'_>) -> Option<Route> {
        let route = Route::new(socket, row.from);
        if !self.sockets[socket].local().ip().is_unspecified() {
            return Some(route);
        }
        let Some(to) = row.to else { return Some(route) };
        if self.own_addresses.has(now, to) {
            return Some(Route { source: Some(to), ..route });
        }
        // A new own address is not in the list yet; until then the system chooses the source.
        let many =
            self.own_addresses.get(now).iter().any(|one| one.broadcast.map(Into::into) == Some(to));
        (!many && !to.is_multicast() && to != IpAddr::V4(Ipv4Addr::BROADCAST)).then_some(route)
    }

    /// Opens a datagram in place. `None` if it contains nothing for an association.
    fn open(&mut self, now: Time, route: Route, datagram: &mut [u8]) -> Option<Opened> {
        if seal::is_first(datagram) {
            self.on_initiation(now, route, datagram);
            return None;
        }
        let id = seal::session_id(datagram)?;
        let Some(key) = self.by_session.get(&id).copied() else {
            return self.on_first_sealed(now, route, id, datagram);
        };
        let fresh = self.options.transport.path(route.remote.ip());
        let peer = self.peer(key)?;
        match &mut peer.encapsulation {
            Encapsulation::Plain(_) => None,
            Encapsulation::HandshakeInProgress(handshake) => {
                match handshake.take_answer(now, datagram) {
                    Progress::Done(session) => {
                        peer.encapsulation = Encapsulation::Sealed(session);
                        peer.machine.open(now);
                    }
                    Progress::Refused => peer.give_up(),
                    Progress::Waiting => {}
                }
                self.mark_ready(key);
                None
            }
            Encapsulation::Sealed(session) => {
                let opened = session.open(now, datagram).ok()?;
                let wants_renewal = session.wants_renewal(now);
                let path =
                    peer.on_authenticated_route(now, opened.path, route, fresh, datagram.len())?;
                let number = packet_number(opened.counter);
                Some(Opened {
                    key,
                    path,
                    form: opened.form,
                    number,
                    body: opened.body,
                    wants_renewal,
                })
            }
        }
    }
}
