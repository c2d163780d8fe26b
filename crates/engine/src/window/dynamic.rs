//! Dynamic congestion window management (Wallace and Shami, 2014, 5.1): a path that wants to grow takes
//! space from lower-ranked paths. Paths rank by available bandwidth, then by delay.

use core::cmp::Reverse;

use ropewalk_base::{Duration, PathId, Rate, Time};

use super::manager::{Budget, ManageWindows, ManagedPath, excess, take};

/// A better path takes space from a worse one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dynamic;

impl ManageWindows for Dynamic {
    fn manage(&mut self, _now: Time, grown: PathId, budget: &Budget, paths: &mut [ManagedPath]) {
        fit(grown, budget, paths);
    }
}

/// Rank of a path: larger is better; unknown paths rank last.
fn rank(path: &ManagedPath) -> (Option<Rate>, Reverse<Duration>) {
    (path.rate, Reverse(path.round_trip.unwrap_or(Duration::MAX)))
}

/// Makes the windows fit into the buffer after `grown` grew.
fn fit(grown: PathId, budget: &Budget, paths: &mut [ManagedPath]) {
    let mut excess = excess(budget, paths);
    let own = rank(&paths[grown.index()]);
    while excess > 0 {
        let worse = paths.iter_mut().filter(|p| rank(p) < own && p.window > budget.chunk);
        let Some(lowest) = worse.min_by_key(|p| rank(p)) else { break };
        excess = take(lowest, excess, budget.chunk);
    }
    take(&mut paths[grown.index()], excess, budget.chunk);
}

#[cfg(test)]
mod tests {
    use super::super::manager::tests::{budget, path, windows};
    use super::*;

    #[test]
    fn the_better_path_grows_at_the_cost_of_the_worst() {
        for (grown, before, after) in [
            (0, [71, 20, 10], [71, 20, 9]),
            (1, [70, 21, 10], [70, 21, 9]),
            (2, [70, 20, 11], [70, 20, 10]),
            (0, [95, 8, 1], [95, 4, 1]),
            (0, [99, 1, 1], [98, 1, 1]),
            (2, [30, 20, 10], [30, 20, 10]),
        ] {
            let [a, b, c] = before;
            let mut paths = [path(20, 40, a), path(10, 40, b), path(10, 80, c)];
            fit(PathId(grown), &budget(100), &mut paths);
            assert_eq!(windows(&paths), after, "{before:?}, {grown} grew");
        }
    }

    #[test]
    fn an_unknown_path_ranks_last() {
        let unknown = ManagedPath { rate: None, round_trip: None, ..path(0, 0, 50) };
        let mut paths = [unknown, path(1, 400, 51)];
        fit(PathId(1), &budget(100), &mut paths);
        assert_eq!(windows(&paths), [49, 51]);
    }
}
