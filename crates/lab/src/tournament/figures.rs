//! Results of a scheduler in a match, relative to the best.

use ropewalk_scenario::Path;
use serde::Serialize;
use serde_json::Value;

use crate::compare::{BestPath, Compared, Estimate, estimate, gain};
use crate::result::{Row, RunResult, ranked};

/// Results of one scheduler in one match: means over its seeds with 95 % confidence intervals. Null if all runs
/// failed, or if the figure is unknown.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct MatchEntry {
    /// The scheduler.
    pub scheduler: String,
    /// Each figure of [`ranked`].
    #[serde(flatten)]
    pub figures: Row<Option<Estimate>>,
    /// Mean goodput divided by that of the best path alone, under the same setting and with the same seeds. The best path is
    /// the one with the highest mean.
    pub gain: Option<Estimate>,
    /// Mean goodput divided by the sum of the mean goodputs of the paths alone; null if one of these runs failed, or with
    /// one path.
    pub of_sum: Option<f64>,
    /// Each path alone, with the entire receive buffer; empty with one path.
    pub single_paths: Vec<SinglePath>,
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

/// A path alone.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct SinglePath {
    /// Name of the path.
    pub name: String,
    /// Mean goodput over the seeds, bit/s; null if a run failed.
    pub goodput_bps: Option<Estimate>,
}

/// One run.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct RunFigures {
    /// Root seed, as text.
    pub seed: String,
    /// Each figure of [`ranked`]: a number, or null if unknown.
    #[serde(flatten)]
    pub figures: Row<Value>,
    /// Goodput of the path alone that is the best over all seeds.
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
        let figures = ranked();
        let (mut runs, mut failures, mut good) = (Vec::new(), Vec::new(), Vec::new());
        for one in compared {
            let seed = one.scenario.transfer.seed.to_string();
            match &one.outcome {
                Ok(run) => {
                    let figures = Row::new(&figures, |figure| figure.value(&run.result));
                    runs.push(RunFigures { seed, figures, best_path: one.best_path.clone() });
                    good.push((one, &run.result));
                }
                Err(error) => failures.push(FailedRun { seed, error: error.to_string() }),
            }
        }
        let over = |figure: &dyn Fn(&Compared, &RunResult) -> Option<f64>| {
            // If one run lacks the figure, there is no mean.
            let values = good.iter().map(|(one, result)| figure(one, result));
            estimate(&values.collect::<Option<Vec<f64>>>()?)
        };
        let means: Row<Option<Estimate>> =
            Row::new(&figures, |figure| over(&|_, result| (figure.of)(result)));
        let single_paths = single_paths(compared);
        let alone = single_paths.iter().map(|path| Some(path.goodput_bps?.mean));
        let sum = alone.sum::<Option<f64>>().filter(|sum| *sum > 0.0);
        let goodput = over(&|_, result| Some(result.goodput_bps));
        Self {
            scheduler,
            figures: means,
            gain: gain(&good),
            of_sum: goodput.zip(sum).map(|(own, sum)| own.mean / sum),
            single_paths,
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
    fn mean_without_failures(&self, column: &str) -> Option<f64> {
        let mean = (*self.figures.get(column))?.mean;
        (self.failures.is_empty() && mean > 0.0).then_some(mean)
    }
}

/// The mean of each path alone over all seeds.
fn single_paths(compared: &[Compared]) -> Vec<SinglePath> {
    let Some(first) = compared.first() else { return Vec::new() };
    let paths = first.scenario.paths.iter().take(first.single_paths_bps.len()).enumerate();
    let one = |(i, path): (usize, &Path)| {
        let runs = compared.iter().map(|one| one.single_paths_bps[i]);
        let goodput_bps = runs.collect::<Option<Vec<_>>>().and_then(|values| estimate(&values));
        SinglePath { name: path.name.clone(), goodput_bps }
    };
    paths.map(one).collect()
}

/// Computes the ratios of each scheduler to the best of the match.
pub(super) fn set_ratios(entries: &mut [MatchEntry]) {
    let goodput = |entry: &MatchEntry| entry.mean_without_failures("goodput_bps");
    let delay = |entry: &MatchEntry| {
        entry.mean_without_failures("app_delay_p99_s").filter(|_| goodput(entry).is_some())
    };
    let most = entries.iter().filter_map(goodput).reduce(f64::max);
    let least = entries.iter().filter_map(delay).reduce(f64::min);
    for entry in entries {
        entry.goodput_ratio = goodput(entry).zip(most).map_or(0.0, |(own, most)| own / most);
        entry.delay_ratio = delay(entry).zip(least).map_or(0.0, |(own, least)| least / own);
    }
}
