//! Processing of COOKIE ECHO: a new association, a duplicate, a collision or a restart of the peer (RFC
//! 9260, 5.1 D, 5.2.4). Also stale cookie errors (5.2.6).

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Time};

use super::super::cause::ErrorCause;
use super::super::chunk::Chunk;
use super::super::cookie::CookieContent;
use super::super::tx::Path;
use super::state::Retry;
use super::{Association, CloseReason, Event, State};
use crate::path::PathStatus;

impl Association {
    /// Processes a COOKIE ECHO. Returns whether the chunks after it belong to the association.
    pub(super) fn on_cookie_echo(
        &mut self,
        now: Time,
        path: PathId,
        tag: u32,
        cookie: &Bytes,
    ) -> bool {
        let Some((cookie, home)) =
            self.handshake.open_cookie(cookie, path, self.sender.paths.len())
        else {
            return false;
        };
        let cookie = &cookie;
        // RFC 9260, 5.1.5 (3): if the verification tag differs from the cookie's, the packet is silently
        // discarded. This precedes the check of the cookie's age.
        if tag != cookie.local_tag {
            return false;
        }
        let ours = cookie.local_tag == self.handshake.local_tag;
        let theirs = cookie.peer.tag == self.handshake.peer_tag;
        let life = self.config.cookie_life_for(&cookie.peer);
        match cookie.staleness(now, life) {
            // RFC 9260, 5.2.4 (3): a stale cookie is still valid if both of its tags match the association.
            Some(_) if ours && theirs => {}
            Some(by) => {
                let error = Chunk::error(ErrorCause::stale(by));
                let path = if self.state.is_up() { self.sender.reply_path(path) } else { path };
                self.reply(path, cookie.peer.tag, error);
                return false;
            }
            None => {}
        }
        let known = cookie.tie_tags == self.handshake.tie_tags() && self.handshake.peer_tag != 0;
        match (&self.state, ours, theirs) {
            (State::Ended(_), ..) => return false,
            (State::Closed, ..) => {
                self.adopt_peer(&cookie.peer);
                self.establish(now, home, Some(cookie.created), Event::Connected);
            }
            // Collision of two INITs: action B, or D if the tags are known already.
            (State::CookieWait { .. } | State::CookieEchoed { .. }, true, _) => {
                self.adopt_peer(&cookie.peer);
                self.establish(now, home, Some(cookie.created), Event::Connected);
            }
            // Action D: the COOKIE ACK was lost.
            (_, true, true) => {}
            // Action B: the peer's first answer had established this end.
            (_, true, false) => {
                self.handshake.peer_tag = cookie.peer.tag;
                // RFC 4895, 6.1: the random number goes with the tag.
                self.settle_authentication(&cookie.peer);
            }
            // Action A in SHUTDOWN-ACK-SENT.
            (State::ShutdownAckSent { .. }, false, false) if known => {
                let path = self.sender.reply_path(path);
                let error = Chunk::error(ErrorCause::CookieInShutdown);
                for chunk in [Chunk::ShutdownAck, error] {
                    self.control.queue.push(path, cookie.peer.tag, chunk);
                }
                return false;
            }
            (_, false, false) if known && self.state.is_up() => self.restart(now, home, cookie),
            // Action C and all other combinations: discard.
            _ => return false,
        }
        self.acknowledge_cookie(now, path);
        true
    }

    /// Queues a COOKIE ACK as the first chunk of its packet (RFC 9260, 5.1 D), before the probes of a path
    /// just confirmed. RFC 9260, 5.4: to an unconfirmed address it MUST be bundled with a HEARTBEAT.
    fn acknowledge_cookie(&mut self, now: Time, path: PathId) {
        if self.path_status(path) == PathStatus::Unconfirmed {
            let heartbeat = self.new_heartbeat(now, path);
            self.control.queue.push_front(path, self.handshake.peer_tag, heartbeat);
        }
        self.control.queue.push_front(path, self.handshake.peer_tag, Chunk::CookieAck);
    }

    /// Action A: the peer has restarted, so this end does as well. Received data that the user has not read
    /// stays. Unacknowledged data is not sent to the restarted peer, because the old one may have received
    /// it.
    fn restart(&mut self, now: Time, home: Option<PathId>, cookie: &CookieContent) {
        self.handshake.local_tag = cookie.local_tag;
        self.handshake.local_tsn = cookie.local_tsn.0;
        self.handshake.renew_auth_random(cookie);
        self.sender.outstanding.restart(self.handshake.local_tsn, self.config.streams);
        for path in &mut self.sender.paths {
            let (counters, learned) = (path.tx.counters, path.learned);
            let (retired, announcing) = (path.retired, path.announcing);
            *path =
                Path { learned, retired, announcing, ..Path::new(&path.tx.config, &self.config) };
            path.tx.counters = counters;
        }
        self.sender.discard_views();
        self.control.queue.clear();
        self.sender.copies.clear();
        self.sender.wait_until = None;
        self.sender.epoch += 1;
        self.receiver.forget(now);
        self.control.heartbeats.stop();
        self.adopt_peer(&cookie.peer);
        self.establish(now, home, Some(cookie.created), Event::Restarted);
    }

    /// Handles a stale cookie error: restarts the handshake and requests a longer cookie life (RFC 9260,
    /// 5.2.6). The number of attempts is limited.
    pub(super) fn on_stale_cookie(&mut self, now: Time, path: PathId) {
        let State::CookieEchoed { sent, .. } = &self.state else { return };
        self.handshake.stale_cookies = self.handshake.stale_cookies.saturating_add(1);
        if u32::from(self.handshake.stale_cookies) > self.config.max_init_retransmits {
            self.close(CloseReason::StaleCookie);
            return;
        }
        // RFC 9260, 5.2.6: the measured round trip plus no more than one second.
        let longer = now.since(*sent) + Duration::from_secs(1);
        self.handshake.preserve_millis =
            (longer.as_nanos() / 1_000_000).min(u32::MAX as u64) as u32;
        self.handshake.peer_tag = 0;
        let t1 = Retry { at: now + self.config.rto.initial, count: 0 };
        self.state = State::CookieWait { t1 };
        self.push_init(path);
    }
}
