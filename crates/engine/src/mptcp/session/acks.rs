//! Incoming acknowledgements, of the subflow and of the session's data.

use ropewalk_base::{Duration, PathId, Rate, Time};

use super::super::reordering::Reordering;
use super::super::segment::Segment;
use super::super::subflow::Subflow;
use super::super::subflow::sent::{SegmentState, SentQueue, SentSegment};
use super::board::{DataBoard, MappingState};
use super::{DataSender, Event, Session};
use crate::congestion::{AckSample, CongestionControl, Delivery};
use crate::path::explained_queueing;
use crate::recovery::Flight;

/// The data that one segment acknowledges on its subflow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SubflowAckd {
    pub bytes: u64,
    pub chunks: u32,
    in_flight_before: u64,
    /// Whether the cumulative acknowledgement advanced.
    pub advanced: bool,
    /// The newest acknowledged transmission.
    newest: Option<(u64, Flight)>,
    /// The transmission of the first acknowledged segment that was sent once.
    oldest: Option<(u64, Flight)>,
    /// The newest, excluding retransmissions so recent that their original transmission caused this
    /// acknowledgement.
    witness: Option<(u64, Time)>,
    /// Lowest number of a first transmission that arrived.
    first_arrival: Option<u64>,
    /// Whether data that had been given up arrived before it was retransmitted.
    pub late: bool,
    /// Bytes and pieces that arrived after they had been given up.
    late_bytes: u64,
}

impl SubflowAckd {
    /// Whether it acknowledges anything new.
    const fn is_news(&self) -> bool {
        self.chunks > 0 || self.late
    }

    /// Selects the first segment that was sent once for the RTT sample.
    pub const fn measure_oldest(&mut self) {
        self.newest = self.oldest;
    }

    /// When the newest transmission was sent, `None` for a retransmission (Karn; RFC 6298, 3).
    fn newest_left_at(&self) -> Option<Time> {
        self.newest.filter(|(_, flight)| !flight.again).map(|(_, flight)| flight.sent_at)
    }

    /// RTT sample of the newest transmission.
    fn round_trip(&self, now: Time) -> Option<Duration> {
        self.newest_left_at().map(|left_at| now.since(left_at))
    }
}

impl Session {
    pub(super) fn on_acks(&mut self, now: Time, path: PathId, segment: &Segment) {
        let subflow = &mut self.sender.paths[path.index()];
        if segment.ack > subflow.sent.next_seq() {
            // RFC 9293, 3.10.7.4: an ACK of data that has not been sent is ignored.
            return;
        }
        self.sender.outstanding.last_ack_at = now;
        if self.model.is_some() {
            self.on_model_acks(now, path, segment);
            return;
        }
        let before = (self.sender.outstanding.board.una(), self.sender.outstanding.edge);
        self.take_data_ack(segment);
        let several = covers_several(&self.sender.paths[path.index()], segment);
        let ackd = self.sender.take_subflow_ack(now, path, segment);
        // Forward delay: the peer's clock when it sent the acknowledgement, minus our clock when the newest
        // acknowledged segment was sent. The echo cannot be used: it belongs to the earliest segment (RFC 7323,
        // 4.3), which may have waited for the next one.
        if let Some(stamps) = segment.stamps.filter(|stamps| several && stamps.echo != 0)
            && let Some(left_at) = ackd.newest_left_at()
        {
            self.sender.sample_forward_delay(now, path, left_at.as_nanos(), stamps.value);
        }
        self.on_duplicate_report(path, segment);
        self.reconsider(now, path, segment, &ackd);
        if ackd.is_news() {
            self.settle(now, path, &ackd);
        } else {
            let moved =
                before != (self.sender.outstanding.board.una(), self.sender.outstanding.edge);
            self.sender.on_duplicate_ack(now, path, segment, moved);
        }
        self.push_writable();
    }

    /// Processes acknowledgement and window at data level.
    pub(super) fn take_data_ack(&mut self, segment: &Segment) {
        let ack =
            if self.handshake.multipath { segment.data_ack } else { segment.ack.checked_sub(1) };
        let Some(ack) = ack else { return };
        if ack > self.sender.outstanding.board.next() {
            if ack == self.sender.outstanding.board.next() + 1 && self.control.ending.sent.is_some()
            {
                self.on_ending_acknowledged();
            } else {
                return;
            }
        }
        self.sender.measurements.stats.sacks += 1;
        self.take_window(ack + segment.window);
        self.pop_acked(ack);
    }

    /// Removes the units that `ack` covers at data level.
    pub(super) fn pop_acked(&mut self, ack: u64) {
        while let Some(unit) = self.sender.outstanding.board.pop_acked(ack) {
            if let MappingState::Arrived { by } = unit.state {
                let subflow = &mut self.sender.paths[by.index()];
                subflow.tx.held = subflow.tx.held.saturating_sub(unit.payload.len() as u64);
            }
        }
    }

    /// Reports that the send buffer has space again.
    pub(super) fn push_writable(&mut self) {
        if self.sender.outstanding.was_full && self.send_room() > 0 {
            self.sender.outstanding.was_full = false;
            self.push_event(Event::Writable);
        }
    }

    /// Records the end of the receive window as a data sequence number (exclusive). It never moves back
    /// (RFC 9293, 3.8.6), because segments may be reordered.
    pub(super) fn take_window(&mut self, edge: u64) {
        if edge <= self.sender.outstanding.edge {
            return;
        }
        self.sender.outstanding.edge = edge;
        // A probe of the closed window was refused, so it is retransmitted immediately.
        if let Some((path, piece, end)) =
            self.sender.outstanding.window_probe.filter(|(_, _, end)| *end <= edge)
        {
            debug_assert!(end > 0, "a probe has a byte");
            self.sender.outstanding.window_probe = None;
            let subflow = &mut self.sender.paths[path.index()];
            if subflow.end_transmission(piece) {
                subflow.sent.on_lost(piece);
            }
        }
    }

    /// The first block reports a duplicate (RFC 2883).
    fn on_duplicate_report(&mut self, path: PathId, segment: &Segment) {
        if segment.duplicate {
            let subflow = &mut self.sender.paths[path.index()];
            subflow.tx.tail.on_duplicate();
            subflow.tx.rack.on_spurious(subflow.tx.round);
        }
    }

    pub(super) fn settle(&mut self, now: Time, path: PathId, ackd: &SubflowAckd) {
        self.control.errors = 0;
        let most = self.sender.timer_most(path);
        let subflow = &mut self.sender.paths[path.index()];
        subflow.tx.counters.delivered_bytes += ackd.bytes + ackd.late_bytes;
        subflow.tx.loss.note_arrivals(ackd.chunks.min(64));
        if let Some((number, _)) = ackd.witness {
            subflow.tx.acked_to = subflow.tx.acked_to.max(number + 1);
        }
        if subflow.tx.acked_to > subflow.tx.round_ends {
            subflow.tx.begin_round();
        }
        let rate = measure(now, subflow, ackd);
        let source = self.sender.config.delay_source;
        let returned = subflow.tx.state.on_success();
        let in_recovery = subflow.in_recovery();
        if ackd.advanced {
            // RFC 6298, 5.3: restart the timer when new data is acknowledged.
            subflow.restart_timer(now, most);
            subflow.duplicates = 0;
        }
        let sample = AckSample {
            acked_bytes: ackd.bytes + ackd.late_bytes,
            in_flight_before: ackd.in_flight_before,
            advanced: ackd.advanced,
            in_recovery,
            flight_empty: subflow.tx.flights.is_empty(),
            rtt: ackd.round_trip(now),
            srtt: subflow.tx.rtt.srtt(),
            least_rtt: subflow.tx.rtt.base(),
            forward_queueing: subflow.as_ref().estimates(source).last_forward_queueing(),
            app_limited: ackd.newest.is_some_and(|(_, flight)| flight.snapshot.is_limited()),
            delivery: ackd.newest.as_ref().map_or_else(Delivery::default, |(number, flight)| {
                subflow.tx.delivery((*number, flight), true, rate)
            }),
            // No AccECN (RFC 9768).
            marked_bytes: 0,
        };
        if returned {
            self.on_path_returned(now, path);
        }
        let losses = self.sender.paths[path.index()].tx.losses;
        self.sender.congestion.on_ack(path, now, &sample);
        self.sender.manage_windows(now, path);
        if self.model.is_none() {
            self.find_losses(now, path, ackd, in_recovery);
            let delivered = sample.acked_bytes;
            self.sender.reduce_in_proportion(path, delivered, ackd.advanced, losses);
        }
    }

    /// Detects losses after an acknowledgement of new data.
    fn find_losses(&mut self, now: Time, path: PathId, ackd: &SubflowAckd, in_recovery: bool) {
        match self.config.reordering {
            Reordering::RackTlp => self.settle_by_time(now, path, ackd),
            _ if self.config.sack => self.sender.count_losses(now, path),
            _ => self.sender.on_partial_ack(now, path, ackd, in_recovery),
        }
    }

    /// Detects losses by time (RFC 8985) after an acknowledgement.
    fn settle_by_time(&mut self, now: Time, path: PathId, ackd: &SubflowAckd) {
        let subflow = &mut self.sender.paths[path.index()];
        subflow.tx.tail.on_activity(now);
        let repaired = subflow.tx.tail.on_acked(subflow.tx.acked_to);
        if ackd.late {
            subflow.tx.rack.on_late_arrival();
        }
        if let Some(first) = ackd.first_arrival {
            subflow.tx.rack.on_first_arrival(first);
        }
        if let Some((number, sent_at)) = ackd.witness {
            subflow.tx.rack.on_arrival(number, now.since(sent_at));
        }
        self.sender.find_lost_by_time(now, path);
        if repaired {
            self.sender.reduce(now, path);
        }
    }
}

/// Measures round trip and delivery rate, and updates the minimum delays. Returns the sample of the rate.
fn measure(now: Time, subflow: &mut Subflow, ackd: &SubflowAckd) -> Option<Rate> {
    let (_, flight) = ackd.newest?;
    if let Some(round_trip) = ackd.round_trip(now) {
        subflow.tx.rtt.sample(now, round_trip);
    }
    let sample = subflow.tx.rate.sample(now, flight.sent_at, &flight.snapshot);
    subflow.tx.note_ack(now, flight.sent_at);
    let (least, rate) = (subflow.tx.rtt.base(), subflow.tx.rate.rate());
    let explained = || Some(explained_queueing(least?, rate?, flight.bytes as u64));
    subflow.tx.rtt.floor_mut().reconsider(now, explained);
    subflow.tx.forward.floor_mut().reconsider(now, explained);
    sample
}

/// Whether the acknowledgement was sent when a segment arrived. An acknowledgement that was held back by
/// the delayed acknowledgement timer covers a single segment.
fn covers_several(subflow: &Subflow, segment: &Segment) -> bool {
    let covers_first = |(_, piece): (u64, &SentSegment)| piece.end() < segment.ack;
    subflow.sent.front().is_some_and(covers_first) || !segment.sacks.is_empty()
}

impl DataSender {
    /// Processes the acknowledgement number and the SACK blocks of a segment that arrived on `path`.
    pub(super) fn take_subflow_ack(
        &mut self,
        now: Time,
        path: PathId,
        segment: &Segment,
    ) -> SubflowAckd {
        let Self { paths, outstanding, .. } = self;
        let (subflow, board) = (&mut paths[path.index()], &mut outstanding.board);
        let mut ackd =
            SubflowAckd { in_flight_before: subflow.tx.in_flight(), ..SubflowAckd::default() };
        while let Some(piece) = subflow.sent.pop_acked(segment.ack) {
            ackd.advanced = true;
            let bytes = piece.payload.len() as u64;
            subflow.tx.unacknowledged = subflow.tx.unacknowledged.saturating_sub(bytes);
            take_piece(now, subflow, board, path, &piece, &mut ackd);
        }
        if !segment.sacks.is_empty() {
            // Moved out, because the rest of the subflow changes with each piece.
            let mut queue = core::mem::replace(&mut subflow.sent, SentQueue::new(0));
            for block in segment.sacks.iter().skip(usize::from(segment.duplicate)) {
                queue.take_block(*block, |piece| {
                    take_piece(now, subflow, board, path, piece, &mut ackd);
                });
            }
            subflow.sent = queue;
        }
        ackd
    }
}

/// Processes a piece that the peer reports as arrived, for the first time or again.
fn take_piece(
    now: Time,
    subflow: &mut Subflow,
    board: &mut DataBoard,
    path: PathId,
    piece: &SentSegment,
    ackd: &mut SubflowAckd,
) {
    let bytes = piece.payload.len() as u64;
    match piece.state {
        SegmentState::InFlight { number } => end_flight(now, subflow, number, ackd),
        SegmentState::Lost => on_late(ackd, bytes),
        SegmentState::Sacked => return,
    }
    if board.on_arrived(piece.unit, path) {
        subflow.tx.held += bytes;
    }
}

fn on_late(ackd: &mut SubflowAckd, bytes: u64) {
    ackd.late = true;
    ackd.late_bytes += bytes;
}

/// Processes the arrival of a transmission.
fn end_flight(now: Time, subflow: &mut Subflow, number: u64, ackd: &mut SubflowAckd) {
    let Some(flight) = subflow.tx.flights.end(number) else { return };
    subflow.tx.rate.on_delivered(now, flight.bytes as u64);
    ackd.bytes += flight.bytes as u64;
    ackd.chunks += 1;
    if !flight.again && ackd.first_arrival.is_none_or(|first| number < first) {
        ackd.first_arrival = Some(number);
    }
    // A retransmission sent at most half a round trip ago did not cause this acknowledgement. An earlier
    // transmission did, and nothing sent between the two is late.
    let since = now.since(flight.sent_at);
    let caused = !flight.again || subflow.tx.rtt.srtt().is_none_or(|srtt| since > srtt / 2);
    if caused && ackd.witness.is_none_or(|(witness, _)| number > witness) {
        ackd.witness = Some((number, flight.sent_at));
    }
    if ackd.oldest.is_none() && !flight.again {
        ackd.oldest = Some((number, flight));
    }
    if ackd.newest.is_none_or(|(newest, _)| number > newest) {
        ackd.newest = Some((number, flight));
    }
}
