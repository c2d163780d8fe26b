//! Options about messages that each association has separately, such as default parameters for sending.

use libc::c_int;

use super::{assoc_value, assoc_value_image, scope};
use crate::abi::control::{SendInfo, known_policy, names_one};
use crate::abi::number::{association, message, option};
use crate::abi::{Fields, Image};
use crate::errno::{Errno, Result};
use crate::socket::{MessageSettings, Socket, State, Style};

/// Offsets of the association's identifier in `struct sctp_sndrcvinfo` and in `struct sctp_sndinfo`,
/// bytes.
const ID_IN_SNDRCV: usize = 28;
const ID_IN_SNDINFO: usize = 12;

/// Minimum values of SCTP_MAXSEG, bytes. As in Linux: the payload of a 512-byte packet with the headers of IP, SCTP
/// and one DATA chunk.
const LEAST_IPV4: u32 = 512 - 20 - 12 - 16;
const LEAST_IPV6: u32 = 512 - 40 - 12 - 16;
/// Maximum value of SCTP_MAXSEG, bytes: the largest chunk without its header.
const LARGEST: u32 = 65_532 - 16;

/// Sets one of the options for one association, for all, or for later ones of the socket (RFC 6458, 7.2).
pub fn set(socket: &Socket, name: c_int, value: Fields<'_>) -> Result<()> {
    let state = &mut *socket.lock();
    match name {
        option::CONTEXT => {
            let (id, context) = assoc_value(value)?;
            change(socket, state, id, |messages| messages.context = context)
        }
        option::MAXSEG => {
            let (id, bytes) = assoc_value(value)?;
            let least = if socket.ipv6 { LEAST_IPV6 } else { LEAST_IPV4 };
            if bytes > 0 && !(least..=LARGEST).contains(&bytes) {
                return Err(Errno(libc::EINVAL));
            }
            change(socket, state, id, |messages| messages.maxseg = bytes)
        }
        option::DEFAULT_SEND_PARAM => {
            let info = SendInfo::from_sndrcv(value)?;
            check_stream(socket, state, &info)?;
            let kept = SendInfo { association: 0, ..info };
            change(socket, state, info.association, |messages| messages.send = kept)
        }
        option::DEFAULT_SNDINFO => {
            let info = SendInfo::from_sndinfo(value)?;
            check_stream(socket, state, &info)?;
            change(socket, state, info.association, |messages| {
                let SendInfo { policy, value, .. } = messages.send;
                messages.send = SendInfo { association: 0, policy, value, ..info };
            })
        }
        _ => {
            let (id, limit) = (value.i32(0)?, value.u32(4)?);
            let policy = known_policy(value.u16(8)?)?;
            let limit = if policy == 0 { 0 } else { limit };
            change(socket, state, id, |messages| {
                (messages.send.policy, messages.send.value) = (policy, limit);
            })
        }
    }
}

/// Checks that the stream exists in each present association.
fn check_stream(socket: &Socket, state: &State, info: &SendInfo) -> Result<()> {
    let links = scope(socket, state, info.association)?.links;
    let known = links.iter().all(|id| info.stream < state.links[id].streams());
    if known { Ok(()) } else { Err(Errno(libc::EINVAL)) }
}

pub(super) fn change(
    socket: &Socket,
    state: &mut State,
    id: i32,
    change: impl Fn(&mut MessageSettings),
) -> Result<()> {
    let scope = scope(socket, state, id)?;
    if scope.settings {
        change(&mut state.settings.messages);
    }
    for id in scope.links {
        if let Some(link) = state.links.get_mut(&id) {
            change(&mut link.messages);
        }
    }
    Ok(())
}

/// The settings of an association, or those for later associations of the socket.
pub(super) fn of(socket: &Socket, state: &State, id: i32) -> Result<MessageSettings> {
    let future = socket.style == Style::OneToOne || id == association::FUTURE;
    let link = match socket.style {
        Style::OneToOne => state.only(),
        Style::OneToMany if names_one(id) => state.links.get(&id),
        Style::OneToMany => None,
    };
    let own = link.map(|link| link.messages);
    own.or(future.then_some(state.settings.messages)).ok_or(Errno(libc::EINVAL))
}

/// Gets one of the options.
pub fn get(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    let state = &*socket.lock();
    match name {
        option::CONTEXT => {
            let (id, _) = assoc_value(input)?;
            Ok(assoc_value_image(input, of(socket, state, id)?.context))
        }
        option::MAXSEG => {
            let (id, _) = assoc_value(input)?;
            let most = of(socket, state, id)?.maxseg;
            let link = state.link(socket.style, id).ok().map(|(_, link)| link);
            let now = link.map(|link| link.association.message_size() as u32);
            let bytes = match (most, now) {
                (0, now) => now.unwrap_or(0),
                (most, now) => now.unwrap_or(most).min(most),
            };
            Ok(assoc_value_image(input, bytes))
        }
        option::DEFAULT_SEND_PARAM => {
            let association = input.i32(ID_IN_SNDRCV)?;
            let send = of(socket, state, association)?.send;
            Ok(SendInfo { association, ..send }.to_sndrcv())
        }
        option::DEFAULT_SNDINFO => {
            let association = input.i32(ID_IN_SNDINFO)?;
            let send = of(socket, state, association)?.send;
            Ok(SendInfo { association, ..send }.to_sndinfo())
        }
        _ => {
            let id = input.i32(0)?;
            let SendInfo { policy, value, .. } = of(socket, state, id)?.send;
            let policy = policy & message::PR_MASK;
            Ok(Image::new().i32(id).u32(value).u16(policy).pad_to(12).finish())
        }
    }
}
