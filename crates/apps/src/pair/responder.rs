//! The end that shows the code.
//!
//! A datagram that starts an exchange costs neither a place nor a computation on the curve until its sender has shown
//! that it receives at its source address: the responder answers it with a cookie, a keyed hash of the source
//! address, and keeps no state. Each source may then start only a few exchanges per second, so that a flood from some
//! sources leaves room for others.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use ropewalk_base::{Duration, Time};
use ropewalk_runtime::seal::{
    AnsweredPairing, ConfirmedPairing, PairedPeer, PairingError, SecretKey,
};
use subtle::ConstantTimeEq;

use super::code::Code;
use super::introduction::Introduction;
use super::message::{COOKIE_LEN, Cookie, ID_LEN, Id, Message};
use crate::pending::source;

/// Maximum number of half-open exchanges, about 1 kB each. A further one displaces the oldest.
const HALF_OPEN_LIMIT: usize = 256;
/// Maximum number of exchanges of one source within [`SOURCE_INTERVAL`].
const SOURCE_LIMIT: usize = 4;
const SOURCE_INTERVAL: Duration = Duration::from_secs(1);
/// Exchanges that may begin immediately, and interval of further ones. Each costs three multiplications on the curve,
/// about 0.2 ms.
const BURST: u64 = 32;
const EXCHANGE_INTERVAL: Duration = Duration::from_millis(10);

/// The end that shows the code: answers exchanges until one of them proves the code or a wrong code.
pub struct Responder {
    code: Code,
    secret: SecretKey,
    introduction: Vec<u8>,
    cookie_key: [u8; blake3::KEY_LEN],
    half_open: VecDeque<HalfOpen>,
    budget: Budget,
    state: State,
}

/// An exchange whose initiator has not proved its code yet.
struct HalfOpen {
    source: IpAddr,
    begun: Time,
    exchange: Id,
    token: Id,
    /// The initiator's SPAKE2 message, to recognize a retransmission.
    pake: Vec<u8>,
    answer: Vec<u8>,
    pairing: AnsweredPairing,
}

enum State {
    /// No code was proved yet.
    Open,
    /// An initiator proved the code. `proof` and `answer` serve its retransmissions.
    Proved { ids: Ids, proof: Vec<u8>, answer: Vec<u8>, pairing: Box<ConfirmedPairing> },
    /// The initiator proved its key. `answer` serves its retransmissions.
    Paired { ids: Ids, introduction: Vec<u8>, answer: Vec<u8>, peer: PairedPeer },
    /// An initiator used a wrong code.
    Refused(Ids),
}

/// The identifiers of the exchange that used the code.
#[derive(Clone, Copy)]
struct Ids {
    exchange: Id,
    token: Id,
}

/// Limits how many exchanges start.
struct Budget {
    tokens: u64,
    since: Time,
}

impl Responder {
    /// Waits for a peer with this code.
    ///
    /// # Errors
    /// [`PairingError::NoRandomness`].
    pub fn new(
        code: Code,
        secret: SecretKey,
        introduction: &Introduction,
        now: Time,
    ) -> Result<Self, PairingError> {
        let mut cookie_key = [0; blake3::KEY_LEN];
        getrandom::fill(&mut cookie_key).map_err(|_| PairingError::NoRandomness)?;
        Ok(Self {
            code,
            secret,
            introduction: introduction.encode(),
            cookie_key,
            half_open: VecDeque::new(),
            budget: Budget { tokens: BURST, since: now },
            state: State::Open,
        })
    }

    /// Handles a datagram from this address, and returns the answer to it. Every input is permitted.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Option<Vec<u8>> {
        match Message::decode(datagram)? {
            Message::Begin { exchange, pake, cookie } => {
                if !matches!(self.state, State::Open) {
                    return None;
                }
                let expected = self.cookie(from);
                if !bool::from(cookie.ct_eq(&expected)) {
                    return Some(Message::Cookie { exchange, cookie: expected }.encode());
                }
                self.begin(now, source(from.ip()), exchange, pake)
            }
            Message::Proof { token, noise } => self.check_proof(token, noise),
            Message::InitiatorIntroduction { token, noise } => self.finish(token, noise),
            _ => None,
        }
    }

    /// The peer, once it has proved the code and its key.
    pub const fn paired(&self) -> Option<&PairedPeer> {
        match &self.state {
            State::Paired { peer, .. } => Some(peer),
            _ => None,
        }
    }

    /// Whether a peer used a wrong code. The code can no longer be used.
    pub const fn is_refused(&self) -> bool {
        matches!(self.state, State::Refused(_))
    }

    /// Whether a peer has proved the code and has not proved its key yet.
    pub const fn is_proved(&self) -> bool {
        matches!(self.state, State::Proved { .. })
    }

    /// Exchanges that are half open.
    #[cfg(test)]
    pub(super) fn half_open(&self) -> usize {
        self.half_open.len()
    }

    /// The cookie that an initiator at this address must present.
    fn cookie(&self, at: SocketAddr) -> Cookie {
        let mut hasher = blake3::Hasher::new_keyed(&self.cookie_key);
        match at.ip().to_canonical() {
            IpAddr::V4(ip) => hasher.update(&ip.octets()),
            IpAddr::V6(ip) => hasher.update(&ip.octets()),
        };
        hasher.update(&at.port().to_be_bytes());
        let mut cookie = [0; COOKIE_LEN];
        hasher.finalize_xof().fill(&mut cookie);
        cookie
    }

    /// Starts an exchange with an initiator that receives at its address.
    fn begin(&mut self, now: Time, source: IpAddr, exchange: Id, pake: &[u8]) -> Option<Vec<u8>> {
        let known = self.half_open.iter().find(|one| one.exchange == exchange && one.pake == pake);
        if let Some(known) = known {
            return Some(known.answer.clone());
        }
        let recent =
            |one: &&HalfOpen| one.source == source && now.since(one.begun) < SOURCE_INTERVAL;
        let is_crowded = self.half_open.iter().filter(recent).count() >= SOURCE_LIMIT;
        if is_crowded || !self.budget.take(now) {
            return None;
        }
        let token = random_id()?;
        let (pairing, own) = AnsweredPairing::new(self.code.as_str(), &self.secret, pake).ok()?;
        let answer = Message::Answer { exchange, token, pake: &own }.encode();
        if self.half_open.len() == HALF_OPEN_LIMIT {
            self.half_open.pop_front();
        }
        let pake = pake.to_vec();
        self.half_open.push_back(HalfOpen {
            source,
            begun: now,
            exchange,
            token,
            pake,
            answer: answer.clone(),
            pairing,
        });
        Some(answer)
    }

    /// Checks the first proof, which uses up the code whether or not it is right.
    fn check_proof(&mut self, token: Id, noise: &[u8]) -> Option<Vec<u8>> {
        match &self.state {
            State::Open => {}
            State::Proved { ids, proof, answer, .. } => {
                return (ids.token == token && proof == noise).then(|| answer.clone());
            }
            State::Refused(ids) if ids.token == token => return Some(refusal(*ids)),
            _ => return None,
        }
        let at = self.half_open.iter().position(|one| one.token == token)?;
        let HalfOpen { exchange, pairing, .. } = self.half_open.remove(at)?;
        self.half_open.clear();
        let ids = Ids { exchange, token };
        let Ok((pairing, own)) = pairing.check_code(noise, &self.introduction) else {
            self.state = State::Refused(ids);
            return Some(refusal(ids));
        };
        let answer = Message::ResponderIntroduction { exchange, noise: &own }.encode();
        let proof = noise.to_vec();
        let pairing = Box::new(pairing);
        self.state = State::Proved { ids, proof, answer: answer.clone(), pairing };
        Some(answer)
    }

    fn finish(&mut self, token: Id, noise: &[u8]) -> Option<Vec<u8>> {
        if let State::Paired { ids, introduction, answer, .. } = &self.state {
            return (ids.token == token && introduction == noise).then(|| answer.clone());
        }
        let State::Proved { ids, .. } = &self.state else { return None };
        if ids.token != token {
            return None;
        }
        let State::Proved { ids, pairing, .. } = std::mem::replace(&mut self.state, State::Open)
        else {
            return None;
        };
        let Ok((peer, own)) = pairing.finish(noise) else {
            self.state = State::Refused(ids);
            return Some(refusal(ids));
        };
        let answer = Message::Confirmation { exchange: ids.exchange, noise: &own }.encode();
        let introduction = noise.to_vec();
        self.state = State::Paired { ids, introduction, answer: answer.clone(), peer };
        Some(answer)
    }
}

impl Budget {
    fn take(&mut self, now: Time) -> bool {
        let interval = EXCHANGE_INTERVAL.as_nanos();
        let earned = now.since(self.since).as_nanos() / interval;
        self.tokens = (self.tokens + earned).min(BURST);
        self.since = self.since.saturating_add(Duration::from_nanos(earned * interval));
        if self.tokens == 0 {
            return false;
        }
        self.tokens -= 1;
        true
    }
}

fn refusal(ids: Ids) -> Vec<u8> {
    Message::Refused { exchange: ids.exchange }.encode()
}

/// Random bytes that identify an exchange.
pub(super) fn random_id() -> Option<Id> {
    let mut id = [0; ID_LEN];
    getrandom::fill(&mut id).ok()?;
    Some(id)
}
