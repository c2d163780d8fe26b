//! Outgoing packets: control first, then what is owed to the peer, then lost data, then new data
//! (RFC 9260, 6.1 and 6.10).

use ropewalk_base::{PathId, Serial32, Time};
use smallvec::SmallVec;

use super::super::chunk::{Chunk, DataFlags, DelayStamp};
use super::super::packet::Packet;
use super::{Association, Transmit};
use crate::path::PathStatus;
use crate::record::DecisionRecord;
use crate::recovery::{Flight, LossDetection, RecordState};
use crate::scheduler::{
    Action, Decision, DelaySource, Occasion, Reason, RetransmissionPolicy, Schedule, SentReport,
};

impl Association {
    /// The next packet to send; none when all is sent that may be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if !self.control.is_empty() {
            return self.next_control();
        }
        if self.inbound.due_now && self.state.is_up() {
            return Some(self.sack_packet());
        }
        if self.state.sends_data() {
            return self.next_data(now);
        }
        None
    }

    /// Control chunks that go to one place travel together; INIT and INIT ACK travel alone
    /// (RFC 9260, 6.10).
    fn next_control(&mut self) -> Option<Transmit> {
        let (path, tag, first) = self.control.pop_front()?;
        let mut room = self.packet_room(path).saturating_sub(first.wire_len());
        let mut packet = Packet::of(tag, first);
        let alone = |chunk: &Chunk| matches!(chunk, Chunk::Init(_) | Chunk::InitAck(_));
        if !alone(&packet.chunks[0]) {
            while let Some((next_path, next_tag, chunk)) = self.control.front() {
                let size = chunk.wire_len();
                if *next_path != path || *next_tag != tag || alone(chunk) || size > room {
                    break;
                }
                room -= size;
                packet.chunks.extend(self.control.pop_front().map(|(_, _, chunk)| chunk));
            }
        }
        Some(self.transmit(path, packet))
    }

    fn sack_packet(&mut self) -> Transmit {
        let mut path = self.inbound.path;
        if self.paths[path.index()].state.status() == PathStatus::Inactive {
            path = self.control_path();
        }
        let (sack, echo) = self.sack_chunks(self.packet_room(path));
        let mut packet = Packet::of(self.peer_tag, sack);
        packet.echo = echo;
        self.transmit(path, packet)
    }

    fn transmit(&self, path: PathId, packet: Packet) -> Transmit {
        Transmit { path, packet, round: self.paths[path.index()].round }
    }

    /// Bytes for chunks in a packet on `path`.
    #[inline]
    fn packet_room(&self, path: PathId) -> u32 {
        self.paths[path.index()].config.mtu - self.config.lower_header - Packet::HEADER
    }

    #[inline]
    fn next_data(&mut self, now: Time) -> Option<Transmit> {
        if let Some((path, tsn)) = self.copies.pop() {
            // Already acknowledged, or given up and sent again, in the meantime?
            if self.board.get(tsn).is_some_and(|r| matches!(r.state, RecordState::InFlight { .. }))
            {
                return Some(self.send_chunk(now, path, tsn));
            }
        }
        let idle = self.board.holes().is_empty() && self.queue.is_empty();
        if idle && self.board.lost().is_empty() {
            self.accounts.set_blocked(now, false);
            return None;
        }
        if !self.drained {
            self.refresh_views(now);
            self.drained = true;
        }
        let sent = self.next_lost(now).or_else(|| if idle { None } else { self.next_new(now) });
        if sent.is_none() {
            self.finish_drain(now, idle);
        }
        sent
    }

    /// The oldest lost chunk, where the policy says.
    fn next_lost(&mut self, now: Time) -> Option<Transmit> {
        let tsn = self.board.lost().first()?;
        let RecordState::Lost { on, by_timer } = self.board.record(tsn).state else { return None };
        let view = self.view(now, Occasion::Retransmission { lost_on: on });
        let credit = self.paths[on.index()].fast_credit;
        // `same` would wait for ever for a path to which the guard leaves no window.
        let policy = match self.config.retransmission {
            RetransmissionPolicy::Same if self.views[on.index()].window == 0 => {
                RetransmissionPolicy::Asap
            }
            policy => policy,
        };
        let mut rng = self.rng.clone();
        // With nothing on its way no acknowledgement will ever open a window.
        let choice = if credit || self.nothing_in_flight() {
            policy.choose(&view, &mut rng)
        } else {
            policy.choose_open(&view, &mut rng)
        };
        self.rng = rng;
        let path = self.elsewhere(on, by_timer).or(choice)?;
        self.paths[on.index()].fast_credit = false;
        self.record(now, Decision::send(path, 0, Reason::RetransmissionPolicy), Some(tsn));
        let sent = self.send_chunk(now, path, tsn);
        // A probe of a shut window may go only while nothing else is on its way.
        self.sendable_left = self.sendable();
        Some(sent)
    }

    /// Plain SCTP sends what a timer gave up on another active path (RFC 9260, 6.4.1).
    fn elsewhere(&self, on: PathId, by_timer: bool) -> Option<PathId> {
        if self.config.cmt.concurrent || !by_timer {
            return None;
        }
        let other = |i: &usize| {
            let path = &self.paths[*i];
            let id = PathId::from_index(*i);
            id != on
                && path.state.status() == PathStatus::Active
                && path.flights.bytes() < self.cwnd(id)
        };
        (0..self.paths.len()).find(other).map(PathId::from_index)
    }

    /// New data, as the scheduler says.
    #[inline]
    fn next_new(&mut self, now: Time) -> Option<Transmit> {
        if self.sendable_left == 0 {
            // Chunks smaller than full ones may have left more room than was counted.
            self.sendable_left = self.sendable();
        }
        let mut scheduler = std::mem::take(&mut self.scheduler);
        let view = self.view(now, Occasion::NewData);
        let decision = scheduler.decide(&view);
        let legal = crate::scheduler::check(&view, &decision).is_ok();
        debug_assert!(legal, "illegal decision {decision:?}");
        let sent = if legal { self.act(now, &mut scheduler, &decision) } else { None };
        self.scheduler = scheduler;
        sent
    }

    #[inline]
    fn act(
        &mut self,
        now: Time,
        scheduler: &mut crate::scheduler::Scheduler,
        decision: &Decision,
    ) -> Option<Transmit> {
        let (path, position) = match decision.action {
            Action::Send { path, position } => (path, position),
            Action::Copies { paths, position } => (paths.iter().next()?, position),
            Action::Wait { until } => {
                self.wait_until = Some(until);
                self.record(now, *decision, None);
                return self.unblock(now, scheduler.resends_when_blocked());
            }
            Action::Blocked => {
                self.record(now, *decision, None);
                return self.unblock(now, scheduler.resends_when_blocked());
            }
        };
        let tsn = self.chunk_at(position)?;
        self.record(now, *decision, Some(tsn));
        let bytes = self.board.record(tsn).bytes as u64;
        if let Action::Copies { paths, .. } = decision.action {
            for copy in paths.iter().skip(1) {
                self.copies.push((copy, tsn));
                scheduler.on_sent(&SentReport { path: copy, position, bytes });
            }
        }
        scheduler.on_sent(&SentReport { path, position, bytes });
        Some(self.send_chunk(now, path, tsn))
    }

    /// The TSN at a position of the unassigned queue; gives TSNs to all chunks before it.
    #[inline]
    fn chunk_at(&mut self, position: u64) -> Option<u64> {
        let holes = self.board.holes().len();
        if position < holes {
            return self.board.holes().nth(position);
        }
        let mut tsn = None;
        for _ in holes..=position {
            let mut chunk = self.queue.next_chunk()?;
            chunk.tsn = Serial32::wrap(self.board.next_tsn());
            tsn = Some(self.board.assign(chunk));
        }
        tsn
    }

    /// Sends `tsn` on `path`, with further small chunks beside it where they fit.
    #[inline]
    fn send_chunk(&mut self, now: Time, path: PathId, tsn: u64) -> Transmit {
        let mut chunks = SmallVec::new();
        let mut room = self.packet_room(path);
        let stamp = (self.config.delay_source == DelaySource::Timestamp)
            .then(|| DelayStamp { sent: now.as_nanos() });
        if stamp.is_some() {
            room -= DelayStamp::WIRE_LEN;
        }
        let first = self.board.record(tsn);
        room -= first.bytes;
        let lost_on = match first.state {
            RecordState::Lost { on, .. } => Some(on),
            _ => None,
        };
        chunks.push(self.launch(now, path, tsn));
        if let Some(on) = lost_on {
            self.bundle_lost(now, path, on, &mut room, &mut chunks);
        }
        self.bundle(now, path, &mut room, &mut chunks);
        let state = &mut self.paths[path.index()];
        state.counters.sent_packets += 1;
        state.last_sent_at = now;
        state.tail.on_activity(now);
        state.burst_left = state.burst_left.saturating_sub(1);
        if state.t3.is_none() {
            state.t3 = Some(now + state.rtt.rto());
        }
        let (in_flight, burst) = (state.flights.bytes(), state.burst_left as u64);
        let full = self.full_chunk();
        if let Some(view) = self.views.get_mut(path.index()) {
            view.in_flight = in_flight;
            view.burst_room = burst * full;
        }
        self.transmit(path, Packet { tag: self.peer_tag, stamp, echo: None, chunks })
    }

    /// Adds the next lost chunks while they fit (RFC 9260, 6.3.3 E3), if they were lost on the same
    /// path and are thus to go where the first one goes.
    fn bundle_lost(
        &mut self,
        now: Time,
        path: PathId,
        on: PathId,
        room: &mut u32,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) {
        while let Some(tsn) = self.board.lost().first() {
            let record = self.board.record(tsn);
            let same = matches!(record.state, RecordState::Lost { on: other, .. } if other == on);
            let open = self.paths[path.index()].flights.bytes() < self.cwnd(path);
            if !same || !open || record.bytes > *room {
                return;
            }
            *room -= record.bytes;
            chunks.push(self.launch(now, path, tsn));
        }
    }

    /// Adds chunks from the head of the queue while they fit (RFC 9260, 6.10), if the path may
    /// take from there.
    #[inline]
    fn bundle(
        &mut self,
        now: Time,
        path: PathId,
        room: &mut u32,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) {
        const LEAST: u32 = super::super::chunk::Data::HEADER + 4;
        while *room >= LEAST && self.board.holes().is_empty() && self.board.lost().is_empty() {
            let Some(next) = self.queue.next_bytes().filter(|next| next <= room) else { return };
            let open = self.views.get(path.index()).is_some_and(|v| {
                v.usable
                    && v.earliest_position == 0
                    && self.paths[path.index()].flights.bytes() < v.window
            });
            if !open || self.board.span() + next as u64 > self.offered {
                return;
            }
            let Some(tsn) = self.chunk_at(0) else { return };
            *room -= next;
            chunks.push(self.launch(now, path, tsn));
        }
    }

    /// Books one chunk as on its way.
    #[inline]
    fn launch(&mut self, now: Time, path: PathId, tsn: u64) -> Chunk {
        let state = &mut self.paths[path.index()];
        let record = self.board.record(tsn);
        let (bytes, again) = (record.bytes, record.transmissions > 0);
        if !again {
            self.sendable_left = self.sendable_left.saturating_sub(1);
        }
        let snapshot = state.rate.on_sent(now, state.flights.is_empty(), state.limited);
        let number = state.flights.push(Flight::new(tsn, bytes, now, snapshot, again));
        state.counters.sent_chunks += 1;
        state.counters.retransmitted += again as u64;
        self.board.on_sent(now, tsn, path, number);
        let mut data = self.board.record(tsn).data.clone();
        if self.wants_sack_at_once(path, again) {
            data.flags = data.flags.and(DataFlags::IMMEDIATE);
        }
        Chunk::Data(data)
    }

    /// Whether the chunk just booked asks for a SACK at once (RFC 7053, 5): a retransmission, since the
    /// window opens when it arrives, and the one that fills a window that is small or recovers. After
    /// these nothing may follow that would call forth the SACK which the peer holds back.
    #[inline]
    fn wants_sack_at_once(&self, path: PathId, again: bool) -> bool {
        /// Below so many chunks the wait for a SACK is a good part of a round.
        const SMALL_WINDOW: u64 = 16;
        if self.config.recovery != LossDetection::RackTlp {
            return false;
        }
        let full = self.full_chunk();
        let state = &self.paths[path.index()];
        let window = self.views.get(path.index()).map_or(0, |v| v.window);
        let fills = state.flights.bytes() + full > window;
        again || fills && (state.recovery_exit.is_some() || window <= SMALL_WINDOW * full)
    }

    /// The window is shut by the oldest chunk. If it is on its way on a path that takes longer than
    /// an open one would, or is overdue, it goes again on the open path that delivers it soonest.
    fn unblock(&mut self, now: Time, asked: bool) -> Option<Transmit> {
        if !(asked || self.guard.is_on()) || self.sendable_left > 0 {
            return None;
        }
        let tsn = self.board.cumulative() + 1;
        let record = self.board.get(tsn)?;
        let RecordState::InFlight { path: on, number } = record.state else { return None };
        if record.transmissions > 1 {
            return None;
        }
        let sent_at = self.paths[on.index()].flights.sent_at(number)?;
        let rtt = &self.paths[on.index()].rtt;
        let patience = rtt.srtt()? + rtt.rttvar() * 4 + self.config.sack.delay;
        let overdue = now >= sent_at + patience;
        let due = sent_at + self.views[on.index()].forward_delay?;
        let sooner = |v: &&crate::scheduler::PathView| {
            v.is_open() && (overdue || v.id != on && v.forward_delay.is_some_and(|d| now + d < due))
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
        self.record(now, Decision::send(path, 0, Reason::Unblock), Some(tsn));
        Some(self.send_chunk(now, path, tsn))
    }

    fn finish_drain(&mut self, now: Time, idle: bool) {
        let shut = !idle && self.sendable_left == 0;
        let mut open = false;
        for (view, path) in self.views.iter().zip(&mut self.paths) {
            let has_room = view.usable && view.in_flight < view.window;
            path.limited = has_room;
            open |= has_room;
        }
        self.accounts.set_blocked(now, shut && open);
    }

    #[inline]
    fn record(&mut self, now: Time, decision: Decision, tsn: Option<u64>) {
        if self.config.record_decisions {
            let first = (1u64 << 32) + self.local_tsn as u64;
            self.records.push(DecisionRecord {
                at: now,
                chunk: tsn.map(|tsn| tsn - first),
                action: decision.action,
                reason: decision.reason,
                sendable: self.sendable_left,
                paths: self.views.iter().map(Into::into).collect(),
            });
        }
    }
}
