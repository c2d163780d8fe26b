//! Buffer splitting (Adhari et al., 2011): each path has an equal share of the receive buffer.

use ropewalk_base::{PathId, Time};

use super::manager::{Budget, ManageWindows, ManagedPath};

/// No window is larger than its share of the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Splitting;

/// The outstanding data of a path, counted from the cumulative acknowledgement, does not exceed its share
/// of the buffer.
#[derive(Clone, Copy, Debug, Default)]
pub struct SplittingOutstanding;

impl ManageWindows for Splitting {
    fn manage(&mut self, _now: Time, _grown: PathId, budget: &Budget, paths: &mut [ManagedPath]) {
        let share = share(budget, paths.len());
        paths.iter_mut().for_each(|p| p.window = p.window.min(share));
    }
}

impl ManageWindows for SplittingOutstanding {
    #[inline]
    fn in_flight_most(&self, _path: PathId, budget: &Budget, paths: usize, held: u64) -> u64 {
        share(budget, paths).saturating_sub(held)
    }
}

fn share(budget: &Budget, paths: usize) -> u64 {
    (budget.buffer / paths.max(1) as u64).max(budget.chunk)
}

#[cfg(test)]
mod tests {
    use super::super::manager::tests::{CHUNK, budget, path, windows};
    use super::*;

    #[test]
    fn equal_shares_cut_what_is_larger_and_leave_the_rest() {
        let mut paths = [path(20, 40, 70), path(5, 40, 10)];
        Splitting.manage(Time::ZERO, PathId(0), &budget(100), &mut paths);
        assert_eq!(windows(&paths), [50, 10]);
    }

    #[test]
    fn a_share_of_the_outstanding_counts_what_the_peer_holds() {
        let manager = SplittingOutstanding;
        assert_eq!(manager.in_flight_most(PathId(0), &budget(100), 2, 20 * CHUNK), 30 * CHUNK);
        assert_eq!(manager.in_flight_most(PathId(0), &budget(100), 2, 80 * CHUNK), 0);
    }
}
