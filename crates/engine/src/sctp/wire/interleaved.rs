//! I-DATA (RFC 8260, 2.1).

use ropewalk_base::{Serial16, Serial32, StreamId, Time};

use super::data::put_payload;
use super::{CHUNK_HEADER, RawChunk, kind};
use crate::payload::Payload;
use crate::sctp::{Data, DataFlags};

const FIXED: usize = 16;

pub(super) fn put(data: &Data, out: &mut Vec<u8>) {
    let size = (CHUNK_HEADER + FIXED) as u32 + data.payload.len();
    let length = u16::try_from(size).expect("a chunk is cut to the path's MTU");
    out.extend_from_slice(&[kind::I_DATA, data.flags.bits()]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&data.tsn.0.to_be_bytes());
    out.extend_from_slice(&data.stream.0.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&data.message().0.to_be_bytes());
    out.extend_from_slice(&data.ppid.to_be_bytes());
    put_payload(&data.payload, out);
}

pub(super) fn read(raw: &RawChunk<'_>) -> Option<Data> {
    let (header, _) = raw.body().split_first_chunk::<FIXED>()?;
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
    Some(Data {
        tsn: Serial32(word(0)),
        stream: StreamId(half(4)),
        ssn: Serial16(half(10)),
        ppid: word(12),
        flags: DataFlags::from_bits(raw.flags).and(DataFlags::INTERLEAVED),
        message_high: half(8),
        payload: Payload::from(raw.copy_from(FIXED)),
        first_sent: Time::ZERO,
    })
}
