//! PIECE: a DATA chunk's header, the part's place and the length of the whole, the part. Ours.

use ropewalk_base::{Serial16, Serial32, StreamId};

use super::data::put_payload;
use super::{CHUNK_HEADER, RawChunk, kind};
use crate::payload::Payload;
use crate::sctp::DataFlags;
use crate::sctp::rare::Piece;

const FIXED: usize = 16;

pub(super) fn put(piece: &Piece, out: &mut Vec<u8>) {
    let size = (CHUNK_HEADER + FIXED) as u32 + piece.payload.len();
    let length = u16::try_from(size).expect("a chunk is cut to the path's MTU");
    out.extend_from_slice(&[kind::PIECE, piece.flags.bits()]);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&piece.tsn.0.to_be_bytes());
    out.extend_from_slice(&piece.stream.0.to_be_bytes());
    out.extend_from_slice(&piece.ssn.0.to_be_bytes());
    out.extend_from_slice(&piece.ppid.to_be_bytes());
    out.extend_from_slice(&piece.offset.to_be_bytes());
    out.extend_from_slice(&piece.total.to_be_bytes());
    put_payload(&piece.payload, out);
}

pub(super) fn read(raw: &RawChunk<'_>) -> Option<Piece> {
    let (header, _) = raw.body().split_first_chunk::<FIXED>()?;
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
    Some(Piece {
        tsn: Serial32(word(0)),
        stream: StreamId(half(4)),
        ssn: Serial16(half(6)),
        ppid: word(8),
        flags: DataFlags::from_bits(raw.flags),
        offset: half(12),
        total: half(14),
        payload: Payload::from(raw.user_data(FIXED)),
    })
}
