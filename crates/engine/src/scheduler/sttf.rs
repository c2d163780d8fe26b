//! `sttf`: shortest transfer time first (Hurtig et al., 2018).

use super::common::{chunks, free_chunks, known_round_trip};
use super::delivery_slots::{self, Slots};
use super::{Decision, PathView, Schedule, View};

/// Maximum number of rounds that a prediction covers.
const ROUNDS: u64 = 1 << 20;

/// Assigns each chunk to the path that delivers it soonest behind all data queued there, including the
/// growth of the window, which doubles up to the slow-start threshold and then grows by one chunk per
/// round. A full round takes the last measured round trip, and the round in which the chunk itself
/// arrives half of it. Queued and unsent data is reassigned at every acknowledgement.
#[derive(Clone, Debug, Default)]
pub struct Sttf;

/// Starting point of the prediction for one path, in chunks and nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Outlook {
    free: u64,
    window: u64,
    threshold: u64,
    round_trip: f64,
}

impl Outlook {
    fn of(view: &View<'_>, path: &PathView) -> Self {
        let round_trip = path.last_rtt.unwrap_or_else(|| known_round_trip(view, path));
        Self {
            free: free_chunks(view, path),
            window: chunks(view, path.window),
            threshold: chunks(view, path.ssthresh),
            round_trip: round_trip.as_nanos().max(1) as f64,
        }
    }

    /// Chunks sent in the rounds 0 to `rounds`. Round 0 sends the free window; each later round sends a
    /// full, grown window.
    fn leave_within(&self, rounds: u64) -> u64 {
        let (mut sum, mut window, mut left) = (self.free, self.window, rounds.min(ROUNDS));
        // At most 64 doublings reach the threshold.
        while left > 0 && window < self.threshold {
            window = window.saturating_mul(2).min(self.threshold);
            sum = sum.saturating_add(window);
            left -= 1;
        }
        // window + 1, window + 2, ... window + left.
        let grown = left.saturating_mul(window).saturating_add(left * (left + 1) / 2);
        sum.saturating_add(grown)
    }
}

impl Slots for Sttf {
    fn next(&self, view: &View<'_>, path: &PathView) -> f64 {
        Outlook::of(view, path).round_trip / 2.0
    }

    fn sooner(&self, view: &View<'_>, path: &PathView, within: f64) -> u64 {
        let outlook = Outlook::of(view, path);
        // Round k delivers at (k + 1/2) R; the last round that does so in less than `within`.
        let rounds = within / outlook.round_trip - 0.5;
        if rounds <= 0.0 {
            return 0;
        }
        outlook.leave_within(rounds.ceil() as u64 - 1)
    }
}

impl Schedule for Sttf {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        delivery_slots::decide(view, self)
    }

    #[cfg(test)]
    fn claims(&self) -> super::conformance::Claims {
        super::conformance::Claims { predicts_arrivals: true, ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::{Duration, PathId};

    use super::super::Reason;
    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    /// The published loop: the round trips until the last of `queue` chunks is delivered.
    fn by_loop(outlook: &Outlook, mut queue: u64) -> f64 {
        let (mut window, mut rounds) = (outlook.window, 0.5);
        let mut leaving = outlook.free;
        while queue > leaving {
            queue -= leaving;
            window = if window < outlook.threshold {
                (2 * window).min(outlook.threshold)
            } else {
                window + 1
            };
            leaving = window;
            rounds += 1.0;
        }
        rounds
    }

    #[test]
    fn closed_forms_equal_the_loop() {
        for free in [0, 1, 7] {
            for window in [1, 2, 3, 10] {
                for threshold in [1, 2, 4, 9, 13, 1 << 40] {
                    let outlook = Outlook { free, window, threshold, round_trip: 1.0 };
                    for queue in 1..400 {
                        let rounds = (by_loop(&outlook, queue) - 0.5) as u64;
                        assert!(outlook.leave_within(rounds) >= queue, "{outlook:?} {queue}");
                        let before = rounds.checked_sub(1).map(|r| outlook.leave_within(r));
                        assert!(before.is_none_or(|b| b < queue), "{outlook:?} {queue}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_a_path_delivers_sooner_is_what_the_loop_delivers_sooner() {
        let millis = |m| Some(Duration::from_millis(m));
        for (window, threshold) in [(4, 4), (4, 32), (10, 11)] {
            let path = PathView {
                window: window * CHUNK,
                ssthresh: threshold * CHUNK,
                in_flight: window * CHUNK,
                last_rtt: millis(20),
                ..path_view(0)
            };
            let paths = [path];
            let view = view(&paths);
            let outlook = Outlook::of(&view, &path);
            for within in (1..400).map(|m| f64::from(m) * 1e6) {
                let sooner = |q: &u64| by_loop(&outlook, *q) * outlook.round_trip < within;
                let count = (1..20_000).take_while(sooner).count() as u64;
                assert_eq!(Sttf.sooner(&view, &path, within), count, "{window} {within}");
            }
        }
    }

    #[test]
    fn a_window_that_doubles_sends_the_slow_path_further_ahead() {
        let slow = PathView { last_rtt: Some(Duration::from_millis(200)), ..path_view(1) };
        for (ssthresh, position) in [(10, 11 + 12 + 13 + 14), (80, 20 + 40 + 80 + 81)] {
            let fast =
                PathView { in_flight: 10 * CHUNK, ssthresh: ssthresh * CHUNK, ..path_view(0) };
            // 100 ms: rounds 1 to 4 of the fast path deliver at 30, 50, 70 and 90 ms.
            let expected = Decision::send(PathId(1), position, Reason::SoonestDelivery);
            assert_eq!(Sttf.decide(&view(&[fast, slow])), expected);
        }
    }
}
