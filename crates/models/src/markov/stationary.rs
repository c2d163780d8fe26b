//! How often the chain is where: the stationary distribution (Eq 11), by window.
//!
//! The ladder read downwards. What enters the clean state (w, w) comes from (w - 1, w - 1) without
//! loss, or from above: halvings end at half of what they began with, slow start ends below a window that
//! was lost. So beginning with the highest rung, the visits of each one tell those of the next lower one
//! by a subtraction. That leaves the rarest states with few digits, which a second pass upwards mends;
//! and one balance, that of (2, 2), is never used: it tells how good the solution is.

use super::ladder::WindowChain;
use super::loss::LossModel;
use super::recovery::threshold_exponent;
use super::rounds::{Excursion, Rounds};
use crate::lossy::LossyPath;
use crate::number::OutOfRange;

/// Passes upwards after which the digits that are missing are those that rounding takes.
const PASSES: u32 = 6;
/// A residual that is only rounding.
const ROUNDING: f64 = 1e-12;

/// Shares of all rounds; together they are 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Stationary {
    /// Rounds in congestion avoidance after a round without loss, the state (w, w): entry w, from
    /// 0 to the highest window that is reached at all.
    pub clean: Vec<f64>,
    /// Rounds after a round with losses, the states (w, xi) with xi < w: entry w.
    pub lossy: Vec<f64>,
    /// Rounds in slow start.
    pub slow_start: f64,
    /// Rounds in back-off.
    pub back_off: f64,
    /// What the balance of visits leaves, summed over the clean states: `|pi - pi Q|`. The other
    /// states have none, being computed from these.
    pub residual: f64,
}

/// Where the chain spends its rounds, for a window of at most `window` packets.
///
/// # Errors
/// The window must be 2 or more: with 1 there is nothing to distribute. Else as [`super::solve`].
pub fn stationary(
    path: &LossyPath,
    window: u32,
    loss_model: LossModel,
) -> Result<Stationary, OutOfRange> {
    if window < 2 {
        let (name, value) = ("window_packets", f64::from(window));
        return Err(OutOfRange { name, value, valid: "2 or more" });
    }
    let ladder = super::climb(path, window, loss_model)?;
    let mut flow = Flow::new(path.loss(), loss_model, &ladder);
    let mut clean = flow.downwards();
    let mut residual = f64::INFINITY;
    for _ in 0..PASSES {
        flow.spread(&clean);
        let next = flow.upwards();
        residual = flow.difference(&clean, &next);
        clean = next;
        if residual < ROUNDING {
            break;
        }
    }
    flow.spread(&clean);
    Ok(flow.shares(clean, residual))
}

/// What a given number of visits of the clean states leads to.
struct Flow<'a> {
    p: f64,
    model: LossModel,
    rounds: &'a Rounds,
    top: u32,
    /// Into each clean state, from anywhere but the rung below.
    inflow: Vec<f64>,
    /// First timeouts by the exponent of the threshold they leave.
    timeouts: Vec<f64>,
    lossy: Vec<f64>,
    slow_start: f64,
    excursion: Excursion,
}

impl<'a> Flow<'a> {
    fn new(p: f64, model: LossModel, ladder: &'a WindowChain) -> Self {
        let top = ladder.top();
        Self {
            p,
            model,
            rounds: &ladder.rounds,
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
    fn downwards(&mut self) -> Vec<f64> {
        self.clear();
        let mut clean = vec![0.0; self.top as usize + 1];
        clean[self.top as usize] = 1.0;
        for window in (2..=self.top).rev() {
            let here = clean[window as usize];
            self.visit(window, here);
            if window > 2 {
                // The highest rung is followed by itself until a packet is lost.
                let leaves = if window == self.top { self.some_lost(window) } else { 1.0 };
                let from_below = here * leaves - self.inflow[window as usize];
                let below = from_below / self.none_lost(window - 1);
                // Rounding can leave less than nothing where there is hardly anything.
                clean[window as usize - 1] = below.max(0.0);
            }
        }
        clean
    }

    /// Everything that `clean` leads to.
    fn spread(&mut self, clean: &[f64]) {
        self.clear();
        for window in (2..=self.top).rev() {
            self.visit(window, clean[window as usize]);
        }
        // Whoever fails in back-off, or had the least threshold, begins with (2, 2).
        let all: f64 = self.timeouts.iter().sum();
        self.inflow[2] += self.p * all + (1.0 - self.p) * self.timeouts[0];
    }

    /// Visits of the clean states, given what enters them from anywhere but below.
    fn upwards(&self) -> Vec<f64> {
        let mut clean = self.inflow.clone();
        for window in 2..self.top {
            clean[window as usize + 1] += clean[window as usize] * self.none_lost(window);
        }
        // Never 0: the highest rung can be left.
        clean[self.top as usize] /= self.some_lost(self.top);
        clean
    }

    /// `visits` rounds in the clean state `window`, and all that follows their losses. Windows come in
    /// falling order: all timeouts that leave a threshold are known after twice that threshold.
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
