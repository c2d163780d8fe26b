//! Builds outgoing packets: first control chunks, then SACKs, then DATA (RFC 9260, 6.1 and 6.10).

use ropewalk_base::{PathId, Time};

use super::{Association, PacketSize, Transmit, TransmitInfo};
use crate::path::PathStatus;
use crate::sctp::chunk::{Chunk, DelayEcho, DelayStamp};
use crate::sctp::extension_chunk::{DataFragment, ExtensionChunk};
use crate::sctp::packet::{Packet, PacketForm};
use crate::sctp::tx::{Next, Path};

impl Association {
    /// The next packet to send, `None` if nothing may be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        self.follow_requests(now);
        if self.is_silent() && !self.sender.has_limits() {
            // The most frequent case: return before a packet is allocated.
            if self.state.sends_data() {
                self.sender.measurements.set_blocked(now, false);
            }
            self.finish_poll();
            return None;
        }
        let mut packet = Packet::default();
        let TransmitInfo { path, round, size, ecn } = self.poll_transmit_into(now, &mut packet)?;
        Some(Transmit { path, packet, round, size, ecn })
    }

    /// Like [`Association::poll_transmit`], but writes the packet into `packet`, whose content is
    /// replaced. A driver that reuses its packets saves an allocation and several copies per packet.
    #[inline]
    pub fn poll_transmit_into(&mut self, now: Time, packet: &mut Packet) -> Option<TransmitInfo> {
        self.follow_requests(now);
        // Called at least once after every input, mostly with nothing to send. So the decision is inlined
        // here, and each kind of packet is built in its own function.
        let transmit_info = if !self.control.queue.is_empty() {
            self.next_control(now, packet)
        } else if self.receiver.acks.has_sack_to_send()
            && self.state.is_up()
            && self.has_confirmed_path()
        {
            Some(self.next_sack(now, packet))
        } else if self.state.sends_data() {
            self.next_data(now, packet)
        } else {
            None
        };
        match &self.handshake.auth {
            _ if transmit_info.is_none() => self.finish_poll(),
            Some(auth) => {
                auth.sign(packet);
            }
            None => {}
        }
        if let Some(info) = &transmit_info
            && self.config.packet_form == PacketForm::Compact
        {
            packet.number = Some(self.sender.paths[info.path.index()].next_packet_number());
        }
        transmit_info
    }

    /// Sends the requests of the extensions that are no longer blocked.
    #[inline]
    fn follow_requests(&mut self, now: Time) {
        if self.control.reconfiguration.is_some() {
            self.follow_reconfiguration(now);
        }
        if self.control.addresses.is_some() {
            self.follow_addresses(now);
        }
    }

    /// Whether there is nothing to send.
    #[inline]
    fn is_silent(&self) -> bool {
        let answers = self.receiver.acks.has_sack_to_send();
        self.control.queue.is_empty() && !answers && self.sender.has_no_data()
    }

    /// Completes a round of `poll_transmit`: nothing more is sent until the next input.
    #[inline]
    fn finish_poll(&mut self) {
        self.sender.settle_timers();
        self.control.heartbeats.settle_timers();
        if self.sender.outstanding.was_full && self.config.unsent_limit.is_some() {
            self.report_writable();
        }
    }

    #[cold]
    fn next_control(&mut self, now: Time, packet: &mut Packet) -> Option<TransmitInfo> {
        // The packet may need an AUTH chunk, for which data packets have no room unless the peer requires many.
        let auth = self.handshake.auth.as_ref().filter(|auth| !auth.covers_much());
        let auth = auth.map_or(0, |auth| auth.chunk_len());
        let room = |path| self.sender.packet_room(path) - auth;
        let (path, size) = self.control.queue.fill(room, packet)?;
        if self.receiver.acks.is_due() && answers_data(packet) && self.state.is_up() {
            let used = packet.wire_len() - Packet::HEADER;
            let room = (self.sender.packet_room(path) - auth).saturating_sub(used);
            self.bundle_sack(now, path, room, packet);
        }
        Some(TransmitInfo { size, ..self.sender.after_control_packet(path) })
    }

    #[inline]
    fn next_data(&mut self, now: Time, packet: &mut Packet) -> Option<TransmitInfo> {
        let next = self.sender.choose(now, &mut self.random.rng);
        if self.sender.has_limits() && self.sender.is_forward_tsn_due(now) && next.is_none() {
            return self.forward_tsn_packet(now, packet);
        }
        Some(self.data_packet(now, next?, packet))
    }

    /// Builds a packet that begins with the chosen chunk. A SACK that is owed precedes it, and further
    /// chunks that fit follow it.
    #[inline]
    fn data_packet(&mut self, now: Time, next: Next, packet: &mut Packet) -> TransmitInfo {
        let (path, first, stamp) =
            (next.path(), self.sender.size_of(next), self.sender.stamp_len());
        let whole = self.sender.data_room(path);
        if first + stamp > whole {
            return if self.sender.size_alone(next) + stamp <= whole {
                self.send_alone(now, next, packet)
            } else {
                self.send_too_long(now, next, packet)
            };
        }
        packet.begin(self.handshake.peer_tag);
        if stamp > 0 {
            packet.stamp = Some(DelayStamp { sent: now.as_nanos() });
        }
        let mut room = whole - stamp;
        if self.sender.has_limits() {
            room -= self.bundle_forward_tsn(now, path, room - first, packet);
        }
        let room = room - self.bundle_sack(now, path, room.saturating_sub(first), packet);
        self.sender.fill(now, next, room, packet)
    }

    /// Sends a datagram that fits into a packet of its path only without other chunks.
    #[inline]
    fn send_alone(&mut self, now: Time, next: Next, packet: &mut Packet) -> TransmitInfo {
        packet.begin(self.handshake.peer_tag);
        self.sender.fill(now, next, self.sender.size_of(next), packet)
    }

    /// Sends a chunk that exceeds the packets of its path: in pieces if the peer supports them, else
    /// complete, for IP to fragment.
    #[cold]
    fn send_too_long(&mut self, now: Time, next: Next, packet: &mut Packet) -> TransmitInfo {
        let path = next.path();
        packet.begin(self.handshake.peer_tag);
        let transmit_info = self.sender.transmit_alone(now, next, &mut packet.chunks);
        if !self.sender.outstanding.config.pieces {
            return TransmitInfo { size: PacketSize::TooLong, ..transmit_info };
        }
        let Some(Chunk::Data(data)) = packet.chunks.pop() else {
            unreachable!("what was sent is DATA")
        };
        let most = (self.sender.packet_room(path) - DataFragment::header_of(&data)) / 4 * 4;
        let (total, mut at) = (data.payload.len(), 0);
        while at < total {
            let size = most.min(total - at);
            let piece = Chunk::Extension(Box::new(ExtensionChunk::DataFragment(DataFragment::of(
                &data, at as u16, size,
            ))));
            // Control chunks are sent before everything else.
            match at {
                0 => packet.chunks.push(piece),
                _ => self.send_control(path, piece),
            }
            at += size;
        }
        transmit_info
    }

    /// Sends the SACK that is due: bundled with DATA that may be sent to the same address now (RFC 9260,
    /// 6.1), else alone.
    #[inline(never)]
    pub(super) fn next_sack(&mut self, now: Time, packet: &mut Packet) -> TransmitInfo {
        if self.state.sends_data()
            && self.receiver.acks.should_ride()
            && let Some(transmit_info) = self.next_data(now, packet)
        {
            self.receiver.acks.defer();
            return transmit_info;
        }
        self.sack_packet(packet)
    }

    fn sack_packet(&mut self, packet: &mut Packet) -> TransmitInfo {
        if self.receiver.acks.has_waiting()
            && let Some(transmit_info) = self.waiting_sack_packet(packet)
        {
            return transmit_info;
        }
        packet.begin(self.handshake.peer_tag);
        let path = self.sack_destination();
        let echo = if self.handshake.peer.takes_stamps { DelayEcho::WIRE_LEN } else { 0 };
        let marks = self.receiver.acks.marks().map_or(0, |marks| marks.wire_len());
        let room = self.sack_room(path) - marks;
        let chunk = self.sender.outstanding.chunk_limit();
        let sack =
            self.receiver.take_sack(path, room.saturating_sub(echo), chunk, packet.take_spare());
        packet.chunks.push(sack);
        if let Some(marks) = self.receiver.acks.marks() {
            marks.add_to(packet);
        }
        packet.echo = self.receiver.acks.take_echo();
        self.sender.after_control_packet(path)
    }

    /// Sends the oldest queued SACK.
    #[cold]
    fn waiting_sack_packet(&mut self, packet: &mut Packet) -> Option<TransmitInfo> {
        let (path, sack, echo) =
            self.receiver.take_queued_sack(self.sender.outstanding.chunk_limit())?;
        packet.begin(self.handshake.peer_tag);
        packet.chunks.push(sack);
        packet.echo = echo;
        Some(self.sender.after_control_packet(path))
    }

    /// Adds the SACK that is due, or owed and small, to a packet on `path`, if it fits into `room` bytes. Returns the bytes
    /// added.
    #[inline]
    pub(super) fn bundle_sack(
        &mut self,
        now: Time,
        path: PathId,
        room: u32,
        packet: &mut Packet,
    ) -> u32 {
        if !self.config.sack.with_data || !self.receiver.acks.may_ride(now) {
            return 0;
        }
        self.bundle_owed_sack(path, room, packet)
    }

    #[cold]
    fn bundle_owed_sack(&mut self, path: PathId, room: u32, packet: &mut Packet) -> u32 {
        let marks = self.receiver.acks.marks();
        let alone = marks.is_some_and(|marks| !marks.may_join_data());
        let reports = marks.map_or(0, |marks| marks.wire_len());
        if alone || self.receiver.acks.has_waiting() || self.sack_destination() != path {
            return 0;
        }
        let echo = if self.handshake.peer.takes_stamps { DelayEcho::WIRE_LEN } else { 0 };
        let needed = self.receiver.sack_len(path) + echo;
        if needed + reports > room {
            return 0;
        }
        // A timestamp and a FORWARD-TSN may be in the packet.
        let before = packet.wire_len();
        let sack = self.receiver.take_sack(
            path,
            needed,
            self.sender.outstanding.chunk_limit(),
            packet.take_spare(),
        );
        packet.chunks.push(sack);
        if let Some(marks) = self.receiver.acks.marks() {
            marks.add_to(packet);
        }
        packet.echo = self.receiver.acks.take_echo();
        packet.wire_len() - before
    }

    /// The path for a SACK sent now.
    #[inline(always)]
    pub(super) fn sack_destination(&self) -> PathId {
        self.sender.reply_path(self.sack_path())
    }

    /// Selects one of the paths whose DATA the SACK acknowledges (RFC 9260, 6.4).
    ///
    /// The fastest of them, according to handshake and heartbeats, opens the window soonest. If SACKs always
    /// took the path of the last packet, counting packets over all paths could fall in step with the paths
    /// and send every SACK on the slowest. The path of the last packet is kept if its RTT is less than twice
    /// that of the fastest: spreading SACKs costs less than sending all on one path, and RTT estimates are
    /// old. If duplicates have arrived, the last SACKs may have been lost on the chosen path, so the path of
    /// the last packet is used.
    #[inline(always)]
    fn sack_path(&self) -> PathId {
        let last = self.receiver.acks.path();
        if self.config.sack.to_last
            || self.sender.paths.len() == 1
            || self.receiver.acks.has_duplicates()
        {
            return last;
        }
        let trip = |path: PathId| self.sender.paths[path.index()].known_trip();
        let Some(own) = trip(last) else { return last };
        let (mut quickest, mut least) = (last, own / 2);
        for i in 0..self.sender.paths.len() {
            let path = PathId::from_index(i);
            let active = self.sender.paths[i].tx.state.status() == PathStatus::Active;
            if let Some(other) =
                trip(path).filter(|_| active && self.receiver.acks.is_owed_to(path))
                && other < least
            {
                (quickest, least) = (path, other);
            }
        }
        quickest
    }

    /// Room for a SACK on `path`, bytes: a full packet, or with `sack.within_base` no more than the base
    /// MTU.
    pub(super) fn sack_room(&self, path: PathId) -> u32 {
        let room = self.sender.packet_room(path);
        if self.config.sack.within_base { self.sender.within_base(room) } else { room }
    }

    /// Whether any address of the peer is confirmed. Before that, its data is not acknowledged.
    #[inline]
    fn has_confirmed_path(&self) -> bool {
        let confirmed = |path: &Path| path.tx.state.status() != PathStatus::Unconfirmed;
        self.sender.paths.iter().any(confirmed)
    }
}

/// Whether a packet of control chunks answers one that may also have contained DATA. The SACK for this
/// DATA then does not need its own packet.
fn answers_data(packet: &Packet) -> bool {
    let answers =
        |chunk: &Chunk| matches!(chunk, Chunk::CookieAck | Chunk::Error(_) | Chunk::Shutdown(_));
    packet.chunks.iter().any(answers)
}
