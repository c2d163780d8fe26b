//! What a scheduler made of a scenario, and how it stands beside the best.

use serde::Serialize;

use crate::compare::{BestPath, Compared, Estimate, estimate};

/// One scheduler in one match. Means over its seeds with 95 % confidence intervals; null where no
/// run came to its end, or where the figure is not known.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Entry {
    /// The scheduler.
    pub scheduler: String,
    /// Goodput, bit/s.
    pub goodput_bps: Option<Estimate>,
    /// Share of the physical limit, 0 to 1; null where the limit is not known, as over the air.
    pub share_of_bound: Option<Estimate>,
    /// Goodput over that of the best path alone, with the same protocol and seed.
    pub gain: Option<Estimate>,
    /// Median delay between the applications, s.
    pub app_delay_p50_s: Option<Estimate>,
    /// 99th percentile of it, s.
    pub app_delay_p99_s: Option<Estimate>,
    /// Peak of the receive buffer, bytes.
    pub receive_buffer_max_bytes: Option<Estimate>,
    /// Retransmissions of data that had arrived.
    pub spurious_retransmissions: Option<Estimate>,
    /// Its mean goodput over that of the match's best, 0 to 1; 0 if one of its runs failed.
    pub goodput_ratio: f64,
    /// The match's best mean 99th percentile of the delay over its own, 0 to 1; 0 if one of its runs
    /// failed.
    pub delay_ratio: f64,
    /// Each run that came to its end.
    pub runs: Vec<RunFigures>,
    /// Each that did not.
    pub failures: Vec<FailedRun>,
}

/// One run.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct RunFigures {
    /// Root seed, as text.
    pub seed: String,
    /// Goodput, bit/s.
    pub goodput_bps: f64,
    /// Share of the physical limit, 0 to 1.
    pub share_of_bound: Option<f64>,
    /// Median delay between the applications, s.
    pub app_delay_p50_s: f64,
    /// 99th percentile of it, s.
    pub app_delay_p99_s: f64,
    /// Peak of the receive buffer, bytes.
    pub receive_buffer_max_bytes: u64,
    /// Retransmissions of data that had arrived.
    pub spurious_retransmissions: u64,
    /// What the best path of the same links does alone.
    pub best_path: Option<BestPath>,
}

/// A run that failed.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct FailedRun {
    /// Root seed, as text.
    pub seed: String,
    /// Why.
    pub error: String,
}

impl Entry {
    /// The figures of some runs of a scheduler, not yet beside those of the others.
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
            // A figure that one run lacks has no mean.
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

    /// Goodput and delay beside the best in one number, 0 to 1.
    pub fn score(&self) -> f64 {
        self.goodput_ratio * self.delay_ratio
    }

    /// A mean, if every run came to its end: what a failed one would have had nobody knows.
    fn sound(&self, figure: Option<Estimate>) -> Option<f64> {
        let mean = figure?.mean;
        (self.failures.is_empty() && mean > 0.0).then_some(mean)
    }
}

/// Sets each scheduler beside the best of the match.
pub(super) fn relate(entries: &mut [Entry]) {
    let goodput = |entry: &Entry| entry.sound(entry.goodput_bps);
    let delay =
        |entry: &Entry| entry.sound(entry.app_delay_p99_s).filter(|_| goodput(entry).is_some());
    let most = entries.iter().filter_map(goodput).reduce(f64::max);
    let least = entries.iter().filter_map(delay).reduce(f64::min);
    for entry in entries {
        entry.goodput_ratio = goodput(entry).zip(most).map_or(0.0, |(own, most)| own / most);
        entry.delay_ratio = delay(entry).zip(least).map_or(0.0, |(own, least)| least / own);
    }
}
