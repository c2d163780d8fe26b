//! Path MTU discovery (RFC 8899): the sizes to probe, and the effect of results on the size of chunks.
//!
//! A probe carries no data, and its loss only shows that it was too long. So it affects neither the error
//! counter nor the window nor the RTT of its path. Only answers count.

use ropewalk_base::{Duration, PathId, Time};
use smallvec::SmallVec;

use super::{ChunkSizes, Path, Sender, TxConfig};
use crate::congestion::CongestionControl;
use crate::path::PathStatus;
use crate::sctp::packet::PacketForm;

/// Minimum time to wait for the answer to a probe (RFC 8899, 5.1.1: PROBE_TIMER).
const PATIENCE: Duration = Duration::from_secs(1);
/// Minimum number of packets longer than 1500 B that the peer's buffer must hold before such packets are
/// used. With fewer, one late chunk occupies a considerable part of the window.
const CHUNKS_IN_BUFFER: u64 = 64;
/// MTU of most links, bytes.
const COMMON: u32 = 1500;

impl Sender {
    /// Resumes or pauses the search after the path's status has changed.
    pub fn follow_status(&mut self, now: Time, id: PathId) {
        if !self.outstanding.config.discovers_mtu() {
            return;
        }
        if self.paths[id.index()].tx.state.status() == PathStatus::Active {
            self.search_mtu(now, id);
        } else {
            self.pause_mtu_search(id);
        }
        self.apply_mtu_results();
    }

    /// Pauses the search on a path that has failed, or at the end of the association.
    pub fn pause_mtu_search(&mut self, id: PathId) {
        if let Some(search) = &mut self.paths[id.index()].mtu {
            search.pause();
            self.outstanding.deadline.invalidate();
        }
    }

    /// Starts or resumes the search on a path. [`Sender::sizes_to_probe`] returns the probes to send.
    pub fn search_mtu(&mut self, now: Time, id: PathId) {
        let most = u64::from(COMMON).max(self.outstanding.peer_rwnd / CHUNKS_IN_BUFFER);
        let Some(search) = &mut self.paths[id.index()].mtu else { return };
        if !search.has_begun() {
            search.limit(most.min(u64::from(u32::MAX)) as u32);
        }
        search.resume(now);
        self.outstanding.deadline.invalidate();
    }

    /// Called when the path leads to another address. Probes are the largest packets that this end sends unrequested,
    /// so the new address gets none before it has answered a HEARTBEAT.
    pub fn forget_mtu(&mut self, now: Time, id: PathId) {
        let Some(search) = &mut self.paths[id.index()].mtu else { return };
        if search.has_begun() {
            search.restart(now);
            search.pause();
            self.outstanding.deadline.invalidate();
            self.apply_mtu_results();
        }
    }

    /// Sizes of the probes that are due, bytes, headers included. [`Sender::on_probe_sent`] follows for each.
    pub fn sizes_to_probe(&mut self, now: Time, id: PathId) -> SmallVec<[u32; 3]> {
        let patience = self.paths[id.index()].tx.rtt.rto().max(PATIENCE);
        let Some(search) = &mut self.paths[id.index()].mtu else { return SmallVec::new() };
        if search.deadline().is_none_or(|at| at > now) {
            return SmallVec::new();
        }
        let before = search.current();
        let sizes = search.sizes_due(now, patience);
        let changed = search.current() != before;
        self.outstanding.deadline.invalidate();
        if changed {
            self.apply_mtu_results();
        }
        sizes
    }

    /// Records that a probe of `size` bytes with this nonce is sent.
    pub fn on_probe_sent(&mut self, id: PathId, nonce: u64, size: u32) {
        if let Some(search) = &mut self.paths[id.index()].mtu {
            search.on_probe_sent(nonce, size);
        }
    }

    /// Processes the answer to a probe, and returns the path that was probed. The nonce identifies it; the
    /// size of the probe is stored here.
    pub fn on_probe_answer(&mut self, now: Time, nonce: u64) -> Option<PathId> {
        let answers = |path: &mut Path| {
            path.mtu.as_mut().is_some_and(|search| search.on_answer(now, nonce).is_some())
        };
        let index = self.paths.iter_mut().position(answers)?;
        self.apply_mtu_results();
        self.outstanding.deadline.invalidate();
        Some(PathId::from_index(index))
    }

    /// Chunks of up to `largest` bytes were lost on `id`: the path MTU may have become smaller.
    pub(super) fn on_suspected_black_hole(&mut self, now: Time, id: PathId, largest: u32) {
        let size = self.outstanding.config.packet_size(largest);
        let Some(search) = &mut self.paths[id.index()].mtu else { return };
        if size > search.fallback_size() {
            search.on_lost(now);
        }
    }

    /// A packet with a chunk of `chunk` bytes, or with a HEARTBEAT if `chunk` is 0, was delivered on
    /// `id`.
    #[inline]
    pub fn confirm_mtu(&mut self, now: Time, id: PathId, chunk: u32) {
        if self.outstanding.config.discovers_mtu() {
            let size = self.outstanding.config.packet_size(chunk);
            let Some(search) = &mut self.paths[id.index()].mtu else { return };
            if search.on_through(now, size) {
                self.apply_mtu_results();
                self.outstanding.reports.mtu = self.outstanding.reports.mtu.with(id);
            }
        }
    }

    /// The system refused to send a packet of `size` bytes, headers included, on `id` (EMSGSIZE).
    pub fn on_too_long(&mut self, now: Time, id: PathId, size: u32) {
        let Some(search) = &mut self.paths[id.index()].mtu else { return };
        search.on_too_long(now, size);
        self.apply_mtu_results();
        self.outstanding.deadline.invalidate();
        self.outstanding.reports.mtu = self.outstanding.reports.mtu.with(id);
    }

    /// Applies the results of the searches. New chunks must fit on every path that may carry data (RFC
    /// 9260, 7.3). If another path can carry data in the meantime, a path without results waits for the
    /// first answer to a probe. Otherwise all paths would have to send small chunks for a round trip.
    fn apply_mtu_results(&mut self) {
        let active = |path: &Path| path.tx.state.status() == PathStatus::Active;
        let proven = |path: &Path| path.mtu.as_ref().is_none_or(|search| search.is_confirmed());
        let some_proven = self.paths.iter().any(|path| active(path) && proven(path));
        for path in &mut self.paths {
            path.mtu_unknown = some_proven && !proven(path);
            if let Some(search) = &path.mtu {
                path.tx.config.mtu = search.current();
            }
        }
        let carries = |path: &&Path| active(path) && !path.mtu_unknown;
        let smallest = self.paths.iter().filter(carries).map(|path| path.tx.config.mtu).min();
        self.discard_views();
        if let Some(mtu) = smallest {
            self.cut_for(mtu);
        }
    }

    /// Whether the path MTU of any path has been confirmed.
    pub fn any_mtu_confirmed(&self) -> bool {
        self.paths.iter().any(|path| path.mtu.as_ref().is_some_and(|search| search.is_confirmed()))
    }

    fn cut_for(&mut self, mtu: u32) {
        self.use_sizes(self.outstanding.config.chunk_sizes(mtu));
    }

    /// Sizes chunks for the packets of the smallest path, after a change of the reserved part.
    pub fn cut_to_paths(&mut self) {
        if let Some(mtu) = self.paths.iter().map(|path| path.tx.config.mtu).min() {
            self.cut_for(mtu);
        }
    }

    /// Selects I-DATA or DATA for messages, depending on the configuration. Called before anything has
    /// been sent.
    pub fn settle_interleaving(&mut self) {
        let TxConfig { interleaves, form, .. } = self.outstanding.config;
        let compact = form == PacketForm::Compact;
        self.outstanding.queue.interleave(interleaves, compact);
        self.use_sizes(self.outstanding.queue.sizes().interleaved(interleaves, compact));
    }

    fn use_sizes(&mut self, sizes: ChunkSizes) {
        if sizes == self.outstanding.queue.sizes() {
            return;
        }
        self.outstanding.queue.cut_for(sizes);
        self.congestion.set_unit(u64::from(self.outstanding.chunk_limit()));
        // Positions in the queue refer to other chunks now.
        self.epoch += 1;
    }

    /// Room for chunks in a packet on `path` without DATA, bytes.
    #[inline]
    pub fn packet_room(&self, path: PathId) -> u32 {
        self.paths[path.index()].tx.config.mtu - self.outstanding.config.headers
    }

    /// Room for chunks in a packet on `path` with DATA, bytes.
    #[inline]
    pub fn data_room(&self, path: PathId) -> u32 {
        self.paths[path.index()].tx.config.mtu - self.outstanding.config.data_headers
    }

    /// Room for a SACK of the peer, bytes: at least the base MTU. The peer's own path MTU estimates are
    /// unknown.
    pub(super) fn peer_sack_room(&self) -> u32 {
        self.within_base(self.packet_room(PathId(0)))
    }

    /// `room`, but no more than in a packet of the base MTU.
    pub fn within_base(&self, room: u32) -> u32 {
        let Some(range) = &self.outstanding.config.mtu_discovery else { return room };
        room.min(range.base - self.outstanding.config.headers)
    }
}
