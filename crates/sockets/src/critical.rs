//! Critical sections: the parts of a call that hold locks or own memory.
//!
//! A signal handler may leave a call by `longjmp`, as that of iperf3 does, or by `pthread_exit`, or may make calls
//! itself. Another thread may cancel this one. The C library ends a cancelled thread by unwinding its stack, and
//! aborts the process if a Rust frame on the way has a destructor to run. Signals are therefore blocked and
//! cancellation is disabled in a critical section. A call waits outside of it, in frames without destructors:
//!
//! ```text
//!   cancellation point   pthread_testcancel
//!   critical section     one attempt: finds the socket, locks it, copies data
//!   wait                 with the program's signal mask and cancellation state
//!   critical section     the next attempt
//!   return
//! ```

use std::mem::MaybeUninit;
use std::ptr::null_mut;

use libc::{c_int, sigset_t};

use crate::errno::Errno;

/// `PTHREAD_CANCEL_DISABLE` of the GNU C library and of musl.
const CANCEL_DISABLE: c_int = 1;

// These functions may unwind: cancellation, or a signal handler that ends the thread.
unsafe extern "C-unwind" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    fn pthread_sigmask(how: c_int, mask: *const sigset_t, before: *mut sigset_t) -> c_int;
    fn pthread_testcancel();
}

/// A critical section, with the state of the thread outside of it. It has no destructor, because the thread may be
/// unwound when the section ends.
#[derive(Clone, Copy)]
pub struct Section {
    mask: sigset_t,
    cancellation: c_int,
    errno: Errno,
}

impl Section {
    /// Blocks all signals of this thread, and disables its cancellation.
    pub fn enter() -> Self {
        let errno = Errno::last();
        let (mut all, mut mask) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both sets are valid for writing. `sigfillset` initialises the first one, and `pthread_sigmask` the
        // second one; neither fails with these arguments.
        let mask = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), mask.as_mut_ptr());
            mask.assume_init()
        };
        Self { mask, cancellation: set_cancellation(CANCEL_DISABLE), errno }
    }

    /// Ends the section and restores errno, which calls that succeed do not change. Pending signals are handled now, and
    /// the thread ends here if it was cancelled asynchronously. The caller must not own anything.
    pub fn leave(self) {
        self.errno.set();
        // SAFETY: the mask is initialised, and the old one is not asked for.
        unsafe { pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, null_mut()) };
        set_cancellation(self.cancellation);
    }
}

/// Sets the cancellation state. Returns the previous one.
fn set_cancellation(state: c_int) -> c_int {
    let mut before = 0;
    // SAFETY: the pointer is valid for writing.
    unsafe { pthread_setcancelstate(state, &raw mut before) };
    before
}

/// Ends the thread if it was cancelled. The caller must not own anything.
pub fn cancellation_point() {
    // SAFETY: has no requirements.
    unsafe { pthread_testcancel() };
}

/// Runs a call that may wait without being a cancellation point. Signals are handled meanwhile.
pub fn uncancelled<T: Copy>(call: impl FnOnce() -> T + Copy) -> T {
    let before = set_cancellation(CANCEL_DISABLE);
    let result = call();
    set_cancellation(before);
    result
}

/// Sends SIGPIPE to this thread, as a write to a closed association does (RFC 6458, 4.1.8, by reference to POSIX). It is
/// handled when the critical section ends.
pub fn raise_pipe() {
    // SAFETY: `pthread_kill` with the own thread and a valid signal has no other requirements.
    unsafe {
        libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE);
    }
}
