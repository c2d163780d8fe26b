//! The receiver of an association: its buffer, and when and how its content is acknowledged (RFC 9260, 6.2;
//! delayed acknowledgement for CMT).

use std::collections::{BTreeMap, VecDeque};

use ropewalk_base::{Duration, PathId, Serial16, Serial32, StreamId, Time};
use smallvec::SmallVec;

use super::early::Aside;
use super::{MarkEchoes, ReceiveBuffer};
use crate::receive::Arrival;
use crate::sctp::chunk::{Chunk, Data, DataFlags, DelayEcho, Echoed, Sack};
use crate::sctp::config::{Config, SackOptions};
use crate::sctp::extension_chunk::{DataFragment, ExtensionChunk, ForwardTsn, IForwardTsn, NrSack};
use crate::sctp::gaps::{GapList, blocks_within};

/// Upper limit of SACK.Delay (RFC 9260, 6.2: MUST NOT be more than 500 ms).
pub const SACK_DELAY_LIMIT: Duration = Duration::from_millis(500);

/// Most duplicate TSNs that one SACK lists.
const DUPLICATES_LIMIT: usize = 16;

/// Most SACKs that wait to be sent, and most gap ack blocks in all of them. A datagram causes one SACK at
/// most, and one batch of a socket holds some dozens of datagrams. Beyond these limits the next SACK covers
/// more packets.
const WAITING_LIMIT: usize = 64;
const WAITING_BLOCKS_LIMIT: usize = 1024;

/// A SACK as it stood when it fell due, and the path to send it on.
#[derive(Clone, Debug)]
struct WaitingSack {
    path: PathId,
    sack: Chunk,
    echo: Option<DelayEcho>,
}

/// The receiving half of an association.
///
/// `repr(C)` keeps the order of the fields: first those that every input accesses.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Receiver {
    pub deadline: Option<Time>,
    options: SackOptions,
    /// The peer's initial TSN, once known.
    pub first: Option<Serial32>,
    pub due_now: bool,
    /// The last packet with DATA had no room for the SACK that is due, or went to another path.
    pub sack_deferred: bool,
    /// The path on which the newest DATA arrived: SACKs go there (RFC 9260, 6.4).
    pub path: PathId,
    delayed_ack_for_cmt: bool,
    /// Whether NR-SACKs are sent instead of SACKs.
    pub non_renegable: bool,
    /// Whether no DATA has arrived yet.
    pub(super) awaiting_first_data: bool,
    /// Number of inbound streams.
    pub(super) streams: u16,
    /// Packets with DATA since the last SACK, for the association and per path.
    packets: u32,
    /// Marks of the network that the peer must be told of; none: ECN is not in use.
    pub marks: Option<Box<MarkEchoes>>,
    /// The window as last advertised, and the bytes of chunks accepted since.
    pub(super) advertised: u64,
    pub(super) taken: u64,
    next_echo: usize,
    /// Data that cannot enter the receive buffer yet; none: there has been none.
    pub(super) aside: Option<Box<Aside>>,
    /// SACKs that fell due before later packets of the same input were processed, oldest first. Empty if the
    /// driver drains after each packet, and towards peers with CMT.
    waiting: VecDeque<WaitingSack>,
    waiting_blocks: usize,
    pub(super) duplicates: Vec<Serial32>,
    packets_on: SmallVec<[u32; 4]>,
    /// User data that was stored, by the path on which it arrived, bytes. Duplicates are not counted; data that was
    /// dropped to make room counts again when it is stored again.
    bytes_on: SmallVec<[u64; 2]>,
    /// Timestamps of the newest packet of each path, to be echoed beside a SACK, which has room for one. The
    /// paths take turns; otherwise busy paths would crowd out quiet ones.
    echoes: SmallVec<[Option<DelayEcho>; 2]>,
    pub buffer: ReceiveBuffer,
}

impl Receiver {
    pub fn new(config: &Config) -> Self {
        Self {
            buffer: ReceiveBuffer::new(config.receive_capacity(), config.window_headroom, 1),
            first: None,
            options: SackOptions { delay: config.sack.delay.min(SACK_DELAY_LIMIT), ..config.sack },
            awaiting_first_data: true,
            non_renegable: false,
            delayed_ack_for_cmt: config.cmt.concurrent && config.cmt.delayed_ack,
            packets: 0,
            packets_on: SmallVec::from_elem(0, config.paths.len()),
            bytes_on: SmallVec::from_elem(0, config.paths.len()),
            duplicates: Vec::new(),
            due_now: false,
            waiting: VecDeque::new(),
            waiting_blocks: 0,
            sack_deferred: false,
            deadline: None,
            path: PathId(0),
            echoes: SmallVec::from_elem(None, config.paths.len()),
            next_echo: 0,
            advertised: 0,
            taken: 0,
            streams: config.inbound_streams(),
            marks: None,
            aside: None,
        }
    }

    /// Changes [`SackOptions::delay`] and [`SackOptions::every_packets`].
    pub const fn set_pace(&mut self, delay: Duration, every_packets: u32) {
        (self.options.delay, self.options.every_packets) = (delay, every_packets);
    }

    /// Adds a path.
    pub fn add_path(&mut self) {
        self.packets_on.push(0);
        self.bytes_on.push(0);
        self.echoes.push(None);
        if let Some(marks) = &mut self.marks {
            marks.add_path();
        }
    }

    /// Keeps only these paths and renumbers them.
    pub fn retain_paths(&mut self, kept: &[bool]) {
        let mut of_packets = kept.iter();
        self.packets_on.retain(|_| of_packets.next().is_some_and(|kept| *kept));
        let mut of_bytes = kept.iter();
        self.bytes_on.retain(|_| of_bytes.next().is_some_and(|kept| *kept));
        let mut of_echoes = kept.iter();
        self.echoes.retain(|_| of_echoes.next().is_some_and(|kept| *kept));
        self.next_echo = 0;
        if let Some(marks) = &mut self.marks {
            marks.retain_paths(kept);
        }
    }

    /// Starts with the peer's initial TSN and number of streams.
    pub fn expect(&mut self, config: &Config, first: Serial32, streams: u16) {
        self.delayed_ack_for_cmt = config.cmt.concurrent && config.cmt.delayed_ack;
        let unwrapped = (1u64 << 32) + first.0 as u64;
        self.first = Some(first);
        self.streams = streams;
        self.aside = None;
        self.awaiting_first_data = true;
        self.buffer.start_over(unwrapped);
        (self.advertised, self.taken) = (self.buffer.window(), 0);
    }

    /// Drops all acknowledgement state, because the peer has restarted.
    pub fn forget(&mut self, now: Time) {
        self.buffer.forget(now);
        self.packets = 0;
        self.packets_on.fill(0);
        self.duplicates.clear();
        self.echoes.fill(None);
        self.aside = None;
        self.stop();
    }

    /// Stops all timers and drops the SACKs that wait.
    pub fn stop(&mut self) {
        self.deadline = None;
        self.due_now = false;
        self.sack_deferred = false;
        self.waiting.clear();
        self.waiting_blocks = 0;
    }

    /// The receive window to advertise to a sender whose full chunks have `chunk` bytes.
    ///
    /// RFC 9260, 6.2, and RFC 1122, 4.2.3.3: the receiver MUST avoid the silly window syndrome. So an
    /// advertised window is not taken back, and its right edge moves by at least a full chunk or half of the
    /// largest window, or not at all.
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
            self.due_now = true;
            self.deadline = Some(now);
        }
    }

    /// Processes a DATA chunk, which is not empty.
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
        let wire_tsn = data.tsn;
        let tsn = wire_tsn.unwrap_near(self.buffer.cumulative());
        summary.urgent |= data.flags.has(DataFlags::IMMEDIATE);
        if self.aside.as_ref().is_some_and(|aside| aside.concerns(tsn, data.stream)) {
            self.keep_early(tsn, data);
            return DataOutcome::Processed;
        }
        let gaps_matter = self.gap_is_urgent();
        let had_gap = gaps_matter && !self.buffer.beyond().is_empty();
        let (length, size) = (data.payload.len(), data.wire_len());
        match self.buffer.on_data(now, tsn, data) {
            Arrival::Duplicate => {
                summary.urgent = true;
                if self.duplicates.len() < DUPLICATES_LIMIT {
                    self.duplicates.push(wire_tsn);
                }
            }
            Arrival::Refused => summary.urgent = true,
            Arrival::Violation => return DataOutcome::Violation,
            Arrival::InOrder | Arrival::OutOfOrder => {
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
        // Each way is passed over once, however often it is listed.
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

    /// Acknowledges a FORWARD-TSN or I-FORWARD-TSN. `moved`: the cumulative TSN moved.
    fn after_forward_tsn(&mut self, now: Time, path: PathId, moved: bool) {
        self.path = path;
        if !moved {
            // The last SACK was probably lost.
            self.due_now = true;
        } else if self.deadline.is_none() {
            // RFC 3758, 3.6: a FORWARD-TSN is acknowledged by the rules of DATA.
            self.deadline = Some(now + self.options.delay);
        }
        if let Some(aside) = &mut self.aside {
            aside.pieces.forget_up_to(self.buffer.cumulative());
            self.reserve();
        }
    }

    /// Charges the receive buffer for what is kept outside of it.
    pub(super) fn reserve(&mut self) {
        let bytes = self.aside.as_ref().map_or(0, |aside| aside.memory());
        self.buffer.reserve(bytes);
    }

    /// Drops all received data, including messages that could be read.
    pub fn discard(&mut self, now: Time) {
        self.buffer.discard(now);
        self.aside = None;
    }

    /// Stores which packet with DATA arrived from `path`, to be echoed.
    #[inline]
    pub fn on_echoed(&mut self, now: Time, path: PathId, of: Echoed) {
        self.echoes[path.index()] = Some(DelayEcho { path: path.0, of, received: now.as_nanos() });
    }

    /// User data that was stored since the association began, by the path on which it arrived, bytes.
    pub fn bytes_on(&self, path: PathId) -> u64 {
        self.bytes_on.get(path.index()).copied().unwrap_or(0)
    }

    /// Completes the processing of a packet from `path`.
    #[inline]
    pub fn after_packet(
        &mut self,
        now: Time,
        path: PathId,
        DataSummary { urgent, bytes, .. }: DataSummary,
    ) {
        self.path = path;
        self.bytes_on[path.index()] += bytes;
        self.packets += 1;
        self.packets_on[path.index()] += 1;
        let count =
            if self.options.count_per_path { self.packets_on[path.index()] } else { self.packets };
        // RFC 9260, 5.1: the first DATA chunk MUST be acknowledged at once.
        let begins = std::mem::take(&mut self.awaiting_first_data) && self.options.first_at_once;
        if urgent || begins || count >= self.options.every_packets {
            self.due_now = true;
        } else if self.deadline.is_none() {
            self.deadline = Some(now + self.options.delay);
        }
    }

    /// Handles the SACK timer (RFC 9260, 6.2: usually 200 ms).
    #[inline]
    pub fn on_timer(&mut self, now: Time) {
        if self.deadline.is_some_and(|at| at <= now) {
            self.due_now = true;
            self.deadline = None;
        }
    }

    /// Whether a gap makes a SACK due at once, as without CMT (RFC 9260, 6.7).
    const fn gap_is_urgent(&self) -> bool {
        !self.delayed_ack_for_cmt
    }

    /// Whether a SACK is due now.
    pub const fn is_due(&self) -> bool {
        self.due_now
    }

    /// Whether DATA has arrived on `path` since the last SACK.
    #[inline]
    pub fn is_owed_to(&self, path: PathId) -> bool {
        self.packets_on[path.index()] > 0
    }

    /// Whether duplicates have arrived since the last SACK. The last SACKs may have been lost then.
    #[inline]
    pub fn has_duplicates(&self) -> bool {
        !self.duplicates.is_empty()
    }

    /// Whether packets with DATA have arrived that no SACK has acknowledged yet.
    #[inline]
    pub const fn owes_sack(&self) -> bool {
        self.due_now || self.packets > 0
    }

    /// Whether a SACK is to be sent now.
    #[inline]
    pub fn has_sack_to_send(&self) -> bool {
        self.due_now || self.has_waiting()
    }

    /// Whether a SACK waits that fell due before the newest packets.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Length of the next SACK with all its gap ack blocks and duplicates, bytes. That of an NR-SACK with both kinds of
    /// blocks is an upper bound, so that it is sent alone.
    pub fn sack_len(&self) -> u32 {
        let (header, blocks) = if self.non_renegable {
            (20, self.buffer.most_blocks())
        } else {
            (16, self.buffer.beyond().words().len())
        };
        header + 4 * (blocks + self.duplicates.len()) as u32
    }

    /// Whether the SACK that is due must be built before more DATA is processed. Packets that a driver passes
    /// in one batch are acknowledged as if they had come one by one (RFC 9260, 6.2: at least every second
    /// packet; 6.7: each packet while there is a gap). A peer with CMT does not need this.
    #[inline]
    pub fn must_keep_sack(&self) -> bool {
        self.due_now
            && self.packets > 0
            && !self.delayed_ack_for_cmt
            && self.waiting.len() < WAITING_LIMIT
            && self.waiting_blocks + self.sack_len() as usize / 4 <= WAITING_BLOCKS_LIMIT
    }

    /// Builds the SACK that is due, of at most `room` bytes, and keeps it until it is sent on `path`.
    pub fn queue_sack(&mut self, path: PathId, room: u32, chunk: u32) {
        let (sack, echo) = (self.take_sack(room, chunk, GapList::default()), self.take_echo());
        self.waiting_blocks += sack.wire_len() as usize / 4;
        self.waiting.push_back(WaitingSack { path, sack, echo });
    }

    /// Takes the oldest SACK that waits and its path. Its window is updated to the current one.
    #[cold]
    pub fn take_queued_sack(&mut self, chunk: u32) -> Option<(PathId, Chunk, Option<DelayEcho>)> {
        let WaitingSack { path, mut sack, echo } = self.waiting.pop_front()?;
        self.waiting_blocks -= sack.wire_len() as usize / 4;
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

    /// Builds the next SACK or NR-SACK, of at most `room` bytes, for a sender whose full chunks have `chunk` bytes. It
    /// uses the memory of `spare`. The
    /// echo of [`Self::take_echo`] belongs to it.
    #[inline(always)]
    pub fn take_sack(&mut self, room: u32, chunk: u32, spare: GapList) -> Chunk {
        if self.non_renegable {
            return self.take_nr_sack(room, chunk);
        }
        let most = blocks_within(room);
        let beyond = self.buffer.beyond().words();
        // 16-bit offsets reach every TSN in the buffer: see `ReceiveBuffer`.
        let gaps = GapList::copy_of(&beyond[..beyond.len().min(most)], spare.words);
        let sack = Sack {
            cumulative: Serial32::wrap(self.buffer.cumulative()),
            window: self.advertise(chunk),
            duplicates: self.take_duplicates(most - gaps.len()),
            gaps,
            data_packets: self.counted_packets(),
        };
        self.after_sack();
        Chunk::Sack(sack)
    }

    #[cold]
    fn take_nr_sack(&mut self, room: u32, chunk: u32) -> Chunk {
        let most = blocks_within(room.saturating_sub(4));
        let [gaps, kept] = self.buffer.report(most);
        let sack = NrSack {
            cumulative: Serial32::wrap(self.buffer.cumulative()),
            window: self.advertise(chunk),
            duplicates: self.take_duplicates(most - gaps.len() - kept.len()),
            gaps,
            kept,
            data_packets: self.counted_packets(),
        };
        self.after_sack();
        Chunk::Extension(Box::new(ExtensionChunk::NrSack(sack)))
    }

    #[inline(always)]
    fn take_duplicates(&mut self, most: usize) -> Vec<Serial32> {
        if self.duplicates.is_empty() {
            return Vec::new();
        }
        let mut duplicates = std::mem::take(&mut self.duplicates);
        duplicates.truncate(most);
        duplicates
    }

    /// Packets with DATA since the last SACK, as the flags of a SACK report them.
    #[inline(always)]
    fn counted_packets(&self) -> u8 {
        if self.delayed_ack_for_cmt { self.packets.clamp(1, 3) as u8 } else { 0 }
    }

    #[inline(always)]
    fn after_sack(&mut self) {
        self.packets = 0;
        self.packets_on.fill(0);
        self.due_now = false;
        self.sack_deferred = false;
        self.deadline = None;
    }

    /// The timestamp echo that goes with the SACK just built.
    #[inline]
    pub fn take_echo(&mut self) -> Option<DelayEcho> {
        for _ in 0..self.echoes.len() {
            let path = self.next_echo;
            self.next_echo = if path + 1 < self.echoes.len() { path + 1 } else { 0 };
            if let Some(echo) = self.echoes[path].take() {
                return Some(echo);
            }
        }
        None
    }
}

/// What the DATA chunks of one packet require and contain.
#[derive(Clone, Copy, Default)]
pub struct DataSummary {
    /// A SACK is required.
    pub any: bool,
    /// TSN of the first chunk.
    pub first: Option<Serial32>,
    /// It must be sent at once.
    pub urgent: bool,
    /// User data that was stored, bytes.
    pub bytes: u64,
}

/// What became of a DATA chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataOutcome {
    /// It was accepted, or dropped as a duplicate or for lack of room.
    Processed,
    /// There is no such stream.
    InvalidStream(StreamId),
    /// It contradicts what arrived before.
    Violation,
}
