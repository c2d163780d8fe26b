//! The end that is reached: it answers who it knows, and keeps nothing for who it does not.

use core::fmt;
use core::net::SocketAddr;
use std::collections::BTreeSet;

use ropewalk_base::Time;
use snow::HandshakeState;

use super::cipher::{Cipher, Offer};
use super::flood::Flood;
use super::keys::{KeyError, PublicKey, SecretKey};
use super::mac::{Mac, MacKey};
use super::noise;
use super::seen::{STRANGERS_MAX, Seen};
use super::session::{Ends, Role, Session};
use super::timestamp::Timestamp;
use super::token::Tokens;
use super::wire::{
    FIRST_MAX, FIRST_MIN, Kind, MAC_LEN, NOISE_REPLY_LEN, OFFER_LEN, PREFIX_LEN, TOKEN_LEN,
    VERSION, bytes_at, prefix,
};

/// Handshakes per second that are done without a proof of the address: at 0.3 ms each, a thirtieth of
/// one core.
const FREE_PER_SECOND: u32 = 100;

/// Who may have a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// Those with these keys.
    Keys(BTreeSet<PublicKey>),
    /// Everybody; who it is, is known nevertheless. Each proves its address first, which costs one
    /// more round trip.
    Anyone,
}

/// Answers first datagrams.
pub struct Responder {
    secret: SecretKey,
    mac_key: MacKey,
    allowed: Allowed,
    offer: Offer,
    tokens: Tokens,
    flood: Flood,
    seen: Seen,
}

/// What to do about a first datagram.
#[derive(Debug)]
pub enum Answer {
    /// Nothing: it is not worth an answer.
    Drop,
    /// Send this to where it came from, and forget it.
    Reply(Vec<u8>),
    /// There is a session.
    Established(Box<Established>),
}

/// A session that a first datagram led to.
#[derive(Debug)]
pub struct Established {
    /// The session; [not confirmed](Session::is_confirmed) yet.
    pub session: Session,
    /// To be sent to where the first datagram came from. Once: if it is lost, the initiator begins
    /// again, with the same number for its session, and this session is of no use any more.
    pub reply: Vec<u8>,
    /// Who it is.
    pub peer: PublicKey,
    /// What the initiator said besides.
    pub payload: Vec<u8>,
}

/// A first datagram whose MAC is right.
struct First<'a> {
    prefix: [u8; PREFIX_LEN],
    token: [u8; TOKEN_LEN],
    message: &'a [u8],
    mac: Mac,
}

/// What the first Noise message says.
struct Said {
    sent: Timestamp,
    offer: Offer,
    payload: Vec<u8>,
}

impl Responder {
    /// A responder with this key.
    ///
    /// # Errors
    /// [`KeyError::NoRandomness`].
    pub fn new(secret: SecretKey, allowed: Allowed) -> Result<Self, KeyError> {
        let (free, seen) = match allowed {
            Allowed::Keys(_) => (FREE_PER_SECOND, Seen::of_listed()),
            Allowed::Anyone => (0, Seen::of_strangers(STRANGERS_MAX)),
        };
        Ok(Self {
            mac_key: MacKey::of(&secret.public()),
            secret,
            allowed,
            offer: Offer::of_this_machine(),
            tokens: Tokens::new()?,
            flood: Flood::new(free),
            seen,
        })
    }

    /// Answers a first datagram. If it leads to a session, the peer will address that by
    /// `session_id`.
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
        if self.tokens.is_good(now, from, first.session(), &first.token) {
            if !self.flood.admits_proved(now, self.tokens.bucket(from.ip())) {
                return Answer::Drop;
            }
        } else if !self.flood.admits_unproved(now) {
            return Answer::Reply(self.retry(now, from, &first));
        }
        let established = self.establish(now, &first, session_id);
        established.map_or(Answer::Drop, |established| Answer::Established(Box::new(established)))
    }

    /// Keys whose newest first datagram is remembered: all that handshakes leave behind here. Never
    /// more than are allowed, and no more than 16384 if all are.
    pub fn remembered(&self) -> usize {
        self.seen.len()
    }

    /// Everything that can be known without a Diffie-Hellman.
    fn first<'a>(&self, datagram: &'a [u8]) -> Option<First<'a>> {
        let fits = (FIRST_MIN..=FIRST_MAX).contains(&datagram.len());
        if !fits || Kind::of(datagram) != Some(Kind::First) {
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

    /// A session, if the initiator may have one.
    fn establish(&mut self, now: Time, first: &First<'_>, id: u32) -> Option<Established> {
        let mut state = noise::responder(&self.secret, &first.prefix).ok()?;
        let said = Said::parse(&noise::read(&mut state, first.message)?)?;
        let peer = PublicKey::from_bytes(bytes_at(state.get_remote_static()?, 0)?).ok()?;
        let known = match &self.allowed {
            Allowed::Keys(keys) => keys.contains(&peer),
            Allowed::Anyone => true,
        };
        let cipher = self.offer.common(said.offer)?;
        if !known || !self.seen.admits(now, peer, said.sent) {
            return None;
        }
        let reply = self.reply(&mut state, first, id, cipher)?;
        let ends = Ends { role: Role::Responder, id, peer_id: first.session(), peer };
        let session = Session::new(ends, cipher, &noise::agreed(state), now);
        Some(Established { session, reply, peer, payload: said.payload })
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
        let mut reply = prefix(Kind::Reply, first.session()).to_vec();
        noise::write(state, &choice, NOISE_REPLY_LEN, &mut reply).ok()?;
        self.mac_key.sign_answer(&first.mac, &mut reply);
        Some(reply)
    }

    /// As on a machine that does only these ciphers well.
    #[cfg(test)]
    pub(super) const fn set_offer(&mut self, offer: Offer) {
        self.offer = offer;
    }
}

impl First<'_> {
    /// The number of the initiator's session.
    fn session(&self) -> u32 {
        let [_, _, a, b, c, d] = self.prefix;
        u32::from_be_bytes([a, b, c, d])
    }
}

impl Said {
    fn parse(content: &[u8]) -> Option<Self> {
        let length = usize::from(u16::from_be_bytes(bytes_at(content, 9)?));
        Some(Self {
            sent: Timestamp::from_unix_nanos(u64::from_be_bytes(bytes_at(content, 0)?)),
            offer: Offer::of_byte(*content.get(8)?),
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
