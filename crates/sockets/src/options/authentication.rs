//! Options about authenticated chunks (RFC 4895; RFC 6458, 8.1.13, 8.1.14, 8.3).

use libc::c_int;
use ropewalk_runtime::endpoint::{ChunkTypes, HmacId, HmacList, HmacListError, SharedKeyError};

use super::{assoc_value, assoc_value_image, only_before_associations, scope};
use crate::abi::number::option;
use crate::abi::{Fields, Image};
use crate::errno::{Errno, Result};
use crate::socket::{Socket, State};

/// Maximum number of algorithms in a list.
const HMACS_LIMIT: usize = 8;
/// Types of chunks that cannot be listed (RFC 6458, 8.3.2): INIT, INIT ACK, SHUTDOWN COMPLETE, AUTH.
const NEVER: [u8; 4] = [1, 2, 14, 15];

const fn errno_of(error: SharedKeyError) -> Errno {
    Errno(match error {
        SharedKeyError::TooMany => libc::ENOBUFS,
        SharedKeyError::TooLong
        | SharedKeyError::Unknown
        | SharedKeyError::Active
        | SharedKeyError::Deactivated => libc::EINVAL,
    })
}

/// Sets one of the options.
pub fn set(socket: &Socket, name: c_int, value: Fields<'_>) -> Result<()> {
    let state = &mut *socket.lock();
    match name {
        option::AUTH_SUPPORTED => set_supported(state, value),
        option::AUTH_CHUNK => add_chunk(state, value),
        option::HMAC_IDENT => set_hmacs(state, value),
        option::AUTH_KEY => {
            let length = usize::from(value.u16(6)?);
            let key = value.rest(8)?.get(..length).ok_or(Errno(libc::EINVAL))?;
            change_key(socket, state, value, Change::Set(key))
        }
        option::AUTH_ACTIVE_KEY => change_key(socket, state, value, Change::Activate),
        option::AUTH_DEACTIVATE_KEY => change_key(socket, state, value, Change::Deactivate),
        _ => change_key(socket, state, value, Change::Delete),
    }
}

/// `SCTP_AUTH_SUPPORTED`: whether later associations offer authenticated chunks.
fn set_supported(state: &mut State, value: Fields<'_>) -> Result<()> {
    let wanted = assoc_value(value)?.1 != 0;
    only_before_associations(state)?;
    state.settings.authentication = wanted;
    Ok(())
}

/// `SCTP_AUTH_CHUNK`: later associations also require authentication of this type of chunk.
fn add_chunk(state: &mut State, value: Fields<'_>) -> Result<()> {
    let kind = *value.rest(0)?.first().ok_or(Errno(libc::EINVAL))?;
    if NEVER.contains(&kind) {
        return Err(Errno(libc::EINVAL));
    }
    let chunks = &mut state.settings.authenticated_chunks;
    *chunks = chunks.and(ChunkTypes::of(&[kind]));
    Ok(())
}

/// `SCTP_HMAC_IDENT`: the algorithms that later associations offer, in order of preference.
fn set_hmacs(state: &mut State, value: Fields<'_>) -> Result<()> {
    let count = usize::try_from(value.u32(0)?).map_err(|_| Errno(libc::EINVAL))?;
    // There are fewer algorithms than this.
    if count > HMACS_LIMIT {
        return Err(Errno(libc::EINVAL));
    }
    let numbers = (0..count).map(|at| value.u16(4 + 2 * at)).collect::<Result<Vec<_>>>()?;
    state.settings.hmacs = HmacList::of(&numbers).map_err(|error| {
        Errno(match error {
            HmacListError::Unsupported(_) => libc::EOPNOTSUPP,
            HmacListError::NoSha1 => libc::EINVAL,
        })
    })?;
    Ok(())
}

/// A change of a shared key.
#[derive(Clone, Copy)]
enum Change<'a> {
    Set(&'a [u8]),
    Activate,
    Deactivate,
    Delete,
}

/// Changes a shared key of the socket, of one of its associations, or of both.
fn change_key(
    socket: &Socket,
    state: &mut State,
    value: Fields<'_>,
    change: Change<'_>,
) -> Result<()> {
    let (id, number) = (value.i32(0)?, value.u16(4)?);
    let concerned = scope(socket, state, id)?;
    if concerned.settings {
        let keys = &mut state.settings.shared_keys;
        let done = match change {
            Change::Set(key) => keys.set(number, key),
            Change::Activate => keys.activate(number),
            Change::Deactivate => keys.deactivate(number),
            Change::Delete => keys.delete(number),
        };
        done.map_err(errno_of)?;
    }
    for id in concerned.links {
        let association = &state.links[&id].association;
        let done = match change {
            Change::Set(key) => association.set_shared_key(number, key),
            Change::Activate => association.activate_shared_key(number),
            Change::Deactivate => association.deactivate_shared_key(number),
            Change::Delete => association.delete_shared_key(number),
        };
        done.map_err(errno_of)?;
        if matches!(change, Change::Deactivate) {
            socket.on_key_free(state, id, number);
        }
    }
    Ok(())
}

/// Gets one of the options.
pub fn get(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    let state = &*socket.lock();
    match name {
        option::AUTH_SUPPORTED => {
            let (id, _) = assoc_value(input)?;
            let link = state.link(socket.style, id).ok().map(|(_, link)| link);
            // For an association: whether both ends support it.
            let on =
                link.map_or(state.settings.authentication, |link| link.association.authenticates());
            Ok(assoc_value_image(input, u32::from(on)))
        }
        option::AUTH_ACTIVE_KEY => {
            let active = state.settings.shared_keys.active();
            Ok(Image::new().i32(input.i32(0)?).u16(active).pad_to(8).finish())
        }
        option::HMAC_IDENT => {
            let numbers: Vec<u16> = state.settings.hmacs.iter().map(HmacId::number).collect();
            let image = Image::new().u32(numbers.len() as u32);
            Ok(numbers.into_iter().fold(image, |image, number| image.u16(number)).finish())
        }
        option::PEER_AUTH_CHUNKS => {
            let (_, link) = state.link(socket.style, input.i32(0)?)?;
            chunks(input, link.association.peer_authenticated_chunks())
        }
        _ => chunks(input, state.settings.authenticated_chunks),
    }
}

/// `struct sctp_authchunks`.
fn chunks(input: Fields<'_>, types: ChunkTypes) -> Result<Vec<u8>> {
    let types: Vec<u8> = types.iter().collect();
    Ok(Image::new().i32(input.i32(0)?).u32(types.len() as u32).bytes(&types).finish())
}
