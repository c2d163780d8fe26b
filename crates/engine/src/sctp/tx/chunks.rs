//! The association's data to send: queued messages, unacknowledged chunks, and the peer's receive window.

use std::num::NonZeroU64;

use ropewalk_base::{PathId, Serial16, Serial32, Time};

use super::path::Path;
use super::queue::SendQueue;
use super::reserve::Reserve;
use super::sack::AckScratch;
use super::zero_window::WindowProbe;
use super::{DeliveryDelays, MissIndications, RecordState, Scoreboard, TxConfig};
use crate::deadline::CachedDeadline;
use crate::multipath::{Oldest, Outstanding};
use crate::scheduler::{DecisionKind, PathSet, View};
use crate::sctp::config::WindowCheck;
use crate::sctp::extensions::partial_reliability::Limits;
use crate::sctp::gaps::GapList;
use crate::window::Budget;

/// Queued or unacknowledged chunks, and the SCTP state for sending them.
///
/// `repr(C)` keeps the order of the fields, with those that every input accesses first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Chunks {
    /// Whether any path has used a part of its burst allowance.
    pub bursts_spent: bool,
    /// Whether the send buffer was full when the user last queued a message.
    pub was_full: bool,
    /// The application has declared the end of data.
    pub closing: bool,
    /// The user may not send more messages, because the association is shutting down.
    pub shutting: bool,
    /// The path that SCTP without CMT sends to (RFC 9260, 6.4).
    pub primary: PathId,
    /// Number of outbound streams: the smaller of the configured number and the peer's limit (RFC 9260,
    /// 5.1.1).
    pub streams: u16,
    /// The earliest timer of any path.
    pub deadline: CachedDeadline,
    pub(super) misses: MissIndications,
    /// Number of chunks that the gap ack blocks of the newest SACK cover. Distinguishes old SACKs from
    /// new ones.
    pub(super) offered_gaps: u32,
    /// The highest number of a requested SACK.
    newest_sack: Option<Serial16>,
    /// The peer's total receive buffer according to the last SACK, or the used part of it, bytes.
    pub peer_rwnd: u64,
    pub queue: SendQueue,
    pub board: Scoreboard,
    pub(super) reports: PathReports,
    /// The first TSN, unwrapped.
    first: u64,
    /// When the last SACK arrived.
    pub(super) last_sack_at: Time,
    /// Without CMT and RACK, fast recovery lasts until this TSN is acknowledged cumulatively (RFC 9260, 7.2.4
    /// (6)).
    pub(super) recovery_exit: Option<NonZeroU64>,
    /// State of the zero-window probe.
    pub window_probe: WindowProbe,
    pub config: TxConfig,
    /// The unused part of the reserve. `None`: all of it.
    pub reserve: Option<Box<Reserve>>,
    /// Delays of delivery, `None` unless they are measured.
    pub delivery_delays: Option<Box<DeliveryDelays>>,
    /// State of messages that are not plain, `None` before the first.
    pub limits: Option<Box<Limits>>,
    /// The list of the last SACK, whose memory can be reused.
    pub spare_gaps: GapList,
    pub(super) scratch: AckScratch,
}

impl PathReports {
    /// Whether there are reports other than that paths work.
    #[inline]
    pub const fn needs_action(&self) -> bool {
        !self.silent.is_empty() || !self.changed.is_empty() || !self.mtu.is_empty()
    }
}

/// Findings of an input about the peer and its paths, for path management.
#[derive(Clone, Copy, Default, Debug)]
pub struct PathReports {
    /// The peer has acknowledged data (RFC 9260, 8.1).
    pub acknowledged: bool,
    /// An acknowledgement shows that the path works.
    pub heard: PathSet,
    /// All data in flight on the path was lost.
    pub silent: PathSet,
    /// The path works again, or has failed.
    pub changed: PathSet,
    /// The search for the path MTU has a result, or a probe to send.
    pub mtu: PathSet,
}

/// The first TSN, unwrapped. The offset keeps numbers before it above 0.
const fn unwrapped(initial_tsn: u32) -> u64 {
    (1 << 32) + initial_tsn as u64
}

impl Chunks {
    /// Creates an empty queue and scoreboard for packets of `mtu` bytes. The first chunk gets
    /// `initial_tsn`. A chunk is lost after this many miss indications.
    pub fn new(
        initial_tsn: u32,
        streams: u16,
        mtu: u32,
        miss_indications: u32,
        config: TxConfig,
    ) -> Self {
        let first = unwrapped(initial_tsn);
        Self {
            board: Scoreboard::new(first),
            queue: SendQueue::new(streams, config.chunk_sizes(mtu)),
            peer_rwnd: 0,
            window_probe: WindowProbe::Idle,
            closing: false,
            shutting: false,
            first,
            bursts_spent: true,
            was_full: false,
            deadline: CachedDeadline::STALE,
            primary: PathId(0),
            streams,
            offered_gaps: 0,
            newest_sack: None,
            misses: MissIndications { threshold: miss_indications },
            last_sack_at: Time::ZERO,
            recovery_exit: None,
            scratch: AckScratch::new(),
            reports: PathReports::default(),
            spare_gaps: GapList::default(),
            config,
            reserve: None,
            delivery_delays: None,
            limits: None,
        }
    }

    /// Sets another first TSN before anything has been sent.
    pub fn begin_at(&mut self, initial_tsn: u32) {
        self.first = unwrapped(initial_tsn);
        self.board = Scoreboard::new(self.first);
    }

    /// Restarts with another first TSN. All queued and outstanding data is dropped.
    pub fn restart(&mut self, initial_tsn: u32, streams: u16) {
        self.begin_at(initial_tsn);
        let empty = SendQueue::new(streams, self.queue.sizes());
        let before = std::mem::replace(&mut self.queue, empty);
        self.queue.set_stream_scheduler(before.stream_scheduler());
        for (stream, value) in before.stream_values() {
            self.queue.set_stream_value(stream, value);
        }
        self.window_probe = WindowProbe::Idle;
        self.scratch = AckScratch::new();
        self.offered_gaps = 0;
        self.newest_sack = None;
        (self.was_full, self.shutting) = (false, false);
        self.reserve = None;
        self.recovery_exit = None;
        self.limits = None;
    }

    /// Gives the next chunk the TSN `next`. Nothing is outstanding.
    #[cold]
    pub fn jump_to(&mut self, next: Serial32) {
        let step = u64::from(next.0.wrapping_sub(self.board.next_tsn() as u32));
        self.board.skip(step);
        self.first += step;
        self.window_probe = WindowProbe::Idle;
        self.scratch = AckScratch::new();
        self.offered_gaps = 0;
        self.newest_sack = None;
        self.recovery_exit = None;
        self.limits = None;
    }

    /// Whether the chunk just sent is the last one for now, and the user or the peer waits for its
    /// acknowledgement: the association is shutting down (RFC 7053, 5.1), the send buffer has refused a
    /// message, or a reset of streams is pending.
    #[inline]
    pub fn waits_for_sack(&self) -> bool {
        self.queue.is_empty()
            && (self.was_full || self.shutting || self.queue.is_drained_for_reset())
    }

    /// Records the number of a SACK, if it has one. Returns whether the SACK was sent after all others processed so far.
    #[inline]
    pub(super) fn note_number(&mut self, number: Option<Serial16>) -> bool {
        let Some(number) = number else { return true };
        let newest = self.newest_sack.is_none_or(|newest| number.distance_from(newest) > 0);
        if newest {
            self.newest_sack = Some(number);
        }
        newest
    }

    /// Whether a TSN has been assigned.
    pub fn has_sent(&self) -> bool {
        self.board.next_tsn() > self.first
    }

    /// Largest DATA chunk of any message, bytes.
    #[inline]
    pub const fn chunk_limit(&self) -> u32 {
        let sizes = self.queue.sizes();
        sizes.payload + sizes.header
    }

    /// Size of the largest chunk, bytes: that of a datagram, if it may be longer than others.
    #[inline]
    pub const fn full_chunk(&self) -> u64 {
        self.queue.sizes().full() as u64
    }

    /// Length of the user data of the chunk with this TSN if it is a datagram, bytes.
    pub fn datagram_len(&self, tsn: u64) -> Option<u32> {
        let data = &self.board.record(tsn).data;
        data.is_datagram().then(|| data.payload.len())
    }

    /// Whether all unsent data consists of unordered unfragmented messages. Each of them is delivered on
    /// arrival, so ordering cannot close the window.
    #[inline]
    pub fn is_unordered_unfragmented(&self) -> bool {
        self.queue.is_all_unordered_unfragmented() && self.board.has_only_unordered_holes()
    }

    /// How many more chunks may get a TSN before the oldest is acknowledged.
    #[inline]
    pub fn tsns_left(&self) -> u64 {
        u64::from(self.config.most_outstanding).saturating_sub(self.board.tsns_outstanding())
    }

    /// Whether any unassigned chunk may be sent while there is room for one
    /// ([`WindowCheck::Unacknowledged`]). With a closed window, only the first may, as a probe.
    #[inline]
    fn takes_any(&self) -> bool {
        self.config.window_check == WindowCheck::Unacknowledged
    }

    /// How many unassigned chunks fit into the peer's buffer in addition to data in flight and data that
    /// the peer holds.
    fn beside_unacknowledged(&self, paths: &[Path]) -> u64 {
        let in_flight: u64 = paths.iter().map(|path| path.tx.flights.bytes()).sum();
        let room = self.peer_rwnd.saturating_sub(self.board.held_bytes() + in_flight);
        let fresh = self.queue.chunks().min(self.tsns_left());
        (room / self.full_chunk()).min(self.board.holes().len() + fresh)
    }

    /// The TSN and size of the chunk at a position of the unassigned queue, to be sent immediately.
    /// Chunks before it get their TSNs now. If the chunk has none yet, the returned TSN is the next one.
    #[inline]
    pub fn chunk_at(&mut self, position: u64) -> Option<(u64, u64)> {
        let holes = self.board.holes().len();
        if position < holes {
            let tsn = self.board.holes().nth(position)?;
            return Some((tsn, self.board.record(tsn).bytes as u64));
        }
        for _ in holes..position {
            if self.queue.is_empty() {
                return None;
            }
            self.note_limit();
            self.board.pass_over(|chunk| self.queue.next_chunk(chunk));
            self.queue.end_packet();
        }
        Some((self.board.next_tsn(), self.queue.next_bytes()? as u64))
    }
}

impl Outstanding for Chunks {
    type Path = Path;
    const REPEATS_ON_SAME_PATH: bool = true;

    #[inline]
    fn view(
        &self,
        paths: &[Path],
        now: Time,
        occasion: DecisionKind,
        sendable: u64,
        epoch: u64,
    ) -> View<'static> {
        let (span, full) = (self.board.span(), self.full_chunk());
        let mut unassigned = self.queue.chunks();
        // Any chunk may be chosen if it fits and a TSN is available.
        let passing = self.is_unordered_unfragmented() && span + full <= self.peer_rwnd;
        let unordered = passing || self.takes_any() && self.within_window(paths) > 0;
        if unordered {
            unassigned = unassigned.min(self.tsns_left());
        }
        View {
            now,
            occasion,
            backlog_chunks: self.board.holes().len() + unassigned,
            backlog_bytes: self.queue.bytes(),
            sendable,
            window_room: self.peer_rwnd.saturating_sub(span),
            receive_buffer: self.peer_rwnd,
            unordered,
            acknowledged_chunks: self.sequence(self.board.cumulative() + 1),
            closing: self.closing,
            chunk_bytes: full,
            epoch,
            fragment_ends: &[],
            paths: &[],
        }
    }

    #[inline]
    fn within_window(&self, paths: &[Path]) -> u64 {
        if self.takes_any() {
            return self.beside_unacknowledged(paths);
        }
        let beyond = self.peer_rwnd.saturating_sub(self.board.span());
        let full = self.full_chunk();
        if beyond >= full && self.is_unordered_unfragmented() {
            // Any chunk may be chosen.
            let unassigned = self.queue.chunks().min(self.tsns_left());
            return (beyond / full).min(self.board.holes().len() + unassigned);
        }
        let holes = self.board.holes_within(self.peer_rwnd);
        let beyond = beyond.saturating_sub(self.board.unordered_holes());
        let fresh = match self.queue.next_bytes() {
            Some(next) if next as u64 <= beyond => (beyond / full).max(1).min(self.tsns_left()),
            _ => 0,
        };
        holes + if holes == self.board.holes().len() { fresh } else { 0 }
    }

    #[inline]
    fn may_probe_window(&self) -> bool {
        matches!(self.window_probe, WindowProbe::Due { .. })
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.board.holes().is_empty() && self.queue.is_empty()
    }

    fn oldest(&self, paths: &[Path]) -> Option<Oldest> {
        let unit = self.board.cumulative() + 1;
        let record = self.board.get(unit)?;
        let RecordState::InFlight { path, number } = record.state else { return None };
        let sent_at = paths[path.index()].tx.flights.sent_at(number);
        Some(Oldest { unit, path, sent_at, transmissions: record.transmissions })
    }

    #[inline]
    fn has_lost(&self) -> bool {
        !self.board.lost().is_empty()
    }

    /// Without ordering, the window does not wait for the oldest chunk. A closed window is probed by its
    /// own timer.
    #[inline]
    fn is_blocked_by_oldest(&self) -> bool {
        !self.is_unordered_unfragmented() && self.window_probe.is_idle()
    }

    #[inline]
    fn sequence(&self, tsn: u64) -> u64 {
        tsn - self.first
    }

    #[inline]
    fn budget(&self) -> Budget {
        Budget { buffer: self.peer_rwnd, chunk: self.full_chunk() }
    }
}
