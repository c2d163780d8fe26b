//! Wire format of packets (RFC 9260, 3): one file per family of chunks.
//!
//! Encoding and decoding are pure functions without an association. The association decides what a chunk
//! means and whether it was negotiated. User data that fills most of its datagram is not copied on receipt.

mod causes;
pub mod compact;
mod control;
mod data;
mod data_fragment;
mod delay;
mod extension_chunk;
mod extensions;
mod forward;
mod init;
mod interleaved;
pub(super) mod kind;
mod nr_sack;
mod parameter;
mod sack;
#[cfg(test)]
mod tests;

use core::ops::Range;

use bytes::Bytes;

pub(super) use self::control::heartbeat_info;
pub(super) use self::init::{STATE_COOKIE, address_parameters};
pub(super) use self::kind::{goes_on, is_reported};
use super::chunk::Chunk;
use super::packet::Packet;

/// The ports of an SCTP packet; 0 is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ports {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
}

impl Ports {
    /// The ports of an answer.
    #[must_use]
    pub const fn swapped(self) -> Self {
        Self { source: self.destination, destination: self.source }
    }
}

/// Protection of a packet against errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checksum {
    /// CRC32c over the packet (RFC 9260, 6.8).
    #[default]
    Crc32c,
    /// No checksum: the layer below authenticates packets, as sealing does. The field is 0 and ignored.
    None,
}

/// Why bytes are not an SCTP packet. Such packets are dropped without an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// Fewer bytes than the common header has (12).
    #[error("{bytes} bytes are no packet: the header has 12")]
    Short {
        /// Number of bytes.
        bytes: usize,
    },
    /// A port is 0 (RFC 9260, 3.1).
    #[error("port 0 is none")]
    Port,
    /// The checksum is wrong (6.8).
    #[error("the checksum is wrong: not CRC32c, or changed on the way")]
    Checksum,
    /// The first chunk exceeds the packet, or its length is less than its header.
    #[error("the length of the first chunk (type {kind}) does not fit the packet")]
    Length {
        /// Chunk type.
        kind: u8,
    },
    /// A chunk's content contradicts its length, or lacks a mandatory part.
    #[error("the chunk of type {kind} at byte {at} makes no sense")]
    Malformed {
        /// Chunk type.
        kind: u8,
        /// Offset of the chunk in the packet, bytes.
        at: usize,
    },
}

/// The common header (3.1), bytes.
const HEADER: usize = Packet::HEADER as usize;
/// Header of a chunk (3.2), bytes.
const CHUNK_HEADER: usize = 4;
/// Position of the checksum in the common header.
const CHECKSUM_AT: usize = 8;

/// Encodes `packet` with `ports` and appends it to `out`.
///
/// # Panics
/// If a chunk is longer than 65,535 bytes. Chunks cut to a path MTU never are.
pub fn encode(packet: &Packet, ports: Ports, checksum: Checksum, out: &mut Vec<u8>) {
    let start = out.len();
    out.reserve(packet.wire_len() as usize);
    let mut header = [0; HEADER];
    header[..2].copy_from_slice(&ports.source.to_be_bytes());
    header[2..4].copy_from_slice(&ports.destination.to_be_bytes());
    header[4..8].copy_from_slice(&packet.tag.to_be_bytes());
    out.extend_from_slice(&header);
    // RFC 9260, 6.10: control chunks precede DATA, and a COOKIE ECHO comes first.
    let first = matches!(packet.chunks.first(), Some(Chunk::CookieEcho(_))) as usize;
    let (before, after) = packet.chunks.split_at(first);
    before.iter().for_each(|chunk| put(chunk, out));
    if let Some(echo) = &packet.echo {
        delay::put_echo(echo, out);
    }
    if let Some(stamp) = &packet.stamp {
        delay::put_stamp(stamp, out);
    }
    put_all(after, out);
    if checksum == Checksum::Crc32c {
        sign(&mut out[start..]);
    }
}

/// Computes and sets the checksum of a packet (RFC 9260, 6.8 and appendix A). Does nothing if `packet` is too
/// short to have one.
#[inline]
pub fn sign(packet: &mut [u8]) {
    if packet.len() < HEADER {
        return;
    }
    packet[CHECKSUM_AT..HEADER].fill(0);
    let sum = crc32c::crc32c(packet);
    packet[CHECKSUM_AT..HEADER].copy_from_slice(&sum.to_le_bytes());
}

/// Encodes successive chunks.
#[inline]
pub(super) fn put_all(chunks: &[Chunk], out: &mut Vec<u8>) {
    let Some((last, before)) = chunks.split_last() else { return };
    for chunk in before {
        let start = out.len();
        put(chunk, out);
        // A PAD, which may be the last chunk, is not padded yet.
        out.resize(start + (out.len() - start).next_multiple_of(4), 0);
    }
    put(last, out);
}

#[inline]
fn put(chunk: &Chunk, out: &mut Vec<u8>) {
    match chunk {
        Chunk::Data(data) if data.is_interleaved() => interleaved::put(data, out),
        Chunk::Data(data) => data::put(data, out),
        Chunk::Sack(sack) => sack::put(sack, out),
        other => control::put(other, out),
    }
}

/// Encodes one chunk without padding, as an ERROR reports it.
pub(super) fn chunk_bytes(chunk: &Chunk) -> Bytes {
    let mut out = Vec::with_capacity(chunk.wire_len() as usize);
    put(chunk, &mut out);
    let length = u16::from_be_bytes([out[2], out[3]]) as usize;
    out.truncate(length);
    out.into()
}

/// A chunk being encoded; its length is set at the end.
struct Frame {
    start: usize,
}

impl Frame {
    fn begin(kind: u8, flags: u8, out: &mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend_from_slice(&[kind, flags, 0, 0]);
        Self { start }
    }

    fn end(self, out: &mut Vec<u8>) {
        let size = out.len() - self.start;
        let length = u16::try_from(size).expect("a chunk is cut to the path's MTU");
        out[self.start + 2..self.start + 4].copy_from_slice(&length.to_be_bytes());
        parameter::pad(out, size);
    }
}

/// Decodes a packet into `packet`, whose content is replaced. User data is copied into its own memory:
/// the receive buffer charges data by its length, so it must not keep a longer datagram in memory. After
/// an error, the content of `packet` is unspecified.
///
/// A chunk truncated by the end of the packet is ignored (RFC 9260, 6.10). The two highest bits of an
/// unknown type determine whether chunks after it are ignored and whether it is reported (3.2). A chunk
/// that is not reported is omitted.
///
/// # Errors
/// [`DecodeError`]; the packet must not be answered.
pub fn decode(bytes: &[u8], checksum: Checksum, packet: &mut Packet) -> Result<Ports, DecodeError> {
    let Some((header, _)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(DecodeError::Short { bytes: bytes.len() });
    };
    if checksum == Checksum::Crc32c && !is_intact(bytes, header) {
        return Err(DecodeError::Checksum);
    }
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let ports = Ports { source: half(0), destination: half(2) };
    if ports.source == 0 || ports.destination == 0 {
        return Err(DecodeError::Port);
    }
    packet.begin(u32::from_be_bytes([header[4], header[5], header[6], header[7]]));
    read_chunks(bytes, HEADER..bytes.len(), packet)?;
    Ok(ports)
}

#[inline]
fn is_intact(bytes: &[u8], header: &[u8; HEADER]) -> bool {
    let mut start = *header;
    start[CHECKSUM_AT..].fill(0);
    let sum = crc32c::crc32c_append(crc32c::crc32c(&start), &bytes[HEADER..]);
    sum.to_le_bytes() == header[CHECKSUM_AT..]
}

/// Reads the chunks in `place`.
fn read_chunks(bytes: &[u8], place: Range<usize>, packet: &mut Packet) -> Result<(), DecodeError> {
    let mut at = place.start;
    while let Some(head) = bytes.get(..place.end).and_then(|part| part.get(at..at + CHUNK_HEADER)) {
        let raw = RawChunk {
            kind: head[0],
            flags: head[1],
            whole: bytes,
            start: at,
            end: at + u16::from_be_bytes([head[2], head[3]]) as usize,
        };
        if raw.end < at + CHUNK_HEADER || raw.end > place.end {
            let nothing = at == place.start;
            return if nothing { Err(DecodeError::Length { kind: raw.kind }) } else { Ok(()) };
        }
        let read = read_chunk(&raw, packet);
        match read.ok_or(DecodeError::Malformed { kind: raw.kind, at })? {
            Next::GoOn => at = place.start + (raw.end - place.start).next_multiple_of(4),
            Next::Stop => return Ok(()),
        }
    }
    Ok(())
}

/// What to do after a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

/// A chunk in its packet.
struct RawChunk<'a> {
    kind: u8,
    flags: u8,
    whole: &'a [u8],
    start: usize,
    end: usize,
}

impl RawChunk<'_> {
    /// The bytes after the header.
    #[inline]
    fn body(&self) -> &[u8] {
        &self.whole[self.start + CHUNK_HEADER..self.end]
    }

    /// The chunk and everything after it in the packet, copied.
    fn copy_with_rest(&self) -> Bytes {
        Bytes::copy_from_slice(&self.whole[self.start..])
    }

    /// The body from `at` on, copied.
    #[inline]
    fn copy_from(&self, at: usize) -> Bytes {
        Bytes::copy_from_slice(&self.whole[self.start + CHUNK_HEADER + at..self.end])
    }
}

/// Reads one chunk, `None` if it is malformed.
#[inline]
fn read_chunk(raw: &RawChunk<'_>, packet: &mut Packet) -> Option<Next> {
    match raw.kind {
        kind::DATA => packet.chunks.push(Chunk::Data(data::read(raw)?)),
        kind::SACK | kind::REQUESTED_SACK => packet.chunks.push(Chunk::Sack(sack::read(raw)?)),
        kind::I_DATA => packet.chunks.push(Chunk::Data(interleaved::read(raw)?)),
        kind::DELAY_STAMP => packet.stamp = Some(delay::read_stamp(raw)?),
        kind::DELAY_ECHO => packet.echo = Some(delay::read_echo(raw)?),
        _ => return control::read(raw, packet),
    }
    Some(Next::GoOn)
}
