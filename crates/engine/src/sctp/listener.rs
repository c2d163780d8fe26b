//! Listener: accepts associations without keeping state before the cookie returns, and answers packets out of
//! the blue (RFC 9260, 5.1 and 8.4).

mod limit;

use core::net::IpAddr;

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Serial32, Time};

use self::limit::AnswerLimit;
use super::cause::ErrorCause;
use super::chunk::Chunk;
use super::config::Config;
use super::cookie::{CookieContent, CookieKey};
use super::extensions::Extensions;
use super::extensions::authentication::Authentication;
use super::init::{Init, InitOptions};
use super::packet::Packet;
use super::randomness::{Generator, Randomness};
use super::wire::kind;

/// Answers packets that belong to no association: an INIT with a cookie, a returned cookie with a new
/// association, and others as RFC 9260, 8.4, requires.
///
/// A cookie is bound to `from`. A driver puts the source address and both SCTP ports into it (RFC 9260,
/// 5.1.5 (3)).
///
/// The listener has the same size after a million INITs as before the first. The driver first looks for
/// an association with the packet's source, which handles any INIT and COOKIE ECHO of its peer. Packets
/// from a source that is not a unicast address are dropped (8.4 (1)).
#[derive(Clone, Debug)]
pub struct Listener {
    config: Config,
    keys: Keys,
    /// Limits ABORTs and similar replies, which an attacker could provoke in large numbers.
    limit: AnswerLimit,
    /// COOKIE ECHOs without a valid code that the driver has not counted yet.
    unauthenticated: u64,
}

/// The reaction to a packet out of the blue.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Drop the packet.
    Nothing,
    /// Send this packet to the source of the received one. No state is kept.
    Reply(Packet),
    /// Create an association with [`super::Association::accepted`]. The other chunks stay in the packet; pass
    /// it to the association.
    Accept(Box<Accepted>),
}

/// A peer that has returned its cookie.
#[derive(Clone, Debug)]
pub struct Accepted {
    pub(super) content: CookieContent,
    /// The random number of the INIT ACK for authenticated chunks.
    pub(super) auth_random: [u8; 32],
    /// The seal of the cookie, which may arrive again if the COOKIE ACK is lost.
    pub(super) seal: CookieSeal,
}

/// The key of a cookie, and the source address for which it is valid.
#[derive(Clone, Debug)]
pub(super) struct CookieSeal {
    key: CookieKey,
    context: Box<[u8]>,
}

impl CookieSeal {
    /// The content of the cookie, if this seal made it.
    pub fn open(&self, cookie: &[u8]) -> Option<CookieContent> {
        self.key.open(cookie, &self.context).ok()
    }
}

impl Accepted {
    /// The peer's INIT.
    pub const fn peer(&self) -> &Init {
        &self.content.peer
    }

    /// The verification tags of received packets and of sent packets.
    pub const fn tags(&self) -> (u32, u32) {
        (self.content.local_tag, self.content.peer.tag)
    }
}

/// Maximum size of a reply relative to the received packet, lower headers included. Protects victims
/// whose address an attacker writes into INITs.
const AMPLIFICATION: u32 = 3;
/// Minimum header length below SCTP, bytes: IPv4.
const LEAST_LOWER_HEADER: u32 = 20;

impl Listener {
    /// Creates a listener for associations with this configuration. On a real network the randomness is a
    /// [`Secret`](super::Secret).
    pub fn new(config: Config, randomness: impl Into<Randomness>) -> Self {
        let life = config.cookie_life + config.rto.max;
        Self {
            config,
            keys: Keys::new(Generator::new(randomness.into(), "listener"), life),
            limit: AnswerLimit::FULL,
            unauthenticated: 0,
        }
    }

    /// Number of COOKIE ECHOs since the last call that were discarded for lack of a valid code.
    pub const fn take_unauthenticated(&mut self) -> u64 {
        core::mem::replace(&mut self.unauthenticated, 0)
    }

    /// Processes a packet that belongs to no association. `from` identifies its source, address and port, as
    /// bytes. A cookie is valid for that source only.
    pub fn handle(&mut self, now: Time, from: &[u8], packet: &mut Packet) -> Answer {
        // The rules of RFC 9260, 8.4, in order; 8.5.1: only INIT has tag 0.
        if packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Abort { .. })) {
            return Answer::Nothing;
        }
        match packet.chunks.first() {
            Some(Chunk::Init(init)) => {
                let alone = packet.tag == 0 && packet.chunks.len() == 1;
                let answer = alone.then(|| self.on_init(now, from, packet, init)).flatten();
                return answer.map_or(Answer::Nothing, Answer::Reply);
            }
            Some(Chunk::CookieEcho(cookie)) => {
                let cookie = cookie.clone();
                return self.on_cookie_echo(now, from, packet, &cookie);
            }
            // RFC 4895, 6.3: an AUTH chunk is ignored unless a COOKIE ECHO follows.
            Some(first) if first.kind() == kind::AUTH => {
                if let Some(Chunk::CookieEcho(cookie)) = packet.chunks.get(1) {
                    let cookie = cookie.clone();
                    return self.on_cookie_echo(now, from, packet, &cookie);
                }
                leave_out_auth(packet);
                // RFC 9260, 3.1: an INIT is alone in its packet.
                let begins = |chunk: &Chunk| matches!(chunk, Chunk::Init(_) | Chunk::CookieEcho(_));
                let initiates = packet.chunks.iter().any(begins);
                return if initiates { Answer::Nothing } else { self.handle(now, from, packet) };
            }
            None => return Answer::Nothing,
            Some(_) if packet.tag == 0 => return Answer::Nothing,
            Some(_) => {}
        }
        let has = |wanted: fn(&Chunk) -> bool| packet.chunks.iter().any(wanted);
        let answer = if has(|chunk| matches!(chunk, Chunk::ShutdownAck)) {
            Chunk::ShutdownComplete { reflected: true }
        } else if has(is_left_alone) {
            return Answer::Nothing;
        } else {
            Chunk::Abort { reflected: true, causes: Vec::new() }
        };
        self.limited(now, Packet::of(packet.tag, answer))
    }

    /// Like [`Listener::handle`], for a port without a listening application.
    ///
    /// RFC 9260, 8.4 (3): an INIT that cannot be processed is answered with an ABORT under its Initiate Tag.
    pub fn refuse(&mut self, now: Time, from: &[u8], packet: &mut Packet) -> Answer {
        leave_out_auth(packet);
        let tag = match packet.chunks.as_slice() {
            [Chunk::Init(init)] if packet.tag == 0 && init.tag != 0 => init.tag,
            // RFC 9260, 8.5.1: an INIT is alone in its packet and has tag 0.
            [Chunk::Init(_), ..] => return Answer::Nothing,
            [Chunk::CookieEcho(cookie), ..] => match self.keys.open(now, cookie, from) {
                Some((content, _)) if content.local_tag == packet.tag => content.peer.tag,
                _ => return Answer::Nothing,
            },
            _ => return self.handle(now, from, packet),
        };
        self.limited(now, Packet::of(tag, Chunk::Abort { reflected: false, causes: Vec::new() }))
    }

    /// Sets the own addresses to list in INIT ACKs.
    pub fn list_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.config.addresses = Some(addresses);
    }

    fn limited(&mut self, now: Time, packet: Packet) -> Answer {
        if self.limit.allows(now) { Answer::Reply(packet) } else { Answer::Nothing }
    }

    /// Processes an INIT (RFC 9260, 5.1 B): all state goes into the cookie.
    fn on_init(&mut self, now: Time, from: &[u8], packet: &Packet, init: &Init) -> Option<Packet> {
        if init.tag == 0 {
            return None;
        }
        if let Some(cause) = init.fault().or_else(|| self.config.auth_fault(init)) {
            let abort = Packet::of(init.tag, Chunk::abort(cause));
            return self.limit.allows(now).then_some(abort);
        }
        let (tag, initial_tsn) = self.keys.current(now).fresh(init, now, 0, from);
        let content = CookieContent {
            local_tag: tag,
            local_tsn: initial_tsn,
            peer: self.config.kept_in_cookie(init),
            created: now,
            tie_tags: (0, 0),
            path: PathId(0),
        };
        let cookie = self.keys.current(now).seal(&content, from);
        let offers = init.extensions().has(Extensions::AUTH);
        let random = offers.then(|| self.keys.current(now).auth_random(&content, from));
        let answer = self.own_init(tag, initial_tsn, init, random);
        let answer = Packet::of(init.tag, init_ack(answer, cookie));
        Some(within_measure(&self.config, packet, answer))
    }

    fn own_init(
        &self,
        tag: u32,
        initial_tsn: Serial32,
        peer: &Init,
        random: Option<[u8; 32]>,
    ) -> Init {
        let config = &self.config;
        Init {
            tag,
            window: config.receive_capacity().clamp(1500, u32::MAX as u64) as u32,
            // RFC 9260, 3.3.3: no more outbound streams than the INIT allows.
            outbound_streams: config.streams.min(peer.inbound_streams),
            inbound_streams: config.inbound_streams(),
            initial_tsn,
            addresses: config.listed_addresses(),
            preserve_millis: 0,
            options: InitOptions {
                reported: peer.options.unknown_padded(),
                ..config.own_options(random)
            },
        }
    }

    /// Processes a COOKIE ECHO (RFC 9260, 5.1 D; 5.1.5).
    fn on_cookie_echo(
        &mut self,
        now: Time,
        from: &[u8],
        packet: &mut Packet,
        cookie: &Bytes,
    ) -> Answer {
        let Some((content, key)) = self.keys.open(now, cookie, from) else {
            return Answer::Nothing;
        };
        if packet.tag != content.local_tag {
            return Answer::Nothing;
        }
        if let Some(by) = content.staleness(now, self.config.cookie_life_for(&content.peer)) {
            let error = Chunk::error(ErrorCause::stale(by));
            return self.limited(now, Packet::of(content.peer.tag, error));
        }
        let auth_random = key.auth_random(&content, from);
        if !self.is_authentic(&content, auth_random, packet) {
            self.unauthenticated += 1;
            return Answer::Nothing;
        }
        packet.chunks.retain(|chunk| !matches!(chunk, Chunk::CookieEcho(_)));
        let seal = CookieSeal { key, context: from.into() };
        Answer::Accept(Box::new(Accepted { content, auth_random, seal }))
    }

    /// Whether a COOKIE ECHO has the required authentication. RFC 4895, 6.3: an AUTH chunk before it is
    /// verified with the parameters in the cookie; if it is invalid, the packet is discarded.
    fn is_authentic(&self, content: &CookieContent, random: [u8; 32], packet: &Packet) -> bool {
        let first = packet.chunks.first().map(Chunk::kind) == Some(kind::AUTH);
        let peer = &content.peer;
        let agreed = self.config.agreed(peer.extensions()).has(Extensions::AUTH);
        let theirs = peer.options.authentication.as_deref().filter(|_| agreed);
        let own = self.config.own_auth(random);
        let keys = &self.config.shared_keys;
        match theirs.and_then(|theirs| Authentication::agree(&own, theirs, keys)) {
            Some(auth) if first => auth.is_authentic(packet),
            Some(auth) => !auth.requires_cookie(),
            // An end that requires authentication does not accept a peer that cannot provide it.
            None => !first && !self.config.requires_cookie_authentication(),
        }
    }
}

/// Shortens an INIT ACK that is too long in relation to its INIT: drops reported parameters first, then
/// addresses, last ones first. The rest is never longer than two and a half times the shortest INIT.
pub(super) fn within_measure(config: &Config, question: &Packet, mut answer: Packet) -> Packet {
    let below = config.lower_header.max(LEAST_LOWER_HEADER);
    let most = AMPLIFICATION * (question.wire_len() + below);
    while answer.wire_len() + below > most {
        let Some(Chunk::InitAck(both)) = answer.chunks.first_mut() else { break };
        let init = &mut both.0;
        if init.options.reported.pop().is_none() && init.addresses.pop().is_none() {
            break;
        }
    }
    answer
}

/// Removes the AUTH chunks of a packet out of the blue.
fn leave_out_auth(packet: &mut Packet) {
    packet.chunks.retain(|chunk| chunk.kind() != kind::AUTH);
}

fn init_ack(init: Init, cookie: Bytes) -> Chunk {
    Chunk::InitAck(Box::new((init, Some(cookie))))
}

/// RFC 9260, 8.4 (6) and (7): these chunks are discarded, because an answer would itself be out of the blue.
fn is_left_alone(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::ShutdownComplete { .. } | Chunk::CookieAck => true,
        Chunk::Error(causes) => causes.iter().any(|one| matches!(one, ErrorCause::StaleCookie(_))),
        _ => false,
    }
}

/// The key of new cookies, and the previous one while its cookies may be valid.
#[derive(Clone, Debug)]
struct Keys {
    generator: Generator,
    /// Maximum lifetime of a cookie and of a key.
    life: Duration,
    current: CookieKey,
    since: Time,
    previous: Option<CookieKey>,
}

impl Keys {
    fn new(mut generator: Generator, life: Duration) -> Self {
        let current = CookieKey::new(generator.key());
        Self { generator, life, current, since: Time::ZERO, previous: None }
    }

    fn turn(&mut self, now: Time) {
        let age = now.since(self.since);
        if age < self.life {
            return;
        }
        let last = core::mem::replace(&mut self.current, CookieKey::new(self.generator.key()));
        self.previous = (age < self.life * 2).then_some(last);
        self.since = now;
    }

    fn current(&mut self, now: Time) -> &CookieKey {
        self.turn(now);
        &self.current
    }

    /// The content of a cookie, and the key that sealed it.
    fn open(
        &mut self,
        now: Time,
        cookie: &[u8],
        from: &[u8],
    ) -> Option<(CookieContent, CookieKey)> {
        self.turn(now);
        let keys = [Some(&self.current), self.previous.as_ref()];
        let open = |key: &CookieKey| Some((key.open(cookie, from).ok()?, key.clone()));
        keys.into_iter().flatten().find_map(open)
    }
}
