//! Records of chunks that have a TSN.

use ropewalk_base::{PathId, Time};

use crate::sctp::Data;

/// State of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordState {
    /// Has a TSN but was not sent, because a scheduler skipped it. It is a hole before later data.
    Unsent,
    /// In flight.
    InFlight {
        /// The path.
        path: PathId,
        /// Transmission number on that path.
        number: u64,
    },
    /// Lost, to be retransmitted.
    Lost {
        /// The path on which it was lost.
        on: PathId,
        /// Whether a timeout marked it as lost.
        by_timer: bool,
    },
    /// Reported by a gap block.
    Acked {
        /// The path of the acknowledged transmission.
        by: PathId,
    },
    /// Abandoned: it is no longer sent (RFC 3758, 3.4).
    Abandoned {
        /// The path on which it was lost.
        on: PathId,
    },
}

/// Record of one chunk.
#[derive(Clone, Debug)]
pub struct Record {
    /// The chunk as sent.
    pub data: Data,
    /// Size on the wire, bytes.
    pub bytes: u32,
    /// Number of transmissions.
    pub transmissions: u32,
    /// State of the chunk.
    pub state: RecordState,
    /// Bytes of all chunks from the start of the association to the end of this one.
    pub(super) end: u64,
}

/// A record that the cumulative TSN has passed.
#[derive(Clone, Copy, Debug)]
pub struct Popped {
    /// The TSN.
    pub tsn: u64,
    /// Size on the wire, bytes.
    pub bytes: u32,
    /// User data, bytes.
    pub payload: u32,
    /// When it was first sent.
    pub first_sent: Time,
    /// Previous state.
    pub state: RecordState,
}

impl Record {
    /// Initial value, filled in place: see [`Data::BLANK`].
    pub(super) const BLANK: Self =
        Self { data: Data::BLANK, bytes: 0, transmissions: 0, state: RecordState::Unsent, end: 0 };

    /// The chunk's bytes if it is an unordered unfragmented message, else 0. Such a chunk is delivered on
    /// arrival and occupies the peer's buffer only in transit.
    #[inline]
    pub(super) fn passing_bytes(&self) -> u64 {
        if self.data.is_unordered_unfragmented() { self.bytes as u64 } else { 0 }
    }
}

/// State of a chunk when it is sent.
#[derive(Clone, Copy, Debug)]
pub struct SentRecord {
    /// Size on the wire, bytes.
    pub bytes: u32,
    /// Whether this is a retransmission.
    pub again: bool,
    /// Previous state.
    pub before: RecordState,
}
