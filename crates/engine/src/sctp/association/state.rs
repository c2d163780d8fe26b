//! The states of an association (RFC 9260, 4). Each holds what exists only in it.

use bytes::Bytes;
use ropewalk_base::{PathId, Time};

use super::super::cause::AbortCause;

/// Retransmission of a chunk that must be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// When to send it again.
    pub at: Time,
    /// How often it was sent again so far.
    pub count: u32,
}

/// Why an association ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// Both ends were shut down in order; everything was delivered.
    Shutdown,
    /// This end aborted it.
    Aborted(AbortCause),
    /// The peer aborted it.
    AbortedByPeer(AbortCause),
    /// The peer never answered the INIT.
    NoAnswer,
    /// The peer found every cookie too old, however long they were asked to live.
    StaleCookie,
    /// The peer stopped answering (Association.Max.Retrans).
    Unreachable,
}

impl core::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Shutdown => f.write_str("it was shut down in order"),
            Self::Aborted(cause) => write!(f, "this end aborted it: {cause}"),
            Self::AbortedByPeer(cause) => write!(f, "the peer aborted it: {cause}"),
            Self::NoAnswer => f.write_str("the peer does not answer"),
            Self::StaleCookie => {
                f.write_str("the peer found every cookie too old: is its clock being changed?")
            }
            Self::Unreachable => f.write_str("the peer has stopped answering on every path"),
        }
    }
}

impl core::error::Error for CloseReason {}

/// State of an association. It is asked for several times per packet: its tag is a byte of its own.
#[derive(Clone, PartialEq, Debug)]
#[repr(u8)]
pub enum State {
    /// Waits for a peer.
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
        /// What to send again.
        cookie: Bytes,
        /// When it was sent last.
        sent: Time,
        /// Where it came from.
        path: PathId,
    },
    /// Up.
    Established,
    /// The user wants to shut down; data is still on its way.
    ShutdownPending,
    /// SHUTDOWN sent.
    ShutdownSent {
        /// T2-shutdown.
        t2: Retry,
        /// T5-shutdown-guard: the end of patience.
        guard: Time,
    },
    /// The peer shuts down; our data is still on its way.
    ShutdownReceived {
        /// Where its SHUTDOWN came from: the SHUTDOWN ACK goes there.
        path: PathId,
    },
    /// SHUTDOWN ACK sent.
    ShutdownAckSent {
        /// T2-shutdown.
        t2: Retry,
        /// Where the SHUTDOWN came from.
        path: PathId,
    },
    /// Over.
    Ended(CloseReason),
}

impl State {
    /// Whether the user may queue data.
    pub const fn takes_data(&self) -> bool {
        matches!(
            self,
            Self::Closed | Self::CookieWait { .. } | Self::CookieEchoed { .. } | Self::Established
        )
    }

    /// Whether DATA may leave (RFC 9260, 6 and 9.2).
    #[inline]
    pub const fn sends_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived { .. })
    }

    /// Whether DATA is taken (RFC 9260, 6).
    #[inline]
    pub const fn receives_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownSent { .. })
    }

    /// Whether SACKs are taken.
    #[inline]
    pub const fn receives_sacks(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived { .. })
    }

    /// Whether HEARTBEATs are sent (RFC 9260, 8.3: no more of them after a SHUTDOWN or SHUTDOWN ACK).
    #[inline]
    pub const fn sends_heartbeats(&self) -> bool {
        self.sends_data()
    }

    /// Whether the association has been set up and has not ended: HEARTBEATs are answered.
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
