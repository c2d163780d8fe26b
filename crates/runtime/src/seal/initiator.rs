//! The initiator of a handshake: it knows the responder's public key and sends the first datagram.
//!
//! An attacker that sees a first datagram can forge Retry and Versions, which need no secret. Therefore neither ends
//! an attempt nor changes what the initiator accepts. A forged Retry only causes one more datagram, and a Reply to
//! any datagram of the attempt completes the handshake. Noise authenticates the Reply.

use core::fmt;
use std::collections::VecDeque;

use ropewalk_base::Time;
use snow::HandshakeState;

use super::cipher::{Cipher, CipherOffer};
use super::clock_refusal::{ClockContent, ClockRefusal};
use super::keys::{PublicKey, SecretKey};
use super::mac::{Mac, MacKey};
use super::noise;
use super::psk::PresharedKey;
use super::session::{Role, Session, SessionEnds};
use super::timestamp::Timestamp;
use super::wire::{
    CHOICE_LEN, CLOCK_LEN, FIRST_MIN, Kind, MAC_LEN, NOISE_FIRST_LEN, OFFER_LEN, PAYLOAD_MAX,
    PREFIX_LEN, REPLY_LEN, RETRY_LEN, TOKEN_LEN, VERSION, bytes_at, prefix,
};

/// Maximum number of Retries that are followed in one attempt. Without an attacker one is enough. With one, the
/// genuine Retry must be among the first 4096; within a round trip of 20 ms, more means over 200 000 forged Retries
/// per second.
const RETRIES_LIMIT: u32 = 4096;
/// Datagrams with a token that an attempt remembers.
const RECENT_LIMIT: usize = 16;
/// Maximum number of versions of the peer that are reported.
const VERSIONS_SHOWN: usize = 8;

/// A handshake that waits for its answer.
pub struct Initiator {
    secret: SecretKey,
    peer: PublicKey,
    psk: Option<PresharedKey>,
    mac_key: MacKey,
    session_id: u32,
    offer: CipherOffer,
    payload: Vec<u8>,
    newest: Timestamp,
    attempt: Option<Attempt>,
}

/// One Noise message, and the datagrams in which it was sent: one without a token, and one for each Retry.
struct Attempt {
    state: HandshakeState,
    /// The Noise message, sent again with each requested token.
    message: Vec<u8>,
    /// MAC of the datagram without a token, which Retry and Versions answer.
    mac: Mac,
    /// The latest datagrams with a token, oldest first.
    recent: VecDeque<WithToken>,
    retries: u32,
}

/// A datagram that was sent with a token.
struct WithToken {
    token: [u8; TOKEN_LEN],
    mac: Mac,
}

/// Result of an accepted answer.
#[derive(Debug)]
pub enum Finish {
    /// The handshake is complete and the peer authenticated.
    Established(Box<Session>),
    /// The peer asks for a proof of our address: send it this datagram.
    Again(Vec<u8>),
}

/// Why there is no session, or not yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The payload does not fit into a first datagram; its size in bytes.
    #[error("a payload of {0} bytes; a handshake carries at most {PAYLOAD_MAX}")]
    PayloadTooLong(usize),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    NoRandomness,
    /// The datagram does not answer this handshake. Continue to wait.
    #[error("no answer to this handshake")]
    NotOurs,
    /// The datagram is not from the peer, or was modified. Continue to wait.
    #[error("an answer that is not from the peer")]
    Forged,
    /// A token that was already sent back.
    #[error("a demand for a token that was sent back already")]
    KnownToken,
    /// The attempt has followed its maximum number of Retries. A new attempt may follow the same number again.
    #[error("the peer asked more than {RETRIES_LIMIT} times for a proof of our address")]
    TooManyRetries,
    /// An unauthenticated answer says that the peer supports only these versions. Continue to wait for another
    /// answer.
    #[error(
        "the peer speaks version {0:?} of the sealing, and this is version {VERSION}; \
         install the same release of ropewalk on both machines"
    )]
    OtherVersion(Vec<u8>),
    /// The peer chose a cipher that was not offered; the cipher's number.
    #[error("the peer chose cipher {0}, which was not offered")]
    Cipher(u8),
    /// The peer refuses the date of this attempt, which has ended.
    #[error("{0}")]
    OldDate(ClockRefusal),
}

impl Initiator {
    /// Starts a handshake with the responder whose public key is `peer`. Returns the first datagram. `now` must be
    /// later than in all previous handshakes with this secret. The peer will address the session by `session_id`. The
    /// responder receives `payload`, sealed, of at most [`PAYLOAD_MAX`] bytes.
    ///
    /// # Errors
    /// [`HandshakeError::PayloadTooLong`] or [`HandshakeError::NoRandomness`].
    pub fn new(
        secret: &SecretKey,
        peer: PublicKey,
        now: Timestamp,
        session_id: u32,
        payload: &[u8],
    ) -> Result<(Self, Vec<u8>), HandshakeError> {
        Self::with_psk(secret, peer, None, now, session_id, payload)
    }

    /// Like [`Initiator::new`], with a pre-shared key. The responder must have the same key and require it of this
    /// peer.
    ///
    /// # Errors
    /// Like [`Initiator::new`].
    pub fn with_psk(
        secret: &SecretKey,
        peer: PublicKey,
        psk: Option<PresharedKey>,
        now: Timestamp,
        session_id: u32,
        payload: &[u8],
    ) -> Result<(Self, Vec<u8>), HandshakeError> {
        if payload.len() > PAYLOAD_MAX {
            return Err(HandshakeError::PayloadTooLong(payload.len()));
        }
        let mut initiator = Self {
            secret: secret.clone(),
            peer,
            psk,
            mac_key: MacKey::of(&peer),
            session_id,
            offer: CipherOffer::of_this_machine(),
            payload: payload.to_vec(),
            newest: now,
            attempt: None,
        };
        let first = initiator.attempt(now)?;
        Ok((initiator, first))
    }

    /// Starts a new attempt after no answer arrived, and returns its first datagram. Answers to earlier attempts no
    /// longer count. (If only the reply was lost, the responder would refuse the same datagram as a replay.)
    ///
    /// # Errors
    /// [`HandshakeError::NoRandomness`].
    pub fn restart(&mut self, now: Timestamp) -> Result<Vec<u8>, HandshakeError> {
        let later = Timestamp::from_unix_nanos(self.newest.as_unix_nanos().saturating_add(1));
        self.attempt(now.max(later))
    }

    fn attempt(&mut self, now: Timestamp) -> Result<Vec<u8>, HandshakeError> {
        let prefix = self.prefix();
        let failed = |_| HandshakeError::NoRandomness;
        let mut state = noise::initiator(&self.secret, &self.peer, self.psk.as_ref(), &prefix)
            .map_err(failed)?;
        let mut message = Vec::new();
        noise::write(&mut state, &self.content(now), NOISE_FIRST_LEN, &mut message)
            .map_err(failed)?;
        let (datagram, mac) = self.datagram(&message, &[0; TOKEN_LEN]);
        self.newest = now;
        self.attempt = Some(Attempt { state, message, mac, recent: VecDeque::new(), retries: 0 });
        Ok(datagram)
    }

    /// The content of the first Noise message, padded with zeros.
    fn content(&self, now: Timestamp) -> Vec<u8> {
        let mut content = now.as_unix_nanos().to_be_bytes().to_vec();
        content.push(self.offer.byte());
        let length = u16::try_from(self.payload.len()).expect("checked before");
        content.extend(length.to_be_bytes());
        content.extend(&self.payload);
        let around = PREFIX_LEN + TOKEN_LEN + NOISE_FIRST_LEN + MAC_LEN;
        content.resize(content.len().max(FIRST_MIN - around), 0);
        debug_assert!(content.len() >= OFFER_LEN);
        content
    }

    fn prefix(&self) -> [u8; PREFIX_LEN] {
        let kind = if self.psk.is_some() { Kind::FirstWithPsk } else { Kind::First };
        prefix(kind, self.session_id)
    }

    fn datagram(&self, message: &[u8], token: &[u8; TOKEN_LEN]) -> (Vec<u8>, Mac) {
        let mut datagram = self.prefix().to_vec();
        datagram.extend(token);
        datagram.extend(message);
        let mac = self.mac_key.sign_first(&mut datagram);
        (datagram, mac)
    }

    /// Handles a datagram that may be the answer. Only the peer's genuine Reply or Clock affects what is accepted
    /// afterwards.
    ///
    /// # Errors
    /// [`HandshakeError`]; the handshake continues to wait.
    pub fn finish(&mut self, now: Time, datagram: &[u8]) -> Result<Finish, HandshakeError> {
        let kind = Kind::of(datagram).filter(|kind| !kind.is_first());
        let (Some(kind), Some(attempt)) = (kind, &self.attempt) else {
            return Err(HandshakeError::NotOurs);
        };
        if bytes_at(datagram, 2) != Some(self.session_id.to_be_bytes()) {
            return Err(HandshakeError::NotOurs);
        }
        let authentic = match kind {
            Kind::Reply => datagram.len() == REPLY_LEN && attempt.accepts(&self.mac_key, datagram),
            Kind::Clock => datagram.len() == CLOCK_LEN && attempt.accepts(&self.mac_key, datagram),
            _ => self.mac_key.check_answer(&attempt.mac, datagram),
        };
        if !authentic {
            return Err(HandshakeError::Forged);
        }
        let body = &datagram[PREFIX_LEN..datagram.len() - MAC_LEN];
        match kind {
            Kind::Versions => Err(HandshakeError::other_version(body)),
            // A responder of another version would answer with Versions.
            _ if datagram[1] != VERSION => Err(HandshakeError::Forged),
            Kind::Retry if datagram.len() == RETRY_LEN => self.retry(body).map(Finish::Again),
            Kind::Reply => self.establish(now, body),
            Kind::Clock => Err(self.read_clock(body)),
            _ => Err(HandshakeError::Forged),
        }
    }

    /// Sends the same Noise message again, with the token from the Retry.
    fn retry(&mut self, token: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        let token = token.try_into().map_err(|_| HandshakeError::Forged)?;
        let attempt = self.attempt.as_ref().ok_or(HandshakeError::NotOurs)?;
        if attempt.recent.iter().any(|sent| sent.token == token) {
            return Err(HandshakeError::KnownToken);
        }
        if attempt.retries >= RETRIES_LIMIT {
            return Err(HandshakeError::TooManyRetries);
        }
        let (datagram, mac) = self.datagram(&attempt.message, &token);
        let attempt = self.attempt.as_mut().ok_or(HandshakeError::NotOurs)?;
        attempt.retries += 1;
        if attempt.recent.len() == RECENT_LIMIT {
            attempt.recent.pop_front();
        }
        attempt.recent.push_back(WithToken { token, mac });
        Ok(datagram)
    }

    fn establish(&mut self, now: Time, message: &[u8]) -> Result<Finish, HandshakeError> {
        let (attempt, choice) = self.read_second(message)?;
        let choice: [u8; CHOICE_LEN] =
            choice.as_slice().try_into().map_err(|_| HandshakeError::Forged)?;
        let [a, b, c, d, number] = choice;
        let cipher = Cipher::chosen(number, self.offer).ok_or(HandshakeError::Cipher(number))?;
        let ends = SessionEnds {
            role: Role::Initiator,
            id: self.session_id,
            peer_id: u32::from_be_bytes([a, b, c, d]),
            peer: self.peer,
        };
        let secrets = noise::secrets(attempt.state);
        Ok(Finish::Established(Box::new(Session::new(ends, cipher, &secrets, now))))
    }

    /// Reads the second Noise message, which ends the attempt. A message from anyone but the peer changes
    /// nothing.
    fn read_second(&mut self, message: &[u8]) -> Result<(Attempt, Vec<u8>), HandshakeError> {
        let mut attempt = self.attempt.take().ok_or(HandshakeError::NotOurs)?;
        let Some(content) = noise::read(&mut attempt.state, message) else {
            // A message that cannot be read does not change the handshake state.
            self.attempt = Some(attempt);
            return Err(HandshakeError::Forged);
        };
        Ok((attempt, content))
    }

    fn read_clock(&mut self, message: &[u8]) -> HandshakeError {
        let content = match self.read_second(message) {
            Ok((_, content)) => ClockContent::parse(&content),
            Err(error) => return error,
        };
        content.map_or(HandshakeError::Forged, |ClockContent { peer, newest }| {
            HandshakeError::OldDate(ClockRefusal { own: self.newest, peer, newest })
        })
    }

    /// Simulates a machine with only these ciphers, from the next attempt on.
    #[cfg(test)]
    pub(super) const fn set_offer(&mut self, offer: CipherOffer) {
        self.offer = offer;
    }
}

impl Attempt {
    /// Whether a Reply may answer a datagram of this attempt. The MAC check prevents third parties that saw no
    /// datagram from causing a Diffie-Hellman. Once there were so many Retries that some MACs were forgotten,
    /// only Noise decides, because the genuine Reply may answer a forgotten datagram.
    fn accepts(&self, key: &MacKey, reply: &[u8]) -> bool {
        let forgotten = self.retries as usize > self.recent.len();
        let macs = self.recent.iter().map(|sent| &sent.mac);
        forgotten
            || key.check_answer(&self.mac, reply)
            || macs.rev().any(|mac| key.check_answer(mac, reply))
    }
}

impl HandshakeError {
    /// The error for an unauthenticated list of the peer's versions.
    fn other_version(versions: &[u8]) -> Self {
        // A genuine responder with this version does not send Versions.
        let nonsense = versions.is_empty() || versions.contains(&VERSION);
        let shown = &versions[..versions.len().min(VERSIONS_SHOWN)];
        if nonsense { Self::Forged } else { Self::OtherVersion(shown.to_vec()) }
    }
}

impl fmt::Debug for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Initiator")
            .field("peer", &self.peer)
            .field("session_id", &self.session_id)
            .finish_non_exhaustive()
    }
}
