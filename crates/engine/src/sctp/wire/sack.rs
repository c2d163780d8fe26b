//! SACK (RFC 9260, 3.3.4), with the packet count of delayed acknowledgement for CMT in the highest bits of
//! its flags.
//!
//! A requested SACK has its own chunk type. Its layout differs in the last word before the blocks:
//!
//! ```text
//! SACK             number of gap ack blocks (2)              number of duplicates (2)
//! requested SACK   number of blocks (1)   duplicates (1)     number of the SACK (2)
//! ```

use ropewalk_base::{Serial16, Serial32};

use super::{CHUNK_HEADER, RawChunk, kind};
use crate::sctp::Sack;
use crate::sctp::gaps::{GapBlock, GapList};

/// Length of the fixed part without the chunk header, bytes.
const FIXED: usize = 12;

#[inline]
pub(super) fn put(sack: &Sack, out: &mut Vec<u8>) {
    let (gaps, duplicates) = (sack.gaps.len(), sack.duplicates.len());
    let length = u16::try_from(sack.wire_len()).expect("a chunk is cut to the path's MTU");
    let mut header = [sack.kind(); CHUNK_HEADER + FIXED];
    header[1] = sack.data_packets << 6;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[4..8].copy_from_slice(&sack.cumulative.0.to_be_bytes());
    header[8..12].copy_from_slice(&sack.window.to_be_bytes());
    match sack.number {
        None => {
            header[12..14].copy_from_slice(&(gaps as u16).to_be_bytes());
            header[14..].copy_from_slice(&(duplicates as u16).to_be_bytes());
        }
        Some(number) => {
            let count = |entries: usize| u8::try_from(entries).expect("the lists are short");
            (header[12], header[13]) = (count(gaps), count(duplicates));
            header[14..].copy_from_slice(&number.0.to_be_bytes());
        }
    }
    out.extend_from_slice(&header);
    put_gaps(sack.cumulative, &sack.gaps, out);
    for tsn in &sack.duplicates {
        out.extend_from_slice(&tsn.0.to_be_bytes());
    }
}

#[inline]
pub(super) fn put_gaps(cumulative: Serial32, gaps: &GapList, out: &mut Vec<u8>) {
    for block in gaps.offsets(cumulative) {
        let [a, b] = block.start.to_be_bytes();
        let [c, d] = block.end.to_be_bytes();
        out.extend_from_slice(&[a, b, c, d]);
    }
}

#[inline]
pub(super) fn read(raw: &RawChunk<'_>) -> Option<Sack> {
    let (header, lists) = raw.body().split_first_chunk::<FIXED>()?;
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let cumulative = Serial32(word(0));
    let requested = raw.kind == kind::REQUESTED_SACK;
    let (gaps, duplicates, number) = match requested {
        false => (half(8), half(10), None),
        true => (header[8].into(), header[9].into(), Some(Serial16(half(10)))),
    };
    let (blocks, _) = lists.as_chunks::<4>();
    // All counted entries must be present; bytes after them are ignored.
    let (gaps, rest) = blocks.split_at_checked(gaps.into())?;
    let duplicates = rest.get(..duplicates.into())?;
    Some(Sack {
        cumulative,
        window: word(4),
        gaps: read_gaps(cumulative, gaps),
        duplicates: duplicates.iter().map(|tsn| Serial32(u32::from_be_bytes(*tsn))).collect(),
        data_packets: if requested { 0 } else { raw.flags >> 6 },
        number,
    })
}

#[inline]
pub(super) fn read_gaps(cumulative: Serial32, blocks: &[[u8; 4]]) -> GapList {
    if blocks.is_empty() {
        return GapList::default();
    }
    let block = |[a, b, c, d]: &[u8; 4]| GapBlock {
        start: u16::from_be_bytes([*a, *b]),
        end: u16::from_be_bytes([*c, *d]),
    };
    GapList::from_offsets(cumulative, blocks.iter().map(block))
}
