//! Path MTU discovery: probes are HEARTBEATs padded to the size in question (RFC 8899, 6.2; RFC 4820).
//!
//! A probe carries no data, and that one is lost says nothing but that it was too long: neither the error
//! counter of its path nor its window nor its round trip learn of it. Only the answers count.

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Time};

use super::super::chunk::{Chunk, HeartbeatInfo};
use super::super::extension_chunk::ExtensionChunk;
use super::super::packet::Packet;
use super::{Association, Event};
use crate::congestion::CongestionControl;
use crate::path::PathStatus;

/// How long an answer to a probe is awaited at least (RFC 8899, 5.1.1: PROBE_TIMER).
const PATIENCE: Duration = Duration::from_secs(1);
/// Chunks of more than what most links carry are worth their while where the peer's buffer holds so
/// many of them: with few, a chunk that is late keeps a good part of the window.
const CHUNKS_IN_BUFFER: u64 = 64;
/// What most links carry.
const COMMON: u32 = 1500;

impl Association {
    /// Tells of a path's new status, and has its search begin, go on or rest.
    pub(super) fn path_changed(&mut self, now: Time, id: PathId, status: PathStatus) {
        if self.config.mtu_discovery.is_some() {
            self.follow_status(now, id, status);
        }
        self.push_event(Event::PathChanged(id, status));
    }

    #[cold]
    fn follow_status(&mut self, now: Time, id: PathId, status: PathStatus) {
        if status == PathStatus::Active {
            self.search_mtu(now, id);
        } else if let Some(search) = &mut self.paths[id.index()].mtu {
            search.pause();
        }
        self.settle_sizes();
    }

    /// The search on a path may begin, or go on.
    pub(super) fn search_mtu(&mut self, now: Time, id: PathId) {
        let most = u64::from(COMMON).max(self.outstanding.peer_rwnd / CHUNKS_IN_BUFFER);
        let Some(search) = &mut self.paths[id.index()].mtu else { return };
        if !search.has_begun() {
            search.limit(most.min(u64::from(u32::MAX)) as u32);
        }
        search.resume(now);
        self.probe_if_due(now, id);
    }

    /// The path leads elsewhere now. Probes are the largest packets that this end sends without being
    /// asked, so the new address gets none before it has answered a HEARTBEAT.
    pub(super) fn forget_mtu(&mut self, now: Time, id: PathId) {
        let Some(search) = &mut self.paths[id.index()].mtu else { return };
        if search.has_begun() {
            search.restart(now);
            search.pause();
            self.settle_sizes();
        }
    }

    /// Probes that are due.
    pub(super) fn probe_if_due(&mut self, now: Time, id: PathId) {
        let patience = self.paths[id.index()].tx.rtt.rto().max(PATIENCE);
        let Some(search) = &mut self.paths[id.index()].mtu else { return };
        if search.deadline().is_none_or(|at| at > now) {
            return;
        }
        let before = search.current();
        let sizes = search.sizes_due(now, patience);
        let changed = search.current() != before;
        for size in sizes {
            self.push_probe(now, id, size);
        }
        self.timers_moved = true;
        if changed {
            self.settle_sizes();
        }
    }

    fn push_probe(&mut self, now: Time, id: PathId, size: u32) {
        let nonce = self.nonce();
        let info = HeartbeatInfo { nonce, sent: now, probe: Some(size) };
        let heartbeat = Chunk::Heartbeat(info.to_bytes());
        let room = (size - self.config.lower_header - Packet::HEADER) / 4 * 4;
        let padding = room - heartbeat.wire_len() - 4;
        let pad = Chunk::Extension(Box::new(ExtensionChunk::Pad(padding as u16)));
        let tag = self.peer_tag;
        self.control.extend([heartbeat, pad].map(|chunk| (id, tag, chunk)));
        if let Some(search) = &mut self.paths[id.index()].mtu {
            search.on_asked(nonce, size);
        }
    }

    /// Whether the next thing to leave is a probe: a HEARTBEAT with padding behind it.
    pub(super) fn probe_is_next(&self) -> bool {
        let padding = |chunk: &Chunk| matches!(chunk, Chunk::Extension(rare) if matches!(**rare, ExtensionChunk::Pad(_)));
        self.control.get(1).is_some_and(|(_, _, chunk)| padding(chunk))
    }

    /// A HEARTBEAT ACK that says that it answers a probe. The nonce names the path that was probed; the
    /// size of the probe is known here.
    pub(super) fn on_probe_answer(&mut self, now: Time, nonce: u64) {
        let mut paths = self.paths.iter_mut();
        let answers = |path: &mut super::Path| {
            path.mtu.as_mut().is_some_and(|search| search.on_answer(now, nonce).is_some())
        };
        let Some(index) = paths.position(answers) else { return };
        self.probe_if_due(now, PathId::from_index(index));
        self.settle_sizes();
        self.timers_moved = true;
    }

    /// The search's deadline has come.
    pub(super) fn on_mtu_timer(&mut self, now: Time, id: PathId) {
        if self.state.sends_heartbeats() {
            self.probe_if_due(now, id);
        } else if let Some(search) = &mut self.paths[id.index()].mtu {
            search.pause();
        }
    }

    /// Chunks of up to `largest` bytes were lost on `id`.
    pub(super) fn on_suspected_black_hole(&mut self, now: Time, id: PathId, largest: u32) {
        let below = self.config.lower_header + Packet::HEADER;
        let Some(search) = &mut self.paths[id.index()].mtu else { return };
        if largest + below > search.resort() {
            search.on_lost(now);
        }
    }

    /// A packet with a chunk of so many bytes got through on `id`; 0: a HEARTBEAT.
    #[inline]
    pub(super) fn confirm_mtu(&mut self, now: Time, id: PathId, chunk: u32) {
        if self.config.mtu_discovery.is_some() {
            let below = self.config.lower_header + Packet::HEADER;
            let Some(search) = &mut self.paths[id.index()].mtu else { return };
            if search.on_through(now, chunk + below) {
                self.probe_if_due(now, id);
                self.settle_sizes();
            }
        }
    }

    /// The system would not send a packet of `size` bytes, headers included, on `path`: it is longer than what
    /// the interface carries (EMSGSIZE). A probe has failed; data has to be cut smaller, and what was in
    /// that packet is found to be lost as usual.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn packet_too_long(&mut self, now: Time, path: PathId, size: u32) {
        let Some(search) = &mut self.paths[path.index()].mtu else { return };
        search.on_too_long(now, size);
        self.probe_if_due(now, path);
        self.settle_sizes();
        self.timers_moved = true;
    }

    /// Bytes of the largest packet that `path` is taken to carry, headers included.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_mtu(&self, path: PathId) -> u32 {
        self.paths[path.index()].tx.config.mtu
    }

    /// What the searches know becomes what is sent. New chunks fit on every path that may carry data
    /// (RFC 9260, 7.3); a path of which nothing is known yet waits until one of its probes is answered, if
    /// another one can carry data meanwhile: all would have to send small chunks for a round trip.
    fn settle_sizes(&mut self) {
        let active = |path: &super::Path| path.tx.state.status() == PathStatus::Active;
        let proven = |path: &super::Path| path.mtu.as_ref().is_none_or(|search| search.is_proven());
        let some_proven = self.paths.iter().any(|path| active(path) && proven(path));
        for path in &mut self.paths {
            path.narrow = some_proven && !proven(path);
            if let Some(search) = &path.mtu {
                path.tx.config.mtu = search.current();
            }
        }
        let carries = |path: &&super::Path| active(path) && !path.narrow;
        let smallest = self.paths.iter().filter(carries).map(|path| path.tx.config.mtu).min();
        self.sender.views.clear();
        self.sender.drained = false;
        if let Some(mtu) = smallest {
            self.cut_for(self.config.chunk_within(mtu));
        }
    }

    /// Whether anything is known of any path.
    pub(super) fn any_proven(&self) -> bool {
        self.paths.iter().any(|path| path.mtu.as_ref().is_some_and(|search| search.is_proven()))
    }

    fn cut_for(&mut self, chunk_limit: u32) {
        if chunk_limit == self.outstanding.chunk_limit {
            return;
        }
        self.outstanding.chunk_limit = chunk_limit;
        self.outstanding.queue.cut_for(chunk_limit);
        self.sender.congestion.set_unit(u64::from(chunk_limit));
        // Positions in the queue mean other chunks now.
        self.sender.epoch += 1;
    }

    /// Room for a SACK on `path`: all of a packet, or no more than any path is taken to carry.
    pub(super) fn sack_room(&self, path: PathId) -> u32 {
        let room = self.packet_room(path);
        if self.config.sack.within_base { self.within_base(room) } else { room }
    }

    /// Room that the peer has for a SACK, as far as is known: what it takes its paths to carry is its own affair.
    pub(super) fn peer_sack_room(&self) -> u32 {
        self.within_base(self.packet_room(PathId(0)))
    }

    fn within_base(&self, room: u32) -> u32 {
        let Some(range) = &self.config.mtu_discovery else { return room };
        room.min(range.base - self.config.lower_header - Packet::HEADER)
    }

    /// Whether a HEARTBEAT of the peer is to be answered: its answer has to fit.
    pub(super) fn fits_answer(&self, path: PathId, info: &Bytes) -> bool {
        info.len() as u32 + 8 <= self.packet_room(path)
    }
}
