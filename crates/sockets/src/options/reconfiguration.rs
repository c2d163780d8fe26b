//! Options that reset streams, add streams and reset associations (RFC 6525, 6.3).

use libc::c_int;
use ropewalk_runtime::endpoint::{AcceptedRequests, ReconfigurationError, ResetDirection};

use super::{assoc_value, assoc_value_image, only_before_associations, scope};
use crate::abi::Fields;
use crate::abi::number::{option, reconfiguration as flag};
use crate::errno::{Errno, Result};
use crate::socket::{Link, Socket};

/// Linux's error numbers, except for `EOPNOTSUPP` if the peer does not support the extension.
const fn errno_of(error: ReconfigurationError) -> Errno {
    Errno(match error {
        ReconfigurationError::NotSupported => libc::EOPNOTSUPP,
        ReconfigurationError::Closing => libc::ENOTCONN,
        ReconfigurationError::InProgress => libc::EINPROGRESS,
        ReconfigurationError::NoSuchStream
        | ReconfigurationError::TooManyStreams
        | ReconfigurationError::Empty => libc::EINVAL,
    })
}

/// Sets one of the options.
pub fn set(socket: &Socket, name: c_int, value: Fields<'_>) -> Result<()> {
    match name {
        option::ENABLE_STREAM_RESET => return enable(socket, value),
        option::RECONFIG_SUPPORTED => return set_supported(socket, value),
        _ => {}
    }
    let state = &mut *socket.lock();
    let (_, link) = state.link(socket.style, value.i32(0)?)?;
    let asked = match name {
        option::RESET_STREAMS => return reset_streams(link, value),
        option::RESET_ASSOC => link.association.reset_association(),
        _ => link.association.add_streams(value.u16(6)?, value.u16(4)?),
    };
    asked.map_err(errno_of)
}

/// `struct sctp_reset_streams`: an association, directions, and a list of streams. An empty list means all
/// streams.
fn reset_streams(link: &Link, value: Fields<'_>) -> Result<()> {
    let (flags, count) = (value.u16(4)?, usize::from(value.u16(6)?));
    let streams = (0..count).map(|at| value.u16(8 + 2 * at)).collect::<Result<Vec<u16>>>()?;
    let direction = match (flags & flag::OUTGOING > 0, flags & flag::INCOMING > 0) {
        (true, true) => ResetDirection::Both,
        (true, false) => ResetDirection::Outgoing,
        (false, true) => ResetDirection::Incoming,
        (false, false) => return Err(Errno(libc::EINVAL)),
    };
    // The engine has more streams than the program has requested.
    let outgoing = !matches!(direction, ResetDirection::Incoming);
    if outgoing && streams.iter().any(|stream| *stream >= link.streams()) {
        return Err(Errno(libc::EINVAL));
    }
    link.association.reset_streams(&streams, direction).map_err(errno_of)
}

/// `SCTP_RECONFIG_SUPPORTED`: whether later associations offer the extension.
fn set_supported(socket: &Socket, value: Fields<'_>) -> Result<()> {
    let wanted = assoc_value(value)?.1 != 0;
    let state = &mut *socket.lock();
    only_before_associations(state)?;
    state.settings.reconfiguration = wanted;
    Ok(())
}

/// `SCTP_ENABLE_STREAM_RESET`: the kinds of requests of the peer that are performed.
fn enable(socket: &Socket, value: Fields<'_>) -> Result<()> {
    let (id, bits) = assoc_value(value)?;
    let known = flag::ENABLE_STREAMS | flag::ENABLE_ASSOCIATION | flag::ENABLE_CHANGE;
    if bits & !known != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let accepted = AcceptedRequests {
        stream_resets: bits & flag::ENABLE_STREAMS > 0,
        association_resets: bits & flag::ENABLE_ASSOCIATION > 0,
        more_streams: bits & flag::ENABLE_CHANGE > 0,
    };
    let state = &mut *socket.lock();
    let concerned = scope(socket, state, id)?;
    if concerned.settings {
        state.settings.accepted_requests = accepted;
    }
    for id in concerned.links {
        state.links[&id].association.set_accepted_requests(accepted);
    }
    Ok(())
}

/// Gets `SCTP_ENABLE_STREAM_RESET`, or `SCTP_RECONFIG_SUPPORTED`.
pub fn get(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    let state = &*socket.lock();
    let (id, _) = assoc_value(input)?;
    if name == option::RECONFIG_SUPPORTED {
        return Ok(assoc_value_image(input, u32::from(state.settings.reconfiguration)));
    }
    let link = state.link(socket.style, id).ok().map(|(_, link)| link);
    let accepted = match link {
        Some(link) => link.association.accepted_requests(),
        None => state.settings.accepted_requests,
    };
    let bit = |set: bool, bit: u32| if set { bit } else { 0 };
    let bits = bit(accepted.stream_resets, flag::ENABLE_STREAMS)
        | bit(accepted.association_resets, flag::ENABLE_ASSOCIATION)
        | bit(accepted.more_streams, flag::ENABLE_CHANGE);
    Ok(assoc_value_image(input, bits))
}
