//! Detects paths that share a bottleneck, from the forward delays of their packets.
//!
//! The delays of two paths through one queue vary together and by the same amount. The detector therefore
//! averages both delays over intervals of [`INTERVAL`], and compares their changes within [`STEP`]
//! intervals, block by block. The result of a block is the common part of both variances
//! ([`PairMoments::concordance`]). The detector compares changes rather than delays, because windows that
//! grow on both paths make both queues grow, whether or not they are the same queue.
//!
//! ```text
//!   blocks   |  50 intervals |  50 intervals |  50 intervals | ...
//!   results      0.7             none            0.9           median of the last five: shared or separate
//! ```
//!
//! RFC 8382 compares summary statistics (skewness, variability, oscillation and loss) of flows that may not even have
//! a receiver in common, so that their delays cannot be compared sample by sample. Here one receiver stamps all packets
//! with one clock, and the comparison of the delays themselves takes seconds instead of minutes. The offset of the two
//! clocks is the same for all paths, and changes do not depend on it.
//!
//! Delays are compared by the time of arrival and by the time of sending, and the better match counts: the queue may
//! lie anywhere on the path.

mod delays;
mod pair;
#[cfg(test)]
mod tests;

use ropewalk_base::{Duration, PairMoments, PathId};

use self::delays::{Delays, RING, Ring};
pub use self::pair::Sharing;
use self::pair::{Pair, Pairs};

/// Length of the intervals over which delays are averaged. A bottleneck may lie tens of milliseconds
/// earlier or later on one path than on another, and slow paths carry few packets.
const INTERVAL: Duration = Duration::from_millis(100);
/// Intervals over which a change of the delay is measured.
const STEP: u64 = 3;
/// Intervals of a block.
const BLOCK: u64 = 50;
/// Intervals between the end of a block and its comparison. By then acknowledgements have arrived on slow
/// paths.
const LATE: u64 = 10;
/// Minimum number of intervals of a block in which both paths carried packets.
const LEAST_INTERVALS: u32 = 15;
/// Standard deviation of the changes below which they are insignificant, nanoseconds: measurements of
/// real links vary by this much.
const LEAST_DEVIATION: f64 = 0.4e6;

/// Compares the forward delays of all pairs of paths.
///
/// The state is bounded: two rings of intervals per path, and five results per pair.
#[derive(Clone, Debug)]
pub struct SharedBottlenecks {
    paths: Vec<Delays>,
    pairs: Pairs,
    /// The first interval of the current block, by time of arrival.
    block: Option<u64>,
    /// The interval of the latest departure.
    departed: u64,
    /// For each path, the lowest index of a path with the same bottleneck.
    groups: Vec<PathId>,
}

impl SharedBottlenecks {
    /// Creates a detector for `paths` paths without results.
    pub fn new(paths: usize) -> Self {
        let groups = (0..paths).map(PathId::from_index).collect();
        let pairs = Pairs::new(paths);
        Self { paths: vec![Delays::default(); paths], pairs, block: None, departed: 0, groups }
    }

    /// Records the delay of a packet: the sender's clock when it was sent, and the receiver's clock when
    /// it arrived, nanoseconds. `usable`: whether the delay counts. It does not count while congestion
    /// control makes several paths act in step, because their delays then vary together in any case.
    /// Returns whether the groups have changed.
    pub fn sample(&mut self, path: PathId, departed: u64, arrived: u64, usable: bool) -> bool {
        let Some(delays) = self.paths.get_mut(path.index()) else { return false };
        let delay = arrived.wrapping_sub(departed) as i64;
        let (sent_in, at) = (departed / INTERVAL.as_nanos(), arrived / INTERVAL.as_nanos());
        delays.by_arrival.add(at, delay, usable);
        delays.by_departure.add(sent_in, delay, usable);
        self.departed = self.departed.max(sent_in);
        self.advance(at)
    }

    /// The paths' groups: for each path, the lowest path that shares its bottleneck. A path with its own
    /// bottleneck has its own identifier.
    pub fn groups(&self) -> &[PathId] {
        &self.groups
    }

    /// The result for two paths.
    pub fn sharing(&self, a: PathId, b: PathId) -> Sharing {
        self.pairs.get(a.index(), b.index()).map_or(Sharing::Unknown, Pair::sharing)
    }

    /// Resets a path that now leads through another network. Returns whether the groups have changed.
    pub fn forget(&mut self, path: PathId) -> bool {
        if let Some(delays) = self.paths.get_mut(path.index()) {
            *delays = Delays::default();
            self.pairs.forget(path.index());
        }
        self.regroup()
    }

    /// Extends the detector to `paths` paths.
    pub fn grow(&mut self, paths: usize) {
        self.paths.resize(paths, Delays::default());
        self.pairs.grow(paths);
        self.regroup();
    }

    /// Ends the current block if this arrival is late enough. The peer chooses its clock: after a jump, a
    /// new block begins.
    fn advance(&mut self, at: u64) -> bool {
        let first = *self.block.get_or_insert(at);
        if at.abs_diff(first) >= BLOCK + RING {
            self.block = Some(at);
            self.pairs.age();
            return self.regroup();
        }
        if at < first + BLOCK + LATE {
            return false;
        }
        self.block = Some(first + BLOCK);
        self.compare(first);
        self.regroup()
    }

    /// Compares all pairs of paths over the block that began at interval `first`.
    fn compare(&mut self, first: u64) {
        let departed = self.departed.saturating_sub(BLOCK + LATE);
        for (b, later) in self.paths.iter().enumerate() {
            for (a, earlier) in self.paths[..b].iter().enumerate() {
                let by_arrival = common(&earlier.by_arrival, &later.by_arrival, first);
                let by_departure = common(&earlier.by_departure, &later.by_departure, departed);
                let known = by_arrival.known().into_iter().chain(by_departure.known());
                let result = known.reduce(f64::max);
                if let Some(pair) = self.pairs.get_mut(a, b)
                    && (result.is_some() || !matches!(by_arrival, Common::InStep))
                {
                    pair.add(result);
                }
            }
        }
    }

    /// Joins the paths of all pairs that share a bottleneck. Returns whether a group has changed.
    fn regroup(&mut self) -> bool {
        let mut groups: Vec<_> = (0..self.paths.len()).map(PathId::from_index).collect();
        for b in 1..groups.len() {
            for a in 0..b {
                let shared = self.pairs.get(a, b).is_some_and(|p| p.sharing() == Sharing::Shared);
                if shared && groups[a] != groups[b] {
                    let (to, from) = (groups[a].min(groups[b]), groups[a].max(groups[b]));
                    groups.iter_mut().filter(|group| **group == from).for_each(|g| *g = to);
                }
            }
        }
        let changed = groups != self.groups;
        self.groups = groups;
        changed
    }
}

/// The common part of the variances of two paths' changes of delay in a block.
#[derive(Clone, Copy, Debug)]
enum Common {
    /// The common part.
    Part(f64),
    /// Unknown, because the paths acted in step for most of the block. The previous result still applies.
    InStep,
    /// Unknown, because too few packets arrived, or nothing varied.
    Unknown,
}

impl Common {
    const fn known(self) -> Option<f64> {
        match self {
            Self::Part(part) => Some(part),
            Self::InStep | Self::Unknown => None,
        }
    }
}

fn common(a: &Ring, b: &Ring, first: u64) -> Common {
    let block = first..first + BLOCK;
    let moments: PairMoments =
        block.clone().filter_map(|at| Some((a.change(at)?, b.change(at)?))).collect();
    let spoilt = block.filter(|at| a.is_spoilt(*at) || b.is_spoilt(*at)).count() as u32;
    let (x, y) = moments.deviations();
    if moments.count() < LEAST_INTERVALS {
        return if spoilt >= LEAST_INTERVALS { Common::InStep } else { Common::Unknown };
    }
    if x.max(y) < LEAST_DEVIATION { Common::Unknown } else { Common::Part(moments.concordance()) }
}
