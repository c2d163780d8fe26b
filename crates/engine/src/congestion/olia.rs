//! OLIA, the opportunistic linked increases algorithm (Khalili, Gast, Popovic, Upadhyay and Le Boudec
//! 2012; draft-khalili-mptcp-congestion-control-05).

use super::coupled::{Coupling, Windows};

/// Bytes that a path delivers between losses.
#[derive(Clone, Copy, Debug, Default)]
struct BetweenLosses {
    /// Between the last two losses.
    before: u64,
    /// Since the last loss.
    since: u64,
}

impl BetweenLosses {
    /// The draft's l_r: an estimate of one over the loss rate, bytes.
    fn estimate(self) -> f64 {
        self.before.max(self.since) as f64
    }
}

/// Each acknowledgement grows the window by a share that balances congestion, and by `alpha / w`, which
/// moves window from the largest paths to better paths with smaller windows. Reductions are those of TCP.
#[derive(Clone, Debug)]
pub struct Olia {
    paths: Vec<BetweenLosses>,
    /// The values before the last reduction.
    undo: Vec<BetweenLosses>,
}

impl Olia {
    /// Creates the state of `paths` paths.
    pub fn new(paths: usize) -> Self {
        let none = vec![BetweenLosses::default(); paths];
        Self { paths: none.clone(), undo: none }
    }

    /// The paper's alpha (Equation 6): window moves from the largest paths to the collected ones, which are
    /// the best paths that are not the largest.
    fn alpha(&self, windows: Windows<'_>, path: usize) -> f64 {
        let largest = windows.measured().map(|(_, window, _)| window).fold(0.0, f64::max);
        // A single path would reach a rate of sqrt(2 l) / rtt. The draft's text orders paths by l^2 / rtt,
        // which is equivalent if round trips are equal.
        let quality = |(i, _, rtt): (usize, f64, f64)| self.paths[i].estimate() / (rtt * rtt);
        let best = windows.measured().map(quality).fold(0.0, f64::max);
        let (mut largest_count, mut collected_count, mut known) = (0, 0, 0);
        let (mut is_largest, mut is_collected) = (false, false);
        for measured in windows.measured() {
            let (i, window, _) = measured;
            known += 1;
            if window >= largest {
                largest_count += 1;
                is_largest |= i == path;
            } else if quality(measured) >= best {
                collected_count += 1;
                is_collected |= i == path;
            }
        }
        match (collected_count, is_collected, is_largest) {
            (0, _, _) => 0.0,
            (n, true, _) => 1.0 / (known * n) as f64,
            (_, _, true) => -1.0 / (known * largest_count) as f64,
            _ => 0.0,
        }
    }
}

impl Coupling for Olia {
    fn grow(&mut self, paths: usize) {
        self.paths.resize_with(paths, BetweenLosses::default);
        self.undo.resize_with(paths, BetweenLosses::default);
    }

    fn renew(&mut self, path: usize) {
        (self.paths[path], self.undo[path]) = (BetweenLosses::default(), BetweenLosses::default());
    }

    fn growth(&mut self, windows: Windows<'_>, path: usize) -> f64 {
        let window = windows.window(path);
        let Some(rtt) = windows.srtt_s(path) else { return 1.0 / window };
        let rate = windows.total_rate();
        window / (rtt * rtt) / (rate * rate) + self.alpha(windows, path) / window
    }

    fn on_acked(&mut self, path: usize, bytes: u64) {
        self.paths[path].since += bytes;
    }

    fn on_cut(&mut self, path: usize) {
        self.undo[path] = self.paths[path];
        self.paths[path] = BetweenLosses { before: self.paths[path].since, since: 0 };
    }

    fn on_undo(&mut self, path: usize) {
        let since = self.paths[path].since;
        self.paths[path] = self.undo[path];
        self.paths[path].since += since;
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{UNIT, at, grown_by_an_ack, settled};
    use super::super::coupled::Coupled;
    use super::*;

    /// Growth of `path` per own window, segments; the paths have delivered `delivered` bytes since their last
    /// loss.
    fn growth(windows: [u64; 2], rtts: [u64; 2], delivered: [u64; 2], path: u8) -> f64 {
        let mut rule = Olia::new(2);
        (0..2).for_each(|i| rule.paths[i].since = delivered[i]);
        let mut control = Coupled::new(settled(), 2, rule);
        at(&mut control, &windows, &rtts);
        grown_by_an_ack(&mut control, path, windows[usize::from(path)] * UNIT) / UNIT as f64
    }

    #[test]
    fn equal_paths_share_the_growth_of_one() {
        let found = growth([10, 10], [100, 100], [1 << 30; 2], 0);
        assert!((found - 0.25).abs() < 2e-3, "{found}");
    }

    #[test]
    fn windows_move_from_the_largest_to_the_best_path() {
        // Path 1 has fewer losses and the smaller window: alpha = 1/2 for it and -1/2 for path 0. By
        // hand: 20 * 20 / 30^2 - 1/2 and 10 * 10 / 30^2 + 1/2.
        let delivered = [1 << 20, 1 << 30];
        let from = growth([20, 10], [100, 100], delivered, 0);
        assert!((from - (400.0 / 900.0 - 0.5)).abs() < 2e-3, "{from}");
        let to = growth([20, 10], [100, 100], delivered, 1);
        assert!((to - (100.0 / 900.0 + 0.5)).abs() < 2e-3, "{to}");
    }

    #[test]
    fn nothing_moves_where_the_largest_path_is_the_best() {
        let found = growth([20, 10], [100, 100], [1 << 30, 1 << 20], 1);
        assert!((found - 100.0 / 900.0).abs() < 2e-3, "{found}");
    }

    #[test]
    fn a_cut_that_is_taken_back_forgets_no_bytes() {
        let mut rule = Olia::new(1);
        rule.on_acked(0, 500);
        rule.on_cut(0);
        rule.on_acked(0, 70);
        assert_eq!((rule.paths[0].before, rule.paths[0].since), (500, 70));
        rule.on_undo(0);
        assert_eq!((rule.paths[0].before, rule.paths[0].since), (0, 570));
    }
}
