//! Processing of received packets: verification tags, chunks that must come first, and the dispatch of each
//! chunk.

use bytes::Bytes;
use ropewalk_base::{PathId, Serial32, Time};

use super::super::cause::{AbortCause, ErrorCause, REPORT_LIMIT};
use super::super::chunk::{Chunk, Sack};
use super::super::extension_chunk::{ExtensionChunk, NrSack};
use super::super::extensions::Extensions;
use super::super::packet::Packet;
use super::super::rx::DataSummary;
use super::super::tx::InvalidSack;
use super::super::wire::{self, kind};
use super::data::Reports;
use super::{Association, CloseReason, State};

/// The ABORT chunk of a packet: its T bit and its causes.
fn abort_in(packet: &Packet) -> Option<(bool, &[ErrorCause])> {
    packet.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Abort { reflected, causes } => Some((*reflected, &causes[..])),
        _ => None,
    })
}

impl Association {
    /// Processes a packet that arrived on `path`.
    pub fn handle_datagram(&mut self, now: Time, path: PathId, mut packet: Packet) {
        self.handle_in_place(now, path, &mut packet);
    }

    /// Like [`Association::handle_datagram`], but takes the chunks out of `packet`, which can then be
    /// reused.
    pub fn handle_in_place(&mut self, now: Time, path: PathId, packet: &mut Packet) {
        if path.index() >= self.sender.paths.len() {
            return;
        }
        let mut unsupported = None;
        let mut unfiltered = false;
        if self.authenticates() {
            unsupported = self.filter_packet(packet);
            if packet.chunks.is_empty() && unsupported.is_none() {
                return;
            }
        } else if self.handshake.auth_random.is_some() {
            match self.authenticate_cookie(packet) {
                Some(authenticated) => unfiltered = !authenticated,
                None => return,
            }
        }
        if packet.tag == self.handshake.local_tag {
            self.on_packet_from_peer(now);
        } else if !self.process_foreign_tag(packet) {
            return;
        }
        self.control.queue.begin_answers(path);
        if let Some(id) = unsupported {
            self.report_unsupported_hmac(path, id);
        }
        // Packets that begin with DATA or SACK contain no chunk that needs special treatment before the
        // others.
        let plain = matches!(packet.chunks.first(), Some(Chunk::Data(_) | Chunk::Sack(_)));
        if plain {
            self.begin_input();
        } else if !self.process_first_chunk(now, path, packet) {
            return;
        }
        // The chunks after the COOKIE ECHO that has established the association.
        if unfiltered {
            self.filter_packet(packet);
        }
        if let Some(echo) = &packet.echo {
            self.sender.on_delay_echo(now, echo);
        }
        if packet.ce {
            self.on_marked(path, packet);
        }
        let stamp = packet.stamp;
        self.receiver.acks.on_number(path, packet.number);
        let (mut summary, mut reports) = (DataSummary::default(), Reports::default());
        // RFC 9260, 8.4 (5): a SHUTDOWN ACK that arrives after the end of the association is answered with a
        // SHUTDOWN COMPLETE. Keep reading: it may follow other chunks in this packet.
        let was_up = !matches!(self.state, State::Ended(_));
        // Chunks are popped from the end of the reversed list. Removing each from the front would move
        // all following chunks.
        let count = packet.chunks.len();
        if count > 1 {
            packet.chunks.reverse();
        }
        for _ in 0..count {
            let Some(chunk) = packet.chunks.pop() else { break };
            if !self.on_chunk(now, path, chunk, &mut summary, &mut reports) {
                break;
            }
            if was_up && matches!(self.state, State::Ended(_)) {
                return;
            }
        }
        self.after_data(now, path, stamp, summary);
        packet.keep_spare(&mut self.sender.outstanding.spare_gaps);
    }

    /// Queues a control chunk for the peer.
    pub(super) fn send_control(&mut self, path: PathId, chunk: Chunk) {
        self.control.queue.push(path, self.handshake.peer_tag, chunk);
    }

    /// Adds a reply with the peer's verification tag to the packet that is being processed.
    pub(super) fn reply_to_peer(&mut self, path: PathId, chunk: Chunk) {
        self.reply(path, self.handshake.peer_tag, chunk);
    }

    /// Adds a reply to the packet that is being processed.
    pub(super) fn reply(&mut self, path: PathId, tag: u32, chunk: Chunk) {
        self.control.queue.reply(path, tag, chunk, self.sender.packet_room(path));
    }

    /// Processes a packet that the network has marked.
    #[cold]
    fn on_marked(&mut self, path: PathId, packet: &Packet) {
        let cumulative = self.receiver.buffer.cumulative();
        if let Some(marks) = self.receiver.acks.marks_mut() {
            marks.on_marked(path, cumulative, packet);
        }
    }

    /// Every input lets the scheduler decide again. It ends a wait of the scheduler, but not the wait of
    /// an association that has not started.
    #[inline]
    fn begin_input(&mut self) {
        self.sender.refill_bursts();
        if !matches!(self.state, State::Closed) {
            self.sender.wait_until = None;
        }
    }

    /// Processes the chunks that occur only at the start of a packet. Returns whether to process the
    /// rest.
    #[cold]
    fn process_first_chunk(&mut self, now: Time, path: PathId, packet: &mut Packet) -> bool {
        // RFC 9260, 9.1: nothing in a packet with an ABORT is answered.
        if let Some((reflected, causes)) = abort_in(packet) {
            if packet.tag == self.handshake.local_tag && !reflected {
                self.take_abort(causes);
            }
            return false;
        }
        if let Some(Chunk::CookieEcho(cookie)) = packet.chunks.first() {
            let cookie = cookie.clone();
            if !self.on_cookie_echo(now, path, packet.tag, &cookie) {
                return false;
            }
        }
        self.begin_input();
        match packet.chunks.first() {
            Some(Chunk::Init(_)) => {
                self.on_init(now, path, packet);
                false
            }
            // RFC 9260, 6.10: an INIT ACK MUST NOT be bundled with other chunks.
            Some(Chunk::InitAck(_)) => {
                if let (Some(Chunk::InitAck(both)), None) =
                    (packet.chunks.pop(), packet.chunks.pop())
                {
                    self.sender.outstanding.deadline.invalidate();
                    self.on_init_ack(now, path, &both.0, both.1.as_ref());
                }
                false
            }
            _ => true,
        }
    }

    /// Checks a packet whose verification tag is not ours (RFC 9260, 8.5.1). An INIT has tag 0, and a COOKIE
    /// ECHO is checked together with its cookie. An ABORT or SHUTDOWN COMPLETE with T carries the peer's tag.
    /// That tag must be known: otherwise 0 would match. No other chunk of such a packet is processed.
    #[cold]
    fn process_foreign_tag(&mut self, packet: &Packet) -> bool {
        let known = packet.tag == self.handshake.peer_tag && self.handshake.peer_tag != 0;
        match packet.chunks.first() {
            Some(Chunk::Init(_)) => packet.tag == 0,
            Some(Chunk::CookieEcho(_)) => true,
            Some(Chunk::ShutdownComplete { reflected: true }) if known => {
                self.on_shutdown_complete();
                false
            }
            _ => {
                if let Some((true, causes)) = abort_in(packet).filter(|_| known) {
                    self.on_abort(causes.first().map_or(AbortCause::Unknown, Into::into));
                }
                false
            }
        }
    }

    /// Processes one chunk. Returns whether to continue with the next one.
    #[inline]
    fn on_chunk(
        &mut self,
        now: Time,
        path: PathId,
        chunk: Chunk,
        summary: &mut DataSummary,
        reports: &mut Reports,
    ) -> bool {
        match chunk {
            Chunk::Data(data) => self.on_data(now, data, summary, reports),
            Chunk::Sack(sack) => {
                self.sender.outstanding.deadline.invalidate();
                self.on_sack(now, sack);
            }
            Chunk::Extension(_) => return self.on_extension(now, path, &chunk, summary, reports),
            Chunk::Unknown(_) => return self.on_foreign(&chunk, reports),
            // RFC 9260, 12.3: an INIT that is not alone is discarded, together with all further chunks.
            Chunk::Init(_) => return false,
            other => self.on_control(now, path, other),
        }
        true
    }

    /// Processes any control chunk except SACK.
    #[cold]
    fn on_control(&mut self, now: Time, path: PathId, chunk: Chunk) {
        self.sender.outstanding.deadline.invalidate();
        match chunk {
            Chunk::Data(_) | Chunk::Sack(_) | Chunk::Unknown(_) | Chunk::Extension(_) => {
                unreachable!("handled before")
            }
            // RFC 9260, 6.10: an INIT ACK is alone in its packet and was handled before.
            Chunk::InitAck(_) => {}
            Chunk::Init(_) => unreachable!("handled before"),
            // It is valid only as the first chunk and was handled before, together with its cookie.
            Chunk::CookieEcho(_) => {}
            Chunk::CookieAck => self.on_cookie_ack(now, path),
            Chunk::Error(causes) => self.on_error(now, path, &causes),
            Chunk::Heartbeat(info) => self.on_heartbeat(path, info),
            Chunk::HeartbeatAck(info) => self.on_heartbeat_ack(now, &info),
            Chunk::Shutdown(cumulative) => self.on_shutdown(now, path, cumulative),
            Chunk::ShutdownAck => self.on_shutdown_ack(path),
            Chunk::ShutdownComplete { reflected: false } => self.on_shutdown_complete(),
            Chunk::Abort { reflected: false, causes } => self.take_abort(&causes),
            // RFC 9260, 8.5.1: T means that the packet carries the peer's tag, and this one carries ours.
            Chunk::ShutdownComplete { .. } | Chunk::Abort { .. } => {}
        }
    }

    /// Processes a chunk of an extension. Returns whether to continue with the next one.
    #[cold]
    fn on_extension(
        &mut self,
        now: Time,
        path: PathId,
        chunk: &Chunk,
        summary: &mut DataSummary,
        reports: &mut Reports,
    ) -> bool {
        let Chunk::Extension(extension) = chunk else { unreachable!("looked at by the caller") };
        let ecn = self.sender.paths[path.index()].ecn.is_some();
        match &**extension {
            ExtensionChunk::DataFragment(piece) => self.on_fragment(now, piece, summary, reports),
            ExtensionChunk::NrSack(sack) if self.reports_non_renegable() => {
                self.sender.outstanding.deadline.invalidate();
                self.on_nr_sack(now, sack);
            }
            // RFC 8260, 2.3.1: I-FORWARD-TSN is used if messages are interleaved, and only then.
            ExtensionChunk::ForwardTsn(_) if self.interleaves() && self.abandons_messages() => {
                self.abort_with(ErrorCause::VIOLATION);
            }
            ExtensionChunk::ForwardTsn(forward) if self.abandons_messages() => {
                self.on_forward_tsn(now, path, forward);
            }
            ExtensionChunk::IForwardTsn(forward)
                if self.interleaves() && self.abandons_messages() =>
            {
                self.on_i_forward_tsn(now, path, forward);
            }
            ExtensionChunk::ReConfig(parameters) if self.reconfigures() => {
                self.on_re_config(now, path, parameters, reports);
            }
            ExtensionChunk::Asconf(serial, list) if self.reconfigures_addresses() => {
                self.sender.outstanding.deadline.invalidate();
                self.on_asconf(path, *serial, list);
            }
            ExtensionChunk::AsconfAck(serial, list) if self.reconfigures_addresses() => {
                self.sender.outstanding.deadline.invalidate();
                self.on_asconf_ack(*serial, list);
            }
            ExtensionChunk::Ecne(tsn) if ecn => self.on_ecne(now, path, *tsn),
            ExtensionChunk::Cwr(tsn) if ecn => self.on_cwr(*tsn),
            ExtensionChunk::MarkCount(count) if ecn => self.sender.on_mark_count(now, *count),
            ExtensionChunk::Heartbeat { answer, parameters } => {
                self.sender.outstanding.deadline.invalidate();
                self.on_long_heartbeat(now, path, *answer, parameters);
            }
            _ => return self.on_foreign(chunk, reports),
        }
        true
    }

    /// Processes an ECNE, and confirms it.
    #[cold]
    fn on_ecne(&mut self, now: Time, path: PathId, tsn: Serial32) {
        if self.sender.on_ecne(now, path, tsn) {
            let cwr = Chunk::Extension(Box::new(ExtensionChunk::Cwr(tsn)));
            self.reply_to_peer(path, cwr);
        }
    }

    #[cold]
    fn on_cwr(&mut self, tsn: Serial32) {
        let tsn = tsn.unwrap_near(self.receiver.buffer.cumulative());
        if let Some(marks) = self.receiver.acks.marks_mut() {
            marks.on_cwr(tsn);
        }
    }

    /// Processes a SACK.
    pub(super) fn on_sack(&mut self, now: Time, sack: Sack) {
        // A SACK with recent blocks only is accepted only if it was negotiated.
        let agreed = sack.number.is_none() || self.sender.config.peer_acks.on_request;
        if !self.state.receives_sacks() || !agreed {
            return;
        }
        let cumulative = sack.cumulative;
        let taken = self.sender.on_sack(now, sack);
        self.after_sack(now, cumulative, taken);
    }

    /// Processes an NR-SACK after its negotiation.
    #[cold]
    fn on_nr_sack(&mut self, now: Time, sack: &NrSack) {
        if !self.state.receives_sacks() {
            return;
        }
        let taken = self.sender.on_nr_sack(now, sack);
        self.after_sack(now, sack.cumulative, taken);
    }

    fn after_sack(&mut self, now: Time, cumulative: Serial32, taken: Result<bool, InvalidSack>) {
        match taken {
            Ok(false) => {}
            Ok(true) => {
                self.follow_reports(now);
                self.report_writable();
                self.after_flush(now);
            }
            Err(InvalidSack::NeverSent) if self.is_of_other_tsns(cumulative) => {}
            Err(_) => self.abort_with(ErrorCause::VIOLATION),
        }
    }

    /// Whether data that has arrived is reported by NR-SACKs: both ends have listed them. False before the handshake.
    pub const fn reports_non_renegable(&self) -> bool {
        self.handshake.peer.agreed.has(Extensions::NR_SACK)
    }

    /// Processes a chunk whose type is unknown or was not negotiated. RFC 9260, 3.2: the two highest bits
    /// of the type determine whether to report it and whether to continue. Returns whether to continue
    /// with the next chunk.
    #[cold]
    fn on_foreign(&mut self, chunk: &Chunk, reports: &mut Reports) -> bool {
        let kind = match chunk {
            Chunk::Unknown(whole) => whole.first().copied().unwrap_or_default(),
            other => wire::chunk_bytes(other).first().copied().unwrap_or_default(),
        };
        // RFC 9260, 5.1 C: until the COOKIE ACK has arrived, only the COOKIE ECHO is sent.
        if wire::is_reported(kind) && self.state.is_up() && reports.may_report() {
            let mut whole = wire::chunk_bytes(chunk).to_vec();
            whole.truncate(REPORT_LIMIT);
            // With its padding, as other implementations report it.
            whole.resize(whole.len().next_multiple_of(4), 0);
            let error = Chunk::error(ErrorCause::UnrecognisedChunk(whole.into()));
            self.reply(
                self.sender.reply_path(self.control.queue.answers_to),
                self.handshake.peer_tag,
                error,
            );
        }
        wire::goes_on(kind)
    }

    /// Processes an ERROR. Only the cause Stale Cookie requires an action. An ERROR that reports a COOKIE
    /// ECHO received during shutdown (RFC 9260, 5.2.4 A) comes with a SHUTDOWN ACK, which is answered.
    fn on_error(&mut self, now: Time, path: PathId, causes: &[ErrorCause]) {
        if causes.iter().any(|cause| matches!(cause, ErrorCause::StaleCookie(_))) {
            self.on_stale_cookie(now, path);
        }
        let unknown = |cause: &ErrorCause| matches!(cause, ErrorCause::UnrecognisedChunk(whole) if whole.first() == Some(&kind::ASCONF));
        if causes.iter().any(unknown) {
            self.on_asconf_unknown();
        }
    }

    /// Processes an ABORT that carries the tag of this end.
    fn take_abort(&mut self, causes: &[ErrorCause]) {
        self.note_abort_reason(causes);
        self.on_abort(causes.first().map_or(AbortCause::Unspecified, Into::into));
    }

    /// RFC 9260, 3.3.10.12: a User-Initiated Abort may contain a reason.
    fn note_abort_reason(&mut self, causes: &[ErrorCause]) {
        if let Some(ErrorCause::UserAbort(reason)) = causes.first()
            && !reason.is_empty()
        {
            let kept = &reason[..reason.len().min(Self::ABORT_REASON_LIMIT)];
            self.handshake.peer.abort_reason = Some(Box::new(Bytes::copy_from_slice(kept)));
        }
    }

    fn on_abort(&mut self, cause: AbortCause) {
        if !matches!(self.state, State::Closed | State::Ended(_)) {
            self.close(CloseReason::AbortedByPeer(cause));
            // RFC 9260, 9.1: no packet is sent in response to an ABORT.
            self.control.queue.clear();
        }
    }
}
