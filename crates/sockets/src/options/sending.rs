//! Options of a socket about sending and receiving messages.

use libc::c_int;

use super::{assoc_value, assoc_value_image};
use crate::abi::number::option;
use crate::abi::{Fields, Image};
use crate::errno::{Errno, Result};
use crate::socket::{Socket, SocketSettings, Style};

/// Maximum idle time that a program can set, seconds: the program's type is signed.
const AUTOCLOSE_LIMIT_S: u32 = i32::MAX as u32;

fn on(value: Fields<'_>) -> Result<bool> {
    Ok(value.i32(0)? != 0)
}

/// Sets one of the options.
pub fn set(socket: &Socket, name: c_int, value: Fields<'_>) -> Result<()> {
    let state = &mut *socket.lock();
    let idle = state.links.is_empty() && state.listening.is_none();
    let bound = state.claim.is_some();
    let settings = &mut state.settings;
    match name {
        option::INITMSG => set_init(settings, value),
        option::NODELAY => value.i32(0).map(|number| settings.nodelay = i32::from(number != 0)),
        option::DISABLE_FRAGMENTS => on(value).map(|on| settings.disable_fragments = on),
        option::I_WANT_MAPPED_V4_ADDR => on(value).map(|on| settings.mapped = on),
        option::RECVRCVINFO => on(value).map(|on| settings.receive_info = on),
        option::RECVNXTINFO => on(value).map(|on| settings.next_info = on),
        option::ADAPTATION_LAYER => value.u32(0).map(|layer| settings.adaptation = Some(layer)),
        option::AUTOCLOSE => set_autoclose(socket.style, settings, value),
        // RFC 6458, 8.1.27: only for one-to-one sockets, and before they are bound.
        option::REUSE_PORT if socket.style == Style::OneToMany => Err(Errno(libc::EOPNOTSUPP)),
        option::REUSE_PORT if bound => Err(Errno(libc::EFAULT)),
        option::REUSE_PORT => value.i32(0).map(|number| settings.reuse[2] = number),
        option::FRAGMENT_INTERLEAVE => match value.i32(0)? {
            // Parts of messages of one association alternate (level 2) only with I-DATA (RFC 8260).
            level @ 0..=2 => {
                settings.fragment_interleave = level;
                Ok(())
            }
            _ => Err(Errno(libc::EINVAL)),
        },
        option::PARTIAL_DELIVERY_POINT => {
            value.u32(0).map(|bytes| settings.partial_delivery_point = bytes)
        }
        option::ECN_SUPPORTED if idle => {
            assoc_value(value).map(|(_, number)| settings.ecn = number != 0)
        }
        // The engine offers partial reliability to every peer.
        option::PR_SUPPORTED if idle && assoc_value(value)?.1 != 0 => Ok(()),
        option::PR_SUPPORTED | option::ECN_SUPPORTED => Err(Errno(libc::EINVAL)),
        _ => Err(Errno(libc::ENOPROTOOPT)),
    }
}

/// `SCTP_AUTOCLOSE`: the idle time in seconds after which later associations are shut down. RFC 6458, 8.1.8: only
/// for one-to-many sockets.
fn set_autoclose(style: Style, settings: &mut SocketSettings, value: Fields<'_>) -> Result<()> {
    if style == Style::OneToOne {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    settings.autoclose_s = value.u32(0)?.min(AUTOCLOSE_LIMIT_S);
    Ok(())
}

/// Max.Init.Retransmits and RTO.Max (RFC 9260, 16), which apply unless the program sets other
/// values.
const INIT_ATTEMPTS: u16 = 8;
const INIT_TIMEOUT_MS: u16 = 60_000;

fn set_init(settings: &mut SocketSettings, value: Fields<'_>) -> Result<()> {
    let mut given = [0; 4];
    for (index, number) in given.iter_mut().enumerate() {
        *number = value.u16(2 * index)?;
    }
    for (kept, number) in settings.init.iter_mut().zip(given) {
        if number > 0 {
            *kept = number;
        }
    }
    Ok(())
}

/// Gets one of the options.
pub fn get(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    let state = &*socket.lock();
    let settings = &state.settings;
    let flag = |on: bool| Image::new().i32(i32::from(on));
    Ok(match name {
        option::INITMSG => {
            let [outbound, inbound, attempts, timeout_ms] = settings.init;
            let attempts = if attempts > 0 { attempts } else { INIT_ATTEMPTS };
            let timeout_ms = if timeout_ms > 0 { timeout_ms } else { INIT_TIMEOUT_MS };
            Image::new().u16(outbound).u16(inbound).u16(attempts).u16(timeout_ms)
        }
        option::NODELAY => Image::new().i32(settings.nodelay),
        option::DISABLE_FRAGMENTS => flag(settings.disable_fragments),
        option::I_WANT_MAPPED_V4_ADDR => flag(settings.mapped),
        option::RECVRCVINFO => flag(settings.receive_info),
        option::RECVNXTINFO => flag(settings.next_info),
        option::ADAPTATION_LAYER => Image::new().u32(settings.adaptation.unwrap_or(0)),
        option::AUTOCLOSE if socket.style == Style::OneToOne => {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        option::AUTOCLOSE => Image::new().u32(settings.autoclose_s),
        option::REUSE_PORT => Image::new().i32(settings.reuse[2]),
        option::FRAGMENT_INTERLEAVE => Image::new().i32(settings.fragment_interleave),
        option::PARTIAL_DELIVERY_POINT => Image::new().u32(settings.partial_delivery_point),
        option::ECN_SUPPORTED => return Ok(assoc_value_image(input, u32::from(settings.ecn))),
        option::PR_SUPPORTED => return Ok(assoc_value_image(input, 1)),
        _ => return Err(Errno(libc::ENOPROTOOPT)),
    }
    .finish())
}
