//! Changes the list of allowed peers, and the limits, while the endpoint runs.

use std::sync::{Arc, Weak};

use super::Endpoint;
use super::encapsulation::Encapsulation;
use super::limits::Limits;
use super::responder::HandshakeResponder;
use super::state::{EndpointSignals, EndpointState, Shared};
use crate::seal::{Allowed, Refused};

/// Abort reason for a peer whose key was removed.
const REMOVED: &str = "the key is no longer among the allowed ones";

/// A handle on the list of allowed peers and on the limits. It does not keep the endpoint alive.
#[derive(Clone, Debug)]
pub struct Admission {
    shards: Vec<Weak<Shared>>,
    signals: Arc<EndpointSignals>,
}

impl Endpoint {
    /// Returns a handle that changes the list of allowed peers and reports refused ones.
    pub fn admission(&self) -> Admission {
        let shards = self.shards.iter().map(Arc::downgrade).collect();
        Admission { shards, signals: self.signals.clone() }
    }
}

impl Admission {
    /// Replaces the list of allowed peers, effective immediately for new associations. Associations opened by peers
    /// that are no longer listed are aborted; all others continue. Returns the number of aborted associations. An
    /// endpoint without sealing has no keys: the call does nothing and returns 0.
    pub fn set_allowed(&self, allowed: Allowed) -> usize {
        let each = |shared: Arc<Shared>| {
            let mut core = shared.lock();
            let aborted = core.set_allowed(allowed.clone());
            core.wake();
            aborted
        };
        self.shards().map(each).sum()
    }

    /// Replaces the limits. If a lower limit on their number is exceeded, existing associations continue. If a lower
    /// memory limit is exceeded, the largest ones are aborted.
    pub fn set_limits(&self, limits: Limits) {
        let limits = limits.of_one_of(self.shards.len());
        for shared in self.shards() {
            let mut core = shared.lock();
            core.options.limits = limits.clone();
            core.wake();
        }
    }

    /// Initiators that proved their keys and were refused since the last call. Only the first few are kept.
    pub fn take_refused(&self) -> Vec<Refused> {
        let refused = |shared: Arc<Shared>| {
            let mut core = shared.lock();
            core.responder.as_mut().map(HandshakeResponder::take_refused).unwrap_or_default()
        };
        self.shards().flat_map(refused).collect()
    }

    /// Waits until an initiator was refused, or the endpoint may have ended. At most one task may wait.
    pub async fn refused(&self) {
        self.signals.refused.notified().await;
    }

    /// Whether the endpoint has been dropped.
    pub fn is_over(&self) -> bool {
        self.shards().next().is_none()
    }

    fn shards(&self) -> impl Iterator<Item = Arc<Shared>> {
        self.shards.iter().filter_map(Weak::upgrade)
    }
}

impl EndpointState {
    fn set_allowed(&mut self, allowed: Allowed) -> usize {
        let Some(responder) = &mut self.responder else { return 0 };
        responder.set_allowed(allowed.clone());
        if let Some(sealing) = &mut self.options.sealing {
            sealing.allowed = allowed.clone();
        }
        let mut aborted = 0;
        for key in self.keys() {
            let Some(peer) = self.peer(key) else { continue };
            let Encapsulation::Sealed(session) = &peer.encapsulation else { continue };
            if peer.opened_by_peer && peer.ended.is_none() && !allowed.lists(&session.peer()) {
                peer.abort_because(REMOVED.as_bytes());
                aborted += 1;
                self.mark_ready(key);
            }
        }
        aborted
    }
}
