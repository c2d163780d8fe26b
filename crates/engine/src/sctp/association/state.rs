//! The states of an association (RFC 9260, 4). Each variant holds the data that exists only in that state.

use bytes::Bytes;
use ropewalk_base::{PathId, Time};

use super::super::cause::AbortCause;

/// Retransmission timer of a control chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// When the chunk is retransmitted.
    pub at: Time,
    /// Number of retransmissions so far.
    pub count: u32,
}

/// Why an association ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CloseReason {
    /// Graceful shutdown. All data was delivered.
    #[error("it was shut down in order")]
    Shutdown,
    /// This end aborted the association.
    #[error("this end aborted it: {0}")]
    Aborted(AbortCause),
    /// The peer aborted the association.
    #[error("the peer aborted it: {0}")]
    AbortedByPeer(AbortCause),
    /// The peer never answered the INIT.
    #[error("the peer does not answer")]
    NoAnswer,
    /// Every address of the peer refused the INIT: nothing receives SCTP there.
    #[error("nothing receives SCTP at the peer's addresses: they refused it")]
    Refused,
    /// The peer rejected every cookie as stale, although each INIT requested a longer life.
    #[error("the peer found every cookie too old: is its clock being changed?")]
    StaleCookie,
    /// The peer stopped answering (Association.Max.Retrans).
    #[error("the peer has stopped answering on every path")]
    Unreachable,
}

/// State of an association. The discriminant is a separate byte, because the state is read several times
/// per packet.
#[derive(Clone, PartialEq, Debug)]
#[repr(u8)]
pub enum State {
    /// No association yet.
    Closed,
    /// INIT sent.
    CookieWait {
        /// T1-init.
        t1: Retry,
    },
    /// COOKIE ECHO sent.
    CookieEchoed {
        /// T1-cookie.
        t1: Retry,
        /// The cookie to echo.
        cookie: Box<Bytes>,
        /// When the COOKIE ECHO was last sent.
        sent: Time,
        /// The path on which the INIT ACK arrived.
        path: PathId,
    },
    /// The association is established.
    Established,
    /// The user has requested a shutdown; data is still outstanding.
    ShutdownPending,
    /// SHUTDOWN sent.
    ShutdownSent {
        /// T2-shutdown.
        t2: Retry,
        /// T5-shutdown-guard: when the association is aborted.
        guard: Time,
    },
    /// The peer is shutting down; our data is still outstanding.
    ShutdownReceived {
        /// The path on which the SHUTDOWN arrived. The SHUTDOWN ACK goes there.
        path: PathId,
    },
    /// SHUTDOWN ACK sent.
    ShutdownAckSent {
        /// T2-shutdown.
        t2: Retry,
        /// The path on which the SHUTDOWN arrived.
        path: PathId,
    },
    /// The association has ended.
    Ended(CloseReason),
}

impl State {
    /// When the timer of the state expires.
    pub(super) fn deadline(&self) -> Option<Time> {
        match self {
            Self::CookieWait { t1 } | Self::CookieEchoed { t1, .. } => Some(t1.at),
            Self::ShutdownSent { t2, guard } => Some(t2.at.min(*guard)),
            Self::ShutdownAckSent { t2, .. } => Some(t2.at),
            _ => None,
        }
    }

    /// Whether the user may queue data.
    pub const fn takes_data(&self) -> bool {
        matches!(
            self,
            Self::Closed | Self::CookieWait { .. } | Self::CookieEchoed { .. } | Self::Established
        )
    }

    /// Whether DATA may be sent (RFC 9260, 6 and 9.2).
    #[inline]
    pub const fn sends_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived { .. })
    }

    /// Whether received DATA is accepted (RFC 9260, 6).
    #[inline]
    pub const fn receives_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownSent { .. })
    }

    /// Whether received SACKs are processed.
    #[inline]
    pub const fn receives_sacks(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived { .. })
    }

    /// Whether RE-CONFIG chunks are processed.
    pub const fn reconfigures(&self) -> bool {
        self.is_up() && !matches!(self, Self::ShutdownAckSent { .. })
    }

    /// Whether HEARTBEATs are sent (RFC 9260, 8.3: none after a SHUTDOWN or SHUTDOWN ACK was sent).
    #[inline]
    pub const fn sends_heartbeats(&self) -> bool {
        self.sends_data()
    }

    /// Whether the association has been established and has not ended. HEARTBEATs are answered then.
    #[inline]
    pub const fn is_up(&self) -> bool {
        matches!(
            self,
            Self::Established
                | Self::ShutdownPending
                | Self::ShutdownSent { .. }
                | Self::ShutdownReceived { .. }
                | Self::ShutdownAckSent { .. }
        )
    }
}
