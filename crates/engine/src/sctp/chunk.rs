//! Typed chunks of RFC 9260, 3.3. Sizes are those on the wire.

use bytes::Bytes;
use ropewalk_base::{Serial16, Serial32, StreamId, Time};

use super::cause::ErrorCause;
use super::extension_chunk::ExtensionChunk;
use super::gaps::GapList;
use super::init::Init;
use super::wire::kind;
use crate::payload::Payload;

/// Chunk header, bytes (3.2).
const CHUNK_HEADER: u32 = 4;
/// Parameter header, bytes (3.2.1).
const PARAMETER_HEADER: u32 = 4;

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
    /// I: acknowledge immediately (RFC 7053).
    pub const IMMEDIATE: Self = Self(8);
    /// B and E: a message in one chunk.
    pub const WHOLE: Self = Self(3);
    /// The chunk is I-DATA (RFC 8260, 2.1). Not a flag on the wire, where I-DATA has its own chunk type.
    pub const INTERLEAVED: Self = Self(0x80);
    /// The flags on the wire.
    const ON_THE_WIRE: u8 = 15;

    /// Whether all of `other` is set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Union of both.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The flags that are also in `kind`.
    #[inline]
    #[must_use]
    pub(crate) const fn only(self, kind: Self) -> Self {
        Self(self.0 & kind.0)
    }

    /// The byte on the wire.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0 & Self::ON_THE_WIRE
    }

    /// From the byte on the wire. RFC 9260, 3.3.1: reserved bits are ignored.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ON_THE_WIRE)
    }
}

/// DATA (3.3.1), or I-DATA (RFC 8260, 2.1) if [`DataFlags::INTERLEAVED`] is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Transmission sequence number.
    pub tsn: Serial32,
    /// Stream.
    pub stream: StreamId,
    /// Stream sequence number. For I-DATA, the lower half of the message identifier.
    pub ssn: Serial16,
    /// Payload protocol identifier. For I-DATA that is not the first fragment of its message, the
    /// fragment sequence number.
    pub ppid: u32,
    /// U, B, E, I.
    pub flags: DataFlags,
    /// The upper half of the message identifier of I-DATA; 0 in DATA.
    pub message_high: u16,
    /// User data.
    pub payload: Payload,
    /// When the chunk was first sent. For measurements; not on the wire.
    pub first_sent: Time,
}

impl Data {
    /// Header of a DATA chunk, bytes.
    pub const HEADER: u32 = 16;
    /// Header of an I-DATA chunk, bytes.
    pub const INTERLEAVED_HEADER: u32 = 20;
    /// Bytes before the user data of a datagram in the compact form: the last three of the TSN.
    pub const COMPACT_HEADER: u32 = 3;
    /// In the compact form, length of the chunks before a datagram, bytes.
    pub(crate) const CHUNKS_LENGTH: u32 = 2;

    /// Initial value, filled in place. Moving a struct whose fields have just been written stalls until all
    /// these writes have reached the cache.
    pub(crate) const BLANK: Self = Self {
        tsn: Serial32(0),
        stream: StreamId(0),
        ssn: Serial16(0),
        ppid: 0,
        flags: DataFlags(0),
        message_high: 0,
        payload: Payload::Length(0),
        first_sent: Time::ZERO,
    };

    /// Copies `other` field by field: see [`Self::BLANK`].
    #[inline]
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.tsn = other.tsn;
        self.stream = other.stream;
        self.ssn = other.ssn;
        self.ppid = other.ppid;
        self.flags = other.flags;
        self.message_high = other.message_high;
        self.payload.clone_from(&other.payload);
        self.first_sent = other.first_sent;
    }

    /// Length of a DATA chunk with `payload` bytes of user data, padding included, bytes.
    #[inline]
    pub const fn wire_len_of(payload: u32) -> u32 {
        Self::HEADER + payload.next_multiple_of(4)
    }

    /// Length of the chunk, padding included, bytes.
    #[inline]
    pub fn wire_len(&self) -> u32 {
        // Branch-free: one bit determines whether there are 4 more bytes.
        let more = (self.flags.0 & DataFlags::INTERLEAVED.0) >> 5;
        Self::wire_len_of(self.payload.len()) + u32::from(more)
    }

    /// Whether this is I-DATA.
    #[inline]
    pub const fn is_interleaved(&self) -> bool {
        self.flags.has(DataFlags::INTERLEAVED)
    }

    /// Message identifier of I-DATA (RFC 8260, 2.1).
    #[inline]
    pub const fn message(&self) -> Serial32 {
        Serial32((self.message_high as u32) << 16 | self.ssn.0 as u32)
    }

    /// Fragment sequence number of I-DATA. RFC 8260, 2.1: that of the first fragment is 0 and not on the wire.
    #[inline]
    pub const fn fragment(&self) -> u32 {
        if self.flags.has(DataFlags::BEGIN) { 0 } else { self.ppid }
    }

    /// Turns this into I-DATA of the message `message`. `fragment`: its number in the message; not used
    /// for the first one.
    #[inline]
    pub(crate) const fn interleave(&mut self, message: Serial32, fragment: u32) {
        self.flags = self.flags.and(DataFlags::INTERLEAVED);
        (self.ssn, self.message_high) = (Serial16(message.0 as u16), (message.0 >> 16) as u16);
        if !self.flags.has(DataFlags::BEGIN) {
            self.ppid = fragment;
        }
    }

    /// Whether this is an unordered unfragmented message, which is delivered on arrival even if earlier
    /// TSNs are missing.
    #[inline]
    pub const fn is_unordered_unfragmented(&self) -> bool {
        self.flags.has(DataFlags::WHOLE.and(DataFlags::UNORDERED))
    }

    /// Whether this is a datagram: an unordered unfragmented message on stream 0 without a payload
    /// protocol identifier. RFC 9260, 3.3.1: the SSN of an unordered chunk is ignored. I-DATA never is a
    /// datagram, because it has a message identifier.
    #[inline]
    pub const fn is_datagram(&self) -> bool {
        self.is_unordered_unfragmented()
            && !self.is_interleaved()
            && Self::is_datagram_stream(self.stream, self.ppid)
    }

    /// Whether unordered messages on this stream with this payload protocol identifier are datagrams if they fit into
    /// one chunk.
    #[inline]
    pub(crate) const fn is_datagram_stream(stream: StreamId, ppid: u32) -> bool {
        stream.0 == 0 && ppid == 0
    }
}

/// SACK (3.3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sack {
    /// Cumulative TSN acknowledgement.
    pub cumulative: Serial32,
    /// Advertised receive window, bytes.
    pub window: u32,
    /// Gap ack blocks in ascending order.
    pub gaps: GapList,
    /// TSNs received more than once.
    pub duplicates: Vec<Serial32>,
    /// Packets with DATA since the last SACK, 1 to 3, in the highest flag bits (delayed acknowledgement for
    /// CMT); 0: not given.
    pub data_packets: u8,
    /// The number of a requested SACK ([`SackOptions::on_request`](super::SackOptions::on_request)), which lists the
    /// blocks that changed recently. `None`: a SACK of RFC 9260, which lists all blocks.
    pub number: Option<Serial16>,
}

impl Sack {
    /// The chunk type.
    #[inline]
    pub const fn kind(&self) -> u8 {
        match self.number {
            None => kind::SACK,
            Some(_) => kind::REQUESTED_SACK,
        }
    }

    /// Bytes of the chunk.
    #[inline]
    pub const fn wire_len(&self) -> u32 {
        16 + 4 * (self.gaps.len() + self.duplicates.len()) as u32
    }
}

/// Content of the Heartbeat Info of our HEARTBEATs (3.3.5). The peer's is opaque and returned unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartbeatInfo {
    /// 64-bit nonce (RFC 9260, 5.4).
    pub nonce: u64,
    /// When it was sent, by the sender's clock.
    pub sent: Time,
    /// Size of the packet if it is a path MTU probe (RFC 8899), bytes.
    pub probe: Option<u32>,
}

impl HeartbeatInfo {
    /// The bytes on the wire.
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(20);
        bytes.extend_from_slice(&self.nonce.to_be_bytes());
        bytes.extend_from_slice(&self.sent.as_nanos().to_be_bytes());
        if let Some(size) = self.probe {
            bytes.extend_from_slice(&size.to_be_bytes());
        }
        bytes.into()
    }

    /// Parses returned information, `None` if it cannot be ours.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (nonce, rest) = bytes.split_first_chunk::<8>()?;
        let (sent, rest) = rest.split_first_chunk::<8>()?;
        let probe = match rest {
            [] => None,
            _ => Some(u32::from_be_bytes(rest.try_into().ok()?)),
        };
        let sent = Time::from_nanos(u64::from_be_bytes(*sent));
        Some(Self { nonce: u64::from_be_bytes(*nonce), sent, probe })
    }
}

/// Timestamp that accompanies DATA: the sender's clock (Sarwar et al., 2013, `T_s`).
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
    /// Bytes in the compact form: path, TSN, and the receiver's clock in microseconds.
    pub(crate) const COMPACT_LEN: u32 = 1 + 4 + 6;
}

/// The packet that a [`DelayEcho`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echoed {
    /// The packet with this [`DelayStamp`].
    Time(u64),
    /// The packet whose first DATA chunk had this TSN. The sender knows when it sent it on this path.
    Tsn(Serial32),
}

/// Timestamps that accompany a SACK (Sarwar et al., 2013, `T_r` and `T_e`), of an acknowledged packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayEcho {
    /// The path on which the packet with DATA arrived.
    pub path: u8,
    /// The packet.
    pub of: Echoed,
    /// Receiver's clock when the packet arrived, nanoseconds.
    pub received: u64,
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
    /// INIT ACK with its state cookie, which may be missing.
    InitAck(Box<(Init, Option<Bytes>)>),
    /// COOKIE ECHO with the cookie.
    CookieEcho(Bytes),
    /// COOKIE ACK.
    CookieAck,
    /// ERROR.
    Error(Vec<ErrorCause>),
    /// HEARTBEAT: the heartbeat information, ours or the peer's.
    Heartbeat(Bytes),
    /// HEARTBEAT ACK: the returned heartbeat information.
    HeartbeatAck(Bytes),
    /// SHUTDOWN with the cumulative TSN.
    Shutdown(Serial32),
    /// SHUTDOWN ACK.
    ShutdownAck,
    /// SHUTDOWN COMPLETE.
    ShutdownComplete {
        /// T: the verification tag is that of the answered packet.
        reflected: bool,
    },
    /// ABORT.
    Abort {
        /// T: the verification tag is that of the answered packet.
        reflected: bool,
        /// Error causes.
        causes: Vec<ErrorCause>,
    },
    /// A chunk of an extension.
    Extension(Box<ExtensionChunk>),
    /// A chunk of an unknown type that is to be reported, complete with its header.
    Unknown(Bytes),
}

impl Chunk {
    /// SHUTDOWN COMPLETE under the peer's tag.
    pub const SHUTDOWN_COMPLETE: Self = Self::ShutdownComplete { reflected: false };

    /// ERROR with one cause.
    pub fn error(cause: ErrorCause) -> Self {
        Self::Error(vec![cause])
    }

    /// ABORT with one cause under the peer's tag.
    pub fn abort(cause: ErrorCause) -> Self {
        Self::Abort { reflected: false, causes: vec![cause] }
    }

    /// Chunk type (3.2).
    pub fn kind(&self) -> u8 {
        match self {
            Self::Data(data) if data.is_interleaved() => kind::I_DATA,
            Self::Data(_) => kind::DATA,
            Self::Sack(sack) => sack.kind(),
            Self::Init(_) => kind::INIT,
            Self::InitAck(_) => kind::INIT_ACK,
            Self::CookieEcho(_) => kind::COOKIE_ECHO,
            Self::CookieAck => kind::COOKIE_ACK,
            Self::Error(_) => kind::ERROR,
            Self::Heartbeat(_) => kind::HEARTBEAT,
            Self::HeartbeatAck(_) => kind::HEARTBEAT_ACK,
            Self::Shutdown(_) => kind::SHUTDOWN,
            Self::ShutdownAck => kind::SHUTDOWN_ACK,
            Self::ShutdownComplete { .. } => kind::SHUTDOWN_COMPLETE,
            Self::Abort { .. } => kind::ABORT,
            Self::Extension(rare) => rare.kind(),
            Self::Unknown(whole) => whole.first().copied().unwrap_or_default(),
        }
    }

    /// Bytes on the wire, padding included.
    #[inline]
    pub fn wire_len(&self) -> u32 {
        match self {
            Self::Data(d) => d.wire_len(),
            Self::Sack(s) => s.wire_len(),
            other => other.control_len(),
        }
    }

    /// Bytes of successive chunks on the wire. A PAD that is not the last of them is padded.
    #[inline]
    pub(crate) fn wire_len_of(chunks: &[Self]) -> u32 {
        let Some((last, before)) = chunks.split_last() else { return 0 };
        let padded = |chunk: &Self| chunk.wire_len().next_multiple_of(4);
        last.wire_len() + before.iter().map(padded).sum::<u32>()
    }

    fn control_len(&self) -> u32 {
        let padded = |bytes: &Bytes| (bytes.len() as u32).next_multiple_of(4);
        match self {
            Self::Data(_) | Self::Sack(_) => unreachable!("measured by the caller"),
            Self::Init(init) => init.wire_len(),
            Self::InitAck(both) => {
                let cookie = both.1.as_ref().map_or(0, |cookie| PARAMETER_HEADER + padded(cookie));
                both.0.wire_len() + cookie
            }
            Self::CookieEcho(cookie) => CHUNK_HEADER + padded(cookie),
            Self::CookieAck | Self::ShutdownAck | Self::ShutdownComplete { .. } => CHUNK_HEADER,
            Self::Error(causes) | Self::Abort { causes, .. } => {
                CHUNK_HEADER + ErrorCause::wire_len(causes)
            }
            Self::Heartbeat(info) | Self::HeartbeatAck(info) => {
                CHUNK_HEADER + PARAMETER_HEADER + padded(info)
            }
            Self::Shutdown(_) => CHUNK_HEADER + 4,
            Self::Extension(rare) => rare.wire_len(),
            Self::Unknown(whole) => padded(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_no_larger_than_a_cache_line() {
        // Chunks are moved at every hop of a simulation.
        assert!(size_of::<Chunk>() <= 64, "{} B", size_of::<Chunk>());
    }
}
