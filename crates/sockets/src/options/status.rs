//! Options that report the state of associations and paths.

use std::net::SocketAddr;

use libc::c_int;
use ropewalk_runtime::endpoint::{PathStats, PathStatus, ReliabilityPolicy, State as Machine};

use super::addresses::address_at;
use super::paths::path_to;
use crate::abi::number::{message, option};
use crate::abi::{Fields, Image};
use crate::address::{self, shown};
use crate::errno::{Errno, Result};
use crate::socket::{Link, Socket, State, Style};

/// `enum sctp_sstat_state`.
const fn state_number(state: &Machine) -> i32 {
    match state {
        Machine::Closed | Machine::Ended(_) => 1,
        Machine::CookieWait { .. } => 2,
        Machine::CookieEchoed { .. } => 3,
        Machine::Established => 4,
        Machine::ShutdownPending => 5,
        Machine::ShutdownSent { .. } => 6,
        Machine::ShutdownReceived { .. } => 7,
        Machine::ShutdownAckSent { .. } => 8,
    }
}

/// `enum sctp_spinfo_state`.
const fn path_number(status: PathStatus) -> i32 {
    match status {
        PathStatus::Inactive => 0,
        PathStatus::PotentiallyFailed => 1,
        PathStatus::Active => 2,
        PathStatus::Unconfirmed => 3,
    }
}

/// Gets `struct sctp_status` or `struct sctp_paddrinfo`.
pub fn get(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    let state = &*socket.lock();
    if name == option::GET_PEER_ADDR_INFO {
        let address = address_at(input, 4)?.ok_or(Errno(libc::EINVAL))?;
        let (id, link, path) = path_to(socket, state, input.i32(0)?, address)?;
        return path_info(socket, state, id, link, path).map(Image::finish);
    }
    let (id, link) = state.link(socket.style, input.i32(0)?)?;
    let status = link.association.status().ok_or(Errno(libc::EINVAL))?;
    if matches!(status.state, Machine::Ended(_)) {
        return Err(Errno(libc::ENOTCONN));
    }
    let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let pending = status.waiting_bytes.div_ceil(u64::from(status.message_size.max(1)));
    let primary = path_info(socket, state, id, link, status.primary)?;
    Ok(Image::new()
        .i32(id)
        .i32(state_number(&status.state))
        .u32(u32::try_from(status.peer_window_bytes).unwrap_or(u32::MAX))
        .u16(count(status.chunks_in_flight))
        .u16(u16::try_from(pending).unwrap_or(u16::MAX))
        .u16(link.inbound_streams())
        .u16(link.streams())
        .u32(status.message_size)
        .bytes(&primary.finish())
        .finish())
}

/// `struct sctp_paddrinfo` of a path.
fn path_info(socket: &Socket, state: &State, id: i32, link: &Link, path: usize) -> Result<Image> {
    let stats = link.association.stats().ok_or(Errno(libc::EINVAL))?;
    let timers = link.association.path_timers(path);
    let known: &PathStats = stats.paths.get(path).ok_or(Errno(libc::EINVAL))?;
    let ip = known.remote.unwrap_or(link.peer).ip();
    let peer = SocketAddr::new(ip, link.peer.port());
    let peer = shown(peer, socket.ipv6, state.settings.mapped);
    let rto_ms = timers.map_or(0, |timers| timers.rto.as_nanos() / 1_000_000);
    Ok(Image::new()
        .i32(id)
        .bytes(&address::storage(peer))
        .i32(path_number(known.status))
        .u32(u32::try_from(known.cwnd_bytes).unwrap_or(u32::MAX))
        .u32(known.srtt_s.map_or(0, |seconds| (seconds * 1e3) as u32))
        .u32(u32::try_from(rto_ms).unwrap_or(u32::MAX))
        .u32(known.mtu_bytes))
}

/// The number of associations, or `struct sctp_assoc_ids`.
pub fn identifiers(socket: &Socket, name: c_int) -> Result<Vec<u8>> {
    if socket.style == Style::OneToOne {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    let state = &*socket.lock();
    let image = Image::new().u32(state.links.len() as u32);
    if name == option::GET_ASSOC_NUMBER {
        return Ok(image.finish());
    }
    Ok(state.links.keys().fold(image, |image, id| image.i32(*id)).finish())
}

/// Gets `struct sctp_prstatus`: the number of abandoned messages of a stream or of an association (RFC 7496, 4.3,
/// 4.4).
pub fn abandoned(socket: &Socket, name: c_int, input: Fields<'_>) -> Result<Vec<u8>> {
    let (id, stream, number) = (input.i32(0)?, input.u16(4)?, input.u16(6)?);
    let policy = match number {
        message::PR_TTL => Some(ReliabilityPolicy::Lifetime),
        message::PR_RTX => Some(ReliabilityPolicy::Retransmissions),
        message::PR_PRIO => Some(ReliabilityPolicy::Priority),
        message::PR_ALL => None,
        _ => return Err(Errno(libc::EINVAL)),
    };
    let state = &*socket.lock();
    let (id, link) = state.link(socket.style, id)?;
    let of_stream = (name == option::PR_STREAM_STATUS).then_some(stream);
    if of_stream.is_some_and(|stream| stream >= link.streams()) {
        return Err(Errno(libc::EINVAL));
    }
    let counts = link.association.abandoned_messages(of_stream, policy);
    let image = Image::new().i32(id).u16(stream).u16(number);
    Ok(image.bytes(&counts.unsent.to_ne_bytes()).bytes(&counts.sent.to_ne_bytes()).finish())
}
