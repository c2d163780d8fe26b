//! Results of a scheduler in a match, relative to the best.

use serde::Serialize;

use crate::compare::{BestPath, Compared, Estimate, estimate};

/// Results of one scheduler in one match: means over its seeds with 95 % confidence intervals. Null if all runs
/// failed, or if the figure is unknown.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct MatchEntry {
    /// The scheduler.
    pub scheduler: String,
    /// Goodput, bit/s.
    pub goodput_bps: Option<Estimate>,
    /// Goodput as a share of the flow-control bound, 0 to 1; null if the bound is unknown, as over Wi-Fi.
    pub share_of_bound: Option<Estimate>,
    /// Goodput divided by that of the best path alone, with the same protocol and seed.
    pub gain: Option<Estimate>,
    /// Median delay between the applications, s.
    pub app_delay_p50_s: Option<Estimate>,
    /// 99th percentile of that delay, s.
    pub app_delay_p99_s: Option<Estimate>,
    /// Peak of the receive buffer, bytes.
    pub receive_buffer_max_bytes: Option<Estimate>,
    /// Retransmissions of data that had arrived.
    pub spurious_retransmissions: Option<Estimate>,
    /// Mean goodput divided by the best one of the match, 0 to 1; 0 if a run failed.
    pub goodput_ratio: f64,
    /// The best mean 99th percentile of the delay in the match, divided by this scheduler's, 0 to 1; 0 if a run
    /// failed.
    pub delay_ratio: f64,
    /// The successful runs.
    pub runs: Vec<RunFigures>,
    /// The failed runs.
    pub failures: Vec<FailedRun>,
}

/// One run.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct RunFigures {
    /// Root seed, as text.
    pub seed: String,
    /// Goodput, bit/s.
    pub goodput_bps: f64,
    /// Goodput as a share of the flow-control bound, 0 to 1.
    pub share_of_bound: Option<f64>,
    /// Median delay between the applications, s.
    pub app_delay_p50_s: f64,
    /// 99th percentile of that delay, s.
    pub app_delay_p99_s: f64,
    /// Peak of the receive buffer, bytes.
    pub receive_buffer_max_bytes: u64,
    /// Retransmissions of data that had arrived.
    pub spurious_retransmissions: u64,
    /// Goodput of the best path of the same scenario alone.
    pub best_path: Option<BestPath>,
}

/// A run that failed.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct FailedRun {
    /// Root seed, as text.
    pub seed: String,
    /// Error message.
    pub error: String,
}

impl MatchEntry {
    /// The results of a scheduler, before comparison with the others.
    pub(super) fn new(scheduler: String, compared: &[Compared]) -> Self {
        let (mut runs, mut failures) = (Vec::new(), Vec::new());
        for one in compared {
            let seed = one.scenario.transfer.seed.to_string();
            match &one.outcome {
                Ok(run) => runs.push(RunFigures {
                    seed,
                    goodput_bps: run.result.goodput_bps,
                    share_of_bound: run.result.share_of_bound,
                    app_delay_p50_s: run.result.app_delay_s.p50,
                    app_delay_p99_s: run.result.app_delay_s.p99,
                    receive_buffer_max_bytes: run.result.receive_buffer.max_bytes,
                    spurious_retransmissions: run.result.spurious_retransmissions,
                    best_path: one.best_path.clone(),
                }),
                Err(error) => failures.push(FailedRun { seed, error: error.to_string() }),
            }
        }
        let over = |figure: fn(&RunFigures) -> Option<f64>| {
            // If one run lacks the figure, there is no mean.
            estimate(&runs.iter().map(figure).collect::<Option<Vec<f64>>>()?)
        };
        Self {
            scheduler,
            goodput_bps: over(|run| Some(run.goodput_bps)),
            share_of_bound: over(|run| run.share_of_bound),
            gain: over(|run| Some(run.goodput_bps / run.best_path.as_ref()?.goodput_bps)),
            app_delay_p50_s: over(|run| Some(run.app_delay_p50_s)),
            app_delay_p99_s: over(|run| Some(run.app_delay_p99_s)),
            receive_buffer_max_bytes: over(|run| Some(run.receive_buffer_max_bytes as f64)),
            spurious_retransmissions: over(|run| Some(run.spurious_retransmissions as f64)),
            goodput_ratio: 0.0,
            delay_ratio: 0.0,
            runs,
            failures,
        }
    }

    /// Goodput and delay relative to the best in one number, 0 to 1.
    pub fn score(&self) -> f64 {
        self.goodput_ratio * self.delay_ratio
    }

    /// A mean, if no run failed: otherwise the runs are not comparable.
    fn mean_without_failures(&self, figure: Option<Estimate>) -> Option<f64> {
        let mean = figure?.mean;
        (self.failures.is_empty() && mean > 0.0).then_some(mean)
    }
}

/// Computes the ratios of each scheduler to the best of the match.
pub(super) fn set_ratios(entries: &mut [MatchEntry]) {
    let goodput = |entry: &MatchEntry| entry.mean_without_failures(entry.goodput_bps);
    let delay = |entry: &MatchEntry| {
        entry.mean_without_failures(entry.app_delay_p99_s).filter(|_| goodput(entry).is_some())
    };
    let most = entries.iter().filter_map(goodput).reduce(f64::max);
    let least = entries.iter().filter_map(delay).reduce(f64::min);
    for entry in entries {
        entry.goodput_ratio = goodput(entry).zip(most).map_or(0.0, |(own, most)| own / most);
        entry.delay_ratio = delay(entry).zip(least).map_or(0.0, |(own, least)| least / own);
    }
}
