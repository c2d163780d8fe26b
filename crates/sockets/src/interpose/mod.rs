//! The functions that C programs call. If a descriptor is not a socket of this library, they call the C library's
//! function of the same name.

mod background;
mod calls;
mod control_buffer;
mod descriptors;
mod libsctp;
mod messages;
mod options;
pub mod raw;
mod setup;
mod stdio;
mod transfer;

use libc::c_int;

use crate::errno::Result;

/// Converts a result to the return value of C functions: a number, or -1 with errno.
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

/// Calls `$real` unless the descriptor is a socket of this library. Otherwise calls `$attempt` with the socket
/// until it has a result. The call is not a cancellation point.
macro_rules! dispatch {
    ($fd:expr, $real:expr, $attempt:expr) => {{
        if !crate::process::is_ours($fd) {
            $real
        } else {
            let call = || crate::interpose::calls::call($fd, $attempt);
            match crate::critical::uncancelled(call) {
                None => $real,
                Some(result) => result as _,
            }
        }
    }};
}
use dispatch;

/// The same for a call that is a cancellation point (POSIX.1-2017, 2.9.5.2).
macro_rules! dispatch_cancellable {
    ($fd:expr, $real:expr, $attempt:expr) => {{
        if !crate::process::is_ours($fd) {
            $real
        } else {
            crate::critical::cancellation_point();
            match crate::interpose::calls::call($fd, $attempt) {
                None => $real,
                Some(result) => result as _,
            }
        }
    }};
}
use dispatch_cancellable;
