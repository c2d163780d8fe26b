//! Calls on descriptors: closing, duplicating, flags.

use std::sync::Arc;

use libc::{c_int, c_uint, c_ulong, c_void};

use super::calls::{Ticket, protected, wait_once};
use super::transfer::{plain, send_message};
use super::{dispatch, raw, returned_int};
use crate::critical::{cancellation_point, uncancelled};
use crate::errno::Errno;
use crate::process::{Found, current, is_ours};
use crate::real;
use crate::socket::{Attempted, Socket};

/// Flag of `close_range`, which the `libc` crate does not define for all targets.
const CLOSE_RANGE_UNSHARE: c_int = 2;
/// Maximum message size of `sendfile`, bytes.
const PIECE: usize = 1 << 16;

/// Removes a descriptor from the table.
fn removed(fd: c_int) -> Option<Arc<Socket>> {
    if current().is_current() { current().remove(fd) } else { None }
}

/// Closes a socket without descriptors. Returns what to wait for because of its `SO_LINGER`.
fn close_socket(socket: &Arc<Socket>) -> Option<Ticket> {
    socket.close().map(Ticket::park)
}

/// Removes a descriptor from the table, and closes its socket if it was the last one. Returns what to wait for.
fn forget(fd: c_int) -> Option<Ticket> {
    let closed = protected(|| Ok(removed(fd).as_ref().and_then(close_socket)));
    closed.unwrap_or_default()
}

/// Closes a descriptor. If the thread is cancelled while it waits for the end of the association, the
/// descriptor is already closed.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn close(fd: c_int) -> c_int {
    if !is_ours(fd) {
        // SAFETY: the descriptor is the program's to close.
        return unsafe { real::close(fd) };
    }
    cancellation_point();
    let close = || {
        let ticket = forget(fd);
        // SAFETY: the descriptor is the program's to close.
        (ticket, unsafe { real::close(fd) }, Errno::last())
    };
    let (ticket, closed, errno) = uncancelled(close);
    wait_once(ticket);
    if closed < 0 {
        errno.set();
    }
    closed
}

/// Closes a range of descriptors.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // With CLOSE_RANGE_CLOEXEC nothing is closed now, and the kernel refuses unknown flags.
    if matches!(flags, 0 | CLOSE_RANGE_UNSHARE) {
        let fds = (first..=last.min(1 << 16)).filter_map(|fd| c_int::try_from(fd).ok());
        let forget_and_wait = |fd| uncancelled(|| wait_once(forget(fd)));
        fds.filter(|fd| is_ours(*fd)).for_each(forget_and_wait);
    }
    // SAFETY: the descriptors are the program's to close.
    unsafe { real::close_range(first, last, flags) }
}

/// Adds the duplicate of a descriptor to the table.
fn duplicated(from: c_int, to: c_int) {
    if to < 0 || !is_ours(from) || !current().is_current() {
        return;
    }
    let _ = protected(|| {
        match current().find(from) {
            Found::Socket(socket) => current().insert(to, socket),
            Found::Inherited => current().insert_inherited(to),
            Found::Other => {}
        }
        Ok(())
    });
}

/// Duplicates a descriptor.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn dup(fd: c_int) -> c_int {
    // SAFETY: has no requirements.
    let copy = unsafe { real::dup(fd) };
    duplicated(fd, copy);
    copy
}

/// Duplicates a descriptor to a number with `real`. As in the kernel, the socket that had this number is closed
/// only if that succeeds.
fn duplicated_to(fd: c_int, to: c_int, real: impl FnOnce() -> c_int + Copy) -> c_int {
    let replaced = protected(|| {
        let copy = real();
        if copy < 0 || fd == to {
            return Ok((copy, None, Errno::last()));
        }
        let replaced = if is_ours(to) { removed(to) } else { None };
        // Other threads may use the duplicate while this one waits for the end of the replaced socket.
        duplicated(fd, copy);
        Ok((copy, replaced.as_ref().and_then(close_socket), Errno(0)))
    });
    let (copy, ticket, errno) = replaced.unwrap_or((to, None, Errno(0)));
    uncancelled(|| wait_once(ticket));
    if copy < 0 {
        errno.set();
    }
    copy
}

/// Duplicates a descriptor to a number.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn dup2(fd: c_int, to: c_int) -> c_int {
    // SAFETY: has no requirements.
    duplicated_to(fd, to, || unsafe { real::dup2(fd, to) })
}

/// Duplicates a descriptor to a number, with flags.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: has no requirements.
    duplicated_to(fd, to, || unsafe { real::dup3(fd, to, flags) })
}

/// Applies the effects of `fcntl` on a socket's descriptor.
fn controlled(fd: c_int, command: c_int, argument: c_ulong, result: c_int) {
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => duplicated(fd, result),
        libc::F_SETFL if result >= 0 => {
            set_nonblocking(fd, argument as c_int & libc::O_NONBLOCK != 0)
        }
        _ => {}
    }
}

fn set_nonblocking(fd: c_int, on: bool) {
    let _ = protected(|| {
        if let Found::Socket(socket) = current().find(fd)
            && current().is_current()
        {
            socket.set_nonblocking(on);
        }
        Ok(())
    });
}

/// Controls a descriptor.
///
/// # Safety
/// As the C library says. The third argument is read whether or not the caller has passed one, which the calling
/// conventions of Linux permit.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    // SAFETY: as the caller promises.
    let result = unsafe { real::fcntl(fd, command, argument) };
    if is_ours(fd) {
        controlled(fd, command, argument, result);
    }
    result
}

/// [`fcntl`] for programs that are built with large file support.
///
/// # Safety
/// As [`fcntl`].
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn fcntl64(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    // SAFETY: as the caller promises.
    let result = unsafe { real::fcntl64(fd, command, argument) };
    if is_ours(fd) {
        controlled(fd, command, argument, result);
    }
    result
}

/// Controls a device or socket.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // SAFETY: as the caller promises.
    let real = || unsafe { real::ioctl(fd, request, argument) };
    // The kernel reads 32 bits of the request.
    match request as u32 as c_ulong {
        libc::FIONBIO => {
            let result = real();
            if result >= 0 && is_ours(fd) {
                // SAFETY: the C library has just read the same int.
                set_nonblocking(fd, unsafe { *argument.cast::<c_int>() } != 0);
            }
            result
        }
        libc::FIONREAD => dispatch!(fd, real(), |socket| {
            let count = c_int::try_from(socket.readable_bytes()?).unwrap_or(c_int::MAX);
            raw::check(argument, size_of::<c_int>())?;
            // SAFETY: the argument of this request is an int.
            unsafe { argument.cast::<c_int>().write_unaligned(count) };
            Ok::<c_int, Errno>(0)
        }),
        _ => real(),
    }
}

/// Ends sending or receiving.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn shutdown(fd: c_int, how: c_int) -> c_int {
    if !(libc::SHUT_RD..=libc::SHUT_RDWR).contains(&how) {
        return returned_int(Err::<c_int, _>(Errno(libc::EINVAL)));
    }
    // SAFETY: has no requirements.
    dispatch!(fd, unsafe { real::shutdown(fd, how) }, |socket| socket.shutdown(how).map(|()| 0))
}

/// Sends from a file.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendfile(
    out: c_int,
    from: c_int,
    offset: *mut libc::off_t,
    count: libc::size_t,
) -> libc::ssize_t {
    if !is_ours(out) {
        // SAFETY: as the caller promises.
        return unsafe { real::sendfile(out, from, offset, count) };
    }
    // SAFETY: as the caller promises; both types of offsets have 64 bits.
    unsafe { sendfile_ours(out, from, offset.cast(), count) }
}

/// `sendfile` for programs that are built with large file support.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendfile64(
    out: c_int,
    from: c_int,
    offset: *mut libc::off64_t,
    count: libc::size_t,
) -> libc::ssize_t {
    if !is_ours(out) {
        // SAFETY: as the caller promises.
        return unsafe { real::sendfile64(out, from, offset, count) };
    }
    // SAFETY: as the caller promises.
    unsafe { sendfile_ours(out, from, offset, count) }
}

/// Reads from a file and sends the bytes as one message. The kernel cannot do this, because it does not know
/// the socket.
///
/// # Safety
/// `offset` is null or valid.
unsafe fn sendfile_ours(
    out: c_int,
    from: c_int,
    offset: *mut libc::off64_t,
    count: usize,
) -> libc::ssize_t {
    let send = |socket: &Arc<Socket>| -> Attempted<usize> {
        let at = match offset.is_null() {
            // SAFETY: has no requirements.
            true => unsafe { libc::lseek64(from, 0, libc::SEEK_CUR) },
            false => {
                raw::check(offset.cast(), size_of::<libc::off64_t>())?;
                // SAFETY: it was checked.
                unsafe { *offset }
            }
        };
        let mut piece = vec![0_u8; count.min(PIECE)];
        // SAFETY: the buffer is writable for its length.
        let got = unsafe { libc::pread64(from, piece.as_mut_ptr().cast(), piece.len(), at) };
        piece.truncate(usize::try_from(got).map_err(|_| Errno::last())?);
        if piece.is_empty() {
            return Ok(0);
        }
        let sent = send_message(socket, &plain(piece.into(), 0))?;
        let after = at + sent as libc::off64_t;
        match offset.is_null() {
            // SAFETY: has no requirements.
            true => _ = unsafe { libc::lseek64(from, after, libc::SEEK_SET) },
            // SAFETY: it was checked.
            false => unsafe { *offset = after },
        }
        Ok(sent)
    };
    // SAFETY: as the caller promises.
    dispatch!(out, unsafe { real::sendfile64(out, from, offset, count) }, send)
}

/// Local address of the descriptor's socket.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getsockname(
    fd: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    // SAFETY: as the caller promises.
    dispatch!(fd, unsafe { real::getsockname(fd, address, length) }, |socket| {
        raw::check_room(address.cast(), length)?;
        // SAFETY: as the caller promises.
        unsafe { raw::give_address(Some(socket.local_name()), address, length) };
        Ok::<c_int, Errno>(0)
    })
}

/// Address of the descriptor's peer.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn getpeername(
    fd: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    // SAFETY: as the caller promises.
    dispatch!(fd, unsafe { real::getpeername(fd, address, length) }, |socket| {
        let peer = socket.peer_name()?;
        raw::check_room(address.cast(), length)?;
        // SAFETY: as the caller promises.
        unsafe { raw::give_address(Some(peer), address, length) };
        Ok::<c_int, Errno>(0)
    })
}
