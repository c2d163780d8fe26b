//! The responder's side: who knocks, and sessions of which nothing has come yet.

use std::collections::VecDeque;
use std::net::SocketAddr;

use ropewalk_base::{Duration, Time};

use super::hello::Hello;
use super::peer::Route;
use crate::seal::{Allowed, Answer, KeyError, Responder, SecretKey, Session};

/// Sessions whose initiator has not used them yet, at most: the oldest goes first. Each costs a
/// static key that is allowed, or an address that was proved.
const HALF_OPEN_LIMIT: usize = 256;

/// An initiator that got its answer uses it within so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// A session of which nothing has come yet.
pub struct HalfOpen {
    /// It.
    pub session: Session,
    /// What the initiator said.
    pub hello: Hello,
    since: Time,
}

/// Who may come in.
pub struct Door {
    responder: Responder,
    half_open: VecDeque<HalfOpen>,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Door({} half open)", self.half_open.len())
    }
}

impl Door {
    /// A door that those with keys in `allowed` may pass.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn new(secret: SecretKey, allowed: Allowed) -> Result<Self, KeyError> {
        let responder = Responder::new(secret, allowed)?;
        Ok(Self { responder, half_open: VecDeque::new() })
    }

    /// A first datagram. Returns what is to be answered.
    pub fn knock(
        &mut self,
        now: Time,
        route: Route,
        datagram: &[u8],
        session_id: u32,
    ) -> Option<Vec<u8>> {
        while self.half_open.front().is_some_and(|half| now.since(half.since) > PATIENCE) {
            self.half_open.pop_front();
        }
        let from: SocketAddr = route.remote;
        match self.responder.handle(now, from, datagram, session_id) {
            Answer::Drop => None,
            Answer::Reply(reply) => Some(reply),
            Answer::Established(established) => {
                let hello = Hello::decode(&established.payload)?;
                if self.half_open.len() >= HALF_OPEN_LIMIT {
                    self.half_open.pop_front();
                }
                let session = established.session;
                self.half_open.push_back(HalfOpen { session, hello, since: now });
                Some(established.reply)
            }
        }
    }

    /// The half-open session with that number, if its peer has sealed this datagram: it is opened in place.
    pub fn enter(&mut self, now: Time, id: u32, datagram: &mut [u8]) -> Option<Entered> {
        let at = self.half_open.iter().position(|half| half.session.id() == id)?;
        let opened = self.half_open[at].session.open(now, datagram).ok()?;
        let half = self.half_open.remove(at)?;
        Some(Entered { half, path: opened.path, body: opened.body })
    }
}

/// Somebody has come in.
pub struct Entered {
    /// With this session.
    pub half: HalfOpen,
    /// On this path.
    pub path: u8,
    /// Where the content of the datagram is.
    pub body: std::ops::Range<usize>,
}
