//! Association setup: the four-way handshake (RFC 9260, 5.1), duplicate INITs and collisions (5.2).

use core::net::IpAddr;

use bytes::Bytes;
use ropewalk_base::{PathId, Seed, Serial32, Time};

use super::super::cause::{AbortCause, ErrorCause};
use super::super::chunk::Chunk;
use super::super::config::{CmtOptions, Config, Negotiation};
use super::super::cookie::{CookieContent, CookieKey};
use super::super::extensions::Extensions;
use super::super::extensions::authentication::Authentication;
use super::super::init::Init;
use super::super::listener::{Accepted, CookieSeal, within_measure};
use super::super::packet::Packet;
use super::super::randomness::{Generator, Randomness};
use super::super::rx::MarkEchoes;
use super::super::tx::Ecn;
use super::super::wire::{self, address_parameters};
use super::peer::Peer;
use super::state::Retry;
use super::{Association, CloseReason, Event, State};
use crate::path::PathStatus;
use crate::scheduler::Scheduler;

/// Maximum length of an echoed cookie, bytes. IP fragments a COOKIE ECHO that exceeds a packet (RFC 9260,
/// 5.1.4: it MUST be sent). Cookies of other stacks have some hundreds of bytes and a few per address.
const LONGEST_COOKIE: usize = 32 << 10;

/// Inputs and results of the handshake.
///
/// `repr(C)` keeps the order of the fields, with those that every input accesses last.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Handshake {
    pub peer: Peer,
    key: CookieKey,
    /// Seal of this association's cookie, if a listener made it.
    accepted_by: Option<Box<CookieSeal>>,
    /// CMT as configured; [`Config::cmt`] holds the part of it that the peer agreed to.
    pub own_cmt: CmtOptions,
    /// The random number of this end's INIT for authenticated chunks, if it offers them.
    pub auth_random: Option<Box<[u8; 32]>>,
    /// Authenticated chunks, if both ends offered them.
    pub auth: Option<Box<Authentication>>,
    /// How often the peer has reported our cookie as stale.
    pub stale_cookies: u16,
    /// Paths whose addresses have refused the INIT: a bit for each.
    pub refused_paths: u16,
    /// Initial TSN of this end.
    pub local_tsn: u32,
    /// Suggested Cookie Life-Span Increment of the next INIT, in ms.
    pub preserve_millis: u32,
    /// Verification tags of received packets and of sent packets; 0: not known yet.
    pub local_tag: u32,
    pub peer_tag: u32,
}

impl Handshake {
    /// Seed of the random waits of congestion control, which differ between associations.
    pub fn congestion_seed(&self) -> Seed {
        let own = u64::from(self.local_tag) << 32 | u64::from(self.local_tsn);
        Seed::root(own).child("congestion")
    }

    /// Draws tag, TSN and key.
    pub fn new(generator: &mut Generator, own_cmt: CmtOptions) -> Self {
        let key = generator.key();
        Self {
            // RFC 9260, 3.3.2: the Initiate Tag MUST NOT be 0.
            local_tag: (generator.next_u64() as u32).max(1),
            local_tsn: generator.next_u64() as u32,
            peer_tag: 0,
            peer: Peer::default(),
            key: CookieKey::new(key),
            accepted_by: None,
            auth_random: None,
            auth: None,
            own_cmt,
            stale_cookies: 0,
            refused_paths: 0,
            preserve_millis: 0,
        }
    }

    /// The random number for authenticated chunks of an INIT ACK that offers to replace this association.
    pub fn fresh_auth_random(&self, content: &CookieContent) -> [u8; 32] {
        self.key.auth_random(content, &[])
    }

    /// Whether the address of that path has refused the INIT.
    pub const fn has_refused(&self, path: usize) -> bool {
        matches!(self.refused_paths.checked_shr(path as u32), Some(bits) if bits & 1 == 1)
    }

    /// The tie-tags of this association; 0 until the peer's tag is known (RFC 9260, 5.2.2).
    pub fn tie_tags(&self) -> (u32, u32) {
        match self.peer_tag {
            0 => (0, 0),
            peer => self.key.tie_tags(self.local_tag, peer),
        }
    }

    /// Opens a cookie that this end or its listener made and that arrived on `path`. Also returns the path on
    /// which its INIT ACK was sent, if known and one of `paths` paths. A cookie sealed by a listener opens
    /// only for the address that it was sent to.
    pub fn open_cookie(
        &self,
        cookie: &[u8],
        path: PathId,
        paths: usize,
    ) -> Option<(CookieContent, Option<PathId>)> {
        if let Ok(content) = self.key.open(cookie, &[]) {
            let home = Some(content.path).filter(|home| home.index() < paths);
            return Some((content, home));
        }
        Some((self.accepted_by.as_ref()?.open(cookie)?, Some(path)))
    }

    /// Whether both ends count marked data.
    const fn counts_marks(&self) -> bool {
        self.peer.agreed.has(Extensions::ECN.and(Extensions::MARK_COUNT))
    }

    /// ECN state of a new path, `None` if ECN was not negotiated.
    pub fn new_ecn(&self) -> Option<Box<Ecn>> {
        self.peer.agreed.has(Extensions::ECN).then(|| Box::new(Ecn::new(self.counts_marks())))
    }
}

impl Association {
    /// Creates the association for a peer that a [`Listener`](crate::sctp::Listener) has accepted, whose
    /// cookie arrived on `path`. It is established and has a COOKIE ACK to send. Pass the rest of the packet
    /// with the cookie to it next.
    pub fn accepted(
        config: Config,
        scheduler: Scheduler,
        randomness: impl Into<Randomness>,
        now: Time,
        path: PathId,
        accepted: Accepted,
    ) -> Self {
        let mut end = Self::new(config, scheduler, randomness.into());
        let Accepted { content, auth_random, seal } = accepted;
        end.handshake.local_tag = content.local_tag;
        end.handshake.local_tsn = content.local_tsn.0;
        end.sender.outstanding.begin_at(content.local_tsn.0);
        end.handshake.accepted_by = Some(Box::new(seal));
        end.handshake.auth_random = end.handshake.auth_random.map(|_| Box::new(auth_random));
        end.adopt_peer(&content.peer);
        end.control.queue.push(path, end.handshake.peer_tag, Chunk::CookieAck);
        end.establish(now, Some(path), Some(content.created), Event::Connected);
        end
    }

    pub(super) fn begin(&mut self, now: Time) {
        self.state = State::CookieWait { t1: self.first_retry(now) };
        self.push_init(PathId(0));
    }

    fn first_retry(&self, now: Time) -> Retry {
        Retry { at: now + self.config.rto.initial, count: 0 }
    }

    fn own_init(&self) -> Init {
        Init {
            tag: self.handshake.local_tag,
            window: self.receiver.buffer.window().clamp(1500, u32::MAX as u64) as u32,
            outbound_streams: self.config.streams,
            inbound_streams: self.config.inbound_streams(),
            initial_tsn: Serial32(self.handshake.local_tsn),
            addresses: self.config.listed_addresses(),
            preserve_millis: self.handshake.preserve_millis,
            options: self.config.own_options(self.handshake.auth_random.as_deref().copied()),
        }
    }

    pub(super) fn push_init(&mut self, path: PathId) {
        let init = Chunk::Init(Box::new(self.own_init()));
        self.control.queue.push(path, 0, init);
    }

    /// Processes an INIT (RFC 9260, 5.1 B). A driver that knows addresses calls
    /// [`Association::answer_to_init`] instead.
    pub(super) fn on_init(&mut self, now: Time, path: PathId, packet: &Packet) {
        if let Some(answer) = self.answer_to_init(now, path, packet, None) {
            let tag = answer.tag;
            answer.chunks.into_iter().for_each(|chunk| self.reply(path, tag, chunk));
        }
    }

    /// The answer to a packet with an INIT from `source`, to be sent on `path`, or
    /// [`Association::NO_PATH`] if no path leads to that address. The answer depends on the INIT alone,
    /// and the association is not changed (RFC 9260, 5.2.1, 5.2.2).
    pub fn answer_to_init(
        &self,
        now: Time,
        path: PathId,
        packet: &Packet,
        source: Option<IpAddr>,
    ) -> Option<Packet> {
        let Some(Chunk::Init(init)) = packet.chunks.first() else { return None };
        // RFC 9260, 3.1: an INIT is alone in its packet and has verification tag 0; 3.3.2: its Initiate Tag
        // MUST NOT be 0.
        let alone = packet.tag == 0 && packet.chunks.len() == 1;
        if !alone || init.tag == 0 || matches!(self.state, State::Ended(_)) {
            return None;
        }
        // RFC 9260, 3.3.2: an INIT with invalid values is answered with an ABORT under its Initiate Tag.
        if let Some(cause) = init.fault().or_else(|| self.config.auth_fault(init)) {
            return Some(Packet::of(init.tag, Chunk::abort(cause)));
        }
        if matches!(self.state, State::ShutdownAckSent { .. }) {
            // RFC 9260, 9.2: in SHUTDOWN-ACK-SENT an INIT is answered with the SHUTDOWN ACK again.
            return Some(Packet::of(self.handshake.peer_tag, Chunk::ShutdownAck));
        }
        if let Some(cause) = self.new_addresses(init, source) {
            return Some(Packet::of(init.tag, Chunk::abort(cause)));
        }
        // RFC 9260, 5.2.1 and 5.2.2: the existing association is not changed. The tie-tags in the cookie
        // distinguish a collision from a restart.
        let mut own = Init { preserve_millis: 0, ..self.own_init() };
        // RFC 9260, 3.3.3: no more outbound streams than the INIT allows.
        own.outbound_streams = own.outbound_streams.min(init.inbound_streams);
        if self.state.is_up() {
            (own.tag, own.initial_tsn) =
                self.handshake.key.fresh(init, now, self.handshake.local_tag, &[]);
        }
        let content = CookieContent {
            local_tag: own.tag,
            local_tsn: own.initial_tsn,
            peer: self.config.kept_in_cookie(init),
            created: now,
            tie_tags: self.handshake.tie_tags(),
            path,
        };
        let cookie = self.handshake.key.seal(&content, &[]);
        own.options = self.config.own_options(self.auth_random_for(&content));
        own.options.reported = init.options.unknown_padded();
        let answer = Packet::of(init.tag, Chunk::InitAck(Box::new((own, Some(cookie)))));
        Some(within_measure(&self.config, packet, answer))
    }

    /// The error cause for an INIT that would add addresses to the association (RFC 9260, 5.2.1 in
    /// COOKIE-ECHOED, 5.2.2). In COOKIE-WAIT the peer's addresses are not known yet.
    fn new_addresses(&self, init: &Init, source: Option<IpAddr>) -> Option<ErrorCause> {
        if !self.state.is_up() && !matches!(self.state, State::CookieEchoed { .. }) {
            return None;
        }
        let unlisted = source.iter().filter(|source| !init.addresses.contains(source));
        let all = init.addresses.iter().chain(unlisted);
        let new: Vec<_> = all.filter(|address| !self.handshake.peer.has(address)).collect();
        (!new.is_empty()).then(|| ErrorCause::NewAddresses(address_parameters(new)))
    }

    /// Processes an INIT ACK (RFC 9260, 5.1 C).
    pub(super) fn on_init_ack(
        &mut self,
        now: Time,
        path: PathId,
        init: &Init,
        cookie: Option<&Bytes>,
    ) {
        if !matches!(self.state, State::CookieWait { .. }) || self.refuses(path, init, cookie) {
            return;
        }
        if self.lacks_authentication(init) {
            self.control.unauthenticated += 1;
            return;
        }
        self.handshake.refused_paths = 0;
        self.adopt_peer(init);
        let cookie = cookie.cloned().unwrap_or_default();
        let unknown = init.options.unknown_joined();
        let report = (!unknown.is_empty())
            .then(|| Chunk::error(ErrorCause::UnrecognisedParameters(unknown)));
        self.queue_cookie_echo(now, path, cookie.clone(), report);
        let (t1, cookie) = (self.first_retry(now), Box::new(cookie));
        self.state = State::CookieEchoed { t1, cookie, sent: now, path };
        if self.config.negotiation == Negotiation::Assumed {
            // The probes follow the cookie, so that their answers arrive with the COOKIE ACK. Other
            // implementations might treat them as out of the blue if the cookie is lost.
            self.search_mtu(now, path);
        }
    }

    /// Queues a COOKIE ECHO on `path`, bundled with the report of unrecognized parameters of the INIT ACK
    /// if it fits (RFC 9260, 3.2.2). Alone, the report would have to wait for the COOKIE ACK.
    ///
    /// RFC 9260, 5.4: to an unconfirmed address that the user has not named, the cookie MUST be bundled
    /// with a HEARTBEAT. It is not sent if both do not fit.
    fn queue_cookie_echo(&mut self, now: Time, path: PathId, cookie: Bytes, report: Option<Chunk>) {
        let echo = Chunk::CookieEcho(cookie);
        let mut room = self.sender.packet_room(path).saturating_sub(echo.wire_len());
        let learned = self.sender.paths[path.index()].learned;
        let unconfirmed = learned && self.path_status(path) == PathStatus::Unconfirmed;
        let heartbeat = unconfirmed.then(|| self.new_heartbeat(now, path));
        if heartbeat.as_ref().is_some_and(|heartbeat| heartbeat.wire_len() > room) {
            return;
        }
        self.send_control(path, echo);
        for chunk in heartbeat.into_iter().chain(report) {
            if chunk.wire_len() <= room {
                room -= chunk.wire_len();
                self.send_control(path, chunk);
            }
        }
    }

    /// Refuses an invalid INIT ACK (RFC 9260, 3.3.3; 3.3.2.1.4); returns whether it did. If the window is too
    /// small, the state does not change. Other faults end the attempt.
    fn refuses(&mut self, path: PathId, init: &Init, cookie: Option<&Bytes>) -> bool {
        let options = &init.options;
        let cause = if init.tag == 0 {
            let causes = vec![ErrorCause::InvalidParameter];
            let abort = Chunk::Abort { reflected: true, causes };
            self.control.queue.push(path, self.handshake.local_tag, abort);
            self.close(CloseReason::Aborted(AbortCause::ProtocolViolation));
            return true;
        } else if init.window < 1500 {
            let abort = Chunk::abort(ErrorCause::InvalidParameter);
            self.control.queue.push(path, init.tag, abort);
            return true;
        } else if let Some(name) = &options.host_name {
            ErrorCause::unresolvable(name)
        } else if let Some(fault) = self.config.auth_fault(init) {
            fault
        } else if init.outbound_streams == 0 || init.inbound_streams == 0 {
            ErrorCause::InvalidParameter
        } else if let Some(cookie) = cookie {
            return cookie.len() > LONGEST_COOKIE;
        } else {
            ErrorCause::MissingParameters(vec![wire::STATE_COOKIE])
        };
        self.handshake.peer_tag = init.tag;
        self.abort_with(cause);
        true
    }

    /// Enables or disables ECN on all paths, as negotiated.
    fn settle_ecn(&mut self) {
        let fresh = self.handshake.new_ecn();
        let counting = self.handshake.counts_marks();
        let paths = self.sender.paths.len();
        let marks = fresh.as_ref().map(|_| Box::new(MarkEchoes::new(paths, counting)));
        self.receiver.acks.set_marks(marks);
        self.sender.paths.iter_mut().for_each(|path| path.ecn.clone_from(&fresh));
    }

    /// Adopts the parameters of the peer's INIT or INIT ACK.
    pub(super) fn adopt_peer(&mut self, init: &Init) {
        self.handshake.peer_tag = init.tag;
        self.handshake.peer = Peer::of(init, &self.config);
        self.settle_authentication(init);
        self.settle_ecn();
        self.settle_multipath();
        let window = self.sender.outstanding.config.used_buffer(init.window as u64);
        self.sender.outstanding.peer_rwnd = window;
        self.sender.outstanding.streams = self.config.streams.min(init.inbound_streams);
        self.start_congestion(window);
        // RFC 9260, 5.1.1: each direction has as many streams as both ends support.
        let inbound = self.config.inbound_streams().min(init.outbound_streams);
        self.receiver.expect(init.initial_tsn, inbound);
        self.control.reconfiguration = None;
        self.control.addresses = None;
        self.settle_interleaving();
        if self.config.authenticates() {
            self.sender.cut_to_paths();
        }
    }

    /// Processes a COOKIE ACK (RFC 9260, 5.1 E).
    pub(super) fn on_cookie_ack(&mut self, now: Time, path: PathId) {
        if let State::CookieEchoed { t1, sent, .. } = &self.state {
            // No RTT sample if the COOKIE ECHO was retransmitted (Karn's algorithm).
            let asked = (t1.count == 0).then_some(*sent);
            self.establish(now, Some(path), asked, Event::Connected);
        }
    }

    /// Establishes the association, on a packet that answers one sent at `asked` on `home`, if that path
    /// still exists.
    pub(super) fn establish(
        &mut self,
        now: Time,
        home: Option<PathId>,
        asked: Option<Time>,
        event: Event,
    ) {
        self.state = State::Established;
        self.control.errors = 0;
        // RFC 9260, 5.4: the address that the INIT ACK was sent to or came from is confirmed. Others must
        // answer a HEARTBEAT.
        if let Some(home) = home {
            let path = &mut self.sender.paths[home.index()];
            path.handshake_trip = asked.map(|asked| now.since(asked));
            path.tx.state.on_confirmed();
        }
        self.control.heartbeats.start(now, &self.sender.paths, &mut self.random.rng);
        if let Some(home) = home {
            self.search_mtu(now, home);
        }
        self.push_event(event);
    }

    /// Handles the expiry of T1-init or T1-cookie (RFC 9260, 4 and 5.1). Each retransmission goes to the
    /// next address. Other implementations may accept a cookie only from the address to which they sent
    /// it, so every second retransmission of a COOKIE ECHO uses that address.
    pub(super) fn on_t1(&mut self, now: Time) {
        let (State::CookieWait { t1 } | State::CookieEchoed { t1, .. }) = &mut self.state else {
            return;
        };
        if t1.at > now {
            return;
        }
        t1.count += 1;
        let count = t1.count;
        if count > self.config.max_init_retransmits {
            self.close(CloseReason::NoAnswer);
            return;
        }
        let doubled = self.config.rto.initial.saturating_mul(1 << count.min(20));
        t1.at = now + doubled.min(self.config.rto.max);
        let path = PathId::from_index(count as usize % self.sender.paths.len());
        let real = self.config.negotiation != Negotiation::Assumed;
        match &mut self.state {
            State::CookieEchoed { cookie, sent, path: home, .. } => {
                *sent = now;
                let path = if real && count % 2 == 1 { *home } else { path };
                let cookie = Bytes::clone(cookie);
                self.queue_cookie_echo(now, path, cookie, None);
            }
            _ => self.push_init(self.next_init_path(count)),
        }
    }
}
