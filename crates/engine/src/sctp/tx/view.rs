//! Availability of paths for data, and the scheduler's view of them.

use ropewalk_base::{PathId, Time};

use super::{Path, Sender};
use crate::congestion::{CongestionControl, IdleDecay};
use crate::multipath::{TxPath, fallback_path};
use crate::path::{PathStatus, PathUse};

/// Data that waits for a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// All of it, bytes; an estimate for lost chunks.
    pub bytes: u64,
    /// User data of interactive messages, which overtake the others, bytes.
    pub interactive_bytes: u64,
}

impl Sender {
    /// Computes the views of all paths before anything is sent in response to an input.
    pub fn refresh_views(&mut self, now: Time) {
        self.decay_idle_windows(now);
        let held_back =
            self.outstanding.config.cmt.hold_data_until_confirmed && !self.all_confirmed();
        let fallback = self.fallback_path();
        let only = (!self.outstanding.config.cmt.concurrent).then(|| self.single_path());
        let is_usable = |id: PathId, path: &Path| {
            let active = match fallback {
                Some(fallback) => fallback == id,
                None => path.tx.state.status() == PathStatus::Active && !path.mtu_unknown,
            };
            active && !held_back && only.is_none_or(|only| only == id)
        };
        self.update_views(now, is_usable);
        self.watch_window(now);
    }

    /// The path for control chunks: among the paths in the best state, one of the earliest use; among
    /// these the primary path, else the first.
    pub fn best_path(&self) -> PathId {
        let rank = |p: &Path| match p.tx.state.status() {
            PathStatus::Active => 0,
            PathStatus::PotentiallyFailed => 1,
            // RFC 9260, 5.4: only HEARTBEATs go to an UNCONFIRMED address. It is the last resort.
            PathStatus::Inactive => 2,
            PathStatus::Unconfirmed => 3,
        };
        let other = |i: usize| i != self.outstanding.primary.index();
        let best = (0..self.paths.len())
            .min_by_key(|i| (rank(&self.paths[*i]), self.paths[*i].tx.config.usage, other(*i)));
        PathId::from_index(best.unwrap_or(0))
    }

    /// Where to send a SACK or an ERROR that answers a packet of `path`. RFC 9260, 5.4: an endpoint MUST NOT
    /// send chunks other than HEARTBEAT, HEARTBEAT ACK and those of the handshake to an UNCONFIRMED address.
    /// On an inactive path the answer would be lost.
    #[inline]
    pub fn reply_path(&self, path: PathId) -> PathId {
        match self.paths[path.index()].tx.state.status() {
            PathStatus::Active | PathStatus::PotentiallyFailed => path,
            PathStatus::Unconfirmed | PathStatus::Inactive => self.best_path(),
        }
    }

    /// Whether this path carries data and no other path works. Unanswered HEARTBEATs then count against the
    /// association (RFC 9260, 8.1), those of other paths do not.
    pub fn alone_carries_data(&self, id: PathId) -> bool {
        if !self.outstanding.config.cmt.concurrent {
            return id == self.single_path();
        }
        let mut others = (0..self.paths.len()).filter(|i| *i != id.index());
        !others.any(|i| self.paths[i].tx.state.status() == PathStatus::Active)
    }

    /// Room in the send buffer, bytes of user data. The last message may exceed it, so that a message
    /// longer than the buffer can be sent.
    pub fn buffer_room(&self) -> u64 {
        let (unsent, all, most) = self.buffer_use();
        let room = self.outstanding.config.send_buffer.saturating_sub(all);
        most.map_or(room, |most| room.min(most.saturating_sub(unsent)))
    }

    /// Number of bytes by which the last message exceeds the send buffer.
    pub fn buffer_excess(&self) -> u64 {
        let (unsent, all, most) = self.buffer_use();
        let excess = all.saturating_sub(self.outstanding.config.send_buffer);
        most.map_or(excess, |most| excess.max(unsent.saturating_sub(most)))
    }

    /// Data in the send buffer, bytes.
    pub fn buffered(&self) -> u64 {
        self.buffer_use().1
    }

    /// Unsent data, all data in the send buffer, and the limit of unsent data if there is one, bytes.
    fn buffer_use(&self) -> (u64, u64, Option<u64>) {
        let chunks = &self.outstanding;
        let unsent = chunks.queue.bytes() + chunks.bytes_beside_queue() + chunks.queue.held_bytes();
        let all = unsent + chunks.board.buffered();
        let window = |i| self.congestion.window(PathId::from_index(i));
        let windows = || (0..self.paths.len()).map(window).sum::<u64>();
        let least = Some(chunks.config.unsent_limit).filter(|least| *least < u64::MAX);
        (unsent, all, least.map(|least| least.max(windows())))
    }

    /// Data that waits for a path, bytes; an estimate for lost chunks.
    pub fn waiting_bytes(&self) -> u64 {
        let chunks = &self.outstanding;
        let again = chunks.board.lost().len() + chunks.board.holes().len();
        chunks.queue.bytes() + chunks.bytes_beside_queue() + again * chunks.full_chunk()
    }

    /// The same, with interactive messages counted separately.
    pub fn backlog(&self) -> Backlog {
        let limits = self.outstanding.limits.as_ref();
        Backlog {
            bytes: self.waiting_bytes(),
            interactive_bytes: limits.map_or(0, |limits| limits.interactive_bytes),
        }
    }

    fn all_confirmed(&self) -> bool {
        self.paths.iter().all(|p| p.tx.state.status() != PathStatus::Unconfirmed)
    }

    /// The confirmed path to use while no path is active.
    fn fallback_path(&self) -> Option<PathId> {
        let confirmed = |(_, path): &(PathId, &TxPath)| {
            path.state.status() != PathStatus::Unconfirmed && path.config.usage != PathUse::Never
        };
        let all = self.paths.iter().enumerate();
        fallback_path(all.map(|(i, path)| (PathId::from_index(i), &path.tx)).filter(confirmed))
    }

    /// The path of SCTP without CMT: the primary path, or another one while that has failed.
    pub fn single_path(&self) -> PathId {
        let active = |p: &Path| p.tx.state.status() == PathStatus::Active;
        if active(&self.paths[self.outstanding.primary.index()]) {
            return self.outstanding.primary;
        }
        let first = self.paths.iter().position(active);
        PathId::from_index(first.unwrap_or_else(|| self.fallback_path().map_or(0, |p| p.index())))
    }

    /// RFC 9260, 7.2.1: while nothing is sent to an address, its window SHOULD be halved once per RTO. Called
    /// before anything is sent.
    #[inline]
    pub fn decay_idle_windows(&mut self, now: Time) {
        /// Number of halvings after which no window changes further.
        const MOST: u64 = 40;
        if self.outstanding.config.idle_decay != IdleDecay::Timeout {
            return;
        }
        for i in 0..self.paths.len() {
            let path = &mut self.paths[i];
            let since = path.tx.last_sent_at.max(path.decayed_at);
            if !path.tx.flights.is_empty() || path.tx.last_sent_at == Time::ZERO {
                continue;
            }
            let rto = path.tx.rtt.rto();
            let timeouts = now.since(since).as_nanos() / rto.as_nanos().max(1);
            if timeouts == 0 {
                continue;
            }
            path.decayed_at = since + rto.saturating_mul(timeouts);
            for _ in 0..timeouts.min(MOST) {
                self.congestion.on_idle(PathId::from_index(i), now);
            }
        }
    }
}
