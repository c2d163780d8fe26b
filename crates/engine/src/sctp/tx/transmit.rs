//! Fills packets with DATA: copies each chunk into the packet and records it as in flight.

use ropewalk_base::{Ecn, PathId, Time};

use crate::congestion::{CongestionControl, SentPacket};
use smallvec::SmallVec;

use super::zero_window::WindowProbe;
use super::{Next, RecordState, Sender, SentRecord};
use crate::multipath::Occasion;
use crate::recovery::{Flight, LossDetection};
use crate::sctp::chunk::{Chunk, Data, DataFlags};
use crate::sctp::packet::Packet;
use crate::transmit_info::{PacketSize, TransmitInfo};

/// A chunk that is being sent.
struct SentChunk {
    tsn: u64,
    bytes: u32,
    again: bool,
}

/// Adds a copy of a chunk to a packet, written in place: see [`Data::BLANK`].
#[inline(always)]
fn push_copy(chunks: &mut SmallVec<[Chunk; 1]>, data: &Data) {
    /// One constant, so that it is not assembled at run time.
    const BLANK: Chunk = Chunk::Data(Data::BLANK);
    chunks.push(BLANK);
    if let Some(Chunk::Data(copy)) = chunks.last_mut() {
        copy.copy_from(data);
    }
}

/// Sets the I bit (RFC 7053) on the last chunk.
#[inline]
fn ask_for_sack(chunks: &mut SmallVec<[Chunk; 1]>) {
    if let Some(Chunk::Data(data)) = chunks.last_mut() {
        data.flags = data.flags.and(DataFlags::IMMEDIATE);
    }
}

impl Sender {
    /// Size of the chunk, bytes.
    #[inline]
    pub fn size_of(&self, next: Next) -> u32 {
        match next {
            Next::Recorded { tsn, .. } => self.outstanding.board.record(tsn).bytes,
            Next::Fresh { .. } => self.outstanding.queue.next_bytes().unwrap_or_default(),
        }
    }

    /// Length of a packet with only this chunk, without headers, bytes.
    pub fn size_alone(&self, next: Next) -> u32 {
        let datagram = match next {
            Next::Recorded { tsn, .. } => self.outstanding.datagram_len(tsn),
            Next::Fresh { .. } => self.outstanding.queue.next_datagram(),
        };
        self.outstanding.config.bytes_alone(self.size_of(next), datagram)
    }

    /// Adds the chunk and further ones that fit to a packet with `room` left for chunks.
    #[inline]
    pub fn fill(
        &mut self,
        now: Time,
        next: Next,
        mut room: u32,
        packet: &mut Packet,
    ) -> TransmitInfo {
        let chunks = &mut packet.chunks;
        let path = next.path();
        let was_idle = self.paths[path.index()].tx.flights.is_empty();
        match next {
            Next::Recorded { tsn, .. } => {
                let sent = self.transmit_chunk(now, path, tsn, chunks);
                room -= sent.bytes;
                if let RecordState::Lost { on, .. } = sent.before {
                    self.bundle_lost(now, path, on, &mut room, chunks);
                }
            }
            Next::Fresh { .. } => {
                room -= self.transmit_fresh(now, path, chunks).unwrap_or_default();
            }
        }
        if self.outstanding.has_urgent_work() {
            self.bundle_outside(now, path, &mut room, chunks);
        }
        self.bundle(now, path, &mut room, chunks);
        if self.requests_sack(path, next) || self.outstanding.waits_for_sack() {
            ask_for_sack(chunks);
        }
        self.record_time(now, path, was_idle, chunks);
        self.after_packet(now, next, self.data_room(path).saturating_sub(room))
    }

    /// Takes a chunk that exceeds the packets of its path, and records it as sent.
    #[cold]
    pub fn transmit_alone(
        &mut self,
        now: Time,
        next: Next,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) -> TransmitInfo {
        let tsn = match next {
            Next::Recorded { tsn, .. } => tsn,
            // Sending in pieces requires a record.
            Next::Fresh { .. } => {
                self.outstanding.note_limit();
                self.outstanding.board.assign(|chunk| self.outstanding.queue.next_chunk(chunk))
            }
        };
        let bytes = self.transmit_chunk(now, next.path(), tsn, chunks).bytes;
        self.after_packet(now, next, bytes)
    }

    /// Accounts for a packet without data. If no data is in flight on the path, no acknowledgement ends the
    /// round, so each such packet begins a new one. Otherwise a simulated network that loses packets by
    /// rounds could lose all of them.
    pub fn after_control_packet(&mut self, path: PathId) -> TransmitInfo {
        let tx = &mut self.paths[path.index()].tx;
        if tx.flights.is_empty() {
            tx.begin_round();
        }
        TransmitInfo { path, round: tx.round, size: PacketSize::Usual, ecn: Ecn::NotEct }
    }

    /// Records a packet with `sent` bytes of chunks as sent.
    #[inline(always)]
    fn after_packet(&mut self, now: Time, next: Next, sent: u32) -> TransmitInfo {
        let path = next.path();
        let full = self.outstanding.full_chunk();
        let state = &mut self.paths[path.index()];
        state.tx.counters.sent_packets += 1;
        state.tx.last_sent_at = now;
        state.tx.tail.on_activity(now);
        state.tx.burst_left = state.tx.burst_left.saturating_sub(1);
        if state.t3.is_none() {
            state.t3 = Some(now + state.tx.rtt.rto());
        }
        state.tx.on_bytes_sent(sent as u64);
        let ecn = match &state.ecn {
            Some(ecn) => ecn.codepoint(self.congestion.is_scalable()),
            None => Ecn::NotEct,
        };
        let transmit_info =
            TransmitInfo { path, round: state.tx.round, size: PacketSize::Usual, ecn };
        self.outstanding.queue.end_packet();
        self.outstanding.bursts_spent = true;
        self.outstanding.deadline.invalidate();
        self.on_packet_sent(now, path, full);
        if let WindowProbe::Due { interval } = self.outstanding.window_probe {
            self.note_window_probe(now, path, interval);
        }
        if matches!(next, Next::Recorded { again: true, .. }) {
            // A zero-window probe may be sent only while nothing else is in flight.
            self.sendable_left = self.sendable();
        }
        transmit_info
    }

    /// Sends a chunk that has a record.
    #[inline]
    pub fn transmit_chunk(
        &mut self,
        now: Time,
        path: PathId,
        tsn: u64,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) -> SentRecord {
        let number = self.paths[path.index()].tx.flights.next_number();
        let (data, sent) = self.outstanding.board.on_sent(now, tsn, path, number);
        push_copy(chunks, data);
        self.record_transmission(
            now,
            path,
            SentChunk { tsn, bytes: sent.bytes, again: sent.again },
        );
        if self.wants_sack_at_once(path, sent.again) {
            ask_for_sack(chunks);
        }
        sent
    }

    /// Sends the next chunk of the queue and returns its size. Its record is created as it is sent: writing
    /// it earlier and reading it again would cost more than all other steps.
    #[inline]
    pub fn transmit_fresh(
        &mut self,
        now: Time,
        path: PathId,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) -> Option<u32> {
        if self.outstanding.queue.is_empty() {
            return None;
        }
        self.outstanding.note_limit();
        let tsn = self.outstanding.board.next_tsn();
        let number = self.paths[path.index()].tx.flights.next_number();
        let cut = |chunk: &mut Data| self.outstanding.queue.next_chunk(chunk);
        let (data, bytes) = self.outstanding.board.assign_sent(now, path, number, cut);
        push_copy(chunks, data);
        self.record_transmission(now, path, SentChunk { tsn, bytes, again: false });
        if self.wants_sack_at_once(path, false) {
            ask_for_sack(chunks);
        }
        Some(bytes)
    }

    /// Records one chunk as in flight.
    #[inline(always)]
    fn record_transmission(
        &mut self,
        now: Time,
        path: PathId,
        SentChunk { tsn, bytes, again }: SentChunk,
    ) {
        if self.counts_by_tsn() {
            self.settle_t3_at_transmission(now, path, tsn);
        }
        let state = &mut self.paths[path.index()];
        if !again {
            self.sendable_left = self.sendable_left.saturating_sub(1);
            self.outstanding.want_copy(tsn);
        }
        let snapshot = state.tx.rate.on_sent(now, state.tx.flights.is_empty(), state.tx.limited);
        let in_flight_before = state.tx.flights.bytes();
        let number = state.tx.flights.push(Flight::new(tsn, bytes, now, snapshot, again));
        let app_limited = state.tx.limited;
        let packet = SentPacket {
            number,
            bytes: bytes.into(),
            in_flight_before,
            app_limited,
            out_of_data: state.tx.out_of_data,
        };
        self.congestion.on_sent(path, now, &packet);
        let state = &mut self.paths[path.index()];
        state.tx.counters.sent_chunks += 1;
        state.tx.counters.retransmitted += again as u64;
    }

    /// Whether the packet that has just been filled requests a SACK, if the peer acknowledges on request.
    #[inline]
    fn requests_sack(&mut self, path: PathId, next: Next) -> bool {
        if !self.config.peer_acks.on_request {
            return false;
        }
        let full = self.outstanding.full_chunk();
        let out_of_data =
            self.outstanding.queue.is_empty() && self.outstanding.board.lost().is_empty();
        let window = self.views.get(path.index()).map_or(0, |view| view.window);
        let oldest = self.outstanding.board.cumulative() + 1;
        let tx = &mut self.paths[path.index()].tx;
        let occasion = Occasion {
            oldest: matches!(next, Next::Recorded { tsn, again: true, .. } if tsn == oldest),
            window_full: self.sendable_left == 0 || tx.flights.bytes() + full > window,
            out_of_data,
        };
        let in_flight = tx.flights.bytes() / full;
        tx.requests.on_packet(in_flight, (tx.flights.next_number(), tx.acked_to), occasion)
    }

    /// Whether the chunk just recorded requests an immediate SACK (RFC 7053, 5): a retransmission, since
    /// the window opens when it arrives; the chunk that fills a small window or one in recovery; and the
    /// chunk that fills a small receive buffer of the peer if ordering does not close the window. After
    /// these, the peer may not receive further data that triggers its delayed SACK, and a small window
    /// loses a large part of its round trip by waiting for it.
    #[inline]
    fn wants_sack_at_once(&self, path: PathId, again: bool) -> bool {
        /// Window in chunks up to which a delayed SACK costs a large part of a round trip.
        const SMALL_WINDOW: u64 = 16;
        let on_request = self.config.peer_acks.on_request;
        if on_request || self.outstanding.config.recovery != LossDetection::RackTlp {
            return false;
        }
        let full = self.outstanding.full_chunk();
        let state = &self.paths[path.index()];
        let window = self.views.get(path.index()).map_or(0, |v| v.window);
        let fills = state.tx.flights.bytes() + full > window;
        let small = self.is_small(self.outstanding.peer_rwnd);
        again
            || small
                && self.outstanding.is_unordered_unfragmented()
                && self.outstanding.board.span() + full > self.outstanding.peer_rwnd
            || fills
                && (state.tx.recovery_exit.is_some()
                    || state.tx.losses > 0 && window <= SMALL_WINDOW * full)
    }
}
