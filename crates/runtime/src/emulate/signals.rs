//! Receives signals synchronously.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::error::EmulateError;

/// Signals that are forwarded to the command.
const FORWARDED: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// A signal that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignalEvent {
    /// A child process has ended or changed its state.
    Child,
    /// A signal sent to this process only.
    Forward(Signal),
    /// A signal from the terminal to its foreground process group, which includes the command.
    AlreadyDelivered(Signal),
}

/// Receives the signals of the process. They are blocked in the calling thread and in threads that it creates
/// afterwards; programs started by these threads would inherit the mask.
#[derive(Debug)]
pub struct Signals {
    file: SignalFd,
    mask: SigSet,
}

impl Signals {
    /// Starts to block signals. Call this before other threads are created.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn block() -> Result<Self, EmulateError> {
        let mut mask = SigSet::empty();
        FORWARDED.iter().for_each(|signal| mask.add(*signal));
        mask.add(Signal::SIGCHLD);
        let held =
            mask.thread_block().and_then(|()| SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC));
        let file = held.map_err(|e| EmulateError::system("cannot wait for signals", e))?;
        Ok(Self { file, mask })
    }

    /// Waits for the next signal.
    ///
    /// # Errors
    /// If the system fails.
    pub fn wait(&self) -> Result<SignalEvent, EmulateError> {
        loop {
            let info = self.file.read_signal();
            let info = info.map_err(|e| EmulateError::system("cannot wait for signals", e))?;
            let Some(info) = info else { continue };
            let Ok(signal) = Signal::try_from(info.ssi_signo as i32) else { continue };
            // Signals from the kernel, such as a terminal's driver, have a positive code (sigaction(2)).
            let from_a_process = info.ssi_code <= 0;
            return Ok(match signal {
                Signal::SIGCHLD => SignalEvent::Child,
                signal if from_a_process => SignalEvent::Forward(signal),
                signal => SignalEvent::AlreadyDelivered(signal),
            });
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Signals that are still pending take effect now.
        let _ = self.mask.thread_unblock();
    }
}
