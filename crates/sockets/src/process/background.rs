//! Processes that go to the background, by `daemon` or by a fork after which the parent ends. The child does not
//! have the sockets that have already listened or connected.

use std::io::Write as _;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use super::current;
use crate::real;

/// Whether the process has forked since the last use of a socket.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Records a fork. `has_sockets`: whether there are sockets that the child does not have.
pub fn note_fork(has_sockets: bool) {
    FORKED.store(has_sockets, Ordering::Relaxed);
}

/// Records the use of a socket: the process continues.
pub fn note_use() {
    FORKED.store(false, Ordering::Relaxed);
}

/// Warns that a child continues without the sockets of this ending process. Safe in signal handlers.
pub fn tell_of_sockets_left_behind() {
    if FORKED.load(Ordering::Relaxed) && current().is_current() && has_living_child() {
        note_use();
        tell("ends, and its child lives on without its SCTP sockets");
    }
}

fn has_living_child() -> bool {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the structure may be zero, and is valid for writing.
    unsafe {
        libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) == 0
            && info.assume_init().si_pid() == 0
    }
}

/// Prints a problem of this process and its solution. Neither locks nor allocates.
pub fn tell(what: &str) {
    let mut line = [0_u8; 256];
    let mut rest = &mut line[..];
    let _ = writeln!(
        rest,
        "libropewalk: process {} {what}: a program must go to the background before its sockets listen or connect; run it in the \
         foreground",
        std::process::id()
    );
    let unused = rest.len();
    // SAFETY: the buffer is readable for its length.
    unsafe { real::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len() - unused) };
}
