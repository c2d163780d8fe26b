//! What a driver on real paths asks for: paths that come while the association is up, and news of them
//! that no packet brings.

use ropewalk_base::{PathId, Time};

use super::super::chunk::Data;
use super::super::config::PathConfig;
use super::path::Path;
use super::{Association, CloseReason, State};
use crate::congestion::CongestionControl;
use crate::path::PathStatus;

impl Association {
    /// Most paths of one association.
    pub const PATHS_LIMIT: usize = 16;
    /// Stands for an address to which no path leads: no association gets a path with this number as long as there are
    /// fewer than [`Association::PATHS_LIMIT`].
    pub const NO_PATH: PathId = PathId(Self::PATHS_LIMIT as u8 - 1);

    /// Streams on which messages may be sent: what both ends allow.
    pub const fn outbound_streams(&self) -> u16 {
        self.outbound_streams
    }

    /// Bytes of the largest message that travels in one packet. As long as nothing is known of any path, it
    /// is what nearly all of them turn out to carry after a round trip.
    pub fn largest_payload(&self) -> u32 {
        let chunk = match &self.config.mtu_discovery {
            Some(range) if !self.any_proven() => self.config.chunk_within(range.most.min(1500)),
            _ => self.outstanding.chunk_limit,
        };
        chunk - Data::HEADER
    }

    /// How many paths there are.
    pub const fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// Status of a path.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_status(&self, path: PathId) -> PathStatus {
        self.paths[path.index()].tx.state.status()
    }

    /// Whether a SACK that leaves now would tell the peer of clearly less room than there will be once the user
    /// has read what has just come: it is due, and the receive buffer small.
    pub const fn sack_is_early(&self) -> bool {
        let buffer = &self.inbound.buffer;
        self.is_small(buffer.capacity()) && buffer.ready_bytes() > 0 && self.inbound.is_due()
    }

    /// Where a SACK or an ERROR goes that answers a packet of `path`. RFC 9260, 5.4: to an UNCONFIRMED
    /// address an endpoint MUST NOT send other chunks than HEARTBEAT, HEARTBEAT ACK and those of the
    /// handshake; and an inactive path would lose it.
    #[inline]
    pub(super) fn reply_path(&self, path: PathId) -> PathId {
        match self.path_status(path) {
            PathStatus::Active | PathStatus::PotentiallyFailed => path,
            PathStatus::Unconfirmed | PathStatus::Inactive => self.control_path(),
        }
    }

    /// Whether the peer has proved any of its addresses: until then nothing answers its data.
    #[inline]
    pub(super) fn has_confirmed_path(&self) -> bool {
        self.paths.iter().any(|path| path.tx.state.status() != PathStatus::Unconfirmed)
    }

    /// Whether a message, or a part of one, has travelled or waits, in either direction.
    pub fn has_carried_data(&self) -> bool {
        let sent = self.outstanding.has_sent();
        let buffer = &self.inbound.buffer;
        let next = buffer.cumulative().wrapping_add(1) as u32;
        let received = self.inbound.first.is_some_and(|first| first.0 != next);
        sent || received || !self.outstanding.queue.is_empty() || !buffer.beyond().is_empty()
    }

    /// The driver knows that the peer is gone. Nothing is sent.
    pub fn peer_is_gone(&mut self) {
        if !matches!(self.state, State::Ended(_)) {
            self.close(CloseReason::Unreachable);
        }
    }

    /// Sends an INIT now, if the association has not begun yet: what lies below has become ready.
    pub fn open(&mut self, now: Time) {
        if matches!(self.state, State::Closed) {
            self.begin(now);
        }
    }

    /// One more path, to be proved by a heartbeat before it carries data (RFC 9260, 5.4). None if there are
    /// [`Association::PATHS_LIMIT`] already.
    ///
    /// # Panics
    /// Without path MTU discovery, if its packets are smaller than those of the paths that exist: chunks have
    /// been cut for these.
    pub fn add_path(&mut self, now: Time, path: PathConfig) -> Option<PathId> {
        if self.paths.len() >= Self::PATHS_LIMIT {
            return None;
        }
        let id = PathId::from_index(self.paths.len());
        self.config.paths.push(path);
        assert!(
            self.config.mtu_discovery.is_some()
                || self.config.chunk_limit() == self.outstanding.chunk_limit,
            "chunks are cut for larger packets"
        );
        self.paths.push(Path::new(&path, &self.config));
        let fresh = self.config.start_congestion(self.outstanding.peer_rwnd);
        self.sender.congestion.grow(fresh);
        self.sender.congestion.set_unit(u64::from(self.outstanding.chunk_limit));
        self.paths[id.index()].learned = true;
        self.paths[id.index()].ecn = self.fresh_ecn();
        self.inbound.add_path();
        self.sender.views.clear();
        self.sender.drained = false;
        self.sender.epoch += 1;
        if self.state.sends_heartbeats() {
            self.prove(now, id);
        }
        Some(id)
    }

    /// The address to which this path leads is one of IPv6, or is not: it decides about the initial window (RFC 9260,
    /// 7.2.1) when the path starts over ([`Association::prove`]).
    ///
    /// # Panics
    /// If there is no such path.
    pub fn set_ipv6(&mut self, path: PathId, ipv6: bool) {
        self.configure_path(path, |config| config.ipv6 = ipv6);
    }

    /// Changes what is configured for a path: for the path as it is, and for when it starts over.
    pub(super) fn configure_path(&mut self, path: PathId, change: impl Fn(&mut PathConfig)) {
        change(&mut self.config.paths[path.index()]);
        change(&mut self.paths[path.index()].tx.config);
    }

    /// Asks the peer on this path at once whether it is there: its address changed, or packets come from
    /// it again.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn prove(&mut self, now: Time, path: PathId) {
        if self.state.sends_heartbeats() {
            let heartbeat = &mut self.paths[path.index()].heartbeat;
            // At once, and not by the timer: until then SACKs may come for what was sent where the path
            // led before, and so may the answer to a HEARTBEAT that is on its way there.
            (heartbeat.pending, heartbeat.forced) = (None, true);
            self.forget_mtu(now, path);
            self.heartbeat_due(now, path);
            self.renew_congestion(path);
            // And the driver is to look for it, if no packet has it drain this end anyway.
            self.paths[path.index()].heartbeat.due = Some(now);
            self.timers_moved = true;
        }
    }

    /// RFC 9260, 7.2.5.2: where the route to an address has changed, its congestion control parameters MUST be reset.
    fn renew_congestion(&mut self, path: PathId) {
        let fresh = self.config.start_congestion(self.outstanding.peer_rwnd);
        self.sender.congestion.renew(path, fresh);
        self.sender.congestion.set_unit(u64::from(self.outstanding.chunk_limit));
        self.sender.views.clear();
        self.sender.drained = false;
    }

    /// The driver knows that nothing can leave on this path: its interface is gone. What is on its way
    /// there is given up at once, and the path counts as failed until a heartbeat is answered.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_lost(&mut self, now: Time, path: PathId) {
        if !self.state.is_up() || self.path_status(path) == PathStatus::Inactive {
            return;
        }
        if !self.paths[path.index()].tx.flights.is_empty() {
            self.on_t3(now, path);
        }
        self.paths[path.index()].tx.state.fail();
        let due = now + self.config.probe_interval;
        self.paths[path.index()].heartbeat.due = Some(due);
        self.timers_moved = true;
        self.sender.drained = false;
        self.sender.epoch += 1;
        self.path_changed(now, path, PathStatus::Inactive);
    }
}
