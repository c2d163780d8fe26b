//! Heartbeats: proof of addresses, idle paths, failed paths (RFC 9260, 5.4, 8.3; RFC 7829).

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Time};

use super::super::chunk::{Chunk, HeartbeatInfo};
use super::path::Path;
use super::{Association, State};
use crate::congestion::{CongestionControl, IdleDecay};
use crate::path::PathStatus;

/// HEARTBEATs to addresses that are not confirmed, counted by the timeout: HB.Max.Burst (RFC 9260, 5.4).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Verification {
    /// When the timeout ends in which they are counted, and how many there were.
    until: Time,
    sent: u32,
}

impl Association {
    /// The association is up: unproved paths are asked at once, the others when idle.
    pub(super) fn start_heartbeats(&mut self, now: Time) {
        for i in 0..self.paths.len() {
            let unproved = self.paths[i].tx.state.status() == PathStatus::Unconfirmed;
            let due = if unproved { now } else { self.next_heartbeat(now, PathId::from_index(i)) };
            self.paths[i].heartbeat.due = Some(due);
        }
    }

    /// HB.interval of a path.
    pub(super) fn heartbeat_interval(&self, id: PathId) -> Duration {
        let own = self.paths[id.index()].tx.config.heartbeat_interval;
        own.unwrap_or(self.config.heartbeat_interval)
    }

    /// RTO plus HB.interval, with half an RTO of jitter either way (8.3).
    pub(super) fn next_heartbeat(&mut self, now: Time, id: PathId) -> Time {
        let jitter = 0.5 + self.rng.unit();
        let path = &self.paths[id.index()];
        let rto = path.tx.rtt.rto().mul_f64(jitter);
        let idle = rto + self.heartbeat_interval(id);
        match path.tx.state.status() {
            PathStatus::Active => now + idle,
            PathStatus::Inactive => now + idle.min(self.config.probe_interval),
            // 5.4: once the path would be inactive, its address is asked as seldom as an idle one.
            PathStatus::Unconfirmed if path.tx.state.has_failed() => now + idle,
            // No more than one per RTO to an address that is not confirmed or is doubted.
            PathStatus::Unconfirmed => now + path.tx.rtt.rto(),
            PathStatus::PotentiallyFailed => now + self.patience(id),
        }
    }

    /// How long an answer to a heartbeat is awaited. The timeout of a path that has failed has been
    /// doubled many times; its return is to be noticed before that is over.
    fn patience(&self, id: PathId) -> Duration {
        let path = &self.paths[id.index()];
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
            self.paths[id.index()].stop();
            return;
        }
        if let Some((_, deadline)) = self.paths[id.index()].heartbeat.pending
            && deadline <= now
        {
            self.on_unanswered(now, id);
            if !self.state.is_up() {
                return;
            }
        }
        if self.paths[id.index()].heartbeat.due.is_some_and(|d| d <= now) {
            self.heartbeat_due(now, id);
        }
    }

    /// An unanswered heartbeat counts on an idle path (8.2). While data is on its way there T3 tells
    /// of the same silence, and each silence is one error and doubles the timeout once.
    fn on_unanswered(&mut self, now: Time, id: PathId) {
        let path = &mut self.paths[id.index()];
        path.heartbeat.pending = None;
        let forced = std::mem::take(&mut path.heartbeat.forced);
        if path.heartbeat.counted || !(forced || path.tx.flights.is_empty()) {
            return;
        }
        path.tx.rtt.back_off();
        // 5.4: an address that is not confirmed counts for itself alone.
        let confirmed = path.tx.state.status() != PathStatus::Unconfirmed;
        let counts = confirmed && self.alone_carries_data(id);
        self.note_path_error(now, id, counts);
    }

    /// Whether data goes by this path and by no other that works. RFC 9260, 8.1: HEARTBEATs that are not answered there
    /// count against the association, those of other paths do not.
    fn alone_carries_data(&self, id: PathId) -> bool {
        if !self.config.cmt.concurrent {
            return id == self.single_path();
        }
        let mut others = (0..self.paths.len()).filter(|i| *i != id.index());
        !others.any(|i| self.paths[i].tx.state.status() == PathStatus::Active)
    }

    pub(super) fn heartbeat_due(&mut self, now: Time, id: PathId) {
        if let Some(later) = self.postponed(now, id) {
            self.paths[id.index()].heartbeat.due = Some(later);
            return;
        }
        let interval = self.heartbeat_interval(id);
        let path = &self.paths[id.index()];
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
        self.paths[id.index()].heartbeat.due = Some(self.next_heartbeat(now, id));
    }

    /// When a HEARTBEAT that is due on `id` may leave, if not now: no more than HB.Max.Burst leave per timeout for
    /// addresses that are not confirmed. The address that was asked the longest time ago comes first.
    fn postponed(&mut self, now: Time, id: PathId) -> Option<Time> {
        let most = self.config.heartbeat_burst;
        let asks = |path: &Path| {
            let due = path.heartbeat.due.is_some_and(|due| due <= now);
            due && path.tx.state.status() == PathStatus::Unconfirmed && !path.heartbeat.forced
        };
        if most == 0 || !asks(&self.paths[id.index()]) {
            return None;
        }
        let waiting = (0..self.paths.len()).filter(|i| asks(&self.paths[*i]));
        let first = waiting.min_by_key(|i| self.paths[*i].heartbeat.asked_at)?;
        if now >= self.verification.until {
            let until = now + self.paths[first].tx.rtt.rto();
            self.verification = Verification { until, sent: 0 };
        }
        let Verification { until, sent } = &mut self.verification;
        if *sent >= most || first != id.index() {
            return Some(*until);
        }
        *sent += 1;
        None
    }

    /// A HEARTBEAT with a nonce of its own for `id`, whose answer is awaited from now on.
    pub(super) fn new_heartbeat(&mut self, now: Time, id: PathId) -> Chunk {
        let nonce = self.nonce();
        let deadline = now + self.patience(id);
        let heartbeat = &mut self.paths[id.index()].heartbeat;
        heartbeat.pending = Some((nonce, deadline));
        heartbeat.earlier.rotate_right(1);
        heartbeat.earlier[0] = nonce;
        heartbeat.counted = false;
        heartbeat.asked_at = now;
        Chunk::Heartbeat(HeartbeatInfo { nonce, sent: now, probe: None }.to_bytes())
    }

    /// HEARTBEAT: goes back as it came (8.3), where it came from, if that has room for it. The responder
    /// asks all paths as soon as it is up, and by a quick path that may come before its COOKIE ACK.
    pub(super) fn on_heartbeat(&mut self, path: PathId, info: Bytes) {
        let known = self.state.is_up() || matches!(self.state, State::CookieEchoed { .. });
        if known && self.fits_answer(path, &info) {
            // Copied: a few bytes that wait to leave do not keep the whole datagram.
            let info = Bytes::copy_from_slice(&info);
            self.reply(path, self.peer_tag, Chunk::HeartbeatAck(info));
        }
    }

    /// HEARTBEAT ACK. RFC 9260, 5.4: the address that the HEARTBEAT was sent to is verified, and it is
    /// "the address found in the Heartbeat Information". A multihomed peer with one default route
    /// answers all HEARTBEATs by the same way, so the path on which the answer arrives says nothing:
    /// the nonce names the path.
    pub(super) fn on_heartbeat_ack(&mut self, now: Time, info: &[u8]) {
        let Some(info) = HeartbeatInfo::parse(info) else { return };
        if info.probe.is_some() {
            self.on_probe_answer(now, info.nonce);
            return;
        }
        let Some(id) = self.take_nonce(info.nonce) else { return };
        let path = &mut self.paths[id.index()];
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
            self.paths[id.index()].heartbeat.due = Some(self.next_heartbeat(now, id));
        } else if was == PathStatus::Active {
            // The address may have changed meanwhile: probes waited for this answer.
            self.search_mtu(now, id);
        }
        self.confirm_mtu(now, id, 0);
    }

    /// The path on which a HEARTBEAT with this nonce was sent, if its answer is still awaited. Each nonce
    /// is answered once.
    fn take_nonce(&mut self, nonce: u64) -> Option<PathId> {
        if nonce == 0 {
            return None;
        }
        for (index, path) in self.paths.iter_mut().enumerate() {
            let heartbeat = &mut path.heartbeat;
            if let Some(at) = heartbeat.earlier.iter().position(|known| *known == nonce) {
                // An answer to a later one will do. The newest stands first.
                let later = |awaited: u64| heartbeat.earlier[..at].contains(&awaited);
                heartbeat.pending = heartbeat.pending.filter(|(awaited, _)| later(*awaited));
                heartbeat.earlier[at] = 0;
                return Some(PathId::from_index(index));
            }
        }
        None
    }
}
