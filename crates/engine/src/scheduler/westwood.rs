//! Bandwidth of each path as estimated by TCP Westwood (Casetti et al., 2002): acknowledged bytes per
//! interval, through a low-pass filter. Computed from the views alone.

use ropewalk_base::{Duration, PathId, Time};

use super::common::{counts, known_round_trip};
use super::{PathView, View};

/// Weight of a new sample.
const GAIN: f64 = 1.0 / 8.0;
/// Minimum length of an interval, which is otherwise a smoothed round trip: shorter ones would count
/// bursts.
const SHORTEST: Duration = Duration::from_millis(20);

/// State of one path.
#[derive(Clone, Copy, Debug, Default)]
struct Filter {
    /// Bytes per nanosecond, `None` before the first full interval.
    estimate: Option<f64>,
    /// Start of the interval, and the bytes delivered by then; `None` before the first view.
    began: Option<(Time, u64)>,
    /// Whether the window was full at some time in the interval.
    full: bool,
}

/// The estimates of all paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Westwood {
    /// By path identifier.
    paths: Vec<Filter>,
}

impl Westwood {
    /// Updates the estimates from a view.
    pub fn observe(&mut self, view: &View<'_>) {
        for path in view.paths.iter().filter(|p| counts(p)) {
            let index = path.id.index();
            if self.paths.len() <= index {
                self.paths.resize(index + 1, Filter::default());
            }
            let interval = known_round_trip(view, path).max(SHORTEST);
            self.paths[index].observe(view.now, interval, path);
        }
    }

    /// Bytes per nanosecond, always positive. Before the first interval, one window per round trip.
    pub fn rate(&self, view: &View<'_>, path: &PathView) -> f64 {
        self.estimate(path.id).unwrap_or_else(|| {
            path.window.max(1) as f64 / known_round_trip(view, path).as_nanos().max(1) as f64
        })
    }

    fn estimate(&self, path: PathId) -> Option<f64> {
        self.paths.get(path.index()).and_then(|f| f.estimate).filter(|rate| *rate > 0.0)
    }
}

impl Filter {
    fn observe(&mut self, now: Time, interval: Duration, path: &PathView) {
        self.full |= path.in_flight >= path.window;
        let Some((began, delivered)) = self.began else {
            self.began = Some((now, path.delivered));
            return;
        };
        let took = now.since(began);
        if took < interval {
            return;
        }
        let bytes = path.delivered.saturating_sub(delivered);
        let sample = bytes as f64 / took.as_nanos() as f64;
        self.estimate = match self.estimate {
            // A path that was not full may be faster than its sample, but not slower.
            Some(old) if self.full || sample > old => Some(old + GAIN * (sample - old)),
            None if self.full && bytes > 0 => Some(sample),
            unchanged => unchanged,
        };
        self.began = Some((now, path.delivered));
        self.full = path.in_flight >= path.window;
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    /// The estimate in bytes per millisecond after intervals with these numbers of chunks delivered.
    fn after(chunks: &[u64], full: bool) -> f64 {
        let mut westwood = Westwood::default();
        let mut path = path_view(0);
        path.in_flight = if full { path.window } else { 0 };
        for i in 0..=chunks.len() {
            let now = Time::from_millis(20 * i as u64);
            westwood.observe(&View { now, ..view(&[path]) });
            path.delivered += chunks.get(i).unwrap_or(&0) * CHUNK;
        }
        westwood.rate(&view(&[path]), &path) * 1e6
    }

    #[test]
    fn a_steady_path_shows_its_rate_and_a_change_comes_in_by_eighths() {
        assert!((after(&[40; 3], true) - 2000.0).abs() < 1e-6);
        assert!((after(&[40, 40, 80], true) - 2250.0).abs() < 1e-6);
    }

    #[test]
    fn a_path_that_was_not_filled_is_not_taken_to_be_slower() {
        assert!((after(&[], true) - 500.0).abs() < 1e-6, "a window per round trip");
        assert!((after(&[40, 0, 0], true) - 1531.25).abs() < 1e-6);
        assert!((after(&[2, 2, 2], false) - 500.0).abs() < 1e-6, "no estimate from a lull");
    }
}
