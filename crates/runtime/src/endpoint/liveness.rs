//! Associations that nobody uses end: those that are not up in time, that the application does not take,
//! whose peer is gone, and, when others need their places, those on which nothing was ever said.

use std::net::IpAddr;

use ropewalk_base::{Duration, PathId, Time};
use ropewalk_engine::sctp::Association;

use super::limits::{Limit, Limits};
use super::peer::Peer;
use super::state::{EndpointState, Key};
use crate::seal::PublicKey;

/// A check that comes so much too late says that this process was stopped, and nothing of the peer.
const LATE: Duration = Duration::from_secs(5);

/// HB.interval for which [`Limits::vanished_timeout`] is meant (RFC 9260, 16).
const USUAL_INTERVAL: Duration = Duration::from_secs(30);

/// Silent associations that make room at a time.
const DROPPED_AT_ONCE: u64 = 16;

/// When something last happened.
#[derive(Clone, Copy, Debug)]
pub struct Liveness {
    began: Time,
    /// A packet of the peer came.
    heard_at: Time,
    /// It is up, and waits for the application since then.
    waits_since: Option<Time>,
    /// The user has this end ask the peer less often than the limit is meant for, or not at all: silence says nothing.
    asks_seldom: bool,
    /// When to look next. Not moved by what happens, so that packets cost nothing.
    check_at: Time,
}

impl Liveness {
    /// Of an association that begins now.
    pub const fn new(now: Time) -> Self {
        Self { began: now, heard_at: now, waits_since: None, asks_seldom: false, check_at: now }
    }

    /// A packet of the peer came.
    #[inline]
    pub const fn hear(&mut self, now: Time) {
        self.heard_at = now;
    }

    /// HEARTBEATs leave at other intervals, or not at all.
    pub fn ask(&mut self, now: Time, machine: &Association) {
        let mut paths = (0..machine.path_count()).map(PathId::from_index);
        let often = |path| machine.heartbeats_of(path).is_some_and(|span| span <= USUAL_INTERVAL);
        self.asks_seldom = !paths.any(often);
        // What was not said while nobody asked is nothing to count from.
        self.heard_at = now;
    }

    /// It waits for the application from now on.
    pub const fn wait(&mut self, now: Time) {
        self.waits_since = Some(now);
        self.check_at = now;
    }

    /// The application has taken it.
    pub const fn take(&mut self) {
        self.waits_since = None;
    }

    /// When to look next.
    pub const fn next_check(&self) -> Time {
        self.check_at
    }
}

impl Peer {
    /// The limit that the association has outlived; else when to look again is noted.
    fn outlived(&mut self, now: Time, limits: &Limits) -> Option<Limit> {
        let live = &mut self.liveness;
        if now.since(live.check_at) > LATE {
            live.heard_at = now;
        }
        // While data is outstanding, its timers judge the peer.
        let idle = self.connected && self.opened_by_peer && self.machine.is_flushed();
        let idle = idle && !live.asks_seldom;
        let vanished = live.heard_at + limits.vanished_timeout;
        let setup = live.began + limits.setup_timeout;
        let untaken = live.waits_since.map(|since| since + limits.accept_timeout);
        let ends = [
            (Limit::VanishedTimeout, idle.then_some(vanished)),
            (Limit::SetupTimeout, (self.opened_by_peer && !self.connected).then_some(setup)),
            (Limit::AcceptTimeout, untaken),
        ];
        let next = ends.iter().filter_map(|(limit, at)| Some(((*at)?, *limit))).min();
        // One that this end opens, or that has data outstanding, has timers of its own.
        let Some((at, limit)) = next else {
            live.check_at = now + limits.setup_timeout.min(limits.vanished_timeout);
            return None;
        };
        if at <= now {
            return Some(limit);
        }
        live.check_at = at;
        None
    }
}

impl EndpointState {
    /// A limit refuses a handshake: associations of peers that have said nothing for long make room, as far
    /// as their going helps. The handshake is not taken this time; its initiator begins again.
    pub(super) fn drop_silent(&mut self, now: Time, key: Option<PublicKey>, ip: IpAddr, by: Limit) {
        if !self.counts.may_search(now) {
            return;
        }
        let after = self.options.limits.silent_timeout;
        let mut dropped = 0;
        for at in self.keys() {
            let Some(peer) = self.peer(at) else { continue };
            let silent = peer.opened_by_peer
                && peer.ended.is_none()
                && now.since(peer.liveness.began) >= after
                && !peer.machine.has_carried_data();
            let counts = peer.admitted.is_some_and(|admitted| admitted.counts_for(by, key, ip));
            if !(silent && counts) {
                continue;
            }
            peer.machine.abort();
            peer.abandoned = true;
            self.touch(at);
            dropped += 1;
            if dropped == DROPPED_AT_ONCE {
                break;
            }
        }
        self.reached(now, Limit::SilentTimeout, None, dropped);
    }

    /// Ends the association if it has outlived a limit.
    pub(super) fn check_liveness(&mut self, now: Time, key: Key) {
        let limits = self.options.limits.clone();
        let Some(peer) = self.peer(key) else { return };
        if peer.ended.is_some() || peer.liveness.check_at > now {
            return;
        }
        let limit = peer.outlived(now, &limits);
        let address = peer.routes.iter().flatten().map(|route| route.remote).next();
        match limit {
            None => return,
            // There is nobody to be told.
            Some(Limit::VanishedTimeout) => peer.machine.peer_is_gone(),
            Some(_) => {
                peer.machine.abort();
                peer.abandoned = true;
            }
        }
        self.reached(now, limit.unwrap_or(Limit::VanishedTimeout), address, 1);
    }
}
