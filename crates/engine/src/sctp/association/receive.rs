//! How packets come in: tags, the chunks that stand first, and each chunk to its part.

use bytes::Bytes;
use ropewalk_base::{PathId, PeerText, Time};

use super::super::cause::{AbortCause, ErrorCause, REPORT_LIMIT};
use super::super::chunk::Chunk;
use super::super::extension_chunk::ExtensionChunk;
use super::super::packet::Packet;
use super::super::wire;
use super::inbound::{DataSummary, Reports};
use super::{Association, CloseReason, State};

/// The ABORT in a packet: whether it has T, and its causes.
fn abort_in(packet: &Packet) -> Option<(bool, &[ErrorCause])> {
    packet.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Abort { reflected, causes } => Some((*reflected, &causes[..])),
        _ => None,
    })
}

impl Association {
    /// A packet came on `path`.
    pub fn handle_datagram(&mut self, now: Time, path: PathId, mut packet: Packet) {
        self.handle_in_place(now, path, &mut packet);
    }

    /// As [`Association::handle_datagram`]; the packet's chunks are taken out of it, and it can be
    /// used again.
    pub fn handle_in_place(&mut self, now: Time, path: PathId, packet: &mut Packet) {
        if path.index() >= self.paths.len() {
            return;
        }
        if packet.tag == self.local_tag {
            self.on_sign_of_life(now);
        } else if !self.takes_other_tag(packet) {
            return;
        }
        self.begin_answers(path);
        // All that may have to come first does so in packets that begin with neither.
        let plain = matches!(packet.chunks.first(), Some(Chunk::Data(_) | Chunk::Sack(_)));
        if plain {
            self.begin_input();
        } else if !self.takes_beginning(now, path, packet) {
            return;
        }
        if let Some(echo) = &packet.echo {
            self.on_delay_echo(now, echo);
        }
        if packet.ce {
            self.on_marked(path, packet);
        }
        let stamp = packet.stamp;
        let (mut summary, mut reports) = (DataSummary::default(), Reports::default());
        // An end that is no more still answers a SHUTDOWN ACK, whatever stands before it (8.4, 5).
        let was_up = !matches!(self.state, State::Ended(_));
        // Taken from the end: taken from the front, each of very many would move all that follow.
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
    }

    /// What comes is a reason to ask the scheduler again, but none not to start.
    #[inline]
    fn begin_input(&mut self) {
        self.refill_bursts();
        if !matches!(self.state, State::Closed) {
            self.sender.wait_until = None;
        }
    }

    /// Takes what only ever stands first in a packet; whether there is more to take.
    #[cold]
    fn takes_beginning(&mut self, now: Time, path: PathId, packet: &mut Packet) -> bool {
        // 9.1: of a packet with an ABORT nothing is answered.
        if let Some((reflected, causes)) = abort_in(packet) {
            if packet.tag == self.local_tag && !reflected {
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
            // 6.10: nobody bundles an INIT ACK with anything.
            Some(Chunk::InitAck(_)) => {
                if let (Some(Chunk::InitAck(both)), None) =
                    (packet.chunks.pop(), packet.chunks.pop())
                {
                    self.timers_moved = true;
                    self.on_init_ack(now, path, &both.0, &both.1);
                }
                false
            }
            _ => true,
        }
    }

    /// 8.5.1: packets carry our tag, but INIT has 0, and COOKIE ECHO is checked with its cookie. ABORT
    /// and SHUTDOWN COMPLETE with T have the peer's tag, which must be known, or 0 would do; nothing
    /// else in such a packet counts.
    #[cold]
    fn takes_other_tag(&mut self, packet: &Packet) -> bool {
        let known = packet.tag == self.peer_tag && self.peer_tag != 0;
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

    /// Takes one chunk; whether to go on with the next.
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
                self.timers_moved = true;
                self.on_sack(now, sack);
            }
            Chunk::Extension(_) => return self.on_rare(now, path, &chunk, summary, reports),
            Chunk::Unknown(_) => return self.on_foreign(&chunk, reports),
            // 12.3: an INIT that is not alone is discarded, and so are all further chunks.
            Chunk::Init(_) => return false,
            other => self.on_control(now, path, other),
        }
        true
    }

    /// Any other chunk.
    #[cold]
    fn on_control(&mut self, now: Time, path: PathId, chunk: Chunk) {
        self.timers_moved = true;
        match chunk {
            Chunk::Data(_) | Chunk::Sack(_) | Chunk::Unknown(_) | Chunk::Extension(_) => {
                unreachable!("handled before")
            }
            // 6.10: an INIT ACK is alone, and that was handled before.
            Chunk::InitAck(_) => {}
            Chunk::Init(_) => unreachable!("handled before"),
            // Only ever first, checked with the cookie: handled before.
            Chunk::CookieEcho(_) => {}
            Chunk::CookieAck => self.on_cookie_ack(now, path),
            Chunk::Error(causes) => self.on_error(now, path, &causes),
            Chunk::Heartbeat(info) => self.on_heartbeat(path, info),
            Chunk::HeartbeatAck(info) => self.on_heartbeat_ack(now, &info),
            Chunk::Shutdown(cumulative) => self.on_shutdown(now, path, cumulative),
            Chunk::ShutdownAck => self.on_shutdown_ack(path),
            Chunk::ShutdownComplete { reflected: false } => self.on_shutdown_complete(),
            Chunk::Abort { reflected: false, causes } => self.take_abort(&causes),
            // 8.5.1: T goes with the peer's tag, and this packet had ours.
            Chunk::ShutdownComplete { .. } | Chunk::Abort { .. } => {}
        }
    }

    /// A chunk of an extension. Whether to go on with the next one.
    #[cold]
    fn on_rare(
        &mut self,
        now: Time,
        path: PathId,
        chunk: &Chunk,
        summary: &mut DataSummary,
        reports: &mut Reports,
    ) -> bool {
        let Chunk::Extension(rare) = chunk else { unreachable!("looked at by the caller") };
        let ecn = self.paths[path.index()].ecn.is_some();
        match &**rare {
            ExtensionChunk::Piece(piece) => self.on_piece(now, piece, summary, reports),
            ExtensionChunk::Ecne(tsn) if ecn => self.on_ecne(now, path, *tsn),
            ExtensionChunk::Cwr(tsn) if ecn => self.on_cwr(*tsn),
            ExtensionChunk::Heartbeat { answer, parameters } => {
                self.timers_moved = true;
                self.on_long_heartbeat(now, path, *answer, parameters);
            }
            _ => return self.on_foreign(chunk, reports),
        }
        true
    }

    /// HEARTBEAT or HEARTBEAT ACK with further parameters. 8.3: the answer has the Heartbeat Info, together with any other
    /// parameters, unchanged.
    fn on_long_heartbeat(&mut self, now: Time, path: PathId, answer: bool, parameters: &Bytes) {
        if answer {
            if let Some(info) = wire::heartbeat_info(parameters) {
                self.on_heartbeat_ack(now, &info);
            }
            return;
        }
        let known = self.state.is_up() || matches!(self.state, State::CookieEchoed { .. });
        let answer = ExtensionChunk::Heartbeat { answer: true, parameters: parameters.clone() };
        let answer = Chunk::Extension(Box::new(answer));
        if known && answer.wire_len() <= self.packet_room(path) {
            self.reply(path, self.peer_tag, answer);
        }
    }

    /// A chunk of a type that is not known, or was not agreed upon: its highest bits say what to do
    /// (3.2). Whether to go on with the next chunk.
    #[cold]
    fn on_foreign(&mut self, chunk: &Chunk, reports: &mut Reports) -> bool {
        let kind = match chunk {
            Chunk::Unknown(whole) => whole.first().copied().unwrap_or_default(),
            other => wire::chunk_bytes(other).first().copied().unwrap_or_default(),
        };
        // 5.1, C: until the COOKIE ACK has come nothing but the COOKIE ECHO is sent.
        if wire::is_reported(kind) && self.state.is_up() && reports.may_report() {
            let mut whole = wire::chunk_bytes(chunk);
            whole.truncate(REPORT_LIMIT);
            let error = Chunk::error(ErrorCause::UnrecognisedChunk(whole));
            self.reply(self.answer_path(), self.peer_tag, error);
        }
        wire::goes_on(kind)
    }

    /// ERROR: of all causes only a stale cookie calls for something. A COOKIE ECHO that met a
    /// shutdown (5.2.4, A) is answered by the SHUTDOWN ACK beside it.
    fn on_error(&mut self, now: Time, path: PathId, causes: &[ErrorCause]) {
        if causes.iter().any(|cause| matches!(cause, ErrorCause::StaleCookie(_))) {
            self.on_stale_cookie(now, path);
        }
    }

    /// ABORT under the tag of this end.
    fn take_abort(&mut self, causes: &[ErrorCause]) {
        self.note_abort_reason(causes);
        self.on_abort(causes.first().map_or(AbortCause::Unspecified, Into::into));
    }

    /// 3.3.10.12: an ABORT by the peer's user may say why.
    fn note_abort_reason(&mut self, causes: &[ErrorCause]) {
        if let Some(ErrorCause::UserAbort(reason)) = causes.first()
            && !reason.is_empty()
        {
            let shown = &reason[..reason.len().min(Self::ABORT_REASON_LIMIT)];
            self.peer.abort_reason = Some(PeerText::from_bytes(shown));
        }
    }

    fn on_abort(&mut self, cause: AbortCause) {
        if !matches!(self.state, State::Closed | State::Ended(_)) {
            self.close(CloseReason::AbortedByPeer(cause));
            // 9.1: nothing is sent in answer to a packet with an ABORT.
            self.control.clear();
        }
    }
}
