//! SCTP_PEER_ADDR_PARAMS: HEARTBEATs, failure, path MTU, SACK delay and DSCP of paths (RFC 6458, 8.1.12).

use std::net::SocketAddr;
use std::ops::Range;

use ropewalk_base::Duration;
use ropewalk_runtime::endpoint::{Dscp, Parameters};

use super::addresses::address_at;
use super::parameters::{as_ms, change, delays_sacks, enabling, ms, of, positive};
use super::scope;
use crate::abi::number::association;
use crate::abi::{Fields, Image};
use crate::address::STORAGE_LEN;
use crate::errno::{Errno, Result};
use crate::socket::{LEAST_MTU, Link, Overrides, Socket, SocketSettings, State};

/// Flags of `struct sctp_paddrparams`.
mod flag {
    pub const HB_ENABLE: u32 = 1;
    pub const HB_DISABLE: u32 = 2;
    pub const HB_DEMAND: u32 = 4;
    pub const PMTUD_ENABLE: u32 = 8;
    pub const PMTUD_DISABLE: u32 = 16;
    pub const SACKDELAY_ENABLE: u32 = 32;
    pub const SACKDELAY_DISABLE: u32 = 64;
    pub const DSCP: u32 = 512;
}

const SACKDELAY: u32 = flag::SACKDELAY_ENABLE | flag::SACKDELAY_DISABLE;

/// Path MTU of associations without discovery if the program does not set one, bytes.
const DEFAULT_MTU: u32 = 1500;

/// Whether a program may set this path MTU, bytes. 0 selects the default.
const fn is_mtu(bytes: u32) -> bool {
    bytes == 0 || bytes >= LEAST_MTU && bytes <= u16::MAX as u32
}

/// `struct sctp_paddrparams`.
struct PathParameters {
    id: i32,
    address: Option<SocketAddr>,
    interval: Option<Duration>,
    max_retrans: Option<u32>,
    mtu: u32,
    sack_delay: Option<Duration>,
    flags: u32,
    dscp: Option<Dscp>,
}

impl PathParameters {
    fn read(value: Fields<'_>) -> Result<Self> {
        let at = 4 + STORAGE_LEN;
        let flags = value.u32(at + 14)?;
        let dscp = match flags & flag::DSCP {
            0 => None,
            // As in the kernel, the field contains the TOS byte or the traffic class.
            _ => Some(Dscp::of_field(value.u8(at + 22)?)),
        };
        let read = Self {
            id: value.i32(0)?,
            address: address_at(value, 4)?,
            interval: ms(value.u32(at)?),
            max_retrans: positive(u32::from(value.u16(at + 4)?)),
            mtu: value.u32(at + 6)?,
            sack_delay: ms(value.u32(at + 10)?).filter(|_| flags & flag::SACKDELAY_ENABLE != 0),
            flags,
            dscp,
        };
        let both = |one: u32, other: u32| flags & (one | other) == one | other;
        let contradicts = both(flag::HB_ENABLE, flag::HB_DISABLE)
            || both(flag::PMTUD_ENABLE, flag::PMTUD_DISABLE)
            || both(flag::SACKDELAY_ENABLE, flag::SACKDELAY_DISABLE);
        if contradicts || read.has(flag::PMTUD_DISABLE) && !is_mtu(read.mtu) {
            return Err(Errno(libc::EINVAL));
        }
        Ok(read)
    }

    const fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Whether to send HEARTBEATs. `None` leaves the setting unchanged.
    const fn heartbeats(&self) -> Option<bool> {
        match self.flags & (flag::HB_ENABLE | flag::HB_DISABLE) {
            flag::HB_ENABLE => Some(true),
            flag::HB_DISABLE => Some(false),
            _ => None,
        }
    }

    /// Changes these paths.
    fn apply_to(&self, link: &Link, paths: Range<usize>) {
        let association = &link.association;
        let marked = self.address.map(|_| paths.start);
        for path in paths {
            if let Some(enabled) = self.heartbeats() {
                association.set_heartbeats(path, enabled, self.interval);
            }
            if self.has(flag::HB_DEMAND) {
                association.request_heartbeat(path);
            }
            if self.max_retrans.is_some() {
                association.set_path_max_retrans(path, self.max_retrans);
            }
        }
        if let Some(dscp) = self.dscp {
            association.set_dscp(marked, dscp);
        }
    }

    /// Changes the settings for later associations.
    fn apply_to_settings(&self, settings: &mut SocketSettings) {
        settings.dscp = self.dscp.unwrap_or(settings.dscp);
        settings.heartbeats = self.heartbeats().unwrap_or(settings.heartbeats);
        if self.has(flag::PMTUD_DISABLE) {
            settings.path_mtu = Some(if self.mtu == 0 { DEFAULT_MTU } else { self.mtu });
        } else if self.has(flag::PMTUD_ENABLE) {
            settings.path_mtu = None;
        }
    }

    /// Parameters that apply to entire associations. `now`: the current parameters.
    fn overrides(&self, now: &Parameters) -> Overrides {
        let sack_every_packets = match self.flags & SACKDELAY {
            flag::SACKDELAY_ENABLE => enabling(now),
            flag::SACKDELAY_DISABLE => Some(1),
            _ => None,
        };
        Overrides {
            path_max_retrans: self.max_retrans,
            heartbeat_interval: self.interval.filter(|_| self.heartbeats() == Some(true)),
            sack_delay: self.sack_delay,
            sack_every_packets,
            ..Overrides::default()
        }
    }
}

/// The path to an address of a peer, and its association. As in the kernel, an address without an identifier
/// selects the association.
///
/// # Errors
/// `EINVAL` if the association has no such address with the peer's port.
pub(super) fn path_to<'a>(
    socket: &Socket,
    state: &'a State,
    id: i32,
    address: SocketAddr,
) -> Result<(i32, &'a Link, usize)> {
    let by_address = || state.links.iter().find(|(_, link)| link.has_peer(&address));
    let by_address = || by_address().map(|(id, link)| (*id, link)).ok_or(Errno(libc::EINVAL));
    let (id, link) = state.link(socket.style, id).or_else(|_| by_address())?;
    let path = link.path_to(address.ip()).filter(|_| address.port() == link.peer.port());
    Ok((id, link, path.ok_or(Errno(libc::EINVAL))?))
}

/// [`path_to`] for SCTP_PEER_ADDR_PARAMS. As in the kernel, the identifier of a one-to-many socket's association must
/// exist even if the address selects one.
fn path_with_parameters<'a>(
    socket: &Socket,
    state: &'a State,
    id: i32,
    address: SocketAddr,
) -> Result<(i32, &'a Link, usize)> {
    if id != association::FUTURE {
        state.link(socket.style, id)?;
    }
    path_to(socket, state, id, address)
}

/// Sets the parameters of one path, of all paths of an association, or of later associations of the
/// socket.
pub fn set(socket: &Socket, value: Fields<'_>) -> Result<()> {
    let state = &mut *socket.lock();
    let wanted = PathParameters::read(value)?;
    if let Some(address) = wanted.address {
        let (_, link, path) = path_with_parameters(socket, state, wanted.id, address)?;
        wanted.apply_to(link, path..path + 1);
        return Ok(());
    }
    let scope = scope(socket, state, wanted.id)?;
    if wanted.has(flag::HB_DEMAND) && scope.links.is_empty() {
        return Err(Errno(libc::EINVAL));
    }
    for link in scope.links.iter().filter_map(|id| state.links.get(id)) {
        wanted.apply_to(link, 0..link.association.paths().len());
    }
    if scope.settings {
        wanted.apply_to_settings(&mut state.settings);
    }
    let now = of(socket, state, wanted.id)?;
    change(socket, state, wanted.id, &wanted.overrides(&now))
}

/// `struct sctp_paddrparams` of a path, of an association, or of later associations of the socket.
pub fn get(socket: &Socket, input: Fields<'_>) -> Result<Vec<u8>> {
    let state = &*socket.lock();
    let (given, address) = (input.i32(0)?, address_at(input, 4)?);
    let storage = input.rest(4)?.get(..STORAGE_LEN).ok_or(Errno(libc::EINVAL))?;
    let named = match address {
        Some(address) => Some(path_with_parameters(socket, state, given, address)?),
        None => None,
    };
    let id = named.map_or(given, |(id, ..)| id);
    let parameters = of(socket, state, id)?;
    let link = scope(socket, state, id)?.links.first().and_then(|id| state.links.get(id));
    let path = named.map(|(.., path)| path).or(link.map(|_| 0));
    let timers = link.zip(path).and_then(|(link, path)| link.association.path_timers(path));
    let own = timers.filter(|_| address.is_some());
    let failure = parameters.failure;
    let max_retrans = own.map_or(failure.path_max_retrans, |timers| timers.max_retrans);
    let interval = match timers {
        Some(timers) => timers.heartbeat_interval,
        None => state.settings.heartbeats.then_some(parameters.heartbeat_interval),
    };
    let stats = link.and_then(|link| link.association.stats());
    let mtu = stats.zip(path).and_then(|(stats, path)| stats.paths.get(path).map(|p| p.mtu_bytes));
    let transport = state.settings.transport();
    let (discovers, mtu) = (transport.discover_mtu, mtu.or(state.settings.path_mtu));
    let flags = if interval.is_some() { flag::HB_ENABLE } else { flag::HB_DISABLE }
        | if discovers { flag::PMTUD_ENABLE } else { flag::PMTUD_DISABLE }
        | if delays_sacks(&parameters) { flag::SACKDELAY_ENABLE } else { flag::SACKDELAY_DISABLE }
        | flag::DSCP;
    let of_path = link.and_then(|link| link.association.dscp(address.and(path)));
    let dscp = of_path.unwrap_or(state.settings.dscp);
    Ok(Image::new()
        .i32(given)
        .bytes(storage)
        .u32(as_ms(interval.unwrap_or(parameters.heartbeat_interval)))
        .u16(max_retrans as u16)
        .u32(mtu.unwrap_or(0))
        .u32(as_ms(parameters.sack_delay))
        .u32(flags)
        // The flow label.
        .u32(0)
        .u8(dscp.field())
        .pad_to(156)
        .finish())
}
