//! Which of a SACK's gap blocks are news.

use std::ops::Range;

use ropewalk_base::RangeSet;

use crate::meter;
use crate::sctp::GapList;
use crate::sctp::gaps::{Word, distances, size};

/// What the gap blocks of a SACK amount to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reported {
    /// TSNs that the blocks hold.
    pub covered: u64,
    /// A block reaches beyond all that was sent.
    pub unsent: bool,
}

/// The fullest list of gap blocks seen so far. With several paths a SACK may hold hundreds of
/// blocks of which all but one or two are those of the SACK before: what is the same is skipped
/// by a comparison of memory.
#[derive(Clone, Debug, Default)]
pub struct GapDiff {
    words: Vec<Word>,
    /// Blocks before this one lie below the cumulative TSN.
    head: usize,
    /// TSNs that the blocks from `head` on hold.
    covered: u64,
}

impl GapDiff {
    /// Adds the ranges that `gaps` beyond `cumulative` report and `known` does not hold to `fresh`. Blocks must be
    /// ascending and disjoint, else the rest is not believed, and none may reach `end`. `known` holds no TSN up to
    /// `cumulative`.
    pub fn find_fresh(
        &mut self,
        cumulative: u64,
        mut gaps: GapList,
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
        // The least distance from the cumulative TSN that the next block may have.
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
            // Old blocks that begin before the next new one are like none of those to come.
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

    /// Forgets what the cumulative TSN has come past. To be told of each step of it: blocks are known
    /// by half of their numbers, and no more than that half may lie behind.
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

    /// Forgets everything: the peer has dropped what it had reported.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Adds what of `range` is not in `known` to `fresh`.
#[inline]
fn add_unknown(range: Range<u64>, known: &RangeSet, fresh: &mut Vec<Range<u64>>) {
    let mut at = range.start;
    if let Some(last) = known.last_range().filter(|last| last.start <= at) {
        // Nearly always: a new block, or the last one has grown.
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

/// Words that are compared one by one.
const FEW: usize = 6;

/// How many of the first words are equal.
#[inline]
fn common_prefix(a: &[Word], b: &[Word]) -> usize {
    let most = a.len().min(b.len());
    let (a, b) = (&a[..most], &b[..most]);
    let mut same = 0;
    if most < FEW {
        // Nothing is gained by a comparison of memory.
    } else if a[..most - 2] == b[..most - 2] {
        // Mostly only the end of the list is new.
        same = most - 2;
    } else {
        // Long runs are compared as memory, and most of them are very long.
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
                    // All is there, and much more was: numbers come round again in half of their bits.
                    cumulative += 1 + rng.below(30_000);
                    (there, known) = (RangeSet::new(), RangeSet::new());
                    memory.forget_below(cumulative);
                }
                if rng.chance(0.3) {
                    continue;
                }
                let mut reported = there.clone();
                if rng.chance(0.2) {
                    // An older SACK: less of the end.
                    let last = reported.last().unwrap_or(0);
                    (last.saturating_sub(9)..=last).for_each(|x| {
                        reported.remove(x);
                    });
                }
                let mut fresh = Vec::new();
                let gaps = list_of(&reported, cumulative);
                let found = memory.find_fresh(cumulative, gaps, 1 << 40, &known, &mut fresh);
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
            let gaps = GapList::from_offsets(Serial32(10), blocks.clone());
            let known = RangeSet::new();
            let found = GapDiff::default().find_fresh(10, gaps, 100, &known, &mut fresh);
            assert_eq!(fresh.into_iter().flatten().count(), believed, "{blocks:?}");
            assert_eq!(found, Reported { covered: believed as u64, unsent }, "{blocks:?}");
        }
    }
}
