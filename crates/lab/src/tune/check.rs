//! Checks the limits by simulation, in comparison with window managers that do not use them.

use ropewalk_scenario::{Scenario, WindowManager};
use serde::Serialize;

use super::Tuning;
use crate::compare::{CompareOptions, Compared, Estimate, Variant, compare, estimate};
use crate::custom_schedulers::CustomSchedulers;

/// Options of the check.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// Runs of each window manager, with consecutive seeds. At least 1.
    pub seeds: u64,
    /// Number of threads; the results do not depend on it. At least 1.
    pub threads: usize,
    /// The custom schedulers that the scenario may select by name.
    pub custom_schedulers: CustomSchedulers,
}

impl CheckOptions {
    /// Options of a comparison with this many seeds.
    pub(super) fn with_seeds(&self, seeds: u64) -> CompareOptions {
        CompareOptions {
            seeds,
            threads: self.threads,
            series: false,
            sequence: None,
            single_paths: false,
            custom_schedulers: self.custom_schedulers.clone(),
        }
    }
}

/// Result of the check.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Check {
    /// Number of runs of each window manager.
    pub seeds: u64,
    /// Predicted goodput with the limits, bit/s of user data.
    pub predicted_goodput_bps: f64,
    /// Goodput with the limits; null if every run failed.
    pub simulated_bps: Option<Estimate>,
    /// Each window manager; the last one has the limits.
    pub managers: Vec<Checked>,
}

/// One window manager.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Checked {
    /// Its name.
    pub window_manager: &'static str,
    /// Goodput, bit/s of user data; null if a run failed.
    pub goodput_bps: Option<Estimate>,
    /// Goodput divided by that without a window manager, seed by seed.
    pub gain: Option<Estimate>,
    /// Error message if a run failed.
    pub error: Option<String>,
}

/// The first one is the reference.
const MANAGERS: [(&str, WindowManager); 4] = [
    ("none", WindowManager::None),
    ("dynamic", WindowManager::Dynamic),
    ("adaptive", WindowManager::Adaptive),
    ("static", WindowManager::Static),
];

/// Simulates the scenario without window manager, with dynamic and adaptive management, and with the limits.
/// `on_progress` is called from any thread with the completed share, 0 to 1.
pub fn check(
    scenario: &Scenario,
    tuning: &Tuning,
    options: &CheckOptions,
    on_progress: &(dyn Fn(f64) + Sync),
) -> Check {
    let tuned = tuning.applied_to(scenario);
    let variant = |(label, manager): &(&str, WindowManager)| {
        let mut scenario = tuned.clone();
        scenario.transfer.window_manager = *manager;
        Variant { label: (*label).to_owned(), scenario }
    };
    let variants: Vec<Variant> = MANAGERS.iter().map(variant).collect();
    let runs = compare(&variants, &options.with_seeds(options.seeds), on_progress);
    let groups: Vec<&[Compared]> = runs.chunks(options.seeds as usize).collect();
    let managers: Vec<Checked> = MANAGERS
        .iter()
        .zip(&groups)
        .map(|((name, _), group)| checked(name, group, groups[0]))
        .collect();
    Check {
        seeds: options.seeds,
        predicted_goodput_bps: tuning.predicted_bps * tuning.payload_share,
        simulated_bps: managers.last().and_then(|last| last.goodput_bps),
        managers,
    }
}

fn checked(name: &'static str, runs: &[Compared], plain: &[Compared]) -> Checked {
    let goodput = |run: &Compared| run.outcome.as_ref().ok().map(|run| run.result.goodput_bps);
    let all: Option<Vec<f64>> = runs.iter().map(goodput).collect();
    let gains: Option<Vec<f64>> =
        runs.iter().zip(plain).map(|(run, plain)| Some(goodput(run)? / goodput(plain)?)).collect();
    Checked {
        window_manager: name,
        goodput_bps: all.and_then(|values| estimate(&values)),
        gain: gains.and_then(|values| estimate(&values)),
        error: runs.iter().find_map(|run| run.outcome.as_ref().err().map(ToString::to_string)),
    }
}
