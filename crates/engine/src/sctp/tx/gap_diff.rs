//! Finds the TSNs in a SACK's gap ack blocks that were not reported before.

use std::ops::Range;

use ropewalk_base::RangeSet;

use crate::meter;
use crate::sctp::GapList;
use crate::sctp::gaps::{Word, distances, size};

/// Summary of the gap ack blocks of a SACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reported {
    /// Number of TSNs that the blocks cover.
    pub covered: u64,
    /// Whether a block covers a TSN that was never sent.
    pub unsent: bool,
}

/// The fullest list of gap ack blocks so far. With several paths, a SACK may contain hundreds of blocks,
/// and all but one or two equal those of the previous SACK. A comparison of memory skips the equal ones.
#[derive(Clone, Debug, Default)]
pub struct GapDiff {
    words: Vec<Word>,
    /// Blocks before this index are below the cumulative TSN.
    head: usize,
    /// Number of TSNs that the blocks from `head` on cover.
    covered: u64,
}

impl GapDiff {
    /// Adds the ranges that `gaps` reports beyond `cumulative` and that are not in `known` to `fresh`.
    /// Blocks must be ascending, disjoint and below `end`; the first one that is not, and all after it,
    /// are ignored. `known` contains no TSN up to `cumulative`. The memory of `gaps` may be exchanged.
    pub fn find_fresh(
        &mut self,
        cumulative: u64,
        gaps: &mut GapList,
        end: u64,
        known: &RangeSet,
        fresh: &mut Vec<Range<u64>>,
    ) -> Reported {
        self.forget_below(cumulative);
        let origin = cumulative as u32;
        let words = &gaps.words;
        let old = &self.words[self.head..];
        let (mut i, mut j) = (0, 0);
        let mut covered = self.covered;
        // Minimum distance of the next block from the cumulative TSN.
        let mut least = 1;
        let before = fresh.len();
        let mut unsent = false;
        while i < words.len() {
            let (first, last) = distances(words[i], origin);
            if first < least || last < first {
                break;
            }
            unsent = cumulative + last as u64 >= end;
            if unsent {
                break;
            }
            let same = common_prefix(&old[j..], &words[i..]);
            if same > 0 {
                (i, j) = (i + same, j + same);
                least = distances(words[i - 1], origin).1 + 1;
                continue;
            }
            let range = cumulative + first as u64..cumulative + last as u64 + 1;
            add_unknown(range, known, fresh);
            meter::count(1);
            covered += size(words[i]);
            (i, least) = (i + 1, last + 1);
            // Old blocks that begin before the next new block match none of the following ones.
            let next = words.get(i).map_or(least, |next| distances(*next, origin).0);
            while let Some(gone) = old.get(j).filter(|word| distances(**word, origin).0 < next) {
                covered -= size(*gone);
                j += 1;
            }
        }
        covered -= old[j..].iter().map(|word| size(*word)).sum::<u64>();
        if fresh.len() > before {
            gaps.swap(&mut self.words, i);
            (self.head, self.covered) = (0, covered);
        }
        Reported { covered, unsent }
    }

    /// Drops blocks that the cumulative TSN has passed. Must be called for each of its steps: blocks are
    /// stored with half of the bits of their TSNs, so they may not fall behind by more than half of that
    /// range.
    #[inline]
    pub fn forget_below(&mut self, cumulative: u64) {
        while let Some(first) = self.words.get(self.head) {
            if (distances(*first, cumulative as u32).1 as i16) > 0 {
                break;
            }
            self.covered -= size(*first);
            self.head += 1;
        }
    }

    /// Drops all blocks, because the peer has reneged.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Adds the ranges that the gap ack blocks of a requested SACK report to `fresh`, except those in
/// `known`: the cumulative TSN of the newest SACK, and all TSNs acknowledged beyond it. Blocks must be
/// ascending, disjoint and below `end`; the first one that is not, and all after it, are ignored.
/// `cumulative`: the cumulative TSN of this SACK. Returns whether a block covers a TSN that was never
/// sent.
pub fn find_recent(
    cumulative: u64,
    gaps: &GapList,
    end: u64,
    (passed, known): (u64, &RangeSet),
    fresh: &mut Vec<Range<u64>>,
) -> bool {
    let mut least = 1;
    for word in &gaps.words {
        meter::count(1);
        let (first, last) = distances(*word, cumulative as u32);
        if first < least || last < first {
            break;
        }
        if cumulative + u64::from(last) >= end {
            return true;
        }
        let range = cumulative + u64::from(first)..cumulative + u64::from(last) + 1;
        add_unknown(range.start.max(passed + 1)..range.end, known, fresh);
        least = last + 1;
    }
    false
}

/// Adds the parts of `range` that are not in `known` to `fresh`.
#[inline]
fn add_unknown(range: Range<u64>, known: &RangeSet, fresh: &mut Vec<Range<u64>>) {
    let mut at = range.start;
    if range.is_empty() {
        return;
    }
    if let Some(last) = known.last_range().filter(|last| last.start <= at) {
        // The usual case: a new block, or the last one has grown.
        at = at.max(last.end);
        if at < range.end {
            fresh.push(at..range.end);
        }
        return;
    }
    for old in known.ranges_from(range.start).take_while(|r| r.start < range.end) {
        if at < old.start {
            fresh.push(at..old.start);
        }
        at = old.end;
    }
    if at < range.end {
        fresh.push(at..range.end);
    }
}

/// Number of words below which they are compared one by one.
const FEW: usize = 6;

/// Length of the common prefix of two lists.
#[inline]
fn common_prefix(a: &[Word], b: &[Word]) -> usize {
    let most = a.len().min(b.len());
    let (a, b) = (&a[..most], &b[..most]);
    let mut same = 0;
    if most < FEW {
        // A comparison of memory would not be faster.
    } else if a[..most - 2] == b[..most - 2] {
        // Usually only the end of the list is new.
        same = most - 2;
    } else {
        // Runs are compared as memory, most of them very long.
        for stride in [256, 64, 16] {
            while same + stride <= most && a[same..same + stride] == b[same..same + stride] {
                same += stride;
            }
        }
    }
    same + a[same..].iter().zip(&b[same..]).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sctp::GapBlock;
    use ropewalk_base::{Seed, Serial32};

    fn list_of(set: &RangeSet, cumulative: u64) -> GapList {
        let offset = |tsn: u64| (tsn - cumulative) as u16;
        let blocks =
            set.ranges().map(|r| GapBlock { start: offset(r.start), end: offset(r.end - 1) });
        GapList::from_offsets(Serial32::wrap(cumulative), blocks)
    }

    #[test]
    fn any_order_of_arrivals_and_reports_yields_each_tsn_once() {
        for case in 0..200 {
            let mut rng = Seed::root(case).child("gap memory").rng();
            let (mut memory, mut known, mut there) =
                (GapDiff::default(), RangeSet::new(), RangeSet::new());
            let mut cumulative = 100;
            for _ in 0..150 {
                there.insert(cumulative + 2 + rng.below(120));
                if rng.chance(0.1) {
                    cumulative = there.first_range().map_or(cumulative, |r| r.end - 1);
                    there.remove_below(cumulative + 1);
                    known.remove_below(cumulative + 1);
                }
                if rng.chance(0.05) {
                    // A long jump: truncated TSNs wrap around.
                    cumulative += 1 + rng.below(30_000);
                    (there, known) = (RangeSet::new(), RangeSet::new());
                    memory.forget_below(cumulative);
                }
                if rng.chance(0.3) {
                    continue;
                }
                let mut reported = there.clone();
                if rng.chance(0.2) {
                    // An older SACK lacks the newest TSNs.
                    let last = reported.last().unwrap_or(0);
                    (last.saturating_sub(9)..=last).for_each(|x| {
                        reported.remove(x);
                    });
                }
                let mut fresh = Vec::new();
                let mut gaps = list_of(&reported, cumulative);
                let found = memory.find_fresh(cumulative, &mut gaps, 1 << 40, &known, &mut fresh);
                let expected = Reported { covered: reported.len(), unsent: false };
                assert_eq!(found, expected, "case {case}");
                for tsn in fresh.into_iter().flatten() {
                    assert!(known.insert(tsn), "case {case}: {tsn} reported as news twice");
                    assert!(reported.contains(tsn));
                }
                assert!(reported.ranges().flatten().all(|x| known.contains(x)), "case {case}");
            }
        }
    }

    #[test]
    fn blocks_out_of_order_or_beyond_the_end_are_not_believed() {
        let block = |start, end| GapBlock { start, end };
        for (blocks, believed, unsent) in [
            (vec![block(2, 3), block(3, 5)], 2, false),
            (vec![block(5, 4)], 0, false),
            (vec![block(2, 2), block(90, 200)], 1, true),
            (vec![block(2, 2), block(88, 89)], 3, false),
            (vec![block(2, 2), block(88, 90)], 1, true),
            (vec![block(0, 4)], 0, false),
        ] {
            let mut fresh = Vec::new();
            let mut gaps = GapList::from_offsets(Serial32(10), blocks.clone());
            let known = RangeSet::new();
            let found = GapDiff::default().find_fresh(10, &mut gaps, 100, &known, &mut fresh);
            assert_eq!(fresh.into_iter().flatten().count(), believed, "{blocks:?}");
            assert_eq!(found, Reported { covered: believed as u64, unsent }, "{blocks:?}");
        }
    }
}
