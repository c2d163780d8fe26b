//! Heartbeats: they confirm addresses and test idle and failed paths (RFC 9260, 5.4, 8.3; RFC 7829).

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Time};

use super::super::chunk::{Chunk, HeartbeatInfo};
use super::path::Path;
use super::{Association, State};
use crate::congestion::{CongestionControl, IdleDecay};
use crate::path::PathStatus;

/// Counts HEARTBEATs to unconfirmed addresses per RTO, to enforce HB.Max.Burst (RFC 9260, 5.4).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Verification {
    /// End of the current RTO, and the HEARTBEATs sent in it.
    until: Time,
    sent: u32,
}

impl Association {
    /// The association is established: unconfirmed paths get a HEARTBEAT at once, others when they are idle.
    pub(super) fn start_heartbeats(&mut self, now: Time) {
        for i in 0..self.sender.paths.len() {
            let unproved = self.sender.paths[i].tx.state.status() == PathStatus::Unconfirmed;
            let due = if unproved { now } else { self.next_heartbeat(now, PathId::from_index(i)) };
            self.sender.paths[i].heartbeat.due = Some(due);
        }
    }

    /// HB.interval of a path.
    pub(super) fn heartbeat_interval(&self, id: PathId) -> Duration {
        let own = self.sender.paths[id.index()].tx.config.heartbeat_interval;
        own.unwrap_or(self.config.heartbeat_interval)
    }

    /// When the next HEARTBEAT is due. For an idle path, RFC 9260, 8.3: after RTO plus HB.interval, with
    /// jitter of half an RTO either way.
    pub(super) fn next_heartbeat(&mut self, now: Time, id: PathId) -> Time {
        let jitter = 0.5 + self.rng.unit();
        let path = &self.sender.paths[id.index()];
        let rto = path.tx.rtt.rto().mul_f64(jitter);
        let idle = rto + self.heartbeat_interval(id);
        match path.tx.state.status() {
            PathStatus::Active => now + idle,
            PathStatus::Inactive => now + idle.min(self.config.probe_interval),
            // RFC 9260, 5.4: after Path.Max.Retrans failures an unconfirmed address is probed as seldom as an
            // idle path.
            PathStatus::Unconfirmed if path.tx.state.has_failed() => now + idle,
            // At most one per RTO to an unconfirmed or potentially failed path.
            PathStatus::Unconfirmed => now + path.tx.rtt.rto(),
            PathStatus::PotentiallyFailed => now + self.patience(id),
        }
    }

    /// How long to wait for the answer to a HEARTBEAT. The RTO of a failed path has been doubled many times,
    /// so the wait is shorter there: its recovery should be noticed earlier.
    fn patience(&self, id: PathId) -> Duration {
        let path = &self.sender.paths[id.index()];
        let rto = path.tx.rtt.rto();
        match path.tx.state.status() {
            PathStatus::PotentiallyFailed | PathStatus::Inactive => {
                let trip = path.tx.rtt.srtt().map_or(rto, |srtt| srtt * 2);
                rto.min(self.config.probe_interval.max(trip))
            }
            PathStatus::Active | PathStatus::Unconfirmed => rto,
        }
    }

    pub(super) fn on_heartbeat_timer(&mut self, now: Time, id: PathId) {
        if !self.state.sends_heartbeats() {
            self.sender.paths[id.index()].stop();
            return;
        }
        if let Some((_, deadline)) = self.sender.paths[id.index()].heartbeat.pending
            && deadline <= now
        {
            self.on_unanswered(now, id);
            if !self.state.is_up() {
                return;
            }
        }
        if self.sender.paths[id.index()].heartbeat.due.is_some_and(|d| d <= now) {
            self.heartbeat_due(now, id);
        }
    }

    /// Handles an unanswered HEARTBEAT: an error of an idle path (RFC 9260, 8.2). While data is in flight on
    /// the path, T3 detects the same silence. Each silence counts as one error and doubles the RTO once.
    fn on_unanswered(&mut self, now: Time, id: PathId) {
        let path = &mut self.sender.paths[id.index()];
        path.heartbeat.pending = None;
        let forced = std::mem::take(&mut path.heartbeat.forced);
        if path.heartbeat.counted || !(forced || path.tx.flights.is_empty()) {
            return;
        }
        path.tx.rtt.back_off();
        // RFC 9260, 5.4: HEARTBEATs to an unconfirmed address do not count against the association.
        let confirmed = path.tx.state.status() != PathStatus::Unconfirmed;
        let counts = confirmed && self.alone_carries_data(id);
        self.note_path_error(now, id, counts);
    }

    /// Whether this path carries data and no other path works. Unanswered HEARTBEATs then count against the
    /// association (RFC 9260, 8.1), those of other paths do not.
    fn alone_carries_data(&self, id: PathId) -> bool {
        if !self.config.cmt.concurrent {
            return id == self.single_path();
        }
        let mut others = (0..self.sender.paths.len()).filter(|i| *i != id.index());
        !others.any(|i| self.sender.paths[i].tx.state.status() == PathStatus::Active)
    }

    pub(super) fn heartbeat_due(&mut self, now: Time, id: PathId) {
        if let Some(later) = self.postponed(now, id) {
            self.sender.paths[id.index()].heartbeat.due = Some(later);
            return;
        }
        let interval = self.heartbeat_interval(id);
        let path = &self.sender.paths[id.index()];
        let busy = path.tx.state.status() == PathStatus::Active
            && !path.heartbeat.forced
            && !path.tx.flights.is_empty() | (path.tx.idle(now) < interval);
        let idle_timeout = path.tx.flights.is_empty() && path.tx.idle(now) >= path.tx.rtt.rto();
        if !busy && !path.is_left_alone() && path.heartbeat.pending.is_none() {
            let chunk = self.new_heartbeat(now, id);
            self.control.push_back((id, self.peer_tag, chunk));
        }
        if idle_timeout && self.config.idle_decay == IdleDecay::Heartbeat {
            self.sender.congestion.on_idle(id, now);
        }
        self.sender.paths[id.index()].heartbeat.due = Some(self.next_heartbeat(now, id));
    }

    /// When a HEARTBEAT that is due on `id` may be sent, if not now. At most HB.Max.Burst per RTO go to
    /// unconfirmed addresses (RFC 9260, 5.4). The address whose last HEARTBEAT is the oldest comes first.
    fn postponed(&mut self, now: Time, id: PathId) -> Option<Time> {
        let most = self.config.heartbeat_burst;
        let asks = |path: &Path| {
            let due = path.heartbeat.due.is_some_and(|due| due <= now);
            due && path.tx.state.status() == PathStatus::Unconfirmed && !path.heartbeat.forced
        };
        if most == 0 || !asks(&self.sender.paths[id.index()]) {
            return None;
        }
        let waiting = (0..self.sender.paths.len()).filter(|i| asks(&self.sender.paths[*i]));
        let first = waiting.min_by_key(|i| self.sender.paths[*i].heartbeat.asked_at)?;
        if now >= self.verification.until {
            let until = now + self.sender.paths[first].tx.rtt.rto();
            self.verification = Verification { until, sent: 0 };
        }
        let Verification { until, sent } = &mut self.verification;
        if *sent >= most || first != id.index() {
            return Some(*until);
        }
        *sent += 1;
        None
    }

    /// Builds a HEARTBEAT with a fresh nonce for `id`; its answer is pending from now on.
    pub(super) fn new_heartbeat(&mut self, now: Time, id: PathId) -> Chunk {
        let nonce = self.nonce();
        let deadline = now + self.patience(id);
        let heartbeat = &mut self.sender.paths[id.index()].heartbeat;
        heartbeat.pending = Some((nonce, deadline));
        heartbeat.earlier.rotate_right(1);
        heartbeat.earlier[0] = nonce;
        heartbeat.counted = false;
        heartbeat.asked_at = now;
        Chunk::Heartbeat(HeartbeatInfo { nonce, sent: now, probe: None }.to_bytes())
    }

    /// Processes a HEARTBEAT. RFC 9260, 8.3: it is returned unchanged to the address that it came from, here
    /// only if it fits into a packet of that path. A responder probes all paths as soon as it is established,
    /// so on a fast path its HEARTBEAT may arrive before its COOKIE ACK.
    pub(super) fn on_heartbeat(&mut self, path: PathId, info: Bytes) {
        let known = self.state.is_up() || matches!(self.state, State::CookieEchoed { .. });
        if known && self.fits_answer(path, &info) {
            // Copied, so that a few queued bytes do not keep the whole datagram in memory.
            let info = Bytes::copy_from_slice(&info);
            self.reply(path, self.peer_tag, Chunk::HeartbeatAck(info));
        }
    }

    /// Processes a HEARTBEAT ACK. RFC 9260, 5.4: the address that the HEARTBEAT was sent to is confirmed, and
    /// it is "the address found in the Heartbeat Information". A multihomed peer with one default route
    /// answers all HEARTBEATs by the same route, so the path on which the answer arrives proves nothing: the
    /// nonce names the path.
    pub(super) fn on_heartbeat_ack(&mut self, now: Time, info: &[u8]) {
        let Some(info) = HeartbeatInfo::parse(info) else { return };
        if info.probe.is_some() {
            self.on_probe_answer(now, info.nonce);
            return;
        }
        let Some(id) = self.take_nonce(info.nonce) else { return };
        let path = &mut self.sender.paths[id.index()];
        path.tx.rtt.sample(now, now.since(info.sent));
        self.errors = 0;
        let was = path.tx.state.status();
        if path.tx.state.on_confirmed() {
            if was == PathStatus::Unconfirmed {
                self.sender.epoch += 1;
                self.path_changed(now, id, PathStatus::Active);
            } else {
                self.on_path_returned(now, id);
            }
            self.sender.paths[id.index()].heartbeat.due = Some(self.next_heartbeat(now, id));
        } else if was == PathStatus::Active {
            // After a change of address, probes wait for this answer.
            self.search_mtu(now, id);
        }
        self.confirm_mtu(now, id, 0);
    }

    /// The path on which the HEARTBEAT with this nonce was sent, if it has not been answered yet.
    fn take_nonce(&mut self, nonce: u64) -> Option<PathId> {
        if nonce == 0 {
            return None;
        }
        for (index, path) in self.sender.paths.iter_mut().enumerate() {
            let heartbeat = &mut path.heartbeat;
            if let Some(at) = heartbeat.earlier.iter().position(|known| *known == nonce) {
                // A HEARTBEAT sent after the answered one stays pending. The newest nonce comes first.
                let later = |awaited: u64| heartbeat.earlier[..at].contains(&awaited);
                heartbeat.pending = heartbeat.pending.filter(|(awaited, _)| later(*awaited));
                heartbeat.earlier[at] = 0;
                return Some(PathId::from_index(index));
            }
        }
        None
    }
}
