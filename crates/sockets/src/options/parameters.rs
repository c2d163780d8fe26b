//! Options that are protocol parameters (RFC 9260, 16).

use std::sync::OnceLock;

use libc::c_int;
use ropewalk_base::Duration;
use ropewalk_engine::scheduler::{Scheduler, SchedulerOptions};
use ropewalk_engine::sctp::{Association as Machine, Config, PathConfig, Preset, Secret};
use ropewalk_runtime::endpoint::{Parameters, Profile};

use super::addresses::address_at;
use super::paths::path_to;
use super::{assoc_value, assoc_value_image, scope};
use crate::abi::number::option;
use crate::abi::{Fields, Image};
use crate::address::STORAGE_LEN;
use crate::errno::{Errno, Result};
use crate::process::current;
use crate::socket::{Overrides, Socket, State};

pub(super) fn ms(value: u32) -> Option<Duration> {
    (value > 0).then(|| Duration::from_millis(u64::from(value)))
}

pub(super) fn as_ms(value: Duration) -> u32 {
    u32::try_from(value.as_nanos() / 1_000_000).unwrap_or(u32::MAX)
}

pub(super) fn positive(value: u32) -> Option<u32> {
    (value > 0).then_some(value)
}

/// The parameters of the profile.
pub fn defaults() -> Parameters {
    static KNOWN: OnceLock<Parameters> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let preset = match current().settings().transport.profile {
            Profile::Live => Preset::Live,
            Profile::Rfc9260 => Preset::LiveRfc9260,
        };
        let config = Config::preset(preset, vec![PathConfig::default()], 1 << 20);
        let scheduler = Scheduler::from_name("lay", &SchedulerOptions::default());
        let scheduler = scheduler.expect("the default scheduler");
        Machine::listen(config, scheduler, Secret::new([0; 32])).parameters()
    })
}

/// Changes parameters of an association, or those for later associations of the socket.
pub(super) fn change(
    socket: &Socket,
    state: &mut State,
    id: i32,
    change: &Overrides,
) -> Result<()> {
    let scope = scope(socket, state, id)?;
    let refused = |_| Errno(libc::EINVAL);
    for id in &scope.links {
        let Some(link) = state.links.get(id) else { continue };
        if let Some(parameters) = link.association.parameters() {
            link.association.set_parameters(change.apply(parameters)).map_err(refused)?;
        }
    }
    if scope.settings {
        let mut merged = state.settings.overrides;
        merged.merge(change);
        let then = merged.apply(defaults());
        if then.rto.initial.max(then.rto.min) > then.rto.max {
            return Err(Errno(libc::EINVAL));
        }
        state.settings.overrides = merged;
    }
    Ok(())
}

/// The parameters of an association, or those for later associations of the socket.
pub(super) fn of(socket: &Socket, state: &State, id: i32) -> Result<Parameters> {
    let scope = scope(socket, state, id)?;
    let link = scope.links.first().and_then(|id| state.links.get(id));
    let present = link.and_then(|link| link.association.parameters());
    Ok(present.unwrap_or_else(|| state.settings.overrides.apply(defaults())))
}

/// Sets one of the options.
pub fn set(socket: &Socket, name: c_int, value: Fields<'_>) -> Result<()> {
    let state = &mut *socket.lock();
    let none = Overrides::default();
    let (id, changes) = match name {
        option::RTOINFO => {
            let rto_initial = ms(value.u32(4)?);
            let (rto_max, rto_min) = (ms(value.u32(8)?), ms(value.u32(12)?));
            (value.i32(0)?, Overrides { rto_initial, rto_max, rto_min, ..none })
        }
        option::ASSOCINFO => {
            let association_max_retrans = positive(u32::from(value.u16(4)?));
            let cookie_life = ms(value.u32(16)?);
            (value.i32(0)?, Overrides { association_max_retrans, cookie_life, ..none })
        }
        option::DELAYED_SACK => sack_info(socket, state, value)?,
        option::MAX_BURST => {
            let (id, most) = assoc_value(value)?;
            (id, Overrides { max_burst: Some(most), ..none })
        }
        _ => return set_thresholds(socket, state, value),
    };
    change(socket, state, id, &changes)
}

/// `struct sctp_sack_info`, or the older `struct sctp_assoc_value` with the delay. In the latter, 0 disables the
/// delay, as in the kernel.
fn sack_info(socket: &Socket, state: &State, value: Fields<'_>) -> Result<(i32, Overrides)> {
    let (id, delay) = (value.i32(0)?, value.u32(4)?);
    let every = value.u32(8).unwrap_or(u32::from(delay == 0));
    let now = of(socket, state, id)?;
    // RFC 6458, 8.1.19: a frequency of 1 disables the delay; a value of 0 leaves the setting
    // unchanged.
    let sack_every_packets = positive(every).or(enabling(&now).filter(|_| delay > 0));
    Ok((id, Overrides { sack_delay: ms(delay), sack_every_packets, ..Overrides::default() }))
}

/// Whether SACKs are delayed.
pub(super) const fn delays_sacks(parameters: &Parameters) -> bool {
    parameters.sack_every_packets != 1
}

/// Packets per SACK to set when a program enables delayed SACKs. `None` if they are enabled
/// already.
pub(super) fn enabling(parameters: &Parameters) -> Option<u32> {
    (!delays_sacks(parameters)).then(|| defaults().sack_every_packets)
}

/// Gets one of the options.
pub fn get(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    let state = &*socket.lock();
    if name == option::PEER_ADDR_THLDS {
        return thresholds(socket, state, input);
    }
    let id = if name == option::MAX_BURST { assoc_value(input)?.0 } else { input.i32(0)? };
    let parameters = of(socket, state, id)?;
    let image = Image::new().i32(id);
    Ok(match name {
        option::RTOINFO => {
            let rto = parameters.rto;
            image.u32(as_ms(rto.initial)).u32(as_ms(rto.max)).u32(as_ms(rto.min))
        }
        option::ASSOCINFO => {
            let link = state.link(socket.style, id).ok().map(|(_, link)| link);
            let peers = link.map_or(0, |link| link.peers().len() as u16);
            let status = link.and_then(|link| link.association.status());
            let (theirs, ours) = status
                .map_or((0, 0), |status| (status.peer_window_bytes, status.receive_free_bytes));
            image
                .u16(parameters.association_max_retrans as u16)
                .u16(peers)
                .u32(u32::try_from(theirs).unwrap_or(u32::MAX))
                .u32(u32::try_from(ours).unwrap_or(u32::MAX))
                .u32(as_ms(parameters.cookie_life))
        }
        option::DELAYED_SACK => {
            let delayed = delays_sacks(&parameters);
            let image = image.u32(if delayed { as_ms(parameters.sack_delay) } else { 0 });
            let long = input.u32(8).is_ok();
            if long { image.u32(parameters.sack_every_packets) } else { image }
        }
        _ => return Ok(assoc_value_image(input, parameters.max_burst)),
    }
    .finish())
}

/// `struct sctp_paddrthlds`: failure thresholds of one path, or of all (RFC 7829, 7.1).
fn set_thresholds(socket: &Socket, state: &mut State, value: Fields<'_>) -> Result<()> {
    let (id, address) = (value.i32(0)?, address_at(value, 8)?);
    let at = 8 + STORAGE_LEN;
    let most = positive(u32::from(value.u16(at)?));
    let doubted = Some(u32::from(value.u16(at + 2)?));
    if let Some(address) = address {
        let (_, link, path) = path_to(socket, state, id, address)?;
        if most.is_some() {
            link.association.set_path_max_retrans(path, most);
        }
        link.association.set_path_potentially_failed(path, doubted);
        return Ok(());
    }
    let changes =
        Overrides { path_max_retrans: most, potentially_failed: doubted, ..Overrides::default() };
    change(socket, state, id, &changes)?;
    // Settings of single paths no longer apply.
    for link in scope(socket, state, id)?.links.iter().filter_map(|id| state.links.get(id)) {
        for path in 0..link.association.paths().len() {
            if most.is_some() {
                link.association.set_path_max_retrans(path, None);
            }
            link.association.set_path_potentially_failed(path, None);
        }
    }
    Ok(())
}

fn thresholds(socket: &Socket, state: &State, input: Fields<'_>) -> Result<Vec<u8>> {
    let (id, address) = (input.i32(0)?, address_at(input, 8)?);
    let (most, doubted) = match address {
        Some(address) => {
            let (_, link, path) = path_to(socket, state, id, address)?;
            let timers = link.association.path_timers(path).ok_or(Errno(libc::EINVAL))?;
            (timers.max_retrans, timers.potentially_failed)
        }
        None => {
            let failure = of(socket, state, id)?.failure;
            (failure.path_max_retrans, failure.potentially_failed)
        }
    };
    let address = input.rest(8)?.get(..STORAGE_LEN).ok_or(Errno(libc::EINVAL))?;
    let image = Image::new().i32(id).pad_to(8).bytes(address);
    Ok(image.u16(most as u16).u16(doubted as u16).pad_to(144).finish())
}
