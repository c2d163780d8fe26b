//! The functions that C programs call. Each decides whether a descriptor is a socket of this library, and otherwise
//! calls the C library's function of the same name.

mod descriptors;
mod libsctp;
mod messages;
mod options;
pub mod raw;
mod setup;
mod stdio;
mod transfer;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use libc::c_int;

use crate::errno::{Errno, Result};
use crate::inherited;
use crate::process::{Found, current};
use crate::signals::Blocked;
use crate::socket::Socket;

/// What [`with`] did.
enum Outcome<T> {
    /// It called the function.
    Done(Result<T>),
    /// The descriptor belongs to the C library.
    Other,
}

/// Calls `work` with the socket of a descriptor while signals are blocked.
fn with<T>(fd: c_int, work: impl FnOnce(&Arc<Socket>, &Blocked) -> Result<T>) -> Outcome<T> {
    let signals = Blocked::new();
    Outcome::Done(match current().find(fd) {
        Found::Other => return Outcome::Other,
        Found::Inherited => Err(inherited::refuse()),
        Found::Socket(socket) => guarded(|| work(&socket, &signals)),
    })
}

/// A defect of this library must not end the program's process: a panic becomes `EIO`.
fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Errno(libc::EIO)))
}

/// A number as C functions return it, or -1 and errno.
fn returned<T: TryInto<isize>>(result: Result<T>) -> isize {
    match result {
        Ok(value) => value.try_into().unwrap_or(isize::MAX),
        Err(error) => {
            error.set();
            -1
        }
    }
}

/// The same for functions that return an int.
fn returned_int<T: TryInto<isize>>(result: Result<T>) -> c_int {
    returned(result) as c_int
}

/// Calls `$real` unless the descriptor is a socket of this library; then `$work` with the socket and the signals.
macro_rules! dispatch {
    ($fd:expr, $real:expr, $work:expr) => {{
        if !crate::process::is_ours($fd) {
            $real
        } else {
            match crate::interpose::with($fd, $work) {
                crate::interpose::Outcome::Other => $real,
                crate::interpose::Outcome::Done(result) => crate::interpose::returned(result) as _,
            }
        }
    }};
}
use dispatch;
