//! Outgoing segments: set-up first, then what is owed to the peer, then what subflows send again,
//! then what goes to a second subflow, then new data.

use ropewalk_base::{PathId, Time};

use super::super::segment::{Segment, Stamps};
use super::board::Place;
use super::{Session, State};
use crate::congestion::CongestionControl;
use crate::departure::{Departure, PacketSize};
use crate::payload::Payload;
use crate::record::DecisionRecord;
use crate::recovery::Flight;
use crate::scheduler::{Action, Decision, Occasion, PathView, Reason, Schedule, SentReport, View};

impl Session {
    /// The next segment to send, made in `segment`, whatever that held; none when all is sent that
    /// may be sent now.
    pub fn poll_transmit_into(&mut self, now: Time, segment: &mut Segment) -> Option<Departure> {
        if let Some((path, next)) = self.control.pop_front() {
            *segment = next;
            return Some(self.departure(path));
        }
        if self.state != State::Established {
            return None;
        }
        if let Some(departure) = self.next_ack(now, segment) {
            return Some(departure);
        }
        if let Some(path) = self.next_ending(now, segment) {
            return Some(self.departure(path));
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
    fn departure(&self, path: PathId) -> Departure {
        let round = self.subflows[path.index()].tx.round;
        Departure { path, round, size: PacketSize::Usual, ect: false }
    }

    #[inline]
    pub(super) fn stamps(&self, now: Time, path: PathId) -> Option<Stamps> {
        let echo = self.subflows[path.index()].received.echo();
        // The model's clock ticks in milliseconds.
        let grain = if self.model.is_some() { 1_000_000 } else { 1 };
        let value = now.as_nanos() / grain * grain;
        // 0 says that there is none.
        self.config.timestamps.then(|| Stamps { value: value.max(1), echo })
    }

    #[inline]
    fn next_ack(&mut self, now: Time, segment: &mut Segment) -> Option<Departure> {
        let due = |subflow: &super::Subflow| subflow.is_open() && subflow.received.is_due();
        let path = PathId::from_index(self.subflows.iter().position(due)?);
        segment.clear();
        self.fill_ack(now, path, segment);
        let numbered = self.config.numbers();
        let room = Segment::sack_room(self.config.timestamps, self.multipath, numbered);
        let room = if self.config.sack { room } else { 0 };
        let received = &mut self.subflows[path.index()].received;
        if numbered {
            let (order, disordered) = received.order_of(segment.ack);
            (segment.order, segment.disordered) = (Some(order), disordered);
        }
        segment.duplicate = received.on_acknowledged(segment.ack, room, &mut segment.sacks);
        Some(self.departure(path))
    }

    fn next_data(&mut self, now: Time, segment: &mut Segment) -> Option<Departure> {
        if self.has_nothing_to_send() {
            self.accounts.set_blocked(now, false);
            return None;
        }
        if !self.drained {
            self.refresh_views(now);
            self.drained = true;
        }
        if let Some(departure) = self.next_again(now, segment) {
            return Some(departure);
        }
        if let Some((path, unit)) = self.copies.pop()
            && self.board.get(unit).is_some_and(|u| matches!(u.place, Place::Given { .. }))
        {
            return Some(self.send_unit(now, path, unit, segment));
        }
        let idle = self.board.holes().is_empty() && self.queue.is_empty();
        let mut sent = self.next_reinjected(now, segment);
        if sent.is_none() && !idle {
            sent = self.next_new(now, segment);
        }
        if sent.is_some() || self.scheduler.is_thinking() {
            return sent;
        }
        if self.end_tests() {
            return self.next_again(now, segment);
        }
        self.finish_drain(now, idle);
        None
    }

    /// The end that only receives is asked after every segment, too.
    #[inline]
    fn has_nothing_to_send(&self) -> bool {
        self.queue.is_empty()
            && self.board.is_empty()
            && self.copies.is_empty()
            && self.subflows.iter().all(|subflow| subflow.sent.front().is_none())
    }

    /// What a subflow sends again: the probe of its tail, or the oldest that it lost.
    fn next_again(&mut self, now: Time, segment: &mut Segment) -> Option<Departure> {
        for path in self.ids() {
            let subflow = &mut self.subflows[path.index()];
            if subflow.probe.is_none() && subflow.sent.lost().is_empty() || !subflow.is_open() {
                continue;
            }
            let cwnd = self.congestion.window(path);
            let subflow = &mut self.subflows[path.index()];
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

    /// The oldest unit that another subflow is to carry as well, on the quickest that has room.
    fn next_reinjected(&mut self, now: Time, segment: &mut Segment) -> Option<Departure> {
        let unit = self.board.reinject().first()?;
        let Place::Given { to, .. } = self.board.get(unit)?.place else { return None };
        let other = self.views.iter().filter(|v| v.is_open() && v.id != to);
        let path = other.min_by_key(|v| v.forward_delay)?.id;
        self.record(now, Decision::send(path, 0, Reason::RetransmissionPolicy), Some(unit));
        Some(self.send_unit(now, path, unit, segment))
    }

    /// New data, as the scheduler says.
    fn next_new(&mut self, now: Time, segment: &mut Segment) -> Option<Departure> {
        let view = View { paths: &self.views, ..self.outlook(now, Occasion::NewData) };
        let decision = self.scheduler.decide(&view);
        if self.scheduler.is_thinking() || !self.scheduler.may(&view, &decision) {
            return None;
        }
        let stuck = decision.action == Action::Blocked && view.takeable() > 0;
        if stuck && self.nothing_in_flight() {
            // No acknowledgement and no timer will come: a scheduler may not wait for ever.
            let quickest = self.views.iter().filter(|v| v.usable).min_by_key(|v| v.forward_delay);
            let path = quickest?.id;
            return self.act(now, &Decision::send(path, 0, Reason::NothingOnTheWay), segment);
        }
        self.act(now, &decision, segment)
    }

    fn act(&mut self, now: Time, decision: &Decision, segment: &mut Segment) -> Option<Departure> {
        let (path, position) = match decision.action {
            Action::Send { path, position } => (path, position),
            Action::Copies { paths, position } => (paths.iter().next()?, position),
            Action::Wait { until } => {
                self.wait_until = Some(until);
                self.record(now, *decision, None);
                return self.unblock(now, segment);
            }
            Action::Blocked => {
                self.record(now, *decision, None);
                return self.unblock(now, segment);
            }
        };
        let unit = self.unit_at(position)?;
        self.record(now, *decision, Some(unit));
        let bytes = self.board.get(unit)?.payload.len() as u64;
        if let Action::Copies { paths, .. } = decision.action {
            for copy in paths.iter().skip(1) {
                self.copies.push((copy, unit));
                self.scheduler.on_sent(&SentReport { path: copy, position, sequence: unit, bytes });
            }
        }
        self.scheduler.on_sent(&SentReport { path, position, sequence: unit, bytes });
        self.sendable_left = self.sendable_left.saturating_sub(1);
        Some(self.send_unit(now, path, unit, segment))
    }

    /// The unit at a position of the unassigned queue; numbers all before it.
    fn unit_at(&mut self, position: u64) -> Option<u64> {
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

    #[inline]
    fn next_payload(&mut self) -> Option<Payload> {
        (!self.queue.is_empty()).then(|| self.queue.take(self.segment_limit))
    }

    /// Gives `unit` to the subflow on `path` and sends it.
    pub(super) fn send_unit(
        &mut self,
        now: Time,
        path: PathId,
        unit: u64,
        segment: &mut Segment,
    ) -> Departure {
        let subflow = &mut self.subflows[path.index()];
        let number = subflow.tx.flights.next_number();
        let piece = subflow.sent.next_piece();
        self.board.on_given(now, unit, path, piece);
        if let Some(record) = self.board.get(unit) {
            let (dsn, payload) = (record.dsn, record.payload.clone());
            subflow.tx.counters.retransmitted += u64::from(record.given > 1);
            subflow.sent.push(unit, dsn, payload, record.first_sent, number);
        }
        self.launch(now, path, piece, false, segment)
    }

    /// Sends a piece of a subflow's queue once more.
    fn send_piece(
        &mut self,
        now: Time,
        path: PathId,
        piece: u64,
        segment: &mut Segment,
    ) -> Departure {
        let subflow = &mut self.subflows[path.index()];
        let number = subflow.tx.flights.next_number();
        subflow.end_transmission(piece);
        subflow.sent.on_sent_again(piece, number);
        if let Some(mapped) = subflow.sent.get(piece) {
            subflow.undo.on_retransmission(now, mapped.seq);
        }
        subflow.tx.counters.retransmitted += 1;
        self.launch(now, path, piece, true, segment)
    }

    /// Books a transmission and makes its segment.
    fn launch(
        &mut self,
        now: Time,
        path: PathId,
        piece: u64,
        again: bool,
        segment: &mut Segment,
    ) -> Departure {
        segment.clear();
        self.fill_ack(now, path, segment);
        let most = self.timer_most(path);
        let subflow = &mut self.subflows[path.index()];
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
        let end = segment.dsn + bytes as u64;
        if end > self.edge {
            self.shut_probe = Some((path, piece, end));
        }
        let idle = subflow.tx.flights.is_empty();
        let snapshot = subflow.tx.rate.on_sent(now, idle, subflow.tx.limited);
        subflow.tx.flights.push(Flight::new(piece, bytes, now, snapshot, again));
        subflow.tx.counters.sent_packets += 1;
        subflow.tx.counters.sent_chunks += 1;
        subflow.tx.last_sent_at = now;
        subflow.tx.tail.on_activity(now);
        if subflow.timer.is_none() {
            subflow.restart_timer(now, most);
        }
        let in_flight = subflow.tx.in_flight();
        if let Some(view) = self.views.get_mut(path.index()) {
            view.in_flight = in_flight;
        }
        self.departure(path)
    }

    /// The window is shut by the oldest unit. If it is on its way on a path that takes longer than
    /// an open one would, or is overdue, it goes again on the open path that delivers it soonest.
    fn unblock(&mut self, now: Time, segment: &mut Segment) -> Option<Departure> {
        if self.config.helpers.any() && self.sendable_left == 0 {
            let sent = self.help(now, segment);
            if sent.is_some() {
                return sent;
            }
        }
        let asked = self.scheduler.resends_when_blocked();
        if !(asked || self.guard.is_on()) || self.sendable_left > 0 {
            return None;
        }
        let (unit, record) = self.board.front()?;
        let Place::Given { to, piece } = record.place else { return None };
        if record.given > 1 {
            return None;
        }
        let subflow = &self.subflows[to.index()];
        let super::super::subflow::sent::Standing::InFlight { number } =
            subflow.sent.get(piece)?.standing
        else {
            return None;
        };
        let sent_at = subflow.tx.flights.sent_at(number)?;
        let patience = subflow.tx.rtt.srtt()? + subflow.tx.rtt.rttvar() * 4 + self.config.ack_delay;
        let overdue = now >= sent_at + patience;
        let due = sent_at + self.views[to.index()].forward_delay?;
        let sooner = |v: &&PathView| {
            v.id != to && v.is_open() && (overdue || v.forward_delay.is_some_and(|d| now + d < due))
        };
        let Some(path) = self.views.iter().filter(sooner).min_by_key(|v| v.forward_delay) else {
            if !overdue {
                let ask = sent_at + patience;
                self.wait_until = Some(self.wait_until.map_or(ask, |at| at.min(ask)));
            }
            return None;
        };
        let path = path.id;
        self.accounts.stats.unblocked += 1;
        self.record(now, Decision::send(path, 0, Reason::Unblock), Some(unit));
        Some(self.send_unit(now, path, unit, segment))
    }

    fn finish_drain(&mut self, now: Time, idle: bool) {
        let shut = !idle && self.sendable_left == 0;
        let mut open = false;
        for (view, subflow) in self.views.iter().zip(&mut self.subflows) {
            let has_room = view.usable && view.in_flight < view.window;
            subflow.tx.limited = has_room;
            open |= has_room;
        }
        self.accounts.set_blocked(now, shut && open);
    }

    #[inline]
    pub(super) fn record(&mut self, now: Time, decision: Decision, unit: Option<u64>) {
        if self.config.record_decisions {
            self.records.push(DecisionRecord {
                at: now,
                chunk: unit,
                action: decision.action,
                reason: decision.reason,
                sendable: self.sendable_left,
                paths: self.views.iter().map(Into::into).collect(),
            });
        }
    }
}
