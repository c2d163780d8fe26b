//! I-DATA (RFC 8260, 2.1).

use ropewalk_base::{Serial32, StreamId};

use super::data::put_payload;
use super::{CHUNK_HEADER, RawChunk, kind};
use crate::payload::Payload;
use crate::sctp::DataFlags;
use crate::sctp::extension_chunk::IData;

const FIXED: usize = 16;

pub(super) fn put(data: &IData, out: &mut Vec<u8>) {
    let size = (CHUNK_HEADER + FIXED) as u32 + data.payload.len();
    let length = u16::try_from(size).expect("a chunk is cut to the path's MTU");
    out.extend_from_slice(&[kind::I_DATA, data.flags.bits()]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&data.tsn.0.to_be_bytes());
    out.extend_from_slice(&data.stream.0.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&data.message.0.to_be_bytes());
    out.extend_from_slice(&data.ppid_or_fragment.to_be_bytes());
    put_payload(&data.payload, out);
}

pub(super) fn read(raw: &RawChunk<'_>) -> Option<IData> {
    let (header, _) = raw.body().split_first_chunk::<FIXED>()?;
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    Some(IData {
        tsn: Serial32(word(0)),
        stream: StreamId((word(4) >> 16) as u16),
        message: Serial32(word(8)),
        ppid_or_fragment: word(12),
        flags: DataFlags::from_bits(raw.flags),
        payload: Payload::from(raw.user_data(FIXED)),
    })
}
