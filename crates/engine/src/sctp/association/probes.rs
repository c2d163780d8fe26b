//! HEARTBEATs and their answers, and probes of the path MTU: HEARTBEATs padded to the probed size (RFC 8899,
//! 6.2; RFC 4820).

use bytes::Bytes;
use ropewalk_base::{PathId, Time};

use super::{Association, State};
use crate::path::PathStatus;
use crate::sctp::chunk::{Chunk, HeartbeatInfo};
use crate::sctp::extension_chunk::ExtensionChunk;
use crate::sctp::packet::PacketForm;
use crate::sctp::wire;

impl Association {
    /// Builds a HEARTBEAT with a fresh nonce for `id`. Its answer is pending from now on.
    pub(super) fn new_heartbeat(&mut self, now: Time, id: PathId) -> Chunk {
        let nonce = self.random.nonce();
        self.control.heartbeats.build(now, id, &self.sender.paths[id.index()].tx, nonce)
    }

    /// Processes a HEARTBEAT. RFC 9260, 8.3: it is returned unchanged to the address that it came from, here
    /// only if it fits into a packet of that path.
    pub(super) fn on_heartbeat(&mut self, path: PathId, info: Bytes) {
        if self.answers_heartbeats() && info.len() as u32 + 8 <= self.sender.packet_room(path) {
            // Copied, so that a few queued bytes do not keep the entire datagram in memory.
            let info = Bytes::copy_from_slice(&info);
            self.reply_to_peer(path, Chunk::HeartbeatAck(info));
        }
    }

    /// Processes a HEARTBEAT or HEARTBEAT ACK with further parameters. RFC 9260, 8.3: the answer returns the
    /// Heartbeat Info, together with any other parameters, unchanged.
    pub(super) fn on_long_heartbeat(
        &mut self,
        now: Time,
        path: PathId,
        answer: bool,
        parameters: &Bytes,
    ) {
        if answer {
            if let Some(info) = wire::heartbeat_info(parameters) {
                self.on_heartbeat_ack(now, &info);
            }
            return;
        }
        let answer = ExtensionChunk::Heartbeat { answer: true, parameters: parameters.clone() };
        let answer = Chunk::Extension(Box::new(answer));
        if self.answers_heartbeats() && answer.wire_len() <= self.sender.packet_room(path) {
            self.reply_to_peer(path, answer);
        }
    }

    /// A responder probes all paths as soon as it is established, so on a fast path its HEARTBEAT may arrive
    /// before its COOKIE ACK.
    const fn answers_heartbeats(&self) -> bool {
        self.state.is_up() || matches!(self.state, State::CookieEchoed { .. })
    }

    /// Processes a HEARTBEAT ACK. RFC 9260, 5.4: the address that the HEARTBEAT was sent to is confirmed, and
    /// it is "the address found in the Heartbeat Information". A multihomed peer with one default route
    /// answers all HEARTBEATs by the same route, so the path on which the answer arrives proves nothing: the
    /// nonce names the path.
    pub(super) fn on_heartbeat_ack(&mut self, now: Time, info: &[u8]) {
        let Some(info) = HeartbeatInfo::parse(info) else { return };
        if info.probe.is_some() {
            if let Some(id) = self.sender.on_probe_answer(now, info.nonce) {
                self.send_probes(now, id);
            }
            return;
        }
        let Some(id) = self.control.heartbeats.take_nonce(info.nonce) else { return };
        let path = &mut self.sender.paths[id.index()];
        path.tx.rtt.sample(now, now.since(info.sent));
        self.control.errors = 0;
        let was = path.tx.state.status();
        if path.tx.state.on_confirmed() {
            if was == PathStatus::Unconfirmed {
                self.sender.epoch += 1;
                self.path_changed(now, id);
            } else {
                self.sender.on_path_returned(now, id);
                self.follow_reports(now);
            }
            let paths = &self.sender.paths;
            self.control.heartbeats.schedule(now, id, paths, &mut self.random.rng);
        } else if was == PathStatus::Active {
            // After a change of address, probes wait for this answer.
            self.search_mtu(now, id);
        }
        self.sender.confirm_mtu(now, id, 0);
        self.follow_reports(now);
    }

    /// Starts or resumes the search for the MTU of a path.
    pub(super) fn search_mtu(&mut self, now: Time, id: PathId) {
        self.sender.search_mtu(now, id);
        self.send_probes(now, id);
    }

    /// Sends the probes that are due.
    pub(super) fn send_probes(&mut self, now: Time, id: PathId) {
        for size in self.sender.sizes_to_probe(now, id) {
            let nonce = self.random.nonce();
            let info = HeartbeatInfo { nonce, sent: now, probe: Some(size) };
            let heartbeat = Chunk::Heartbeat(info.to_bytes());
            let room = match self.config.packet_form {
                PacketForm::Standard => (size - self.config.headers()) / 4 * 4,
                // Datagrams are not padded: their packets have exactly the probed size.
                PacketForm::Compact => size - self.config.headers(),
            };
            let padding = room - heartbeat.wire_len() - self.auth_len_of(&heartbeat) - 4;
            let pad = Chunk::Extension(Box::new(ExtensionChunk::Pad(padding as u16)));
            for chunk in [heartbeat, pad] {
                self.send_control(id, chunk);
            }
            self.sender.on_probe_sent(id, nonce, size);
        }
    }

    /// Handles the timer of the MTU search.
    pub(super) fn on_mtu_timer(&mut self, now: Time, id: PathId) {
        if self.state.sends_heartbeats() {
            self.send_probes(now, id);
        } else {
            self.sender.pause_mtu_search(id);
        }
    }

    /// Reports that the system refused to send a packet of `size` bytes, headers included, on `path`,
    /// because it exceeds the interface's MTU (EMSGSIZE). If it was a probe, the probe has failed. Chunks
    /// are smaller from now on, and the data of the refused packet is detected as lost as usual.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn packet_too_long(&mut self, now: Time, path: PathId, size: u32) {
        self.sender.on_too_long(now, path, size);
        self.follow_reports(now);
    }

    /// Current path MTU estimate of `path`: the largest packet that it carries, bytes, headers included.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_mtu(&self, path: PathId) -> u32 {
        self.sender.paths[path.index()].tx.config.mtu
    }
}
