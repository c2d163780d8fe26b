//! Calls by which programs go to the background, and so leave the process that has their sockets.

use libc::c_int;

use super::calls::protected;
use super::returned_int;
use crate::process::{current, tell_of_sockets_left_behind};
use crate::real;

/// Goes to the background. Fails after sockets have listened or connected, because the new process would not have
/// them.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn daemon(stay: c_int, keep: c_int) -> c_int {
    match protected(|| current().may_move()) {
        // SAFETY: has no requirements.
        Ok(()) => unsafe { real::daemon(stay, keep) },
        refused => returned_int(refused.map(|()| 0_isize)),
    }
}

/// Ends the process without its exit handlers. A signal handler or a child of `vfork` may call this.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn _exit(status: c_int) -> ! {
    tell_of_sockets_left_behind();
    // SAFETY: has no requirements.
    unsafe { real::_exit(status) }
}

/// Another name of `_exit`.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn _Exit(status: c_int) -> ! {
    _exit(status)
}
