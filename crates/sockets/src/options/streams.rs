//! Options about streams: interleaving of messages, and the stream scheduler (RFC 8260, 4.3). Also NR-SACK, which
//! is offered in the same way.

use libc::c_int;
use ropewalk_runtime::endpoint::StreamScheduler;

use super::{assoc_value, assoc_value_image, only_before_associations, scope};
use crate::abi::number::option;
use crate::abi::{Fields, Image};
use crate::errno::{Errno, Result};
use crate::socket::{STREAMS_LIMIT, Socket, State};

/// The schedulers in the order of `enum sctp_sched_type`. The kernel has no number for round robin per packet.
const SCHEDULERS: [StreamScheduler; 5] = [
    StreamScheduler::FirstCome,
    StreamScheduler::Priority,
    StreamScheduler::RoundRobin,
    StreamScheduler::FairCapacity,
    StreamScheduler::WeightedFair,
];

/// Sets one of the options.
pub fn set(socket: &Socket, name: c_int, value: Fields<'_>) -> Result<()> {
    let state = &mut *socket.lock();
    match name {
        option::INTERLEAVING_SUPPORTED => set_interleaving(state, value),
        option::NRSACK_SUPPORTED => {
            let wanted = assoc_value(value)?.1 != 0;
            only_before_associations(state)?;
            state.settings.nr_sack = wanted;
            Ok(())
        }
        option::STREAM_SCHEDULER => set_scheduler(socket, state, value),
        _ => set_value(socket, state, value),
    }
}

/// RFC 8260, 4.3.1: the option applies to later associations. Linux refuses it unless messages may also be
/// delivered interleaved to the program (SCTP_FRAGMENT_INTERLEAVE).
fn set_interleaving(state: &mut State, value: Fields<'_>) -> Result<()> {
    let wanted = assoc_value(value)?.1 != 0;
    only_before_associations(state)?;
    if wanted && state.settings.fragment_interleave == 0 {
        return Err(Errno(libc::EPERM));
    }
    state.settings.interleaving = wanted;
    Ok(())
}

fn set_scheduler(socket: &Socket, state: &mut State, value: Fields<'_>) -> Result<()> {
    let (id, number) = assoc_value(value)?;
    let known = usize::try_from(number).ok().and_then(|index| SCHEDULERS.get(index));
    let scheduler = *known.ok_or(Errno(libc::EINVAL))?;
    let concerned = scope(socket, state, id)?;
    if concerned.settings {
        state.settings.stream_scheduler = scheduler;
    }
    for id in concerned.links {
        state.links[&id].association.set_stream_scheduler(scheduler);
    }
    Ok(())
}

/// `struct sctp_stream_value`: an association, a stream, and its priority or weight.
fn set_value(socket: &Socket, state: &mut State, value: Fields<'_>) -> Result<()> {
    let (id, stream, number) = (value.i32(0)?, value.u16(4)?, value.u16(6)?);
    if stream == STREAMS_LIMIT {
        return Err(Errno(libc::EINVAL));
    }
    let concerned = scope(socket, state, id)?;
    let has_stream = |id: &i32| stream < state.links[id].streams();
    if !concerned.links.iter().all(has_stream) {
        return Err(Errno(libc::EINVAL));
    }
    if concerned.settings {
        state.settings.stream_values.insert(stream, number);
    }
    for id in concerned.links {
        state.links[&id].association.set_stream_value(stream, number);
    }
    Ok(())
}

/// Gets one of the options.
pub fn get(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    let state = &*socket.lock();
    let settings = &state.settings;
    match name {
        option::INTERLEAVING_SUPPORTED => {
            let (id, _) = assoc_value(input)?;
            let link = state.link(socket.style, id).ok().map(|(_, link)| link);
            // For an association: whether both ends support it.
            let on = link.map_or(settings.interleaving, |link| link.association.interleaves());
            Ok(assoc_value_image(input, u32::from(on)))
        }
        option::NRSACK_SUPPORTED => {
            let (id, _) = assoc_value(input)?;
            let link = state.link(socket.style, id).ok().map(|(_, link)| link);
            let on = link.map_or(settings.nr_sack, |link| link.association.reports_non_renegable());
            Ok(assoc_value_image(input, u32::from(on)))
        }
        option::STREAM_SCHEDULER => {
            let number = SCHEDULERS.iter().position(|one| *one == settings.stream_scheduler);
            Ok(assoc_value_image(input, number.unwrap_or(0) as u32))
        }
        _ => {
            let stream = input.u16(4)?;
            let number = settings.stream_values.get(&stream).copied().unwrap_or(0);
            Ok(Image::new().i32(input.i32(0)?).u16(stream).u16(number).finish())
        }
    }
}
