//! Resets and additions of streams while an association is in use (RFC 6525).

use ropewalk_base::StreamId;
use ropewalk_engine::sctp::association::ResetDirection;
use ropewalk_engine::sctp::{AcceptedRequests, ReconfigurationError, Reconfigured};

use super::association::{Association, Received};
use super::association_nonblocking::take_messages;
use super::peer::Peer;

/// What [`Association::try_receive_up_to_event`] found in addition to messages.
#[derive(Debug)]
pub struct UpToEvent {
    /// The event that comes after the messages that were appended.
    pub event: Option<Reconfigured>,
    /// Whether more messages can be read.
    pub more: bool,
}

impl Association {
    /// Whether streams can be reset and added: both ends offered it. False before the handshake.
    pub fn reconfigures(&self) -> bool {
        self.inspect(|peer, _| peer.machine.reconfigures()).unwrap_or(false)
    }

    /// Requests a reset of these streams; an empty list means all. Messages sent earlier are delivered before the
    /// reset, and those sent later on outgoing streams wait for it. [`Association::next_reconfiguration`] reports the
    /// result.
    ///
    /// # Errors
    /// [`ReconfigurationError`]; in that case nothing is requested.
    pub fn reset_streams(
        &self,
        streams: &[u16],
        direction: ResetDirection,
    ) -> Result<(), ReconfigurationError> {
        let streams: Vec<StreamId> = streams.iter().copied().map(StreamId).collect();
        self.request(|peer| peer.machine.reset_streams(&streams, direction))
    }

    /// Requests a reset of the TSNs and of all streams in both directions. No message is lost.
    ///
    /// # Errors
    /// [`ReconfigurationError`]; in that case nothing is requested.
    pub fn reset_association(&self) -> Result<(), ReconfigurationError> {
        self.request(|peer| peer.machine.reset_association())
    }

    /// Requests more streams: `outgoing` ones on which this end sends, and `incoming` ones on which the peer sends.
    ///
    /// # Errors
    /// [`ReconfigurationError`]; in that case nothing is requested.
    pub fn add_streams(&self, outgoing: u16, incoming: u16) -> Result<(), ReconfigurationError> {
        self.request(|peer| peer.machine.add_streams(outgoing, incoming))
    }

    fn request(
        &self,
        request: impl FnOnce(&mut Peer) -> Result<(), ReconfigurationError>,
    ) -> Result<(), ReconfigurationError> {
        self.with(|peer, _| request(peer)).unwrap_or(Err(ReconfigurationError::Closing))
    }

    /// Changes which requests of the peer are performed from now on.
    pub fn set_accepted_requests(&self, accepted: AcceptedRequests) {
        self.with(|peer, _| peer.machine.set_accepted_requests(accepted));
    }

    /// Which requests of the peer are performed.
    pub fn accepted_requests(&self) -> AcceptedRequests {
        self.inspect(|peer, _| peer.machine.accepted_requests()).unwrap_or_default()
    }

    /// Number of streams on which this end sends, and of those on which the peer sends.
    pub fn stream_counts(&self) -> (u16, u16) {
        let counts =
            |peer: &Peer| (peer.machine.outbound_streams(), peer.machine.inbound_streams());
        self.inspect(|peer, _| counts(peer)).unwrap_or_default()
    }

    /// Takes the next event about streams, if any. A reset by the peer becomes available only after the messages that
    /// were sent before it have been received. A caller that calls this before receiving each message gets the reset
    /// before the first message that follows it.
    pub fn try_reconfiguration(&self) -> Option<Reconfigured> {
        self.with_if_needed(|peer, _| {
            let event = peer.machine.poll_reconfiguration();
            let taken = event.is_some();
            (event, taken)
        })?
    }

    /// Waits for the next event about streams. `None` if the association has ended.
    pub async fn next_reconfiguration(&self) -> Option<Reconfigured> {
        self.after_changes(|| match self.try_reconfiguration() {
            None if self.inspect(|peer, _| peer.ended.is_some()) == Some(false) => None,
            event => Some(event),
        })
        .await
    }

    /// Like [`Association::try_receive`], but stops at an event about streams, so that messages and events stay in
    /// order.
    pub fn try_receive_up_to_event(&self, into: &mut Vec<Received>, most: usize) -> UpToEvent {
        let before = into.len();
        let found = self.with_if_needed(|peer, now| {
            take_messages(peer, now, into, most, |peer| peer.machine.has_reconfiguration());
            let event = peer.machine.poll_reconfiguration();
            let needed = into.len() > before || event.is_some();
            (UpToEvent { event, more: peer.machine.can_read() }, needed)
        });
        found.unwrap_or(UpToEvent { event: None, more: false })
    }

    /// Whether a message or an event about streams can be taken.
    pub fn has_input(&self) -> bool {
        self.inspect(|peer, _| peer.has_input()).unwrap_or(false)
    }
}
