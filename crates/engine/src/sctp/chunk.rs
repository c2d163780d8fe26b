//! Chunks as RFC 9260, 3.3 lays them out, typed. The sizes are those on the wire.

use ropewalk_base::{Serial16, Serial32, StreamId, Time};

use super::cookie::Cookie;
use super::gaps::GapList;
use crate::payload::Payload;

/// Chunk header, bytes (3.2).
const CHUNK_HEADER: u32 = 4;

/// Flags of a DATA chunk (3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DataFlags(u8);

impl DataFlags {
    /// E: last fragment.
    pub const END: Self = Self(1);
    /// B: first fragment.
    pub const BEGIN: Self = Self(2);
    /// U: unordered.
    pub const UNORDERED: Self = Self(4);
    /// I: acknowledge at once (RFC 7053).
    pub const IMMEDIATE: Self = Self(8);
    /// B and E: a message in one chunk.
    pub const WHOLE: Self = Self(3);

    /// Whether all of `other` is set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The byte on the wire.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// DATA (3.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Transmission sequence number.
    pub tsn: Serial32,
    /// Stream.
    pub stream: StreamId,
    /// Stream sequence number.
    pub ssn: Serial16,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// U, B, E, I.
    pub flags: DataFlags,
    /// User data.
    pub payload: Payload,
    /// When the chunk first left. For measurement; it is not on the wire.
    pub first_sent: Time,
}

impl Data {
    /// Header of a DATA chunk, bytes.
    pub const HEADER: u32 = 16;

    /// Bytes of a chunk with `payload` bytes of user data, padding included.
    #[inline]
    pub const fn wire_len_of(payload: u32) -> u32 {
        Self::HEADER + payload.next_multiple_of(4)
    }
}

/// SACK (3.3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sack {
    /// Cumulative TSN acknowledgement.
    pub cumulative: Serial32,
    /// Advertised receive window, bytes.
    pub window: u32,
    /// Gap blocks in ascending order.
    pub gaps: GapList,
    /// TSNs received more than once.
    pub duplicates: Vec<Serial32>,
    /// DATA packets since the last SACK, 1 to 3, in the top flag bits (delayed acknowledgement
    /// for CMT); 0: not told.
    pub data_packets: u8,
}

/// INIT and INIT ACK (3.3.2, 3.3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Init {
    /// Initiate tag; never 0.
    pub tag: u32,
    /// Advertised receive window, bytes.
    pub window: u32,
    /// Outbound streams wanted.
    pub outbound_streams: u16,
    /// Inbound streams allowed.
    pub inbound_streams: u16,
    /// Initial TSN.
    pub initial_tsn: Serial32,
    /// How many addresses the sender lists.
    pub addresses: u8,
    /// Cookie Preservative: by how many milliseconds the cookie should live longer; 0: the
    /// parameter is absent (3.3.2.1.3).
    pub preserve_millis: u32,
}

impl Init {
    /// Bytes of the chunk: header, fixed part, an address parameter each, Cookie Preservative.
    const fn wire_len(&self) -> u32 {
        20 + 8 * self.addresses as u32 + if self.preserve_millis > 0 { 8 } else { 0 }
    }
}

/// What a HEARTBEAT carries and its acknowledgement returns (3.3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatInfo {
    /// 64-bit nonce (RFC 9260, 5.4).
    pub nonce: u64,
    /// When it left, by the sender's clock.
    pub sent: Time,
}

/// Timestamp beside DATA: the sender's clock (Sarwar et al., 2013, `T_s`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayStamp {
    /// Sender's clock, nanoseconds.
    pub sent: u64,
}

impl DelayStamp {
    /// Bytes of the chunk.
    pub const WIRE_LEN: u32 = CHUNK_HEADER + 8;
}

impl DelayEcho {
    /// Bytes of the chunk.
    pub const WIRE_LEN: u32 = CHUNK_HEADER + 20;
}

/// Timestamps beside a SACK (Sarwar et al., 2013, `T_r` and `T_e`): of the packet that is
/// acknowledged, on whose path the SACK returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayEcho {
    /// Which path the data packet came on.
    pub path: u8,
    /// Sender's clock when it left, nanoseconds.
    pub sent: u64,
    /// Receiver's clock when it came, nanoseconds.
    pub received: u64,
}

/// Why an association was aborted (3.3.10).
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
}

/// A chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// DATA.
    Data(Data),
    /// SACK.
    Sack(Sack),
    /// INIT.
    Init(Box<Init>),
    /// INIT ACK with its state cookie.
    InitAck(Box<(Init, Cookie)>),
    /// COOKIE ECHO.
    CookieEcho(Box<Cookie>),
    /// COOKIE ACK.
    CookieAck,
    /// ERROR: stale cookie, with the staleness in microseconds (3.3.10.3).
    StaleCookie(u32),
    /// ERROR: cookie received while shutting down (3.3.10.10).
    CookieInShutdown,
    /// HEARTBEAT.
    Heartbeat(HeartbeatInfo),
    /// HEARTBEAT ACK.
    HeartbeatAck(HeartbeatInfo),
    /// SHUTDOWN with the cumulative TSN.
    Shutdown(Serial32),
    /// SHUTDOWN ACK.
    ShutdownAck,
    /// SHUTDOWN COMPLETE.
    ShutdownComplete,
    /// ABORT.
    Abort(AbortCause),
}

impl Chunk {
    /// Bytes on the wire, padding included.
    #[inline]
    pub fn wire_len(&self) -> u32 {
        match self {
            Self::Data(d) => Data::wire_len_of(d.payload.len()),
            Self::Sack(s) => 16 + 4 * (s.gaps.len() + s.duplicates.len()) as u32,
            Self::Init(init) => init.wire_len(),
            Self::InitAck(both) => both.0.wire_len() + CHUNK_HEADER + Cookie::WIRE_LEN,
            Self::CookieEcho(_) => CHUNK_HEADER + Cookie::WIRE_LEN,
            Self::CookieAck | Self::ShutdownAck | Self::ShutdownComplete => CHUNK_HEADER,
            Self::StaleCookie(_) => CHUNK_HEADER + 8,
            Self::CookieInShutdown => CHUNK_HEADER + 4,
            // Parameter header, nonce, timestamp.
            Self::Heartbeat(_) | Self::HeartbeatAck(_) => CHUNK_HEADER + 4 + 16,
            Self::Shutdown(_) => CHUNK_HEADER + 4,
            Self::Abort(_) => CHUNK_HEADER + 4,
        }
    }
}
