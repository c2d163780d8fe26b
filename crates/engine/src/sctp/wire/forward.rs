//! FORWARD-TSN (RFC 3758, 3.2) and I-FORWARD-TSN (RFC 8260, 2.3.1).

use ropewalk_base::{Serial16, Serial32, StreamId};

use super::{Frame, RawChunk, kind};
use crate::sctp::extension_chunk::{ForwardTsn, IForwardTsn, Skipped};

/// The U bit, the lowest bit of the field that follows a stream identifier.
const UNORDERED: u8 = 1;

pub(super) fn put(forward: &ForwardTsn, out: &mut Vec<u8>) {
    let frame = Frame::begin(kind::FORWARD_TSN, 0, out);
    out.extend_from_slice(&forward.cumulative.0.to_be_bytes());
    for (stream, ssn) in &forward.streams {
        out.extend_from_slice(&stream.0.to_be_bytes());
        out.extend_from_slice(&ssn.0.to_be_bytes());
    }
    frame.end(out);
}

pub(super) fn put_interleaved(forward: &IForwardTsn, out: &mut Vec<u8>) {
    let frame = Frame::begin(kind::I_FORWARD_TSN, 0, out);
    out.extend_from_slice(&forward.cumulative.0.to_be_bytes());
    for one in &forward.streams {
        out.extend_from_slice(&one.stream.0.to_be_bytes());
        out.extend_from_slice(&[0, one.unordered as u8]);
        out.extend_from_slice(&one.message.0.to_be_bytes());
    }
    frame.end(out);
}

/// Splits the body into the cumulative TSN and entries of `N` bytes, which must fill the rest exactly.
fn split<'a, const N: usize>(raw: &'a RawChunk<'_>) -> Option<(Serial32, &'a [[u8; N]])> {
    let (tsn, list) = raw.body().split_first_chunk::<4>()?;
    let (entries, rest) = list.as_chunks::<N>();
    rest.is_empty().then_some((Serial32(u32::from_be_bytes(*tsn)), entries))
}

pub(super) fn read(raw: &RawChunk<'_>) -> Option<ForwardTsn> {
    let (cumulative, entries) = split::<4>(raw)?;
    let entry = |[a, b, c, d]: &[u8; 4]| {
        (StreamId(u16::from_be_bytes([*a, *b])), Serial16(u16::from_be_bytes([*c, *d])))
    };
    Some(ForwardTsn { cumulative, streams: entries.iter().map(entry).collect() })
}

pub(super) fn read_interleaved(raw: &RawChunk<'_>) -> Option<IForwardTsn> {
    let (cumulative, entries) = split::<8>(raw)?;
    let entry = |one: &[u8; 8]| Skipped {
        stream: StreamId(u16::from_be_bytes([one[0], one[1]])),
        unordered: one[3] & UNORDERED != 0,
        message: Serial32(u32::from_be_bytes([one[4], one[5], one[6], one[7]])),
    };
    Some(IForwardTsn { cumulative, streams: entries.iter().map(entry).collect() })
}
