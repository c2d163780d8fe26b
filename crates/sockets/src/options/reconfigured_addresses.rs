//! Options about address changes during an association (RFC 5061; RFC 6458, 8.1.10, 8.1.23 and 8.3.4).

use libc::c_int;
use ropewalk_runtime::endpoint::AddressError;

use super::addresses::address_at;
use super::{assoc_value, assoc_value_image, only_before_associations};
use crate::abi::number::option;
use crate::abi::{Fields, Image};
use crate::errno::{Errno, Result};
use crate::socket::{Socket, State};

/// Linux's error numbers, where Linux has one.
pub const fn errno_of(error: AddressError) -> Errno {
    Errno(match error {
        AddressError::NotSupported => libc::EOPNOTSUPP,
        AddressError::Closing => libc::ENOTCONN,
        AddressError::TooMany => libc::ENOBUFS,
        AddressError::Unsuitable => libc::EADDRNOTAVAIL,
        AddressError::LastAddress => libc::EINVAL,
    })
}

/// Sets one of the options.
pub fn set(socket: &Socket, name: c_int, value: Fields<'_>) -> Result<()> {
    let state = &mut *socket.lock();
    match name {
        option::ASCONF_SUPPORTED => set_supported(state, value),
        option::AUTO_ASCONF => set_following(state, value),
        _ => ask_for_primary(socket, state, value),
    }
}

/// `SCTP_ASCONF_SUPPORTED`: whether later associations support address changes.
fn set_supported(state: &mut State, value: Fields<'_>) -> Result<()> {
    let wanted = assoc_value(value)?.1 != 0;
    only_before_associations(state)?;
    state.settings.address_reconfiguration = wanted;
    Ok(())
}

/// `SCTP_AUTO_ASCONF`: whether associations follow the addresses of interfaces. RFC 6458, 8.1.23: only for sockets
/// that are bound to all addresses.
fn set_following(state: &mut State, value: Fields<'_>) -> Result<()> {
    let wanted = value.i32(0)? != 0;
    if wanted && !state.place.addresses.is_empty() {
        return Err(Errno(libc::EINVAL));
    }
    state.settings.follow_interfaces = Some(wanted);
    let associations = state.links.values().map(|link| &link.association);
    associations.for_each(|association| association.set_follow_interfaces(wanted));
    Ok(())
}

/// `SCTP_SET_PEER_PRIMARY_ADDR`: asks the peer to use one of this end's addresses as its primary
/// destination.
fn ask_for_primary(socket: &Socket, state: &State, value: Fields<'_>) -> Result<()> {
    let address = address_at(value, 4)?.ok_or(Errno(libc::EINVAL))?;
    let (_, link) = state.link(socket.style, value.i32(0)?)?;
    link.association.request_primary(address.ip().to_canonical()).map_err(errno_of)
}

/// Gets `SCTP_AUTO_ASCONF` or `SCTP_ASCONF_SUPPORTED`. For an association: whether both ends support
/// it.
pub fn get(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    let state = &*socket.lock();
    if name == option::AUTO_ASCONF {
        return Ok(Image::new().i32(i32::from(state.settings.follows_interfaces())).finish());
    }
    let (id, _) = assoc_value(input)?;
    let link = state.link(socket.style, id).ok().map(|(_, link)| link);
    let on = link.map_or(state.settings.reconfigures_addresses(), |link| {
        link.association.reconfigures_addresses()
    });
    Ok(assoc_value_image(input, u32::from(on)))
}
