//! Signals are blocked while a call holds locks: a handler may leave the call by `longjmp`, as iperf3's does, or make
//! calls of its own. Waits run with the program's own mask.

use std::mem::MaybeUninit;

/// All signals are blocked while this exists.
pub struct Blocked {
    before: libc::sigset_t,
}

impl Blocked {
    /// Blocks all signals of this thread.
    pub fn new() -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both sets are valid for writing. `sigfillset` initialises the first one, and `pthread_sigmask` the
        // second one; neither fails with these arguments.
        let before = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            before.assume_init()
        };
        Self { before }
    }

    /// Runs `wait` with the mask of the program. No lock may be held: a signal handler may never return.
    pub fn unblocked<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.set(&self.before);
        let result = wait();
        let mut all = MaybeUninit::uninit();
        // SAFETY: `sigfillset` initialises the set.
        let all = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            all.assume_init()
        };
        self.set(&all);
        result
    }

    #[expect(clippy::unused_self, reason = "only a thread with blocked signals changes its mask")]
    fn set(&self, mask: &libc::sigset_t) {
        // SAFETY: the mask is initialised, and the old one is not asked for.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        self.set(&self.before);
    }
}

/// Sends SIGPIPE to this thread, as a write to a closed association does (RFC 6458, 4.1.8, by reference to POSIX).
pub fn raise_pipe() {
    // SAFETY: `pthread_kill` with the own thread and a valid signal has no other requirements.
    unsafe {
        libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE);
    }
}
