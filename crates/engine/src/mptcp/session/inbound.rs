//! Incoming segments and their data.

use ropewalk_base::{PathId, Time};

use super::super::config::SubflowAck;
use super::super::segment::Segment;
use super::super::subflow::Phase;
use super::super::subflow::receiver::{AckRule, Position};
use super::{Event, Session, State};
use crate::payload::Payload;
use crate::receive::Arrival;

/// Part of the receive buffer above which an opened window is acknowledged immediately. In simulations of
/// two paths and a buffer of 45 kB, a sixteenth gives 1 to 4 % more goodput than no such acknowledgement;
/// with 1 MB over Wi-Fi, no such acknowledgement gives 8 % more.
const MUCH: u64 = 16;

/// Limit of out-of-order records of one kind, and a minimum for any receive buffer.
const NOTES_LIMIT: u64 = 4096;
const NOTES_LEAST: usize = 64;

impl Session {
    /// Handles a segment that arrived on `path`. Its contents are moved out, and the segment can be
    /// reused.
    pub fn handle_in_place(&mut self, now: Time, path: PathId, segment: &mut Segment) {
        if path.index() >= self.sender.paths.len() || matches!(self.state, State::Ended(_)) {
            return;
        }
        self.sender.invalidate_views();
        // The scheduler decides again after an arrival, but an arrival does not start a session early.
        if self.state != State::Closed {
            self.sender.wait_until = None;
        }
        if segment.syn {
            self.on_syn(now, path, segment);
            return;
        }
        match self.sender.paths[path.index()].phase {
            // Ignore segments before the handshake.
            Phase::Closed | Phase::SynSent(_) | Phase::Ended => return,
            Phase::SynReceived(_) if !segment.acks => return,
            Phase::SynReceived(_) | Phase::Open => {}
        }
        if segment.rst {
            self.on_reset(path, segment);
            return;
        }
        self.on_third_step(now, path, segment);
        self.on_acks(now, path, segment);
        if !segment.payload.is_empty() {
            self.on_data(now, path, segment);
            if self.receiver.linux.is_some() {
                self.acknowledge_unread(now, path);
            }
        }
        if segment.data_fin {
            self.on_data_fin(path, segment.dsn);
        }
    }

    fn on_data(&mut self, now: Time, path: PathId, segment: &mut Segment) {
        let payload = core::mem::replace(&mut segment.payload, Payload::Length(0));
        let length = payload.len();
        // In plain TCP, data sequence numbers are those of the only subflow.
        let dsn =
            if self.handshake.multipath { segment.dsn } else { segment.seq.saturating_sub(1) };
        let before = self.receiver.buffer.next();
        let arrival = match &self.receiver.linux {
            Some(linux) if linux.refuses(dsn + length as u64) => Arrival::Refused,
            _ => self.receiver.buffer.insert(now, dsn, payload, segment.first_sent),
        };
        if self.model.is_some() {
            self.on_model_data(now, path, segment, dsn, length);
            return;
        }
        let rule = AckRule {
            every: self.config.ack_every,
            delay: self.config.ack_delay,
            quick: self.config.quick_acks,
            pause: self.sender.paths[path.index()].tx.rtt.rto(),
            ranges: self.notes_limit(128, self.sender.paths.len()),
        };
        let received = &mut self.sender.paths[path.index()].received;
        if arrival == Arrival::Refused {
            // RFC 9293, 3.10.7.4: data beyond the window is not accepted, and an acknowledgement repeats the
            // window.
            received.make_due();
            return;
        }
        let stamp = segment.stamps.map(|stamps| stamps.value);
        if self.config.subflow_ack == SubflowAck::DataGated {
            self.on_gated_data(now, path, (segment.seq, dsn, length), rule);
        } else {
            let position = received.on_data(now, segment.seq, length, stamp, rule);
            if let Some(linux) = &mut self.receiver.linux {
                let echo = segment.stamps.map_or(0, |stamps| stamps.echo);
                let in_order = position == Position::Next;
                if linux.on_segment(now, path, length, in_order, echo) && self.config.quick_acks > 0
                {
                    // tcp_grow_window: a growing window ends the delay of acknowledgements.
                    received.make_due();
                }
            }
        }
        let received = &mut self.sender.paths[path.index()].received;
        if let Some(order) = segment.order {
            received.on_order(order);
        }
        let released = self.receiver.buffer.next() - before;
        if released > 0 {
            self.push_readable();
        }
        let announces = self.handshake.multipath && self.receiver.linux.is_none();
        if released > length as u64 && announces {
            self.on_hole_filled();
        }
    }

    /// Limit of out-of-order records that represent `bytes` bytes of the receive buffer in each of
    /// `parts` parts. Segments of the usual lengths need far fewer.
    fn notes_limit(&self, bytes: u64, parts: usize) -> usize {
        let buffer = self.config.receive_buffer.unwrap_or(u64::MAX / 4);
        (buffer / bytes / parts as u64).min(NOTES_LIMIT) as usize + NOTES_LEAST
    }

    /// A gap was filled and the window opens. The fastest return path should report this, but paths fill
    /// each other's gaps all the time. If the window is many segments long, the part that waits for the
    /// usual acknowledgements is small, and more acknowledgements would only take capacity from the data.
    fn on_hole_filled(&mut self) {
        let Some(buffer) = self.config.receive_buffer else { return };
        let open = self.sender.paths.iter().filter(|subflow| subflow.is_open()).count() as u64;
        let waits =
            open * self.config.ack_every as u64 * self.sender.outstanding.segment_limit as u64;
        if waits > buffer / MUCH {
            let open = self.sender.paths.iter_mut().filter(|subflow| subflow.is_open());
            open.for_each(|subflow| subflow.received.make_due());
        }
    }

    /// Acknowledges segments that are now in order at data level, on their subflows.
    fn on_gated_data(
        &mut self,
        now: Time,
        path: PathId,
        (seq, dsn, length): (u64, u64, u32),
        rule: AckRule,
    ) {
        let next = self.receiver.buffer.next();
        let in_turn = dsn < next;
        let received = &mut self.sender.paths[path.index()].received;
        received.on_gated(now, seq, length, in_turn, rule);
        if !in_turn {
            let length = length as u64;
            // A segment beyond the limit stays unacknowledged on its subflow, and is retransmitted.
            if self.receiver.reorder_buffer.len() < self.notes_limit(512, 1)
                || self.receiver.reorder_buffer.has(dsn)
            {
                self.receiver.reorder_buffer.hold(dsn, dsn + length, path, seq + length);
            }
        }
        while let Some((path, end)) = self.receiver.reorder_buffer.release(next) {
            let received = &mut self.sender.paths[path.index()].received;
            received.accept_to(end);
            received.make_due();
        }
    }

    pub(super) fn push_readable(&mut self) {
        if self.control.events.back() != Some(&Event::Readable) {
            self.push_event(Event::Readable);
        }
    }

    /// The data-level acknowledgement; the end of the peer's data takes a number.
    pub(super) const fn data_ack(&self) -> u64 {
        self.receiver.buffer.next() + self.control.ending.by_peer as u64
    }

    /// A segment without data that acknowledges the data received on `path`.
    pub(super) fn plain_ack(&mut self, now: Time, path: PathId) -> Segment {
        let mut segment = Segment::default();
        self.fill_ack(now, path, &mut segment);
        segment
    }

    /// Sets acknowledgement, window and timestamps of a segment on `path`.
    #[inline]
    pub(super) fn fill_ack(&mut self, now: Time, path: PathId, segment: &mut Segment) {
        segment.window = self.offered_window(path);
        let subflow = &self.sender.paths[path.index()];
        segment.acks = true;
        segment.seq = subflow.sent.next_seq();
        segment.ack = subflow.received.next();
        segment.data_ack = self.handshake.multipath.then_some(self.data_ack());
        segment.stamps = self.stamps(now, path);
    }

    /// The window as its field can express it (RFC 7323, 2.3): the shift is the smallest for which 16
    /// bits can hold the entire buffer.
    fn offered_window(&mut self, path: PathId) -> u64 {
        if self.receiver.linux.is_some() {
            return self.linux_window(path);
        }
        let whole = self.config.receive_buffer.unwrap_or(u64::MAX / 4);
        let shift = (64 - (whole >> 16).leading_zeros()).min(14);
        self.receiver.buffer.window() >> shift << shift
    }
}
