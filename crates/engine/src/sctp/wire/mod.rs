//! Packets as bytes (RFC 9260, 3): one file for each family of chunks.
//!
//! Encoding and decoding are pure and know no association: what a chunk means, and whether it was
//! agreed upon, is for its receiver to say. User data that fills its datagram is not copied on the way in.

mod causes;
mod control;
mod data;
mod delay;
mod extension_chunk;
mod extensions;
mod forward;
mod init;
mod interleaved;
pub(super) mod kind;
mod nr_sack;
mod parameter;
mod piece;
mod sack;
#[cfg(test)]
mod tests;

use bytes::Bytes;

pub(super) use self::control::heartbeat_info;
pub(super) use self::init::{STATE_COOKIE, address_parameters};
pub(super) use self::kind::{goes_on, is_reported};
use super::chunk::Chunk;
use super::packet::Packet;

/// The ports of an SCTP packet; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ports {
    /// The sender's.
    pub source: u16,
    /// The receiver's.
    pub destination: u16,
}

impl Ports {
    /// Those of an answer.
    #[must_use]
    pub const fn swapped(self) -> Self {
        Self { source: self.destination, destination: self.source }
    }
}

/// What protects a packet against errors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Checksum {
    /// CRC32c over the packet (RFC 9260, 6.8).
    #[default]
    Crc32c,
    /// What lies below does, better than a sum could: the field is 0 and is not looked at. Only inside
    /// something authenticated.
    None,
}

/// Why bytes are no SCTP packet. Such bytes are dropped without an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// Fewer bytes than a common header has (12).
    Short {
        /// How many there are.
        bytes: usize,
    },
    /// A port is 0 (RFC 9260, 3.1).
    Port,
    /// The checksum is wrong (6.8).
    Checksum,
    /// The first chunk does not fit into the packet, or says that it is shorter than its own header.
    Length {
        /// Its type.
        kind: u8,
    },
    /// A chunk's content contradicts its length, or lacks what it must have.
    Malformed {
        /// Its type.
        kind: u8,
        /// Where it begins in the packet.
        at: usize,
    },
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Short { bytes } => write!(f, "{bytes} bytes are no packet: the header has 12"),
            Self::Port => f.write_str("port 0 is none"),
            Self::Checksum => {
                f.write_str("the checksum is wrong: not CRC32c, or changed on the way")
            }
            Self::Length { kind } => {
                write!(f, "the length of the first chunk (type {kind}) does not fit the packet")
            }
            Self::Malformed { kind, at } => {
                write!(f, "the chunk of type {kind} at byte {at} makes no sense")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

/// The common header (3.1), bytes.
const HEADER: usize = Packet::HEADER as usize;
/// Header of a chunk (3.2), bytes.
const CHUNK_HEADER: usize = 4;
/// An allocation is kept for user data in it if it is at most so many times as long.
const SHARE_LIMIT: usize = 5;
/// Shorter data may keep as much as data of this length: headers alone are longer than the shortest.
const LEAST_SHARED: usize = 16;
/// Where the checksum is.
const CHECKSUM_AT: usize = 8;

/// Appends `packet` to `out` as it travels between `ports`.
///
/// # Panics
/// If a chunk is longer than 65,535 bytes: nothing that was cut to a path's MTU is.
pub fn encode(packet: &Packet, ports: Ports, checksum: Checksum, out: &mut Vec<u8>) {
    let start = out.len();
    out.reserve(packet.wire_len() as usize);
    let mut header = [0; HEADER];
    header[..2].copy_from_slice(&ports.source.to_be_bytes());
    header[2..4].copy_from_slice(&ports.destination.to_be_bytes());
    header[4..8].copy_from_slice(&packet.tag.to_be_bytes());
    out.extend_from_slice(&header);
    // 6.10: control before DATA, and COOKIE ECHO before all.
    let first = matches!(packet.chunks.first(), Some(Chunk::CookieEcho(_))) as usize;
    let (before, after) = packet.chunks.split_at(first);
    before.iter().for_each(|chunk| put(chunk, out));
    if let Some(echo) = &packet.echo {
        delay::put_echo(echo, out);
    }
    if let Some(stamp) = &packet.stamp {
        delay::put_stamp(stamp, out);
    }
    after.iter().for_each(|chunk| put(chunk, out));
    if checksum == Checksum::Crc32c {
        sign(&mut out[start..]);
    }
}

/// Fills the checksum of a packet in, whatever was there (6.8 and appendix A). What is too short to have one stays as
/// it is.
#[inline]
pub fn sign(packet: &mut [u8]) {
    if packet.len() < HEADER {
        return;
    }
    packet[CHECKSUM_AT..HEADER].fill(0);
    let sum = crc32c::crc32c(packet);
    packet[CHECKSUM_AT..HEADER].copy_from_slice(&sum.to_le_bytes());
}

#[inline]
fn put(chunk: &Chunk, out: &mut Vec<u8>) {
    match chunk {
        Chunk::Data(data) => data::put(data, out),
        Chunk::Sack(sack) => sack::put(sack, out),
        other => control::put(other, out),
    }
}

/// The bytes of one chunk, without padding: what an ERROR shows of it.
pub(super) fn chunk_bytes(chunk: &Chunk) -> Bytes {
    let mut out = Vec::with_capacity(chunk.wire_len() as usize);
    put(chunk, &mut out);
    let length = u16::from_be_bytes([out[2], out[3]]) as usize;
    out.truncate(length);
    out.into()
}

/// A chunk in the making, whose length is told at its end.
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

/// Reads a packet into `packet`, whatever that held; user data stays where it is and is shared.
/// What `packet` holds after an error means nothing.
///
/// A chunk that is cut short by the end of the packet is not read (6.10), nor is anything after a
/// chunk of unknown type that says so (3.2); chunks of unknown type that say nothing are left out.
///
/// # Errors
/// [`DecodeError`]; no answer is due.
pub fn decode(
    bytes: &Bytes,
    checksum: Checksum,
    packet: &mut Packet,
) -> Result<Ports, DecodeError> {
    decode_within(bytes, bytes.len(), checksum, packet)
}

/// As [`decode`], for a packet that shares an allocation of `allocated` bytes with others.
///
/// # Errors
/// [`DecodeError`]; no answer is due.
pub fn decode_within(
    bytes: &Bytes,
    allocated: usize,
    checksum: Checksum,
    packet: &mut Packet,
) -> Result<Ports, DecodeError> {
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
    read_chunks(bytes, allocated, packet)?;
    Ok(ports)
}

#[inline]
fn is_intact(bytes: &[u8], header: &[u8; HEADER]) -> bool {
    let mut start = *header;
    start[CHECKSUM_AT..].fill(0);
    let sum = crc32c::crc32c_append(crc32c::crc32c(&start), &bytes[HEADER..]);
    sum.to_le_bytes() == header[CHECKSUM_AT..]
}

fn read_chunks(bytes: &Bytes, allocated: usize, packet: &mut Packet) -> Result<(), DecodeError> {
    let mut at = HEADER;
    while let Some(head) = bytes.get(at..at + CHUNK_HEADER) {
        let raw = RawChunk {
            kind: head[0],
            flags: head[1],
            whole: bytes,
            allocated,
            start: at,
            end: at + u16::from_be_bytes([head[2], head[3]]) as usize,
        };
        if raw.end < at + CHUNK_HEADER || raw.end > bytes.len() {
            let nothing = at == HEADER;
            return if nothing { Err(DecodeError::Length { kind: raw.kind }) } else { Ok(()) };
        }
        let read = read_chunk(&raw, packet);
        match read.ok_or(DecodeError::Malformed { kind: raw.kind, at })? {
            Next::GoOn => at = raw.end.next_multiple_of(4),
            Next::Stop => return Ok(()),
        }
    }
    Ok(())
}

/// What is to be done after a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

/// A chunk in its packet.
struct RawChunk<'a> {
    kind: u8,
    flags: u8,
    whole: &'a Bytes,
    /// Bytes that are kept as long as any of them is shared.
    allocated: usize,
    start: usize,
    end: usize,
}

impl RawChunk<'_> {
    /// What follows the header.
    #[inline]
    fn body(&self) -> &[u8] {
        &self.whole[self.start + CHUNK_HEADER..self.end]
    }

    /// User data, the body from `at` on: shared with the datagram, or copied if the datagram is much
    /// longer. What waits to be read is counted by its own length, and must not keep far more in memory.
    #[inline]
    fn user_data(&self, at: usize) -> Bytes {
        let body = &self.body()[at..];
        let most = SHARE_LIMIT * body.len().max(LEAST_SHARED);
        if self.allocated > most { Bytes::copy_from_slice(body) } else { self.share(at) }
    }

    /// The body from `at` on, shared.
    #[inline]
    fn share(&self, at: usize) -> Bytes {
        self.whole.slice(self.start + CHUNK_HEADER + at..self.end)
    }
}

/// Reads one chunk; none if it makes no sense.
#[inline]
fn read_chunk(raw: &RawChunk<'_>, packet: &mut Packet) -> Option<Next> {
    match raw.kind {
        kind::DATA => packet.chunks.push(Chunk::Data(data::read(raw)?)),
        kind::SACK => packet.chunks.push(Chunk::Sack(sack::read(raw)?)),
        kind::DELAY_STAMP => packet.stamp = Some(delay::read_stamp(raw)?),
        kind::DELAY_ECHO => packet.echo = Some(delay::read_echo(raw)?),
        _ => return control::read(raw, packet),
    }
    Some(Next::GoOn)
}
