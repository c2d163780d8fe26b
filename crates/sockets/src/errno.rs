//! Error numbers, as C programs expect them.

use std::io;

use libc::c_int;
use ropewalk_runtime::endpoint::CloseReason;

/// An error number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub c_int);

/// Result of a call.
pub type Result<T> = std::result::Result<T, Errno>;

impl Errno {
    /// The error of the last call of the C library.
    pub fn last() -> Self {
        // SAFETY: the location of errno is valid for as long as the thread lives.
        Self(unsafe { *libc::__errno_location() })
    }

    /// Sets the C library's errno.
    pub fn set(self) {
        // SAFETY: the location of errno is valid for as long as the thread lives.
        unsafe { *libc::__errno_location() = self.0 }
    }
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

/// The error that a socket reports after its association has ended. `None` after a graceful
/// shutdown.
pub fn of_close(reason: CloseReason, was_up: bool) -> Option<Errno> {
    match reason {
        CloseReason::Shutdown => None,
        CloseReason::Aborted(_) => Some(Errno(libc::ECONNABORTED)),
        CloseReason::AbortedByPeer(_) if was_up => Some(Errno(libc::ECONNRESET)),
        CloseReason::AbortedByPeer(_) | CloseReason::Refused => Some(Errno(libc::ECONNREFUSED)),
        CloseReason::NoAnswer | CloseReason::StaleCookie | CloseReason::Unreachable => {
            Some(Errno(libc::ETIMEDOUT))
        }
    }
}
