//! `ecf`: earliest completion first (Lim et al., 2017).

use super::common::{active, known_round_trip, unless_idle};
use super::min_rtt::{MinRtt, round_trip};
use super::{Action, Decision, PathView, Reason, Schedule, View};

/// Hysteresis of the paper and of its implementation.
pub(super) const BETA: f64 = 0.25;

/// Lowest round trip first, but a slower path stays idle if waiting for the fastest path sends all data
/// sooner. With the backlog K, and the larger of both deviations as delta, the scheduler waits if the
/// fast path delivers K, including one round trip of waiting, in less than a round trip of the slow path,
/// and the slow path would take at least two round trips of the fast one for K.
#[derive(Clone, Debug)]
pub struct Ecf {
    beta: f64,
    waiting: bool,
}

impl Ecf {
    /// `beta`: minimum advantage of the slow path that ends waiting, as a factor less 1.
    pub const fn new(beta: f64) -> Self {
        Self { beta, waiting: false }
    }

    /// Whether to leave `slow` idle. Stores the result.
    fn waits(&mut self, view: &View<'_>, fast: &PathView, slow: &PathView) -> bool {
        let nanos = |p| known_round_trip(view, p).as_nanos() as f64;
        let window = |p: &PathView| p.window.max(1) as f64;
        let backlog = |p| (view.backlog_bytes as f64).max(window(p));
        let delta = fast.rttvar.max(slow.rttvar).as_nanos() as f64;
        let by_fast = nanos(fast) * (backlog(fast) / window(fast) + 1.0);
        let hysteresis = if self.waiting { 1.0 + self.beta } else { 1.0 };
        if by_fast >= hysteresis * (nanos(slow) + delta) {
            self.waiting = false;
            return false;
        }
        let by_slow = nanos(slow) * backlog(slow) / window(slow);
        let wait = by_slow >= 2.0 * nanos(fast) + delta;
        // Sending because of the second test does not end the waiting. Only the first test does.
        self.waiting |= wait;
        wait
    }
}

impl Default for Ecf {
    fn default() -> Self {
        Self::new(BETA)
    }
}

impl Schedule for Ecf {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let nearest = MinRtt.decide(view);
        let Action::Send { path, .. } = nearest.action else { return nearest };
        let fast = active(view).min_by_key(|p| round_trip(p));
        let (Some(fast), Some(slow)) = (fast, view.path(path)) else { return nearest };
        if fast.id == slow.id || !view.is_new_data() {
            return nearest;
        }
        if self.waits(view, fast, slow) {
            return unless_idle(view, Decision::blocked(Reason::FasterSoon));
        }
        nearest
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::{Duration, PathId};

    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    /// A full path of 10 chunks and 20 ms, and one of 10 chunks and `millis`.
    fn beside(millis: u64, var: u64) -> [PathView; 2] {
        let slow = PathView {
            srtt: Some(Duration::from_millis(millis)),
            rttvar: Duration::from_millis(var),
            ..path_view(1)
        };
        [PathView { in_flight: 10 * CHUNK, ..path_view(0) }, slow]
    }

    #[test]
    fn it_waits_when_the_fast_path_finishes_first() {
        for (millis, var, backlog, waits) in [
            // 20 x (K / 10 + 1) against the slow path's round trip and deviation.
            (100, 0, 10, true),
            (100, 0, 39, true),
            (100, 0, 40, false),
            (100, 30, 54, true),
            (100, 30, 55, false),
            // 41 ms x 1 is more than two round trips of the fast path, 39 ms are less.
            (41, 0, 5, true),
            (42, 5, 5, false),
        ] {
            let paths = beside(millis, var);
            let backlog_bytes = backlog * CHUNK;
            let decision = Ecf::default().decide(&View { backlog_bytes, ..view(&paths) });
            let expected = if waits {
                Decision::blocked(Reason::FasterSoon)
            } else {
                Decision::send(PathId(1), 0, Reason::LeastRtt)
            };
            assert_eq!(decision, expected, "{millis} {var} {backlog}");
        }
    }

    #[test]
    fn once_waiting_it_takes_a_quarter_more_to_stop() {
        let paths = beside(100, 0);
        let mut ecf = Ecf::default();
        let mut waits = |chunks: u64| {
            let backlog_bytes = chunks * CHUNK;
            ecf.decide(&View { backlog_bytes, ..view(&paths) }).reason == Reason::FasterSoon
        };
        // 20 x (K / 10 + 1) against 100, and 125 once waiting.
        let asked = [45, 39, 45, 52, 53, 52, 45];
        assert_eq!(asked.map(&mut waits), [false, true, true, true, false, false, false]);
    }
}
