//! From a timeout back to a clean state: exponential back-off (Section 4.3.3) and slow start (4.3.2).
//!
//! Each state stores the expected amount until the next clean state (j, j), minus the amount from (2, 2) to
//! that state. Adding T(w) gives the amount until (w, w) is reached again.

use super::loss::LossModel;
use super::rounds::{Excursion, Rounds};
use super::totals::Totals;
use crate::lossy::LossyPath;

/// Exponent of the slow start threshold after a timeout in a round with this window:
/// `2^floor(log2(window / 2))`, at least 1 (Eq 14).
pub(super) fn threshold_exponent(window: u32) -> usize {
    window.max(2).ilog2() as usize - 1
}

/// Durations and number of the back-off states.
#[derive(Debug, Clone, Copy)]
pub(super) struct BackOff {
    path: LossyPath,
    /// M, the number of consecutive timeouts after which the timer no longer doubles (Eq 18).
    pub(super) states: u32,
}

impl BackOff {
    pub(super) fn new(path: LossyPath) -> Self {
        Self { path, states: path.doublings(path.rto_s(1.0)) }
    }

    /// Duration of the timer for a packet that is lost after `timeouts` consecutive timeouts, and the new
    /// number of timeouts, up to the largest that is counted.
    pub(super) fn failure(&self, timeouts: u32) -> (f64, u32) {
        if self.states > timeouts + 1 {
            (self.path.rto_s(1.0) * 2.0_f64.powi(timeouts.cast_signed()), timeouts + 1)
        } else {
            (self.path.rto_max_s(), self.states)
        }
    }
}

/// Consequences of timeouts, known for the thresholds that the windows so far can leave.
#[derive(Debug, Clone)]
pub(super) struct Recovery {
    path: LossyPath,
    model: LossModel,
    /// After a success in back-off.
    success: Totals,
    /// After a failure in the first back-off state.
    failure: Totals,
    /// After the first timeout, by the exponent of the threshold.
    first: Vec<Totals>,
    /// From the slow start state 2^(i+1), if some of its packets are lost.
    lossy_start: Vec<Totals>,
}

impl Recovery {
    pub(super) fn new(path: LossyPath, model: LossModel) -> Self {
        let p = path.loss();
        let back_off = BackOff::new(path);
        let success =
            Totals { delivered: 1.0, sent: 1.0, ..Totals::round(1.0, path.rtt_s(1.0), 1.0) };
        let failure = |timeouts: u32| {
            let (seconds, to) = back_off.failure(timeouts);
            (Totals { sent: 1.0, ..Totals::timeout(1.0, seconds, 1.0) }, to)
        };
        // The last state returns to itself: p / (1 - p) failures, then a success.
        let last = failure(back_off.states).0;
        let mut state = success + last * (p / (1.0 - p));
        for timeouts in (2..back_off.states).rev() {
            state = success * (1.0 - p) + (failure(timeouts).0 + state) * p;
        }
        // With a single state, a failure leads back to it and forgets the threshold.
        let failure = failure(1).0 + state;
        let recovery =
            Self { path, model, success, failure, first: Vec::new(), lossy_start: Vec::new() };
        let none = recovery.first_timeout(Totals::default());
        Self { first: vec![none], ..recovery }
    }

    /// After the first timeout, when slow start continues with `start`.
    fn first_timeout(&self, start: Totals) -> Totals {
        let p = self.path.loss();
        (self.success + start) * (1.0 - p) + self.failure * p
    }

    /// Amount after the timeout of a round with this window, without the wait for the timer.
    pub(super) fn after_timeout(&self, window: u32) -> Totals {
        self.first[threshold_exponent(window)]
    }

    /// Extends [`Self::after_timeout`] to `window`; `reach` must be known up to that window.
    pub(super) fn prepare(&mut self, window: u32, rounds: &Rounds, reach: &[Totals]) {
        for exponent in self.first.len()..=threshold_exponent(window) {
            // The last slow start state: 2, 2, 4, 8, ... for the thresholds 2, 4, 8, 16, ...
            let last = (exponent - 1).max(1);
            if self.lossy_start.len() < last {
                let lossy = self.after_lossy_start(1 << last, rounds, reach);
                self.lossy_start.push(lossy);
            }
            let mut start = Totals::default() - reach[2 << last];
            for state in (1..=last).rev() {
                let window = 1 << state;
                let (packets, p) = (f64::from(window), self.path.loss());
                let all_lost = self.model.all_lost(p, window);
                let delivered = self.model.delivered(p, window);
                start = Totals { sent: packets, delivered, ..Totals::default() }
                    + Totals::round(1.0 - all_lost, self.path.rtt_s(packets), packets)
                    + Totals::timeout(all_lost, self.path.rto_s(packets), packets)
                    + start * self.model.none_lost(p, window)
                    + self.lossy_start[state - 1]
                    + self.after_timeout(window) * all_lost;
            }
            self.first.push(self.first_timeout(start));
        }
    }

    /// From the slow start state `window` with 1 to `window - 1` losses gamma: on to the congestion
    /// avoidance state (2 window - gamma, 2 (window - gamma)).
    fn after_lossy_start(&self, window: u32, rounds: &Rounds, reach: &[Totals]) -> Totals {
        let mut excursion = Excursion::default();
        let mut losses = Vec::new();
        let mut totals = Totals::default();
        rounds.first(window, &mut losses);
        for (lost, &mass) in losses.iter().enumerate().skip(1) {
            // Fewer than 2^32 losses, as of a window's packets.
            let lost = lost as u32;
            excursion.only(lost, mass);
            excursion.follow(rounds, 2 * window - lost, |window, outcome, _| {
                totals += outcome.totals(&self.path, window);
                if outcome.clean > 0.0 {
                    totals += reach[window as usize / 2] * -outcome.clean;
                }
                totals += self.after_timeout(window) * outcome.timeout;
            });
        }
        totals
    }
}
