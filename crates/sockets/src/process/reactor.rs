//! The thread that drives all associations of the process.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};

use super::lock;
use crate::errno::Result;

/// Starts the thread. The caller has blocked all signals, so the program's handlers never run on it.
pub fn start() -> Result<Handle> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    let drive = move || runtime.block_on(std::future::pending::<()>());
    thread::Builder::new().name("ropewalk".to_owned()).spawn(drive)?;
    Ok(handle)
}

/// Maximum time that an exiting process waits for SHUTDOWN COMPLETE. Until then, the SHUTDOWN ACK is retransmitted
/// after 1, 3 and 7 s (RFC 9260, 15: RTO.Initial), and in response to each repeated SHUTDOWN of the peer.
const SHUTDOWN_COMPLETE_LIMIT: Duration = Duration::from_millis(7500);

/// The phases of closing an association.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The peer has not answered the handshake.
    Handshake,
    /// The peer has not acknowledged all data.
    Data,
    /// The peer has not acknowledged the SHUTDOWN.
    Shutdown,
    /// Both ends have acknowledged all data, and the peer has not confirmed the SHUTDOWN ACK. A missing
    /// confirmation loses no data: the peer may have ended, and its SHUTDOWN COMPLETE may be lost.
    ShutdownAck,
}

/// The numbers of associations that are being closed, by phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unfinished([usize; 4]);

impl Unfinished {
    /// The number of associations in a phase.
    pub const fn of(self, phase: Phase) -> usize {
        self.0[phase as usize]
    }

    fn up_to(self, phase: Phase) -> usize {
        self.0[..=phase as usize].iter().sum()
    }
}

/// Counts associations that are being closed.
#[derive(Debug, Default)]
pub struct Closing {
    count: Mutex<Unfinished>,
    changed: Condvar,
}

/// An association that is being closed. Dropping it ends the count.
#[derive(Debug)]
pub struct Ending {
    closing: Arc<Closing>,
    phase: Phase,
}

impl Closing {
    /// Counts one more association.
    pub fn begin(self: &Arc<Self>) -> Ending {
        let phase = Phase::Handshake;
        lock(&self.count).0[phase as usize] += 1;
        Ending { closing: self.clone(), phase }
    }

    /// Whether no association is being closed.
    pub fn is_empty(&self) -> bool {
        lock(&self.count).up_to(Phase::ShutdownAck) == 0
    }

    /// Waits until all have been closed, for at most `limit`, or for less if only SHUTDOWN COMPLETE is missing.
    /// Returns the numbers that remain.
    pub fn wait(&self, limit: Duration) -> Unfinished {
        let mut left = lock(&self.count);
        let last = limit.min(SHUTDOWN_COMPLETE_LIMIT);
        for (phase, limit) in [(Phase::Shutdown, limit), (Phase::ShutdownAck, last)] {
            let busy = |left: &mut Unfinished| left.up_to(phase) > 0;
            let waited = self.changed.wait_timeout_while(left, limit, busy);
            left = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *left
    }
}

impl Ending {
    /// Called when the next phase begins.
    pub fn enter(&mut self, phase: Phase) {
        let count = &mut lock(&self.closing.count).0;
        count[self.phase as usize] -= 1;
        count[phase as usize] += 1;
        self.phase = phase;
        self.closing.changed.notify_all();
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        lock(&self.closing.count).0[self.phase as usize] -= 1;
        self.closing.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn associations_are_counted_by_phase_until_they_have_ended() {
        let closing = Arc::new(Closing::default());
        let (mut one, two) = (closing.begin(), closing.begin());
        one.enter(Phase::ShutdownAck);
        let left = closing.wait(Duration::ZERO);
        assert_eq!((left.of(Phase::Handshake), left.of(Phase::ShutdownAck)), (1, 1));
        drop((one, two));
        assert!(closing.is_empty());
    }
}
