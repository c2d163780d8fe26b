//! Path management for drivers of real sockets: paths that are added during an association, and changes
//! that are not signalled by packets.

use ropewalk_base::{PathId, Serial32, Time};

use super::super::config::PathConfig;
use super::super::tx::{ChunkSizes, Path};
use super::super::wire::compact;
use super::{Association, CloseReason, State};
use crate::congestion::CongestionControl;
use crate::path::{PathStatus, PathUse};

impl Association {
    /// Maximum number of paths of an association.
    pub const PATHS_LIMIT: usize = 16;
    /// Stands for an address that no path leads to. No association has a path with this number while it
    /// has fewer than [`Association::PATHS_LIMIT`].
    pub const NO_PATH: PathId = PathId(Self::PATHS_LIMIT as u8 - 1);

    /// Number of streams on which messages may be sent: the smaller of both ends' limits.
    pub const fn outbound_streams(&self) -> u16 {
        self.sender.outstanding.streams
    }

    /// Number of streams on which the peer may send: the smaller of both ends' limits, and those added since.
    pub const fn inbound_streams(&self) -> u16 {
        self.receiver.streams()
    }

    /// Length of the largest message that fits into one packet, bytes. Before the first path MTU is
    /// confirmed, the estimate assumes an MTU of 1500 bytes, which nearly all paths turn out to carry.
    pub fn largest_payload(&self) -> u32 {
        self.chunk_sizes().payload
    }

    /// Length of the largest datagram that fits into one packet, bytes: an unordered message on stream 0
    /// without a payload protocol identifier. Otherwise like [`Association::largest_payload`].
    pub fn largest_datagram(&self) -> u32 {
        self.chunk_sizes().datagram
    }

    fn chunk_sizes(&self) -> ChunkSizes {
        let outstanding = &self.sender.outstanding;
        match &self.config.mtu_discovery {
            Some(range) if !self.sender.any_mtu_confirmed() => {
                outstanding.config.chunk_sizes(range.most.min(1500))
            }
            _ => outstanding.queue.sizes(),
        }
    }

    /// Context for decoding packets of the peer in the compact form.
    #[inline]
    pub fn compact_context(&self) -> compact::Context {
        let near = Serial32::wrap(self.receiver.buffer.cumulative());
        compact::Context { tag: self.handshake.local_tag, near }
    }

    /// Number of paths.
    pub const fn path_count(&self) -> usize {
        self.sender.paths.len()
    }

    /// Status of a path.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_status(&self, path: PathId) -> PathStatus {
        self.sender.paths[path.index()].tx.state.status()
    }

    /// Whether a SACK that is due would advertise clearly less room now than after the user has read the
    /// newest data. Only with a small receive buffer.
    pub const fn sack_is_early(&self) -> bool {
        let buffer = &self.receiver.buffer;
        self.sender.is_small(buffer.capacity())
            && buffer.ready_bytes() > 0
            && self.receiver.acks.is_due()
    }

    /// Whether any data has been sent or received, or is queued.
    pub fn has_carried_data(&self) -> bool {
        let sent = self.sender.outstanding.has_sent();
        let buffer = &self.receiver.buffer;
        let next = buffer.cumulative().wrapping_add(1) as u32;
        let received = self.receiver.first().is_some_and(|first| first.0 != next);
        sent || received || !self.sender.outstanding.queue.is_empty() || !buffer.beyond().is_empty()
    }

    /// Ends the association without sending anything, because the driver knows that the peer is gone.
    pub fn peer_is_gone(&mut self) {
        if !matches!(self.state, State::Ended(_)) {
            self.close(CloseReason::Unreachable);
        }
    }

    /// Sends an INIT now if the association has not started, because the layer below has become ready.
    pub fn open(&mut self, now: Time) {
        if matches!(self.state, State::Closed) {
            self.begin(now);
        }
    }

    /// Adds a path. A HEARTBEAT has to confirm it before it carries data (RFC 9260, 5.4). Returns `None`
    /// if there are [`Association::PATHS_LIMIT`] already.
    ///
    /// # Panics
    /// Without path MTU discovery, if its packets are smaller than those of the existing paths, for which
    /// chunks have already been sized.
    pub fn add_path(&mut self, now: Time, path: PathConfig) -> Option<PathId> {
        let id = self.place_path(path)?;
        if self.state.sends_heartbeats() {
            self.validate_path(now, id);
        }
        Some(id)
    }

    /// Adds a path from an address of this end that the peer does not know yet. Until
    /// [`Association::validate_path`] is called, only an ASCONF that is not answered elsewhere is sent
    /// there (RFC 5061, 5.3).
    ///
    /// # Panics
    /// Like [`Association::add_path`].
    pub fn add_announcing_path(&mut self, path: PathConfig) -> Option<PathId> {
        let id = self.place_path(path)?;
        self.sender.paths[id.index()].announcing = true;
        Some(id)
    }

    /// Marks a path whose former address is gone and which now starts at an address of this end that the
    /// peer does not know yet. Like [`Association::add_announcing_path`].
    ///
    /// # Panics
    /// If there is no such path.
    pub fn announce_from(&mut self, now: Time, path: PathId) {
        self.path_lost(now, path);
        self.sender.paths[path.index()].announcing = true;
        self.control.heartbeats.stop_path(path);
    }

    /// Whether the path starts at an address of this end that the peer does not know yet.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn is_announcing(&self, path: PathId) -> bool {
        self.sender.paths[path.index()].announcing
    }

    /// Adds a path, or reuses the number of a retired one.
    fn place_path(&mut self, path: PathConfig) -> Option<PathId> {
        if let Some(id) = self.replace_retired(path) {
            return Some(id);
        }
        if self.sender.paths.len() >= Self::PATHS_LIMIT {
            return None;
        }
        let id = PathId::from_index(self.sender.paths.len());
        self.config.paths.push(path);
        assert!(
            self.config.mtu_discovery.is_some()
                || self.sender.outstanding.config.chunk_within(self.config.least_mtu())
                    == self.sender.outstanding.chunk_limit(),
            "chunks are cut for larger packets"
        );
        self.sender.paths.push(Path::new(&path, &self.config));
        let fresh = self.fresh_congestion(self.sender.outstanding.peer_rwnd);
        self.sender.congestion.grow(fresh);
        self.sender.extend_bottlenecks();
        self.sender.congestion.set_unit(u64::from(self.sender.outstanding.chunk_limit()));
        self.sender.paths[id.index()].learned = true;
        self.sender.paths[id.index()].ecn = self.handshake.new_ecn();
        self.receiver.acks.add_path();
        self.control.heartbeats.add_path();
        self.sender.discard_views();
        self.sender.epoch += 1;
        Some(id)
    }

    /// Assigns the number of a retired path to a new one.
    fn replace_retired(&mut self, path: PathConfig) -> Option<PathId> {
        let free = |path: &Path| path.retired && path.tx.flights.is_empty();
        let id = PathId::from_index(self.sender.paths.iter().position(free)?);
        self.config.paths[id.index()] = path;
        let ecn = self.handshake.new_ecn();
        let fresh = Path { learned: true, ecn, ..Path::new(&path, &self.config) };
        let old = core::mem::replace(&mut self.sender.paths[id.index()], fresh);
        // Records refer to the path by its number, both for data in flight there and for data that the
        // peer holds.
        let tx = &mut self.sender.paths[id.index()].tx;
        (tx.counters, tx.held, tx.flights) = (old.tx.counters, old.tx.held, old.tx.flights);
        self.control.heartbeats.stop_path(id);
        self.sender.outstanding.deadline.invalidate();
        self.sender.epoch += 1;
        self.reset_congestion(id);
        Some(id)
    }

    /// Whether the path's address was removed, so that nothing is sent there.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn is_retired(&self, path: PathId) -> bool {
        self.sender.paths[path.index()].retired
    }

    /// Ends the use of a path whose address was removed. All data in flight there counts as lost
    /// immediately, and nothing more is sent on it. The next path that is added takes its number.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn retire_path(&mut self, now: Time, path: PathId) {
        self.path_lost(now, path);
        self.set_path_use(path, PathUse::Never, u32::MAX);
        self.control.heartbeats.stop_path(path);
        self.control.queue.renumber(|one| (one != path).then_some(one));
        self.leave_source(path);
        self.sender.paths[path.index()].retired = true;
        if self.sender.outstanding.primary == path {
            self.set_primary(self.sender.best_path());
        }
    }

    /// Sets whether the path's address is an IPv6 address. It determines the initial window (RFC 9260, 7.2.1)
    /// when the path starts over ([`Association::validate_path`]).
    ///
    /// # Panics
    /// If there is no such path.
    pub fn set_ipv6(&mut self, path: PathId, ipv6: bool) {
        self.configure_path(path, |config| config.ipv6 = ipv6);
    }

    /// Sets when this path carries data, and what a byte on it costs. Data in flight stays in flight.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn set_path_use(&mut self, path: PathId, usage: PathUse, cost: u32) {
        let PathConfig { usage: old, cost: old_cost, .. } = self.config.paths[path.index()];
        if (old, old_cost) == (usage, cost) {
            return;
        }
        self.configure_path(path, |config| (config.usage, config.cost) = (usage, cost));
        self.sender.discard_views();
        self.sender.epoch += 1;
    }

    /// Changes the configuration of a path, immediately and for a restart of the association.
    pub(super) fn configure_path(&mut self, path: PathId, change: impl Fn(&mut PathConfig)) {
        change(&mut self.config.paths[path.index()]);
        change(&mut self.sender.paths[path.index()].tx.config);
    }

    /// Sends a HEARTBEAT on this path immediately, because its address changed or packets arrive from it
    /// again.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn validate_path(&mut self, now: Time, path: PathId) {
        self.sender.paths[path.index()].announcing = false;
        if self.state.sends_heartbeats() {
            // Immediately rather than by the timer: until then, SACKs may arrive for data sent to the old
            // address, and so may the answer to a HEARTBEAT in flight there.
            self.control.heartbeats.force(path);
            self.sender.forget_mtu(now, path);
            self.heartbeat_due(now, path);
            self.reset_congestion(path);
            // A deadline of now makes the driver poll even if no packet causes it to.
            self.control.heartbeats.set_due(path, now);
        }
    }

    /// Restarts the congestion control of a path, because its route or the DSCP of its packets has
    /// changed (RFC 9260, 7.2.5).
    ///
    /// # Panics
    /// If there is no such path.
    pub fn reset_congestion(&mut self, path: PathId) {
        let fresh = self.fresh_congestion(self.sender.outstanding.peer_rwnd);
        self.sender.congestion.renew(path, fresh);
        self.sender.forget_bottleneck(path);
        self.sender.congestion.set_unit(u64::from(self.sender.outstanding.chunk_limit()));
        self.sender.discard_views();
    }

    /// Reports that nothing can be sent on this path because its interface is gone. All data in flight
    /// there counts as lost immediately, and the path is inactive until a HEARTBEAT is answered.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_lost(&mut self, now: Time, path: PathId) {
        if !self.state.is_up() || self.path_status(path) == PathStatus::Inactive {
            return;
        }
        if !self.sender.paths[path.index()].tx.flights.is_empty() {
            self.on_t3(now, path);
        }
        self.sender.paths[path.index()].tx.state.fail();
        let due =
            now + self.control.heartbeats.first_probe_after(&self.sender.paths[path.index()].tx);
        self.control.heartbeats.set_due(path, due);
        self.sender.outstanding.deadline.invalidate();
        self.sender.invalidate_views();
        self.sender.epoch += 1;
        self.path_changed(now, path);
    }
}
