//! BALIA, the balanced linked adaptation (Peng, Walid, Hwang and Low 2016;
//! draft-walid-mptcp-congestion-control-04).

use super::coupled::{Coupling, Windows};

/// A compromise between LIA, which is slow to leave a congested path, and OLIA, which is slow to return
/// to a path. Growth and reduction both depend on the ratio of the path's rate to that of the fastest
/// one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balia;

/// The draft's x_r and alpha_r: the rate of the path in bytes per second, and the ratio of the fastest
/// path's rate to it. `None` while the round trip is unknown.
fn rate_and_ratio(windows: Windows<'_>, path: usize) -> Option<(f64, f64)> {
    let own = windows.window(path) / windows.srtt_s(path)?;
    let best = windows.measured().map(|(_, window, rtt)| window / rtt).fold(own, f64::max);
    Some((own, best / own))
}

impl Coupling for Balia {
    fn growth(&mut self, windows: Windows<'_>, path: usize) -> f64 {
        let known = rate_and_ratio(windows, path).zip(windows.srtt_s(path));
        let Some(((own, ratio), rtt)) = known else { return 1.0 / windows.window(path) };
        let total = windows.total_rate();
        own / (rtt * total * total) * ((1.0 + ratio) / 2.0) * ((4.0 + ratio) / 5.0)
    }

    fn after_loss(&mut self, windows: Windows<'_>, path: usize) -> f64 {
        let ratio = rate_and_ratio(windows, path).map_or(1.0, |(_, ratio)| ratio);
        windows.window(path) * (1.0 - ratio.min(1.5) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::{PathId, Time};

    use super::super::CongestionControl;
    use super::super::conformance::{UNIT, at, grown_by_an_ack, settled};
    use super::super::coupled::Coupled;
    use super::*;

    #[test]
    fn growth_and_cut_follow_the_draft() {
        // Windows in segments, round trips in ms; for path 0: growth in segments per own window, and part of
        // the window that a loss leaves.
        for (windows, rtts, growth, left) in [
            // alpha = 1: 1/2 of the rate, squared.
            ([10, 10], [100, 100], 0.25, 0.5),
            // alpha = 2: (1/3)^2 * 3/2 * 6/5; the cut is 1.5 / 2.
            ([10, 20], [100, 100], 0.2, 0.25),
            // alpha = 1.2: (100 / 220)^2 * 1.1 * 1.04; the cut is 0.6.
            ([10, 12], [100, 100], 1.144 * 100.0 / 484.0, 0.4),
            // The fastest path: alpha = 1.
            ([20, 10], [100, 100], 4.0 / 9.0, 0.5),
        ] {
            let mut control = Coupled::new(settled(), 2, Balia);
            at(&mut control, &windows, &rtts);
            let mut grown = control.clone();
            let grown = grown_by_an_ack(&mut grown, 0, windows[0] * UNIT) / UNIT as f64;
            assert!((grown - growth).abs() < 2e-3, "{windows:?}: {grown}");
            control.on_loss(PathId(0), Time::ZERO);
            let expected = left * (windows[0] * UNIT) as f64;
            let found = control.window(PathId(0)) as f64;
            assert!((found - expected).abs() <= 1.0, "{windows:?}: {found}");
        }
    }
}
