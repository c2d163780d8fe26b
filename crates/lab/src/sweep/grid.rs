//! The points of a sweep: every combination of values, each with every seed.

use ropewalk_base::Seed;
use ropewalk_scenario::{Override, Scenario, ScenarioError};

use super::axis::Axis;
use super::columns::{self, SweptColumn};
use super::error::SweepError;
use super::row::{Outcome, RunRow};
use super::seeds::Seeds;
use crate::custom_schedulers::CustomSchedulers;
use crate::run::run;
use crate::setup::RunOptions;

/// Maximum number of points of a sweep.
pub const POINTS_MAX: usize = 100_000;
/// Maximum number of runs of a sweep.
pub const RUNS_MAX: u64 = 10_000_000;
/// Maximum number of figures of all runs of a sweep. It allows the maximum number of runs if there are no flows.
/// Figures take 16 B each in memory.
pub const VALUES_MAX: u64 = 200_000_000;

/// Text of a scenario, with the overrides for all points.
#[derive(Clone, Debug)]
pub struct Source {
    /// TOML.
    pub text: String,
    /// Name of the file, for messages and relative file names in it.
    pub name: String,
    /// Overrides of the form `key=value`.
    pub sets: Vec<String>,
    /// Root seed that replaces `transfer.seed`.
    pub seed: Option<u64>,
    /// The custom schedulers that the scenario may select by name.
    pub custom_schedulers: CustomSchedulers,
}

impl Source {
    /// The scenario with the overrides in `varied`.
    fn load(&self, varied: &[String]) -> Result<Scenario, ScenarioError> {
        let set = self.sets.iter().map(|change| Override { option: "--set", change });
        let varied = varied.iter().map(|change| Override { option: "--vary", change });
        let overrides: Vec<Override<'_>> = set.chain(varied).collect();
        let mut scenario = self.custom_schedulers.parse(&self.text, &self.name, &overrides)?;
        // Not set by an override: integers in TOML are signed, so they cannot represent half of the seeds.
        scenario.transfer.seed = self.seed.unwrap_or(scenario.transfer.seed);
        Ok(scenario)
    }
}

/// A scenario, the varied keys, and the number of runs per point. The constructor checks the scenario and the
/// shape of the grid; [`SweepPlan`](super::SweepPlan) checks every point.
#[derive(Clone, Debug)]
pub struct Grid {
    source: Source,
    base: Scenario,
    axes: Vec<Axis>,
    seeds: Seeds,
    columns: Vec<SweptColumn>,
}

impl Grid {
    /// The grid of all combinations of values.
    ///
    /// # Errors
    /// If the scenario is invalid without changes, no key varies, a key varies twice, or the sweep is too
    /// large.
    pub fn new(source: Source, axes: Vec<Axis>, seeds: Seeds) -> Result<Self, SweepError> {
        let base = source.load(&[])?;
        if axes.is_empty() {
            let help = "for example --vary path.lte.rtt=20ms..400ms/20; `run` runs one point";
            return Err(SweepError::input("nothing varies: --vary is missing", help));
        }
        if let Some(axis) = axes.iter().enumerate().find_map(|(at, axis)| {
            axes[..at].iter().any(|other| other.key() == axis.key()).then_some(axis)
        }) {
            let message = format!("--vary {}: the key is given twice", axis.key());
            let help = "give all its values at once: a list may have several ranges";
            return Err(SweepError::input(message, help));
        }
        let columns = columns::columns(&base, &axes);
        let grid = Self { source, base, axes, seeds, columns };
        grid.limit(grid.seeds.count())?;
        Ok(grid)
    }

    /// Rejects a sweep that is too large.
    pub(super) fn limit(&self, seeds: u64) -> Result<(), SweepError> {
        let values = self.axes.iter().map(|axis| axis.values().len() as u128);
        let points = values.fold(1, u128::saturating_mul);
        if points > POINTS_MAX as u128 || points.saturating_mul(seeds.into()) > RUNS_MAX.into() {
            let message = format!("{points} points with {seeds} seeds each are too many");
            let help = format!("a sweep has up to {POINTS_MAX} points and {RUNS_MAX} runs");
            return Err(SweepError::input(message, help));
        }
        let values = points.saturating_mul(seeds.into()).saturating_mul(self.columns.len() as u128);
        if values > VALUES_MAX.into() {
            let figures = self.columns.len();
            let message =
                format!("{points} points with {seeds} seeds and {figures} figures are too many");
            let help = format!(
                "the figures of all runs are up to {VALUES_MAX}; sweep fewer points or seeds, or fewer flows"
            );
            return Err(SweepError::input(message, help));
        }
        Ok(())
    }

    /// The figures of each run.
    pub fn columns(&self) -> &[SweptColumn] {
        &self.columns
    }

    /// The keys that vary.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The scenario without varied keys.
    pub fn base(&self) -> &Scenario {
        &self.base
    }

    /// Seeds of each point. The file of a resumed sweep may contain further ones.
    pub fn seeds(&self) -> &Seeds {
        &self.seeds
    }

    /// Number of points, at least 1.
    pub fn points(&self) -> usize {
        self.axes.iter().map(|axis| axis.values().len()).product()
    }

    /// Indices of a point's values on each axis. The last axis changes fastest.
    pub fn indices(&self, point: usize) -> Vec<usize> {
        let mut rest = point;
        let mut indices: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let count = axis.values().len();
                let index = rest % count;
                rest /= count;
                index
            })
            .collect();
        indices.reverse();
        indices
    }

    /// The scenario of a point.
    ///
    /// # Errors
    /// If the scenario is invalid.
    pub fn scenario(&self, point: usize) -> Result<Scenario, ScenarioError> {
        let indices = self.indices(point);
        let sets: Vec<String> =
            self.axes.iter().zip(indices).map(|(axis, index)| axis.set(index)).collect();
        self.source.load(&sets)
    }

    /// The seed with this number, from 1: first the scenario's own, then children of it. All points have the
    /// same seeds, so that they differ by their values and not by randomness.
    pub fn seed(&self, number: u32) -> u64 {
        let root = self.base.transfer.seed;
        if number <= 1 {
            return root;
        }
        Seed::root(root).child("sweep").child(&(number - 1).to_string()).number()
    }

    /// Runs one point with the seed of this number on the current thread.
    pub fn run(&self, point: usize, seed: u32) -> RunRow {
        let scenario = self.scenario(point).map_err(|error| error.to_string());
        let outcome: Outcome = scenario
            .and_then(|mut scenario| {
                scenario.transfer.seed = self.seed(seed);
                let custom_schedulers = self.source.custom_schedulers.clone();
                let options = RunOptions { custom_schedulers, ..RunOptions::default() };
                let run = run(&scenario, &options);
                run.map(|run| run.result).map_err(|error| error.to_string())
            })
            .map(Box::new);
        RunRow::new(point, seed, outcome, &self.columns)
    }
}
