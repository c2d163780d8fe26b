//! The chain in full, solved without using its structure.
//!
//! It lists every state and transition and eliminates states one by one: W² / 2 states and of the order of W³
//! transitions. It shares only the round-trip times with the structured solution, and serves to check it.

mod chain;
mod eliminate;

pub use chain::{Chain, State, Transition};

use super::Prediction;
use super::loss::LossModel;
use crate::lossy::{LossyPath, window_at_least_one};
use crate::number::OutOfRange;

/// Largest window for which the chain fits into memory.
pub const WINDOW_MAX: u32 = 300;

/// Solves the chain for a window of at most `window` packets, state by state.
///
/// # Errors
/// The window must be 1 or more, and at most [`WINDOW_MAX`].
pub fn solve(
    path: &LossyPath,
    window: u32,
    loss_model: LossModel,
) -> Result<Prediction, OutOfRange> {
    let chain = Chain::new(path, window, loss_model)?;
    Ok(chain.prediction(&chain.stationary()))
}

impl Chain {
    /// Builds the chain.
    ///
    /// # Errors
    /// As [`solve`].
    pub fn new(path: &LossyPath, window: u32, loss_model: LossModel) -> Result<Self, OutOfRange> {
        window_at_least_one(window)?;
        if window > WINDOW_MAX {
            let valid = "at most 300 for the plain solver: take markov::solve";
            return Err(OutOfRange { name: "window_packets", value: f64::from(window), valid });
        }
        Ok(Self::explore(*path, window, loss_model))
    }

    /// How often each state is visited, as a share of all rounds: the solution of Eq 11.
    pub fn stationary(&self) -> Vec<f64> {
        eliminate::stationary(&self.transitions, &self.elimination_order())
    }

    /// Residual of Eq 11, summed over all states: `|pi - pi Q|`.
    pub fn residual(&self, stationary: &[f64]) -> f64 {
        let mut left = stationary.to_vec();
        for (row, share) in self.transitions.iter().zip(stationary) {
            for transition in row {
                left[transition.to] -= share * transition.probability;
            }
        }
        left.iter().map(|rest| rest.abs()).sum()
    }

    /// Computes the results from the shares of the states (Eq 19 to 22).
    pub fn prediction(&self, stationary: &[f64]) -> Prediction {
        let (mut time_s, mut timer_s, mut window_s) = (0.0, 0.0, 0.0);
        let (mut sent, mut delivered, mut timeouts, mut recoveries) = (0.0, 0.0, 0.0, 0.0);
        for ((row, state), share) in self.transitions.iter().zip(&self.states).zip(stationary) {
            sent += share * f64::from(state.sent());
            delivered += share * self.delivered(*state);
            for transition in row {
                let weight = share * transition.probability;
                time_s += weight * transition.duration_s;
                window_s += weight * transition.duration_s * f64::from(state.window());
                if matches!(self.states[transition.to], State::BackOff { .. }) {
                    timer_s += weight * transition.duration_s;
                    timeouts += weight;
                } else if state.awaits_recovery() {
                    recoveries += weight;
                }
            }
        }
        Prediction {
            throughput_pps: delivered / time_s,
            sent_pps: sent / time_s,
            window_mean_packets: window_s / time_s,
            timeouts_per_s: timeouts / time_s,
            recoveries_per_s: recoveries / time_s,
            timer_share: timer_s / time_s,
        }
    }
}
