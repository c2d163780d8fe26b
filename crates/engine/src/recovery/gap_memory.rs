//! Which of a SACK's gap blocks are news.

use std::ops::Range;

use ropewalk_base::RangeSet;

use crate::sctp::GapBlock;

/// The fullest list of gap blocks seen so far. With several paths a SACK may hold hundreds of
/// blocks of which only the last differs from the SACK before: what is the same is skipped by a
/// comparison that costs next to nothing per block.
#[derive(Clone, Debug, Default)]
pub struct GapMemory {
    cumulative: u64,
    blocks: Vec<GapBlock>,
}

impl GapMemory {
    /// Adds the ranges that `blocks`, relative to `cumulative`, report and `known` does not hold to
    /// `fresh`. Blocks must be ascending and disjoint and end below `end`, else the rest is not
    /// believed. `known` holds no TSN up to `cumulative`.
    pub fn find_fresh(
        &mut self,
        cumulative: u64,
        blocks: &[GapBlock],
        end: u64,
        known: &RangeSet,
        fresh: &mut Vec<Range<u64>>,
    ) {
        let same = self.common(cumulative, blocks);
        let mut last_end = match same.checked_sub(1).map(|i| blocks[i]) {
            Some(block) => cumulative + block.end as u64 + 1,
            None => cumulative + 1,
        };
        let before = fresh.len();
        let mut known = known.ranges_from(last_end).peekable();
        let mut believed = same;
        for block in &blocks[same..] {
            let from = cumulative + block.start as u64;
            let to = cumulative + block.end as u64 + 1;
            if from < last_end || to <= from || to > end {
                break;
            }
            last_end = to;
            believed += 1;
            while known.next_if(|r| r.end <= from).is_some() {}
            let mut at = from;
            while let Some(range) = known.peek().filter(|r| r.start < to) {
                if at < range.start {
                    fresh.push(at..range.start);
                }
                at = range.end;
                if range.end > to {
                    break;
                }
                known.next();
            }
            if at < to {
                fresh.push(at..to);
            }
        }
        if fresh.len() > before {
            self.cumulative = cumulative;
            self.blocks.clear();
            self.blocks.extend_from_slice(&blocks[..believed]);
        }
    }

    /// How many of the first blocks were in the list before. A block is the same if both its ends
    /// are, seen from one origin.
    fn common(&self, cumulative: u64, blocks: &[GapBlock]) -> usize {
        let Some(moved) = cumulative.checked_sub(self.cumulative) else { return 0 };
        let Ok(moved) = u16::try_from(moved) else { return 0 };
        let gone = self.blocks.partition_point(|b| b.end <= moved);
        let old = &self.blocks[gone..];
        let equal = |(old, new): &(&GapBlock, &GapBlock)| {
            (old.start.wrapping_sub(moved) == new.start) & (old.end.wrapping_sub(moved) == new.end)
        };
        // Sixteen at a time, so that the comparison needs no branch per block.
        const STRIDE: usize = 16;
        let mut same = 0;
        for (old, new) in old.chunks_exact(STRIDE).zip(blocks.chunks_exact(STRIDE)) {
            let difference = old.iter().zip(new).fold(0, |sum, (old, new)| {
                sum | (old.start.wrapping_sub(moved) ^ new.start)
                    | (old.end.wrapping_sub(moved) ^ new.end)
            });
            if difference != 0 {
                break;
            }
            same += STRIDE;
        }
        let rest = old[same..].iter().zip(&blocks[same..]);
        same + rest.take_while(equal).count()
    }

    /// Forgets everything: the peer has dropped what it had reported.
    pub fn clear(&mut self) {
        self.blocks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk_base::Seed;

    fn blocks_of(set: &RangeSet, cumulative: u64) -> Vec<GapBlock> {
        let offset = |tsn: u64| (tsn - cumulative) as u16;
        set.ranges().map(|r| GapBlock { start: offset(r.start), end: offset(r.end - 1) }).collect()
    }

    #[test]
    fn any_order_of_arrivals_and_reports_yields_each_tsn_once() {
        for case in 0..200 {
            let mut rng = Seed::root(case).child("gap memory").rng();
            let (mut memory, mut known, mut there) =
                (GapMemory::default(), RangeSet::new(), RangeSet::new());
            let mut cumulative = 100;
            for _ in 0..150 {
                there.insert(cumulative + 2 + rng.below(120));
                if rng.chance(0.1) {
                    cumulative = there.first_range().map_or(cumulative, |r| r.end - 1);
                    there.remove_below(cumulative + 1);
                    known.remove_below(cumulative + 1);
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
                let blocks = blocks_of(&reported, cumulative);
                memory.find_fresh(cumulative, &blocks, 1 << 40, &known, &mut fresh);
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
        for (blocks, believed) in [
            (vec![block(2, 3), block(3, 5)], 2),
            (vec![block(5, 4)], 0),
            (vec![block(2, 2), block(90, 200)], 1),
            (vec![block(0, 4)], 0),
        ] {
            let mut fresh = Vec::new();
            GapMemory::default().find_fresh(10, &blocks, 100, &RangeSet::new(), &mut fresh);
            assert_eq!(fresh.into_iter().flatten().count(), believed, "{blocks:?}");
        }
    }
}
