//! Error causes of ERROR and ABORT (RFC 9260, 3.3.10).

use bytes::Bytes;
use ropewalk_base::{Duration, Serial32, StreamId};

/// An error cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorCause {
    /// Invalid Stream Identifier (1).
    InvalidStream(StreamId),
    /// Missing Mandatory Parameter (2): the types.
    MissingParameters(Vec<u16>),
    /// Stale Cookie (3): its staleness in microseconds.
    StaleCookie(u32),
    /// Out of resource (4).
    OutOfResource,
    /// Unresolvable Address (5): the parameter.
    UnresolvableAddress(Bytes),
    /// Unrecognized Chunk Type (6): the complete chunk.
    UnrecognisedChunk(Bytes),
    /// Invalid Mandatory Parameter (7).
    InvalidParameter,
    /// Unrecognized Parameters of an INIT ACK (8), complete with headers.
    UnrecognisedParameters(Bytes),
    /// No User Data (9): the TSN of the DATA chunk.
    NoUserData(Serial32),
    /// Cookie Received While Shutting Down (10).
    CookieInShutdown,
    /// Restart of an Association with New Addresses (11): the address parameters.
    NewAddresses(Bytes),
    /// User-Initiated Abort (12): the user's reason.
    UserAbort(Bytes),
    /// Protocol Violation (13): a description.
    ProtocolViolation(Bytes),
    /// Association Aborted due to illegal ASCONF-ACK (163; RFC 5061, 4.3.4).
    IllegalAsconfAck,
    /// Unsupported HMAC Identifier (261; RFC 4895, 4): the identifier.
    UnsupportedHmac(u16),
    /// Any other cause.
    Other {
        /// Cause code.
        code: u16,
        /// The bytes after code and length.
        value: Bytes,
    },
}

/// Why an association was aborted (3.3.10), as reported to its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortCause {
    /// Aborted by the user (12).
    User,
    /// Protocol violation (13).
    ProtocolViolation,
    /// A DATA chunk without data (9).
    NoUserData,
    /// The peer stopped answering. Reported to the user only, never sent.
    Unreachable,
    /// Out of resource (4).
    OutOfResource,
    /// A restart with addresses that the association did not have (11).
    NewAddresses,
    /// An address that cannot be used (5).
    UnresolvableAddress,
    /// The association is unknown to the peer: its ABORT reflected our own tag.
    Unknown,
    /// No cause was given.
    Unspecified,
    /// A cause with this code.
    Other(u16),
}

impl AbortCause {
    /// Cause code (RFC 9260, 3.3.10), 0 without one.
    pub const fn code(self) -> u16 {
        match self {
            Self::OutOfResource => 4,
            Self::UnresolvableAddress => 5,
            Self::NoUserData => 9,
            Self::NewAddresses => 11,
            Self::User => 12,
            Self::ProtocolViolation => 13,
            Self::Other(code) => code,
            Self::Unreachable | Self::Unknown | Self::Unspecified => 0,
        }
    }
}

impl core::fmt::Display for AbortCause {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::User => "user-initiated abort",
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

/// Maximum number of bytes of unrecognized data in a report, to keep it small.
pub(super) const REPORT_LIMIT: usize = 128;

impl ErrorCause {
    /// Unresolvable Address, with the parameter or the beginning of a long one.
    pub(super) fn unresolvable(parameter: &Bytes) -> Self {
        Self::UnresolvableAddress(parameter.slice(..parameter.len().min(REPORT_LIMIT)))
    }

    /// A protocol violation without a description.
    pub const VIOLATION: Self = Self::ProtocolViolation(Bytes::new());
    /// A user-initiated abort without a reason.
    pub const USER: Self = Self::UserAbort(Bytes::new());

    /// A cookie that is stale by this much; the wire format has 32 bits of microseconds.
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
            Self::IllegalAsconfAck => 163,
            Self::UnsupportedHmac(_) => 261,
            Self::Other { code, .. } => *code,
        }
    }

    /// Length without padding, bytes: header and value.
    pub(super) fn len(&self) -> u32 {
        4 + match self {
            Self::InvalidStream(_) | Self::StaleCookie(_) | Self::NoUserData(_) => 4,
            Self::UnsupportedHmac(_) => 2,
            Self::MissingParameters(types) => 4 + 2 * types.len() as u32,
            Self::OutOfResource
            | Self::InvalidParameter
            | Self::CookieInShutdown
            | Self::IllegalAsconfAck => 0,
            Self::UnresolvableAddress(value)
            | Self::UnrecognisedChunk(value)
            | Self::UnrecognisedParameters(value)
            | Self::NewAddresses(value)
            | Self::UserAbort(value)
            | Self::ProtocolViolation(value)
            | Self::Other { value, .. } => value.len() as u32,
        }
    }

    /// Length of several causes, padding included, bytes.
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
