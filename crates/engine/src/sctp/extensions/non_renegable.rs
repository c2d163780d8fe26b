//! Non-renegable selective acknowledgements (NR-SACK, draft-natarajan-tsvwg-sctp-nrsack-08): the sender's part.
//!
//! A receiver may drop data that gap ack blocks have reported (RFC 9260, 6.2), so its sender has to keep
//! the data until the cumulative TSN passes it. Data in non-renegable gap ack blocks is never dropped.
//! The sender frees it immediately.
//!
//! ```text
//!   cumulative TSN                            highest TSN sent
//!        |                                          |
//!   -----+------+=====+-----+#######+------+=====+--+---> TSN
//!         missing  gap      non-renegable   gap
//!        |<---------- in the send buffer -------------->|  without the user data of the non-renegable chunks
//! ```

use std::ops::Range;

use ropewalk_base::{RangeSet, Serial32};

use crate::meter;
use crate::sctp::chunk::Data;
use crate::sctp::gaps::{GapList, Word, distances, word};
use crate::sctp::tx::GapDiff;

/// Chunks that the peer will not drop, whose user data has been freed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    tsns: RangeSet,
    freed: u64,
    /// The fullest list of non-renegable blocks so far.
    memory: GapDiff,
}

/// Bytes freed of a chunk of `bytes` bytes. The rest stays charged for the chunk's record.
const fn freed_of(bytes: u32) -> u64 {
    bytes.saturating_sub(Data::HEADER) as u64
}

impl Kept {
    /// Their TSNs.
    #[inline]
    pub const fn tsns(&self) -> &RangeSet {
        &self.tsns
    }

    /// Bytes that they have released from the send buffer.
    #[inline]
    pub const fn freed(&self) -> u64 {
        self.freed
    }

    /// Adds the TSNs beyond `cumulative` that these blocks report for the first time to `fresh`. TSNs
    /// from `end` on have not been sent.
    pub fn find_fresh(
        &mut self,
        cumulative: u64,
        mut blocks: GapList,
        end: u64,
        fresh: &mut Vec<Range<u64>>,
    ) {
        self.memory.find_fresh(cumulative, &mut blocks, end, &self.tsns, fresh);
    }

    /// Must be called for each step of the cumulative TSN: see [`GapDiff::forget_below`].
    #[inline]
    pub fn forget_below(&mut self, cumulative: u64) {
        self.memory.forget_below(cumulative);
    }

    /// Adds a chunk of `bytes` bytes.
    pub fn add(&mut self, tsn: u64, bytes: u32) {
        if self.tsns.insert(tsn) {
            self.freed += freed_of(bytes);
        }
    }

    /// Removes `tsn`, a chunk of `bytes` bytes, if it is the first one. The cumulative TSN has passed it.
    #[inline]
    pub fn pass(&mut self, tsn: u64, bytes: u32) {
        if self.tsns.first() == Some(tsn) {
            self.tsns.remove_below(tsn + 1);
            self.freed -= freed_of(bytes);
        }
    }
}

/// The blocks of one list as distances from the cumulative TSN, up to the first one that is not ascending.
struct Blocks<'a> {
    words: &'a [Word],
    origin: u32,
    /// Minimum distance of the next block.
    least: u32,
}

impl Blocks<'_> {
    fn next(&mut self) -> Option<(u32, u32)> {
        let (block, rest) = self.words.split_first()?;
        let (first, last) = distances(*block, self.origin);
        if first < self.least || last < first {
            return None;
        }
        meter::count(1);
        (self.words, self.least) = (rest, last + 1);
        Some((first, last))
    }
}

/// All TSNs that the renegable and the non-renegable blocks of an NR-SACK report, as blocks of a SACK.
/// The lists should have no TSN in common; a TSN in both counts as non-renegable. In each list, the first
/// block that is not ascending and all later ones are ignored, as in a SACK.
pub(crate) fn union(cumulative: Serial32, gaps: &GapList, kept: &GapList) -> GapList {
    if gaps.is_empty() {
        return kept.clone();
    }
    let origin = cumulative.0;
    let blocks = |list| Blocks { words: list, origin, least: 1 };
    let (mut renegable, mut others) = (blocks(&gaps.words), blocks(&kept.words));
    let mut next = [renegable.next(), others.next()];
    let mut words = Vec::with_capacity(gaps.len() + kept.len());
    let mut open: Option<(u32, u32)> = None;
    let mut put = |(first, last): (u32, u32)| {
        words.push(word(origin.wrapping_add(first), origin.wrapping_add(last)));
    };
    loop {
        let (first, last) = match next {
            [Some(one), Some(other)] if other.0 < one.0 => {
                next[1] = others.next();
                other
            }
            [Some(one), _] => {
                next[0] = renegable.next();
                one
            }
            [None, Some(other)] => {
                next[1] = others.next();
                other
            }
            [None, None] => break,
        };
        open = match open {
            Some((begin, end)) if first <= end + 1 => Some((begin, end.max(last))),
            before => {
                before.into_iter().for_each(&mut put);
                Some((first, last))
            }
        };
    }
    open.into_iter().for_each(put);
    GapList { words }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;
    use crate::sctp::GapBlock;

    fn list(set: &RangeSet, cumulative: Serial32) -> GapList {
        let block = |r: Range<u64>| GapBlock { start: r.start as u16, end: r.end as u16 - 1 };
        GapList::from_offsets(cumulative, set.ranges().map(block))
    }

    #[test]
    fn the_union_has_the_tsns_of_both_lists_and_no_others() {
        for case in 0..300 {
            let mut rng = Seed::root(case).child("non-renegable").rng();
            let cumulative = Serial32(u32::MAX - rng.below(200) as u32);
            let (mut one, mut other, mut both) =
                (RangeSet::new(), RangeSet::new(), RangeSet::new());
            for _ in 0..rng.below(60) {
                let tsn = 2 + rng.below(90);
                let set = if rng.chance(0.5) { &mut one } else { &mut other };
                set.insert(tsn);
                both.insert(tsn);
            }
            let found = union(cumulative, &list(&one, cumulative), &list(&other, cumulative));
            assert_eq!(found, list(&both, cumulative), "case {case}");
        }
    }

    #[test]
    fn blocks_that_are_not_ascending_end_their_list_and_not_the_other() {
        let block = |start, end| GapBlock { start, end };
        let cumulative = Serial32(7);
        let of = |blocks: &[GapBlock]| GapList::from_offsets(cumulative, blocks.iter().copied());
        for (gaps, kept, expected) in [
            (&[block(2, 3), block(3, 5)][..], &[block(8, 9)][..], &[block(2, 3), block(8, 9)][..]),
            (&[block(5, 4)], &[block(2, 2)], &[block(2, 2)]),
            (&[block(2, 9)], &[block(4, 5), block(1, 60)], &[block(2, 9)]),
            (&[block(0, 4)], &[], &[]),
            (&[block(2, 65_535)], &[block(65_535, 65_535)], &[block(2, 65_535)]),
        ] {
            assert_eq!(union(cumulative, &of(gaps), &of(kept)), of(expected), "{gaps:?} {kept:?}");
        }
    }

    #[test]
    fn what_is_kept_is_freed_once_and_forgotten_when_the_cumulative_tsn_passes() {
        let mut kept = Kept::default();
        for tsn in [5, 7, 5, 6] {
            kept.add(tsn, Data::HEADER + 100);
        }
        assert_eq!((kept.freed(), kept.tsns().len()), (300, 3));
        for tsn in 4..7 {
            kept.pass(tsn, Data::HEADER + 100);
        }
        assert_eq!((kept.freed(), kept.tsns().first()), (100, Some(7)));
    }
}
