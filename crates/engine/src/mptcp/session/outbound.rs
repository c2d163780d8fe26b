//! Outgoing segments in order of priority: setup, acknowledgements, retransmissions of subflows, reinjected
//! data, new data.

use ropewalk_base::{Ecn, PathId, Time};

use super::super::segment::{Segment, Stamps};
use super::board::MappingState;
use super::view::Candidate;
use super::{Session, State};
use crate::congestion::{CongestionControl, SentPacket};
use crate::mptcp::reordering::SpuriousRule;
use crate::multipath::{Assignment, Outstanding};
use crate::recovery::Flight;
use crate::scheduler::{Decision, Reason};
use crate::transmit_info::{PacketSize, TransmitInfo};

impl Session {
    /// Writes the next segment to send to `segment`, and overwrites its previous contents. Returns `None`
    /// if nothing more may be sent now.
    pub fn poll_transmit_into(&mut self, now: Time, segment: &mut Segment) -> Option<TransmitInfo> {
        if let Some((path, next)) = self.control.queue.pop_front() {
            *segment = next;
            return Some(self.transmit_info(path));
        }
        if self.state != State::Established {
            return None;
        }
        if let Some(transmit_info) = self.next_ack(now, segment) {
            return Some(transmit_info);
        }
        if let Some(path) = self.next_ending(now, segment) {
            return Some(self.transmit_info(path));
        }
        if self.model_waits_for_subflows() {
            return None;
        }
        let sent = self.next_data(now, segment);
        if sent.is_none() {
            self.end_if_done();
        }
        sent
    }

    #[inline]
    fn transmit_info(&self, path: PathId) -> TransmitInfo {
        let round = self.sender.paths[path.index()].tx.round;
        TransmitInfo { path, round, size: PacketSize::Usual, ecn: Ecn::NotEct }
    }

    #[inline]
    pub(super) fn stamps(&self, now: Time, path: PathId) -> Option<Stamps> {
        let echo = self.sender.paths[path.index()].received.echo();
        // The model's clock has a granularity of one millisecond.
        let grain = if self.model.is_some() { 1_000_000 } else { 1 };
        let value = now.as_nanos() / grain * grain;
        // 0 means that there is no timestamp.
        self.config.timestamps.then(|| Stamps { value: value.max(1), echo })
    }

    #[inline]
    fn next_ack(&mut self, now: Time, segment: &mut Segment) -> Option<TransmitInfo> {
        let due = |subflow: &super::Subflow| subflow.is_open() && subflow.received.is_due();
        let path = PathId::from_index(self.sender.paths.iter().position(due)?);
        self.acknowledge_now(now, path, segment);
        Some(self.transmit_info(path))
    }

    /// Writes an acknowledgement of the data received on `path`.
    pub(super) fn acknowledge_now(&mut self, now: Time, path: PathId, segment: &mut Segment) {
        segment.clear();
        self.fill_ack(now, path, segment);
        let numbered = self.config.numbers();
        let room = Segment::sack_room(self.config.timestamps, self.handshake.multipath, numbered);
        let room = if self.config.sack { room } else { 0 };
        let received = &mut self.sender.paths[path.index()].received;
        if numbered {
            let (order, disordered) = received.order_of(segment.ack);
            (segment.order, segment.disordered) = (Some(order), disordered);
        }
        segment.duplicate = received.on_acknowledged(segment.ack, room, &mut segment.sacks);
    }

    fn next_data(&mut self, now: Time, segment: &mut Segment) -> Option<TransmitInfo> {
        if self.has_nothing_to_send() {
            self.sender.measurements.set_blocked(now, false);
            return None;
        }
        if self.sender.views_need_update() {
            self.sender.refresh_views(now);
        }
        if let Some(transmit_info) = self.next_again(now, segment) {
            return Some(transmit_info);
        }
        if let Some((path, unit)) = self.sender.copies.pop()
            && self
                .sender
                .outstanding
                .board
                .get(unit)
                .is_some_and(|u| matches!(u.state, MappingState::Given { .. }))
        {
            return Some(self.send_unit(now, path, unit, segment));
        }
        let idle = self.sender.outstanding.is_idle();
        let mut sent = self.next_reinjected(now, segment);
        if sent.is_none() && !idle {
            sent = self.next_new(now, segment);
        }
        if sent.is_some() || self.sender.scheduler.is_thinking() {
            return sent;
        }
        if self.end_tests() {
            return self.next_again(now, segment);
        }
        self.sender.finish_drain(now, idle);
        None
    }

    /// A fast check, because a receiver is also polled after every segment.
    #[inline]
    fn has_nothing_to_send(&self) -> bool {
        self.sender.outstanding.queue.is_empty()
            && self.sender.outstanding.board.is_empty()
            && self.sender.copies.is_empty()
            && self.sender.paths.iter().all(|subflow| subflow.sent.front().is_none())
    }

    /// The next retransmission of a subflow: its tail loss probe, or the oldest lost piece.
    fn next_again(&mut self, now: Time, segment: &mut Segment) -> Option<TransmitInfo> {
        for path in self.ids() {
            let subflow = &mut self.sender.paths[path.index()];
            if subflow.probe.is_none() && subflow.sent.lost().is_empty() || !subflow.is_open() {
                continue;
            }
            let cwnd = self.sender.congestion_window(path);
            let subflow = &mut self.sender.paths[path.index()];
            if let Some(piece) = subflow.probe.take()
                && subflow.sent.get(piece).is_some()
            {
                return Some(self.send_piece(now, path, piece, segment));
            }
            let Some(piece) = subflow.sent.lost().first() else { continue };
            if subflow.undo.holds_back() {
                continue;
            }
            let open = subflow.tx.in_flight() < cwnd || subflow.tx.fast_credit;
            if open || subflow.tx.flights.is_empty() {
                subflow.tx.fast_credit = false;
                return Some(self.send_piece(now, path, piece, segment));
            }
        }
        None
    }

    /// The oldest unit to be reinjected, on the fastest other path with space in its window.
    fn next_reinjected(&mut self, now: Time, segment: &mut Segment) -> Option<TransmitInfo> {
        let unit = self.sender.outstanding.board.reinject().first()?;
        let MappingState::Given { to, .. } = self.sender.outstanding.board.get(unit)?.state else {
            return None;
        };
        let other = self.sender.views.iter().filter(|v| v.is_open() && v.id != to);
        let path = other.min_by_key(|v| v.forward_delay)?.id;
        let decision = Decision::send(path, 0, Reason::RetransmissionPolicy);
        self.sender.record(now, decision, Some(unit));
        Some(self.send_unit(now, path, unit, segment))
    }

    /// New data, on the path that the scheduler chooses.
    fn next_new(&mut self, now: Time, segment: &mut Segment) -> Option<TransmitInfo> {
        let sender = &mut self.sender;
        let (path, position, decision, unit, bytes) = loop {
            let Assignment::Send { path, position, decision } = sender.assign(now)? else {
                let (path, unit) = sender.unblock(now)?;
                return Some(self.send_unit(now, path, unit, segment));
            };
            match sender.segment_for(path, position, self.config.nagle)? {
                Candidate::Unit { unit, bytes } => {
                    break (path, position, decision, unit, bytes as u64);
                }
                // The path stays closed until the next input.
                Candidate::HeldBack => sender.views[path.index()].burst_room = 0,
            }
        };
        sender.on_assigned(now, (path, position, &decision), (unit, bytes));
        sender.sendable_left = sender.sendable_left.saturating_sub(1);
        Some(self.send_unit(now, path, unit, segment))
    }

    /// Assigns `unit` to the subflow on `path` and sends it.
    pub(super) fn send_unit(
        &mut self,
        now: Time,
        path: PathId,
        unit: u64,
        segment: &mut Segment,
    ) -> TransmitInfo {
        let subflow = &mut self.sender.paths[path.index()];
        let number = subflow.tx.flights.next_number();
        let piece = subflow.sent.next_piece();
        self.sender.outstanding.board.on_assigned_to(now, unit, path, piece);
        if let Some(record) = self.sender.outstanding.board.get(unit) {
            let (dsn, payload) = (record.dsn, record.payload.clone());
            subflow.tx.unacknowledged += payload.len() as u64;
            subflow.tx.counters.retransmitted += u64::from(record.given > 1);
            let short = payload.len() < self.sender.outstanding.segment_limit;
            subflow.sent.push(unit, dsn, payload, record.first_sent, number);
            if short {
                subflow.short_end = subflow.sent.next_seq();
            }
        }
        self.transmit_segment(now, path, piece, false, segment)
    }

    /// Retransmits a piece of a subflow's queue.
    fn send_piece(
        &mut self,
        now: Time,
        path: PathId,
        piece: u64,
        segment: &mut Segment,
    ) -> TransmitInfo {
        let subflow = &mut self.sender.paths[path.index()];
        let number = subflow.tx.flights.next_number();
        subflow.end_transmission(piece);
        subflow.sent.on_sent_again(piece, number);
        if let Some(mapped) = subflow.sent.get(piece) {
            subflow.undo.on_retransmission(now, mapped.seq);
        }
        subflow.tx.counters.retransmitted += 1;
        self.transmit_segment(now, path, piece, true, segment)
    }

    /// Records a transmission and fills in its segment.
    fn transmit_segment(
        &mut self,
        now: Time,
        path: PathId,
        piece: u64,
        again: bool,
        segment: &mut Segment,
    ) -> TransmitInfo {
        segment.clear();
        self.fill_ack(now, path, segment);
        let most = self.sender.timer_most(path);
        let subflow = &mut self.sender.paths[path.index()];
        if let Some(mapped) = subflow.sent.get(piece) {
            segment.seq = mapped.seq;
            segment.dsn = mapped.dsn;
            segment.payload = mapped.payload.clone();
            segment.first_sent = mapped.first_sent;
        }
        if self.config.numbers() {
            segment.order = Some(subflow.tx.flights.next_number());
        }
        let bytes = segment.payload.len();
        subflow.tx.on_bytes_sent(bytes as u64);
        let end = segment.dsn + bytes as u64;
        if end > self.sender.outstanding.edge {
            self.sender.outstanding.window_probe = Some((path, piece, end));
        }
        let idle = subflow.tx.flights.is_empty();
        let snapshot = subflow.tx.rate.on_sent(now, idle, subflow.tx.limited);
        let (in_flight_before, app_limited) = (subflow.tx.flights.bytes(), subflow.tx.limited);
        let number = subflow.tx.flights.push(Flight::new(piece, bytes, now, snapshot, again));
        let packet = SentPacket {
            number,
            bytes: bytes.into(),
            in_flight_before,
            app_limited,
            out_of_data: subflow.tx.out_of_data,
        };
        self.sender.congestion.on_sent(path, now, &packet);
        let subflow = &mut self.sender.paths[path.index()];
        subflow.tx.counters.sent_packets += 1;
        subflow.tx.counters.sent_chunks += 1;
        subflow.tx.last_sent_at = now;
        subflow.tx.tail.on_activity(now);
        if subflow.timer.is_none() {
            subflow.restart_timer(now, most);
        }
        let full = self.sender.outstanding.segment_limit as u64;
        self.sender.on_packet_sent(now, path, full);
        self.transmit_info(path)
    }
}
