//! The initiator's side of the handshake: first datagrams until one is answered.

use ropewalk_base::{Duration, Time};

use crate::seal::{Finish, HandshakeError, Initiator, PublicKey, SecretKey, Session, Timestamp};

/// First try again after so long, then twice as long each time, up to [`LONGEST`].
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(4);
/// Tries before the peer counts as silent: half a minute in all.
const TRIES: u32 = 10;

/// A handshake on its way.
pub struct Shaking {
    initiator: Initiator,
    /// To be sent as soon as can be.
    datagram: Option<Vec<u8>>,
    tries: u32,
    next: Time,
    /// The versions that somebody said the peer speaks; not proved.
    pub other_versions: Vec<u8>,
}

/// How an answer was taken.
pub enum Progress {
    /// Nothing has changed, or a datagram is to be sent.
    Waiting,
    /// There is a session.
    Done(Box<Session>),
}

impl Shaking {
    /// Begins with `peer`, which is to address this end by `session`.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn begin(
        now: Time,
        secret: &SecretKey,
        peer: PublicKey,
        session: u32,
        hello: &[u8],
    ) -> Result<Self, HandshakeError> {
        let (initiator, first) = Initiator::new(secret, peer, Timestamp::now(), session, hello)?;
        let next = now + FIRST_WAIT;
        Ok(Self { initiator, datagram: Some(first), tries: 0, next, other_versions: Vec::new() })
    }

    /// The datagram that is to be sent, and the number of the try: each goes by the next path.
    pub fn take_datagram(&mut self) -> Option<(Vec<u8>, usize)> {
        self.datagram.take().map(|datagram| (datagram, self.tries as usize))
    }

    /// An answer has come.
    pub fn take_answer(&mut self, now: Time, answer: &[u8]) -> Progress {
        match self.initiator.finish(now, answer) {
            Ok(Finish::Established(session)) => Progress::Done(session),
            Ok(Finish::Again(datagram)) => {
                self.datagram = Some(datagram);
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
            // Without luck there is none now either; the next try may have some.
            self.datagram = self.initiator.again(Timestamp::now()).ok();
        }
    }
}
