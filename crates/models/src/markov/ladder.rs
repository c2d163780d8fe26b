//! The structured solution of the chain, for every limit of the window at once.
//!
//! Without losses a round at the window w is followed by one at w + 1: the chain climbs a ladder
//! whose rungs are the clean states (w, w). It never skips a rung on the way up, since slow start
//! ends at a window below one that it had before. So let T(w) be the expected time from (2, 2) until
//! (w, w) is first seen, and N(w) that of one cycle: from (w, w), over whatever losses lead to, back up to
//! (w, w), or to the rung above. A loss at w leads to a rung j below, from which it takes T(w) - T(j) to
//! return. Hence
//!
//! ```text
//! N(w) = RTT(w) + sum over what a loss leads to of (its duration + T(w) - T(j))
//! T(w + 1) = T(w) + N(w) / (1 - p)^w
//! ```
//!
//! and the same with delivered packets in place of seconds. All terms are positive: nothing cancels.
//! With the window limited to c, the rung c leads to itself where it else led to c + 1, and the visits to
//! it cut the process into independent cycles: eta(c) = N_packets(c) / N_seconds(c). One climb to W
//! gives the exact throughput for every limit up to W.
//!
//! The climb ends early where the chain practically never gets: once T(w) exceeds 10^20 times what a
//! cycle adds of its own, eta is constant to the last bit.

use super::loss::LossModel;
use super::recovery::Recovery;
use super::rounds::{Excursion, Rounds};
use super::totals::Totals;
use crate::lossy::LossyPath;

/// How much rarer than a cycle what lies above must be, to be left out.
const OUT_OF_REACH: f64 = 1e20;

/// The rungs that the chain can reach.
#[derive(Debug, Clone)]
pub(crate) struct WindowChain {
    path: LossyPath,
    model: LossModel,
    pub(super) rounds: Rounds,
    pub(super) recovery: Recovery,
    /// From (2, 2) until the rung is first seen, indexed by the window.
    reach: Vec<Totals>,
    /// One cycle at the rung, indexed by the window.
    cycles: Vec<Totals>,
    excursion: Excursion,
}

impl WindowChain {
    /// Climbs to `window`, or to where nothing changes any more.
    pub(crate) fn climb(path: LossyPath, model: LossModel, window: u32) -> Self {
        let mut rounds = Rounds::new(model, path.loss());
        rounds.grow(2);
        let recovery = Recovery::new(path, model);
        let mut ladder = Self {
            path,
            model,
            rounds,
            recovery,
            reach: vec![Totals::default(); 3],
            cycles: Vec::new(),
            excursion: Excursion::default(),
        };
        // Nothing limits a window of 0; a window of 1 knows only arrival and timeout.
        ladder.cycles.push(Totals::default());
        let one = ladder.own_round(1) + ladder.recovery.after_timeout(1) * path.loss();
        ladder.cycles.push(one);
        for rung in 2..=window {
            ladder.step(rung);
            if ladder.is_out_of_reach(rung) {
                break;
            }
        }
        ladder
    }

    /// The highest rung that matters.
    pub(crate) fn top(&self) -> u32 {
        // Windows are counted in 32 bits, and there is one entry for each.
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

    /// The round at the rung itself, whatever follows, with the wait for the timer if all is lost.
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
