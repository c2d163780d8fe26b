//! Publishes what happens in an endpoint to its [`Observer`](super::observer::Observer).

use ropewalk_base::{PathId, PeerText, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::association::CloseReason;

use super::observer::{
    AssociationInfo, AssociationSnapshot, DelayCounts, EndpointSnapshot, PathCause, TransportEvent,
    TransportEventKind,
};
use super::peer::{Occurrence, Peer};
use super::state::{AssociationKey, EndpointState};
use super::stats::Stats;

/// Maximum number of events of one association that wait to be reported in one turn of the driver.
pub(super) const OCCURRENCES_LIMIT: usize = 64;

/// Packets of one path, and its last failure.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathTraffic {
    /// IP packets of the association that were handed to the system.
    pub sent_packets: u64,
    /// Their bytes, IP and UDP headers included.
    pub sent_bytes: u64,
    /// IP packets of the association that arrived.
    pub received_packets: u64,
    /// Their bytes, IP and UDP headers included.
    pub received_bytes: u64,
    /// When the last one arrived.
    pub received_at: Option<Time>,
    /// Why the path is about to be declared failed, if the reason is not a lack of answers.
    pub failure: Option<PathCause>,
    /// Whether the path was last reported as up.
    pub reported_up: bool,
}

impl PathTraffic {
    /// Counts a sent packet of `bytes`.
    #[inline]
    pub(super) const fn on_sent(&mut self, bytes: u64) {
        self.sent_packets += 1;
        self.sent_bytes += bytes;
    }

    /// Counts a received packet of `bytes`.
    #[inline]
    pub(super) const fn on_received(&mut self, now: Time, bytes: u64) {
        self.received_packets += 1;
        self.received_bytes += bytes;
        self.received_at = Some(now);
    }
}

impl EndpointState {
    /// Publishes a snapshot if one is due.
    pub(super) fn publish_if_due(&mut self, now: Time) {
        let Some(publisher) = &mut self.publisher else { return };
        let notable = self.counters.notable();
        if notable != self.published_counters {
            publisher.note_news();
        }
        if publisher.due().is_none_or(|due| due > now) {
            return;
        }
        self.published_counters = notable;
        let endpoint = publisher.endpoint;
        let mut associations = Vec::new();
        for key in self.keys() {
            let Some(mut peer) = self.take_out(key) else { continue };
            if peer.connected {
                associations.push(self.association_snapshot(endpoint, key, &mut peer));
            }
            self.put_back(key, peer);
        }
        let snapshot =
            EndpointSnapshot { endpoint, at: now, counters: self.counters, associations };
        let done = self.clock.now();
        if let Some(publisher) = &mut self.publisher {
            publisher.publish(snapshot, now, done);
        }
    }

    fn association_snapshot(
        &mut self,
        endpoint: u64,
        key: AssociationKey,
        peer: &mut Peer,
    ) -> AssociationSnapshot {
        let stats = Stats::of(self, peer);
        AssociationSnapshot {
            about: info(endpoint, key, peer),
            is_open: peer.ended.is_none(),
            stats,
            blocking: DelayCounts::of(&peer.machine.receive_stats().blocking),
        }
    }

    /// Reports what happened to an association in this turn.
    pub(super) fn report_occurrences(&mut self, now: Time, key: AssociationKey, peer: &mut Peer) {
        if let Some(publisher) = &mut self.publisher
            && (peer.has_carried_data() || !peer.occurrences.is_empty())
        {
            publisher.note_news();
        }
        if peer.occurrences.is_empty() {
            return;
        }
        let occurrences = std::mem::take(&mut peer.occurrences);
        let Some(endpoint) = self.publisher.as_ref().map(|publisher| publisher.endpoint) else {
            return;
        };
        for occurrence in occurrences {
            let kind = match occurrence {
                Occurrence::Connected => Some(TransportEventKind::Established),
                Occurrence::Restarted => Some(TransportEventKind::Restarted),
                Occurrence::Path(path, status) => self.path_event(now, peer, path, status),
                Occurrence::Closed(reason) => Some(self.closed_event(endpoint, key, peer, reason)),
            };
            self.report(endpoint, key, peer, kind);
            if occurrence == Occurrence::Connected {
                // The handshake confirms the first paths without reporting a change.
                for path in (0..peer.machine.path_count()).map(PathId::from_index) {
                    let status = peer.machine.path_status(path);
                    let kind = self.path_event(now, peer, path, status);
                    self.report(endpoint, key, peer, kind);
                }
            }
        }
    }

    fn report(
        &self,
        endpoint: u64,
        key: AssociationKey,
        peer: &Peer,
        kind: Option<TransportEventKind>,
    ) {
        if let (Some(kind), Some(publisher)) = (kind, &self.publisher) {
            publisher.report(TransportEvent { about: info(endpoint, key, peer), kind });
        }
    }

    fn closed_event(
        &mut self,
        endpoint: u64,
        key: AssociationKey,
        peer: &mut Peer,
        reason: CloseReason,
    ) -> TransportEventKind {
        let last = Box::new(self.association_snapshot(endpoint, key, peer));
        let own = peer.abort_reason.as_deref();
        let said = own.or_else(|| peer.machine.peer_abort_reason().map(AsRef::as_ref));
        TransportEventKind::Closed { reason, said: said.map(PeerText::from_bytes), last }
    }

    /// The event for a path's new status. `None` if the change does not affect whether the path carries data.
    fn path_event(
        &mut self,
        now: Time,
        peer: &mut Peer,
        path: PathId,
        status: PathStatus,
    ) -> Option<TransportEventKind> {
        let route = peer.routes.get(path.index()).copied().flatten();
        let traffic = peer.traffic_of(path.index());
        let is_up = status == PathStatus::Active;
        if std::mem::replace(&mut traffic.reported_up, is_up) == is_up {
            return None;
        }
        let failure = traffic.failure.take();
        let silence = traffic.received_at.map(|at| now.since(at)).unwrap_or_default();
        let link = route.map(|route| self.local_end(now, route).link_name()).unwrap_or_default();
        let remote = route.map(|route| route.remote);
        if is_up {
            return Some(TransportEventKind::PathUp { path, link, remote });
        }
        // A refused packet or the lack of answers may be noticed before the next poll of the interfaces.
        let missing = || route.is_some_and(|route| self.interface_is_missing(route));
        let cause = match failure {
            Some(PathCause::InterfaceDown) => PathCause::InterfaceDown,
            _ if missing() => PathCause::InterfaceDown,
            other => other.unwrap_or(PathCause::NoReply(silence)),
        };
        Some(TransportEventKind::PathDown { path, link, remote, cause })
    }
}

fn info(endpoint: u64, key: AssociationKey, peer: &Peer) -> AssociationInfo {
    AssociationInfo {
        endpoint,
        association: u64::from(key.slot_index) << 32 | u64::from(key.generation),
        peer: peer.public_key(),
        address: peer.routes.iter().flatten().map(|route| route.remote).next(),
        opened_by_peer: peer.opened_by_peer,
    }
}
