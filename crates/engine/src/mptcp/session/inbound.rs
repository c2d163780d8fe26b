//! Incoming segments: whose they are, and the data they carry.

use ropewalk_base::{PathId, Time};

use super::super::config::SubflowAck;
use super::super::segment::Segment;
use super::super::subflow::Phase;
use super::super::subflow::receiver::AckRule;
use super::{Event, Session, State};
use crate::payload::Payload;
use crate::receive::Arrival;

/// So large a part of the receive buffer is worth an acknowledgement of its own. In simulations of two
/// paths in 45 kB a sixteenth gives 1 to 4 % more goodput than none; with 1 MB over the air it is none that
/// gives 8 % more.
const MUCH: u64 = 16;

/// Most notes of one kind, and so many whatever the receive buffer.
const NOTES_LIMIT: u64 = 4096;
const NOTES_LEAST: usize = 64;

impl Session {
    /// A segment came on `path`. What it carries is taken out of it; it can be used again.
    pub fn handle_in_place(&mut self, now: Time, path: PathId, segment: &mut Segment) {
        if path.index() >= self.subflows.len() || matches!(self.state, State::Ended(_)) {
            return;
        }
        self.sender.drained = false;
        // What comes is a reason to ask the scheduler again, but none not to start.
        if self.state != State::Closed {
            self.sender.wait_until = None;
        }
        if segment.syn {
            self.on_syn(now, path, segment);
            return;
        }
        match self.subflows[path.index()].phase {
            // Before anything is known of the peer nothing of it is believed.
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
        }
        if segment.data_fin {
            self.on_data_fin(path, segment.dsn);
        }
    }

    fn on_data(&mut self, now: Time, path: PathId, segment: &mut Segment) {
        let payload = core::mem::replace(&mut segment.payload, Payload::Length(0));
        let length = payload.len();
        // Without Multipath TCP the session's numbers are those of its only subflow.
        let dsn = if self.multipath { segment.dsn } else { segment.seq.saturating_sub(1) };
        let before = self.buffer.next();
        let arrival = self.buffer.insert(now, dsn, payload, segment.first_sent);
        if self.model.is_some() {
            self.on_model_data(now, path, segment, dsn, length);
            return;
        }
        let rule = AckRule {
            every: self.config.ack_every,
            delay: self.config.ack_delay,
            ranges: self.notes_limit(128, self.subflows.len()),
        };
        let received = &mut self.subflows[path.index()].received;
        if arrival == Arrival::Refused {
            // Beyond the window: not acknowledged, and the window told again (RFC 9293, 3.10.7.4).
            received.make_due();
            return;
        }
        let stamp = segment.stamps.map(|stamps| stamps.value);
        if self.config.subflow_ack == SubflowAck::DataGated {
            self.on_gated_data(now, path, (segment.seq, dsn, length), rule);
        } else {
            received.on_data(now, segment.seq, length, stamp, rule);
        }
        let received = &mut self.subflows[path.index()].received;
        if let Some(order) = segment.order {
            received.on_order(order);
        }
        let released = self.buffer.next() - before;
        if released > 0 {
            self.push_readable();
        }
        if released > length as u64 && self.multipath {
            self.on_hole_filled();
        }
    }

    /// Most notes of what came out of order, of which each stands for `bytes` bytes of the receive buffer in each of
    /// `parts` parts: far more than segments of the usual lengths need.
    fn notes_limit(&self, bytes: u64, parts: usize) -> usize {
        let buffer = self.config.receive_buffer.unwrap_or(u64::MAX / 4);
        (buffer / bytes / parts as u64).min(NOTES_LIMIT) as usize + NOTES_LEAST
    }

    /// A hole was filled: the window opens, and the quickest way back should tell. But paths fill each other's holes all
    /// the time: where the window is many segments, what waits for the usual acknowledgements is little
    /// of it, and more of them would only take the air and the links that data needs.
    fn on_hole_filled(&mut self) {
        let Some(buffer) = self.config.receive_buffer else { return };
        let open = self.subflows.iter().filter(|subflow| subflow.is_open()).count() as u64;
        let waits = open * self.config.ack_every as u64 * self.outstanding.segment_limit as u64;
        if waits > buffer / MUCH {
            let open = self.subflows.iter_mut().filter(|subflow| subflow.is_open());
            open.for_each(|subflow| subflow.received.make_due());
        }
    }

    /// Acknowledges what the data level lets pass, on whatever subflow it came.
    fn on_gated_data(
        &mut self,
        now: Time,
        path: PathId,
        (seq, dsn, length): (u64, u64, u32),
        rule: AckRule,
    ) {
        let next = self.buffer.next();
        let in_turn = dsn < next;
        let received = &mut self.subflows[path.index()].received;
        received.on_gated(now, seq, length, in_turn, rule);
        if !in_turn {
            let length = length as u64;
            // A segment beyond the limit stays unacknowledged on its subflow, and comes again.
            if self.gate.len() < self.notes_limit(512, 1) || self.gate.has(dsn) {
                self.gate.hold(dsn, dsn + length, path, seq + length);
            }
        }
        while let Some((path, end)) = self.gate.release(next) {
            let received = &mut self.subflows[path.index()].received;
            received.accept_to(end);
            received.make_due();
        }
    }

    pub(super) fn push_readable(&mut self) {
        if self.events.back() != Some(&Event::Readable) {
            self.push_event(Event::Readable);
        }
    }

    /// The data-level acknowledgement; the end of the peer's data takes a number.
    pub(super) const fn data_ack(&self) -> u64 {
        self.buffer.next() + self.ending.by_peer as u64
    }

    /// A segment without data that acknowledges what came on `path`.
    pub(super) fn plain_ack(&self, now: Time, path: PathId) -> Segment {
        let mut segment = Segment::default();
        self.fill_ack(now, path, &mut segment);
        segment
    }

    /// Acknowledgement, window and timestamps of a segment on `path`.
    #[inline]
    pub(super) fn fill_ack(&self, now: Time, path: PathId, segment: &mut Segment) {
        let subflow = &self.subflows[path.index()];
        segment.acks = true;
        segment.seq = subflow.sent.next_seq();
        segment.ack = subflow.received.next();
        segment.window = self.offered_window();
        segment.data_ack = self.multipath.then_some(self.data_ack());
        segment.stamps = self.stamps(now, path);
    }

    /// The window as its field can say it (RFC 7323, 2.3): the shift is the least with which 16 bits
    /// hold the whole buffer.
    fn offered_window(&self) -> u64 {
        let whole = self.config.receive_buffer.unwrap_or(u64::MAX / 4);
        let shift = (64 - (whole >> 16).leading_zeros()).min(14);
        self.buffer.window() >> shift << shift
    }
}
