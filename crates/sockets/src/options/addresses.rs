//! Options about addresses, used by functions of `libsctp`, and options that open or move associations.

use std::net::SocketAddr;
use std::sync::Arc;

use libc::c_int;

use super::Answer;
use super::paths::path_to;
use crate::abi::number::option;
use crate::abi::{Fields, Image};
use crate::address::{self, STORAGE_LEN, shown};
use crate::errno::{Errno, Result};
use crate::interpose::raw;
use crate::process::current;
use crate::socket::{Socket, Stop};

/// Adds the addresses of `sctp_bindx`.
pub fn bindx_add(socket: &Arc<Socket>, value: Fields<'_>) -> Result<()> {
    socket.add_addresses(&address::parse_all(value.rest(0)?)?)
}

/// Removes the addresses of `sctp_bindx`.
pub fn bindx_remove(socket: &Arc<Socket>, value: Fields<'_>) -> Result<()> {
    socket.remove_addresses(&address::parse_all(value.rest(0)?)?)
}

/// Opens an association to the addresses of `sctp_connectx`.
pub fn connectx(socket: &Arc<Socket>, addresses: &[u8]) -> Result<(i32, Stop)> {
    socket.connect(&address::parse_all(addresses)?)
}

/// The same for `struct sctp_getaddrs_old`, which points to the addresses. Returns the structure with the
/// association's identifier.
pub fn connectx3(socket: &Arc<Socket>, input: Fields<'_>) -> Result<Answer> {
    let length = usize::try_from(input.i32(4)?).map_err(|_| Errno(libc::EINVAL))?;
    let pointer = input.rest(8)?.first_chunk().ok_or(Errno(libc::EINVAL))?;
    let addresses = raw::bytes_at(usize::from_ne_bytes(*pointer), length)?;
    let (id, stop) = connectx(socket, &addresses)?;
    Ok(Answer { value: Image::new().i32(id).finish(), stop: Some(stop) })
}

/// `struct sctp_getaddrs`: the addresses of the peer or of this end.
pub fn list(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    let id = input.i32(0)?;
    let state = &*socket.lock();
    let addresses = match name {
        option::GET_PEER_ADDRS => socket.peer_addresses(state, id)?,
        _ => socket.local_addresses(state, id)?,
    };
    let room = input.rest(8)?.len();
    let images: Vec<u8> = addresses.iter().flat_map(|a| address::image(*a)).collect();
    if images.len() > room {
        return Err(Errno(libc::ENOMEM));
    }
    Ok(Image::new().i32(id).u32(addresses.len() as u32).bytes(&images).finish())
}

/// `sctp_peeloff_arg_t`, with the new descriptor.
pub fn peel_off(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    let id = input.i32(0)?;
    let flags = if name == option::PEELOFF_FLAGS { input.i32(8)? } else { 0 };
    let peeled = socket.peel_off(id, flags & (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC))?;
    current().insert(peeled.fd, peeled.socket);
    let image = Image::new().i32(id).i32(peeled.fd);
    Ok(if name == option::PEELOFF_FLAGS { image.i32(flags) } else { image }.finish())
}

/// The address of `struct sctp_prim` and others, at an offset. `None` if it is unspecified or
/// invalid.
pub fn address_at(value: Fields<'_>, offset: usize) -> Result<Option<SocketAddr>> {
    let bytes = value.rest(offset)?;
    let bytes = bytes.get(..STORAGE_LEN).ok_or(Errno(libc::EINVAL))?;
    match address::parse(bytes) {
        Ok((address, _)) if !address.ip().is_unspecified() => Ok(Some(address)),
        _ => Ok(None),
    }
}

/// Makes the path to an address the primary one (RFC 6458, 8.1.9).
pub fn set_primary(socket: &Socket, value: Fields<'_>) -> Result<()> {
    let address = address_at(value, 4)?.ok_or(Errno(libc::EINVAL))?;
    let state = &*socket.lock();
    let (_, link, path) = path_to(socket, state, value.i32(0)?, address)?;
    link.association.set_primary(path);
    Ok(())
}

/// The address of the primary path.
pub fn primary(socket: &Socket, input: Fields<'_>) -> Result<Vec<u8>> {
    let state = &*socket.lock();
    let (id, link) = state.link(socket.style, input.i32(0)?)?;
    let primary = link.association.status().map_or(0, |status| status.primary);
    let stats = link.association.stats().ok_or(Errno(libc::EINVAL))?;
    let remote = stats.paths.get(primary).and_then(|path| path.remote);
    let ip = remote.unwrap_or(link.peer).ip();
    let address = SocketAddr::new(ip, link.peer.port());
    let address = shown(address, socket.ipv6, state.settings.mapped);
    Ok(Image::new().i32(id).bytes(&address::storage(address)).finish())
}

/// Offset of the port in `struct sctp_udpencaps`, whose address is aligned to 8 bytes.
const UDP_PORT_AT: usize = 8 + STORAGE_LEN;

/// Sets the UDP port of peers (RFC 6951, 6.1).
pub fn set_udp_port(socket: &Socket, value: Fields<'_>) -> Result<()> {
    let port = u16::from_be(value.u16(UDP_PORT_AT)?);
    let state = &mut *socket.lock();
    if port == 0 {
        // Port 0 would disable UDP encapsulation, without which the peer is unreachable.
        return Err(Errno(libc::EINVAL));
    }
    state.settings.peer_udp_port = Some(port);
    Ok(())
}

/// Gets the UDP port of peers.
pub fn udp_port(socket: &Socket, input: Fields<'_>) -> Result<Vec<u8>> {
    let address = input.rest(8)?.get(..STORAGE_LEN).ok_or(Errno(libc::EINVAL))?;
    let port = socket.lock().settings.peer_udp_port;
    let port = port.unwrap_or(current().settings().peer_udp_port);
    let image = Image::new().i32(input.i32(0)?).pad_to(8).bytes(address);
    Ok(image.u16(port.to_be()).pad_to(144).finish())
}
