//! NR-SACK (draft-natarajan-tsvwg-sctp-nrsack-08, 4): counts, both lists of blocks, and duplicates. The highest bits of the
//! flags are those of a SACK.

use ropewalk_base::Serial32;

use super::sack::{put_gaps, read_gaps};
use super::{Frame, RawChunk, kind};
use crate::sctp::extension_chunk::NrSack;

const FIXED: usize = 16;

pub(super) fn put(sack: &NrSack, out: &mut Vec<u8>) {
    let frame = Frame::begin(kind::NR_SACK, sack.data_packets << 6, out);
    out.extend_from_slice(&sack.cumulative.0.to_be_bytes());
    out.extend_from_slice(&sack.window.to_be_bytes());
    for count in [sack.gaps.len(), sack.kept.len(), sack.duplicates.len(), 0] {
        out.extend_from_slice(&(count as u16).to_be_bytes());
    }
    put_gaps(sack.cumulative, &sack.gaps, out);
    put_gaps(sack.cumulative, &sack.kept, out);
    for tsn in &sack.duplicates {
        out.extend_from_slice(&tsn.0.to_be_bytes());
    }
    frame.end(out);
}

pub(super) fn read(raw: &RawChunk<'_>) -> Option<NrSack> {
    let (header, lists) = raw.body().split_first_chunk::<FIXED>()?;
    let word = |at: usize| {
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]) as usize;
    let cumulative = Serial32(word(0));
    let (blocks, _) = lists.as_chunks::<4>();
    let (gaps, rest) = blocks.split_at_checked(half(8))?;
    let (kept, rest) = rest.split_at_checked(half(10))?;
    let duplicates = rest.get(..half(12))?;
    Some(NrSack {
        cumulative,
        window: word(4),
        gaps: read_gaps(cumulative, gaps),
        kept: read_gaps(cumulative, kept),
        duplicates: duplicates.iter().map(|tsn| Serial32(u32::from_be_bytes(*tsn))).collect(),
        data_packets: raw.flags >> 6,
    })
}
