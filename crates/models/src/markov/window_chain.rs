//! Structured solution of the chain, for all window limits in one pass.
//!
//! Without losses a round at window w is followed by one at w + 1: the chain climbs through the clean states
//! (w, w). It never skips one of these on the way up, because slow start ends at a window below an earlier one.
//! Let T(w) be the expected time from (2, 2) until (w, w) is first reached, and N(w) that of one cycle: from
//! (w, w), through all consequences of losses, back up to (w, w), or directly to the next clean state. A loss
//! at w leads to a lower window j, from which it takes T(w) - T(j) to return. Hence
//!
//! ```text
//! N(w) = RTT(w) + sum over what a loss leads to of (its duration + T(w) - T(j))
//! T(w + 1) = T(w) + N(w) / (1 - p)^w
//! ```
//!
//! Delivered packets obey the same equations in place of seconds. All terms are positive, so nothing cancels.
//! With the window limited to c, the state c returns to itself instead of going to c + 1, and its visits divide
//! the process into independent cycles: eta(c) = N_packets(c) / N_seconds(c). One pass up to W gives the exact
//! throughput for every limit up to W.
//!
//! The pass ends early at windows that the chain practically never reaches: once T(w) exceeds 10^20 times the
//! contribution of a cycle itself, eta is constant to the last bit.

use super::loss::LossModel;
use super::recovery::Recovery;
use super::rounds::{Excursion, Rounds};
use super::totals::Totals;
use crate::lossy::LossyPath;

/// Ratio of T(w) to one cycle from which higher windows are left out.
const OUT_OF_REACH: f64 = 1e20;

/// The clean states that the chain can reach.
#[derive(Debug, Clone)]
pub(crate) struct WindowChain {
    path: LossyPath,
    model: LossModel,
    pub(super) rounds: Rounds,
    pub(super) recovery: Recovery,
    /// From (2, 2) until the window is first reached, indexed by the window.
    reach: Vec<Totals>,
    /// One cycle at the window, indexed by the window.
    cycles: Vec<Totals>,
    excursion: Excursion,
}

impl WindowChain {
    /// Solves up to `window`, or up to the limit beyond which nothing changes.
    pub(crate) fn extend_chain(path: LossyPath, model: LossModel, window: u32) -> Self {
        let mut rounds = Rounds::new(model, path.loss());
        rounds.grow(2);
        let recovery = Recovery::new(path, model);
        let mut window_chain = Self {
            path,
            model,
            rounds,
            recovery,
            reach: vec![Totals::default(); 3],
            cycles: Vec::new(),
            excursion: Excursion::default(),
        };
        // A window of 0 does not occur; a window of 1 has only arrival and timeout.
        window_chain.cycles.push(Totals::default());
        let one = window_chain.own_round(1) + window_chain.recovery.after_timeout(1) * path.loss();
        window_chain.cycles.push(one);
        for rung in 2..=window {
            window_chain.step(rung);
            if window_chain.is_out_of_reach(rung) {
                break;
            }
        }
        window_chain
    }

    /// The highest window that matters.
    pub(crate) fn top(&self) -> u32 {
        // Windows have 32 bits, and each has one entry.
        (self.cycles.len() - 1) as u32
    }

    /// One cycle at the limit `window`.
    pub(crate) fn cycle(&self, window: u32) -> Totals {
        self.cycles[window.min(self.top()) as usize]
    }

    /// Throughput with the window limited to `window`, packets/s.
    pub(crate) fn throughput_pps(&self, window: u32) -> f64 {
        let cycle = self.cycle(window);
        cycle.delivered / cycle.time_s
    }

    /// The round at the window itself, with the wait for the timer if all packets are lost.
    fn own_round(&self, window: u32) -> Totals {
        let (p, packets) = (self.path.loss(), f64::from(window));
        let all_lost = self.model.all_lost(p, window);
        let delivered = self.model.delivered(p, window);
        Totals { sent: packets, delivered, ..Totals::default() }
            + Totals::round(1.0 - all_lost, self.path.rtt_s(packets), packets)
            + Totals::timeout(all_lost, self.path.rto_s(packets), packets)
    }

    fn step(&mut self, window: u32) {
        self.rounds.grow(window);
        self.recovery.prepare(window, &self.rounds, &self.reach);
        let (p, here) = (self.path.loss(), self.reach[window as usize]);
        let mut cycle = self.own_round(window);
        cycle += (here + self.recovery.after_timeout(window)) * self.model.all_lost(p, window);
        self.rounds.first(window, &mut self.excursion.missing);
        let (path, recovery, reach) = (&self.path, &self.recovery, &self.reach);
        self.excursion.follow(&self.rounds, window, |window, outcome, _| {
            cycle += outcome.totals(path, window);
            if outcome.clean > 0.0 {
                cycle += (here - reach[window as usize / 2]) * outcome.clean;
            }
            cycle += (here + recovery.after_timeout(window)) * outcome.timeout;
        });
        self.cycles.push(cycle);
        let climbs = self.model.none_lost(p, window);
        self.reach.push(here + cycle * (1.0 / climbs));
    }

    /// Whether no higher limit would change the throughput.
    fn is_out_of_reach(&self, rung: u32) -> bool {
        let own_s = self.path.rto_s(f64::from(rung));
        let falls = self.model.some_lost(self.path.loss(), rung);
        let share = self.throughput_pps(rung) / self.path.rate_pps();
        self.reach[rung as usize].time_s * falls * share > OUT_OF_REACH * own_s
    }
}
