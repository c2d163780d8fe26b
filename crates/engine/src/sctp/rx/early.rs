//! Data that was sent after a reset of its stream and arrives before that reset is performed (RFC 6525, 5.2.2 E2).
//!
//! Its stream sequence numbers refer to the stream after the reset. So it is neither acknowledged nor
//! reassembled before the reset. Senders that wait for the answer to their request, as 5.1.2 A1 requires,
//! send no such data.

use std::collections::BTreeMap;

use ropewalk_base::{StreamId, Time};

use super::Receiver;
use super::partial_chunks::PartialChunks;
use crate::receive::Arrival;
use crate::sctp::chunk::Data;
use crate::sctp::extensions::stream_reconfiguration::Streams;

/// Memory of a chunk in addition to its user data, bytes: an entry of a tree whose nodes are at least
/// half full.
const ENTRY_COST: u64 = 2 * (size_of::<Data>() as u64 + 8) + 112;

/// Data outside the receive buffer, because it cannot enter it yet.
#[derive(Clone, Debug, Default)]
pub struct Aside {
    /// Chunks with missing pieces.
    pub pieces: PartialChunks,
    /// Data that waits for a reset of its stream, `None` if no reset is expected.
    early: Option<EarlyData>,
}

impl Aside {
    /// Whether a chunk has to wait for a reset.
    pub fn concerns(&self, tsn: u64, stream: StreamId) -> bool {
        self.early.as_ref().is_some_and(|early| tsn > early.last_tsn && early.streams.has(stream))
    }

    /// Memory of the stored data, bytes.
    pub fn memory(&self) -> u64 {
        self.pieces.bytes() + self.early.as_ref().map_or(0, |early| early.bytes)
    }
}

/// A reset that is performed once all earlier data has arrived, and the data that waits for it.
#[derive(Clone, Debug)]
struct EarlyData {
    streams: Streams,
    /// The last TSN before the reset.
    last_tsn: u64,
    chunks: BTreeMap<u64, Data>,
    bytes: u64,
}

impl Receiver {
    /// Makes data of these streams beyond `last_tsn` wait.
    pub fn await_reset(&mut self, streams: Streams, last_tsn: u64) {
        let chunks = BTreeMap::new();
        let early = EarlyData { streams, last_tsn, chunks, bytes: 0 };
        self.aside.get_or_insert_default().early = Some(early);
    }

    /// Stores a chunk that waits for the reset of its stream, if there is room for it.
    #[cold]
    pub(super) fn keep_early(&mut self, tsn: u64, data: Data) {
        let room = self.buffer.free();
        let ahead = tsn - self.buffer.cumulative();
        let Some(early) = self.aside.as_mut().and_then(|aside| aside.early.as_mut()) else {
            return;
        };
        let memory = u64::from(data.wire_len()) + ENTRY_COST;
        if memory > room || ahead > u64::from(u16::MAX) || early.chunks.contains_key(&tsn) {
            return;
        }
        early.bytes += memory;
        early.chunks.insert(tsn, data);
        self.reserve();
    }

    /// Starts these streams over.
    pub fn restart_streams(&mut self, now: Time, streams: &Streams) {
        self.buffer.restart_streams(now, streams);
    }

    /// Processes the data that has waited for the reset. Returns false if it violates the protocol.
    pub fn take_early(&mut self, now: Time) -> bool {
        let waiting = self.aside.as_mut().and_then(|aside| aside.early.take());
        self.reserve();
        let chunks = waiting.into_iter().flat_map(|early| early.chunks);
        chunks.fold(true, |sound, (tsn, data)| {
            let arrival = self.buffer.on_data(now, tsn, data);
            self.acks.set_due();
            sound && arrival != Arrival::Violation
        })
    }

    /// Expects `first` (unwrapped) as the next TSN, and the first message of every stream.
    pub fn restart_tsns(&mut self, now: Time, first: u64) {
        self.aside = None;
        self.acks.restart();
        self.buffer.restart_tsns(now, first);
        (self.advertised, self.taken) = (self.buffer.free(), 0);
    }

    /// Makes a SACK due immediately, unless no DATA has arrived.
    pub fn acknowledge_now(&mut self) {
        if !self.acks.awaits_first_data() {
            self.acks.set_due();
        }
    }

    /// Accepts further streams.
    pub const fn add_streams(&mut self, count: u16) {
        self.streams = self.streams.saturating_add(count);
    }

    /// Number of inbound streams.
    pub const fn streams(&self) -> u16 {
        self.streams
    }
}
