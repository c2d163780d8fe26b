//! The initiator's side of the handshake: first datagrams until one is answered.

use std::collections::VecDeque;
use std::fmt;

use ropewalk_base::{Duration, Time};

use crate::seal::{
    Finish, HandshakeError, Initiator, PresharedKey, PublicKey, SecretKey, Session, Timestamp,
};

/// First try again after so long, then twice as long each time, up to [`LONGEST`].
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(4);
/// Tries before the peer counts as silent: half a minute in all.
const TRIES: u32 = 10;

/// A handshake on its way.
pub struct HandshakeInProgress {
    initiator: Initiator,
    /// To be sent as soon as can be. Retries that arrive together, genuine or forged, are each obeyed; the
    /// initiator bounds how many.
    datagrams: VecDeque<Vec<u8>>,
    tries: u32,
    next: Time,
    /// The versions that somebody said the peer speaks; not proved.
    other_versions: Vec<u8>,
    /// Whether a pre-shared key is used.
    has_psk: bool,
}

/// A handshake that no session came of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The versions that somebody said the peer speaks; not proved.
    pub other_versions: Vec<u8>,
    /// Whether this end used a pre-shared key.
    pub has_psk: bool,
}

/// How an answer was taken.
pub enum Progress {
    /// Nothing has changed, or a datagram is to be sent.
    Waiting,
    /// There is a session.
    Done(Box<Session>),
}

impl HandshakeInProgress {
    /// Begins with `peer`, which is to address this end by `session`.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn begin(
        now: Time,
        secret: &SecretKey,
        peer: PublicKey,
        psk: Option<PresharedKey>,
        session: u32,
        handshake_payload: &[u8],
    ) -> Result<Self, HandshakeError> {
        let (has_psk, date) = (psk.is_some(), Timestamp::now());
        let (initiator, first) =
            Initiator::with_psk(secret, peer, psk, date, session, handshake_payload)?;
        Ok(Self {
            initiator,
            datagrams: VecDeque::from([first]),
            tries: 0,
            next: now + FIRST_WAIT,
            other_versions: Vec::new(),
            has_psk,
        })
    }

    /// What is known about a handshake that came to nothing.
    pub fn silence(&self) -> Silence {
        Silence { other_versions: self.other_versions.clone(), has_psk: self.has_psk }
    }

    /// The datagram that is to be sent, and the number of the try: each goes by the next path.
    pub fn take_datagram(&mut self) -> Option<(Vec<u8>, usize)> {
        self.datagrams.pop_front().map(|datagram| (datagram, self.tries as usize))
    }

    /// An answer has come.
    pub fn take_answer(&mut self, now: Time, answer: &[u8]) -> Progress {
        match self.initiator.finish(now, answer) {
            Ok(Finish::Established(session)) => Progress::Done(session),
            Ok(Finish::Again(datagram)) => {
                self.datagrams.push_back(datagram);
                Progress::Waiting
            }
            Err(HandshakeError::OtherVersion(versions)) => {
                self.other_versions = versions;
                Progress::Waiting
            }
            Err(_) => Progress::Waiting,
        }
    }

    /// Whether the peer has had its chances.
    pub const fn is_hopeless(&self) -> bool {
        self.tries >= TRIES
    }

    /// When to try again.
    pub fn next_deadline(&self) -> Option<Time> {
        (!self.is_hopeless()).then_some(self.next)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.next > now || self.is_hopeless() {
            return;
        }
        self.tries += 1;
        self.next = now + (FIRST_WAIT * (1 << self.tries.min(8))).min(LONGEST);
        if !self.is_hopeless() {
            // Answers to what the last attempt has not sent yet would no longer count. Without random numbers
            // there is no datagram now; the next try may get some.
            self.datagrams = self.initiator.again(Timestamp::now()).into_iter().collect();
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
