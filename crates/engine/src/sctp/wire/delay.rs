//! Timestamps that accompany DATA and SACK (Sarwar et al., 2013): chunks defined by this project, sent
//! only to a peer that lists them.

use super::{CHUNK_HEADER, RawChunk, kind};
use ropewalk_base::Serial32;

use crate::sctp::{DelayEcho, DelayStamp, Echoed};

pub(super) fn put_stamp(stamp: &DelayStamp, out: &mut Vec<u8>) {
    let mut chunk = [0; DelayStamp::WIRE_LEN as usize];
    chunk[0] = kind::DELAY_STAMP;
    chunk[3] = DelayStamp::WIRE_LEN as u8;
    chunk[CHUNK_HEADER..].copy_from_slice(&stamp.sent.to_be_bytes());
    out.extend_from_slice(&chunk);
}

pub(super) fn read_stamp(raw: &RawChunk<'_>) -> Option<DelayStamp> {
    let sent = raw.body().first_chunk::<8>()?;
    Some(DelayStamp { sent: u64::from_be_bytes(*sent) })
}

/// Flag of an echo that names a packet by its TSN.
const BY_TSN: u8 = 1;

/// The path, three zero bytes, then the sender's clock or the TSN, then the receiver's clock.
pub(super) fn put_echo(echo: &DelayEcho, out: &mut Vec<u8>) {
    let mut chunk = [0; DelayEcho::WIRE_LEN as usize];
    chunk[0] = kind::DELAY_ECHO;
    chunk[3] = DelayEcho::WIRE_LEN as u8;
    chunk[4] = echo.path;
    let (flags, packet) = match echo.of {
        Echoed::Time(sent) => (0, sent),
        Echoed::Tsn(tsn) => (BY_TSN, u64::from(tsn.0)),
    };
    chunk[1] = flags;
    chunk[8..16].copy_from_slice(&packet.to_be_bytes());
    chunk[16..].copy_from_slice(&echo.received.to_be_bytes());
    out.extend_from_slice(&chunk);
}

pub(super) fn read_echo(raw: &RawChunk<'_>) -> Option<DelayEcho> {
    let (path, clocks) = raw.body().split_first_chunk::<4>()?;
    let (sent, rest) = clocks.split_first_chunk::<8>()?;
    let received = rest.first_chunk::<8>()?;
    let (sent, received) = (u64::from_be_bytes(*sent), u64::from_be_bytes(*received));
    let by_tsn = raw.flags & BY_TSN != 0;
    let of = if by_tsn { Echoed::Tsn(Serial32(sent as u32)) } else { Echoed::Time(sent) };
    Some(DelayEcho { path: path[0], of, received })
}
