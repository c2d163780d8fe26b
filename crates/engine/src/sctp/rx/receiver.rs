//! The receiver of an association: its buffer, the window that it advertises, and SACKs (RFC 9260, 6.2).

use std::collections::BTreeMap;

use ropewalk_base::{PathId, Serial16, Serial32, StreamId, Time};

use super::ReceiveBuffer;
use super::acknowledgement::{Acknowledger, SackMode};
use super::early::Aside;
use crate::receive::Arrival;
use crate::sctp::chunk::{Chunk, Data, DataFlags, DelayEcho, Sack};
use crate::sctp::config::Config;
use crate::sctp::extension_chunk::{DataFragment, ExtensionChunk, ForwardTsn, IForwardTsn, NrSack};
use crate::sctp::gaps::{GapList, blocks_within};

/// The receiving half of an association.
///
/// `repr(C)` keeps the order of the fields, with those that every input accesses first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Receiver {
    /// When SACKs are sent, and their contents other than the window.
    pub acks: Acknowledger,
    /// The peer's initial TSN, once known.
    first: Option<Serial32>,
    /// Whether NR-SACKs are sent instead of SACKs.
    non_renegable: bool,
    /// Number of inbound streams.
    pub(super) streams: u16,
    /// The window as last advertised, and the bytes of chunks accepted since.
    pub(super) advertised: u64,
    pub(super) taken: u64,
    /// Data that cannot enter the receive buffer yet, `None` until there is some.
    pub(super) aside: Option<Box<Aside>>,
    pub buffer: ReceiveBuffer,
}

impl Receiver {
    pub fn new(config: &Config) -> Self {
        Self {
            acks: Acknowledger::new(config.sack, config.paths.len()),
            buffer: ReceiveBuffer::new(config.receive_capacity(), config.window_headroom, 1),
            first: None,
            non_renegable: false,
            advertised: 0,
            taken: 0,
            streams: config.inbound_streams(),
            aside: None,
        }
    }

    /// The peer's initial TSN, once known.
    pub const fn first(&self) -> Option<Serial32> {
        self.first
    }

    /// Sets the acknowledgement mode. `non_renegable`: by NR-SACKs.
    pub fn set_mode(&mut self, mode: SackMode, non_renegable: bool) {
        self.acks.set_mode(mode);
        self.non_renegable = non_renegable;
    }

    /// Starts with the peer's initial TSN and number of streams.
    pub fn expect(&mut self, first: Serial32, streams: u16) {
        let unwrapped = (1u64 << 32) + first.0 as u64;
        self.first = Some(first);
        self.streams = streams;
        self.aside = None;
        self.acks.await_first_data();
        self.buffer.start_over(unwrapped);
        (self.advertised, self.taken) = (self.buffer.window(), 0);
    }

    /// Drops all acknowledgement state, because the peer has restarted.
    pub fn forget(&mut self, now: Time) {
        self.buffer.forget(now);
        self.acks.forget();
        self.aside = None;
    }

    /// The receive window to advertise to a sender whose full chunks have `chunk` bytes.
    ///
    /// RFC 9260, 6.2, and RFC 1122, 4.2.3.3: the receiver MUST avoid the silly window syndrome. So an
    /// advertised window is never withdrawn, and its right edge moves by at least a full chunk or half of
    /// the largest window, or not at all.
    #[inline(always)]
    fn advertise(&mut self, chunk: u32) -> u32 {
        let (free, left) = (self.buffer.window(), self.advertised.saturating_sub(self.taken));
        let step = u64::from(chunk).min(self.buffer.most_window() / 2);
        let window = if free >= left + step { free } else { free.min(left) };
        (self.advertised, self.taken) = (window, 0);
        window.min(u64::from(u32::MAX)) as u32
    }

    /// Makes a window update due after the user has read data, if the window was (nearly) closed (RFC 9260,
    /// 6.2).
    #[inline]
    pub fn on_read(&mut self, now: Time, chunk: u32) {
        self.buffer.offer_part(now);
        let chunk = chunk as u64;
        let left = self.advertised.saturating_sub(self.taken);
        if left >= 2 * chunk {
            return;
        }
        let most = self.buffer.most_window();
        // A buffer of tiny chunks may never have room for two full chunks.
        let enough = if most < 2 * chunk { left + most / 2 } else { (2 * chunk).max(left + chunk) };
        if self.buffer.window() >= enough {
            self.acks.set_update_due(now);
        }
    }

    /// Processes a non-empty DATA chunk.
    #[inline]
    pub fn on_data(&mut self, now: Time, data: Data, summary: &mut DataSummary) -> DataOutcome {
        summary.any = true;
        if data.stream.0 >= self.streams {
            summary.urgent = true;
            // RFC 9260, 6.5: DATA with an invalid stream identifier is acknowledged and not delivered.
            let tsn = data.tsn.unwrap_near(self.buffer.cumulative());
            self.buffer.on_unwanted(now, tsn);
            return DataOutcome::InvalidStream(data.stream);
        }
        let tsn = data.tsn.unwrap_near(self.buffer.cumulative());
        summary.urgent |= data.flags.has(DataFlags::IMMEDIATE);
        if self.aside.as_ref().is_some_and(|aside| aside.concerns(tsn, data.stream)) {
            self.keep_early(tsn, data);
            return DataOutcome::Processed;
        }
        let gaps_matter = self.acks.gap_is_urgent();
        let had_gap = gaps_matter && !self.buffer.beyond().is_empty();
        let (length, size) = (data.payload.len(), data.wire_len());
        match self.buffer.on_data(now, tsn, data) {
            Arrival::Duplicate => {
                summary.repeated = true;
                self.acks.on_duplicate(tsn);
            }
            Arrival::Refused => summary.urgent = true,
            Arrival::Violation => return DataOutcome::Violation,
            arrival @ (Arrival::InOrder | Arrival::OutOfOrder) => {
                if arrival == Arrival::OutOfOrder {
                    self.acks.on_out_of_order(tsn);
                }
                self.taken += u64::from(size);
                summary.bytes += u64::from(length);
                if gaps_matter {
                    summary.urgent |= had_gap || !self.buffer.beyond().is_empty();
                }
            }
        }
        DataOutcome::Processed
    }

    /// Adds a piece of a DATA chunk. Returns the chunk once it is complete.
    #[cold]
    pub fn on_fragment(&mut self, piece: &DataFragment) -> Option<Data> {
        let cumulative = self.buffer.cumulative();
        let tsn = piece.part.tsn.unwrap_near(cumulative);
        let pieces = &mut self.aside.get_or_insert_default().pieces;
        pieces.forget_up_to(cumulative);
        // The receive buffer reports duplicates and refuses TSNs out of range.
        let payload = pieces.take(tsn, piece, self.buffer.free(), self.buffer.capacity());
        self.reserve();
        Some(Data { payload: payload?, ..piece.part.clone() })
    }

    /// Processes a FORWARD-TSN from `path` (RFC 3758, 3.6). Returns whether messages have become readable.
    #[cold]
    pub fn on_forward_tsn(&mut self, now: Time, path: PathId, forward: &ForwardTsn) -> bool {
        let readable = self.buffer.ready_count();
        let tsn = forward.cumulative.unwrap_near(self.buffer.cumulative());
        let exists = |(stream, _): &&(StreamId, Serial16)| stream.0 < self.streams;
        let streams: Vec<_> = forward.streams.iter().filter(exists).copied().collect();
        let moved = self.buffer.skip_to(now, tsn, &streams);
        self.after_forward_tsn(now, path, moved);
        self.buffer.ready_count() > readable
    }

    /// Processes an I-FORWARD-TSN from `path` (RFC 8260, 2.3.1). Returns whether messages have become readable.
    #[cold]
    pub fn on_i_forward_tsn(&mut self, now: Time, path: PathId, forward: &IForwardTsn) -> bool {
        let readable = self.buffer.ready_count();
        let tsn = forward.cumulative.unwrap_near(self.buffer.cumulative());
        // Each way is skipped once, however often it is listed.
        let mut last = BTreeMap::<(u16, bool), Serial32>::new();
        for one in forward.streams.iter().filter(|one| one.stream.0 < self.streams) {
            let known = last.entry((one.stream.0, one.unordered)).or_insert(one.message);
            if one.message.distance_from(*known) > 0 {
                *known = one.message;
            }
        }
        let moved = self.buffer.skip_messages(now, tsn, &last);
        self.after_forward_tsn(now, path, moved);
        self.buffer.ready_count() > readable
    }

    /// Acknowledges a FORWARD-TSN or I-FORWARD-TSN. `moved`: whether the cumulative TSN moved.
    fn after_forward_tsn(&mut self, now: Time, path: PathId, moved: bool) {
        self.acks.after_forward_tsn(now, path, moved);
        if let Some(aside) = &mut self.aside {
            aside.pieces.forget_up_to(self.buffer.cumulative());
            self.reserve();
        }
    }

    /// Charges the receive buffer for data kept outside it.
    pub(super) fn reserve(&mut self) {
        let bytes = self.aside.as_ref().map_or(0, |aside| aside.memory());
        self.buffer.reserve(bytes);
    }

    /// Drops all received data, including messages that could be read.
    pub fn discard(&mut self, now: Time) {
        self.buffer.discard(now);
        self.aside = None;
    }

    /// Length of the next SACK on `path` with all its gap ack blocks and duplicates, bytes. For an
    /// NR-SACK with both kinds of blocks, an upper bound, so that it is sent alone.
    pub fn sack_len(&self, path: PathId) -> u32 {
        let (header, blocks) = if self.non_renegable {
            (20, self.buffer.most_blocks())
        } else {
            (16, self.buffer.beyond().words().len())
        };
        header + 4 * self.acks.entries_max(path, blocks) as u32
    }

    /// Whether the SACK that is due must be built before more DATA is processed.
    #[inline]
    pub fn must_keep_sack(&self) -> bool {
        self.acks.must_keep(|| self.sack_len(self.acks.path()))
    }

    /// Builds the SACK that is due, of at most `room` bytes, and keeps it until it is sent on `path`.
    pub fn queue_sack(&mut self, path: PathId, room: u32, chunk: u32) {
        let sack = self.take_sack(path, room, chunk, GapList::default());
        self.acks.keep(path, sack);
    }

    /// Takes the oldest queued SACK and its path. Its window is updated to the current one.
    #[cold]
    pub fn take_queued_sack(&mut self, chunk: u32) -> Option<(PathId, Chunk, Option<DelayEcho>)> {
        let (path, mut sack, echo) = self.acks.take_waiting()?;
        let window = self.advertise(chunk);
        match &mut sack {
            Chunk::Sack(sack) => sack.window = window,
            Chunk::Extension(extension) => {
                if let ExtensionChunk::NrSack(sack) = &mut **extension {
                    sack.window = window;
                }
            }
            _ => unreachable!("only SACKs wait"),
        }
        Some((path, sack, echo))
    }

    /// Builds the next SACK or NR-SACK, which is sent on `path`, of at most `room` bytes, for a sender
    /// whose full chunks have `chunk` bytes. It uses the memory of `spare`. The echo of
    /// [`Self::take_echo`] belongs to it.
    #[inline(always)]
    pub fn take_sack(&mut self, path: PathId, room: u32, chunk: u32, spare: GapList) -> Chunk {
        if self.non_renegable {
            return self.take_nr_sack(room, chunk);
        }
        let most = blocks_within(room);
        let gaps = self.acks.take_blocks(path, self.buffer.beyond(), most, spare.words);
        let sack = Sack {
            cumulative: Serial32::wrap(self.buffer.cumulative()),
            window: self.advertise(chunk),
            duplicates: self.acks.take_duplicates(most - gaps.len()),
            gaps,
            data_packets: self.acks.counted_packets(),
            number: self.acks.take_number(),
        };
        self.acks.after_sack();
        Chunk::Sack(sack)
    }

    #[cold]
    fn take_nr_sack(&mut self, room: u32, chunk: u32) -> Chunk {
        let most = blocks_within(room.saturating_sub(4));
        let [gaps, kept] = self.buffer.report(most);
        let sack = NrSack {
            cumulative: Serial32::wrap(self.buffer.cumulative()),
            window: self.advertise(chunk),
            duplicates: self.acks.take_duplicates(most - gaps.len() - kept.len()),
            gaps,
            kept,
            data_packets: self.acks.counted_packets(),
        };
        self.acks.after_sack();
        Chunk::Extension(Box::new(ExtensionChunk::NrSack(sack)))
    }
}

/// Summary of the DATA chunks of one packet.
#[derive(Clone, Copy, Default)]
pub struct DataSummary {
    /// A SACK is required.
    pub any: bool,
    /// TSN of the first chunk.
    pub first: Option<Serial32>,
    /// The SACK must be sent immediately.
    pub urgent: bool,
    /// A chunk was a duplicate.
    pub repeated: bool,
    /// User data that was stored, bytes.
    pub bytes: u64,
}

/// Result of processing a DATA chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataOutcome {
    /// It was accepted, or dropped as a duplicate or for lack of room.
    Processed,
    /// There is no such stream.
    InvalidStream(StreamId),
    /// It contradicts earlier data.
    Violation,
}
