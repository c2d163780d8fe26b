//! LIA, the linked increases algorithm (RFC 6356).

use super::coupled::{Coupling, Windows};

/// Each acknowledgement grows the window by the smaller of `alpha / W` and `1 / w`. Reductions are those of
/// TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lia;

impl Lia {
    /// RFC 6356, 4, Equation 2, without its factor, the sum of the windows: `max(w / rtt^2)` over `(sum
    /// of w / rtt)^2`, 1/bytes. `None` while no round trip is known.
    fn alpha_over_total(windows: Windows<'_>) -> Option<f64> {
        let best = windows.measured().map(|(_, window, rtt)| window / (rtt * rtt));
        let best = best.reduce(f64::max)?;
        let rate = windows.total_rate();
        Some(best / (rate * rate))
    }
}

impl Coupling for Lia {
    fn growth(&mut self, windows: Windows<'_>, path: usize) -> f64 {
        // RFC 6356, 3: never grow more than TCP would on this path (goal 2).
        let alone = 1.0 / windows.window(path);
        Self::alpha_over_total(windows).map_or(alone, |linked| linked.min(alone))
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{UNIT, at, grown_by_an_ack, settled};
    use super::super::coupled::Coupled;
    use super::*;

    #[test]
    fn growth_follows_the_equation_of_the_rfc() {
        // (windows in segments, round trips in ms, growth of path 0 in segments per own window),
        // calculated by hand.
        for (windows, rtts, expected) in [
            // Equal paths: alpha / W = (10 / r^2) / (20 / r)^2 = 1/40, times 10 segments.
            ([10, 10], [100, 100], 0.25),
            // The second path is faster and has the best w / r^2 = 10 / 0.05^2 = 4000; the rates sum to 100 +
            // 200: 4000 / 90000 * 10.
            ([10, 10], [100, 50], 4.0 / 9.0),
            // Best is 40 / 0.05^2 = 16000, rates 100 + 800: 16000 / 810000 * 10.
            ([10, 40], [100, 50], 16.0 / 81.0),
            // The only path would grow by 1; alpha / W * 10 = 40 / 41^2 * ... is less.
            ([10, 1], [100, 100], 100.0 / 121.0),
        ] {
            let mut control = Coupled::new(settled(), 2, Lia);
            at(&mut control, &windows, &rtts);
            let grown = grown_by_an_ack(&mut control, 0, windows[0] * UNIT);
            let grown = grown / UNIT as f64;
            assert!((grown - expected).abs() < 2e-3, "{windows:?} {rtts:?}: {grown}");
        }
    }
}
