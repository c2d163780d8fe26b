//! Results for a pair of paths.

/// Number of results of blocks that are kept.
const RESULTS: usize = 5;
/// Minimum number of results for a decision.
const LEAST_RESULTS: usize = 2;
/// Median of the results from which a bottleneck counts as shared.
const SHARED: f64 = 0.5;
/// Median of the results up to which bottlenecks count as separate. In between, the last decision stays
/// valid.
const SEPARATE: f64 = 0.3;

/// Whether two paths share a bottleneck.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sharing {
    /// Unknown: too few packets, no queues, or outdated measurements.
    #[default]
    Unknown,
    /// Each path has its own bottleneck.
    Separate,
    /// One queue delays both.
    Shared,
}

/// The results of the last blocks, and the decision.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pair {
    /// The latest is last.
    results: [Option<f32>; RESULTS],
    sharing: Sharing,
}

impl Pair {
    /// Adds the result of a block.
    pub fn add(&mut self, result: Option<f64>) {
        self.results.rotate_left(1);
        self.results[RESULTS - 1] = result.map(|result| result as f32);
        let mut known: Vec<f64> = self.results.iter().flatten().copied().map(f64::from).collect();
        if known.is_empty() {
            self.sharing = Sharing::Unknown;
        }
        if known.len() < LEAST_RESULTS {
            return;
        }
        known.sort_by(f64::total_cmp);
        let median = (known[(known.len() - 1) / 2] + known[known.len() / 2]) / 2.0;
        if median >= SHARED {
            self.sharing = Sharing::Shared;
        } else if median <= SEPARATE {
            self.sharing = Sharing::Separate;
        }
    }

    /// The decision.
    pub const fn sharing(&self) -> Sharing {
        self.sharing
    }
}

/// All pairs of paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    /// Those with the second path 1, then those with 2, and so on.
    pairs: Vec<Pair>,
}

impl Pairs {
    pub fn new(paths: usize) -> Self {
        Self { pairs: vec![Pair::default(); index(0, paths.max(1))] }
    }

    pub fn grow(&mut self, paths: usize) {
        self.pairs.resize(index(0, paths.max(1)), Pair::default());
    }

    pub fn get(&self, a: usize, b: usize) -> Option<&Pair> {
        if a == b { None } else { self.pairs.get(index(a.min(b), a.max(b))) }
    }

    pub fn get_mut(&mut self, a: usize, b: usize) -> Option<&mut Pair> {
        if a == b { None } else { self.pairs.get_mut(index(a.min(b), a.max(b))) }
    }

    /// A block without results.
    pub fn age(&mut self) {
        self.pairs.iter_mut().for_each(|pair| pair.add(None));
    }

    /// Resets the results of a path.
    pub fn forget(&mut self, path: usize) {
        let mut b = 1;
        while index(0, b) < self.pairs.len() {
            for a in (0..b).filter(|a| *a == path || b == path) {
                self.pairs[index(a, b)] = Pair::default();
            }
            b += 1;
        }
    }
}

/// The index of the pair of paths `a` and `b`, with `a` less than `b`.
const fn index(a: usize, b: usize) -> usize {
    b * (b - 1) / 2 + a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_last_results_decides_with_hysteresis_and_ages() {
        let mut pair = Pair::default();
        for (result, sharing) in [
            (Some(0.9), Sharing::Unknown),
            (Some(0.8), Sharing::Shared),
            (Some(0.0), Sharing::Shared),
            (Some(0.4), Sharing::Shared),
            (Some(0.1), Sharing::Shared),
            (Some(0.1), Sharing::Separate),
            (Some(0.4), Sharing::Separate),
            (None, Sharing::Separate),
            (None, Sharing::Separate),
            (None, Sharing::Separate),
            (None, Sharing::Separate),
            (None, Sharing::Unknown),
        ] {
            pair.add(result);
            assert_eq!(pair.sharing(), sharing, "after {result:?}");
        }
    }

    #[test]
    fn a_path_that_is_forgotten_leaves_the_other_pairs_alone() {
        let mut pairs = Pairs::new(4);
        for b in 0..4 {
            for a in 0..b {
                let pair = pairs.get_mut(a, b).expect("a pair");
                (0..3).for_each(|_| pair.add(Some(0.9)));
            }
        }
        pairs.forget(1);
        for b in 0..4 {
            for a in 0..b {
                let known = pairs.get(b, a).expect("a pair").sharing() == Sharing::Shared;
                assert_eq!(known, a != 1 && b != 1, "{a} {b}");
            }
        }
    }
}
