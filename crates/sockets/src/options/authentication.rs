//! Options about authenticated chunks (RFC 4895; RFC 6458, 8.1.13, 8.1.14, 8.3).

use libc::c_int;
use ropewalk_runtime::endpoint::{ChunkTypes, SharedKeyError};

use super::{assoc_value, assoc_value_image, scope};
use crate::abi::number::option;
use crate::abi::{Fields, Image};
use crate::errno::{Errno, Result};
use crate::socket::{Socket, State};

/// Types of chunks that cannot be listed (RFC 6458, 8.3.2): INIT, INIT ACK, SHUTDOWN COMPLETE, AUTH.
const NEVER: [u8; 4] = [1, 2, 14, 15];

const fn errno_of(error: SharedKeyError) -> Errno {
    Errno(match error {
        SharedKeyError::TooMany => libc::ENOBUFS,
        SharedKeyError::TooLong | SharedKeyError::Unknown | SharedKeyError::Active => libc::EINVAL,
    })
}

/// Sets one of the options.
pub fn set(socket: &Socket, name: c_int, value: Fields<'_>) -> Result<()> {
    let state = &mut *socket.lock();
    match name {
        option::AUTH_SUPPORTED => set_supported(state, value),
        option::AUTH_CHUNK => add_chunk(state, value),
        option::AUTH_KEY => {
            let length = usize::from(value.u16(6)?);
            let key = value.rest(8)?.get(..length).ok_or(Errno(libc::EINVAL))?;
            change_key(socket, state, value, Change::Set(key))
        }
        option::AUTH_ACTIVE_KEY => change_key(socket, state, value, Change::Activate),
        _ => change_key(socket, state, value, Change::Delete),
    }
}

/// `SCTP_AUTH_SUPPORTED`: whether later associations offer authenticated chunks.
fn set_supported(state: &mut State, value: Fields<'_>) -> Result<()> {
    let wanted = assoc_value(value)?.1 != 0;
    if !state.links.is_empty() || state.listening.is_some() {
        return Err(Errno(libc::EINVAL));
    }
    state.settings.authentication = wanted;
    Ok(())
}

/// `SCTP_AUTH_CHUNK`: later associations require authentication of this type of chunk as well.
fn add_chunk(state: &mut State, value: Fields<'_>) -> Result<()> {
    let kind = *value.rest(0)?.first().ok_or(Errno(libc::EINVAL))?;
    if NEVER.contains(&kind) {
        return Err(Errno(libc::EINVAL));
    }
    let chunks = &mut state.settings.authenticated_chunks;
    *chunks = chunks.and(ChunkTypes::of(&[kind]));
    Ok(())
}

/// What happens to a shared key.
#[derive(Clone, Copy)]
enum Change<'a> {
    Set(&'a [u8]),
    Activate,
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
            Change::Delete => keys.delete(number),
        };
        done.map_err(errno_of)?;
    }
    for id in concerned.links {
        let association = &state.links[&id].association;
        let done = match change {
            Change::Set(key) => association.set_shared_key(number, key),
            Change::Activate => association.activate_shared_key(number),
            Change::Delete => association.delete_shared_key(number),
        };
        done.map_err(errno_of)?;
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
            // Of an association: whether both ends have it.
            let on =
                link.map_or(state.settings.authentication, |link| link.association.authenticates());
            Ok(assoc_value_image(input, u32::from(on)))
        }
        option::AUTH_ACTIVE_KEY => {
            let active = state.settings.shared_keys.active();
            Ok(Image::new().i32(input.i32(0)?).u16(active).pad_to(8).finish())
        }
        _ => {
            let types: Vec<u8> = state.settings.authenticated_chunks.iter().collect();
            let image = Image::new().i32(input.i32(0)?).u32(types.len() as u32).bytes(&types);
            Ok(image.finish())
        }
    }
}
