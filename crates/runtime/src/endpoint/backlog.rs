//! Limits how many associations on an SCTP port may wait for the application to accept them. A port at its limit
//! refuses handshakes like a port without a listener.

use super::Endpoint;
use super::state::{AssociationKey, EndpointState};

/// The room on an SCTP port.
#[derive(Debug)]
pub(super) struct Backlog {
    sctp_port: u16,
    room: usize,
    /// Associations that have begun on the port and that the application has not taken.
    begun: Vec<AssociationKey>,
}

impl Endpoint {
    /// Sets how many associations on an SCTP port may wait until [`Endpoint::accept`] returns them. The default is
    /// the endpoint's limit. An application that queues accepted associations itself sets the space left in its
    /// queue. The limit applies to each shard. [`Endpoint::stop_listening_on`] removes it.
    pub fn set_room(&self, sctp_port: u16, room: usize) {
        for shard in &self.shards {
            let state = &mut *shard.lock();
            match state.backlogs.iter_mut().find(|backlog| backlog.sctp_port == sctp_port) {
                Some(backlog) => backlog.room = room,
                None => state.backlogs.push(Backlog { sctp_port, room, begun: Vec::new() }),
            }
        }
    }
}

impl EndpointState {
    /// Whether one more association may begin on an SCTP port.
    pub(super) fn has_room(&mut self, sctp_port: u16) -> bool {
        let mut backlogs = std::mem::take(&mut self.backlogs);
        let backlog = backlogs.iter_mut().find(|backlog| backlog.sctp_port == sctp_port);
        let has_room = backlog.is_none_or(|backlog| {
            backlog.begun.retain(|key| self.waits(*key));
            backlog.begun.len() < backlog.room
        });
        self.backlogs = backlogs;
        has_room
    }

    /// Whether the application has not taken an association yet.
    fn waits(&self, key: AssociationKey) -> bool {
        self.known(key).is_some_and(|peer| peer.incoming) || self.accepted.contains(&key)
    }

    /// Notes that a peer has opened an association on an SCTP port.
    pub(super) fn on_begun(&mut self, sctp_port: u16, key: AssociationKey) {
        if let Some(backlog) = self.backlogs.iter_mut().find(|one| one.sctp_port == sctp_port) {
            backlog.begun.push(key);
        }
    }

    /// Ends the limit of an SCTP port.
    pub(super) fn forget_room(&mut self, sctp_port: u16) {
        self.backlogs.retain(|backlog| backlog.sctp_port != sctp_port);
    }
}
