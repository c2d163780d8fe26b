//! What files need of an association: messages in order, and figures of its paths.

use std::fmt;
use std::future::Future;

use bytes::Bytes;
use ropewalk_base::PeerText;

use super::peer::Peer;

/// The association is no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gone(pub PeerText);

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Gone {}

/// Figures of one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathFigures {
    /// From where, as `address:port`.
    pub local: String,
    /// To where.
    pub remote: String,
    /// Whether it carries data: `active`, `unconfirmed`, `doubtful` or `down`.
    pub state: &'static str,
    /// User data that went over it: acknowledged ones of a sender, arrived ones of a receiver, bytes.
    pub bytes: u64,
    /// Chunks sent again.
    pub retransmits: u64,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Smoothed round trip, microseconds.
    pub rtt_us: Option<u64>,
}

/// What can be asked while a transfer runs.
pub trait Figures: Send + Sync {
    /// Per path.
    fn paths(&self) -> Vec<PathFigures>;

    /// Ends it at once.
    fn hang_up(&self);
}

/// An association, or what stands for it in a test.
pub trait Link: Figures + 'static {
    /// Sends messages in order; waits while there is no room.
    fn send_all(
        &self,
        messages: &mut (dyn Iterator<Item = Bytes> + Send),
    ) -> impl Future<Output = Result<(), Gone>> + Send;

    /// Appends the messages that have come, at least one. None: it has ended.
    fn receive_all(&self, into: &mut Vec<Bytes>) -> impl Future<Output = ()> + Send;

    /// Who is at the other end.
    fn peer(&self) -> Peer;

    /// Bytes of the largest message that travels in one packet.
    fn message_size(&self) -> usize;

    /// Why it ended, for a person.
    fn why_ended(&self) -> impl Future<Output = PeerText> + Send;

    /// Ends it when all that was sent has arrived.
    fn finish(&self) -> impl Future<Output = ()> + Send;
}
