//! Runs several variants of a scenario in parallel and compares their results.

mod paired;
mod parallel;
mod repeated;
mod single;
mod statistics;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use ropewalk_base::Duration;
use ropewalk_scenario::Scenario;
use serde::Serialize;

pub use paired::{Change, Paired, paired};
pub use parallel::map_in_parallel;
pub use repeated::{Repeated, RepeatedDirection, RepeatedPart};
pub use single::BestPath;
pub use statistics::{Estimate, Proportion, estimate, mean};
pub(crate) use statistics::{mean_and_deviation, ratio_of_means, student_quantile};

use crate::custom_schedulers::CustomSchedulers;
use crate::error::RunError;
use crate::measure::Run;
use crate::result::{Row, RunResult, compared};
use crate::run::run_watched;
use crate::setup::RunOptions;

/// A scenario with a label: one column of a comparison.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Name in tables and legends.
    pub label: String,
    /// Scenario to run.
    pub scenario: Scenario,
}

/// Options of a comparison.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// Runs of each variant, with consecutive seeds that begin at its scenario's. At least 1.
    pub seeds: u64,
    /// Number of threads; the results do not depend on it. At least 1.
    pub threads: usize,
    /// Whether to keep time series of the first run of each variant.
    pub series: bool,
    /// Length of the beginning of that run to keep packet by packet.
    pub sequence: Option<Duration>,
    /// Whether to run each path alone as well, to compute the gain over the best of them.
    pub single_paths: bool,
    /// The custom schedulers that the scenarios may select by name.
    pub custom_schedulers: CustomSchedulers,
}

/// One run of a comparison.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Label of the variant.
    pub label: String,
    /// The scenario as it was run.
    pub scenario: Scenario,
    /// Result of the run.
    pub outcome: Result<Run, RunError>,
    /// Goodput of the best path of the same scenario alone, with the same seed. The best path is the one with the
    /// highest mean over all seeds. `None` if it was not requested, if there is only one path, or if a run of each path
    /// failed.
    pub best_path: Option<BestPath>,
    /// Goodput of each path alone, with the same seed, bit/s. `None` for a failed run. Empty if it was not
    /// requested, or if there is only one path.
    pub single_paths_bps: Vec<Option<f64>>,
}

/// A run to execute: one of a variant, or one of a single path.
struct Job {
    scenario: Scenario,
    series: bool,
    sequence: Option<Duration>,
}

/// Runs every variant with every seed. `on_progress` is called from any thread with the completed share of all runs, 0
/// to 1.
///
/// Returns the runs of the first variant by ascending seed, then those of the second, and so on.
pub fn compare(
    variants: &[Variant],
    options: &CompareOptions,
    on_progress: &(dyn Fn(f64) + Sync),
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
    let mut outcomes = run_all(&jobs, options.threads, &options.custom_schedulers, on_progress);
    let alone = outcomes.split_off(labels.len());
    let goodput = |place: &usize| alone[*place].as_ref().ok().map(|run| run.result.goodput_bps);
    let runs = labels.into_iter().zip(jobs).zip(outcomes).enumerate();
    let compared = runs.map(|(i, ((label, job), outcome))| {
        let places = singles.get(i).into_iter().flatten();
        let single_paths_bps = places.map(goodput).collect();
        let scenario = job.scenario;
        Compared { label, scenario, outcome, best_path: None, single_paths_bps }
    });
    let mut compared: Vec<Compared> = compared.collect();
    compared.chunks_mut(options.seeds.max(1) as usize).for_each(set_best_path);
    compared
}

/// Sets the best path of the runs of one variant.
fn set_best_path(runs: &mut [Compared]) {
    let singles: Vec<&[Option<f64>]> = runs.iter().map(|run| &*run.single_paths_bps).collect();
    let Some(best) = single::best(&singles) else { return };
    for run in runs {
        let name = run.scenario.paths[best].name.clone();
        run.best_path =
            run.single_paths_bps[best].map(|goodput_bps| BestPath { name, goodput_bps });
    }
}

/// Appends a run of each single path to `jobs`; jobs with the same single-path scenario share one. Returns for
/// each job the indices of its single-path runs among the appended ones.
fn add_singles(jobs: &mut Vec<Job>) -> Vec<Vec<usize>> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut added = Vec::new();
    let mut places = Vec::with_capacity(jobs.len());
    for Job { scenario, .. } in jobs.iter() {
        // A scenario with one path is its own best path.
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
    custom_schedulers: &CustomSchedulers,
    on_progress: &(dyn Fn(f64) + Sync),
) -> Vec<Result<Run, RunError>> {
    const PARTS: f64 = 1e6;
    let over = AtomicU64::new(0);
    map_in_parallel(jobs, threads, |job| {
        let keep = RunOptions {
            series: job.series,
            sequence: job.sequence,
            custom_schedulers: custom_schedulers.clone(),
            ..RunOptions::default()
        };
        let before = AtomicU64::new(0);
        let tell = |share: f64| {
            let now = (share * PARTS) as u64;
            let more = now - before.swap(now, Ordering::Relaxed);
            let all = over.fetch_add(more, Ordering::Relaxed) + more;
            on_progress(all as f64 / PARTS / jobs.len() as f64);
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
    /// All runs.
    pub runs: Vec<ComparedRun>,
    /// Each variant over all its seeds.
    pub summary: Vec<Summary>,
    /// Each variant compared with a reference variant, seed by seed, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paired: Vec<Paired>,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedRun {
    /// Label of the variant.
    pub label: String,
    /// Root seed, as text.
    pub seed: String,
    /// A `ropewalk.run/1` document; null if the run failed.
    pub result: Option<RunResult>,
    /// Error message if the run failed.
    pub error: Option<String>,
    /// Goodput of the best path alone, if requested: of the path with the highest mean over all seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_path: Option<BestPath>,
}

/// A variant over all its seeds: means with 95 % confidence intervals. Failed runs are left out.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Summary {
    /// Label of the variant.
    pub label: String,
    /// Number of runs that did not fail.
    pub runs: usize,
    /// Each figure of [`compared`]; null if unknown.
    #[serde(flatten)]
    pub figures: Row<Option<Estimate>>,
    /// Mean goodput divided by that of the best path alone, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<Estimate>,
    /// Each flow through a tunnel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<RepeatedPart>,
}

impl ComparedRun {
    fn of(run: &Compared) -> Self {
        Self {
            label: run.label.clone(),
            seed: run.scenario.transfer.seed.to_string(),
            result: run.outcome.as_ref().ok().map(|run| run.result.clone()),
            error: run.outcome.as_ref().err().map(ToString::to_string),
            best_path: run.best_path.clone(),
        }
    }
}

impl Comparison {
    /// Builds the document from finished runs.
    pub fn new(runs: &[Compared]) -> Self {
        let mut labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
        labels.dedup();
        let summary = labels.into_iter().map(|label| {
            let of_label = runs.iter().filter(|run| run.label == label);
            let good = of_label.filter_map(|run| Some((run, &run.outcome.as_ref().ok()?.result)));
            Summary::new(label, &good.collect::<Vec<_>>())
        });
        let summary = summary.collect();
        let runs = runs.iter().map(ComparedRun::of);
        Self { schema: "ropewalk.compare/1", runs: runs.collect(), summary, paired: Vec::new() }
    }
}

impl Summary {
    fn new(label: &str, runs: &[(&Compared, &RunResult)]) -> Self {
        let each = |figure: &dyn Fn(&Compared, &RunResult) -> Option<f64>| {
            // If one run lacks the figure, there is no mean.
            let values: Option<Vec<f64>> = runs.iter().map(|(c, r)| figure(c, r)).collect();
            estimate(&values?)
        };
        Self {
            label: label.to_owned(),
            runs: runs.len(),
            figures: Row::new(&compared(), |figure| each(&|_, result| (figure.of)(result))),
            flows: repeated::flows(&runs.iter().map(|(_, result)| *result).collect::<Vec<_>>()),
            gain: gain(runs),
        }
    }
}

/// Mean goodput of the runs of a variant divided by that of the best path alone.
pub(crate) fn gain(runs: &[(&Compared, &RunResult)]) -> Option<Estimate> {
    let pairs = runs.iter().map(|(run, result)| {
        run.best_path.as_ref().map(|best| (result.goodput_bps, best.goodput_bps))
    });
    ratio_of_means(&pairs.collect::<Option<Vec<_>>>()?)
}

#[cfg(test)]
mod tests;
