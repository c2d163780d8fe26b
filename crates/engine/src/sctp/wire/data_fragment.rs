//! DATA FRAGMENT, defined by this project: a DATA header, the part's offset, the total length, and the part. A part of I-DATA
//! has the lower half of its message identifier as SSN, and after the total length the upper half and two zero bytes.

use super::data::{header_of, put_payload, read_with};
use super::{RawChunk, kind};
use crate::sctp::DataFlags;
use crate::sctp::extension_chunk::DataFragment;

/// Flag of a part of I-DATA.
const INTERLEAVED: u8 = 0x10;

pub(super) fn put(piece: &DataFragment, out: &mut Vec<u8>) {
    let mut header = header_of(kind::DATA_FRAGMENT, &piece.part, piece.header());
    let interleaved = piece.part.is_interleaved();
    header[1] |= if interleaved { INTERLEAVED } else { 0 };
    out.extend_from_slice(&header);
    out.extend_from_slice(&piece.offset.to_be_bytes());
    out.extend_from_slice(&piece.total.to_be_bytes());
    if interleaved {
        out.extend_from_slice(&piece.part.message_high.to_be_bytes());
        out.extend_from_slice(&[0; 2]);
    }
    put_payload(&piece.part.payload, out);
}

pub(super) fn read(raw: &RawChunk<'_>) -> Option<DataFragment> {
    let piece = |part, [a, b, c, d]: [u8; 4]| DataFragment {
        part,
        offset: u16::from_be_bytes([a, b]),
        total: u16::from_be_bytes([c, d]),
    };
    if raw.flags & INTERLEAVED == 0 {
        let (part, place) = read_with::<4>(raw)?;
        return Some(piece(part, place));
    }
    let (mut part, [a, b, c, d, high, low, ..]) = read_with::<8>(raw)?;
    part.flags = part.flags.and(DataFlags::INTERLEAVED);
    part.message_high = u16::from_be_bytes([high, low]);
    Some(piece(part, [a, b, c, d]))
}
