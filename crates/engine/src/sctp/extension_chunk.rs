//! Chunks of the extensions, which are rare or unused in an association. They are encoded and decoded
//! whether or not they were negotiated. The association treats those not negotiated like unknown types.

use bytes::Bytes;
use ropewalk_base::{Serial16, Serial32, StreamId, Time};

use super::chunk::Data;
use super::gaps::GapList;
use super::wire::kind;

/// A chunk of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionChunk {
    /// NR-SACK.
    NrSack(NrSack),
    /// FORWARD-TSN.
    ForwardTsn(ForwardTsn),
    /// I-FORWARD-TSN.
    IForwardTsn(IForwardTsn),
    /// RE-CONFIG: its parameters (RFC 6525, 3.1).
    ReConfig(Vec<RawParameter>),
    /// ASCONF: its serial number and its parameters. The first parameter is an address (RFC 5061, 4.1.1).
    Asconf(Serial32, Vec<RawParameter>),
    /// ASCONF ACK: the serial number that it answers, and its parameters (RFC 5061, 4.1.2).
    AsconfAck(Serial32, Vec<RawParameter>),
    /// AUTH.
    Auth(Auth),
    /// PAD: number of padding bytes after its header (RFC 4820, 3). At the end of a packet the
    /// chunk itself is not padded, so that the packet can have any length.
    Pad(u16),
    /// ECNE: the lowest TSN in the marked packet (RFC 4960, Appendix A).
    Ecne(Serial32),
    /// CWR: the TSN up to which the window has been reduced.
    Cwr(Serial32),
    /// MARK COUNT, an extension of this project: marked data that a path has delivered.
    MarkCount(MarkCount),
    /// HEARTBEAT or HEARTBEAT ACK with parameters other than the one that RFC 9260 defines. Not an
    /// extension, but as rare.
    Heartbeat {
        /// Whether this is a HEARTBEAT ACK.
        answer: bool,
        /// All parameters as on the wire, without the padding of the last one.
        parameters: Bytes,
    },
    /// DATA FRAGMENT, an extension of this project: a part of a DATA chunk that exceeds the packets of its path.
    DataFragment(DataFragment),
}

/// Marked data of one path (accurate ECN). The total never falls, so that a lost SACK loses no information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkCount {
    /// The path on which the data arrived, as in [`DelayEcho`](super::chunk::DelayEcho).
    pub path: u8,
    /// Lowest TSN of the last marked packet.
    pub tsn: Serial32,
    /// Bytes of DATA chunks in all marked packets, with chunk headers and padding, modulo 2^32.
    pub bytes: u32,
}

/// SACK that distinguishes gap ack blocks on which the receiver will not renege
/// (draft-natarajan-tsvwg-sctp-nrsack-08, 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NrSack {
    /// Cumulative TSN acknowledgement.
    pub cumulative: Serial32,
    /// Advertised receive window, bytes.
    pub window: u32,
    /// Renegable gap ack blocks in ascending order.
    pub gaps: GapList,
    /// Non-renegable gap ack blocks.
    pub kept: GapList,
    /// TSNs received more than once.
    pub duplicates: Vec<Serial32>,
    /// Packets with DATA since the last SACK, as in [`Sack::data_packets`](super::chunk::Sack::data_packets).
    pub data_packets: u8,
}

/// FORWARD-TSN: abandoned messages (RFC 3758, 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardTsn {
    /// The new cumulative TSN.
    pub cumulative: Serial32,
    /// Per stream, the SSN of the last abandoned message.
    pub streams: Vec<(StreamId, Serial16)>,
}

impl ForwardTsn {
    /// Length of a chunk without streams, bytes.
    pub const LEAST_LEN: u32 = 8;
}

/// I-FORWARD-TSN: abandoned interleaved messages (RFC 8260, 2.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IForwardTsn {
    /// The new cumulative TSN.
    pub cumulative: Serial32,
    /// Per stream and kind of order, the identifier of the last abandoned message.
    pub streams: Vec<Skipped>,
}

/// An entry of [`IForwardTsn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Stream.
    pub stream: StreamId,
    /// Whether the entry is about unordered messages.
    pub unordered: bool,
    /// Message identifier.
    pub message: Serial32,
}

/// AUTH: authenticates the chunks after it (RFC 4895, 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// Shared key identifier.
    pub key: u16,
    /// HMAC identifier.
    pub hmac: u16,
    /// Message authentication code.
    pub code: Bytes,
    /// The bytes that the code covers.
    #[doc(hidden)]
    pub covered: Covered,
}

/// The bytes that a message authentication code covers, as on the wire: the AUTH chunk and everything
/// after it. They are derived from the rest of the packet and are not part of the chunk's value.
#[derive(Clone, Debug, Default)]
pub struct Covered(pub Bytes);

impl PartialEq for Covered {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Covered {}

/// A parameter, not decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawParameter {
    /// Parameter type.
    pub kind: u16,
    /// Parameter value, without padding.
    pub value: Bytes,
}

/// A part of a DATA chunk and its position in the chunk's user data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFragment {
    /// The DATA chunk, with the part as its user data.
    pub part: Data,
    /// Offset of the part, bytes.
    pub offset: u16,
    /// Bytes of user data in the complete chunk.
    pub total: u16,
}

impl DataFragment {
    /// Length of everything before the user data, bytes: a DATA header, offset and total length, and for I-DATA the
    /// upper half of the message identifier.
    pub fn header(&self) -> u32 {
        Self::header_of(&self.part)
    }

    /// [`Self::header`] of the parts of `data`, bytes.
    pub(super) fn header_of(data: &Data) -> u32 {
        Data::HEADER + if data.is_interleaved() { 8 } else { 4 }
    }

    /// `size` bytes of `data`, starting at `offset`.
    pub fn of(data: &Data, offset: u16, size: u32) -> Self {
        let payload = data.payload.slice(u32::from(offset), size);
        let total = data.payload.len() as u16;
        // As decoded from a packet, which does not contain the time of transmission.
        let part = Data { payload, first_sent: Time::ZERO, ..data.clone() };
        Self { part, offset, total }
    }
}

impl ExtensionChunk {
    /// Chunk type.
    pub(super) const fn kind(&self) -> u8 {
        match self {
            Self::NrSack(_) => kind::NR_SACK,
            Self::ForwardTsn(_) => kind::FORWARD_TSN,
            Self::IForwardTsn(_) => kind::I_FORWARD_TSN,
            Self::ReConfig(_) => kind::RE_CONFIG,
            Self::Asconf(..) => kind::ASCONF,
            Self::AsconfAck(..) => kind::ASCONF_ACK,
            Self::Auth(_) => kind::AUTH,
            Self::Pad(_) => kind::PAD,
            Self::Ecne(_) => kind::ECNE,
            Self::Cwr(_) => kind::CWR,
            Self::MarkCount(_) => kind::MARK_COUNT,
            Self::Heartbeat { answer: false, .. } => kind::HEARTBEAT,
            Self::Heartbeat { answer: true, .. } => kind::HEARTBEAT_ACK,
            Self::DataFragment(_) => kind::DATA_FRAGMENT,
        }
    }

    /// Bytes on the wire, padding included.
    pub(super) fn wire_len(&self) -> u32 {
        let list = |all: &[RawParameter]| -> u32 {
            all.iter().map(|one| 4 + (one.value.len() as u32).next_multiple_of(4)).sum()
        };
        4 + match self {
            Self::NrSack(sack) => {
                16 + 4 * (sack.gaps.len() + sack.kept.len() + sack.duplicates.len()) as u32
            }
            Self::ForwardTsn(forward) => 4 + 4 * forward.streams.len() as u32,
            Self::IForwardTsn(forward) => 4 + 8 * forward.streams.len() as u32,
            Self::ReConfig(parameters) => list(parameters),
            Self::Asconf(_, parameters) | Self::AsconfAck(_, parameters) => 4 + list(parameters),
            Self::Auth(auth) => 4 + (auth.code.len() as u32).next_multiple_of(4),
            Self::Pad(bytes) => u32::from(*bytes),
            Self::Ecne(_) | Self::Cwr(_) => 4,
            Self::MarkCount(_) => 8,
            Self::Heartbeat { parameters, .. } => (parameters.len() as u32).next_multiple_of(4),
            Self::DataFragment(piece) => {
                piece.header() - 4 + piece.part.payload.len().next_multiple_of(4)
            }
        }
    }
}
