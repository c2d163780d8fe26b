//! Timestamps beside DATA and SACK (Sarwar et al., 2013): chunks defined by this project, sent only to a peer
//! that lists them.

use super::{CHUNK_HEADER, RawChunk, kind};
use crate::sctp::{DelayEcho, DelayStamp};

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

/// The path, three zero bytes, then both clocks.
pub(super) fn put_echo(echo: &DelayEcho, out: &mut Vec<u8>) {
    let mut chunk = [0; DelayEcho::WIRE_LEN as usize];
    chunk[0] = kind::DELAY_ECHO;
    chunk[3] = DelayEcho::WIRE_LEN as u8;
    chunk[4] = echo.path;
    chunk[8..16].copy_from_slice(&echo.sent.to_be_bytes());
    chunk[16..].copy_from_slice(&echo.received.to_be_bytes());
    out.extend_from_slice(&chunk);
}

pub(super) fn read_echo(raw: &RawChunk<'_>) -> Option<DelayEcho> {
    let (path, clocks) = raw.body().split_first_chunk::<4>()?;
    let (sent, rest) = clocks.split_first_chunk::<8>()?;
    let received = rest.first_chunk::<8>()?;
    let (sent, received) = (u64::from_be_bytes(*sent), u64::from_be_bytes(*received));
    Some(DelayEcho { path: path[0], sent, received })
}
