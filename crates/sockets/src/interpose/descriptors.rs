//! Calls about descriptors: closing, duplicating, flags.

use std::sync::Arc;
use std::time::Duration;

use libc::{c_int, c_uint, c_ulong, c_void};

use super::{dispatch, guarded, raw, returned_int};
use crate::errno::{Errno, Result};
use crate::process::{Found, current, is_ours};
use crate::real;
use crate::signals::Blocked;
use crate::socket::Socket;

/// Flag of `close_range`: not in the `libc` crate for all targets.
const CLOSE_RANGE_UNSHARE: c_int = 2;

/// Removes a descriptor from the table. Returns its socket if it was the last one.
fn removed(fd: c_int) -> Option<Arc<Socket>> {
    let remove = || Ok(if current().is_current() { current().remove(fd) } else { None });
    guarded(remove).unwrap_or_default()
}

/// Closes a socket that has no descriptor any longer, and waits as its `SO_LINGER` says.
fn close_socket(socket: &Socket, signals: &Blocked) {
    let closed = guarded(|| {
        socket.close();
        Ok(socket.linger_s())
    });
    if let Ok(Some(seconds)) = closed {
        let limit = Duration::from_secs(seconds);
        let _ = signals.unblocked(|| current().wait_for_closing(limit));
    }
}

/// Removes a descriptor from the table, and closes its socket if it was the last one.
fn forget(fd: c_int) {
    let signals = Blocked::new();
    if let Some(socket) = removed(fd) {
        close_socket(&socket, &signals);
    }
}

/// Closes a descriptor.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C" fn close(fd: c_int) -> c_int {
    if is_ours(fd) {
        forget(fd);
    }
    // SAFETY: the descriptor is the program's to close.
    unsafe { real::close(fd) }
}

/// Closes a range of descriptors.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // CLOSE_RANGE_CLOEXEC closes nothing now, and the kernel refuses unknown flags.
    if matches!(flags, 0 | CLOSE_RANGE_UNSHARE) {
        let last = last.min(1 << 16);
        let fds = (first..=last).filter_map(|fd| c_int::try_from(fd).ok());
        fds.filter(|fd| is_ours(*fd)).for_each(forget);
    }
    // SAFETY: the descriptors are the program's to close.
    unsafe { real::close_range(first, last, flags) }
}

/// Enters the duplicate of a descriptor.
fn duplicated(from: c_int, to: c_int) {
    if to < 0 || !is_ours(from) || !current().is_current() {
        return;
    }
    let _signals = Blocked::new();
    let _ = guarded(|| {
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
pub extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: has no requirements.
    let copy = unsafe { real::dup(fd) };
    duplicated(fd, copy);
    copy
}

/// Duplicates a descriptor to a number by `real`. As in the kernel, the socket that has had this number is closed only if
/// that succeeds.
fn duplicated_to(fd: c_int, to: c_int, real: impl FnOnce() -> c_int) -> c_int {
    let signals = Blocked::new();
    let copy = real();
    if copy < 0 || fd == to {
        return copy;
    }
    let replaced = if is_ours(to) { removed(to) } else { None };
    // Other threads may use the duplicate while this one waits for the end of the replaced socket.
    duplicated(fd, copy);
    if let Some(socket) = replaced {
        close_socket(&socket, &signals);
    }
    copy
}

/// Duplicates a descriptor to a number.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    // SAFETY: has no requirements.
    duplicated_to(fd, to, || unsafe { real::dup2(fd, to) })
}

/// Duplicates a descriptor to a number, with flags.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: has no requirements.
    duplicated_to(fd, to, || unsafe { real::dup3(fd, to, flags) })
}

/// Follows what `fcntl` has done to a descriptor of a socket.
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
    let _signals = Blocked::new();
    let _ = guarded(|| {
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
pub unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    // SAFETY: as the caller promises.
    let result = unsafe { real::fcntl(fd, command, argument) };
    if is_ours(fd) {
        controlled(fd, command, argument, result);
    }
    result
}

/// The same for programs that are built with large files.
///
/// # Safety
/// As [`fcntl`].
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
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
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
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
        libc::FIONREAD => dispatch!(fd, real(), |socket, _| {
            let count = c_int::try_from(socket.readable_bytes()).unwrap_or(c_int::MAX);
            raw::check(argument, size_of::<c_int>())?;
            // SAFETY: the argument of this request is an int.
            unsafe { argument.cast::<c_int>().write_unaligned(count) };
            Ok(0)
        }),
        _ => real(),
    }
}

/// Ends sending or receiving.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C" fn shutdown(fd: c_int, how: c_int) -> c_int {
    if !(libc::SHUT_RD..=libc::SHUT_RDWR).contains(&how) {
        return returned_int(Err::<c_int, _>(Errno(libc::EINVAL)));
    }
    // SAFETY: has no requirements.
    dispatch!(fd, unsafe { real::shutdown(fd, how) }, |socket, _| socket.shutdown(how).map(|()| 0))
}

/// Sends from a file: reads it in pieces, because the kernel does not know the socket.
fn send_file(
    out: c_int,
    from: c_int,
    count: usize,
    mut read: impl FnMut(&mut [u8]) -> isize,
) -> Result<isize> {
    let mut piece = vec![0_u8; count.min(1 << 16)];
    let got = read(&mut piece);
    if got <= 0 {
        return if got < 0 { Err(Errno::last()) } else { Ok(0) };
    }
    let _ = from;
    // SAFETY: the buffer is readable for `got` bytes.
    let sent = unsafe { super::transfer::write(out, piece.as_ptr().cast(), got as usize) };
    if sent < 0 { Err(Errno::last()) } else { Ok(sent) }
}

/// Sends from a file.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn sendfile(
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

/// The same for programs that are built with large files.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn sendfile64(
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

/// # Safety
/// `offset` is null or valid.
unsafe fn sendfile_ours(
    out: c_int,
    from: c_int,
    offset: *mut libc::off64_t,
    count: usize,
) -> libc::ssize_t {
    if !offset.is_null()
        && let Err(error) = raw::check(offset.cast(), size_of::<libc::off64_t>())
    {
        return super::returned(Err::<isize, _>(error));
    }
    // SAFETY: as the caller promises.
    let at = (!offset.is_null()).then(|| unsafe { *offset });
    let sent = send_file(out, from, count, |piece| match at {
        // SAFETY: the buffer is writable for its length.
        Some(at) => unsafe { libc::pread64(from, piece.as_mut_ptr().cast(), piece.len(), at) },
        // SAFETY: the buffer is writable for its length.
        None => unsafe { real::read(from, piece.as_mut_ptr().cast(), piece.len()) },
    });
    if let (Some(at), Ok(sent)) = (at, &sent) {
        // SAFETY: as the caller promises.
        unsafe { *offset = at + *sent as libc::off64_t };
    }
    super::returned(sent)
}

/// Address of the descriptor's socket as seen from this end.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn getsockname(
    fd: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    // SAFETY: as the caller promises.
    dispatch!(fd, unsafe { real::getsockname(fd, address, length) }, |socket, _| {
        raw::check_room(address.cast(), length)?;
        // SAFETY: as the caller promises.
        unsafe { raw::give_address(Some(socket.local_name()), address, length) };
        Ok(0)
    })
}

/// Address of the descriptor's peer.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn getpeername(
    fd: c_int,
    address: *mut libc::sockaddr,
    length: *mut libc::socklen_t,
) -> c_int {
    // SAFETY: as the caller promises.
    dispatch!(fd, unsafe { real::getpeername(fd, address, length) }, |socket, _| {
        let peer = socket.peer_name()?;
        raw::check_room(address.cast(), length)?;
        // SAFETY: as the caller promises.
        unsafe { raw::give_address(Some(peer), address, length) };
        Ok(0)
    })
}
