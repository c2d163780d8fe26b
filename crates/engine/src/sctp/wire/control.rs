//! Control chunks other than SACK, and chunks of unknown types.

use bytes::Bytes;
use ropewalk_base::Serial32;

use super::parameter::{self, Parameters};
use super::{CHUNK_HEADER, Next, RawChunk, causes, extension_chunk, init, kind};
use crate::sctp::{Chunk, ErrorCause, ExtensionChunk, Packet};

/// Parameter type of Heartbeat Info (RFC 9260, 3.3.5).
const HEARTBEAT_INFO: u16 = 1;

#[cold]
pub(super) fn put(chunk: &Chunk, out: &mut Vec<u8>) {
    match chunk {
        Chunk::Data(_) | Chunk::Sack(_) => unreachable!("encoded by the caller"),
        Chunk::Init(one) => init::put(kind::INIT, one, None, out),
        Chunk::InitAck(both) => init::put(kind::INIT_ACK, &both.0, both.1.as_ref(), out),
        Chunk::CookieEcho(cookie) => put_raw(kind::COOKIE_ECHO, 0, cookie, out),
        Chunk::CookieAck => put_raw(kind::COOKIE_ACK, 0, &[], out),
        Chunk::Error(causes) => put_causes(kind::ERROR, 0, causes, out),
        Chunk::Heartbeat(info) => put_heartbeat(kind::HEARTBEAT, info, out),
        Chunk::HeartbeatAck(info) => put_heartbeat(kind::HEARTBEAT_ACK, info, out),
        Chunk::Shutdown(Serial32(tsn)) => put_raw(kind::SHUTDOWN, 0, &tsn.to_be_bytes(), out),
        Chunk::ShutdownAck => put_raw(kind::SHUTDOWN_ACK, 0, &[], out),
        Chunk::ShutdownComplete { reflected } => {
            put_raw(kind::SHUTDOWN_COMPLETE, t(*reflected), &[], out);
        }
        Chunk::Abort { reflected, causes } => {
            put_causes(kind::ABORT, t(*reflected), causes, out);
        }
        Chunk::Extension(rare) => extension_chunk::put(rare, out),
        Chunk::Unknown(whole) => {
            out.extend_from_slice(whole);
            parameter::pad(out, whole.len());
        }
    }
}

const fn t(reflected: bool) -> u8 {
    if reflected { kind::REFLECTED } else { 0 }
}

fn put_header(kind: u8, flags: u8, body: usize, out: &mut Vec<u8>) {
    let length = u16::try_from(CHUNK_HEADER + body).expect("a chunk fits into a packet");
    let [a, b] = length.to_be_bytes();
    out.extend_from_slice(&[kind, flags, a, b]);
}

fn put_raw(kind: u8, flags: u8, body: &[u8], out: &mut Vec<u8>) {
    put_header(kind, flags, body.len(), out);
    out.extend_from_slice(body);
    parameter::pad(out, body.len());
}

fn put_heartbeat(kind: u8, info: &[u8], out: &mut Vec<u8>) {
    put_header(kind, 0, parameter::HEADER + info.len(), out);
    parameter::put(HEARTBEAT_INFO, info, out);
}

fn put_causes(kind: u8, flags: u8, causes: &[ErrorCause], out: &mut Vec<u8>) {
    let start = out.len();
    put_header(kind, flags, 0, out);
    let body = causes::put(causes, out);
    let length = u16::try_from(CHUNK_HEADER + body).expect("causes fit into a packet");
    out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
}

#[cold]
pub(super) fn read(raw: &RawChunk<'_>, packet: &mut Packet) -> Option<Next> {
    let chunk = match raw.kind {
        kind::INIT => Chunk::Init(Box::new(init::read(raw)?.0)),
        kind::INIT_ACK => Chunk::InitAck(Box::new(init::read(raw)?)),
        kind::COOKIE_ECHO => Chunk::CookieEcho(raw.copy_from(0)),
        kind::COOKIE_ACK => Chunk::CookieAck,
        kind::ERROR => Chunk::Error(causes::read(raw.copy_from(0))),
        kind::HEARTBEAT | kind::HEARTBEAT_ACK => read_heartbeat(raw)?,
        kind::SHUTDOWN => Chunk::Shutdown(Serial32(parameter::word(raw.body())?)),
        kind::SHUTDOWN_ACK => Chunk::ShutdownAck,
        kind::SHUTDOWN_COMPLETE => Chunk::ShutdownComplete { reflected: has_t(raw) },
        kind::ABORT => {
            Chunk::Abort { reflected: has_t(raw), causes: causes::of_abort(raw.copy_from(0))? }
        }
        known if extension_chunk::is_known(known) => {
            Chunk::Extension(Box::new(extension_chunk::read(raw)?))
        }
        unknown => return Some(read_unknown(raw, unknown, packet)),
    };
    packet.chunks.push(chunk);
    Some(Next::GoOn)
}

const fn has_t(raw: &RawChunk<'_>) -> bool {
    raw.flags & kind::REFLECTED != 0
}

fn read_heartbeat(raw: &RawChunk<'_>) -> Option<Chunk> {
    let answer = raw.kind == kind::HEARTBEAT_ACK;
    let parameters = raw.copy_from(0);
    let info = heartbeat_info(&parameters)?;
    let alone = parameters.len() <= (parameter::HEADER + info.len()).next_multiple_of(4);
    Some(match (alone, answer) {
        (true, false) => Chunk::Heartbeat(info),
        (true, true) => Chunk::HeartbeatAck(info),
        (false, _) => Chunk::Extension(Box::new(ExtensionChunk::Heartbeat { answer, parameters })),
    })
}

/// The mandatory Heartbeat Info parameter in a list of parameters (RFC 9260, 3.3.5).
pub fn heartbeat_info(parameters: &Bytes) -> Option<Bytes> {
    let sound = Parameters::of(parameters.clone()).map_while(Result::ok);
    sound.filter(|one| one.kind == HEARTBEAT_INFO).map(|one| one.value).next()
}

/// Handles an unknown chunk. RFC 9260, 3.2: the two highest bits of the type determine whether to
/// continue and whether to report it.
fn read_unknown(raw: &RawChunk<'_>, kind: u8, packet: &mut Packet) -> Next {
    if kind::is_reported(kind) {
        let whole = Bytes::copy_from_slice(&raw.whole[raw.start..raw.end]);
        packet.chunks.push(Chunk::Unknown(whole));
    }
    if kind::goes_on(kind) { Next::GoOn } else { Next::Stop }
}
