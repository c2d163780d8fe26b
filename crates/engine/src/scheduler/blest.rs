//! `blest`: blocking estimation (Ferlin et al., 2016).

use ropewalk_base::{Duration, Time};

use super::common::{active, known_round_trip, unless_idle};
use super::min_rtt::{MinRtt, round_trip};
use super::{Action, Decision, PathView, Reason, Schedule, View};

/// Maximum number of rounds of an initial slow start that a prediction covers. The window is then 2^16
/// times as large.
const ROUNDS_OF_SLOW_START: f64 = 16.0;

/// Options of `blest`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlestOptions {
    /// Initial factor on the amount that the fast path is expected to send. The paper's implementation uses
    /// 1.2. A larger value keeps the slow path idle more often.
    pub lambda: f64,
    /// Minimum of the factor (1.0).
    pub least: f64,
    /// Maximum of the factor (1.3).
    pub most: f64,
    /// Added once per round trip in which the receive window was closed (0.04).
    pub after_blocking: f64,
    /// Subtracted once per round trip in which it was not (0.01).
    pub without_blocking: f64,
}

impl Default for BlestOptions {
    fn default() -> Self {
        Self { lambda: 1.2, least: 1.0, most: 1.3, after_blocking: 0.04, without_blocking: 0.01 }
    }
}

/// Minimum and maximum smoothed round trip of a path.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    least: Duration,
    largest: Duration,
}

/// Lowest round trip first, but a slower path stays idle if the fastest path needs the part of the
/// receive window that the slower one would occupy until its acknowledgement.
///
/// M is the peer's window counted from the cumulative acknowledgement, as in the paper's implementation:
/// data in flight on the fast path is part of the data that it sends in that time. If a window manager
/// limits a window to less than the congestion window, the window is assumed not to grow.
#[derive(Clone, Debug)]
pub struct Blest {
    options: BlestOptions,
    lambda: f64,
    updated: Time,
    /// Whether the receive window was closed since the last update.
    blocked: bool,
    /// By path identifier.
    seen: Vec<Option<Extremes>>,
}

impl Blest {
    /// Creates the scheduler with these options. If `lambda` is not a number, the factor starts at its
    /// minimum.
    pub fn new(options: BlestOptions) -> Self {
        let lambda = options.lambda.min(options.most).max(options.least);
        Self { options, lambda, updated: Time::ZERO, blocked: false, seen: Vec::new() }
    }

    fn observe(&mut self, view: &View<'_>) {
        self.blocked |= view.is_new_data()
            && view.backlog_chunks > 0
            && view.sendable == 0
            && view.open().next().is_some();
        for path in view.paths.iter().filter(|p| p.usable) {
            let Some(srtt) = path.srtt else { continue };
            let index = path.id.index();
            if self.seen.len() <= index {
                self.seen.resize(index + 1, None);
            }
            let seen = self.seen[index].get_or_insert(Extremes { least: srtt, largest: srtt });
            seen.least = seen.least.min(srtt);
            seen.largest = seen.largest.max(srtt);
        }
    }

    /// Updates lambda once per round trip of the path that is about to be used.
    fn adapt(&mut self, now: Time, round_trip: Duration) {
        if now.since(self.updated) < round_trip {
            return;
        }
        let BlestOptions { least, most, after_blocking, without_blocking, .. } = self.options;
        let step =
            if core::mem::take(&mut self.blocked) { after_blocking } else { -without_blocking };
        self.lambda = (self.lambda + step).min(most).max(least);
        self.updated = now;
    }

    fn extremes(&self, view: &View<'_>, path: &PathView) -> (f64, f64) {
        let seen = self.seen.get(path.id.index()).copied().flatten();
        let now = known_round_trip(view, path);
        let seen = seen.unwrap_or(Extremes { least: now, largest: now });
        (seen.least.as_nanos() as f64, seen.largest.as_nanos() as f64)
    }

    /// Time for which a chunk sent on `slow` now occupies the peer's window, nanoseconds.
    fn linger(&self, view: &View<'_>, slow: &PathView) -> f64 {
        let (least, largest) = self.extremes(view, slow);
        let flight = slow.in_flight.saturating_add(view.chunk_bytes) as f64;
        let full = (flight / slow.window.max(1) as f64).min(1.0);
        let estimate = least + (largest - least) * full;
        estimate.max(known_round_trip(view, slow).as_nanos() as f64)
    }

    /// Bytes that `fast` sends within that time, before the factor lambda.
    fn sends_within(&self, view: &View<'_>, fast: &PathView, linger: f64) -> f64 {
        let (least, largest) = self.extremes(view, fast);
        let chunk = view.chunk_bytes.max(1) as f64;
        let rounds = (2.0 * linger / (least + largest).max(1.0)).floor() + 1.0;
        if fast.window < fast.cwnd {
            return rounds * fast.window as f64;
        }
        if in_initial_slow_start(view, fast) {
            let rounds = rounds.min(ROUNDS_OF_SLOW_START);
            return fast.window as f64 * (rounds.exp2() - 1.0);
        }
        let window = (fast.window as f64 / chunk).max(fast.ssthresh as f64 / chunk + 1.0);
        rounds * (window + (rounds - 1.0) / 2.0) * chunk
    }

    fn would_block(&self, view: &View<'_>, fast: &PathView, slow: &PathView) -> bool {
        let needed = self.sends_within(view, fast, self.linger(view, slow)) * self.lambda;
        let held = slow.in_flight.saturating_add(view.chunk_bytes);
        needed > view.receive_buffer.saturating_sub(held) as f64
    }
}

/// Whether no loss has set the slow-start threshold yet: it still has its initial value, which is at least
/// the peer's window.
fn in_initial_slow_start(view: &View<'_>, path: &PathView) -> bool {
    path.cwnd < path.ssthresh && path.ssthresh >= view.receive_buffer
}

impl Default for Blest {
    fn default() -> Self {
        Self::new(BlestOptions::default())
    }
}

impl Schedule for Blest {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        self.observe(view);
        let nearest = MinRtt.decide(view);
        let Action::Send { path, .. } = nearest.action else { return nearest };
        let fast = active(view).min_by_key(|p| round_trip(p));
        let (Some(fast), Some(slow)) = (fast, view.path(path)) else { return nearest };
        if fast.id == slow.id || !view.is_new_data() {
            return nearest;
        }
        self.adapt(view.now, known_round_trip(view, slow));
        if self.would_block(view, fast, slow) {
            return unless_idle(view, Decision::blocked(Reason::WouldBlock));
        }
        nearest
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::PathId;

    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    const MILLI: f64 = 1e6;

    /// A full path of 10 chunks and 20 ms, and one of 20 chunks and 95 ms.
    fn unequal() -> [PathView; 2] {
        let fast = PathView { in_flight: 10 * CHUNK, ssthresh: 5 * CHUNK, ..path_view(0) };
        let slow =
            PathView { srtt: Some(Duration::from_millis(95)), window: 20 * CHUNK, ..path_view(1) };
        [fast, slow]
    }

    fn with_buffer(paths: &[PathView], chunks: u64) -> View<'_> {
        View { receive_buffer: chunks * CHUNK, ..view(paths) }
    }

    #[test]
    fn the_slow_path_waits_when_the_fast_one_needs_the_window() {
        // 2 x 95 / (20 + 20) + 1 = 5 rounds of 10, 11, ... 14 chunks: 60, times 1.19, and one.
        let paths = unequal();
        for (chunks, waits) in [(72, true), (73, false)] {
            let later = View { now: Time::from_secs(1), ..with_buffer(&paths, chunks) };
            let decision = Blest::default().decide(&later);
            let expected = if waits {
                Decision::blocked(Reason::WouldBlock)
            } else {
                Decision::send(PathId(1), 0, Reason::LeastRtt)
            };
            assert_eq!(decision, expected, "{chunks} chunks");
        }
    }

    #[test]
    fn lingering_goes_from_the_least_to_the_largest_round_trip_as_the_path_fills() {
        let mut blest = Blest::default();
        for millis in [100, 200, 120] {
            let srtt = Some(Duration::from_millis(millis));
            blest.observe(&view(&[PathView { srtt, ..path_view(0) }]));
        }
        for (in_flight, millis) in [(0, 120.0), (4, 150.0), (9, 200.0), (30, 200.0)] {
            let srtt = Some(Duration::from_millis(120));
            let path = PathView { srtt, in_flight: in_flight * CHUNK, ..path_view(0) };
            let linger = blest.linger(&view(&[path]), &path);
            assert!((linger - millis * MILLI).abs() < 1.0, "{in_flight}: {linger}");
        }
    }

    #[test]
    fn an_initial_slow_start_is_taken_to_double() {
        let fast = PathView { ssthresh: 1000 * CHUNK, ..path_view(0) };
        let paths = [fast];
        let blest = Blest::default();
        let sends = |millis: f64| blest.sends_within(&view(&paths), &fast, millis * MILLI);
        assert_eq!(sends(10.0), 10.0 * CHUNK as f64);
        assert_eq!(sends(50.0), 70.0 * CHUNK as f64, "10 + 20 + 40");
        assert_eq!(sends(1e9), 10.0 * CHUNK as f64 * 65_535.0, "16 rounds at most");
    }

    #[test]
    fn a_window_that_is_held_down_is_not_taken_to_grow() {
        let fast = PathView { window: 4 * CHUNK, ssthresh: 1000 * CHUNK, ..path_view(0) };
        let sends = Blest::default().sends_within(&view(&[fast]), &fast, 50.0 * MILLI);
        assert_eq!(sends, 12.0 * CHUNK as f64, "three rounds of four");
    }

    #[test]
    fn lambda_moves_once_per_round_trip_and_keeps_its_bounds() {
        let millis = Duration::from_millis;
        for (blocked, bound, first) in [(true, 1.3, 1.24), (false, 1.0, 1.19)] {
            let mut blest = Blest::default();
            for round in 1..100u64 {
                let now = Time::from_millis(100 * round);
                blest.blocked = blocked;
                blest.adapt(now, millis(100));
                let after = blest.lambda;
                blest.adapt(now + millis(99), millis(100));
                assert_eq!(blest.lambda, after, "less than a round trip later");
                if round == 1 {
                    assert!((after - first).abs() < 1e-12, "{after}");
                }
                assert!((1.0..=1.3).contains(&after));
            }
            assert_eq!(blest.lambda, bound);
        }
        for (lambda, expected) in [(9.0, 1.3), (0.0, 1.0), (f64::NAN, 1.3)] {
            let options = BlestOptions { lambda, ..BlestOptions::default() };
            assert_eq!(Blest::new(options).lambda, expected);
        }
    }

    #[test]
    fn a_shut_window_is_remembered() {
        let mut blest = Blest::default();
        let paths = unequal();
        blest.decide(&View { sendable: 0, ..view(&paths) });
        assert!(blest.blocked);
        blest.decide(&View { now: Time::from_secs(1), ..view(&paths) });
        assert!(!blest.blocked);
        assert!((blest.lambda - 1.24).abs() < 1e-12);
    }
}
