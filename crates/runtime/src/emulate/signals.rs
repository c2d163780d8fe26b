//! Signals as something to wait for.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::error::EmulateError;

/// What is passed on to the command.
const PASSED_ON: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Something that was waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    /// A program has ended, or something else happened to one.
    Child,
    /// Somebody asked us alone to do something.
    Asked(Signal),
    /// A terminal asked all who sit at it, the command included.
    AskedAll(Signal),
}

/// Takes the signals of the process. They are held back in the calling thread and in those that it makes
/// from now on, and would be in programs that these start.
#[derive(Debug)]
pub struct Signals {
    file: SignalFd,
    mask: SigSet,
}

impl Signals {
    /// Begins to hold signals back. To be called before other threads are made.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn hold() -> Result<Self, EmulateError> {
        let mut mask = SigSet::empty();
        PASSED_ON.iter().for_each(|signal| mask.add(*signal));
        mask.add(Signal::SIGCHLD);
        let held =
            mask.thread_block().and_then(|()| SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC));
        let file = held.map_err(|e| EmulateError::system("cannot wait for signals", e))?;
        Ok(Self { file, mask })
    }

    /// Waits for the next one.
    ///
    /// # Errors
    /// If the system fails us.
    pub fn wait(&self) -> Result<Notice, EmulateError> {
        loop {
            let info = self.file.read_signal();
            let info = info.map_err(|e| EmulateError::system("cannot wait for signals", e))?;
            let Some(info) = info else { continue };
            let Ok(signal) = Signal::try_from(info.ssi_signo as i32) else { continue };
            // What the kernel sends, as a terminal's driver, has a positive code (sigaction(2)).
            let from_a_process = info.ssi_code <= 0;
            return Ok(match signal {
                Signal::SIGCHLD => Notice::Child,
                asked if from_a_process => Notice::Asked(asked),
                asked => Notice::AskedAll(asked),
            });
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What is still held back takes its effect now.
        let _ = self.mask.thread_unblock();
    }
}
