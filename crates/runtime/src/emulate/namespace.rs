//! A network namespace without a name, which exists as long as a handle or a process in it does.

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
    /// Creates a namespace that contains only a loopback device, which is down.
    ///
    /// # Errors
    /// If the system does not permit it.
    pub fn new() -> Result<Self, EmulateError> {
        on_own_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|e| refused("create a network namespace", e))?;
            let handle = File::open("/proc/thread-self/ns/net")
                .map_err(|e| EmulateError::system("/proc/thread-self/ns/net", e))?;
            Ok(Self { handle })
        })
    }

    /// Moves the calling thread into the namespace, and with it the processes that it spawns later.
    ///
    /// # Errors
    /// If the system does not permit it.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.handle, CloneFlags::CLONE_NEWNET)?)
    }

    /// Calls `what` in the namespace, on a separate thread.
    ///
    /// # Errors
    /// Those of `what`, and if the system does not permit entering the namespace.
    pub fn inside<T: Send>(
        &self,
        what: impl FnOnce() -> Result<T, EmulateError> + Send,
    ) -> Result<T, EmulateError> {
        on_own_thread(|| {
            self.enter().map_err(|e| EmulateError::system("entering a network namespace", e))?;
            what()
        })
    }

    /// A file through which programs with access to this `/proc` can enter the namespace.
    pub fn file(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.handle.as_raw_fd()))
    }
}

/// Runs `what` on a separate thread: a thread's namespaces end with it and do not affect others.
pub fn on_own_thread<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(what).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Translates an error of a system call that needs privileges.
pub fn refused(what: &'static str, error: Errno) -> EmulateError {
    match error {
        Errno::EPERM | Errno::EACCES => EmulateError::NotPermitted { what },
        other => EmulateError::system(format!("cannot {what}"), other),
    }
}
