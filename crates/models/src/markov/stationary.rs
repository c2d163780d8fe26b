//! Stationary distribution of the chain (Eq 11), by window.
//!
//! Transitions into the clean state (w, w) come from (w - 1, w - 1) without loss, or from higher windows:
//! halvings end at half of the initial window, and slow start ends below a window with a loss. Starting with
//! the highest window, the visits of each state therefore give those of the next lower one by a subtraction.
//! Subtraction leaves few digits for the rarest states, which further passes upwards restore. The balance of
//! (2, 2) is not used by the solution and serves to check it.

use super::loss::LossModel;
use super::recovery::threshold_exponent;
use super::rounds::{Excursion, Rounds};
use super::window_chain::WindowChain;
use crate::lossy::LossyPath;
use crate::number::OutOfRange;

/// Number of passes upwards that restore all digits except for rounding.
const PASSES: u32 = 6;
/// Largest residual that rounding explains.
const ROUNDING: f64 = 1e-12;

/// Shares of all rounds; their sum is 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Stationary {
    /// Rounds in congestion avoidance after a round without loss, state (w, w): entry w, from 0 to the highest
    /// window that is ever reached.
    pub clean: Vec<f64>,
    /// Rounds after a round with losses, the states (w, xi) with xi < w: entry w.
    pub lossy: Vec<f64>,
    /// Rounds in slow start.
    pub slow_start: f64,
    /// Rounds in back-off.
    pub back_off: f64,
    /// Residual of the balance of visits, summed over the clean states: `|pi - pi Q|`. The other states are
    /// computed from these and have none.
    pub residual: f64,
}

/// Stationary distribution for a window of at most `window` packets.
///
/// # Errors
/// If the window is less than 2: with 1 there is no distribution. Otherwise as [`super::solve`].
pub fn stationary(
    path: &LossyPath,
    window: u32,
    loss_model: LossModel,
) -> Result<Stationary, OutOfRange> {
    if window < 2 {
        let (name, value) = ("window_packets", f64::from(window));
        return Err(OutOfRange { name, value, valid: "2 or more" });
    }
    let window_chain = super::extend_chain(path, window, loss_model)?;
    let mut flow = Flow::new(path.loss(), loss_model, &window_chain);
    let mut clean = flow.backward_pass();
    let mut residual = f64::INFINITY;
    for _ in 0..PASSES {
        flow.spread(&clean);
        let next = flow.forward_pass();
        residual = flow.difference(&clean, &next);
        clean = next;
        if residual < ROUNDING {
            break;
        }
    }
    flow.spread(&clean);
    Ok(flow.shares(clean, residual))
}

/// Consequences of a given number of visits of the clean states.
struct Flow<'a> {
    p: f64,
    model: LossModel,
    rounds: &'a Rounds,
    top: u32,
    /// Flow into each clean state, except from the next lower one.
    inflow: Vec<f64>,
    /// First timeouts by the exponent of the threshold they leave.
    timeouts: Vec<f64>,
    lossy: Vec<f64>,
    slow_start: f64,
    excursion: Excursion,
}

impl<'a> Flow<'a> {
    fn new(p: f64, model: LossModel, window_chain: &'a WindowChain) -> Self {
        let top = window_chain.top();
        Self {
            p,
            model,
            rounds: &window_chain.rounds,
            top,
            inflow: Vec::new(),
            timeouts: Vec::new(),
            lossy: Vec::new(),
            slow_start: 0.0,
            excursion: Excursion::default(),
        }
    }

    fn clear(&mut self) {
        let states = self.top as usize + 1;
        self.inflow = vec![0.0; states];
        self.timeouts = vec![0.0; threshold_exponent(self.top) + 1];
        self.lossy = vec![0.0; states];
        self.slow_start = 0.0;
    }

    /// Visits of the clean states up to a common factor, by balance from the highest down.
    fn backward_pass(&mut self) -> Vec<f64> {
        self.clear();
        let mut clean = vec![0.0; self.top as usize + 1];
        clean[self.top as usize] = 1.0;
        for window in (2..=self.top).rev() {
            let here = clean[window as usize];
            self.visit(window, here);
            if window > 2 {
                // Without a loss, the highest window is followed by another round at the highest
                // window.
                let leaves = if window == self.top { self.some_lost(window) } else { 1.0 };
                let from_below = here * leaves - self.inflow[window as usize];
                let below = from_below / self.none_lost(window - 1);
                // Rounding can make a tiny difference negative.
                clean[window as usize - 1] = below.max(0.0);
            }
        }
        clean
    }

    /// Computes all flows that `clean` leads to.
    fn spread(&mut self, clean: &[f64]) {
        self.clear();
        for window in (2..=self.top).rev() {
            self.visit(window, clean[window as usize]);
        }
        // A failure in back-off, or the smallest threshold, leads to (2, 2).
        let all: f64 = self.timeouts.iter().sum();
        self.inflow[2] += self.p * all + (1.0 - self.p) * self.timeouts[0];
    }

    /// Visits of the clean states, given the flow into each except from the next lower one.
    fn forward_pass(&self) -> Vec<f64> {
        let mut clean = self.inflow.clone();
        for window in 2..self.top {
            clean[window as usize + 1] += clean[window as usize] * self.none_lost(window);
        }
        // Never 0: the highest window can be left.
        clean[self.top as usize] /= self.some_lost(self.top);
        clean
    }

    /// Adds `visits` rounds in the clean state `window`, with all consequences of their losses. Windows must
    /// come in falling order: all timeouts that leave a threshold are then known after twice that threshold.
    fn visit(&mut self, window: u32, visits: f64) {
        self.timeouts[threshold_exponent(window)] += visits * self.model.all_lost(self.p, window);
        self.rounds.first(window, &mut self.excursion.missing);
        for mass in &mut self.excursion.missing {
            *mass *= visits;
        }
        self.follow(window);
        if window >= 4 && window.is_power_of_two() {
            self.slow_start(window / 2);
        }
    }

    fn follow(&mut self, window: u32) {
        let (inflow, timeouts) = (&mut self.inflow, &mut self.timeouts);
        let lossy = &mut self.lossy;
        self.excursion.follow(self.rounds, window, |window, outcome, missing| {
            lossy[window as usize] += missing.iter().sum::<f64>();
            inflow[window as usize / 2] += outcome.clean;
            timeouts[threshold_exponent(window)] += outcome.timeout;
        });
    }

    /// Slow start up to `threshold` after all timeouts that left it, from 2.
    fn slow_start(&mut self, threshold: u32) {
        let exponent = threshold.ilog2() as usize;
        let mut visits = self.timeouts[exponent] * (1.0 - self.p);
        let mut window = 2;
        loop {
            self.slow_start += visits;
            self.timeouts[threshold_exponent(window)] +=
                visits * self.model.all_lost(self.p, window);
            let mut losses = Vec::new();
            self.rounds.first(window, &mut losses);
            for (lost, mass) in (0..).zip(&losses).skip(1) {
                self.excursion.only(lost, mass * visits);
                self.follow(2 * window - lost);
            }
            visits *= self.none_lost(window);
            window *= 2;
            if window >= threshold {
                break;
            }
        }
        self.inflow[window as usize] += visits;
    }

    fn none_lost(&self, sent: u32) -> f64 {
        self.model.none_lost(self.p, sent)
    }

    fn some_lost(&self, sent: u32) -> f64 {
        self.model.some_lost(self.p, sent)
    }

    /// All rounds, in the unit of `clean`.
    fn visits(&self, clean: &[f64]) -> f64 {
        let chain: f64 = clean.iter().chain(&self.lossy).sum();
        chain + self.slow_start + self.back_off()
    }

    /// After a timeout there are rounds until one arrives.
    fn back_off(&self) -> f64 {
        self.timeouts.iter().sum::<f64>() / (1.0 - self.p)
    }

    fn difference(&self, before: &[f64], after: &[f64]) -> f64 {
        let differences = before.iter().zip(after).map(|(before, after)| (before - after).abs());
        differences.sum::<f64>() / self.visits(before)
    }

    fn shares(&self, clean: Vec<f64>, residual: f64) -> Stationary {
        let all = self.visits(&clean);
        let share = |visits: &f64| visits / all;
        Stationary {
            lossy: self.lossy.iter().map(share).collect(),
            slow_start: share(&self.slow_start),
            back_off: share(&self.back_off()),
            clean: clean.iter().map(share).collect(),
            residual,
        }
    }
}
