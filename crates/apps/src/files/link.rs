//! The interface between file transfer and an association: ordered messages, and statistics of its paths.

use std::future::Future;

use bytes::Bytes;
use ropewalk_base::PeerText;

use super::peer::Peer;

/// The association has ended.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct AssociationEnded(pub PeerText);

/// Statistics of one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathFigures {
    /// Name of the link: the interface, or the local address if there is none.
    pub link: String,
    /// Local address, as `address:port`.
    pub local: String,
    /// Remote address, as `address:port`.
    pub remote: String,
    /// State of the path: `active`, `unconfirmed`, `doubtful` or `down`.
    pub state: &'static str,
    /// User data that the peer has acknowledged, bytes.
    pub delivered_bytes: u64,
    /// User data that has arrived from the peer, bytes.
    pub received_bytes: u64,
    /// Retransmitted chunks.
    pub retransmits: u64,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: Option<u64>,
}

impl PathFigures {
    /// User data of the path in the direction of the transfer, bytes.
    pub const fn bytes(&self, role: Role) -> u64 {
        match role {
            Role::Sender => self.delivered_bytes,
            Role::Receiver => self.received_bytes,
        }
    }

    /// The name of the path for users: its link and the peer's address.
    pub fn name(&self) -> String {
        format!("{} -> {}", self.link, self.remote)
    }
}

/// Which end of a transfer this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Sends the files.
    Sender,
    /// Receives the files.
    Receiver,
}

/// Information that is available while a transfer runs.
pub trait Figures: Send + Sync {
    /// Statistics of each path.
    fn paths(&self) -> Vec<PathFigures>;

    /// Ends the association immediately.
    fn abort(&self);
}

/// An association, or its substitute in a test.
pub trait Link: Figures + 'static {
    /// Sends messages in order. Waits while there is no room.
    fn send_all(
        &self,
        messages: &mut (dyn Iterator<Item = Bytes> + Send),
    ) -> impl Future<Output = Result<(), AssociationEnded>> + Send;

    /// Appends the messages that have arrived, at least one. Appends nothing if the association has ended.
    fn receive_all(&self, into: &mut Vec<Bytes>) -> impl Future<Output = ()> + Send;

    /// The peer at the other end.
    fn peer(&self) -> Peer;

    /// Size of the largest message that fits into one packet, bytes.
    fn message_size(&self) -> usize;

    /// The reason why the association ended, as text for the user.
    fn end_reason(&self) -> impl Future<Output = PeerText> + Send;

    /// Ends the association once everything sent has arrived.
    fn finish(&self) -> impl Future<Output = ()> + Send;
}
