//! Calls that make, bind, connect and accept sockets.

use libc::{c_int, sockaddr, socklen_t};

use super::{dispatch, guarded, raw, returned_int};
use crate::abi::number;
use crate::errno::Errno;
use crate::process::current;
use crate::real;
use crate::signals::Blocked;
use crate::socket::{Socket, Style};

/// Flags beside the type of a socket.
const FLAGS: c_int = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;

/// The style of an SCTP socket; none: it is another kind of socket.
fn style_of(domain: c_int, kind: c_int, protocol: c_int) -> Option<Style> {
    let internet = matches!(domain, libc::AF_INET | libc::AF_INET6);
    match (kind & !FLAGS, protocol) {
        (libc::SOCK_STREAM, number::SCTP) if internet => Some(Style::OneToOne),
        // SCTP is the only such protocol of the internet, so the kernel takes 0 for it.
        (libc::SOCK_SEQPACKET, 0 | number::SCTP) if internet => Some(Style::OneToMany),
        _ => None,
    }
}

/// Makes a socket.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let Some(style) = style_of(domain, kind, protocol) else {
        // SAFETY: has no requirements.
        return unsafe { real::socket(domain, kind, protocol) };
    };
    let _signals = Blocked::new();
    returned_int(guarded(|| {
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
pub unsafe extern "C" fn bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: as the caller promises.
    dispatch!(fd, unsafe { real::bind(fd, address, length) }, |socket, _| {
        // SAFETY: as the caller promises.
        let address = unsafe { raw::address(address, length) }?.ok_or(Errno(libc::EINVAL))?;
        socket.bind(&[address]).map(|()| 0)
    })
}

/// Accepts associations or connections.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: has no requirements.
    dispatch!(fd, unsafe { real::listen(fd, backlog) }, |socket, _| socket
        .listen(backlog)
        .map(|()| 0))
}

/// Connects a socket.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: as the caller promises.
    dispatch!(fd, unsafe { real::connect(fd, address, length) }, |socket, signals| {
        // SAFETY: as the caller promises.
        let address = unsafe { raw::address(address, length) }?.ok_or(Errno(libc::EINVAL))?;
        let (_, done) = socket.connect(&[address], signals)?;
        done.map(|()| 0)
    })
}

/// Accepts the next association or connection.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn accept(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: as the caller promises.
    dispatch!(fd, unsafe { real::accept(fd, address, length) }, |socket, signals| {
        raw::check_room(address.cast(), length)?;
        let accepted = socket.accept(0, signals)?;
        current().insert(accepted.fd, accepted.socket);
        // SAFETY: as the caller promises.
        unsafe { raw::give_address(Some(accepted.peer), address, length) };
        Ok(accepted.fd as isize)
    })
}

/// The same with flags for the new descriptor.
///
/// # Safety
/// As the C library says.
#[cfg_attr(not(miri), unsafe(no_mangle))]
pub unsafe extern "C" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    dispatch!(fd, unsafe { real::accept4(fd, address, length, flags) }, |socket, signals| {
        raw::check_room(address.cast(), length)?;
        let accepted = socket.accept(flags & FLAGS, signals)?;
        current().insert(accepted.fd, accepted.socket);
        // SAFETY: as the caller promises.
        unsafe { raw::give_address(Some(accepted.peer), address, length) };
        Ok(accepted.fd as isize)
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
