//! The descriptor that a program holds for an SCTP socket: one end of a pair of UNIX sockets.
//!
//! No data passes through the pair. Its buffers only make the program's end readable and writable at the right times,
//! so `poll`, `select` and `epoll` work as they are, edge-triggered ones too. Blocking calls wait by blocking calls on
//! the program's end: the kernel interrupts or restarts them after a signal as it does with any socket, and the
//! program's SO_RCVTIMEO and SO_SNDTIMEO apply.
//!
//! ```text
//!   program's end                far end
//!     readable  <-- one byte ---   written while something can be received
//!     full      --- filler  -->    not read while the send buffer of the association is full
//! ```

use libc::{c_int, c_void};

use crate::errno::{Errno, Result};
use crate::real;

/// Own descriptors are numbered from here, out of the range that programs expect their own in.
const OWN_DESCRIPTORS_FROM: libc::c_ulong = 200;

/// Size of one write of filler, bytes. The kernel grants a send buffer of 4.5 kB or more.
const FILLER: usize = 4096;

/// The pair.
#[derive(Debug)]
pub struct Pair {
    /// A duplicate of the program's end, which stays open whatever the program closes.
    near: c_int,
    far: c_int,
}

impl Pair {
    /// Makes a pair. Returns it and the program's descriptor. `flags` are those of `socket`: `SOCK_NONBLOCK`,
    /// `SOCK_CLOEXEC`.
    ///
    /// # Errors
    /// As the system says: no more descriptors.
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
        let pair = Self { near, far };
        pair.shrink();
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

    /// Makes the program's end readable. It must not be readable already.
    pub fn set_readable(&self) {
        let byte = [0_u8];
        // SAFETY: the buffer is valid for reading one byte.
        unsafe { real::send(self.far, byte.as_ptr().cast(), 1, QUIET) };
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
            let got = unsafe { real::recv(self.far, filler.as_mut_ptr().cast(), FILLER, QUIET) };
            if got <= 0 {
                return;
            }
        }
    }

    /// Makes the program's end readable for ever, as after the end of a connection.
    pub fn finish(&self) {
        // SAFETY: the descriptor belongs to the pair.
        unsafe { real::shutdown(self.far, libc::SHUT_WR) };
    }

    /// Waits until the program's end is readable.
    ///
    /// # Errors
    /// `EINTR` after a signal, `EAGAIN` after SO_RCVTIMEO.
    pub fn wait_readable(&self) -> Result<()> {
        let mut byte = [0_u8];
        // SAFETY: the buffer is valid for writing one byte.
        let got = unsafe { real::recv(self.near, byte.as_mut_ptr().cast(), 1, libc::MSG_PEEK) };
        if got < 0 { Err(Errno::last()) } else { Ok(()) }
    }

    /// Waits until the program's end is writable.
    ///
    /// # Errors
    /// `EINTR` after a signal, `EAGAIN` after SO_SNDTIMEO.
    pub fn wait_writable(&self) -> Result<()> {
        let byte = [0_u8];
        // SAFETY: the buffer is valid for reading one byte.
        let sent = unsafe { real::send(self.near, byte.as_ptr().cast(), 1, libc::MSG_NOSIGNAL) };
        if sent < 0 { Err(Errno::last()) } else { Ok(()) }
    }
}

/// No waiting, and no SIGPIPE.
const QUIET: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

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
            real::close(self.far);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(pair.wait_writable(), Err(Errno(libc::EAGAIN)));
        pair.drain();
        assert_eq!(events(fd), writable);
        assert_eq!(pair.wait_writable(), Ok(()));
        assert_eq!(pair.wait_readable(), Err(Errno(libc::EAGAIN)));
        pair.finish();
        assert_eq!(events(fd) & readable, readable);
        assert_eq!(pair.wait_readable(), Ok(()));
        // SAFETY: the descriptor was made above.
        unsafe { real::close(fd) };
    }
}
