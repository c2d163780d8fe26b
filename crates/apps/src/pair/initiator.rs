//! The end at which the code is typed.

use std::net::SocketAddr;

use ropewalk_runtime::seal::{
    ConfirmedPairing, IntroducedPairing, PAKE_LEN, PairedPeer, PairingError, SecretKey,
    StartedPairing,
};

use super::code::Code;
use super::introduction::Introduction;
use super::message::{Cookie, Id, Message, NO_COOKIE};
use super::responder::random_id;

/// Maximum number of addresses that are tried.
const ADDRESSES_LIMIT: usize = 16;

/// The end at which the code is typed. It starts an exchange with every given address and continues with the one
/// that answers first.
pub struct Initiator {
    introduction: Vec<u8>,
    exchange: Id,
    targets: Vec<SocketAddr>,
    datagram: Vec<u8>,
    state: State,
}

enum State {
    /// Waits for an answer. `pake` is sent again with the cookie of the address that answers first.
    Started { pairing: StartedPairing, pake: [u8; PAKE_LEN], has_cookie: bool },
    /// Has proved the code.
    Proved { token: Id, pairing: Box<ConfirmedPairing> },
    /// Knows the peer, and waits for its confirmation.
    Introduced { pairing: IntroducedPairing, peer: PairedPeer, introduction: Introduction },
    /// Paired. Repeats the last message, to learn at which addresses the peer answers.
    Paired { joined: Joined, confirmation: Vec<u8> },
    /// Ended without a peer.
    Failed(PairingError),
}

/// The result at the initiator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The peer.
    pub peer: PairedPeer,
    /// The peer's introduction.
    pub introduction: Introduction,
    /// The addresses at which it answered.
    pub answered: Vec<SocketAddr>,
}

impl Initiator {
    /// Starts an exchange with the peer at these addresses.
    ///
    /// # Errors
    /// [`PairingError::NoRandomness`].
    pub fn new(
        code: &Code,
        secret: &SecretKey,
        introduction: &Introduction,
        mut targets: Vec<SocketAddr>,
    ) -> Result<Self, PairingError> {
        targets.truncate(ADDRESSES_LIMIT);
        let exchange = random_id().ok_or(PairingError::NoRandomness)?;
        let (pairing, pake) = StartedPairing::new(code.as_str(), secret);
        let datagram = Message::Begin { exchange, pake: &pake, cookie: NO_COOKIE }.encode();
        let state = State::Started { pairing, pake, has_cookie: false };
        Ok(Self { introduction: introduction.encode(), exchange, targets, datagram, state })
    }

    /// The datagram to send to each of these addresses, now and again until something is received.
    pub fn transmit(&self) -> (&[u8], &[SocketAddr]) {
        let targets = match self.state {
            // The exchange continues with the address that answered first.
            State::Started { has_cookie: true, .. }
            | State::Proved { .. }
            | State::Introduced { .. } => &self.targets[..1],
            State::Started { .. } | State::Paired { .. } => &self.targets[..],
            State::Failed(_) => &[],
        };
        (&self.datagram, targets)
    }

    /// The result, once the peer has confirmed.
    pub const fn joined(&self) -> Option<&Joined> {
        match &self.state {
            State::Paired { joined, .. } => Some(joined),
            _ => None,
        }
    }

    /// Why there will be no result.
    pub const fn failed(&self) -> Option<PairingError> {
        match &self.state {
            State::Failed(error) => Some(*error),
            _ => None,
        }
    }

    /// Handles a datagram. Every input is permitted. Returns whether there is a new datagram to send.
    pub fn handle_datagram(&mut self, from: SocketAddr, datagram: &[u8]) -> bool {
        let Some(message) = Message::decode(datagram) else { return false };
        match message {
            Message::Cookie { exchange, cookie } if exchange == self.exchange => {
                self.begin_with(from, cookie)
            }
            Message::Answer { exchange, token, pake } if exchange == self.exchange => {
                self.prove(from, token, pake)
            }
            Message::ResponderIntroduction { exchange, noise } if exchange == self.exchange => {
                self.introduce(noise)
            }
            Message::Confirmation { exchange, noise } if exchange == self.exchange => {
                self.confirm(from, noise)
            }
            Message::Refused { exchange } if exchange == self.exchange => self.refuse(),
            _ => false,
        }
    }

    /// Takes the state if it is the expected one; the caller sets the next.
    fn take(&mut self, expected: impl Fn(&State) -> bool) -> Option<State> {
        let failed = State::Failed(PairingError::WrongCode);
        expected(&self.state).then(|| std::mem::replace(&mut self.state, failed))
    }

    /// Begins with the cookie of this address. The first address that sends one carries the exchange.
    fn begin_with(&mut self, from: SocketAddr, cookie: Cookie) -> bool {
        let State::Started { pake, has_cookie, .. } = &mut self.state else { return false };
        if *has_cookie && self.targets[0] != from {
            return false;
        }
        *has_cookie = true;
        let begin = Message::Begin { exchange: self.exchange, pake, cookie }.encode();
        let is_new = begin != self.datagram;
        self.datagram = begin;
        self.prefer(from);
        is_new
    }

    /// Makes this address the first target.
    fn prefer(&mut self, from: SocketAddr) {
        self.targets.retain(|target| *target != from);
        self.targets.insert(0, from);
    }

    fn prove(&mut self, from: SocketAddr, token: Id, pake: &[u8]) -> bool {
        let started = self.take(|state| matches!(state, State::Started { .. }));
        let Some(State::Started { pairing, .. }) = started else { return false };
        match pairing.confirm(pake) {
            Ok((pairing, noise)) => {
                self.datagram = Message::Proof { token, noise: &noise }.encode();
                self.state = State::Proved { token, pairing: Box::new(pairing) };
                self.prefer(from);
                true
            }
            Err(error) => self.fail(error),
        }
    }

    fn introduce(&mut self, noise: &[u8]) -> bool {
        let proved = self.take(|state| matches!(state, State::Proved { .. }));
        let Some(State::Proved { token, pairing }) = proved else { return false };
        let (pairing, peer, noise) = match pairing.introduce(noise, &self.introduction) {
            Ok(introduced) => introduced,
            Err(error) => return self.fail(error),
        };
        // The peer has proved the code, but its release may send an introduction that this one cannot read.
        let introduction = Introduction::decode(&peer.introduction).unwrap_or_default();
        self.datagram = Message::InitiatorIntroduction { token, noise: &noise }.encode();
        self.state = State::Introduced { pairing, peer, introduction };
        true
    }

    fn confirm(&mut self, from: SocketAddr, noise: &[u8]) -> bool {
        if let State::Paired { joined, confirmation } = &mut self.state {
            if confirmation == noise && !joined.answered.contains(&from) {
                joined.answered.push(from);
            }
            return false;
        }
        let State::Introduced { pairing, .. } = &mut self.state else { return false };
        if !pairing.is_confirmed_by(noise) {
            return false;
        }
        let introduced = self.take(|state| matches!(state, State::Introduced { .. }));
        let Some(State::Introduced { peer, introduction, .. }) = introduced else { return false };
        for address in &introduction.addresses {
            if !self.targets.contains(address) && self.targets.len() < ADDRESSES_LIMIT {
                self.targets.push(*address);
            }
        }
        let joined = Joined { peer, introduction, answered: vec![from] };
        self.state = State::Paired { joined, confirmation: noise.to_vec() };
        true
    }

    /// Anyone who sees the exchange can send this; such an attacker could drop the datagrams as well.
    fn refuse(&mut self) -> bool {
        match self.state {
            State::Proved { .. } | State::Introduced { .. } => self.fail(PairingError::WrongCode),
            _ => false,
        }
    }

    fn fail(&mut self, error: PairingError) -> bool {
        self.state = State::Failed(error);
        false
    }
}
