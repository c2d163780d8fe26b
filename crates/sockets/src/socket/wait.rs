//! What a call waits for. The wait itself happens outside of the critical section ([`crate::critical`]).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::Socket;
use crate::errno::{Errno, Result};
use crate::pair::{Await, Pair};

/// Why an attempt of a call has no result.
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

/// A call that waits.
#[derive(Debug)]
pub struct Wait {
    socket: Arc<Socket>,
    until: Until,
}

/// What it waits for.
#[derive(Debug)]
pub enum Until {
    /// The socket is readable. The call is attempted again then.
    Readable,
    /// The socket is writable. The call is attempted again then.
    Writable,
    /// The association of a one-to-one socket is established, or has failed.
    Connected(i32),
    /// The outcome of something else.
    Outcome(Arc<Waiter>),
}

/// What becomes of a call after it has waited.
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

    /// How to wait without owning anything.
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
    /// `EINTR`, `EAGAIN` of the wait, and the errors of the outcome. After SO_SNDTIMEO, an association continues as that of a
    /// nonblocking socket does: `EINPROGRESS`.
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
                waited.map_err(in_progress)?;
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

    /// The thread of the call has ended while it waited.
    pub fn abandon(self) {
        if !matches!(self.until, Until::Readable) {
            self.socket.end_wait();
        }
    }
}

/// An outcome that one call waits for, while the socket's descriptor stays ready for others.
#[derive(Debug)]
pub struct Waiter {
    /// Not writable until the outcome is known.
    pair: Pair,
    outcome: OnceLock<Result<()>>,
}

impl Waiter {
    /// For a call on the socket with this pair, whose SO_SNDTIMEO applies.
    ///
    /// # Errors
    /// As the system says: no more descriptors.
    pub fn on(socket: &Pair) -> Result<Self> {
        Self::with(socket.private()?)
    }

    /// For a call that waits no longer than this.
    ///
    /// # Errors
    /// As the system says: no more descriptors.
    pub fn at_most(limit: Duration) -> Result<Self> {
        Self::with(Pair::private_at_most(limit)?)
    }

    fn with(pair: Pair) -> Result<Self> {
        pair.fill();
        Ok(Self { pair, outcome: OnceLock::new() })
    }

    /// Ends the call when the last copy of what this returns is dropped.
    pub fn until_dropped(self: &Arc<Self>) -> Arc<Lingering> {
        Arc::new(Lingering(self.clone()))
    }

    /// Ends the call. Only the first outcome counts.
    pub fn end(&self, outcome: Result<()>) {
        let _ = self.outcome.set(outcome);
        self.pair.drain();
    }
}

/// Held while an association is being closed that a call to `close` waits for.
#[derive(Debug)]
pub struct Lingering(Arc<Waiter>);

impl Drop for Lingering {
    fn drop(&mut self) {
        self.0.end(Ok(()));
    }
}
