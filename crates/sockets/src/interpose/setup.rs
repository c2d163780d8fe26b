//! Calls that create, bind, connect and accept sockets.

use std::sync::Arc;

use libc::{c_int, sockaddr, socklen_t};

use super::calls::protected;
use super::{dispatch, dispatch_cancellable, raw, returned_int};
use crate::abi::number;
use crate::errno::Errno;
use crate::process::current;
use crate::real;
use crate::socket::{Attempted, Socket, Style};

/// Flags that may be combined with the type of a socket.
const FLAGS: c_int = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;

/// The style of an SCTP socket. `None` for any other kind of socket.
fn style_of(domain: c_int, kind: c_int, protocol: c_int) -> Option<Style> {
    let internet = matches!(domain, libc::AF_INET | libc::AF_INET6);
    match (kind & !FLAGS, protocol) {
        (libc::SOCK_STREAM, number::SCTP) if internet => Some(Style::OneToOne),
        // SCTP is the only such protocol of the internet, so the kernel accepts 0.
        (libc::SOCK_SEQPACKET, 0 | number::SCTP) if internet => Some(Style::OneToMany),
        _ => None,
    }
}

/// Creates a socket.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let Some(style) = style_of(domain, kind, protocol) else {
        // SAFETY: has no requirements.
        return unsafe { real::socket(domain, kind, protocol) };
    };
    returned_int(protected(|| {
        let (fd, socket) = Socket::new(style, domain == libc::AF_INET6, kind & FLAGS)?;
        current().insert(fd, socket);
        Ok(fd as isize)
    }))
}

/// Binds a socket.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn bind(
    fd: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    // SAFETY: as the caller promises.
    dispatch!(fd, unsafe { real::bind(fd, address, length) }, |socket| {
        // SAFETY: as the caller promises.
        let address = unsafe { raw::address(address, length) }?.ok_or(Errno(libc::EINVAL))?;
        socket.bind(&[address]).map(|()| 0)
    })
}

/// Accepts associations or connections.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C-unwind" fn listen(fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: has no requirements.
    dispatch!(fd, unsafe { real::listen(fd, backlog) }, |socket| socket.listen(backlog).map(|()| 0))
}

/// Connects a socket.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn connect(
    fd: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    // SAFETY: as the caller promises.
    dispatch_cancellable!(fd, unsafe { real::connect(fd, address, length) }, |socket| {
        // SAFETY: as the caller promises.
        let address = unsafe { raw::address(address, length) }?.ok_or(Errno(libc::EINVAL))?;
        let (_, stop) = socket.connect(&[address])?;
        Err::<c_int, _>(stop)
    })
}

/// # Safety
/// The pointers of `peer` are valid as for the C library's `accept`.
unsafe fn accept_one(
    socket: &Arc<Socket>,
    peer: (*mut sockaddr, *mut socklen_t),
    flags: c_int,
) -> Attempted<c_int> {
    raw::check_room(peer.0.cast(), peer.1)?;
    let accepted = socket.accept(flags)?;
    current().insert(accepted.fd, accepted.socket);
    // SAFETY: as the caller promises.
    unsafe { raw::give_address(Some(accepted.peer), peer.0, peer.1) };
    Ok(accepted.fd)
}

/// Accepts the next association or connection.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn accept(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: as the caller promises.
    dispatch_cancellable!(fd, unsafe { real::accept(fd, address, length) }, |socket| {
        // SAFETY: as the caller promises.
        unsafe { accept_one(socket, (address, length), 0) }
    })
}

/// `accept` with flags for the new descriptor.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    dispatch_cancellable!(fd, unsafe { real::accept4(fd, address, length, flags) }, |socket| {
        // SAFETY: as the caller promises.
        unsafe { accept_one(socket, (address, length), flags & FLAGS) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_sctp_are_told_from_others() {
        let (v4, v6) = (libc::AF_INET, libc::AF_INET6);
        let (stream, packets) = (libc::SOCK_STREAM, libc::SOCK_SEQPACKET);
        let cases = [
            ((v4, stream, 132), Some(Style::OneToOne)),
            ((v6, stream | libc::SOCK_CLOEXEC, 132), Some(Style::OneToOne)),
            ((v4, packets | libc::SOCK_NONBLOCK, 132), Some(Style::OneToMany)),
            ((v4, packets, 0), Some(Style::OneToMany)),
            ((v4, stream, 0), None),
            ((v4, stream, libc::IPPROTO_TCP), None),
            ((v4, libc::SOCK_DGRAM, 132), None),
            ((libc::AF_UNIX, packets, 0), None),
            ((libc::AF_UNIX, stream, 132), None),
        ];
        for ((domain, kind, protocol), expected) in cases {
            assert_eq!(style_of(domain, kind, protocol), expected, "{domain} {kind} {protocol}");
        }
    }
}
