//! The Markov chain of one path's congestion window (Wallace and Shami 2014, Section 4.3).
//!
//! A step of the chain is a round: a window's worth of packets and their acknowledgements, or the
//! wait for a timer. States are (w, xi, tau): the window, the packets sent in the round, the
//! slow start threshold. What the paper leaves open or prints wrongly is read as
//! `docs/concepts/models.md` says.
//!
//! [`throughput_pps`], [`solve`] and [`table`] climb the chain's ladder (`ladder.rs`), which takes
//! time of the order of W with independent and W² with correlated loss. [`stationary`] descends it
//! again for the shares of the states. [`plain`] lists all W²/2
//! states and eliminates them one by one; it is there to check the other.

mod correlated;
mod independent;
mod ladder;
mod loss;
pub mod plain;
mod recovery;
mod rounds;
mod stationary;
mod totals;

pub use loss::{LossModel, UnknownLossModel};
pub use stationary::{Stationary, stationary};

use crate::lossy::{LossyPath, window_at_least_one};
use crate::number::OutOfRange;
use ladder::Ladder;

/// What the chain says of one path.
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

/// Solves the chain for a window of at most `window` packets.
///
/// # Errors
/// The window must be 1 or more.
pub fn solve(
    path: &LossyPath,
    window: u32,
    loss_model: LossModel,
) -> Result<Prediction, OutOfRange> {
    window_at_least_one(window)?;
    let cycle = Ladder::climb(*path, loss_model, window).cycle(window);
    Ok(Prediction {
        throughput_pps: cycle.delivered / cycle.time_s,
        sent_pps: cycle.sent / cycle.time_s,
        window_mean_packets: cycle.window_s / cycle.time_s,
        timeouts_per_s: cycle.timeouts / cycle.time_s,
        recoveries_per_s: cycle.recoveries / cycle.time_s,
        timer_share: cycle.timer_s / cycle.time_s,
    })
}

/// Throughput with a window of at most `window` packets, packets/s (Eq 19).
///
/// # Errors
/// The window must be 1 or more.
pub fn throughput_pps(
    path: &LossyPath,
    window: u32,
    loss_model: LossModel,
) -> Result<f64, OutOfRange> {
    Ok(solve(path, window, loss_model)?.throughput_pps)
}

/// Throughput for every limit of the window from 1 to `window` packets, packets/s: entry `c - 1` is
/// that of the limit c. It costs no more than the last entry alone.
///
/// # Errors
/// The window must be 1 or more.
pub fn table(path: &LossyPath, window: u32, loss_model: LossModel) -> Result<Vec<f64>, OutOfRange> {
    window_at_least_one(window)?;
    let ladder = Ladder::climb(*path, loss_model, window);
    Ok((1..=window).map(|limit| ladder.throughput_pps(limit)).collect())
}
