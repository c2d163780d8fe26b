//! The stored results of a single run.

use serde::{Deserialize, Serialize};

use crate::result::{PathResult, RunResult};

/// The result of a run, or its error message.
pub type Outcome = Result<Box<RunResult>, String>;

/// A figure of a run that a sweep keeps.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Name in the results.
    pub name: &'static str,
    /// Reads the figure, if the run has it.
    pub of: fn(&RunResult) -> Option<f64>,
}

/// All figures, in the order of the columns.
pub const FIGURES: [Figure; 18] = [
    figure("goodput_bps", |r| Some(r.goodput_bps)),
    figure("share_of_bound", |r| r.share_of_bound),
    figure("flow_control_bound_bps", |r| r.flow_control_bound_bps),
    figure("blocked_share", |r| Some(blocked_share(r))),
    figure("receive_buffer_mean_bytes", |r| Some(r.receive_buffer.mean_bytes)),
    figure("receive_buffer_p99_bytes", |r| Some(r.receive_buffer.p99_bytes as f64)),
    figure("receive_buffer_max_bytes", |r| Some(r.receive_buffer.max_bytes as f64)),
    figure("blocking_time_mean_s", |r| Some(r.blocking_time_s.mean)),
    figure("blocking_time_p99_s", |r| Some(r.blocking_time_s.p99)),
    figure("blocking_time_max_s", |r| Some(r.blocking_time_s.max)),
    figure("app_delay_mean_s", |r| Some(r.app_delay_s.mean)),
    figure("app_delay_p99_s", |r| Some(r.app_delay_s.p99)),
    figure("out_of_order_ratio", |r| Some(r.out_of_order.ratio)),
    figure("retransmitted_packets", |r| Some(total(r, |path| path.retransmitted_packets))),
    figure("lost_packets", |r| Some(total(r, |path| path.lost_packets))),
    figure("timeouts", |r| Some(total(r, |path| path.timeouts))),
    figure("spurious_retransmissions", |r| Some(r.spurious_retransmissions as f64)),
    figure("completion_s", |r| r.completion_s),
];

const fn figure(name: &'static str, of: fn(&RunResult) -> Option<f64>) -> Figure {
    Figure { name, of }
}

/// Share of the time in which the receive window blocked a sender, 0 to 1: the mean over the associations,
/// because a result sums their times.
fn blocked_share(result: &RunResult) -> f64 {
    let associations = result.association_goodput_bps.len().max(1) as f64;
    let measured = result.duration_s * associations;
    if measured > 0.0 { result.receive_buffer.blocked_s / measured } else { 0.0 }
}

fn total(result: &RunResult, of: fn(&PathResult) -> u64) -> f64 {
    result.paths.iter().map(of).sum::<u64>() as f64
}

/// A finished run. Writing and reading it is lossless.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Number of the point, from 0.
    pub point: usize,
    /// Number of the seed, from 1.
    pub seed: u32,
    /// Values in the order of [`FIGURES`]; none if unknown, and all none if the run failed.
    pub figures: Vec<Option<f64>>,
    /// Error message if the run failed.
    pub error: Option<String>,
}

impl RunRow {
    /// The row of a run.
    pub fn new(point: usize, seed: u32, outcome: Outcome) -> Self {
        let (figures, error) = match outcome {
            // JSON cannot represent infinity.
            Ok(result) => (FIGURES.map(|f| (f.of)(&result).filter(|x| x.is_finite())), None),
            Err(error) => ([None; FIGURES.len()], Some(error)),
        };
        Self { point, seed, figures: figures.to_vec(), error }
    }
}
