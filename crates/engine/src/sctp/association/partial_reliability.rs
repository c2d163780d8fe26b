//! Partial reliability (RFC 3758; RFC 7496): messages with limits, and FORWARD-TSN in both directions.

use ropewalk_base::{PathId, StreamId, Time};

use super::{Association, Event, SendError, TransmitInfo, Undelivered};
use crate::path::PathStatus;
use crate::payload::Payload;
use crate::sctp::chunk::Chunk;
use crate::sctp::extension_chunk::{ForwardTsn, IForwardTsn};
use crate::sctp::extensions::abandoned::{AbandonedMessages, ReliabilityPolicy};
use crate::sctp::extensions::partial_reliability::{Delivery, Limit, Submitted};
use crate::sctp::packet::Packet;
use crate::sctp::tx::Backlog;

impl Association {
    /// Queues a message with the delivery options `delivery`. `ppid`: payload protocol identifier (RFC
    /// 9260, 3.3.1; 0: not specified).
    ///
    /// # Errors
    /// [`SendError`]; nothing is queued then.
    pub fn send_message(
        &mut self,
        now: Time,
        stream: StreamId,
        ppid: u32,
        payload: Payload,
        delivery: Delivery,
    ) -> Result<(), SendError> {
        if delivery.is_plain() {
            let limit = Limit { immediate: delivery.immediate, ..Limit::NONE };
            let unordered = !delivery.ordered;
            return self.send_in_order(Submitted { stream, ppid, payload, unordered, limit });
        }
        match self.may_queue(stream, &payload) {
            Err(SendError::Full)
                if delivery.exceeds_buffer
                    || delivery.priority.is_some_and(|p| self.sender.make_room(p)) => {}
            answer => answer?,
        }
        let (unordered, limit) = (!delivery.ordered, delivery.limit(now));
        let message = Submitted { stream, ppid, payload, unordered, limit };
        if self.sender.outstanding.queue.is_held(stream) {
            self.sender.outstanding.queue.held_mut().push(message, delivery.urgency, 0);
            return Ok(());
        }
        self.sender.submit(message, delivery.urgency);
        self.sender.refill_bursts();
        Ok(())
    }

    /// Number of messages of a stream, or of all streams, that were abandoned by one policy, or by any
    /// policy (RFC 7496, 4.3 and 4.4).
    pub fn abandoned_messages(
        &self,
        stream: Option<StreamId>,
        policy: Option<ReliabilityPolicy>,
    ) -> AbandonedMessages {
        let limits = self.sender.outstanding.limits.as_ref();
        limits.map_or_else(Default::default, |limits| limits.abandoned.sum(stream, policy))
    }

    /// Whether there are messages for [`Association::take_abandoned`].
    pub fn has_abandoned(&self) -> bool {
        let limits = self.sender.outstanding.limits.as_ref();
        limits.and_then(|limits| limits.reports.as_ref()).is_some_and(|all| !all.is_empty())
    }

    /// The messages abandoned since the last call, the earliest first. Empty without
    /// [`Config::reports_abandoned`](crate::sctp::Config::reports_abandoned).
    pub fn take_abandoned(&mut self) -> Vec<Undelivered> {
        let limits = self.sender.outstanding.limits.as_mut();
        limits.and_then(|limits| limits.reports.as_mut()).map_or_else(Vec::new, std::mem::take)
    }

    /// Bytes that wait for a path: new data, and an estimate for lost chunks.
    pub fn waiting_bytes(&self) -> u64 {
        self.sender.waiting_bytes()
    }

    /// The same, with interactive messages counted separately.
    pub fn backlog(&self) -> Backlog {
        self.sender.backlog()
    }

    /// Whether partially sent messages are abandoned after their lifetime: the peer supports FORWARD-TSN
    /// (RFC 3758, 4.2), or I-FORWARD-TSN if messages are interleaved.
    pub const fn abandons_messages(&self) -> bool {
        self.handshake.peer.agreed.abandons()
    }

    /// Sends the due FORWARD-TSN in its own packet.
    #[cold]
    pub(super) fn forward_tsn_packet(
        &mut self,
        now: Time,
        packet: &mut Packet,
    ) -> Option<TransmitInfo> {
        let path = self.sender.forward_path();
        let room = self.sender.packet_room(path);
        let forward = self.sender.take_forward_tsn(now, path, room);
        packet.begin(self.handshake.peer_tag);
        packet.chunks.push(Chunk::Extension(Box::new(forward)));
        Some(self.sender.after_control_packet(path))
    }

    /// Adds a FORWARD-TSN before the DATA of a packet on `path` if one is wanted and fits into `room` bytes (RFC
    /// 3758, 3.5 F2). Returns the bytes added.
    #[cold]
    pub(super) fn bundle_forward_tsn(
        &mut self,
        now: Time,
        path: PathId,
        room: u32,
        packet: &mut Packet,
    ) -> u32 {
        let confirmed = self.path_status(path) == PathStatus::Active;
        if !confirmed || room < ForwardTsn::LEAST_LEN || !self.sender.wants_forward_tsn() {
            return 0;
        }
        let forward = self.sender.take_forward_tsn(now, path, room);
        let chunk = Chunk::Extension(Box::new(forward));
        let taken = chunk.wire_len();
        packet.chunks.push(chunk);
        taken
    }

    /// Processes a FORWARD-TSN (RFC 3758, 3.6). A point beyond the reach of gap ack blocks cannot be
    /// valid, and is treated like an outdated one.
    #[cold]
    pub(super) fn on_forward_tsn(&mut self, now: Time, path: PathId, forward: &ForwardTsn) {
        if !self.state.receives_data() {
            return;
        }
        let readable = self.receiver.on_forward_tsn(now, path, forward);
        self.note_readable(readable);
    }

    /// Processes an I-FORWARD-TSN (RFC 8260, 2.3.1) like [`Self::on_forward_tsn`].
    #[cold]
    pub(super) fn on_i_forward_tsn(&mut self, now: Time, path: PathId, forward: &IForwardTsn) {
        if !self.state.receives_data() {
            return;
        }
        let readable = self.receiver.on_i_forward_tsn(now, path, forward);
        self.note_readable(readable);
    }

    pub(super) fn note_readable(&mut self, readable: bool) {
        if readable && self.control.events.back() != Some(&Event::Readable) {
            self.push_event(Event::Readable);
        }
    }
}
