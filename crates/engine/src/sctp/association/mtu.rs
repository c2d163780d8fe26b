//! Path MTU discovery: probes are HEARTBEATs padded to the probed size (RFC 8899, 6.2; RFC 4820).
//!
//! A probe carries no data, and its loss only shows that it was too long. So it affects neither the error
//! counter nor the window nor the RTT of its path. Only answers count.

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Time};

use super::super::chunk::{Chunk, HeartbeatInfo};
use super::super::extension_chunk::ExtensionChunk;
use super::super::packet::Packet;
use super::{Association, Event};
use crate::congestion::CongestionControl;
use crate::path::PathStatus;

/// Minimum time to wait for the answer to a probe (RFC 8899, 5.1.1: PROBE_TIMER).
const PATIENCE: Duration = Duration::from_secs(1);
/// Packets longer than 1500 B are worthwhile only if the peer's buffer holds so many of them. Otherwise one
/// late chunk occupies a considerable part of the window.
const CHUNKS_IN_BUFFER: u64 = 64;
/// MTU of most links, bytes.
const COMMON: u32 = 1500;

impl Association {
    /// Reports a path's new status, and starts, resumes or pauses its MTU search.
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
        } else if let Some(search) = &mut self.sender.paths[id.index()].mtu {
            search.pause();
        }
        self.settle_sizes();
    }

    /// Starts or resumes the MTU search on a path.
    pub(super) fn search_mtu(&mut self, now: Time, id: PathId) {
        let most = u64::from(COMMON).max(self.sender.outstanding.peer_rwnd / CHUNKS_IN_BUFFER);
        let Some(search) = &mut self.sender.paths[id.index()].mtu else { return };
        if !search.has_begun() {
            search.limit(most.min(u64::from(u32::MAX)) as u32);
        }
        search.resume(now);
        self.probe_if_due(now, id);
    }

    /// The path leads to another address now. Probes are the largest packets that this end sends unrequested,
    /// so the new address gets none before it has answered a HEARTBEAT.
    pub(super) fn forget_mtu(&mut self, now: Time, id: PathId) {
        let Some(search) = &mut self.sender.paths[id.index()].mtu else { return };
        if search.has_begun() {
            search.restart(now);
            search.pause();
            self.settle_sizes();
        }
    }

    /// Sends the probes that are due.
    pub(super) fn probe_if_due(&mut self, now: Time, id: PathId) {
        let patience = self.sender.paths[id.index()].tx.rtt.rto().max(PATIENCE);
        let Some(search) = &mut self.sender.paths[id.index()].mtu else { return };
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
        if let Some(search) = &mut self.sender.paths[id.index()].mtu {
            search.on_asked(nonce, size);
        }
    }

    /// Whether the next control chunk is a probe: a HEARTBEAT followed by padding.
    pub(super) fn probe_is_next(&self) -> bool {
        let padding = |chunk: &Chunk| matches!(chunk, Chunk::Extension(rare) if matches!(**rare, ExtensionChunk::Pad(_)));
        self.control.get(1).is_some_and(|(_, _, chunk)| padding(chunk))
    }

    /// Processes a HEARTBEAT ACK that answers a probe. The nonce identifies the probed path; the size of the
    /// probe is stored here.
    pub(super) fn on_probe_answer(&mut self, now: Time, nonce: u64) {
        let mut paths = self.sender.paths.iter_mut();
        let answers = |path: &mut super::Path| {
            path.mtu.as_mut().is_some_and(|search| search.on_answer(now, nonce).is_some())
        };
        let Some(index) = paths.position(answers) else { return };
        self.probe_if_due(now, PathId::from_index(index));
        self.settle_sizes();
        self.timers_moved = true;
    }

    /// Handles the timer of the MTU search.
    pub(super) fn on_mtu_timer(&mut self, now: Time, id: PathId) {
        if self.state.sends_heartbeats() {
            self.probe_if_due(now, id);
        } else if let Some(search) = &mut self.sender.paths[id.index()].mtu {
            search.pause();
        }
    }

    /// Chunks of up to `largest` bytes were lost on `id`: the path MTU may have become smaller.
    pub(super) fn on_suspected_black_hole(&mut self, now: Time, id: PathId, largest: u32) {
        let below = self.config.lower_header + Packet::HEADER;
        let Some(search) = &mut self.sender.paths[id.index()].mtu else { return };
        if largest + below > search.resort() {
            search.on_lost(now);
        }
    }

    /// A packet with a chunk of `chunk` bytes was delivered on `id`; 0: a HEARTBEAT.
    #[inline]
    pub(super) fn confirm_mtu(&mut self, now: Time, id: PathId, chunk: u32) {
        if self.config.mtu_discovery.is_some() {
            let below = self.config.lower_header + Packet::HEADER;
            let Some(search) = &mut self.sender.paths[id.index()].mtu else { return };
            if search.on_through(now, chunk + below) {
                self.probe_if_due(now, id);
                self.settle_sizes();
            }
        }
    }

    /// Reports that the system refused to send a packet of `size` bytes, headers included, on `path`, because
    /// it exceeds the interface's MTU (EMSGSIZE). If it was a probe, the probe has failed. Data is cut
    /// smaller from now on, and the data of the refused packet is found to be lost as usual.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn packet_too_long(&mut self, now: Time, path: PathId, size: u32) {
        let Some(search) = &mut self.sender.paths[path.index()].mtu else { return };
        search.on_too_long(now, size);
        self.probe_if_due(now, path);
        self.settle_sizes();
        self.timers_moved = true;
    }

    /// Current path MTU estimate of `path`: the largest packet that it carries, bytes, headers included.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_mtu(&self, path: PathId) -> u32 {
        self.sender.paths[path.index()].tx.config.mtu
    }

    /// Applies the results of the searches. New chunks must fit on every path that may carry data (RFC 9260,
    /// 7.3). A path without results waits for the first answer to a probe if another path can carry data
    /// meanwhile. Otherwise all paths would have to send small chunks for a round trip.
    fn settle_sizes(&mut self) {
        let active = |path: &super::Path| path.tx.state.status() == PathStatus::Active;
        let proven = |path: &super::Path| path.mtu.as_ref().is_none_or(|search| search.is_proven());
        let some_proven = self.sender.paths.iter().any(|path| active(path) && proven(path));
        for path in &mut self.sender.paths {
            path.narrow = some_proven && !proven(path);
            if let Some(search) = &path.mtu {
                path.tx.config.mtu = search.current();
            }
        }
        let carries = |path: &&super::Path| active(path) && !path.narrow;
        let smallest =
            self.sender.paths.iter().filter(carries).map(|path| path.tx.config.mtu).min();
        self.sender.views.clear();
        self.sender.drained = false;
        if let Some(mtu) = smallest {
            self.cut_for(self.config.chunk_within(mtu));
        }
    }

    /// Whether the path MTU of any path has been confirmed.
    pub(super) fn any_proven(&self) -> bool {
        self.sender
            .paths
            .iter()
            .any(|path| path.mtu.as_ref().is_some_and(|search| search.is_proven()))
    }

    fn cut_for(&mut self, chunk_limit: u32) {
        if chunk_limit == self.sender.outstanding.chunk_limit {
            return;
        }
        self.sender.outstanding.chunk_limit = chunk_limit;
        self.sender.outstanding.queue.cut_for(chunk_limit);
        self.sender.congestion.set_unit(u64::from(chunk_limit));
        // Positions in the queue refer to other chunks now.
        self.sender.epoch += 1;
    }

    /// Room for a SACK on `path`, bytes: a whole packet, or with `sack.within_base` no more than the base
    /// MTU.
    pub(super) fn sack_room(&self, path: PathId) -> u32 {
        let room = self.packet_room(path);
        if self.config.sack.within_base { self.within_base(room) } else { room }
    }

    /// Room that the peer has for a SACK, bytes: at least the base MTU. Its own path MTU estimates are
    /// unknown.
    pub(super) fn peer_sack_room(&self) -> u32 {
        self.within_base(self.packet_room(PathId(0)))
    }

    fn within_base(&self, room: u32) -> u32 {
        let Some(range) = &self.config.mtu_discovery else { return room };
        room.min(range.base - self.config.lower_header - Packet::HEADER)
    }

    /// Whether the answer to a HEARTBEAT fits into a packet of `path`.
    pub(super) fn fits_answer(&self, path: PathId, info: &Bytes) -> bool {
        info.len() as u32 + 8 <= self.packet_room(path)
    }
}
