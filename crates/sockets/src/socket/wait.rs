//! Waiting of calls. The wait itself takes place outside of the critical section ([`crate::critical`]).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::{Link, Socket};
use crate::errno::{Errno, Result};
use crate::pair::{Await, Pair};

/// Why an attempt of a call returned no result.
pub enum Stop {
    /// The call fails.
    Error(Errno),
    /// The call waits.
    Wait(Wait),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Error(errno)
    }
}

/// Result of an attempt of a call that may wait.
pub type Attempted<T> = std::result::Result<T, Stop>;

/// Longest wait, and its pauses, for a peer in this process. Its answers take about 1 ms.
const OWN_PEER_LIMIT: Duration = Duration::from_millis(100);
const OWN_PEER_PAUSE: Duration = Duration::from_micros(200);

/// Waits for a peer in this process. On Linux, a packet to a socket of the same machine and the answers to it are
/// handled before the call returns that sends it, so that a program that talks with itself finds the result.
#[expect(clippy::disallowed_methods, reason = "a short wait, which no signal interrupts")]
pub fn await_own_peer(is_done: impl Fn() -> bool) {
    let mut left = OWN_PEER_LIMIT;
    while !is_done() && !left.is_zero() {
        std::thread::sleep(OWN_PEER_PAUSE);
        left -= OWN_PEER_PAUSE;
    }
}

impl Socket {
    /// Waits until `is_done` holds for an association, or it has ended, if its peer is in this process.
    pub(super) fn await_own_peer(&self, id: i32, is_done: impl Fn(&Link) -> bool) {
        if self.lock().links.get(&id).is_some_and(|link| link.has_own_peer) {
            await_own_peer(|| {
                let state = &*self.lock();
                state.links.get(&id).is_none_or(|link| link.ended || is_done(link))
            });
        }
    }
}

/// A waiting call.
#[derive(Debug)]
pub struct Wait {
    socket: Arc<Socket>,
    until: Until,
}

/// What it waits for.
#[derive(Debug)]
pub enum Until {
    /// Until the socket is readable. The call is then attempted again.
    Readable,
    /// Until the socket is writable. The call is then attempted again.
    Writable,
    /// Until the association of a one-to-one socket is established, or has failed.
    Connected(i32),
    /// Until another outcome is known.
    Outcome(Arc<Waiter>),
}

/// How a call continues after its wait.
pub enum Resumed {
    /// It is attempted again.
    Again(Arc<Socket>),
    /// It waits again.
    Wait(Wait),
    /// It has succeeded.
    Done,
}

impl Wait {
    /// A wait of a call on this socket.
    pub fn new(socket: &Arc<Socket>, until: Until) -> Self {
        Self { socket: socket.clone(), until }
    }

    /// The event to wait for, which owns nothing.
    pub fn event(&self) -> Await {
        match &self.until {
            Until::Readable => self.socket.pair.readable(),
            Until::Writable | Until::Connected(_) => self.socket.pair.writable(),
            Until::Outcome(waiter) => waiter.pair.writable(),
        }
    }

    /// Continues after the wait, which has ended with `waited`.
    ///
    /// # Errors
    /// `EINTR`, `EAGAIN` of the wait, and the errors of the outcome. After SO_SNDTIMEO, the handshake continues as
    /// on a nonblocking socket, and the result is `EINPROGRESS`.
    pub fn resume(self, waited: Result<()>) -> Result<Resumed> {
        let in_progress = |errno| match errno {
            Errno(libc::EAGAIN) => Errno(libc::EINPROGRESS),
            other => other,
        };
        match &self.until {
            Until::Readable => waited?,
            Until::Writable => {
                self.socket.end_wait();
                waited?;
            }
            Until::Connected(id) => {
                self.socket.end_wait();
                waited.map_err(in_progress).inspect_err(|_| self.socket.stop_awaiting_outcome())?;
                let done = self.socket.has_connected(*id)?;
                return Ok(if done { Resumed::Done } else { Resumed::Wait(self) });
            }
            Until::Outcome(waiter) => {
                if let Some(outcome) = waiter.outcome.get() {
                    return outcome.map(|()| Resumed::Done);
                }
                waited.map_err(in_progress)?;
                return Ok(Resumed::Wait(self));
            }
        }
        Ok(Resumed::Again(self.socket))
    }

    /// Called when the thread ends during the wait.
    pub fn abandon(self) {
        if !matches!(self.until, Until::Readable) {
            self.socket.end_wait();
        }
        if matches!(self.until, Until::Connected(_)) {
            self.socket.stop_awaiting_outcome();
        }
    }
}

/// An outcome for which one call waits, while the socket's descriptor stays ready for others.
#[derive(Debug)]
pub struct Waiter {
    /// Not writable until the outcome is known.
    pair: Pair,
    outcome: OnceLock<Result<()>>,
}

impl Waiter {
    /// Creates a waiter for a call on the socket with this pair, whose SO_SNDTIMEO applies.
    ///
    /// # Errors
    /// Those of the system, for example if there are no more descriptors.
    pub fn on(socket: &Pair) -> Result<Self> {
        Self::with(socket.private()?)
    }

    /// Creates a waiter for a call that waits for at most `limit`.
    ///
    /// # Errors
    /// Those of the system, for example if there are no more descriptors.
    pub fn at_most(limit: Duration) -> Result<Self> {
        Self::with(Pair::private_at_most(limit)?)
    }

    fn with(pair: Pair) -> Result<Self> {
        pair.fill();
        Ok(Self { pair, outcome: OnceLock::new() })
    }

    /// Returns a guard that ends the call when its last copy is dropped.
    pub fn until_dropped(self: &Arc<Self>) -> Arc<Lingering> {
        Arc::new(Lingering(self.clone()))
    }

    /// Ends the call. Only the first outcome counts.
    pub fn end(&self, outcome: Result<()>) {
        let _ = self.outcome.set(outcome);
        self.pair.drain();
    }
}

/// Held while an association is being closed and a call to `close` waits for it.
#[derive(Debug)]
pub struct Lingering(Arc<Waiter>);

impl Drop for Lingering {
    fn drop(&mut self) {
        self.0.end(Ok(()));
    }
}
