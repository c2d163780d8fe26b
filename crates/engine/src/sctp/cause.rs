//! What is wrong: the causes that ERROR and ABORT carry (RFC 9260, 3.3.10).

use bytes::Bytes;
use ropewalk_base::{Duration, Serial32, StreamId};

/// An error cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorCause {
    /// DATA on a stream that does not exist (1).
    InvalidStream(StreamId),
    /// Parameters that must be there are not (2): their types.
    MissingParameters(Vec<u16>),
    /// The cookie came back too late (3), by so many microseconds.
    StaleCookie(u32),
    /// Out of resource (4).
    OutOfResource,
    /// An address that cannot be used (5): the parameter.
    UnresolvableAddress(Bytes),
    /// A chunk that is not known (6), whole.
    UnrecognisedChunk(Bytes),
    /// A mandatory parameter has an impossible value (7).
    InvalidParameter,
    /// Parameters of an INIT ACK that are not known (8), whole.
    UnrecognisedParameters(Bytes),
    /// DATA without data (9): its TSN.
    NoUserData(Serial32),
    /// A COOKIE ECHO while shutting down (10).
    CookieInShutdown,
    /// A restart that brings addresses along (11): the address parameters.
    NewAddresses(Bytes),
    /// The user ended it (12): a reason, in the user's words.
    UserAbort(Bytes),
    /// The protocol was broken (13): how, for people.
    ProtocolViolation(Bytes),
    /// Any other.
    Other {
        /// Cause code.
        code: u16,
        /// What follows it.
        value: Bytes,
    },
}

/// Why an association was aborted (3.3.10), as its user is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortCause {
    /// By the user (12).
    User,
    /// The peer broke the protocol (13).
    ProtocolViolation,
    /// A DATA chunk without data (9).
    NoUserData,
    /// The peer stopped answering; not sent, told to the user only.
    Unreachable,
    /// Out of resource (4).
    OutOfResource,
    /// A restart that names more addresses than the association had (11).
    NewAddresses,
    /// An address that cannot be used (5).
    UnresolvableAddress,
    /// The peer does not know of the association: its ABORT came back with our own tag.
    Unknown,
    /// No cause was given.
    Unspecified,
    /// A cause with this code.
    Other(u16),
}

impl core::fmt::Display for AbortCause {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::User => "its user wanted so",
            Self::ProtocolViolation => "the protocol was broken",
            Self::NoUserData => "a DATA chunk had no data",
            Self::Unreachable => "nothing is answered any more",
            Self::OutOfResource => "it is out of resources",
            Self::NewAddresses => "a restart brought new addresses along",
            Self::UnresolvableAddress => "an address cannot be used",
            Self::Unknown => "the association is not known there",
            Self::Unspecified => "no cause was given",
            Self::Other(code) => return write!(f, "cause code {code}"),
        })
    }
}

/// Most bytes that are shown of what was not understood: an answer must stay small.
pub(super) const REPORT_LIMIT: usize = 128;

impl ErrorCause {
    /// An address that cannot be used: the parameter, or the beginning of a long one.
    pub(super) fn unresolvable(parameter: &Bytes) -> Self {
        Self::UnresolvableAddress(parameter.slice(..parameter.len().min(REPORT_LIMIT)))
    }

    /// A broken protocol without further words.
    pub const VIOLATION: Self = Self::ProtocolViolation(Bytes::new());
    /// The user's wish without further words.
    pub const USER: Self = Self::UserAbort(Bytes::new());

    /// A cookie that is too old by this much; the wire has 32 bits of microseconds for it.
    pub(super) fn stale(by: Duration) -> Self {
        Self::StaleCookie((by.as_nanos() / 1000).min(u32::MAX as u64) as u32)
    }

    /// Cause code.
    pub const fn code(&self) -> u16 {
        match self {
            Self::InvalidStream(_) => 1,
            Self::MissingParameters(_) => 2,
            Self::StaleCookie(_) => 3,
            Self::OutOfResource => 4,
            Self::UnresolvableAddress(_) => 5,
            Self::UnrecognisedChunk(_) => 6,
            Self::InvalidParameter => 7,
            Self::UnrecognisedParameters(_) => 8,
            Self::NoUserData(_) => 9,
            Self::CookieInShutdown => 10,
            Self::NewAddresses(_) => 11,
            Self::UserAbort(_) => 12,
            Self::ProtocolViolation(_) => 13,
            Self::Other { code, .. } => *code,
        }
    }

    /// Bytes without padding: header and what follows.
    pub(super) fn len(&self) -> u32 {
        4 + match self {
            Self::InvalidStream(_) | Self::StaleCookie(_) | Self::NoUserData(_) => 4,
            Self::MissingParameters(types) => 4 + 2 * types.len() as u32,
            Self::OutOfResource | Self::InvalidParameter | Self::CookieInShutdown => 0,
            Self::UnresolvableAddress(value)
            | Self::UnrecognisedChunk(value)
            | Self::UnrecognisedParameters(value)
            | Self::NewAddresses(value)
            | Self::UserAbort(value)
            | Self::ProtocolViolation(value)
            | Self::Other { value, .. } => value.len() as u32,
        }
    }

    /// Bytes of several, padding included.
    pub(super) fn wire_len(causes: &[Self]) -> u32 {
        causes.iter().map(|one| one.len().next_multiple_of(4)).sum()
    }
}

impl From<&ErrorCause> for AbortCause {
    fn from(cause: &ErrorCause) -> Self {
        match cause {
            ErrorCause::UserAbort(_) => Self::User,
            ErrorCause::ProtocolViolation(_) => Self::ProtocolViolation,
            ErrorCause::NoUserData(_) => Self::NoUserData,
            ErrorCause::OutOfResource => Self::OutOfResource,
            ErrorCause::NewAddresses(_) => Self::NewAddresses,
            ErrorCause::UnresolvableAddress(_) => Self::UnresolvableAddress,
            other => Self::Other(other.code()),
        }
    }
}
