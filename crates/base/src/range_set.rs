//! A set of `u64` as sorted, disjoint, non-touching ranges: gap blocks, holes, unsent data.

use std::collections::VecDeque;
use std::ops::Range;

/// A set of numbers stored as half-open ranges. Appending at the end and removing from the front take
/// constant time. Other changes take a binary search and a move of the shorter side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<Range<u64>>,
    len: u64,
}

impl RangeSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of elements.
    #[inline]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether the set is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of ranges.
    #[inline]
    pub fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// The ranges in ascending order.
    #[inline]
    pub fn ranges(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + '_ {
        self.ranges.iter().cloned()
    }

    /// The ranges that end after `x`, in ascending order.
    #[inline]
    pub fn ranges_from(&self, x: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.range(self.position(x)..).cloned()
    }

    /// The ranges as two consecutive slices, for tight loops.
    #[inline]
    pub fn as_slices(&self) -> (&[Range<u64>], &[Range<u64>]) {
        self.ranges.as_slices()
    }

    /// The lowest number.
    #[inline]
    pub fn first(&self) -> Option<u64> {
        self.ranges.front().map(|r| r.start)
    }

    /// The highest number.
    #[inline]
    pub fn last(&self) -> Option<u64> {
        self.ranges.back().map(|r| r.end - 1)
    }

    /// The lowest range.
    #[inline]
    pub fn first_range(&self) -> Option<Range<u64>> {
        self.ranges.front().cloned()
    }

    /// The highest range.
    #[inline]
    pub fn last_range(&self) -> Option<Range<u64>> {
        self.ranges.back().cloned()
    }

    /// Index of the first range that ends after `x`.
    #[inline]
    fn position(&self, x: u64) -> usize {
        // Lookups usually concern the end of the set.
        match self.ranges.back() {
            None => 0,
            Some(last) if last.end <= x => self.ranges.len(),
            Some(last) if last.start <= x => self.ranges.len() - 1,
            _ => self.ranges.partition_point(|r| r.end <= x),
        }
    }

    /// Whether `x` is in the set.
    #[inline]
    pub fn contains(&self, x: u64) -> bool {
        self.ranges.get(self.position(x)).is_some_and(|r| r.start <= x)
    }

    /// The range that holds `x`.
    pub fn range_of(&self, x: u64) -> Option<Range<u64>> {
        self.ranges.get(self.position(x)).filter(|r| r.start <= x).cloned()
    }

    /// The `k`-th number of the set in ascending order, counted from 0.
    pub fn nth(&self, k: u64) -> Option<u64> {
        // Count from the nearer end.
        let mut beyond = self.len.checked_sub(k)?.checked_sub(1)?;
        if k <= beyond {
            let mut left = k;
            for range in &self.ranges {
                let size = range.end - range.start;
                if left < size {
                    return Some(range.start + left);
                }
                left -= size;
            }
            return None;
        }
        for range in self.ranges.iter().rev() {
            let size = range.end - range.start;
            if beyond < size {
                return Some(range.end - 1 - beyond);
            }
            beyond -= size;
        }
        None
    }

    /// Number of elements below `x`.
    pub fn count_below(&self, x: u64) -> u64 {
        let below = self.ranges.iter().take_while(|r| r.start < x);
        below.map(|r| r.end.min(x) - r.start).sum()
    }

    /// Adds one number. Returns false if it was already in the set.
    #[inline]
    pub fn insert(&mut self, x: u64) -> bool {
        // Usually, `x` is the highest number so far.
        if self.ranges.back().is_none_or(|last| last.end <= x) {
            self.append(x);
            return true;
        }
        let at = self.position(x);
        if let Some(range) = self.ranges.get(at)
            && range.start <= x
        {
            return false;
        }
        self.len += 1;
        let joins_left = at > 0 && self.ranges[at - 1].end == x;
        let joins_right = self.ranges.get(at).is_some_and(|r| r.start == x + 1);
        match (joins_left, joins_right) {
            (true, true) => {
                self.ranges[at - 1].end = self.ranges[at].end;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].end = x + 1,
            (false, true) => self.ranges[at].start = x,
            (false, false) => self.ranges.insert(at, x..x + 1),
        }
        true
    }

    /// Adds a number beyond all others.
    #[inline]
    fn append(&mut self, x: u64) {
        self.len += 1;
        match self.ranges.back_mut() {
            Some(last) if last.end == x => last.end += 1,
            _ => self.ranges.push_back(x..x + 1),
        }
    }

    /// Adds all numbers of `add`.
    pub fn insert_range(&mut self, add: Range<u64>) {
        if add.is_empty() {
            return;
        }
        // All ranges that touch or overlap are replaced by their hull.
        let from = self.ranges.partition_point(|r| r.end < add.start);
        let to = self.ranges.partition_point(|r| r.start <= add.end);
        let mut hull = add;
        for old in self.ranges.drain(from..to) {
            hull.start = hull.start.min(old.start);
            hull.end = hull.end.max(old.end);
            self.len -= old.end - old.start;
        }
        self.len += hull.end - hull.start;
        self.ranges.insert(from, hull);
    }

    /// Removes one number. Returns false if it was not in the set.
    #[inline]
    pub fn remove(&mut self, x: u64) -> bool {
        // Often it is the lowest number.
        if let Some(first) = self.ranges.front_mut()
            && first.start == x
        {
            self.len -= 1;
            first.start += 1;
            if first.start == first.end {
                self.ranges.pop_front();
            }
            return true;
        }
        let at = self.position(x);
        let Some(range) = self.ranges.get_mut(at).filter(|r| r.start <= x) else {
            return false;
        };
        self.len -= 1;
        let end = range.end;
        if range.start == x {
            range.start += 1;
            if range.start == end {
                self.ranges.remove(at);
            }
        } else {
            range.end = x;
            if x + 1 < end {
                self.ranges.insert(at + 1, x + 1..end);
            }
        }
        true
    }

    /// Removes everything below `x`.
    #[inline]
    pub fn remove_below(&mut self, x: u64) {
        while let Some(range) = self.ranges.front_mut() {
            if range.end <= x {
                self.len -= range.end - range.start;
                self.ranges.pop_front();
            } else {
                if range.start < x {
                    self.len -= x - range.start;
                    range.start = x;
                }
                return;
            }
        }
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use std::collections::BTreeSet;

    fn check(set: &RangeSet, model: &BTreeSet<u64>) {
        let listed: Vec<u64> = set.ranges().flatten().collect();
        assert_eq!(listed, model.iter().copied().collect::<Vec<_>>());
        assert_eq!(set.len() as usize, model.len());
        let mut last_end = None;
        for range in set.ranges() {
            assert!(range.start < range.end, "empty range kept");
            assert!(last_end.is_none_or(|end| end < range.start), "ranges touch");
            last_end = Some(range.end);
        }
    }

    #[test]
    fn random_operations_agree_with_a_plain_set() {
        let mut rng = Seed::root(3).rng();
        for _ in 0..200 {
            let (mut set, mut model) = (RangeSet::new(), BTreeSet::new());
            for _ in 0..120 {
                let x = rng.below(60);
                match rng.below(6) {
                    0..=2 => assert_eq!(set.insert(x), model.insert(x)),
                    3 => assert_eq!(set.remove(x), model.remove(&x)),
                    4 => {
                        let end = x + rng.below(8);
                        set.insert_range(x..end);
                        model.extend(x..end);
                    }
                    _ if x < 12 => {
                        set.remove_below(x);
                        model.retain(|y| *y >= x);
                    }
                    _ => {}
                }
                check(&set, &model);
                assert_eq!(set.contains(x), model.contains(&x));
                assert_eq!(set.count_below(x), model.range(..x).count() as u64);
                assert_eq!(set.nth(x), model.iter().nth(x as usize).copied());
            }
        }
    }

    #[test]
    fn a_number_between_two_ranges_joins_them() {
        let mut set = RangeSet::new();
        set.insert_range(1..3);
        set.insert_range(4..6);
        assert!(set.insert(3));
        assert!(set.ranges().eq(std::iter::once(1..6)));
        assert_eq!(set.range_of(4), Some(1..6));
    }
}
