//! The responder of a handshake: it answers first datagrams of allowed peers and keeps no state for others.

use core::fmt;
use core::net::SocketAddr;
use std::collections::VecDeque;

use ropewalk_base::Time;
use snow::HandshakeState;

use super::allowed::{Allowed, Refusal, Refused};
use super::cipher::{Cipher, CipherOffer};
use super::clock_refusal::{CLOCK_TOLERANCE, ClockContent};
use super::handshake_replay::{HandshakeReplay, Rejection, UNLISTED_KEYS_MAX};
use super::keys::{KeyError, PublicKey, SecretKey};
use super::mac::{Mac, MacKey};
use super::noise;
use super::psk::PresharedKey;
use super::rate_limiter::RateLimiter;
use super::reply_cache::ReplyCache;
use super::session::{Role, Session, SessionEnds};
use super::timestamp::Timestamp;
use super::token::Tokens;
use super::wire::{
    FIRST_MAX, FIRST_MIN, Kind, MAC_LEN, NOISE_REPLY_LEN, OFFER_LEN, PREFIX_LEN, TOKEN_LEN,
    VERSION, bytes_at, prefix,
};

/// Handshakes per second without a proved address. At 0.3 ms each, they use three percent of one core.
const FREE_PER_SECOND: u32 = 100;

/// Maximum number of refused initiators that are kept until they are read. Further ones are dropped.
const REFUSED_LIMIT: usize = 16;

/// Answers first datagrams.
pub struct Responder {
    secret: SecretKey,
    mac_key: MacKey,
    allowed: Allowed,
    /// The pre-shared key for peers without their own.
    psk: Option<PresharedKey>,
    offer: CipherOffer,
    tokens: Tokens,
    rate_limiter: RateLimiter,
    replay: HandshakeReplay,
    reply_cache: ReplyCache,
    refused: VecDeque<Refused>,
    /// Date for the expiry of entries, which the monotonic clock does not provide.
    date: fn() -> Timestamp,
}

/// What to do about a first datagram.
#[derive(Debug)]
pub enum Answer {
    /// Send no answer.
    Drop,
    /// Send this to the source of the datagram, and keep no state: a Retry, Versions, a Clock, or a repeated Reply to
    /// a first message that has led to a session.
    Reply(Vec<u8>),
    /// A session was created.
    Established(Box<Established>),
}

/// A session that was created for a first datagram.
#[derive(Debug)]
pub struct Established {
    /// The session; [not confirmed](Session::is_confirmed) yet.
    pub session: Session,
    /// Reply to send to the source of the first datagram. If it is lost, the initiator starts a new attempt with the
    /// same session number, and this session becomes useless.
    pub reply: Vec<u8>,
    /// The initiator's key.
    pub peer: PublicKey,
    /// The initiator's payload.
    pub payload: Vec<u8>,
}

/// A first datagram with a valid MAC.
struct First<'a> {
    prefix: [u8; PREFIX_LEN],
    token: [u8; TOKEN_LEN],
    message: &'a [u8],
    mac: Mac,
}

/// Content of the first Noise message.
struct Content {
    sent: Timestamp,
    offer: CipherOffer,
    payload: Vec<u8>,
}

impl Responder {
    /// Creates a responder with this secret key.
    ///
    /// # Errors
    /// [`KeyError::NoRandomness`].
    pub fn new(secret: SecretKey, allowed: Allowed) -> Result<Self, KeyError> {
        let (rate_limiter, replay) = limits(&allowed);
        Ok(Self {
            mac_key: MacKey::of(&secret.public()),
            secret,
            allowed,
            psk: None,
            offer: CipherOffer::of_this_machine(),
            tokens: Tokens::new()?,
            rate_limiter,
            replay,
            reply_cache: ReplyCache::default(),
            refused: VecDeque::new(),
            date: Timestamp::now,
        })
    }

    /// Sets the pre-shared key that is required of peers without their own. `None` requires no key of such
    /// peers.
    pub fn set_psk(&mut self, psk: Option<PresharedKey>) {
        self.psk = psk;
    }

    /// Replaces the list of allowed peers. Existing sessions stay, and so does the replay protection of peers that
    /// remain listed.
    pub fn set_allowed(&mut self, allowed: Allowed) {
        let anyone = |allowed: &Allowed| matches!(allowed, Allowed::Anyone);
        if anyone(&allowed) != anyone(&self.allowed) {
            (self.rate_limiter, self.replay) = limits(&allowed);
        }
        self.replay.retain(|key| allowed.lists(key));
        self.reply_cache.clear();
        self.allowed = allowed;
    }

    /// The peers that may have a session.
    pub const fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    /// Whether initiators were refused since the last call of [`Self::take_refused`].
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Initiators that were refused since the last call, up to a limit.
    pub fn take_refused(&mut self) -> Vec<Refused> {
        self.refused.drain(..).collect()
    }

    /// Answers a first datagram. If it leads to a session, the peer will address that session by `session_id`.
    pub fn handle(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &[u8],
        session_id: u32,
    ) -> Answer {
        let Some(first) = self.first(datagram) else { return Answer::Drop };
        if first.prefix[1] != VERSION {
            return Answer::Reply(self.versions(&first));
        }
        let name = self.mac_key.name(&first.prefix, first.message);
        if let Some(reply) = self.reply_cache.get(now, &name) {
            let mut reply = reply.to_vec();
            self.mac_key.sign_answer(&first.mac, &mut reply);
            return Answer::Reply(reply);
        }
        if self.tokens.is_good(now, from, first.session(), &first.token) {
            if !self.rate_limiter.admits_validated(now, self.tokens.bucket(from.ip())) {
                return Answer::Drop;
            }
        } else if !self.rate_limiter.admits_unvalidated(now) {
            return Answer::Reply(self.retry(now, from, &first));
        }
        let answer = self.establish(now, from, &first, session_id).unwrap_or(Answer::Drop);
        if let Answer::Established(established) = &answer {
            let unsigned = established.reply[..established.reply.len() - MAC_LEN].to_vec();
            self.reply_cache.insert(now, name, unsigned);
        }
        answer
    }

    /// Number of keys whose newest first datagram is remembered, the only state that handshakes leave here. At most
    /// the number of allowed keys, or 16384 if all are allowed.
    pub fn remembered(&self) -> usize {
        self.replay.len()
    }

    /// All checks that need no Diffie-Hellman.
    fn first<'a>(&self, datagram: &'a [u8]) -> Option<First<'a>> {
        let fits = (FIRST_MIN..=FIRST_MAX).contains(&datagram.len());
        if !fits || !Kind::of(datagram).is_some_and(Kind::is_first) {
            return None;
        }
        let mac = self.mac_key.check_first(datagram)?;
        let message = &datagram[PREFIX_LEN + TOKEN_LEN..datagram.len() - MAC_LEN];
        Some(First {
            prefix: bytes_at(datagram, 0)?,
            token: bytes_at(datagram, PREFIX_LEN)?,
            message,
            mac,
        })
    }

    fn versions(&self, first: &First<'_>) -> Vec<u8> {
        let mut answer = prefix(Kind::Versions, first.session()).to_vec();
        answer.push(VERSION);
        self.mac_key.sign_answer(&first.mac, &mut answer);
        answer
    }

    fn retry(&self, now: Time, to: SocketAddr, first: &First<'_>) -> Vec<u8> {
        let mut answer = prefix(Kind::Retry, first.session()).to_vec();
        answer.extend(self.tokens.issue(now, to, first.session()));
        self.mac_key.sign_answer(&first.mac, &mut answer);
        answer
    }

    /// Creates a session, if the initiator may have one. An initiator whose date is old gets a Clock.
    fn establish(
        &mut self,
        now: Time,
        from: SocketAddr,
        first: &First<'_>,
        id: u32,
    ) -> Option<Answer> {
        let mut state = noise::responder(&self.secret, first.has_psk(), &first.prefix).ok()?;
        let content = Content::parse(&noise::read(&mut state, first.message)?)?;
        let peer = PublicKey::of_handshake(bytes_at(state.get_remote_static()?, 0)?);
        match self.admit(&peer, first.has_psk()) {
            Ok(Some(psk)) => noise::set_psk(&mut state, psk).ok()?,
            Ok(None) => {}
            Err(why) => {
                self.note_refused(Refused { peer, from, why });
                return None;
            }
        }
        let cipher = self.offer.common(content.offer)?;
        match self.replay.admit(now, peer, content.sent) {
            Ok(()) => {}
            // A first datagram that is behind by less is late, or its clock will soon pass the newest date.
            Err(Rejection::Old { behind, newest }) if behind >= CLOCK_TOLERANCE => {
                self.note_refused(Refused { peer, from, why: Refusal::ClockBehind(behind) });
                return self.clock(&mut state, first, newest).map(Answer::Reply);
            }
            Err(_) => return None,
        }
        let reply = self.reply(&mut state, first, id, cipher)?;
        let ends = SessionEnds { role: Role::Responder, id, peer_id: first.session(), peer };
        let session = Session::new(ends, cipher, &noise::secrets(state), now);
        let established = Established { session, reply, peer, payload: content.payload };
        Some(Answer::Established(Box::new(established)))
    }

    /// The pre-shared key of this handshake. Either both ends use one, or neither.
    fn admit(&self, peer: &PublicKey, has_psk: bool) -> Result<Option<&PresharedKey>, Refusal> {
        let own = self.allowed.admit(peer, self.date)?;
        match (own.or(self.psk.as_ref()), has_psk) {
            (Some(_), false) => Err(Refusal::PskMissing),
            (None, true) => Err(Refusal::PskUnexpected),
            (psk, _) => Ok(psk),
        }
    }

    fn note_refused(&mut self, refused: Refused) {
        let reason = |why: &Refusal| core::mem::discriminant(why);
        let is_known =
            |one: &Refused| one.peer == refused.peer && reason(&one.why) == reason(&refused.why);
        let known = self.refused.iter().any(is_known);
        if !known && self.refused.len() < REFUSED_LIMIT {
            self.refused.push_back(refused);
        }
    }

    fn reply(
        &self,
        state: &mut HandshakeState,
        first: &First<'_>,
        id: u32,
        cipher: Cipher,
    ) -> Option<Vec<u8>> {
        let mut choice = id.to_be_bytes().to_vec();
        choice.push(cipher.number());
        self.sealed_answer(state, first, Kind::Reply, &choice)
    }

    /// Sends the initiator the local date, and the date that its next first datagram must exceed.
    fn clock(
        &self,
        state: &mut HandshakeState,
        first: &First<'_>,
        newest: Timestamp,
    ) -> Option<Vec<u8>> {
        let content = ClockContent { peer: (self.date)(), newest };
        self.sealed_answer(state, first, Kind::Clock, &content.to_bytes())
    }

    /// The second Noise message, which only the initiator can read.
    fn sealed_answer(
        &self,
        state: &mut HandshakeState,
        first: &First<'_>,
        kind: Kind,
        content: &[u8],
    ) -> Option<Vec<u8>> {
        let mut answer = prefix(kind, first.session()).to_vec();
        noise::write(state, content, NOISE_REPLY_LEN, &mut answer).ok()?;
        self.mac_key.sign_answer(&first.mac, &mut answer);
        Some(answer)
    }

    /// Sets the date, for tests.
    #[cfg(test)]
    pub(super) const fn set_date(&mut self, date: fn() -> Timestamp) {
        self.date = date;
    }

    /// Simulates a machine with only these ciphers.
    #[cfg(test)]
    pub(super) const fn set_offer(&mut self, offer: CipherOffer) {
        self.offer = offer;
    }
}

/// The protection against floods and replays for this list of allowed peers.
fn limits(allowed: &Allowed) -> (RateLimiter, HandshakeReplay) {
    match allowed {
        Allowed::Keys(_) | Allowed::Peers(_) => {
            (RateLimiter::new(FREE_PER_SECOND), HandshakeReplay::of_listed())
        }
        Allowed::Anyone => (RateLimiter::new(0), HandshakeReplay::of_unlisted(UNLISTED_KEYS_MAX)),
    }
}

impl First<'_> {
    /// Whether the handshake uses a pre-shared key.
    fn has_psk(&self) -> bool {
        self.prefix[0] == Kind::FirstWithPsk as u8
    }

    /// The number of the initiator's session.
    fn session(&self) -> u32 {
        let [_, _, a, b, c, d] = self.prefix;
        u32::from_be_bytes([a, b, c, d])
    }
}

impl Content {
    fn parse(content: &[u8]) -> Option<Self> {
        let length = usize::from(u16::from_be_bytes(bytes_at(content, 9)?));
        Some(Self {
            sent: Timestamp::from_unix_nanos(u64::from_be_bytes(bytes_at(content, 0)?)),
            offer: CipherOffer::of_byte(*content.get(8)?),
            payload: content.get(OFFER_LEN..)?.get(..length)?.to_vec(),
        })
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder")
            .field("public", &self.secret.public())
            .field("allowed", &self.allowed)
            .field("remembered", &self.remembered())
            .finish_non_exhaustive()
    }
}
