//! The gap ack blocks that changed recently.
//!
//! With several paths of different delay, hundreds of gaps are open at a time. A SACK with all of the
//! blocks (RFC 9260, 6.2.1) repeats nearly the same list each time. A requested SACK lists the blocks
//! with arrivals since the third-last SACK on its path, like TCP with its few blocks (RFC 2018, 4): two
//! successive SACKs may be lost before the sender misses anything. SACKs of one path do not overtake each
//! other, but those of different paths do, so each path reports every arrival. The remaining room of a
//! short list refreshes the other blocks in turn.
//!
//! ```text
//!   log of arrivals   . . . . . . . . . . . . . . . .
//!   path 0                  ^third-last  ^  ^last      the next SACK on path 0 lists from here  on
//!   path 1              ^third-last ^     ^last
//! ```

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use ropewalk_base::PathId;
use smallvec::SmallVec;

use crate::meter;
use crate::sctp::gaps::Word;
use crate::sctp::rx::gaps::Gaps;

/// Number of SACKs on each path that report an arrival (RFC 2018, 4: each block is reported at least three times).
const REPORTS: usize = 3;
/// Maximum number of ranges that arrive between two SACKs. A SACK is due when there are more.
const RANGES_LIMIT: u64 = 32;
/// Maximum number of ranges in the log, and of blocks in one SACK.
const LOG_LIMIT: usize = 128;
const BLOCKS_LIMIT: usize = 96;
/// Number of blocks up to which a SACK is filled with blocks that have not changed.
const SHORT_LIST: usize = 4;
/// Number of recent ranges among which the neighbour of a new arrival is searched for: one range for each path.
const NEIGHBOURS: usize = 4;

/// Indices of blocks.
type Blocks = SmallVec<[usize; 32]>;

/// The arrivals that the next SACKs report.
#[derive(Clone, Debug)]
pub struct RecentBlocks {
    /// Ranges of TSNs that arrived out of order, in the order of their arrival.
    log: VecDeque<(u64, u64)>,
    /// Position of the first range of the log, counted from the first arrival.
    base: u64,
    /// Position after the last range that a SACK has reported.
    reported: u64,
    /// Position after the last range that the last SACKs on each path have reported, newest SACK first.
    marks: SmallVec<[[u64; REPORTS]; 2]>,
    /// The lowest TSN of the block that was refreshed last.
    refreshed: u64,
}

impl RecentBlocks {
    /// Creates an empty log for SACKs on `paths` paths.
    pub fn new(paths: usize) -> Self {
        Self {
            log: VecDeque::new(),
            base: 0,
            reported: 0,
            marks: SmallVec::from_elem([0; REPORTS], paths),
            refreshed: 0,
        }
    }

    /// Records a TSN that arrived out of order or again.
    #[inline]
    pub fn on_arrival(&mut self, tsn: u64) {
        let fresh = (self.end() - self.reported) as usize;
        for (first, last) in self.log.iter_mut().rev().take(fresh.min(NEIGHBOURS)) {
            if (*first..=*last).contains(&tsn) {
                return;
            }
            if tsn == *last + 1 {
                *last = tsn;
                return;
            }
        }
        if self.log.len() >= LOG_LIMIT {
            self.log.pop_front();
            self.base += 1;
            self.reported = self.reported.max(self.base);
        }
        self.log.push_back((tsn, tsn));
    }

    /// Position after the last range.
    #[inline]
    fn end(&self) -> u64 {
        self.base + self.log.len() as u64
    }

    /// Position of the first range that the next SACK on `path` reports.
    fn begin(&self, path: PathId) -> u64 {
        self.marks[path.index()][REPORTS - 1].max(self.base)
    }

    /// Whether a SACK has no room for further arrivals.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.end() - self.reported >= RANGES_LIMIT
    }

    /// Maximum number of blocks of the next SACK on `path`.
    pub fn len_max(&self, path: PathId) -> usize {
        let ranges = (self.end() - self.begin(path)) as usize;
        ranges.clamp(SHORT_LIST, BLOCKS_LIMIT)
    }

    /// Puts at most `most` blocks of the next SACK on `path` into `words`, in ascending order. If there
    /// are more, the newest arrivals take precedence.
    pub fn take(&mut self, path: PathId, gaps: &Gaps, most: usize, words: &mut Vec<Word>) {
        words.clear();
        let most = most.min(BLOCKS_LIMIT);
        let mut blocks = Blocks::new();
        for (_, last) in self.log.range((self.begin(path) - self.base) as usize..).rev() {
            meter::count(1);
            let Some(block) = gaps.block_of(*last) else { continue };
            if blocks.len() >= most {
                break;
            }
            if !blocks.contains(&block) {
                blocks.push(block);
            }
        }
        self.refresh(gaps, most.min(SHORT_LIST), &mut blocks);
        blocks.sort_unstable();
        words.extend(blocks.into_iter().map(|block| gaps.words()[block]));
        self.after_sack(path);
    }

    /// Records that the SACK on `path` reports all arrivals so far, and drops arrivals that every path
    /// has reported often enough.
    fn after_sack(&mut self, path: PathId) {
        self.reported = self.end();
        let marks = &mut self.marks[path.index()];
        marks.rotate_right(1);
        marks[0] = self.reported;
        let needed = self.marks.iter().map(|marks| marks[REPORTS - 1]).min().unwrap_or(0);
        let passed = needed.saturating_sub(self.base);
        self.log.drain(..passed as usize);
        self.base += passed;
    }

    /// Adds unchanged blocks, in turn, until there are `most`.
    fn refresh(&mut self, gaps: &Gaps, most: usize, blocks: &mut Blocks) {
        let count = gaps.words().len();
        let mut at = gaps.first_block_after(self.refreshed);
        for _ in 0..count.min(most) {
            if blocks.len() >= most {
                return;
            }
            let block = at % count;
            if !blocks.contains(&block) {
                blocks.push(block);
            }
            self.refreshed = *gaps.block(block).start();
            at = block + 1;
        }
    }
}

impl Gaps {
    /// Index of the block that contains `tsn`, if it was received beyond the cumulative TSN.
    fn block_of(&self, tsn: u64) -> Option<usize> {
        let at = self.index_from(tsn)?;
        self.block(at).contains(&tsn).then_some(at)
    }

    /// Index of the first block that ends after `tsn`, or 0.
    fn first_block_after(&self, tsn: u64) -> usize {
        self.index_from(tsn + 1).unwrap_or(0)
    }

    /// The TSNs of the block at this index.
    fn block(&self, index: usize) -> RangeInclusive<u64> {
        let (first, last) = self.distances(self.words()[index]);
        self.cumulative() + u64::from(first)..=self.cumulative() + u64::from(last)
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::*;

    fn reported(recent: &mut RecentBlocks, gaps: &Gaps, most: usize) -> Vec<(u64, u64)> {
        reported_on(0, recent, gaps, most)
    }

    fn reported_on(
        path: u8,
        recent: &mut RecentBlocks,
        gaps: &Gaps,
        most: usize,
    ) -> Vec<(u64, u64)> {
        let mut words = Vec::new();
        recent.take(PathId(path), gaps, most, &mut words);
        let index = |word| gaps.words().iter().position(|known| *known == word).unwrap();
        let block = |word: Word| gaps.block(index(word)).into_inner();
        words.into_iter().map(block).collect()
    }

    fn arrive(recent: &mut RecentBlocks, gaps: &mut Gaps, tsns: &[u64]) {
        for tsn in tsns {
            gaps.insert(*tsn);
            recent.on_arrival(*tsn);
        }
    }

    #[test]
    fn each_arrival_is_in_three_sacks() {
        let (mut recent, mut gaps) = (RecentBlocks::new(2), Gaps::new(100));
        for tsn in (200..230).step_by(2) {
            gaps.insert(tsn);
        }
        arrive(&mut recent, &mut gaps, &[110, 112, 113, 115, 117, 119]);
        for sack in 0..REPORTS {
            let blocks = reported(&mut recent, &gaps, 100);
            let expected = [(110, 110), (112, 113), (115, 115), (117, 117), (119, 119)];
            assert_eq!(blocks, expected, "SACK {sack}");
        }
        assert_eq!(reported(&mut recent, &gaps, 100).len(), SHORT_LIST, "refreshed ones only");
    }

    #[test]
    fn unchanged_blocks_are_refreshed_in_turn() {
        let (mut recent, mut gaps) = (RecentBlocks::new(2), Gaps::new(100));
        for tsn in (102..122).step_by(2) {
            gaps.insert(tsn);
        }
        let sacks = (0..10).flat_map(|_| reported(&mut recent, &gaps, 100));
        let mut firsts: Vec<u64> = sacks.map(|(first, _)| first).collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts, (102..122).step_by(2).collect::<Vec<_>>());
    }

    #[test]
    fn the_newest_blocks_take_precedence_where_the_list_is_short() {
        let (mut recent, mut gaps) = (RecentBlocks::new(2), Gaps::new(100));
        arrive(&mut recent, &mut gaps, &[110, 112]);
        reported(&mut recent, &gaps, 9);
        arrive(&mut recent, &mut gaps, &[114, 116]);
        assert_eq!(reported(&mut recent, &gaps, 2), [(114, 114), (116, 116)]);
    }

    #[test]
    fn three_sacks_on_each_path_report_every_arrival_whatever_its_order() {
        for case in 0..300 {
            let mut rng = Seed::root(case).child("recent").rng();
            let (mut recent, mut gaps) = (RecentBlocks::new(2), Gaps::new(1 << 33));
            // The arrivals that the next SACKs of each path must report, with the number of SACKs that
            // have reported them.
            let mut owed: [Vec<(u64, usize)>; 2] = Default::default();
            for _ in 0..60 {
                while !recent.is_full() && rng.chance(0.75) {
                    let tsn = gaps.cumulative() + 1 + rng.below(400);
                    if tsn == gaps.cumulative() + 1 {
                        gaps.advance();
                    } else {
                        gaps.insert(tsn);
                        recent.on_arrival(tsn);
                        owed.iter_mut().for_each(|path| path.push((tsn, 0)));
                    }
                }
                if gaps.is_empty() {
                    continue;
                }
                let path = usize::from(rng.chance(0.4));
                let blocks = reported_on(path as u8, &mut recent, &gaps, 1000);
                owed[path].retain_mut(|(_, reports)| {
                    *reports += 1;
                    *reports <= REPORTS
                });
                let beyond = owed[path].iter().filter(|(tsn, _)| *tsn > gaps.cumulative());
                for (tsn, reports) in beyond {
                    let found = blocks.iter().any(|(first, last)| (first..=last).contains(&tsn));
                    assert!(found, "case {case}: report {reports} of {tsn} in {blocks:?}");
                }
            }
        }
    }
}
