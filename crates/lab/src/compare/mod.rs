//! Several runs side by side, on all cores.

mod parallel;
mod statistics;

use ropewalk_base::Duration;
use ropewalk_scenario::Scenario;
use serde::Serialize;

pub use parallel::map_in_parallel;
pub use statistics::{Estimate, estimate};

use crate::result::RunResult;
use crate::run::{Run, RunError, RunOptions, run};

/// One of the things to compare.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name in tables and legends.
    pub label: String,
    /// What to run.
    pub scenario: Scenario,
}

/// How to compare.
#[derive(Clone, Copy, Debug)]
pub struct CompareOptions {
    /// Runs of each variant: with its scenario's seed, and with those that follow. At least 1.
    pub seeds: u64,
    /// Threads; the results do not depend on it. At least 1.
    pub threads: usize,
    /// Keep time series of the first run of each variant.
    pub series: bool,
    /// Keep so much of its beginning packet by packet.
    pub sequence: Option<Duration>,
}

/// One run of a comparison.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Which variant.
    pub label: String,
    /// What was run.
    pub scenario: Scenario,
    /// What came of it.
    pub outcome: Result<Run, RunError>,
}

/// Runs every variant with every seed; `done` is told of each run that is over, from any thread.
///
/// The answer has the runs of the first variant by ascending seed, then those of the second, and
/// so on.
pub fn compare(
    variants: &[Variant],
    options: &CompareOptions,
    done: &(dyn Fn() + Sync),
) -> Vec<Compared> {
    let mut jobs = Vec::new();
    for variant in variants {
        for number in 0..options.seeds {
            let mut scenario = variant.scenario.clone();
            scenario.transfer.seed = scenario.transfer.seed.wrapping_add(number);
            jobs.push((number, variant.label.clone(), scenario));
        }
    }
    map_in_parallel(&jobs, options.threads, |(number, label, scenario)| {
        let first = *number == 0;
        let keep = RunOptions {
            series: options.series && first,
            sequence: options.sequence.filter(|_| first),
            ..RunOptions::default()
        };
        let outcome = run(scenario, &keep);
        done();
        Compared { label: label.clone(), scenario: scenario.clone(), outcome }
    })
}

/// A comparison, `ropewalk.compare/1`.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    schema: &'static str,
    /// Every run.
    pub runs: Vec<ComparedRun>,
    /// Each variant over all its seeds.
    pub summary: Vec<Summary>,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedRun {
    /// Which variant.
    pub label: String,
    /// Root seed, as text.
    pub seed: String,
    /// A `ropewalk.run/1` document; null if the run failed.
    pub result: Option<RunResult>,
    /// Why the run failed.
    pub error: Option<String>,
}

/// A variant over all its seeds. Means with 95 % confidence intervals; failed runs do not count.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Summary {
    /// Which variant.
    pub label: String,
    /// Runs that did not fail.
    pub runs: usize,
    /// Goodput, bit/s.
    pub goodput_bps: Option<Estimate>,
    /// Share of the physical limit, 0 to 1.
    pub share_of_bound: Option<Estimate>,
    /// Peak of the receive buffer, bytes.
    pub receive_buffer_max_bytes: Option<Estimate>,
    /// Time in which the receive window held the sender up, s.
    pub blocked_s: Option<Estimate>,
    /// 99th percentile of the wait in the receive buffer, s.
    pub blocking_time_p99_s: Option<Estimate>,
    /// Mean delay between the applications, s.
    pub app_delay_mean_s: Option<Estimate>,
    /// 99th percentile of it, s.
    pub app_delay_p99_s: Option<Estimate>,
    /// Retransmissions of data that had arrived.
    pub spurious_retransmissions: Option<Estimate>,
}

impl Comparison {
    /// The document of some runs.
    pub fn new(runs: &[Compared]) -> Self {
        let mut labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
        labels.dedup();
        let summary = labels.into_iter().map(|label| {
            let of_label = runs.iter().filter(|run| run.label == label);
            let good = of_label.filter_map(|run| run.outcome.as_ref().ok());
            Summary::new(label, &good.map(|run| &run.result).collect::<Vec<_>>())
        });
        let summary = summary.collect();
        let runs = runs.iter().map(|run| ComparedRun {
            label: run.label.clone(),
            seed: run.scenario.transfer.seed.to_string(),
            result: run.outcome.as_ref().ok().map(|run| run.result.clone()),
            error: run.outcome.as_ref().err().map(ToString::to_string),
        });
        Self { schema: "ropewalk.compare/1", runs: runs.collect(), summary }
    }
}

impl Summary {
    fn new(label: &str, results: &[&RunResult]) -> Self {
        let over = |figure: fn(&RunResult) -> Option<f64>| {
            // A figure that one run lacks has no mean.
            let values: Option<Vec<f64>> = results.iter().map(|result| figure(result)).collect();
            estimate(&values?)
        };
        Self {
            label: label.to_owned(),
            runs: results.len(),
            goodput_bps: over(|r| Some(r.goodput_bps)),
            share_of_bound: over(|r| r.share_of_bound),
            receive_buffer_max_bytes: over(|r| Some(r.receive_buffer.max_bytes as f64)),
            blocked_s: over(|r| Some(r.receive_buffer.blocked_s)),
            blocking_time_p99_s: over(|r| Some(r.blocking_time_s.p99)),
            app_delay_mean_s: over(|r| Some(r.app_delay_s.mean)),
            app_delay_p99_s: over(|r| Some(r.app_delay_s.p99)),
            spurious_retransmissions: over(|r| Some(r.spurious_retransmissions as f64)),
        }
    }
}

#[cfg(test)]
mod tests;
