//! The session's data to send: queued bytes, mappings without a data-level acknowledgement, and the
//! peer's window.

use ropewalk_base::{Duration, PathId, Time};

use super::super::config::{Config, Reinjection};
use super::super::reordering::Reordering;
use super::super::subflow::Subflow;
use super::super::subflow::sent::SegmentState;
use super::board::{DataBoard, MappingState};
use super::queue::ByteQueue;
use crate::multipath::{Oldest, Outstanding};
use crate::payload::Payload;
use crate::scheduler::{DecisionKind, FragmentEnd, View};
use crate::window::Budget;

/// The part of a session's configuration that its sender needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct TxConfig {
    pub sack: bool,
    pub duplicate_threshold: u32,
    pub reordering: Reordering,
    pub reinjection: Reinjection,
    pub probe_interval: Duration,
    /// Bytes that are assigned to a subflow together.
    pub fragment: Option<u64>,
    /// Whether the session follows the model of Chihani and Collange.
    pub modelled: bool,
}

impl TxConfig {
    pub fn of(config: &Config) -> Self {
        Self {
            sack: config.sack,
            duplicate_threshold: config.duplicate_threshold,
            reordering: config.reordering,
            reinjection: config.reinjection,
            probe_interval: config.probe_interval,
            fragment: config.fragment.filter(|_| config.multipath),
            modelled: config.quirks.is_some(),
        }
    }
}

/// Mappings that are queued or not acknowledged at data level.
#[derive(Clone, Debug)]
pub(super) struct Mappings {
    pub board: DataBoard,
    pub queue: ByteQueue,
    /// End of the receive window as a data sequence number (exclusive).
    pub edge: u64,
    /// Maximum payload of a segment, bytes.
    pub segment_limit: u32,
    /// Whether the application has declared the end of the data.
    pub closing: bool,
    /// The probe of a closed window: subflow, piece, and end of its data sequence numbers.
    pub window_probe: Option<(PathId, u64, u64)>,
    pub config: TxConfig,
    /// When the last acknowledgement arrived.
    pub last_ack_at: Time,
    /// Whether the send buffer was full when the user last queued bytes.
    pub was_full: bool,
    /// Scratch: transmissions found lost.
    pub lost: Vec<u64>,
}

impl Mappings {
    /// Creates an empty queue, with a receive window that ends at `edge`.
    pub fn new(segment_limit: u32, edge: u64, config: TxConfig) -> Self {
        Self {
            board: DataBoard::default(),
            queue: ByteQueue::default(),
            edge,
            segment_limit,
            closing: false,
            window_probe: None,
            config,
            last_ack_at: Time::ZERO,
            was_full: false,
            lost: Vec::new(),
        }
    }

    /// The peer's window, counted from the data-level acknowledgement, bytes.
    #[inline]
    pub const fn offered(&self) -> u64 {
        self.edge.saturating_sub(self.board.una())
    }

    /// Bytes of the unit at a position of the unassigned queue, if it has no number yet.
    pub fn unnumbered_bytes_at(&self, position: u64) -> Option<u32> {
        let limit = self.segment_limit as u64;
        let before = position.checked_sub(self.board.holes().len())? * limit;
        Some(self.queue.bytes().saturating_sub(before).min(limit) as u32)
    }

    /// The unit at a position of the unassigned queue. Numbers all units before it.
    pub fn unit_at(&mut self, position: u64) -> Option<u64> {
        let holes = self.board.holes().len();
        if position < holes {
            return self.board.holes().nth(position);
        }
        for _ in holes..position {
            let payload = self.next_payload()?;
            self.board.pass_over(payload);
        }
        let payload = self.next_payload()?;
        Some(self.board.push(payload))
    }

    /// Divides all data within the receive window into units, if subflows get it in fragments. No unit
    /// spans two fragments, and the last unit fills the window.
    pub fn divide_into_fragments(&mut self) {
        let Some(fragment) = self.config.fragment else { return };
        let limit = self.segment_limit as u64;
        loop {
            let next = self.board.next();
            let room = self.edge.saturating_sub(next).min(fragment - next % fragment);
            let most = room.min(limit);
            if most == 0 || self.queue.is_empty() {
                break;
            }
            let payload = self.queue.take(most as u32);
            self.board.pass_over(payload);
        }
    }

    /// Puts the units that end a fragment into `ends`.
    pub fn collect_fragment_ends(&self, ends: &mut Vec<FragmentEnd>) {
        ends.clear();
        let Some(fragment) = self.config.fragment else { return };
        for (unit, position) in self.board.holes().ranges().flatten().zip(0..) {
            if let Some(unit) = self.board.get(unit)
                && unit.end().is_multiple_of(fragment)
            {
                ends.push(FragmentEnd { position, bytes: unit.payload.len() as u64 });
            }
        }
    }

    #[inline]
    fn next_payload(&mut self) -> Option<Payload> {
        (!self.queue.is_empty()).then(|| self.queue.take(self.segment_limit))
    }
}

impl Outstanding for Mappings {
    type Path = Subflow;
    /// A subflow retransmits its own losses.
    const REPEATS_ON_SAME_PATH: bool = false;

    #[inline]
    fn view(
        &self,
        _: &[Subflow],
        now: Time,
        occasion: DecisionKind,
        sendable: u64,
        epoch: u64,
    ) -> View<'static> {
        let limit = self.segment_limit as u64;
        View {
            now,
            occasion,
            backlog_chunks: self.queue.bytes().div_ceil(limit) + self.board.holes().len(),
            backlog_bytes: self.queue.bytes(),
            sendable,
            window_room: self.edge.saturating_sub(self.board.next()),
            receive_buffer: self.offered(),
            unordered: false,
            acknowledged_chunks: self.board.acknowledged(),
            closing: self.closing,
            chunk_bytes: limit,
            epoch,
            fragment_ends: &[],
            paths: &[],
        }
    }

    #[inline]
    fn within_window(&self, _: &[Subflow]) -> u64 {
        let holes = self.board.holes_within(self.offered());
        let beyond = self.edge.saturating_sub(self.board.next());
        let limit = self.segment_limit as u64;
        let fresh = match self.queue.bytes() {
            0 => 0,
            // The last segment may be short.
            bytes if bytes <= beyond => bytes.div_ceil(limit),
            _ => beyond / limit,
        };
        holes + if holes == self.board.holes().len() { fresh } else { 0 }
    }

    /// RFC 9293, 3.8.6.1: the sending host must probe a zero window.
    #[inline]
    fn may_probe_window(&self) -> bool {
        true
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.board.holes().is_empty() && self.queue.is_empty()
    }

    fn oldest(&self, subflows: &[Subflow]) -> Option<Oldest> {
        let (unit, record) = self.board.front()?;
        let MappingState::Given { to, piece } = record.state else { return None };
        let subflow = &subflows[to.index()];
        let sent_at = match subflow.sent.get(piece).map(|piece| piece.state) {
            Some(SegmentState::InFlight { number }) => subflow.tx.flights.sent_at(number),
            _ => None,
        };
        Some(Oldest { unit, path: to, sent_at, transmissions: record.given })
    }

    /// Subflows handle their own losses.
    #[inline]
    fn has_lost(&self) -> bool {
        false
    }

    #[inline]
    fn is_blocked_by_oldest(&self) -> bool {
        true
    }

    #[inline]
    fn sequence(&self, unit: u64) -> u64 {
        unit
    }

    #[inline]
    fn budget(&self) -> Budget {
        Budget { buffer: self.offered(), chunk: self.segment_limit as u64 }
    }
}
