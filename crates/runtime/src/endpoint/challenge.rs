//! Challenges of path validation on their way: HEARTBEATs with a nonce that one address alone gets.

use ropewalk_base::{PathId, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::{Chunk, HeartbeatInfo, Packet};

use super::path_validation::lower_headers;
use super::peer::{Peer, Route};
use super::state::EndpointState;

/// A HEARTBEAT chunk with our information: chunk header, parameter header, nonce, time.
const HEARTBEAT: u32 = 4 + 4 + 16;

impl Peer {
    /// The answers to challenges in a packet of the peer. The engine does not know their nonces.
    #[inline]
    pub fn take_answers(&mut self, now: Time, path: PathId, packet: &Packet) {
        if !self.validation.is_idle() {
            self.look_for_answers(now, path, packet);
        }
    }

    #[cold]
    fn look_for_answers(&mut self, now: Time, path: PathId, packet: &Packet) {
        // RFC 9260, 8.5: a packet without our tag is discarded.
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

    /// The engine's view of a path has changed.
    pub(super) fn note_status(&mut self, now: Time, path: PathId, status: PathStatus) {
        match status {
            PathStatus::Active => self.validation.on_confirmed(path.index()),
            PathStatus::PotentiallyFailed | PathStatus::Inactive => {
                self.validation.on_failing(now, path.index());
            }
            PathStatus::Unconfirmed => {}
        }
    }

    /// Moves the routes whose new address has answered, and finds the challenges that are due.
    #[inline]
    pub fn follow_routes(&mut self, now: Time) {
        if self.validation.is_idle() {
            return;
        }
        let bytes = Packet::HEADER + HEARTBEAT + self.cover.overhead();
        self.validation.update(now, &self.routes, u64::from(bytes));
        while let Some(moved) = self.validation.poll_move() {
            self.routes[moved.path] = Some(moved.to);
            self.machine.prove(now, PathId::from_index(moved.path));
        }
    }

    /// Whether a packet may leave for an address that has not answered yet: charges it. RFC 9260, 5.4: no
    /// DATA, no SACK; and no probe, nothing of an extension.
    #[cold]
    pub fn may_send_unvalidated(&mut self, route: Route, path: usize, packet: &Packet) -> bool {
        let refused =
            |chunk: &Chunk| matches!(chunk, Chunk::Data(_) | Chunk::Sack(_) | Chunk::Extension(_));
        let bytes = u64::from(packet.wire_len() + self.cover.overhead());
        !packet.chunks.iter().any(refused)
            && self.validation.charge(path, bytes + lower_headers(&route.remote))
    }
}

impl EndpointState {
    /// Sends the challenges that are due. They were charged when they became so.
    #[inline]
    pub(super) fn send_challenges(&mut self, now: Time, peer: &mut Peer) {
        let (_, tag) = peer.machine.tags();
        // RFC 9260, 3.1: only an INIT travels under tag 0. The peer's is known once its cookie has come.
        while tag != 0
            && let Some(challenge) = peer.validation.poll_challenge()
        {
            let info = HeartbeatInfo { nonce: challenge.nonce, sent: now, probe: None };
            let packet = Packet::of(tag, Chunk::Heartbeat(info.to_bytes()));
            let mut datagram = Vec::new();
            let path = PathId::from_index(challenge.path);
            // An error: the keys are used up, and nothing leaves until they change.
            if peer.cover.write(path, &packet, &mut datagram).is_ok() {
                self.send_alone(challenge.to, &datagram);
            }
        }
    }
}
