//! Stream reconfiguration (RFC 6525): resets the sequence numbers of streams or of the entire
//! association, and adds streams, while the association is in use.
//!
//! ```text
//!   user ----> waiting ----> outstanding ----> RE-CONFIG (request)  ----> peer
//!              requests      one chunk    <---- RE-CONFIG (response) <---
//! ```
//!
//! [`requester`] keeps the requests of this end, [`responder`] the requests of the peer. The association
//! applies the results to its streams. An association that uses none of this allocates nothing.

pub(crate) mod parameters;
pub(crate) mod requester;
pub(crate) mod responder;

use std::collections::{BTreeSet, VecDeque};

use ropewalk_base::{Serial32, StreamId, Time};

use self::requester::Requester;
use self::responder::Responder;

/// Maximum number of streams in one request. Both requests of a chunk then fit into the smallest packet
/// that this implementation sends.
pub const LISTED_LIMIT: usize = 256;
/// Maximum number of unread events. Further requests of the peer are not performed until the user has
/// read some.
const EVENTS_LIMIT: usize = 16;

/// Maximum number of streams in a request of the peer.
const PEER_LIST_LIMIT: usize = 2048;
/// How far old SACKs from before a reset of TSNs may lie behind: all TSNs that can be outstanding at a
/// time.
const OLD_TSNS: i32 = 1 << 16;

/// The requests of the peer that are performed (RFC 6525, 6.3.1). By default, none.
///
/// The peer's answers to requests of this end are always performed: the reset of streams after
/// [`Association::reset_streams`](crate::sctp::Association::reset_streams) of incoming streams, and the
/// addition of streams after [`Association::add_streams`](crate::sctp::Association::add_streams) of
/// incoming streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AcceptedRequests {
    /// Resets of streams, in both directions.
    pub stream_resets: bool,
    /// Resets of the association: TSNs and all streams.
    pub association_resets: bool,
    /// Additional streams, up to [`Config::stream_limit`](crate::sctp::Config::stream_limit).
    pub more_streams: bool,
}

impl AcceptedRequests {
    /// All requests.
    pub const ALL: Self =
        Self { stream_resets: true, association_resets: true, more_streams: true };
}

/// The streams that a request is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Streams {
    /// All streams of a direction.
    All,
    /// These streams, in ascending order, each once.
    Listed(Box<[StreamId]>),
}

impl Streams {
    /// These streams without repetitions, in ascending order. An empty list means all streams (RFC 6525,
    /// 4.1).
    pub fn of(streams: &[StreamId]) -> Self {
        let each: BTreeSet<u16> = streams.iter().map(|stream| stream.0).collect();
        if each.is_empty() {
            Self::All
        } else {
            Self::Listed(each.into_iter().map(StreamId).collect())
        }
    }

    /// The listed streams; empty if all are meant, as on the wire and in the socket interface.
    pub fn listed(&self) -> &[StreamId] {
        match self {
            Self::All => &[],
            Self::Listed(each) => each,
        }
    }

    /// Whether `stream` is among them.
    pub fn has(&self, stream: StreamId) -> bool {
        match self {
            Self::All => true,
            Self::Listed(each) => each.binary_search_by_key(&stream.0, |one| one.0).is_ok(),
        }
    }

    /// Whether all of `other` are among them.
    pub fn cover(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Listed(_), Self::All) => false,
            (Self::Listed(_), Self::Listed(each)) => each.iter().all(|stream| self.has(*stream)),
        }
    }

    /// Whether any stream is among both.
    pub fn overlap(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => true,
            (Self::Listed(_), Self::Listed(each)) => each.iter().any(|stream| self.has(*stream)),
        }
    }

    /// Whether the list exceeds the limit for requests of the peer.
    pub(crate) fn is_too_long(&self) -> bool {
        self.listed().len() > PEER_LIST_LIMIT
    }

    /// Whether every listed stream exists among `count` streams.
    pub(crate) fn exist(&self, count: u16) -> bool {
        self.listed().iter().all(|stream| stream.0 < count)
    }
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was performed.
    Performed,
    /// The peer refused it. Nothing has changed.
    Denied,
    /// The peer could not perform it, or the association began to shut down first. Nothing has changed.
    Failed,
}

/// Events of stream reconfiguration. [`Event::Reconfigured`](crate::sctp::Event::Reconfigured) announces
/// that one can be read by
/// [`Association::poll_reconfiguration`](crate::sctp::Association::poll_reconfiguration).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reconfigured {
    /// The peer has reset its outgoing streams: the next message of each is the first one. All messages sent before the reset
    /// have been read.
    ResetByPeer(Streams),
    /// The request of this end to reset its outgoing streams has ended. Messages submitted on these
    /// streams in the meantime are sent now.
    Reset(Streams, Outcome),
    /// The request of this end that the peer reset its streams was refused. If it is performed,
    /// [`Self::ResetByPeer`] follows instead.
    PeerResetRefused(Streams, Outcome),
    /// A reset of the association has ended: all streams of both directions start over. If it was performed, all messages
    /// that the peer sent before have been read.
    Association {
        /// Whether the peer requested it.
        by_peer: bool,
        /// Whether it was performed. Always so if the peer requested it.
        outcome: Outcome,
        /// The next TSN of this end.
        local_tsn: Serial32,
        /// The next TSN of the peer.
        peer_tsn: Serial32,
    },
    /// Streams were added, or the request to add them has failed. The counts are those of this request;
    /// the other direction has 0.
    StreamsAdded {
        /// Further streams on which this end sends.
        outgoing: u16,
        /// Further streams on which the peer sends.
        incoming: u16,
        /// Whether they were added. Always so if the peer requested it.
        outcome: Outcome,
    },
}

/// Why a request was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReconfigurationError {
    /// Both ends must offer stream reconfiguration in the handshake.
    #[error("stream reconfiguration was not negotiated; both ends must offer it")]
    NotSupported,
    /// The association is not established, or is shutting down.
    #[error("the association is not established, or is closing")]
    Closing,
    /// The stream does not exist.
    #[error("there is no such stream")]
    NoSuchStream,
    /// An earlier request about the same streams or about the entire association is still in progress.
    #[error("an earlier request has not ended; wait for its event")]
    InProgress,
    /// More than 65,535 streams in one direction would result.
    #[error("an association has at most 65535 streams in each direction")]
    TooManyStreams,
    /// The request is empty.
    #[error("name a direction, or a number of streams to add")]
    Empty,
}

/// Requests in both directions, and events for the user.
#[derive(Clone, Debug)]
pub(crate) struct Reconfiguration {
    pub requester: Requester,
    pub responder: Responder,
    /// The TSN that followed the last one before TSNs of this end were reset. `None`: they were not
    /// reset.
    pub old_next_tsn: Option<Serial32>,
    /// The association was reset at the request of the peer, and no data is sent before this time. Data
    /// must not overtake the response, which alone informs the peer that numbers start over.
    pub quiet_until: Option<Time>,
    /// Whether the user has requested the same reset of the association as the peer.
    pub both_reset: bool,
    /// Each event with the number of messages to be read before it is taken.
    events: VecDeque<(u64, Reconfigured)>,
    /// Number of messages that the user has read.
    read: u64,
}

impl Reconfiguration {
    /// RFC 6525, 4.1: request sequence numbers start at the initial TSNs.
    pub fn new(local_tsn: Serial32, peer_tsn: Serial32) -> Self {
        Self {
            requester: Requester::new(local_tsn),
            responder: Responder::new(peer_tsn),
            old_next_tsn: None,
            quiet_until: None,
            both_reset: false,
            events: VecDeque::new(),
            read: 0,
        }
    }

    /// Whether so many events are unread that the peer must not cause more.
    pub fn is_full(&self) -> bool {
        let listed = |event: &Reconfigured| match event {
            Reconfigured::ResetByPeer(streams) => streams.listed().len(),
            _ => 0,
        };
        let all: usize = self.events.iter().map(|(_, event)| listed(event)).sum();
        self.events.len() >= EVENTS_LIMIT || all > PEER_LIST_LIMIT
    }

    /// Whether a SACK of TSNs that were never sent may be legitimate: it was sent before a reset of TSNs,
    /// or by a peer that has already performed one.
    pub fn excuses(&self, cumulative: Serial32) -> bool {
        let is_old = |next| (-OLD_TSNS..0).contains(&cumulative.distance_from(next));
        self.requester.is_resetting_association() || self.old_next_tsn.is_some_and(is_old)
    }

    /// When the next timer expires.
    pub fn deadline(&self) -> Option<Time> {
        self.requester.deadline().into_iter().chain(self.quiet_until).min()
    }

    /// Adds an event. `unread`: number of messages that the user can read now.
    pub fn push_event(&mut self, event: Reconfigured, unread: usize) {
        let by_peer = match &event {
            Reconfigured::ResetByPeer(_) => true,
            Reconfigured::Association { outcome, .. } => *outcome == Outcome::Performed,
            _ => false,
        };
        let after = if by_peer { self.read + unread as u64 } else { 0 };
        self.events.push_back((after, event));
    }

    /// Whether [`Self::take_event`] returns an event.
    pub fn has_event(&self) -> bool {
        self.events.iter().any(|(after, _)| *after <= self.read)
    }

    /// Takes the oldest event, once all messages that precede it have been read.
    pub fn take_event(&mut self) -> Option<Reconfigured> {
        let at = self.events.iter().position(|(after, _)| *after <= self.read)?;
        self.events.remove(at).map(|(_, event)| event)
    }

    /// Counts a message that the user has read.
    pub const fn on_read(&mut self) {
        self.read += 1;
    }

    /// Drops the condition that messages are read first, because they were dropped.
    pub fn on_discard(&mut self) {
        self.events.iter_mut().for_each(|(after, _)| *after = 0);
    }
}
