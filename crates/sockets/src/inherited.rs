//! Descriptors of SCTP sockets that belong to another process or program.
//!
//! An association lives in the memory of the process that opened it. A child of `fork` or an executed program that
//! reads or writes an inherited descriptor would consume the bytes that wake up the owner, and its data would be
//! lost. Each inherited descriptor is therefore replaced by one that is open to nothing (`O_PATH`). The kernel then
//! refuses reads and writes with `EBADF`, including those of `stdio`, which the library cannot intercept.
//!
//! ```text
//!   owner --- fork ---> child             replaced by the handler of forks
//!     |                   |
//!     |                 exec -----------> recognised by its name (MARKER), already harmless
//!     |
//!     +-- vfork, posix_spawn -- exec ---> recognised by the pair's address, replaced when the library loads
//! ```

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::c_int;

use crate::errno::Errno;
use crate::pair;
use crate::process::{current, is_ours};
use crate::real;

/// A descriptor of the library in a process that forks, and the file that it is open to. Other threads may close it,
/// and open another file with its number, until the process has forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identified {
    fd: c_int,
    device: libc::dev_t,
    inode: libc::ino_t,
}

impl Identified {
    /// Identifies a descriptor, if it is open.
    pub fn new(fd: c_int) -> Option<Self> {
        let mut file = MaybeUninit::<libc::stat>::uninit();
        // SAFETY: the structure is valid for writing, and is initialised if the call succeeds.
        let file = unsafe {
            if libc::fstat(fd, file.as_mut_ptr()) != 0 {
                return None;
            }
            file.assume_init()
        };
        Some(Self { fd, device: file.st_dev, inode: file.st_ino })
    }

    /// Closes the copy in the child, so that the file is closed when its owner closes it: ports become free, and the
    /// owner's sockets show the end of an association.
    pub fn close(&self) {
        if Self::new(self.fd) == Some(*self) {
            // SAFETY: no code of the child uses this copy.
            unsafe { real::close(self.fd) };
        }
    }
}

/// Name of the file that replaces inherited sockets. Its link in `/proc/PID/fd` shows it.
const MARKER: &str = "sctp-socket-of-another-process";

/// Replaces descriptors by one that is open to nothing. They keep their flag `FD_CLOEXEC`.
pub fn replace(fds: impl IntoIterator<Item = c_int>) {
    let mut fds = fds.into_iter().peekable();
    if fds.peek().is_none() {
        return;
    }
    let nothing = open_nothing();
    if nothing < 0 {
        return;
    }
    for fd in fds {
        // SAFETY: asks for the flags of a descriptor, then overwrites it. It is a copy of the owner's.
        unsafe {
            let flags = real::fcntl(fd, libc::F_GETFD, 0);
            let closes = flags >= 0 && flags & libc::FD_CLOEXEC != 0;
            real::dup3(nothing, fd, if closes { libc::O_CLOEXEC } else { 0 });
        }
    }
    // SAFETY: the descriptor was made above, and is not used after this.
    unsafe { real::close(nothing) };
}

/// A descriptor that refuses every use. Without `/proc` it has no name by which an executed program recognises
/// it.
fn open_nothing() -> c_int {
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    let name = format!("{MARKER}\0");
    // SAFETY: the names are strings that end with a zero.
    unsafe {
        let memory = libc::memfd_create(name.as_ptr().cast(), libc::MFD_CLOEXEC);
        let path = format!("/proc/self/fd/{memory}\0");
        let named = libc::open(path.as_ptr().cast(), flags);
        if memory >= 0 {
            real::close(memory);
        }
        if named >= 0 { named } else { libc::open(c"/".as_ptr(), flags) }
    }
}

/// Origin of an inherited descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A socket of the program that executed this one.
    Pair,
    /// A descriptor that was replaced earlier.
    Replaced,
}

fn origin_of(fd: c_int) -> Option<Origin> {
    let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    let link = link.to_string_lossy();
    if link.starts_with("socket:") && pair::is_program_end(fd) {
        return Some(Origin::Pair);
    }
    link.starts_with(&format!("/memfd:{MARKER} ")).then_some(Origin::Replaced)
}

/// Finds the SCTP sockets that this program has inherited, and marks them so that every use is
/// refused.
extern "C" fn at_load() {
    real::find_all();
    let Ok(listed) = std::fs::read_dir("/proc/self/fd") else { return };
    let names = listed.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let fds: Vec<c_int> = names.filter_map(|name| name.parse().ok()).collect();
    let found: Vec<(c_int, Origin)> =
        fds.into_iter().filter_map(|fd| Some((fd, origin_of(fd)?))).collect();
    replace(found.iter().filter(|(_, origin)| *origin == Origin::Pair).map(|(fd, _)| *fd));
    for (fd, _) in &found {
        current().insert_inherited(*fd);
    }
    // A socket at standard input or output was passed on purpose, and `stdio` bypasses this library.
    if found.iter().any(|(fd, _)| [libc::STDIN_FILENO, libc::STDOUT_FILENO].contains(fd)) {
        refuse();
    }
}

#[cfg(not(miri))]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

/// The error for every use of an inherited socket. The first use is explained on standard error, unless standard
/// error is such a socket.
pub fn refuse() -> Errno {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !is_ours(libc::STDERR_FILENO) && !TOLD.swap(true, Ordering::Relaxed) {
        eprintln!(
            "libropewalk: process {} has inherited an SCTP socket, which it cannot use (EBADF): sockets and associations stay in the \
             process that opened them; serve all of them there, without children (prefork, one process for each connection) or exec",
            std::process::id()
        );
    }
    Errno(libc::EBADF)
}
