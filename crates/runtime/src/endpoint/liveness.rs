//! Ends unused associations: those that are not established in time, that the application does not accept, whose peer
//! has vanished, and, when others need their places, those that never carried a message.

use std::net::IpAddr;

use ropewalk_base::{Duration, PathId, Time};
use ropewalk_engine::sctp::Association;

use super::limits::{Limit, Limits};
use super::peer::Peer;
use super::state::{AssociationKey, EndpointState};
use crate::seal::PublicKey;

/// If a check is later than this, the process was suspended, and the peer's silence proves nothing.
const SUSPENSION_MIN: Duration = Duration::from_secs(5);

/// HB.interval that [`Limits::vanished_timeout`] assumes (RFC 9260, 16).
const USUAL_INTERVAL: Duration = Duration::from_secs(30);

/// Maximum number of silent associations that are dropped at a time.
const DROPPED_AT_ONCE: u64 = 16;

/// When events that show life last happened.
#[derive(Clone, Copy, Debug)]
pub struct Liveness {
    began: Time,
    /// When the last packet of the peer arrived.
    last_packet_at: Time,
    /// Since when the established association has waited to be accepted.
    unaccepted_since: Option<Time>,
    /// The application has disabled HEARTBEATs, or made them less frequent than the limit assumes: silence proves
    /// nothing.
    heartbeats_rare: bool,
    /// When to check next. Packets do not change it, which keeps the receive path cheap.
    check_at: Time,
}

impl Liveness {
    /// State of an association that begins now.
    pub const fn new(now: Time) -> Self {
        Self {
            began: now,
            last_packet_at: now,
            unaccepted_since: None,
            heartbeats_rare: false,
            check_at: now,
        }
    }

    /// A packet of the peer arrived.
    #[inline]
    pub const fn on_packet(&mut self, now: Time) {
        self.last_packet_at = now;
    }

    /// Adapts to other HEARTBEAT intervals, or to disabled HEARTBEATs.
    pub fn on_heartbeat_settings(&mut self, now: Time, machine: &Association) {
        let mut paths = (0..machine.path_count()).map(PathId::from_index);
        let often = |path| machine.heartbeats_of(path).is_some_and(|span| span <= USUAL_INTERVAL);
        self.heartbeats_rare = !paths.any(often);
        // Earlier silence does not count, because no HEARTBEATs required answers.
        self.last_packet_at = now;
    }

    /// Notes that the association waits to be accepted.
    pub const fn on_established(&mut self, now: Time) {
        self.unaccepted_since = Some(now);
        self.check_at = now;
    }

    /// Notes that the application has accepted the association.
    pub const fn on_accepted(&mut self) {
        self.unaccepted_since = None;
    }

    /// When to check next.
    pub const fn next_check(&self) -> Time {
        self.check_at
    }
}

impl Peer {
    /// Returns the limit that the association has exceeded. Otherwise sets when to check again.
    fn exceeded_limit(&mut self, now: Time, limits: &Limits) -> Option<Limit> {
        let live = &mut self.liveness;
        if now.since(live.check_at) > SUSPENSION_MIN {
            live.last_packet_at = now;
        }
        // While data is outstanding, SCTP's timers detect a vanished peer.
        let idle = self.connected && self.opened_by_peer && self.machine.is_flushed();
        let idle = idle && !live.heartbeats_rare;
        let vanished = live.last_packet_at + limits.vanished_timeout;
        let setup = live.began + limits.setup_timeout;
        let untaken = live.unaccepted_since.map(|since| since + limits.accept_timeout);
        let ends = [
            (Limit::VanishedTimeout, idle.then_some(vanished)),
            (Limit::SetupTimeout, (self.opened_by_peer && !self.connected).then_some(setup)),
            (Limit::AcceptTimeout, untaken),
        ];
        let next = ends.iter().filter_map(|(limit, at)| Some(((*at)?, *limit))).min();
        // Associations that this end opened or that have data outstanding have other timers.
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
    /// Drops long-silent associations of peers when a limit refuses a handshake, if that frees a place. The
    /// current handshake is still refused; its initiator tries again.
    pub(super) fn drop_silent(&mut self, now: Time, key: Option<PublicKey>, ip: IpAddr, by: Limit) {
        if !self.counts.may_search_silent(now) {
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
            self.mark_ready(at);
            dropped += 1;
            if dropped == DROPPED_AT_ONCE {
                break;
            }
        }
        self.on_limit(now, Limit::SilentTimeout, None, dropped);
    }

    /// Ends the association if it has exceeded a limit.
    pub(super) fn check_liveness(&mut self, now: Time, key: AssociationKey) {
        let limits = self.options.limits.clone();
        let Some(peer) = self.peer(key) else { return };
        if peer.ended.is_some() || peer.liveness.check_at > now {
            return;
        }
        let limit = peer.exceeded_limit(now, &limits);
        let address = peer.routes.iter().flatten().map(|route| route.remote).next();
        match limit {
            None => return,
            // The peer has vanished and would not receive an ABORT.
            Some(Limit::VanishedTimeout) => peer.machine.peer_is_gone(),
            Some(_) => {
                peer.machine.abort();
                peer.abandoned = true;
            }
        }
        self.on_limit(now, limit.unwrap_or(Limit::VanishedTimeout), address, 1);
    }
}
