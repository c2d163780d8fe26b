//! TSNs received beyond the cumulative TSN, in the form of gap ack blocks.

use crate::meter;
use crate::sctp::gaps::{Word, distances, word};

/// Disjoint, non-touching blocks in ascending order, all within reach of 16-bit offsets from the origin,
/// which is the cumulative TSN.
#[derive(Clone, Debug)]
pub struct Gaps {
    /// Blocks before `head` are removed. Their memory is reclaimed from time to time.
    words: Vec<Word>,
    head: usize,
    origin: u64,
}

/// Number of removed blocks after which their memory is reclaimed.
const SWEEP: usize = 64;

impl Gaps {
    /// Creates an empty list after `cumulative`.
    pub const fn new(cumulative: u64) -> Self {
        Self { words: Vec::new(), head: 0, origin: cumulative }
    }

    /// Highest TSN received in sequence, unwrapped.
    #[inline]
    pub const fn cumulative(&self) -> u64 {
        self.origin
    }

    /// The blocks.
    #[inline]
    pub fn words(&self) -> &[Word] {
        &self.words[self.head..]
    }

    /// Whether no TSN beyond the cumulative one has been received.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.words.len()
    }

    /// The highest TSN.
    #[inline]
    pub fn last(&self) -> Option<u64> {
        self.words().last().map(|word| self.origin + self.distances(*word).1 as u64)
    }

    /// First and last TSN of a block, as distances from the cumulative TSN.
    #[inline]
    pub(super) fn distances(&self, word: Word) -> (u32, u32) {
        distances(word, self.origin as u32)
    }

    /// Index in `words` of the first block that ends at `distance` or later.
    #[inline]
    fn position(&self, distance: u32) -> usize {
        // Usually the arrival has the highest TSN so far, or fills the first gap.
        let ends_before = |word: &Word| self.distances(*word).1 < distance;
        match (self.words().first(), self.words.last()) {
            (Some(first), _) if !ends_before(first) => self.head,
            (_, Some(last)) if ends_before(last) => self.words.len(),
            _ => self.head + self.words().partition_point(ends_before),
        }
    }

    /// Index of the first block that ends at `tsn` or later.
    #[inline]
    pub(super) fn index_from(&self, tsn: u64) -> Option<usize> {
        let distance = tsn.saturating_sub(self.origin).min(u64::from(u16::MAX)) as u32;
        let at = self.position(distance) - self.head;
        (at < self.words().len()).then_some(at)
    }

    /// Whether `tsn`, which is beyond the cumulative TSN, has been received.
    #[inline]
    pub fn contains(&self, tsn: u64) -> bool {
        let distance = (tsn - self.origin) as u32;
        let found = self.words.get(self.position(distance));
        found.is_some_and(|word| self.distances(*word).0 <= distance)
    }

    /// Adds `tsn`, which is at least 2 beyond the cumulative TSN. Returns false if it was received before.
    #[inline]
    pub fn insert(&mut self, tsn: u64) -> bool {
        debug_assert!(tsn > self.origin + 1, "in sequence: that is for `advance`");
        debug_assert!(tsn - self.origin <= u16::MAX as u64, "out of reach");
        let distance = (tsn - self.origin) as u32;
        let at = self.position(distance);
        let tsn = tsn as u32;
        let after = self.words.get(at).copied();
        if after.is_some_and(|word| self.distances(word).0 <= distance) {
            return false;
        }
        let joins_after = after.filter(|w| self.distances(*w).0 == distance + 1);
        let before = (at > self.head).then(|| self.words[at - 1]);
        let joins_before = before.filter(|w| self.distances(*w).1 + 1 == distance);
        match (joins_before, joins_after) {
            (Some(before), Some(after)) => {
                self.words[at - 1] = word(before >> 16, after);
                meter::count(meter::moved(4 * (self.words.len() - at)));
                self.words.remove(at);
            }
            (Some(before), None) => self.words[at - 1] = word(before >> 16, tsn),
            (None, Some(after)) => self.words[at] = word(tsn, after),
            (None, None) => {
                meter::count(meter::moved(4 * (self.words.len() - at)));
                self.words.insert(at, word(tsn, tsn));
            }
        }
        true
    }

    /// Adds the TSN after the cumulative one: the cumulative TSN moves past it, and past the block that
    /// follows directly.
    #[inline]
    pub fn advance(&mut self) {
        self.origin += 1;
        let Some(first) = self.words.get(self.head) else { return };
        let (start, end) = self.distances(*first);
        if start != 1 {
            return;
        }
        self.origin += end as u64;
        self.head += 1;
        if self.is_empty() {
            self.words.clear();
            self.head = 0;
        } else if self.head >= SWEEP && self.head * 2 >= self.words.len() {
            self.words.drain(..self.head);
            self.head = 0;
        }
    }

    /// Moves the cumulative TSN to `tsn`, which is beyond it, and past a block that contains or directly
    /// follows `tsn`.
    pub fn skip_to(&mut self, tsn: u64) {
        let mut cumulative = tsn;
        while let Some(first) = self.words.get(self.head) {
            let (start, end) = self.distances(*first);
            if self.origin + u64::from(start) > cumulative + 1 {
                break;
            }
            cumulative = cumulative.max(self.origin + u64::from(end));
            self.head += 1;
            meter::count(1);
        }
        self.origin = cumulative;
        self.words.drain(..self.head);
        self.head = 0;
    }

    /// Removes all blocks.
    pub fn clear(&mut self) {
        self.words.clear();
        self.head = 0;
    }

    /// Removes `tsn`, which is beyond the cumulative TSN. Returns false if it was not received.
    pub fn remove(&mut self, tsn: u64) -> bool {
        let distance = (tsn - self.origin) as u32;
        let at = self.position(distance);
        let Some(block) = self.words.get(at).copied() else { return false };
        let (first, last) = self.distances(block);
        if first > distance {
            return false;
        }
        let tsn = tsn as u32;
        let (before, after) =
            (word(block >> 16, tsn.wrapping_sub(1)), word(tsn.wrapping_add(1), block));
        match (first < distance, distance < last) {
            (true, false) => self.words[at] = before,
            (false, true) => self.words[at] = after,
            (true, true) => {
                meter::count(meter::moved(4 * (self.words.len() - at)));
                self.words[at] = after;
                self.words.insert(at, before);
            }
            (false, false) => {
                meter::count(meter::moved(4 * (self.words.len() - at)));
                self.words.remove(at);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk_base::{RangeSet, Seed};

    #[test]
    fn any_order_of_arrivals_leaves_what_a_plain_set_would() {
        for case in 0..200 {
            let mut rng = Seed::root(case).child("gaps").rng();
            // Near the wrap-around of the numbers on the wire.
            let mut cumulative = (1u64 << 33) - 60;
            let (mut gaps, mut plain) = (Gaps::new(cumulative), RangeSet::new());
            for _ in 0..300 {
                let tsn = cumulative + 1 + rng.below(90);
                if tsn == cumulative + 1 {
                    gaps.advance();
                    cumulative = plain.range_of(tsn + 1).map_or(tsn, |r| r.end - 1);
                    plain.remove_below(cumulative + 1);
                } else if rng.chance(0.03) {
                    gaps.skip_to(tsn);
                    plain.insert(tsn);
                    cumulative = plain.range_of(tsn).map_or(tsn, |r| r.end - 1);
                    plain.remove_below(cumulative + 1);
                } else if rng.chance(0.1) {
                    let tsn = if rng.chance(0.5) { tsn } else { plain.last().unwrap_or(tsn) };
                    assert_eq!(gaps.remove(tsn), plain.contains(tsn));
                    plain.remove(tsn);
                } else {
                    assert_eq!(gaps.contains(tsn), plain.contains(tsn));
                    assert_eq!(gaps.insert(tsn), plain.insert(tsn), "case {case}");
                }
                assert_eq!(gaps.cumulative(), cumulative);
                assert_eq!((gaps.last(), gaps.is_empty()), (plain.last(), plain.is_empty()));
                let blocks = plain.ranges().map(|r| word(r.start as u32, (r.end - 1) as u32));
                assert_eq!(gaps.words(), blocks.collect::<Vec<_>>(), "case {case}");
            }
        }
    }
}
