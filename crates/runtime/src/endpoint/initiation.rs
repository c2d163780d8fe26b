//! Handshakes that peers initiate: decides on them, answers them and creates their associations.

use ropewalk_base::Time;
use ropewalk_engine::sctp::wire::{self, Checksum, Ports};
use ropewalk_engine::sctp::{Association as Machine, Chunk, ErrorCause, Packet};

use super::encapsulation::Encapsulation;
use super::inbound::Opened;
use super::incoming::Decision;
use super::limits::Limit;
use super::peer::{Peer, Route};
use super::responder::{Confirmed, HalfOpen};
use super::secret;
use super::state::EndpointState;
use super::transport::Encryption;

impl EndpointState {
    /// Handles an initiation. Only its reply is sent; there is no association until the initiator uses the session.
    pub(super) fn on_initiation(&mut self, now: Time, route: Route, datagram: &[u8]) {
        if !self.options.listen {
            return;
        }
        let id = self.free_session();
        // Taken out so that the decision can use the rest of the endpoint.
        let Some(mut responder) = self.responder.take() else { return };
        let limits = self.options.limits.clone();
        let initiation =
            responder.on_initiation(now, route, datagram, id, &limits, |key| {
                match self.decide(now, Some(key), route.remote) {
                    Decision::Accept => Some(true),
                    Decision::Refuse => Some(false),
                    Decision::Ignore => None,
                }
            });
        self.responder = Some(responder);
        self.on_limit(now, Limit::HalfOpen, Some(route.remote), initiation.dropped as u64);
        if let Some(reply) = initiation.reply {
            self.send_alone(route, self.options.transport.dscp, &reply);
        }
    }

    /// Handles the first datagram of a half-open session, which creates the association.
    pub(super) fn on_first_sealed(
        &mut self,
        now: Time,
        route: Route,
        id: u32,
        datagram: &mut [u8],
    ) -> Option<Opened> {
        let Confirmed { half, path, form, body } =
            self.responder.as_mut()?.confirm(now, id, datagram)?;
        if half.refused {
            self.refuse_sealed(half, path, &datagram[body]);
            return None;
        }
        // Other associations may have been admitted since the reply.
        let ip = half.replied_to.remote.ip();
        let limits = &self.options.limits;
        if let Some(limit) = self.counts.refuses(limits, Some(half.key()), ip) {
            self.on_limit(now, limit, Some(half.replied_to.remote), 1);
            self.refuse_sealed(half, path, &datagram[body]);
            return None;
        }
        let count = half.handshake_payload.paths as usize;
        let ipv6 = route.remote.is_ipv6();
        let remotes = vec![route.remote.ip(); count.max(1)];
        let config = self.config(&remotes, &Encryption::Sealed { ipv6 }).ok()?;
        let scheduler = self.options.transport.scheduler().ok()?;
        let machine = Machine::listen(config, scheduler, secret()?);
        let (key, replied_to) = (half.key(), half.replied_to);
        let encapsulation = Encapsulation::Sealed(Box::new(half.session));
        let mut peer = Peer::new(now, machine, encapsulation, Some(id), vec![None; count], true);
        peer.replied_to = Some(replied_to);
        let path = peer.on_authenticated_route(
            now,
            path,
            route,
            self.options.transport.path(route.remote.ip()),
            datagram.len(),
        )?;
        peer.admitted = Some(self.counts.admit(Some(key), ip));
        let key = self.insert(peer);
        Some(Opened { key, path, form, number: None, body, wants_renewal: false })
    }

    /// Answers the INIT in the session's first datagram with an ABORT and drops the session.
    fn refuse_sealed(&mut self, mut half: Box<HalfOpen>, path: u8, body: &[u8]) {
        let mut packet = Packet::default();
        let bytes = bytes::Bytes::copy_from_slice(body);
        let decoded = wire::decode(&bytes, Checksum::None, &mut packet);
        let (Ok(ports), Some(Chunk::Init(init))) = (decoded, packet.chunks.first()) else { return };
        let refusal = Packet::of(init.tag, Chunk::abort(ErrorCause::USER));
        let mut datagram = Vec::new();
        let write = |out: &mut Vec<u8>| {
            wire::encode(&refusal, ports.swapped(), Checksum::None, out);
        };
        if half.session.seal(path, &mut datagram, write).is_ok() {
            self.send_alone(half.replied_to, self.options.transport.dscp, &datagram);
        }
    }

    /// Whether an unsealed INIT or COOKIE ECHO is rejected, because of a limit or by the application's filter.
    pub(super) fn refuse_initiation(
        &mut self,
        now: Time,
        route: Route,
        ports: Ports,
        packet: &Packet,
    ) -> bool {
        match self.decide(now, None, route.remote) {
            Decision::Accept => false,
            Decision::Ignore => true,
            Decision::Refuse => {
                if let Some(Chunk::Init(init)) = packet.chunks.first() {
                    let refusal = Packet::of(init.tag, Chunk::abort(ErrorCause::USER));
                    self.send_packet(route, ports.swapped(), &refusal);
                }
                true
            }
        }
    }
}
