//! Whoever waits for associations and keeps nothing of those who only knock (RFC 9260, 5.1 and 8.4).

mod limit;

use core::net::IpAddr;

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Serial32, Time};

use self::limit::AnswerLimit;
use super::cause::ErrorCause;
use super::chunk::Chunk;
use super::config::Config;
use super::cookie::{CookieContent, CookieKey};
use super::init::{Init, InitOptions};
use super::packet::Packet;
use super::randomness::{Generator, Randomness};

/// Answers packets that belong to no association: INIT with a cookie, a cookie that comes back with an
/// association to be made, and all else as little as the RFC allows.
///
/// What `from` names is what a cookie is bound to. A driver puts the source address and both SCTP ports into it
/// (RFC 9260, 5.1.5, 3).
///
/// It has the same size after a million INITs as after none. Whoever drives it looks for an association
/// of the packet's source first: INIT and COOKIE ECHO from a peer that has one are that one's affair, and
/// packets from a source that is no unicast address are nobody's (8.4, 1).
#[derive(Clone, Debug)]
pub struct Listener {
    config: Config,
    keys: Keys,
    /// ABORTs and the like: a storm of them helps nobody.
    limit: AnswerLimit,
}

/// What a packet out of the blue calls for.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Silence.
    Nothing,
    /// This packet, to where the other came from, and nothing is kept.
    Reply(Packet),
    /// An association, by [`super::Association::accepted`]; what came beside the cookie is left in the
    /// packet, and is for it.
    Accept(Box<Accepted>),
}

/// A proven peer.
#[derive(Clone, Debug)]
pub struct Accepted {
    pub(super) content: CookieContent,
    /// What the cookie was sealed with: it may come again, should the COOKIE ACK be lost.
    pub(super) seal: CookieSeal,
}

/// A key, and the place that a cookie is good for.
#[derive(Clone, Debug)]
pub(super) struct CookieSeal {
    key: CookieKey,
    context: Box<[u8]>,
}

impl CookieSeal {
    /// What the cookie holds, if it is of this seal.
    pub fn open(&self, cookie: &[u8]) -> Option<CookieContent> {
        self.key.open(cookie, &self.context).ok()
    }
}

impl Accepted {
    /// What the peer said in its INIT.
    pub const fn peer(&self) -> &Init {
        &self.content.peer
    }

    /// The tag of packets to this end, and that of packets to the peer.
    pub const fn tags(&self) -> (u32, u32) {
        (self.content.local_tag, self.content.peer.tag)
    }
}

/// An answer has at most so many times the bytes of the question, headers below included: a stranger
/// whose address somebody else writes into INITs is not buried under answers.
const AMPLIFICATION: u32 = 3;
/// The least header below SCTP: IPv4.
const LEAST_LOWER_HEADER: u32 = 20;

impl Listener {
    /// A listener for associations with these knobs. On a real network the randomness is a
    /// [`Secret`](super::Secret).
    pub fn new(config: Config, randomness: impl Into<Randomness>) -> Self {
        let life = config.cookie_life + config.rto.max;
        Self {
            config,
            keys: Keys::new(Generator::new(randomness.into(), "listener"), life),
            limit: AnswerLimit::FULL,
        }
    }

    /// A packet that belongs to no association. `from` is where it came from: address and port, as
    /// bytes that differ from place to place. A cookie is good from there only.
    pub fn handle(&mut self, now: Time, from: &[u8], packet: &mut Packet) -> Answer {
        let has = |wanted: fn(&Chunk) -> bool| packet.chunks.iter().any(wanted);
        // 8.4 in its order; 8.5.1: under tag 0 travels INIT alone.
        if has(|chunk| matches!(chunk, Chunk::Abort { .. })) {
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
            None => return Answer::Nothing,
            Some(_) if packet.tag == 0 => return Answer::Nothing,
            Some(_) => {}
        }
        let answer = if has(|chunk| matches!(chunk, Chunk::ShutdownAck)) {
            Chunk::ShutdownComplete { reflected: true }
        } else if has(is_left_alone) {
            return Answer::Nothing;
        } else {
            Chunk::Abort { reflected: true, causes: Vec::new() }
        };
        self.limited(now, Packet::of(packet.tag, answer))
    }

    /// As [`Listener::handle`], for a port on which nobody listens.
    ///
    /// RFC 9260, 8.4, 3: an INIT that cannot be processed is answered with an ABORT under its initiate tag.
    pub fn refuse(&mut self, now: Time, from: &[u8], packet: &mut Packet) -> Answer {
        let tag = match packet.chunks.as_slice() {
            [Chunk::Init(init)] if packet.tag == 0 && init.tag != 0 => init.tag,
            // 8.5.1: an INIT travels alone and under tag 0.
            [Chunk::Init(_), ..] => return Answer::Nothing,
            [Chunk::CookieEcho(cookie), ..] => match self.keys.open(now, cookie, from) {
                Some((content, _)) if content.local_tag == packet.tag => content.peer.tag,
                _ => return Answer::Nothing,
            },
            _ => return self.handle(now, from, packet),
        };
        self.limited(now, Packet::of(tag, Chunk::Abort { reflected: false, causes: Vec::new() }))
    }

    /// The own addresses to list in INIT ACKs from now on.
    pub fn list_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.config.addresses = Some(addresses);
    }

    fn limited(&mut self, now: Time, packet: Packet) -> Answer {
        if self.limit.allows(now) { Answer::Reply(packet) } else { Answer::Nothing }
    }

    /// INIT (5.1, B): all that is known goes into the cookie.
    fn on_init(&mut self, now: Time, from: &[u8], packet: &Packet, init: &Init) -> Option<Packet> {
        if init.tag == 0 {
            return None;
        }
        if let Some(cause) = init.fault() {
            let abort = Packet::of(init.tag, Chunk::abort(cause));
            return self.limit.allows(now).then_some(abort);
        }
        let (tag, initial_tsn) = self.keys.current(now).fresh(init, now, 0, from);
        let content = CookieContent {
            local_tag: tag,
            local_tsn: initial_tsn,
            peer: init.clone(),
            created: now,
            tie_tags: (0, 0),
            path: PathId(0),
        };
        let cookie = self.keys.current(now).seal(&content, from);
        let answer = self.own_init(tag, initial_tsn, init);
        let answer = Packet::of(init.tag, init_ack(answer, cookie));
        Some(within_measure(&self.config, packet, answer))
    }

    fn own_init(&self, tag: u32, initial_tsn: Serial32, peer: &Init) -> Init {
        let config = &self.config;
        Init {
            tag,
            window: config.receive_capacity().clamp(1500, u32::MAX as u64) as u32,
            // 3.3.3: no more than the INIT allows.
            outbound_streams: config.streams.min(peer.inbound_streams),
            inbound_streams: config.streams,
            initial_tsn,
            addresses: config.listed_addresses(),
            preserve_millis: 0,
            options: InitOptions {
                extensions: config.listed_extensions(),
                ecn: config.lists_ecn(),
                reported: peer.options.unknown_padded(),
                ..InitOptions::default()
            },
        }
    }

    /// COOKIE ECHO (5.1, D; 5.1.5).
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
        packet.chunks.remove(0);
        let seal = CookieSeal { key, context: from.into() };
        Answer::Accept(Box::new(Accepted { content, seal }))
    }
}

/// Leaves out of an INIT ACK what makes it too large for its INIT: reports first, then addresses,
/// the last ones first. What remains is never more than two and a half times the least INIT.
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

fn init_ack(init: Init, cookie: Bytes) -> Chunk {
    Chunk::InitAck(Box::new((init, cookie)))
}

/// 8.4, 6 and 7: answers to these would themselves be out of the blue.
fn is_left_alone(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::ShutdownComplete { .. } | Chunk::CookieAck => true,
        Chunk::Error(causes) => causes.iter().any(|one| matches!(one, ErrorCause::StaleCookie(_))),
        _ => false,
    }
}

/// The key of new cookies, and the one before, as long as cookies of it may be alive.
#[derive(Clone, Debug)]
struct Keys {
    generator: Generator,
    /// The longest life of a cookie: after as long there is another key.
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

    /// What a cookie holds, and the key that it was sealed with.
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
