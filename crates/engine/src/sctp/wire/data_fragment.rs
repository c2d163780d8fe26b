//! DATA FRAGMENT, defined by this project: a DATA header, the part's offset, the total length, and the part.

use super::data::{header_of, put_payload, read_with};
use super::{RawChunk, kind};
use crate::sctp::extension_chunk::DataFragment;

pub(super) fn put(piece: &DataFragment, out: &mut Vec<u8>) {
    out.extend_from_slice(&header_of(kind::DATA_FRAGMENT, &piece.part, DataFragment::HEADER));
    out.extend_from_slice(&piece.offset.to_be_bytes());
    out.extend_from_slice(&piece.total.to_be_bytes());
    put_payload(&piece.part.payload, out);
}

pub(super) fn read(raw: &RawChunk<'_>) -> Option<DataFragment> {
    let (part, place) = read_with::<4>(raw)?;
    let [a, b, c, d] = place;
    Some(DataFragment {
        part,
        offset: u16::from_be_bytes([a, b]),
        total: u16::from_be_bytes([c, d]),
    })
}
