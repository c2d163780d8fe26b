//! Sends and receives the challenges of path validation: HEARTBEATs with a nonce that only one address receives.

use ropewalk_base::{PathId, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::{Chunk, ExtensionChunk, HeartbeatInfo, Packet};

use super::path_validation::lower_headers;
use super::peer::{Peer, Route};
use super::state::EndpointState;

/// Length of our HEARTBEAT chunk, bytes: chunk header, parameter header, nonce, time.
const HEARTBEAT: u32 = 4 + 4 + 16;

impl Peer {
    /// Extracts the answers to challenges from a packet of the peer. The engine does not know their nonces.
    #[inline]
    pub fn take_heartbeat_answers(&mut self, now: Time, path: PathId, packet: &Packet) {
        if !self.validation.is_idle() {
            self.find_answers(now, path, packet);
        }
    }

    #[cold]
    fn find_answers(&mut self, now: Time, path: PathId, packet: &Packet) {
        // RFC 9260, 8.5: a packet with another verification tag than ours is discarded.
        if packet.tag != self.machine.tags().0 || path.index() >= self.machine.path_count() {
            return;
        }
        for chunk in &packet.chunks {
            if let Chunk::HeartbeatAck(info) = chunk
                && let Some(HeartbeatInfo { nonce, probe: None, .. }) = HeartbeatInfo::parse(info)
            {
                let round_trip = self.machine.path_view(now, path).srtt;
                self.validation.on_answer(now, nonce, round_trip);
            }
        }
    }

    /// Handles a change of the engine's status of a path.
    pub(super) fn note_status(&mut self, now: Time, path: PathId, status: PathStatus) {
        match status {
            PathStatus::Active => self.validation.on_confirmed(path.index()),
            PathStatus::PotentiallyFailed | PathStatus::Inactive => {
                self.validation.on_failing(now, path.index());
            }
            PathStatus::Unconfirmed => {}
        }
    }

    /// Applies the moves of routes whose new address has answered, and collects the challenges that are due.
    #[inline]
    pub fn update_routes(&mut self, now: Time) {
        if self.validation.is_idle() {
            return;
        }
        let bytes = Packet::HEADER + HEARTBEAT + self.encapsulation.overhead();
        self.validation.update(now, &self.routes, u64::from(bytes));
        while let Some(moved) = self.validation.poll_move() {
            self.routes[moved.path] = Some(moved.to);
            self.machine.validate_path(now, PathId::from_index(moved.path));
        }
    }

    /// Whether a packet may be sent to an address that has not answered yet; charges the packet. RFC 9260, 5.4: no
    /// DATA and no SACK are sent to an unconfirmed address. Nor are MTU probes and chunks of extensions.
    #[cold]
    pub fn may_send_unvalidated(&mut self, route: Route, path: usize, packet: &Packet) -> bool {
        let refused = |chunk: &Chunk| match chunk {
            // RFC 5061, 5.2: an ASCONF is answered to its source, which may be a new address. 5.3: the ASCONF may be
            // the only chunk that is sent from a new address of this end.
            Chunk::Extension(extension) => !matches!(
                **extension,
                ExtensionChunk::Asconf(..)
                    | ExtensionChunk::AsconfAck(..)
                    | ExtensionChunk::Auth(_)
            ),
            chunk => matches!(chunk, Chunk::Data(_) | Chunk::Sack(_)),
        };
        let bytes = u64::from(packet.wire_len() + self.encapsulation.overhead());
        !packet.chunks.iter().any(refused)
            && self.validation.charge(path, bytes + lower_headers(&route.remote))
    }
}

impl EndpointState {
    /// Sends the challenges that are due. They were charged when they became due.
    #[inline]
    pub(super) fn send_challenges(&mut self, now: Time, peer: &mut Peer) {
        let (_, tag) = peer.machine.tags();
        // RFC 9260, 3.1: only an INIT has verification tag 0. The peer's tag is known once its cookie has
        // arrived.
        while tag != 0
            && let Some(challenge) = peer.validation.poll_challenge()
        {
            let info = HeartbeatInfo { nonce: challenge.nonce, sent: now, probe: None };
            let mut packet = Packet::of(tag, Chunk::Heartbeat(info.to_bytes()));
            peer.machine.sign_packet(&mut packet);
            let mut datagram = Vec::new();
            let path = PathId::from_index(challenge.path);
            // An error means that the session's keys are used up: nothing is sent until they change.
            if peer.encapsulation.write(path, &packet, &mut datagram).is_ok() {
                self.send_alone(challenge.to, peer.dscps.of(challenge.path), &datagram);
            }
        }
    }
}
