//! Sending of SACKs: alone or bundled with DATA (RFC 9260, 6.1), and to which address (6.4, 5.4).

use ropewalk_base::{PathId, Time};

use super::super::chunk::{Chunk, DelayEcho, DelayStamp};
use super::super::packet::Packet;
use super::{Association, TransmitInfo};
use crate::path::PathStatus;

impl Association {
    /// Sends the SACK that is due: bundled with DATA that may be sent to the same address now (RFC 9260,
    /// 6.1), else alone.
    #[inline(never)]
    pub(super) fn next_sack(&mut self, now: Time, packet: &mut Packet) -> TransmitInfo {
        let rides = self.config.sack.with_data && self.state.sends_data();
        let first = !self.inbound.stays_behind && !self.inbound.has_waiting();
        if rides
            && first
            && let Some(transmit_info) = self.next_data(now, packet)
        {
            // If the SACK did not fit, it is sent next, before further DATA.
            self.inbound.stays_behind = self.inbound.due_now;
            return transmit_info;
        }
        self.sack_packet(packet)
    }

    fn sack_packet(&mut self, packet: &mut Packet) -> TransmitInfo {
        if self.inbound.has_waiting()
            && let Some(transmit_info) = self.waiting_sack_packet(packet)
        {
            return transmit_info;
        }
        packet.begin(self.peer_tag);
        let path = self.sack_destination();
        let echo = if self.peer.takes_stamps { DelayEcho::WIRE_LEN } else { 0 };
        let room = self.sack_room(path) - self.echo_room();
        let chunk = self.sender.outstanding.chunk_limit;
        let sack = self.inbound.take_sack(room.saturating_sub(echo), chunk);
        packet.chunks.push(Chunk::Sack(sack));
        if self.marked {
            self.echo_marks(packet);
        }
        packet.echo = self.inbound.take_echo();
        self.lone_departure(path)
    }

    /// Sends the oldest SACK that waits.
    #[cold]
    fn waiting_sack_packet(&mut self, packet: &mut Packet) -> Option<TransmitInfo> {
        let (path, sack, echo) = self.inbound.take_waiting(self.sender.outstanding.chunk_limit)?;
        packet.begin(self.peer_tag);
        packet.chunks.push(Chunk::Sack(sack));
        packet.echo = echo;
        Some(self.lone_departure(path))
    }

    /// Adds a SACK to a packet on `path` whose first DATA chunk takes `first` bytes, if both fit. Returns the
    /// bytes added.
    #[inline]
    pub(super) fn bundle_sack(
        &mut self,
        path: PathId,
        first: u32,
        room: u32,
        packet: &mut Packet,
    ) -> u32 {
        if !self.config.sack.with_data || !self.inbound.owes_sack() {
            return 0;
        }
        self.bundle_owed_sack(path, room.saturating_sub(first), packet)
    }

    #[cold]
    fn bundle_owed_sack(&mut self, path: PathId, room: u32, packet: &mut Packet) -> u32 {
        // ECNE chunks go with a SACK in a packet without DATA.
        if self.marked || self.inbound.has_waiting() || self.sack_destination() != path {
            return 0;
        }
        let echo = if self.peer.takes_stamps { DelayEcho::WIRE_LEN } else { 0 };
        let needed = self.inbound.sack_len() + echo;
        if needed > room {
            return 0;
        }
        let sack = self.inbound.take_sack(needed, self.sender.outstanding.chunk_limit);
        packet.chunks.push(Chunk::Sack(sack));
        packet.echo = self.inbound.take_echo();
        let taken = packet.wire_len() - Packet::HEADER;
        taken - packet.stamp.map_or(0, |_| DelayStamp::WIRE_LEN)
    }

    /// The path for a SACK sent now.
    #[inline(always)]
    pub(super) fn sack_destination(&self) -> PathId {
        self.reply_path(self.sack_path())
    }

    /// Chooses among the paths whose DATA the SACK acknowledges (RFC 9260, 6.4).
    ///
    /// The fastest of them, according to handshake and heartbeats, opens the window soonest. If SACKs always
    /// took the path of the last packet, counting packets over all paths could fall in step with the paths
    /// and send every SACK on the slowest. The path of the last packet is kept if its RTT is less than twice
    /// that of the fastest: spreading SACKs costs less than sending all on one path, and RTT estimates are
    /// old. If duplicates have arrived, the last SACKs may have been lost on the chosen path, so the path of
    /// the last packet is used.
    #[inline(always)]
    fn sack_path(&self) -> PathId {
        let last = self.inbound.path;
        if self.config.sack.to_last || self.sender.paths.len() == 1 || self.inbound.has_duplicates()
        {
            return last;
        }
        let trip = |path: PathId| self.sender.paths[path.index()].known_trip();
        let Some(own) = trip(last) else { return last };
        let (mut quickest, mut least) = (last, own / 2);
        for i in 0..self.sender.paths.len() {
            let path = PathId::from_index(i);
            let active = self.sender.paths[i].tx.state.status() == PathStatus::Active;
            if let Some(other) = trip(path).filter(|_| active && self.inbound.is_owed_to(path))
                && other < least
            {
                (quickest, least) = (path, other);
            }
        }
        quickest
    }
}
