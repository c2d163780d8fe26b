//! The points of a sweep: every combination of values, each with every seed.

use ropewalk_base::Seed;
use ropewalk_scenario::{Override, Scenario, ScenarioError};

use super::axis::Axis;
use super::error::SweepError;
use super::row::{Outcome, PointRow};
use crate::run::{RunOptions, run};

/// Most points of one sweep.
pub const POINTS_MAX: usize = 100_000;
/// Most seeds of each point.
pub const SEEDS_MAX: u64 = 10_000;
/// Most runs of one sweep.
pub const RUNS_MAX: u64 = 10_000_000;

/// A scenario's text with the changes that hold at every point.
#[derive(Clone, Debug)]
pub struct Source {
    /// TOML.
    pub text: String,
    /// The file's name: in messages, and for files that the scenario names.
    pub name: String,
    /// Overrides of the form `key=value`.
    pub sets: Vec<String>,
    /// Root seed, instead of `transfer.seed`.
    pub seed: Option<u64>,
}

impl Source {
    /// The scenario, with what varies set as `varied` says.
    fn load(&self, varied: &[String]) -> Result<Scenario, ScenarioError> {
        let set = self.sets.iter().map(|change| Override { option: "--set", change });
        let varied = varied.iter().map(|change| Override { option: "--vary", change });
        let overrides: Vec<Override<'_>> = set.chain(varied).collect();
        let mut scenario = Scenario::parse_overridden(&self.text, &self.name, &overrides)?;
        // Not by an override: TOML's integers end where half of the seeds begin.
        scenario.transfer.seed = self.seed.unwrap_or(scenario.transfer.seed);
        Ok(scenario)
    }
}

/// A scenario, what varies in it, and how often each point runs. Making it checks the scenario
/// and the shape of the grid; [`Plan`](super::Plan) checks every point.
#[derive(Clone, Debug)]
pub struct Grid {
    source: Source,
    base: Scenario,
    axes: Vec<Axis>,
    seeds: u64,
}

impl Grid {
    /// The grid of all combinations of values.
    ///
    /// # Errors
    /// The scenario is wrong as it is, no key varies, one does twice, or there is too much to do.
    pub fn new(source: Source, axes: Vec<Axis>, seeds: u64) -> Result<Self, SweepError> {
        let base = source.load(&[])?;
        if axes.is_empty() {
            let help = "for example --vary path.lte.rtt=20ms..400ms/20; `run` runs one point";
            return Err(SweepError::input("nothing varies: there is no --vary", help));
        }
        if let Some(axis) = axes.iter().enumerate().find_map(|(at, axis)| {
            axes[..at].iter().any(|other| other.key() == axis.key()).then_some(axis)
        }) {
            let message = format!("--vary {}: the key is there twice", axis.key());
            let help = "give all its values at once: a list may have several ranges";
            return Err(SweepError::input(message, help));
        }
        if !(1..=SEEDS_MAX).contains(&seeds) {
            let message = format!("--seeds {seeds}: each point runs with 1 to {SEEDS_MAX} seeds");
            return Err(SweepError::input(message, "ten give a useful confidence interval"));
        }
        let points =
            axes.iter().fold(1_u128, |all, axis| all.saturating_mul(axis.values().len() as u128));
        let runs = points.saturating_mul(u128::from(seeds));
        if points > POINTS_MAX as u128 || runs > u128::from(RUNS_MAX) {
            let message = format!("{points} points with {seeds} seeds each are too many");
            let help = format!("a sweep has up to {POINTS_MAX} points and {RUNS_MAX} runs");
            return Err(SweepError::input(message, help));
        }
        Ok(Self { source, base, axes, seeds })
    }

    /// The keys that vary.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The scenario without what varies.
    pub fn base(&self) -> &Scenario {
        &self.base
    }

    /// Runs of each point, at least 1.
    pub fn seeds(&self) -> u64 {
        self.seeds
    }

    /// How many points there are, at least 1.
    pub fn points(&self) -> usize {
        self.axes.iter().map(|axis| axis.values().len()).product()
    }

    /// Which value of each axis a point has. The last axis goes round first.
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
    /// What is wrong with it.
    pub fn scenario(&self, point: usize) -> Result<Scenario, ScenarioError> {
        let indices = self.indices(point);
        let sets: Vec<String> =
            self.axes.iter().zip(indices).map(|(axis, index)| axis.set(index)).collect();
        self.source.load(&sets)
    }

    /// Seed number `index` of every point: first the scenario's own, then children of it. All
    /// points share them, so that two points differ by their values and not by their luck.
    pub fn seed(&self, index: u64) -> u64 {
        let root = self.base.transfer.seed;
        if index == 0 {
            return root;
        }
        Seed::root(root).child("sweep").child(&index.to_string()).number()
    }

    /// Runs one point with one of its seeds.
    pub fn run(&self, point: usize, seed: u64) -> Outcome {
        let scenario = self.scenario(point).map_err(|error| error.to_string());
        scenario
            .and_then(|mut scenario| {
                scenario.transfer.seed = self.seed(seed);
                let run = run(&scenario, &RunOptions::default());
                run.map(|run| run.result).map_err(|error| error.to_string())
            })
            .map(Box::new)
    }

    /// Runs one point with all its seeds, on this thread.
    pub fn run_point(&self, point: usize) -> PointRow {
        let outcomes: Vec<Outcome> = (0..self.seeds).map(|seed| self.run(point, seed)).collect();
        PointRow::new(point, &outcomes)
    }
}
