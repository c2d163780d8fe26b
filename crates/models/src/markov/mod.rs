//! The Markov chain of one path's congestion window (Wallace and Shami 2014, Section 4.3).
//!
//! A step of the chain is a round: the packets of one window and their acknowledgements, or the wait for a timer.
//! States are (w, xi, tau): the window, the packets sent in the round, the slow-start threshold.
//! `papers/wallace2014/README.md` documents how omissions and misprints of the paper are interpreted.
//!
//! [`throughput_pps`], [`solve`] and [`table`] use the structured solution (`window_chain.rs`), which takes time of
//! the order of W with independent and W² with correlated loss. [`stationary`] derives the shares of the states
//! from it. [`plain`] lists all W²/2 states and eliminates them one by one; it serves to check the structured
//! solution.

mod correlated;
mod independent;
mod loss;
pub mod plain;
mod recovery;
mod rounds;
mod stationary;
mod totals;
mod window_chain;

pub use loss::{LossModel, UnknownLossModel};
pub use stationary::{Stationary, stationary};

use crate::lossy::{LossyPath, window_at_least_one};
use crate::number::OutOfRange;
use window_chain::WindowChain;

/// Results of the chain for one path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Packets that arrive per second (Eq 19).
    pub throughput_pps: f64,
    /// Packets that are sent per second.
    pub sent_pps: f64,
    /// Mean of the window over time, packets; 1 in back-off.
    pub window_mean_packets: f64,
    /// Timeouts per second, those in back-off included.
    pub timeouts_per_s: f64,
    /// Fast recoveries per second.
    pub recoveries_per_s: f64,
    /// Share of the time that is spent waiting for a retransmission timer.
    pub timer_share: f64,
}

/// The largest window of a [`table`], packets.
pub const TABLE_MAX: u32 = 1 << 20;

/// Windows above this many times `1 / sqrt(p)` are never reached: a window of w survives with probability `(1 -
/// p)^w`, so reaching w takes of the order of `exp(p w^2 / 2)` cycles.
const REACH: f64 = 13.0;

/// Solves the chain for a window of at most `window` packets.
///
/// # Errors
/// If the window is 0, or if the result would take minutes because the window is large and loss is rare: with
/// correlated loss p below 4e-8 and W above 2^16, with independent loss p below 2e-10 and W above 2^20.
pub fn solve(
    path: &LossyPath,
    window: u32,
    loss_model: LossModel,
) -> Result<Prediction, OutOfRange> {
    Ok(Prediction::of(&extend_chain(path, window, loss_model)?, window))
}

/// Solves the chain for several windows of one path, at little more than the cost of the widest one.
///
/// # Errors
/// As [`solve`], for any of the windows.
pub fn solve_each(
    path: &LossyPath,
    windows: &[u32],
    loss_model: LossModel,
) -> Result<Vec<Prediction>, OutOfRange> {
    let (Some(&least), Some(&most)) = (windows.iter().min(), windows.iter().max()) else {
        return Ok(Vec::new());
    };
    window_at_least_one(least)?;
    let window_chain = extend_chain(path, most, loss_model)?;
    Ok(windows.iter().map(|window| Prediction::of(&window_chain, *window)).collect())
}

/// Throughput with a window of at most `window` packets, packets/s (Eq 19).
///
/// # Errors
/// As [`solve`].
pub fn throughput_pps(
    path: &LossyPath,
    window: u32,
    loss_model: LossModel,
) -> Result<f64, OutOfRange> {
    Ok(extend_chain(path, window, loss_model)?.throughput_pps(window))
}

/// Throughput for every limit of the window from 1 to `window` packets, packets/s: entry `c - 1` is
/// that of the limit c. It costs no more than the last entry alone.
///
/// # Errors
/// As [`solve`]; at most [`TABLE_MAX`] entries.
pub fn table(path: &LossyPath, window: u32, loss_model: LossModel) -> Result<Vec<f64>, OutOfRange> {
    let window_chain = extend_chain(path, table_length(window)?, loss_model)?;
    Ok((1..=window).map(|limit| window_chain.throughput_pps(limit)).collect())
}

/// Checks that a table of `window` entries has a sensible size.
pub(crate) fn table_length(window: u32) -> Result<u32, OutOfRange> {
    if window <= TABLE_MAX {
        return window_at_least_one(window);
    }
    let valid = "at most 1048576 for a table";
    Err(OutOfRange { name: "window_packets", value: f64::from(window), valid })
}

/// The structured solution up to `window`, if it takes reasonable time.
fn extend_chain(
    path: &LossyPath,
    window: u32,
    loss_model: LossModel,
) -> Result<WindowChain, OutOfRange> {
    window_at_least_one(window)?;
    let (window_max, valid) = match loss_model {
        LossModel::Independent => (1 << 20, "at most 1048576 with so rare a loss"),
        LossModel::Correlated => (1 << 16, "at most 65536 with so rare a correlated loss"),
    };
    if window > window_max && REACH / path.loss().sqrt() > f64::from(window_max) {
        return Err(OutOfRange { name: "window_packets", value: f64::from(window), valid });
    }
    Ok(WindowChain::extend_chain(*path, loss_model, window))
}

impl Prediction {
    /// Computes the results from the totals of a cycle at the limit `window`.
    fn of(window_chain: &WindowChain, window: u32) -> Self {
        let cycle = window_chain.cycle(window);
        Self {
            throughput_pps: cycle.delivered / cycle.time_s,
            sent_pps: cycle.sent / cycle.time_s,
            window_mean_packets: cycle.window_s / cycle.time_s,
            timeouts_per_s: cycle.timeouts / cycle.time_s,
            recoveries_per_s: cycle.recoveries / cycle.time_s,
            timer_share: cycle.timer_s / cycle.time_s,
        }
    }
}
