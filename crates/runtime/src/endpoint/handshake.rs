//! The initiator's side of the handshake: repeats its first datagram until an answer arrives.

use std::collections::VecDeque;
use std::fmt;

use ropewalk_base::{Duration, Time};

use crate::seal::{
    ClockRefusal, Finish, HandshakeError, Initiator, PresharedKey, PublicKey, SecretKey, Session,
    Timestamp,
};

/// First retransmission interval. It doubles with each try, up to [`LONGEST`].
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(4);
/// Tries before the peer counts as silent: about half a minute in all.
const TRIES: u32 = 10;

/// A handshake in progress.
pub struct HandshakeInProgress {
    initiator: Initiator,
    /// Datagrams to send as soon as possible. Every retry request is followed, genuine or forged; the initiator
    /// limits their number.
    datagrams: VecDeque<Vec<u8>>,
    tries: u32,
    next: Time,
    /// Versions that the peer supports, according to an unauthenticated answer.
    other_versions: Vec<u8>,
    /// Whether this end uses a pre-shared key.
    has_psk: bool,
    /// The peer's answer that the date of the handshake is old.
    refusal: Option<ClockRefusal>,
}

/// What is known about a handshake that produced no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Versions that the peer supports, according to an unauthenticated answer.
    pub other_versions: Vec<u8>,
    /// Whether this end used a pre-shared key.
    pub has_psk: bool,
}

/// Result of taking an answer.
pub enum Progress {
    /// No session yet; a datagram may have to be sent.
    Waiting,
    /// The handshake is complete.
    Done(Box<Session>),
    /// The peer has refused it, and has proved that it is the peer.
    Refused,
}

impl HandshakeInProgress {
    /// Starts a handshake. `peer` will address this end by the number `session`.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub fn initiate(
        now: Time,
        secret: &SecretKey,
        peer: PublicKey,
        psk: Option<PresharedKey>,
        session: u32,
        handshake_payload: &[u8],
    ) -> Result<Self, HandshakeError> {
        let (has_psk, date) = (psk.is_some(), Timestamp::of_first_message());
        let (initiator, first) =
            Initiator::with_psk(secret, peer, psk, date, session, handshake_payload)?;
        Ok(Self {
            initiator,
            datagrams: VecDeque::from([first]),
            tries: 0,
            next: now + FIRST_WAIT,
            other_versions: Vec::new(),
            has_psk,
            refusal: None,
        })
    }

    /// The peer's answer that the date of the handshake is old.
    pub const fn refusal(&self) -> Option<ClockRefusal> {
        self.refusal
    }

    /// What is known about the handshake, if it fails.
    pub fn silence(&self) -> Silence {
        Silence { other_versions: self.other_versions.clone(), has_psk: self.has_psk }
    }

    /// The datagram to send and the number of the try: each try uses the next path.
    pub fn take_datagram(&mut self) -> Option<(Vec<u8>, usize)> {
        self.datagrams.pop_front().map(|datagram| (datagram, self.tries as usize))
    }

    /// Handles an answer.
    pub fn take_answer(&mut self, now: Time, answer: &[u8]) -> Progress {
        match self.initiator.finish(now, answer) {
            Ok(Finish::Established(session)) => Progress::Done(session),
            Ok(Finish::Again(datagram)) => {
                self.datagrams.push_back(datagram);
                Progress::Waiting
            }
            Err(HandshakeError::OldDate(refusal)) => {
                self.refusal = Some(refusal);
                Progress::Refused
            }
            Err(HandshakeError::OtherVersion(versions)) => {
                self.other_versions = versions;
                Progress::Waiting
            }
            Err(_) => Progress::Waiting,
        }
    }

    /// Whether all tries are used up, or the peer has refused the handshake.
    pub const fn has_given_up(&self) -> bool {
        self.tries >= TRIES || self.refusal.is_some()
    }

    /// When [`HandshakeInProgress::handle_timeout`] must be called.
    pub fn next_deadline(&self) -> Option<Time> {
        (!self.has_given_up()).then_some(self.next)
    }

    /// Starts the next try if it is due.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.next > now || self.has_given_up() {
            return;
        }
        self.tries += 1;
        self.next = now + (FIRST_WAIT * (1 << self.tries.min(8))).min(LONGEST);
        if !self.has_given_up() {
            // Answers to queued datagrams of the previous attempt would no longer be accepted. If the system provides
            // no random numbers now, the next try may succeed.
            self.datagrams =
                self.initiator.restart(Timestamp::of_first_message()).into_iter().collect();
        }
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the peer did not answer the handshake")?;
        if !self.other_versions.is_empty() {
            let error = HandshakeError::OtherVersion(self.other_versions.clone());
            return write!(f, "; possibly {error}");
        }
        f.write_str(
            "; check its address, its public key, and that it allows ours (an entry may have expired)",
        )?;
        f.write_str(if self.has_psk {
            "; both ends must have the same pre-shared key, and this end uses one"
        } else {
            "; if the server requires a pre-shared key, give it with --psk-file"
        })
    }
}
