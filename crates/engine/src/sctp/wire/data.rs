//! DATA (RFC 9260, 3.3.1).

use ropewalk_base::{Serial16, Serial32, StreamId, Time};

use super::{RawChunk, kind};
use crate::payload::Payload;
use crate::sctp::{Data, DataFlags};

const HEADER: usize = Data::HEADER as usize;

#[inline]
pub(super) fn put(data: &Data, out: &mut Vec<u8>) {
    out.extend_from_slice(&header_of(kind::DATA, data, Data::HEADER));
    put_payload(&data.payload, out);
}

/// The header of a chunk of this kind with `before` bytes before its user data.
#[inline]
pub(super) fn header_of(kind: u8, data: &Data, before: u32) -> [u8; HEADER] {
    let size = before + data.payload.len();
    let length = u16::try_from(size).expect("a chunk is cut to the path's MTU");
    let mut header = [kind; HEADER];
    header[1] = data.flags.bits();
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[4..8].copy_from_slice(&data.tsn.0.to_be_bytes());
    header[8..10].copy_from_slice(&data.stream.0.to_be_bytes());
    header[10..12].copy_from_slice(&data.ssn.0.to_be_bytes());
    header[12..].copy_from_slice(&data.ppid.to_be_bytes());
    header
}

/// Appends user data and padding. For a payload that is only a length, appends zeros.
#[inline]
pub(super) fn put_payload(payload: &Payload, out: &mut Vec<u8>) {
    let size = payload.len() as usize;
    let end = out.len() + size.next_multiple_of(4);
    if let Payload::Bytes(bytes) = payload {
        out.extend_from_slice(bytes);
    }
    out.resize(end, 0);
}

#[inline]
pub(super) fn read(raw: &RawChunk<'_>) -> Option<Data> {
    read_with::<0>(raw).map(|(data, _)| data)
}

/// Reads a chunk with `MORE` bytes between the header of DATA and the user data.
#[inline]
pub(super) fn read_with<const MORE: usize>(raw: &RawChunk<'_>) -> Option<(Data, [u8; MORE])> {
    let (header, rest) = raw.body().split_first_chunk::<12>()?;
    let (more, _) = rest.split_first_chunk::<MORE>()?;
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let data = Data {
        tsn: Serial32(word(0)),
        stream: StreamId(half(4)),
        ssn: Serial16(half(6)),
        ppid: word(8),
        flags: DataFlags::from_bits(raw.flags),
        message_high: 0,
        payload: Payload::from(raw.copy_from(12 + MORE)),
        first_sent: Time::ZERO,
    };
    Some((data, *more))
}
