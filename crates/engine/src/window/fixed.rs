//! Static congestion window management (Wallace and Shami, 2014, 5.2): a limit per path, chosen to
//! maximise the long-term total throughput. A path may exceed its limit while the buffer has space and
//! its window is below its BDP. Such a path is the first to shrink when space is needed.

use ropewalk_base::{PathId, Time};

use super::manager::{Budget, ManageWindows, ManagedPath, excess, take};

/// A limit per path, bytes; a path without one is not limited.
#[derive(Clone, Debug, Default)]
pub struct Static {
    /// By path identifier.
    pub limits: Vec<u64>,
}

impl ManageWindows for Static {
    fn manage(&mut self, _now: Time, grown: PathId, budget: &Budget, paths: &mut [ManagedPath]) {
        fit(grown, budget, &self.limits, paths);
    }
}

/// Makes the windows fit into the buffer after `grown` grew.
fn fit(grown: PathId, budget: &Budget, limits: &[u64], paths: &mut [ManagedPath]) {
    let limit = |i: usize| limits.get(i).copied().unwrap_or(u64::MAX).max(budget.chunk);
    let i = grown.index();
    // Beyond its limit, a window larger than the BDP gains nothing.
    let most = paths[i].pipe(budget.chunk).map_or(limit(i), |pipe| pipe.max(limit(i)));
    paths[i].window = paths[i].window.min(most);
    let mut excess = excess(budget, paths);
    while excess > 0 {
        let over = |j: usize, p: &ManagedPath| p.window.saturating_sub(limit(j));
        // If several paths exceed their limits equally, the one that grew shrinks.
        let most = (0..paths.len()).max_by_key(|j| (over(*j, &paths[*j]), *j == i));
        let Some(j) = most.filter(|j| over(*j, &paths[*j]) > 0) else { break };
        excess = take(&mut paths[j], excess, limit(j));
    }
    // The limits together exceed the buffer: the growth of the path that grew is undone.
    take(&mut paths[i], excess, budget.chunk);
}

#[cfg(test)]
mod tests {
    use super::super::manager::tests::{CHUNK, budget, path, windows};
    use super::*;

    #[test]
    fn who_exceeds_the_limit_gives_way_first() {
        let limits = [60 * CHUNK, 40 * CHUNK];
        for (grown, before, after, why) in [
            (0, [61, 30], [61, 30], "there is room, and the pipe takes 101"),
            (0, [61, 41], [60, 40], "both are over and give way"),
            (1, [70, 31], [69, 31], "the other is over its limit"),
            (0, [71, 30], [70, 30], "nobody else is over"),
            (1, [60, 55], [60, 40], "the limits fill the buffer"),
            (1, [20, 60], [20, 51], "no more than the pipe"),
        ] {
            let [a, b] = before;
            let mut paths = [path(20, 40, a), path(10, 40, b)];
            fit(PathId(grown), &budget(100), &limits, &mut paths);
            assert_eq!(windows(&paths), after, "{before:?}, {grown} grew: {why}");
        }
    }
}
