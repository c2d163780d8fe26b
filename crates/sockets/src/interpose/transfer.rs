//! Calls that send and receive bytes without control messages.

use std::sync::Arc;

use bytes::Bytes;
use libc::{c_int, c_void, iovec, size_t, sockaddr, socklen_t, ssize_t};

use super::{dispatch_cancellable, raw};
use crate::abi::control::Controls;
use crate::critical::raise_pipe;
use crate::errno::Errno;
use crate::real;
use crate::socket::{Attempted, Outgoing, Socket, Stop};

/// Sends a message. Raises SIGPIPE if the association has ended and the program has not disabled that.
pub fn send_message(socket: &Arc<Socket>, outgoing: &Outgoing) -> Attempted<usize> {
    let sent = socket.send(outgoing);
    let is_lost = matches!(sent, Err(Stop::Error(Errno(libc::EPIPE))));
    if is_lost && outgoing.flags & libc::MSG_NOSIGNAL == 0 {
        raise_pipe();
    }
    sent
}

/// A message without control messages.
pub fn plain(bytes: Bytes, flags: c_int) -> Outgoing {
    Outgoing { bytes, to: None, controls: Controls::default(), flags }
}

/// Reads.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn read(fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t {
    // SAFETY: as the caller promises.
    dispatch_cancellable!(fd, unsafe { real::read(fd, buffer, length) }, |socket| {
        // SAFETY: as the caller promises.
        let mut into = unsafe { raw::Buffers::one(buffer, length) };
        socket.receive(&mut into, 0).map(|delivered| delivered.length)
    })
}

/// `read` with a check of the buffer size.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __read_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    room: size_t,
) -> ssize_t {
    check(length, room);
    // SAFETY: as the caller promises.
    unsafe { read(fd, buffer, length) }
}

/// Fails as the C library does when a program would write beyond a buffer.
fn check(length: size_t, room: size_t) {
    if length > room {
        eprintln!("libropewalk: buffer overflow detected: {length} bytes into {room}");
        std::process::abort();
    }
}

/// Reads into several buffers.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn readv(fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as the caller promises.
    dispatch_cancellable!(fd, unsafe { real::readv(fd, vector, count) }, |socket| {
        let count = usize::try_from(count).map_err(|_| Errno(libc::EINVAL))?;
        // SAFETY: as the caller promises.
        let mut into = unsafe { raw::Buffers::of_vector(vector, count) }?;
        socket.receive(&mut into, 0).map(|delivered| delivered.length)
    })
}

/// Receives.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recv(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as the caller promises.
    dispatch_cancellable!(fd, unsafe { real::recv(fd, buffer, length, flags) }, |socket| {
        // SAFETY: as the caller promises.
        let mut into = unsafe { raw::Buffers::one(buffer, length) };
        socket.receive(&mut into, flags).map(|delivered| delivered.length)
    })
}

/// `recv` with a check of the buffer size.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    check(length, room);
    // SAFETY: as the caller promises.
    unsafe { recv(fd, buffer, length, flags) }
}

/// Receives, with the peer's address.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: as the caller promises.
    let real = || unsafe { real::recvfrom(fd, buffer, length, flags, address, address_length) };
    dispatch_cancellable!(fd, real(), |socket| {
        // SAFETY: as the caller promises.
        let mut into = unsafe { raw::Buffers::one(buffer, length) };
        raw::check_room(address.cast(), address_length)?;
        let delivered = socket.receive(&mut into, flags)?;
        // SAFETY: as the caller promises.
        unsafe { raw::give_address(delivered.peer, address, address_length) };
        Ok::<_, Stop>(delivered.length)
    })
}

/// `recvfrom` with a check of the buffer size.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn __recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    room: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_length: *mut socklen_t,
) -> ssize_t {
    check(length, room);
    // SAFETY: as the caller promises.
    unsafe { recvfrom(fd, buffer, length, flags, address, address_length) }
}

/// Writes.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn write(fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t {
    // SAFETY: as the caller promises.
    dispatch_cancellable!(fd, unsafe { real::write(fd, buffer, length) }, |socket| {
        // SAFETY: as the caller promises.
        let bytes = unsafe { raw::message(buffer, length) }?;
        send_message(socket, &plain(bytes, 0))
    })
}

/// Writes several buffers as one message.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn writev(fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: as the caller promises.
    dispatch_cancellable!(fd, unsafe { real::writev(fd, vector, count) }, |socket| {
        let count = usize::try_from(count).map_err(|_| Errno(libc::EINVAL))?;
        // SAFETY: as the caller promises.
        let bytes = unsafe { raw::gathered(vector, count) }?;
        send_message(socket, &plain(bytes.into(), 0))
    })
}

/// Sends.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn send(
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: as the caller promises.
    dispatch_cancellable!(fd, unsafe { real::send(fd, buffer, length, flags) }, |socket| {
        // SAFETY: as the caller promises.
        let bytes = unsafe { raw::message(buffer, length) }?;
        send_message(socket, &plain(bytes, flags))
    })
}

/// Sends to an address.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    address: *const sockaddr,
    address_length: socklen_t,
) -> ssize_t {
    // SAFETY: as the caller promises.
    let real = || unsafe { real::sendto(fd, buffer, length, flags, address, address_length) };
    dispatch_cancellable!(fd, real(), |socket| {
        // SAFETY: as the caller promises.
        let bytes = unsafe { raw::message(buffer, length) }?;
        // SAFETY: as the caller promises.
        let to = unsafe { raw::address(address, address_length) }?;
        send_message(socket, &Outgoing { to, ..plain(bytes, flags) })
    })
}
