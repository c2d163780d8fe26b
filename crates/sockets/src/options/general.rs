//! Options of SOL_SOCKET, IPPROTO_IP and IPPROTO_IPV6.

use libc::c_int;
use ropewalk_runtime::endpoint::Dscp;

use crate::abi::{Fields, Image, number};
use crate::errno::{Errno, Result};
use crate::interpose::raw;
use crate::process::Interface;
use crate::socket::{Socket, Style};

/// Defined in `asm-generic/socket.h` since Linux 5.0.
const SO_BINDTOIFINDEX: c_int = 62;

/// Minimum sizes of buffers that a program sees, bytes (Linux on 64 bits: `SOCK_MIN_RCVBUF`, `SOCK_MIN_SNDBUF`).
const LEAST_RECEIVE_BUFFER: u64 = 2304;
const LEAST_SEND_BUFFER: u64 = 4608;
/// Maximum buffer that a program can set, bytes.
const LARGEST_BUFFER: u64 = 256 << 20;

fn buffer(value: Fields<'_>, least: u64) -> Result<Option<u64>> {
    let bytes = u64::from(value.u32(0)?);
    // As in the kernel, half of the buffer is for overhead.
    Ok(Some(bytes.saturating_mul(2).clamp(least, LARGEST_BUFFER)))
}

/// Sets an option of SOL_SOCKET.
pub fn set(socket: &Socket, name: c_int, value: Fields<'_>) -> Result<()> {
    if matches!(name, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO) {
        return raw::set_option(socket.pair.near(), libc::SOL_SOCKET, name, value.rest(0)?);
    }
    if matches!(name, libc::SO_BINDTODEVICE | SO_BINDTOIFINDEX) {
        return bind_to_device(socket, name, value.rest(0)?);
    }
    let state = &mut *socket.lock();
    let settings = &mut state.settings;
    match name {
        libc::SO_SNDBUF | libc::SO_SNDBUFFORCE => {
            settings.send_buffer = buffer(value, LEAST_SEND_BUFFER)?;
        }
        libc::SO_RCVBUF | libc::SO_RCVBUFFORCE => {
            settings.receive_buffer = buffer(value, LEAST_RECEIVE_BUFFER)?;
        }
        libc::SO_LINGER => {
            let seconds = u64::try_from(value.i32(4)?).unwrap_or(0);
            settings.linger = (value.i32(0)? != 0).then_some(seconds);
        }
        libc::SO_REUSEADDR | libc::SO_REUSEPORT => {
            settings.reuse[usize::from(name == libc::SO_REUSEPORT)] = value.i32(0)?;
            state.on_sharing_changed(socket.ipv6);
        }
        libc::SO_KEEPALIVE => settings.keepalive = value.i32(0)?,
        _ => return Err(Errno(libc::ENOPROTOOPT)),
    }
    Ok(())
}

/// Restricts the socket to an interface. The kernel looks it up and checks that the program may use it: the
/// descriptor is bound too, which has no other effect.
fn bind_to_device(socket: &Socket, name: c_int, value: &[u8]) -> Result<()> {
    let fd = socket.pair.near();
    let state = &mut *socket.lock();
    // Its UDP sockets cannot be bound again.
    if state.listening.is_some() || !state.links.is_empty() {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    raw::set_option(fd, libc::SOL_SOCKET, name, value)?;
    let bound = raw::get_option(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, libc::IFNAMSIZ)?;
    let bound = String::from_utf8_lossy(&bound).trim_end_matches('\0').to_owned();
    let index = raw::get_option(fd, libc::SOL_SOCKET, SO_BINDTOIFINDEX, size_of::<c_int>())?;
    let index = Fields(&index).i32(0)?.cast_unsigned();
    state.place.interface = (index != 0).then_some(Interface { index, name: bound });
    state.on_sharing_changed(socket.ipv6);
    Ok(())
}

/// The name of the interface to which the socket is bound.
fn bound_device(interface: Option<&Interface>, room: usize) -> Result<Vec<u8>> {
    let Some(interface) = interface else { return Ok(Vec::new()) };
    if room < libc::IFNAMSIZ {
        return Err(Errno(libc::EINVAL));
    }
    Ok([interface.name.as_bytes(), &[0]].concat())
}

/// Gets an option of SOL_SOCKET.
pub fn get(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    if matches!(name, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO) {
        let length = input.rest(0)?.len();
        return raw::get_option(socket.pair.near(), libc::SOL_SOCKET, name, length);
    }
    if name == libc::SO_ERROR {
        return Ok(Image::new().i32(socket.take_error().map_or(0, |error| error.0)).finish());
    }
    let state = socket.lock();
    let settings = &state.settings;
    let interface = state.place.interface.as_ref();
    let size = |bytes: u64| i32::try_from(bytes).unwrap_or(i32::MAX);
    let value = match name {
        libc::SO_TYPE => match socket.style {
            Style::OneToOne => libc::SOCK_STREAM,
            Style::OneToMany => libc::SOCK_SEQPACKET,
        },
        libc::SO_PROTOCOL => number::SCTP,
        libc::SO_DOMAIN if socket.ipv6 => libc::AF_INET6,
        libc::SO_DOMAIN => libc::AF_INET,
        libc::SO_ACCEPTCONN => i32::from(state.listening.is_some()),
        libc::SO_SNDBUF => {
            let default = || {
                let transport = settings.transport();
                transport.send_buffer.unwrap_or(transport.receive_buffer * 4)
            };
            size(settings.send_buffer.unwrap_or_else(default))
        }
        libc::SO_RCVBUF => {
            let default = || settings.transport().receive_buffer;
            size(settings.receive_buffer.unwrap_or_else(default))
        }
        libc::SO_REUSEADDR => settings.reuse[0],
        libc::SO_REUSEPORT => settings.reuse[1],
        libc::SO_KEEPALIVE => settings.keepalive,
        libc::SO_BINDTODEVICE => return bound_device(interface, input.rest(0)?.len()),
        SO_BINDTOIFINDEX => interface.map_or(0, |interface| interface.index.cast_signed()),
        libc::SO_LINGER => {
            let on = i32::from(settings.linger.is_some());
            let seconds = size(settings.linger.unwrap_or(0));
            return Ok(Image::new().i32(on).i32(seconds).finish());
        }
        _ => return Err(Errno(libc::ENOPROTOOPT)),
    };
    Ok(Image::new().i32(value).finish())
}

/// Sets an option of IPPROTO_IP.
pub fn set_ip(socket: &Socket, name: c_int, value: Fields<'_>) -> Result<()> {
    if name != libc::IP_TOS {
        return Err(Errno(libc::ENOPROTOOPT));
    }
    // As in the kernel, one byte is enough.
    let field = value.i32(0).or_else(|_| value.u8(0).map(i32::from))?;
    set_dscp(socket, field as u8);
    Ok(())
}

/// Gets an option of IPPROTO_IP.
pub fn get_ip(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    if name != libc::IP_TOS {
        return Err(Errno(libc::ENOPROTOOPT));
    }
    let field = socket.lock().settings.dscp.field();
    let is_short = input.i32(0).is_err();
    Ok(if is_short { vec![field] } else { Image::new().i32(i32::from(field)).finish() })
}

/// Marks the packets of all associations with the DSCP of this TOS byte or traffic class. Its ECN field belongs to the
/// transport.
fn set_dscp(socket: &Socket, field: u8) {
    let state = &mut *socket.lock();
    let dscp = Dscp::of_field(field);
    state.settings.dscp = dscp;
    for link in state.links.values() {
        link.association.set_dscp(None, dscp);
    }
}

/// Sets an option of IPPROTO_IPV6.
pub fn set_ipv6(socket: &Socket, name: c_int, value: Fields<'_>) -> Result<()> {
    match name {
        libc::IPV6_V6ONLY if socket.ipv6 => {
            let state = &mut *socket.lock();
            // RFC 3493, 5.3: before the socket is bound.
            if state.claim.is_some() {
                return Err(Errno(libc::EINVAL));
            }
            state.settings.v6_only = value.i32(0)? != 0;
        }
        // RFC 3542, 6.5: -1 stands for the default.
        libc::IPV6_TCLASS if socket.ipv6 => match value.i32(0)? {
            class @ -1..=255 => set_dscp(socket, u8::try_from(class).unwrap_or(0)),
            _ => return Err(Errno(libc::EINVAL)),
        },
        _ => return Err(Errno(libc::ENOPROTOOPT)),
    }
    Ok(())
}

/// Gets an option of IPPROTO_IPV6.
pub fn get_ipv6(socket: &Socket, name: c_int) -> Result<Vec<u8>> {
    let settings = &socket.lock().settings;
    let value = match name {
        libc::IPV6_V6ONLY if socket.ipv6 => i32::from(settings.v6_only),
        libc::IPV6_TCLASS if socket.ipv6 => i32::from(settings.dscp.field()),
        _ => return Err(Errno(libc::ENOPROTOOPT)),
    };
    Ok(Image::new().i32(value).finish())
}
