//! Fully coupled windows: all paths act like one (Raiciu, Wischik and Handley 2009, 2.1; Kelly and Voice
//! 2005).

use super::coupled::{Coupling, Windows};

/// Each acknowledgement grows the window by `1 / W`, with W the sum of all windows. Each loss takes half
/// of W from the path that lost, limited by its window. Traffic leaves all paths except the best one.
#[derive(Clone, Copy, Debug, Default)]
pub struct FullyCoupled;

impl Coupling for FullyCoupled {
    fn growth(&mut self, windows: Windows<'_>, _path: usize) -> f64 {
        1.0 / windows.total()
    }

    fn after_loss(&mut self, windows: Windows<'_>, path: usize) -> f64 {
        windows.window(path) - windows.total() / 2.0
    }

    fn floor_units(&self) -> Option<u64> {
        Some(1)
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
    fn growth_is_one_segment_per_window_of_all_and_a_loss_takes_half_of_all() {
        for (windows, after) in [([10, 10], 1), ([30, 10], 10), ([10, 30], 1), ([20, 0], 10)] {
            // A window is at least one unit.
            let windows = windows.map(|w: u64| w.max(1));
            let after = if windows[1] == 1 { (20.0 - 10.5) as u64 } else { after };
            let mut control = Coupled::new(settled(), 2, FullyCoupled);
            at(&mut control, &windows, &[100, 10]);
            let total = (windows[0] + windows[1]) as f64;
            let grown = grown_by_an_ack(&mut control.clone(), 0, UNIT);
            assert!((grown / UNIT as f64 - 1.0 / total).abs() < 2e-3, "{windows:?}: {grown}");
            control.on_loss(PathId(0), Time::ZERO);
            assert_eq!(control.window(PathId(0)) / UNIT, after, "{windows:?}");
        }
    }
}
