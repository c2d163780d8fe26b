//! Several runs side by side, on all cores.

mod paired;
mod parallel;
mod single;
mod statistics;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use ropewalk_base::Duration;
use ropewalk_scenario::Scenario;
use serde::Serialize;

pub use paired::{Change, Paired, paired};
pub use parallel::map_in_parallel;
pub use single::BestPath;
pub(crate) use statistics::mean_and_deviation;
pub use statistics::{Estimate, estimate};

use crate::result::RunResult;
use crate::run::{Run, RunError, RunOptions, run_watched};

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
    /// Also run each path by itself, to tell how much is gained over the best of them.
    pub single_paths: bool,
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
    /// What the best path of the same scenario does alone, with the same seed; none unless asked
    /// for, or if there is only one path, or if none came to its end.
    pub best_path: Option<BestPath>,
}

/// A run to be made: one of a variant, or a path by itself.
struct Job {
    scenario: Scenario,
    series: bool,
    sequence: Option<Duration>,
}

/// Runs every variant with every seed; `told` hears, from any thread, which share of all this is
/// over, 0 to 1.
///
/// The answer has the runs of the first variant by ascending seed, then those of the second, and
/// so on.
pub fn compare(
    variants: &[Variant],
    options: &CompareOptions,
    told: &(dyn Fn(f64) + Sync),
) -> Vec<Compared> {
    let mut jobs = Vec::new();
    let mut labels = Vec::new();
    for variant in variants {
        for number in 0..options.seeds {
            let mut scenario = variant.scenario.clone();
            scenario.transfer.seed = scenario.transfer.seed.wrapping_add(number);
            let first = number == 0;
            let sequence = options.sequence.filter(|_| first);
            labels.push(variant.label.clone());
            jobs.push(Job { scenario, series: options.series && first, sequence });
        }
    }
    let singles = if options.single_paths { add_singles(&mut jobs) } else { Vec::new() };
    let mut outcomes = run_all(&jobs, options.threads, told);
    let alone = outcomes.split_off(labels.len());
    let runs = labels.into_iter().zip(jobs).zip(outcomes).enumerate();
    let compared = runs.map(|(i, ((label, job), outcome))| {
        let places = singles.get(i).into_iter().flatten();
        let goodputs = places.zip(&job.scenario.paths).map(|(place, path)| {
            let run = alone[*place].as_ref().ok();
            (path.name.clone(), run.map(|run| run.result.goodput_bps))
        });
        let best_path = single::best(goodputs);
        Compared { label, scenario: job.scenario, outcome, best_path }
    });
    compared.collect()
}

/// Adds what each path does alone behind `jobs`, once where several of them ask for the same;
/// tells for each job which of the added ones are its paths.
fn add_singles(jobs: &mut Vec<Job>) -> Vec<Vec<usize>> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut added = Vec::new();
    let mut places = Vec::with_capacity(jobs.len());
    for Job { scenario, .. } in jobs.iter() {
        // One path has nothing to beat but itself.
        let paths = if scenario.paths.len() > 1 { scenario.paths.len() } else { 0 };
        let of_job = (0..paths).map(|path| {
            let alone = single::alone(scenario, path);
            *known.entry(alone.to_toml()).or_insert_with(|| {
                added.push(Job { scenario: alone, series: false, sequence: None });
                added.len() - 1
            })
        });
        places.push(of_job.collect());
    }
    jobs.extend(added);
    places
}

fn run_all(
    jobs: &[Job],
    threads: usize,
    told: &(dyn Fn(f64) + Sync),
) -> Vec<Result<Run, RunError>> {
    const PARTS: f64 = 1e6;
    let over = AtomicU64::new(0);
    map_in_parallel(jobs, threads, |job| {
        let keep =
            RunOptions { series: job.series, sequence: job.sequence, ..RunOptions::default() };
        let before = AtomicU64::new(0);
        let tell = |share: f64| {
            let now = (share * PARTS) as u64;
            let more = now - before.swap(now, Ordering::Relaxed);
            let all = over.fetch_add(more, Ordering::Relaxed) + more;
            told(all as f64 / PARTS / jobs.len() as f64);
        };
        let outcome = run_watched(&job.scenario, &keep, &tell);
        tell(1.0);
        outcome
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
    /// Each variant beside one of them, seed by seed, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paired: Vec<Paired>,
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
    /// What the best path does alone, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_path: Option<BestPath>,
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
    /// Goodput over that of the best path alone, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<Estimate>,
    /// Peak of the receive buffer, bytes.
    pub receive_buffer_max_bytes: Option<Estimate>,
    /// Time in which the receive window held the sender up, s.
    pub blocked_s: Option<Estimate>,
    /// The same as a share of the measured interval, 0 to 1.
    pub blocked_share: Option<Estimate>,
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
            let good = of_label.filter_map(|run| Some((run, &run.outcome.as_ref().ok()?.result)));
            Summary::new(label, &good.collect::<Vec<_>>())
        });
        let summary = summary.collect();
        let runs = runs.iter().map(|run| ComparedRun {
            label: run.label.clone(),
            seed: run.scenario.transfer.seed.to_string(),
            result: run.outcome.as_ref().ok().map(|run| run.result.clone()),
            error: run.outcome.as_ref().err().map(ToString::to_string),
            best_path: run.best_path.clone(),
        });
        Self { schema: "ropewalk.compare/1", runs: runs.collect(), summary, paired: Vec::new() }
    }
}

impl Summary {
    fn new(label: &str, runs: &[(&Compared, &RunResult)]) -> Self {
        let each = |figure: &dyn Fn(&Compared, &RunResult) -> Option<f64>| {
            // A figure that one run lacks has no mean.
            let values: Option<Vec<f64>> = runs.iter().map(|(c, r)| figure(c, r)).collect();
            estimate(&values?)
        };
        let over = |figure: fn(&RunResult) -> Option<f64>| each(&|_, result| figure(result));
        Self {
            label: label.to_owned(),
            runs: runs.len(),
            goodput_bps: over(|r| Some(r.goodput_bps)),
            share_of_bound: over(|r| r.share_of_bound),
            gain: each(&|c, r| Some(r.goodput_bps / c.best_path.as_ref()?.goodput_bps)),
            receive_buffer_max_bytes: over(|r| Some(r.receive_buffer.max_bytes as f64)),
            blocked_s: over(|r| Some(r.receive_buffer.blocked_s)),
            blocked_share: over(|r| Some(r.receive_buffer.blocked_s / r.duration_s)),
            blocking_time_p99_s: over(|r| Some(r.blocking_time_s.p99)),
            app_delay_mean_s: over(|r| Some(r.app_delay_s.mean)),
            app_delay_p99_s: over(|r| Some(r.app_delay_s.p99)),
            spurious_retransmissions: over(|r| Some(r.spurious_retransmissions as f64)),
        }
    }
}

#[cfg(test)]
mod tests;
