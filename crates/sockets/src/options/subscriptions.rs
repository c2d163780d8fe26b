//! Options that subscribe to notifications (RFC 6458, 6.2).

use libc::c_int;

use super::messages::{change, of};
use super::scope;
use crate::abi::number::{association, notification, option};
use crate::abi::{Fields, Image};
use crate::errno::{Errno, Result};
use crate::socket::{Socket, State};

/// The type of notification that `struct sctp_event` names.
fn kind_of(value: Fields<'_>) -> Result<u16> {
    let kind = value.u16(4)?.wrapping_sub(notification::BASE);
    if kind < notification::COUNT { Ok(kind) } else { Err(Errno(libc::EINVAL)) }
}

/// Sets one of the options.
pub fn set(socket: &Socket, name: c_int, value: Fields<'_>) -> Result<()> {
    let state = &mut *socket.lock();
    if name == option::EVENT {
        let (kind, on) = (kind_of(value)?, value.u8(6)? != 0);
        return subscribe(socket, state, value.i32(0)?, kind, on);
    }
    // `struct sctp_event_subscribe` has one byte for each type, in their order.
    for (byte, kind) in value.rest(0)?.iter().zip(0..notification::COUNT) {
        subscribe(socket, state, association::ALL, kind, *byte != 0)?;
    }
    Ok(())
}

fn subscribe(socket: &Socket, state: &mut State, id: i32, kind: u16, on: bool) -> Result<()> {
    change(socket, state, id, |messages| messages.events[usize::from(kind)] = on)?;
    if on && kind == notification::SENDER_DRY {
        let links = scope(socket, state, id)?.links;
        links.into_iter().for_each(|id| socket.watch_for_dry(state, id));
    }
    Ok(())
}

/// Gets one of the options.
pub fn get(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    let state = &*socket.lock();
    if name == option::EVENTS {
        let events = state.settings.messages.events;
        return Ok(events.iter().map(|on| u8::from(*on)).collect());
    }
    let on = of(socket, state, input.i32(0)?)?.wants(kind_of(input)?);
    Ok(Image::new().bytes(&input.rest(0)?[..6]).u8(u8::from(on)).pad_to(8).finish())
}
