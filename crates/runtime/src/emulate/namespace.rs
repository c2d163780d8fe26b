//! A network namespace without a name: it is there for as long as somebody holds it or lives in it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::thread;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};

use super::error::EmulateError;

/// A handle of a network namespace.
#[derive(Debug)]
pub struct Namespace {
    handle: File,
}

impl Namespace {
    /// Makes one, with nothing in it but a loopback device that is down.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn new() -> Result<Self, EmulateError> {
        aside(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|e| refused("make a network namespace", e))?;
            let handle = File::open("/proc/thread-self/ns/net")
                .map_err(|e| EmulateError::system("/proc/thread-self/ns/net", e))?;
            Ok(Self { handle })
        })
    }

    /// Moves the calling thread in. What it spawns afterwards lives there too.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.handle, CloneFlags::CLONE_NEWNET)?)
    }

    /// Does something inside, on a thread of its own.
    ///
    /// # Errors
    /// Those of `what`, and if the system does not let us in.
    pub fn inside<T: Send>(
        &self,
        what: impl FnOnce() -> Result<T, EmulateError> + Send,
    ) -> Result<T, EmulateError> {
        aside(|| {
            self.enter().map_err(|e| EmulateError::system("entering a network namespace", e))?;
            what()
        })
    }

    /// A file by which programs that may see our `/proc` find it.
    pub fn file(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.handle.as_raw_fd()))
    }
}

/// Runs `what` on a thread of its own: namespaces belong to threads, and this one's are gone with it.
pub fn aside<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(what).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// What an error of a system call means that needs privileges.
pub fn refused(what: &'static str, error: Errno) -> EmulateError {
    match error {
        Errno::EPERM | Errno::EACCES => EmulateError::NotPermitted { what },
        other => EmulateError::system(format!("cannot {what}"), other),
    }
}
