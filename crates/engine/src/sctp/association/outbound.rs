//! Builds outgoing packets: first control chunks, then SACKs, then lost data, then new data (RFC 9260, 6.1
//! and 6.10).

use ropewalk_base::{PathId, Time};

use super::super::chunk::{Chunk, DelayEcho, DelayStamp};
use super::super::packet::Packet;
use super::inbound::blocks_within;
use super::zero_window::WindowProbe;
use super::{Association, PacketSize, Transmit, TransmitInfo};
use crate::multipath::{Assignment, Outstanding, nothing_in_flight};
use crate::path::PathStatus;
use crate::scheduler::{Decision, DecisionKind, Reason, RetransmissionPolicy, View};
use crate::sctp::tx::RecordState;

impl Association {
    /// The next packet to send; none if nothing may be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if self.is_silent() {
            // The most frequent case: return before a packet is allocated.
            if self.state.sends_data() {
                self.sender.accounts.set_blocked(now, false);
            }
            self.finish_poll();
            return None;
        }
        let mut packet = Packet::default();
        let TransmitInfo { path, round, size, ect } = self.poll_transmit_into(now, &mut packet)?;
        Some(Transmit { path, packet, round, size, ect })
    }

    /// As [`Association::poll_transmit`], but writes the packet into `packet`, whose content is replaced. A
    /// driver that reuses its packets saves an allocation and several copies per packet.
    #[inline]
    pub fn poll_transmit_into(&mut self, now: Time, packet: &mut Packet) -> Option<TransmitInfo> {
        // Called at least once after every input, mostly with nothing to send. So the decision is inlined
        // here, and each kind of packet is built in a function of its own.
        let transmit_info = if !self.control.is_empty() {
            self.next_control(packet)
        } else if (self.inbound.due_now || self.inbound.has_waiting())
            && self.state.is_up()
            && self.has_confirmed_path()
        {
            Some(self.next_sack(now, packet))
        } else if self.state.sends_data() {
            self.next_data(now, packet)
        } else {
            None
        };
        if transmit_info.is_none() {
            self.finish_poll();
        }
        transmit_info
    }

    /// Whether there is nothing to send at all.
    #[inline]
    fn is_silent(&self) -> bool {
        let answers = self.inbound.due_now || self.inbound.has_waiting();
        self.control.is_empty() && !answers && self.has_no_data()
    }

    /// Completes a round of `poll_transmit`: nothing more is sent until the next input.
    #[inline]
    fn finish_poll(&mut self) {
        self.settle_timers();
        if self.was_full && self.config.unsent_limit.is_some() {
            self.tell_of_room();
        }
    }

    /// Whether there is neither new data nor data to retransmit.
    #[inline]
    fn has_no_data(&self) -> bool {
        let idle = self.sender.outstanding.is_idle();
        idle && self.sender.outstanding.board.lost().is_empty() && self.sender.copies.is_empty()
    }

    /// Bundles control chunks for one path into a packet. RFC 9260, 6.10: INIT, INIT ACK and SHUTDOWN
    /// COMPLETE MUST NOT be bundled with other chunks.
    #[cold]
    fn next_control(&mut self, packet: &mut Packet) -> Option<TransmitInfo> {
        let is_probe = self.probe_is_next();
        let (path, tag, first) = self.control.pop_front()?;
        let whole = self.packet_room(path);
        let too_long = first.wire_len() > whole;
        let mut room = whole.saturating_sub(first.wire_len());
        packet.begin(tag);
        packet.chunks.push(first);
        if is_probe {
            packet.chunks.extend(self.control.pop_front().map(|(_, _, padding)| padding));
            return Some(TransmitInfo { size: PacketSize::Probe, ..self.lone_departure(path) });
        }
        let alone = |chunk: &Chunk| {
            matches!(chunk, Chunk::Init(_) | Chunk::InitAck(_) | Chunk::ShutdownComplete { .. })
        };
        if !alone(&packet.chunks[0]) {
            while let Some((next_path, next_tag, chunk)) = self.control.front() {
                let size = chunk.wire_len();
                let other = *next_path != path || *next_tag != tag;
                // RFC 9260, 3.2.2: a COOKIE ECHO is the first chunk of its packet.
                let begins = alone(chunk) || matches!(chunk, Chunk::CookieEcho(_));
                if other || begins || size > room || self.probe_is_next() {
                    break;
                }
                room -= size;
                packet.chunks.extend(self.control.pop_front().map(|(_, _, chunk)| chunk));
            }
        }
        // RFC 9260, 5.1.4: a cookie cannot be fragmented by SCTP, so IP has to.
        let size = if too_long { PacketSize::TooLong } else { PacketSize::Usual };
        Some(TransmitInfo { size, ..self.lone_departure(path) })
    }

    /// Accounts for a packet without data. If no data is in flight on the path, no acknowledgement ends the
    /// round, so each such packet begins a new one. Otherwise a simulated network that loses packets by
    /// rounds could lose all of them.
    pub(super) fn lone_departure(&mut self, path: PathId) -> TransmitInfo {
        let of = &mut self.sender.paths[path.index()];
        if of.tx.flights.is_empty() {
            of.tx.begin_round();
        }
        self.transmit_info(path)
    }

    #[inline]
    fn transmit_info(&self, path: PathId) -> TransmitInfo {
        let round = self.sender.paths[path.index()].tx.round;
        TransmitInfo { path, round, size: PacketSize::Usual, ect: false }
    }

    /// Room for chunks in a packet on `path`, bytes.
    #[inline]
    pub(super) fn packet_room(&self, path: PathId) -> u32 {
        self.sender.paths[path.index()].tx.config.mtu - self.config.lower_header - Packet::HEADER
    }

    #[inline]
    pub(super) fn next_data(&mut self, now: Time, packet: &mut Packet) -> Option<TransmitInfo> {
        let idle = self.sender.outstanding.is_idle();
        if idle && self.sender.outstanding.board.lost().is_empty() && self.sender.copies.is_empty()
        {
            self.sender.accounts.set_blocked(now, false);
            return None;
        }
        self.choose_data(now, idle, packet)
    }

    #[inline(never)]
    fn choose_data(&mut self, now: Time, idle: bool, packet: &mut Packet) -> Option<TransmitInfo> {
        if !self.sender.copies.is_empty() {
            if let Some(sent) = self.next_copy(now, packet) {
                return Some(sent);
            }
            if idle && self.sender.outstanding.board.lost().is_empty() {
                self.sender.accounts.set_blocked(now, false);
                return None;
            }
        }
        if !self.sender.drained {
            self.refresh_views(now);
            self.sender.drained = true;
        }
        // While a custom scheduler is still deciding, lost data has been handled already.
        let looked =
            self.sender.outstanding.board.lost().is_empty() || self.sender.scheduler.is_thinking();
        let mut sent = if looked { None } else { self.next_lost(now, packet) };
        if sent.is_none() && !idle {
            sent = self.next_new(now, packet);
        }
        if sent.is_none() && !self.sender.scheduler.is_thinking() {
            self.sender.finish_drain(now, idle);
        }
        sent
    }

    /// Sends one more copy of a chunk that is in flight.
    #[cold]
    fn next_copy(&mut self, now: Time, packet: &mut Packet) -> Option<TransmitInfo> {
        let (path, tsn) = self.sender.copies.pop()?;
        // The chunk may have been acknowledged, or lost and retransmitted, in the meantime.
        let record = self.sender.outstanding.board.get(tsn)?;
        let flies = matches!(record.state, RecordState::InFlight { .. });
        flies.then(|| self.send_chunk(now, path, tsn, packet))
    }

    /// Sends the oldest lost chunk on the path that the retransmission policy chooses.
    #[cold]
    fn next_lost(&mut self, now: Time, packet: &mut Packet) -> Option<TransmitInfo> {
        let lost = self.sender.outstanding.board.lost().first()?;
        let RecordState::Lost { on, by_timer } = self.sender.outstanding.board.record(lost).state
        else {
            return None;
        };
        let tsn = self.hole_before(lost).filter(|_| by_timer).unwrap_or(lost);
        let occasion = DecisionKind::Retransmission { lost_on: on };
        let seen = self.sender.seen(now, occasion);
        let view = View { paths: &self.sender.views, ..seen };
        let credit = self.sender.paths[on.index()].tx.fast_credit;
        // `same` would wait for ever if the guard leaves the path no window.
        let policy = match self.config.retransmission {
            RetransmissionPolicy::Same if self.sender.views[on.index()].window == 0 => {
                RetransmissionPolicy::Asap
            }
            policy => policy,
        };
        // With nothing in flight, no acknowledgement would ever open a window.
        let idle = nothing_in_flight(&self.sender.paths);
        let choice = if credit || idle {
            policy.choose(&view, &mut self.rng)
        } else {
            policy.choose_open(&view, &mut self.rng)
        };
        let path = self.elsewhere(on, by_timer).or(choice)?;
        let path = self.path_for_size(path, self.sender.outstanding.board.record(tsn).bytes);
        self.sender.paths[on.index()].tx.fast_credit = false;
        let decision = Decision::send(path, 0, Reason::RetransmissionPolicy);
        self.sender.record(now, decision, Some(tsn));
        let sent = self.send_chunk(now, path, tsn, packet);
        // A zero-window probe may be sent only while nothing else is in flight.
        self.sender.sendable_left = self.sender.sendable();
        Some(sent)
    }

    /// A never-sent chunk before `lost`, if there are more gaps than a SACK can report. Chunks behind the
    /// last reported gap are not acknowledged although they have arrived. They time out again and again, and
    /// their retransmissions would leave no window for the chunks that fill the gaps.
    fn hole_before(&mut self, lost: u64) -> Option<u64> {
        let room = self.peer_sack_room().saturating_sub(DelayEcho::WIRE_LEN);
        if self.sender.outstanding.board.acked().range_count() < blocks_within(room) {
            return None;
        }
        let hole = self.sender.outstanding.board.holes().first().filter(|hole| *hole < lost)?;
        // Queue positions have changed: schedulers have to recount.
        self.sender.epoch += 1;
        Some(hole)
    }

    /// Without CMT, the path to retransmit a chunk on that timed out: another active path (RFC 9260, 6.4.1).
    fn elsewhere(&self, on: PathId, by_timer: bool) -> Option<PathId> {
        if self.config.cmt.concurrent || !by_timer {
            return None;
        }
        let other = |i: &usize| {
            let path = &self.sender.paths[*i];
            let id = PathId::from_index(*i);
            id != on
                && path.tx.state.status() == PathStatus::Active
                && path.tx.flights.bytes() < path.tx.within_one_packet(self.cwnd(id))
        };
        (0..self.sender.paths.len()).find(other).map(PathId::from_index)
    }

    /// Sends new data on the path that the scheduler chooses.
    #[inline]
    fn next_new(&mut self, now: Time, packet: &mut Packet) -> Option<TransmitInfo> {
        let sender = &mut self.sender;
        if sender.sendable_left == 0 {
            // Chunks may have been smaller than full ones and left more room than was counted.
            sender.sendable_left = sender.sendable();
        }
        let Assignment::Send { path, position, decision } = sender.assign(now)? else {
            let (path, tsn) = sender.unblock(now)?;
            return Some(self.send_chunk(now, path, tsn, packet));
        };
        let (tsn, bytes) = sender.outstanding.chunk_at(position)?;
        sender.on_assigned(now, (path, position, &decision), (tsn, bytes));
        if tsn < sender.outstanding.board.next_tsn() {
            return Some(self.send_chunk(now, path, tsn, packet));
        }
        self.send_fresh(now, path, packet)
    }

    /// Sends `tsn` on `path` and bundles further chunks that fit.
    #[inline]
    pub(super) fn send_chunk(
        &mut self,
        now: Time,
        path: PathId,
        tsn: u64,
        packet: &mut Packet,
    ) -> TransmitInfo {
        if self.sender.outstanding.board.record(tsn).bytes + self.stamp_len()
            > self.packet_room(path)
        {
            return self.send_too_long(now, path, tsn, packet);
        }
        let first = self.sender.outstanding.board.record(tsn).bytes;
        let mut room = self.begin_packet(now, path, first, packet);
        let launched = self.launch(now, path, tsn, &mut packet.chunks);
        room -= launched.bytes;
        if let RecordState::Lost { on, .. } = launched.before {
            self.bundle_lost(now, path, on, &mut room, &mut packet.chunks);
        }
        self.finish_packet(now, path, room, packet)
    }

    /// As [`Association::send_chunk`], for the next chunk of the queue, which has no record yet.
    #[inline]
    fn send_fresh(&mut self, now: Time, path: PathId, packet: &mut Packet) -> Option<TransmitInfo> {
        let first = self.sender.outstanding.queue.next_bytes()?;
        if first + self.stamp_len() > self.packet_room(path) {
            // Sending in pieces requires a record.
            let tsn = self
                .sender
                .outstanding
                .board
                .assign(|chunk| self.sender.outstanding.queue.next_chunk(chunk));
            return Some(self.send_too_long(now, path, tsn, packet));
        }
        let room = self.begin_packet(now, path, first, packet);
        let bytes = self.launch_fresh(now, path, &mut packet.chunks)?;
        Some(self.finish_packet(now, path, room - bytes, packet))
    }

    /// Begins a packet whose first DATA chunk takes `first` bytes. Returns the room for chunks.
    #[inline]
    fn begin_packet(&mut self, now: Time, path: PathId, first: u32, packet: &mut Packet) -> u32 {
        packet.begin(self.peer_tag);
        let stamp = self.stamp_len();
        if stamp > 0 {
            packet.stamp = Some(DelayStamp { sent: now.as_nanos() });
        }
        let room = self.packet_room(path) - stamp;
        room - self.bundle_sack(path, first, room, packet)
    }

    /// Bundles small chunks that fit, and records the packet as sent; `room` is what its first chunk left.
    #[inline]
    fn finish_packet(
        &mut self,
        now: Time,
        path: PathId,
        mut room: u32,
        packet: &mut Packet,
    ) -> TransmitInfo {
        self.bundle(now, path, &mut room, &mut packet.chunks);
        self.after_sending(now, path, self.packet_room(path) - room)
    }

    /// Records a packet with `sent` bytes of chunks as sent.
    #[inline(always)]
    pub(super) fn after_sending(&mut self, now: Time, path: PathId, sent: u32) -> TransmitInfo {
        let full = self.sender.outstanding.full_chunk();
        let state = &mut self.sender.paths[path.index()];
        state.tx.counters.sent_packets += 1;
        state.tx.last_sent_at = now;
        state.tx.tail.on_activity(now);
        state.tx.burst_left = state.tx.burst_left.saturating_sub(1);
        if state.t3.is_none() {
            state.t3 = Some(now + state.tx.rtt.rto());
        }
        state.tx.pacer.on_sent(sent as u64);
        let ect = state.ecn.as_ref().is_some_and(|ecn| ecn.is_on());
        let transmit_info =
            TransmitInfo { path, round: state.tx.round, size: PacketSize::Usual, ect };
        self.bursts_spent = true;
        self.timers_moved = true;
        self.sender.on_packet_sent(now, path, full);
        if let WindowProbe::Due { interval } = self.sender.outstanding.window_probe {
            self.note_window_probe(now, path, interval);
        }
        transmit_info
    }
}
