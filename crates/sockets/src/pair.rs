//! The descriptor that a program holds for an SCTP socket: one end of a pair of UNIX sockets.
//!
//! No data passes through the pair. Its buffers only make the program's end readable and writable at the right
//! times, so `poll`, `select` and `epoll` work unchanged, including edge-triggered mode. Blocking calls wait with
//! blocking calls on the program's end. The kernel therefore interrupts or restarts them after a signal as with any
//! socket, and the program's SO_RCVTIMEO and SO_SNDTIMEO apply.
//!
//! ```text
//!   program's end                far end
//!     readable  <-- one byte ---   written while something can be received
//!     full      --- filler  -->    not read while the send buffer of the association is full
//! ```

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use libc::{c_int, c_void};

use crate::errno::{Errno, Result};
use crate::interpose::raw;
use crate::real;

/// Lowest number of the library's own descriptors, above those that programs expect to get.
const OWN_DESCRIPTORS_FROM: libc::c_ulong = 200;

/// Size of one write of filler, bytes. The kernel grants a send buffer of 4.5 kB or more.
const FILLER: usize = 4096;

/// The pair.
#[derive(Debug)]
pub struct Pair {
    /// A duplicate of the program's end, which stays open independently of the program.
    near: c_int,
    /// -1 after it was closed.
    far: AtomicI32,
}

impl Pair {
    /// Creates a pair. Returns it and the program's descriptor. `flags` are those of `socket`:
    /// `SOCK_NONBLOCK`, `SOCK_CLOEXEC`.
    ///
    /// # Errors
    /// Errors of the system, for example if there are no more descriptors.
    pub fn new(flags: c_int) -> Result<(c_int, Self)> {
        let mut ends = [-1; 2];
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: the array has room for two descriptors.
        check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
        let near = own(ends[0]);
        let far = own(ends[1]);
        // SAFETY: the descriptor was made above, and is not used after this.
        unsafe { real::close(ends[1]) };
        let (near, far) = match (near, far) {
            (Ok(near), Ok(far)) => (near, far),
            (near, far) => {
                for fd in [near, far, Ok(ends[0])].into_iter().flatten() {
                    // SAFETY: the descriptor was made above.
                    unsafe { real::close(fd) };
                }
                return Err(Errno(libc::EMFILE));
            }
        };
        let pair = Self { near, far: AtomicI32::new(far) };
        pair.shrink();
        name_program_end(near);
        if flags & libc::SOCK_CLOEXEC == 0 {
            // SAFETY: sets the flags of a descriptor made above.
            unsafe { real::fcntl(ends[0], libc::F_SETFD, 0) };
        }
        if flags & libc::SOCK_NONBLOCK != 0 {
            // SAFETY: sets the flags of a descriptor made above.
            unsafe { real::fcntl(ends[0], libc::F_SETFL, libc::O_NONBLOCK as libc::c_ulong) };
        }
        Ok((ends[0], pair))
    }

    /// Creates a pair for one waiting call, which is invisible to the program. The SO_SNDTIMEO of this pair
    /// applies to it.
    ///
    /// # Errors
    /// Errors of the system, for example if there are no more descriptors.
    pub fn private(&self) -> Result<Self> {
        let (level, name) = (libc::SOL_SOCKET, libc::SO_SNDTIMEO);
        let limit = raw::get_option(self.near, level, name, size_of::<libc::timeval>())?;
        Self::private_with(&limit)
    }

    /// The same for a call that waits for at most `limit`.
    ///
    /// # Errors
    /// Errors of the system, for example if there are no more descriptors.
    pub fn private_at_most(limit: Duration) -> Result<Self> {
        let seconds = limit.as_secs().try_into().unwrap_or(libc::time_t::MAX);
        let microseconds = libc::suseconds_t::from(limit.subsec_micros());
        Self::private_with(&[seconds.to_ne_bytes(), microseconds.to_ne_bytes()].concat())
    }

    /// `limit`: SO_SNDTIMEO, a `struct timeval`.
    fn private_with(limit: &[u8]) -> Result<Self> {
        let (fd, pair) = Self::new(libc::SOCK_CLOEXEC)?;
        // SAFETY: the descriptor was made above, and is not used after this.
        unsafe { real::close(fd) };
        raw::set_option(pair.near, libc::SOL_SOCKET, libc::SO_SNDTIMEO, limit)?;
        Ok(pair)
    }

    /// Makes the send buffer of the program's end as small as the kernel permits.
    fn shrink(&self) {
        let least: c_int = 1;
        // SAFETY: the value is an int, as the option requires.
        unsafe {
            real::setsockopt(
                self.near,
                libc::SOL_SOCKET,
                libc::SO_SNDBUF,
                (&raw const least).cast::<c_void>(),
                size_of::<c_int>() as libc::socklen_t,
            );
        }
    }

    /// A duplicate of the program's end, for options of the kernel such as SO_RCVTIMEO.
    pub const fn near(&self) -> c_int {
        self.near
    }

    fn far(&self) -> c_int {
        self.far.load(Ordering::Relaxed)
    }

    /// Both descriptors of the library. -1 for one that was closed.
    pub fn descriptors(&self) -> [c_int; 2] {
        [self.near, self.far()]
    }

    /// Makes the program's end readable. It must not be readable already.
    pub fn set_readable(&self) {
        let byte = [0_u8];
        // SAFETY: the buffer is valid for reading one byte.
        unsafe { real::send(self.far(), byte.as_ptr().cast(), 1, QUIET) };
    }

    /// Whether a byte makes the program's end readable.
    pub fn is_readable(&self) -> bool {
        let mut byte = [0_u8];
        let flags = QUIET | libc::MSG_PEEK;
        // SAFETY: the buffer is valid for writing one byte.
        unsafe { real::recv(self.near, byte.as_mut_ptr().cast(), 1, flags) == 1 }
    }

    /// Makes the program's end no longer readable.
    pub fn clear_readable(&self) {
        let mut byte = [0_u8; 8];
        // SAFETY: the buffer is valid for writing its length.
        unsafe { real::recv(self.near, byte.as_mut_ptr().cast(), byte.len(), QUIET) };
    }

    /// Makes the program's end not writable.
    pub fn fill(&self) {
        let filler = [0_u8; FILLER];
        loop {
            // SAFETY: the buffer is valid for reading its length.
            let sent = unsafe { real::send(self.near, filler.as_ptr().cast(), FILLER, QUIET) };
            if sent <= 0 {
                return;
            }
        }
    }

    /// Makes the program's end writable.
    pub fn drain(&self) {
        let mut filler = [0_u8; FILLER];
        loop {
            // SAFETY: the buffer is valid for writing its length.
            let got = unsafe { real::recv(self.far(), filler.as_mut_ptr().cast(), FILLER, QUIET) };
            if got <= 0 {
                return;
            }
        }
    }

    /// Makes the program's end permanently readable, as after the end of a connection.
    pub fn finish(&self) {
        // SAFETY: the descriptor belongs to the pair.
        unsafe { real::shutdown(self.far(), libc::SHUT_WR) };
    }

    /// Reports POLLHUP permanently, as after the loss of a connection, and with `error` also POLLERR. The caller
    /// holds the lock that protects all other calls except those that wait.
    ///
    /// The kernel reports an error if the far end is closed while it has unread data.
    pub fn hang_up(&self, error: bool) {
        if error {
            let byte = [0_u8];
            // SAFETY: the buffer is valid for reading one byte.
            unsafe { real::send(self.near, byte.as_ptr().cast(), 1, QUIET) };
        } else {
            self.drain();
        }
        let far = self.far.swap(-1, Ordering::Relaxed);
        // SAFETY: the descriptor belongs to the pair, which uses it no more.
        unsafe { real::close(far) };
    }

    /// Replaces the two ends after [`Pair::hang_up`], which is permanent. The program's descriptors `fds` keep their
    /// numbers and flags. The kernel removes them from sets of epoll. The caller holds the lock of `hang_up`.
    ///
    /// # Errors
    /// Errors of the system, for example if there are no more descriptors.
    pub fn renew(&self, fds: &[c_int]) -> Result<()> {
        let (fd, fresh) = Self::new(libc::SOCK_CLOEXEC)?;
        for name in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            let length = size_of::<libc::timeval>();
            let limit = raw::get_option(self.near, libc::SOL_SOCKET, name, length);
            let _ = limit.and_then(|limit| raw::set_option(fd, libc::SOL_SOCKET, name, &limit));
        }
        // SAFETY: copies the flags of an open descriptor to one made above, which then replaces descriptors of the
        // socket and is not used after that.
        unsafe {
            let flags = real::fcntl(self.near, libc::F_GETFL, 0);
            real::fcntl(fd, libc::F_SETFL, flags as libc::c_ulong);
            for old in fds.iter().copied() {
                let closes = real::fcntl(old, libc::F_GETFD, 0) & libc::FD_CLOEXEC != 0;
                real::dup3(fd, old, if closes { libc::O_CLOEXEC } else { 0 });
            }
            real::dup3(fd, self.near, libc::O_CLOEXEC);
            real::close(fd);
        }
        self.far.store(fresh.far.swap(-1, Ordering::Relaxed), Ordering::Relaxed);
        Ok(())
    }

    /// Stops reporting POLLERR, because the program has received the error.
    pub fn clear_error(&self) {
        let (mut error, mut length) = (0 as c_int, size_of::<c_int>() as libc::socklen_t);
        let value = (&raw mut error).cast::<c_void>();
        // SAFETY: the value is an int, as the option requires.
        unsafe {
            real::getsockopt(self.near, libc::SOL_SOCKET, libc::SO_ERROR, value, &raw mut length);
        }
    }

    /// The event that the program's end is readable.
    pub const fn readable(&self) -> Await {
        Await { near: self.near, readable: true }
    }

    /// The event that the program's end is writable.
    pub const fn writable(&self) -> Await {
        Await { near: self.near, readable: false }
    }
}

/// An event to wait for. It has no destructor, because the thread may be unwound while it waits.
#[derive(Clone, Copy, Debug)]
pub struct Await {
    near: c_int,
    readable: bool,
}

impl Await {
    /// Waits.
    ///
    /// # Errors
    /// `EINTR` after a signal, `EAGAIN` after SO_RCVTIMEO or SO_SNDTIMEO.
    pub fn wait(self) -> Result<()> {
        let mut byte = [0_u8];
        let flags = if self.readable { libc::MSG_PEEK } else { libc::MSG_NOSIGNAL };
        // SAFETY: the buffer is valid for reading and writing one byte.
        let result = unsafe {
            if self.readable {
                real::recv(self.near, byte.as_mut_ptr().cast(), 1, flags)
            } else {
                real::send(self.near, byte.as_ptr().cast(), 1, flags)
            }
        };
        waited(result)
    }
}

/// Do not wait, and do not raise SIGPIPE.
const QUIET: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// Prefix of the address of a program's end, an abstract one (unix(7)). A program that inherits the descriptor
/// recognises it by this.
const NAME: &[u8] = b"\0libropewalk-";

/// The address of a UNIX socket.
fn unix_address() -> libc::sockaddr_un {
    libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] }
}

/// Binds a program's end to a unique address. The address only serves to recognise it, so errors are ignored.
fn name_program_end(fd: c_int) {
    let mut random = [0; 8];
    if getrandom::fill(&mut random).is_err() {
        return;
    }
    let name = format!("{:016x}", u64::from_ne_bytes(random));
    let mut address = unix_address();
    let bytes = NAME.iter().chain(name.as_bytes());
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let length = size_of::<libc::sa_family_t>() + NAME.len() + name.len();
    // SAFETY: the address is valid for reading that length.
    unsafe { real::bind(fd, (&raw const address).cast(), length as libc::socklen_t) };
}

/// Whether a descriptor is the program's end of a pair of any process.
pub fn is_program_end(fd: c_int) -> bool {
    let mut address = unix_address();
    let mut length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the address is valid for writing its length.
    let got = unsafe { real::getsockname(fd, (&raw mut address).cast(), &raw mut length) };
    let is_unix = c_int::from(address.sun_family) == libc::AF_UNIX;
    let named = length as usize > size_of::<libc::sa_family_t>() + NAME.len();
    let begins = address.sun_path.iter().zip(NAME).all(|(is, wanted)| *is as u8 == *wanted);
    got == 0 && is_unix && named && begins
}

/// The result of a call that waits. After [`Pair::hang_up`] it returns immediately.
fn waited(result: isize) -> Result<()> {
    match Errno::last() {
        _ if result >= 0 => Ok(()),
        Errno(libc::ECONNRESET | libc::EPIPE) => Ok(()),
        error => Err(error),
    }
}

/// Duplicates a descriptor to a high number.
fn own(fd: c_int) -> Result<c_int> {
    // SAFETY: duplicates an open descriptor.
    let high = unsafe { real::fcntl(fd, libc::F_DUPFD_CLOEXEC, OWN_DESCRIPTORS_FROM) };
    if high >= 0 {
        return Ok(high);
    }
    // The limit of descriptors is below that number.
    // SAFETY: as above.
    check(unsafe { real::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3) })
}

fn check(result: c_int) -> Result<c_int> {
    if result < 0 { Err(Errno::last()) } else { Ok(result) }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // SAFETY: the pair owns both descriptors.
        unsafe {
            real::close(self.near);
            real::close(self.far());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls that Miri does not know")]
    fn the_programs_end_is_told_from_other_sockets() {
        let (fd, pair) = Pair::new(0).expect("a pair");
        let other = std::os::unix::net::UnixStream::pair().expect("a pair");
        let of = |stream: &std::os::unix::net::UnixStream| std::os::fd::AsRawFd::as_raw_fd(stream);
        let found = [fd, pair.near, pair.far(), of(&other.0), -1].map(is_program_end);
        assert_eq!(found, [true, true, false, false, false]);
        // SAFETY: the descriptor was made above.
        unsafe { real::close(fd) };
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls that Miri does not know")]
    fn the_loss_of_a_connection_is_shown_whatever_lies_in_the_pair() {
        for (full, readable, error) in
            [false, true].into_iter().flat_map(|full| [(full, false, true), (full, true, false)])
        {
            let (fd, pair) = Pair::new(0).expect("a pair");
            if full {
                pair.fill();
            }
            if readable {
                pair.set_readable();
            }
            pair.hang_up(error);
            let (lost, always) = (c_int::from(libc::POLLERR), c_int::from(libc::POLLHUP));
            let shown = events(fd) & (lost | always);
            assert_eq!(shown, if error { lost | always } else { always }, "{full} {readable}");
            assert_eq!((pair.readable().wait(), pair.writable().wait()), (Ok(()), Ok(())));
            pair.clear_error();
            assert_eq!(events(fd) & (lost | always), always, "{full} {readable}");
            // SAFETY: the descriptor was made above.
            unsafe { real::close(fd) };
        }
    }

    fn events(fd: c_int) -> c_int {
        let mut polled = libc::pollfd { fd, events: libc::POLLIN | libc::POLLOUT, revents: 0 };
        // SAFETY: one valid entry.
        unsafe { libc::poll(&raw mut polled, 1, 0) };
        c_int::from(polled.revents)
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls that Miri does not know")]
    fn the_programs_end_is_readable_and_writable_as_told() {
        let (fd, pair) = Pair::new(libc::SOCK_NONBLOCK).expect("a pair");
        let (readable, writable) = (c_int::from(libc::POLLIN), c_int::from(libc::POLLOUT));
        assert_eq!(events(fd), writable);
        pair.set_readable();
        assert_eq!(events(fd), readable | writable);
        pair.fill();
        assert_eq!(events(fd), readable);
        pair.clear_readable();
        assert_eq!(events(fd), 0);
        assert_eq!(pair.writable().wait(), Err(Errno(libc::EAGAIN)));
        pair.drain();
        assert_eq!(events(fd), writable);
        assert_eq!(pair.writable().wait(), Ok(()));
        assert_eq!(pair.readable().wait(), Err(Errno(libc::EAGAIN)));
        pair.finish();
        assert_eq!(events(fd) & readable, readable);
        assert_eq!(pair.readable().wait(), Ok(()));
        // SAFETY: the descriptor was made above.
        unsafe { real::close(fd) };
    }
}
