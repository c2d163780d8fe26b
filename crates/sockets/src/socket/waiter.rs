//! One call that waits for an association, while the socket's descriptor stays ready for others.

use std::sync::OnceLock;

use crate::errno::Result;
use crate::pair::Pair;
use crate::signals::Blocked;

/// A call that waits.
#[derive(Debug)]
pub struct Waiter {
    /// Not writable until the outcome is known.
    pair: Pair,
    outcome: OnceLock<Result<()>>,
}

impl Waiter {
    /// A call on the socket with this pair, whose SO_SNDTIMEO applies.
    ///
    /// # Errors
    /// As the system says: no more descriptors.
    pub fn new(socket: &Pair) -> Result<Self> {
        let pair = socket.private()?;
        pair.fill();
        Ok(Self { pair, outcome: OnceLock::new() })
    }

    /// Ends the call. Only the first outcome counts.
    pub fn end(&self, outcome: Result<()>) {
        let _ = self.outcome.set(outcome);
        self.pair.drain();
    }

    /// Waits for the outcome. `signals` are unblocked meanwhile.
    ///
    /// # Errors
    /// The outcome; `EINTR`, `EAGAIN` as [`Pair::wait_writable`] says.
    pub fn wait(&self, signals: &Blocked) -> Result<()> {
        loop {
            if let Some(outcome) = self.outcome.get() {
                return *outcome;
            }
            signals.unblocked(|| self.pair.wait_writable())?;
        }
    }
}
