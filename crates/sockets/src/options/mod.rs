//! Socket options (RFC 6458, 8) as bytes of the kernel's structures.

mod addresses;
mod authentication;
mod general;
mod messages;
mod parameters;
mod paths;
mod reconfiguration;
mod reconfigured_addresses;
mod sending;
mod status;
mod streams;
mod subscriptions;

#[cfg(test)]
pub use self::parameters::defaults as default_parameters;
pub use self::reconfigured_addresses::errno_of as errno_of_address;

use std::sync::Arc;

use libc::c_int;

use crate::abi::control::names_one;
use crate::abi::number::{self, association, option};
use crate::abi::{Fields, Image};
use crate::errno::{Errno, Result};
use crate::socket::{Attempted, Socket, State, Stop, Style};

/// Sets an option.
///
/// # Errors
/// `ENOPROTOOPT` if the option is unknown, `EINVAL` if the value is invalid, and the errors of the option's effect.
pub fn set(socket: &Arc<Socket>, level: c_int, name: c_int, value: Fields<'_>) -> Attempted<()> {
    match level {
        number::SCTP => {}
        libc::SOL_SOCKET => return Ok(general::set(socket, name, value)?),
        libc::IPPROTO_IP => return Ok(general::set_ip(socket, name, value)?),
        libc::IPPROTO_IPV6 => return Ok(general::set_ipv6(socket, name, value)?),
        _ => return Err(Errno(libc::ENOPROTOOPT).into()),
    }
    if let option::CONNECTX | option::CONNECTX_OLD = name {
        let (_, stop) = addresses::connectx(socket, value.rest(0)?)?;
        return Err(stop);
    }
    Ok(match name {
        option::BINDX_ADD => addresses::bindx_add(socket, value),
        option::BINDX_REM => addresses::bindx_remove(socket, value),
        option::PRIMARY_ADDR => addresses::set_primary(socket, value),
        option::REMOTE_UDP_ENCAPS_PORT => addresses::set_udp_port(socket, value),
        option::PEER_ADDR_PARAMS => paths::set(socket, value),
        option::RTOINFO
        | option::ASSOCINFO
        | option::PEER_ADDR_THLDS
        | option::DELAYED_SACK
        | option::MAX_BURST => parameters::set(socket, name, value),
        option::STREAM_SCHEDULER
        | option::STREAM_SCHEDULER_VALUE
        | option::INTERLEAVING_SUPPORTED
        | option::NRSACK_SUPPORTED => streams::set(socket, name, value),
        option::RECONFIG_SUPPORTED
        | option::ENABLE_STREAM_RESET
        | option::RESET_STREAMS
        | option::RESET_ASSOC
        | option::ADD_STREAMS => reconfiguration::set(socket, name, value),
        option::AUTH_SUPPORTED
        | option::AUTH_CHUNK
        | option::HMAC_IDENT
        | option::AUTH_KEY
        | option::AUTH_ACTIVE_KEY
        | option::AUTH_DEACTIVATE_KEY
        | option::AUTH_DELETE_KEY => authentication::set(socket, name, value),
        option::ASCONF_SUPPORTED | option::AUTO_ASCONF | option::SET_PEER_PRIMARY_ADDR => {
            reconfigured_addresses::set(socket, name, value)
        }
        option::MAXSEG
        | option::CONTEXT
        | option::DEFAULT_SEND_PARAM
        | option::DEFAULT_SNDINFO
        | option::DEFAULT_PRINFO => messages::set(socket, name, value),
        option::EVENTS | option::EVENT => subscriptions::set(socket, name, value),
        _ => sending::set(socket, name, value),
    }?)
}

/// Result of `getsockopt`.
pub struct Answer {
    /// The bytes of the value.
    pub value: Vec<u8>,
    /// Why the call has no result yet although there is a value. The identifier of an association that is being
    /// opened is returned with `EINPROGRESS`, or before the call waits.
    pub stop: Option<Stop>,
}

impl From<Vec<u8>> for Answer {
    fn from(value: Vec<u8>) -> Self {
        Self { value, stop: None }
    }
}

/// Gets an option. `input`: the program's buffer, which names the association for some options.
///
/// # Errors
/// As [`set`].
pub fn get(socket: &Arc<Socket>, level: c_int, name: c_int, input: Fields<'_>) -> Result<Answer> {
    match level {
        number::SCTP => {}
        libc::SOL_SOCKET => return general::get(socket, name, input).map(Answer::from),
        libc::IPPROTO_IP => return general::get_ip(socket, name, input).map(Answer::from),
        libc::IPPROTO_IPV6 => return general::get_ipv6(socket, name).map(Answer::from),
        _ => return Err(Errno(libc::ENOPROTOOPT)),
    }
    if name == option::CONNECTX3 {
        return addresses::connectx3(socket, input);
    }
    let value = match name {
        option::GET_PEER_ADDRS | option::GET_LOCAL_ADDRS => addresses::list(socket, name, input),
        option::PEELOFF | option::PEELOFF_FLAGS => addresses::peel_off(socket, name, input),
        option::PRIMARY_ADDR => addresses::primary(socket, input),
        option::REMOTE_UDP_ENCAPS_PORT => addresses::udp_port(socket, input),
        option::STATUS | option::GET_PEER_ADDR_INFO => status::get(socket, name, input),
        option::PR_ASSOC_STATUS | option::PR_STREAM_STATUS => {
            status::abandoned(socket, name, input)
        }
        option::GET_ASSOC_NUMBER | option::GET_ASSOC_ID_LIST => status::identifiers(socket, name),
        option::PEER_ADDR_PARAMS => paths::get(socket, input),
        option::RTOINFO
        | option::ASSOCINFO
        | option::PEER_ADDR_THLDS
        | option::DELAYED_SACK
        | option::MAX_BURST => parameters::get(socket, name, input),
        option::STREAM_SCHEDULER
        | option::STREAM_SCHEDULER_VALUE
        | option::INTERLEAVING_SUPPORTED
        | option::NRSACK_SUPPORTED => streams::get(socket, name, input),
        option::RECONFIG_SUPPORTED | option::ENABLE_STREAM_RESET => {
            reconfiguration::get(socket, name, input)
        }
        option::ASCONF_SUPPORTED | option::AUTO_ASCONF => {
            reconfigured_addresses::get(socket, name, input)
        }
        option::AUTH_SUPPORTED
        | option::AUTH_ACTIVE_KEY
        | option::HMAC_IDENT
        | option::PEER_AUTH_CHUNKS
        | option::LOCAL_AUTH_CHUNKS => authentication::get(socket, name, input),
        option::MAXSEG
        | option::CONTEXT
        | option::DEFAULT_SEND_PARAM
        | option::DEFAULT_SNDINFO
        | option::DEFAULT_PRINFO => messages::get(socket, name, input),
        option::EVENTS | option::EVENT => subscriptions::get(socket, name, input),
        _ => sending::get(socket, name, input),
    }?;
    // For other options the kernel never returns part of a value.
    if value.len() > input.0.len() && !SHORTENED.contains(&name) {
        return Err(Errno(libc::EINVAL));
    }
    Ok(value.into())
}

/// Options whose structures have grown: a program may request only their beginning.
const SHORTENED: [c_int; 2] = [option::EVENTS, option::PEER_ADDR_PARAMS];

/// What an option applies to: the settings for later associations, and present associations.
struct Scope {
    settings: bool,
    links: Vec<i32>,
}

/// The scope of an association identifier (RFC 6458, 7.2 and 8.1.18).
fn scope(socket: &Socket, state: &State, id: i32) -> Result<Scope> {
    let all = || state.links.keys().copied().collect();
    if socket.style == Style::OneToOne {
        return Ok(Scope { settings: true, links: all() });
    }
    Ok(match id {
        association::FUTURE => Scope { settings: true, links: Vec::new() },
        association::CURRENT => Scope { settings: false, links: all() },
        association::ALL => Scope { settings: true, links: all() },
        id if names_one(id) && state.links.contains_key(&id) => {
            Scope { settings: false, links: vec![id] }
        }
        _ => return Err(Errno(libc::EINVAL)),
    })
}

/// Checks that no association exists: extensions are offered when an association begins.
fn only_before_associations(state: &State) -> Result<()> {
    let begun = !state.links.is_empty() || state.listening.is_some();
    if begun { Err(Errno(libc::EINVAL)) } else { Ok(()) }
}

/// The association and value of `struct sctp_assoc_value`. A program may also pass only the value.
fn assoc_value(value: Fields<'_>) -> Result<(i32, u32)> {
    match value.u32(4) {
        Ok(number) => Ok((value.i32(0)?, number)),
        Err(_) => Ok((association::FUTURE, value.u32(0)?)),
    }
}

/// A value in the form of the program's buffer: `struct sctp_assoc_value`, or only the value.
fn assoc_value_image(input: Fields<'_>, number: u32) -> Vec<u8> {
    match (input.i32(0), input.u32(4)) {
        (Ok(id), Ok(_)) => Image::new().i32(id).u32(number).finish(),
        _ => Image::new().u32(number).finish(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Options that act on other machines or read memory of the program.
    const ACTIONS: [c_int; 3] = [option::CONNECTX, option::CONNECTX_OLD, option::CONNECTX3];

    fn socket(style: Style) -> (c_int, Arc<Socket>) {
        Socket::new(style, false, 0).expect("descriptors")
    }

    fn discard((fd, socket): (c_int, Arc<Socket>)) {
        socket.close();
        crate::interpose::raw::close(fd);
    }

    /// Values are mostly short, with mostly small numbers.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = || prop_oneof![Just(0), Just(1), any::<u8>()];
        let short = proptest::collection::vec(byte(), 0..20);
        prop_oneof![short, proptest::collection::vec(byte(), 0..200)]
    }

    proptest! {
        // There are a hundred names, and a few bytes of each value matter.
        #![proptest_config(ProptestConfig::with_cases(1500))]

        #[test]
        #[cfg_attr(miri, ignore = "makes system calls that Miri does not know")]
        fn no_value_of_an_option_makes_it_panic(
            name in 0..140,
            level in prop_oneof![
                8 => Just(number::SCTP),
                1 => Just(libc::SOL_SOCKET),
                1 => Just(libc::IPPROTO_IP),
                1 => Just(libc::IPPROTO_IPV6),
            ],
            many: bool,
            value in bytes(),
        ) {
            prop_assume!(level != number::SCTP || !ACTIONS.contains(&name));
            let made = socket(if many { Style::OneToMany } else { Style::OneToOne });
            let before = get(&made.1, level, name, Fields(&value)).map(|answer| answer.value);
            let done = set(&made.1, level, name, Fields(&value));
            // A value that is refused changes nothing.
            if done.is_err() && name != libc::SO_ERROR {
                let after = get(&made.1, level, name, Fields(&value));
                prop_assert_eq!(before, after.map(|answer| answer.value));
            }
            discard(made);
        }

        #[test]
        #[cfg_attr(miri, ignore = "makes system calls that Miri does not know")]
        fn what_an_option_shows_can_be_set_again(many: bool, name in 0..140) {
            // These report the current state and not the last value that was set.
            let shows = [option::STATUS, option::GET_PEER_ADDR_INFO, option::PR_SUPPORTED];
            prop_assume!(!ACTIONS.contains(&name) && !shows.contains(&name));
            let made = socket(if many { Style::OneToMany } else { Style::OneToOne });
            let input = [0_u8; 256];
            for length in [4, 8, 12, 16, 20, 32, 144, 156] {
                let shown = get(&made.1, number::SCTP, name, Fields(&input[..length]));
                let Ok(shown) = shown else { continue };
                if set(&made.1, number::SCTP, name, Fields(&shown.value)).is_err() {
                    continue;
                }
                let again = get(&made.1, number::SCTP, name, Fields(&input[..length]));
                prop_assert_eq!(Ok(shown.value), again.map(|answer| answer.value));
            }
            discard(made);
        }
    }
}
