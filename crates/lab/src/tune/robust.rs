//! The smallest receive buffer that also reaches a share on links that differ slightly from the scenario's.
//!
//! Goodput as a function of the buffer has cliffs: a buffer that just suffices for exactly these links may fail
//! when a round trip grows by 2 %. The buffer is therefore tried on *variations*: each link alone with a higher and
//! a lower rate and round trip and with jitter, and draws in which all links differ.

use ropewalk_base::{Duration, Seed};
use ropewalk_scenario::{Path, Scenario};
use serde::Serialize;

use super::reach::{between, rounded};
use super::{CheckOptions, paths};
use crate::compare::{Compared, Variant, compare};
use crate::lossy::packet_bytes;
use crate::other_links::{add_jitter, scale_rate, scale_round_trip};

/// Largest jitter of a variation.
const JITTER: Duration = Duration::from_millis(1);
/// Variations in which all links differ.
const DRAWS: u64 = 16;
/// Maximum number of links that are varied one by one.
const SINGLE_LINKS: usize = 8;
/// Factor between the buffers that are tried until one suffices.
const STEP_UP: f64 = 1.2;
/// Typical number of buffers that a search tries. Only the progress report depends on it.
const USUAL_TRIALS: f64 = 8.0;

/// The smallest receive buffer for links that differ from the scenario's, within a tolerance.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct RobustReach {
    /// Largest relative difference of rates and round trips.
    pub tolerance: f64,
    /// Largest jitter, s.
    pub jitter_s: f64,
    /// Number of variations of the links.
    pub variations: usize,
    /// The smallest buffer that reaches the share in all variations; null if no buffer tried does.
    pub least: Option<RobustTrial>,
    /// All buffers tried, in ascending order. The first one is the smallest for exactly the scenario's links.
    pub trials: Vec<RobustTrial>,
}

/// One receive buffer with all variations of the links.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct RobustTrial {
    /// The receive buffer, bytes.
    pub receive_buffer_bytes: u64,
    /// Number of variations in which it reaches the share.
    pub reached: usize,
    /// Goodput with headers divided by the sum of the rates, in the worst variation; a failed run counts as 0.
    pub worst_share: f64,
}

/// A scenario whose links differ, and the sum of their rates, bit/s.
struct Variation {
    scenario: Scenario,
    rates_bps: f64,
}

/// Finds the smallest buffer from `exact` on, and up to `largest`, that reaches `share` of the sum of the rates in all
/// variations.
pub(super) fn robust_reach(
    scenario: &Scenario,
    share: f64,
    tolerance: f64,
    exact: u64,
    largest: u64,
    options: &CheckOptions,
    on_progress: &(dyn Fn(f64) + Sync),
) -> RobustReach {
    let variations = variations(scenario, tolerance);
    let count = variations.len();
    let mut search = Search { variations, share, options, on_progress, trials: Vec::new() };
    let least = search.least(exact, largest);
    let mut trials = search.trials;
    trials.sort_by_key(|trial| trial.receive_buffer_bytes);
    RobustReach { tolerance, jitter_s: JITTER.as_secs_f64(), variations: count, least, trials }
}

/// The variations that the models cover.
fn variations(scenario: &Scenario, tolerance: f64) -> Vec<Variation> {
    let (less, more) = (1.0 - tolerance, 1.0 + tolerance);
    let mut all: Vec<Scenario> = Vec::new();
    let mut with = |change: &mut dyn FnMut(&mut Scenario)| {
        let mut changed = scenario.clone();
        change(&mut changed);
        changed.transfer.seed = changed.transfer.seed.wrapping_add(1 + all.len() as u64);
        all.push(changed);
    };
    let scale = |path: &mut Path, factor: f64| {
        // A path with a trace keeps its rate.
        let _ = scale_rate(path, factor);
    };
    for place in 0..scenario.paths.len().min(SINGLE_LINKS) {
        for factor in [less, more] {
            with(&mut |changed| scale(&mut changed.paths[place], factor));
            with(&mut |changed| scale_round_trip(&mut changed.paths[place], factor));
        }
        with(&mut |changed| add_jitter(&mut changed.paths[place], JITTER));
    }
    let seed = Seed::root(scenario.transfer.seed).child("variation");
    for draw in 0..DRAWS {
        let mut rng = seed.child(&draw.to_string()).rng();
        with(&mut |changed| {
            for path in &mut changed.paths {
                scale(path, less + (more - less) * rng.unit());
                scale_round_trip(path, less + (more - less) * rng.unit());
                add_jitter(path, Duration::from_nanos(rng.below(JITTER.as_nanos() + 1)));
            }
        });
    }
    let covered = all.into_iter().filter_map(|scenario| {
        let models = paths::model_paths(&scenario).ok()?;
        let rates: f64 = models.iter().map(|path| path.rate_pps).sum();
        Some(Variation { rates_bps: 8.0 * packet_bytes(&scenario) * rates, scenario })
    });
    covered.collect()
}

struct Search<'a> {
    variations: Vec<Variation>,
    share: f64,
    options: &'a CheckOptions,
    on_progress: &'a (dyn Fn(f64) + Sync),
    trials: Vec<RobustTrial>,
}

impl Search<'_> {
    fn least(&mut self, exact: u64, largest: u64) -> Option<RobustTrial> {
        let (mut low, mut high) = (exact, self.trial(exact));
        while !self.reaches(&high) {
            low = high.receive_buffer_bytes;
            let next = rounded(low as f64 * STEP_UP);
            if next > largest {
                return None;
            }
            high = self.trial(next);
        }
        while let Some(middle) = between(low, high.receive_buffer_bytes) {
            let trial = self.trial(middle);
            if self.reaches(&trial) {
                high = trial;
            } else {
                low = middle;
            }
        }
        Some(high)
    }

    fn reaches(&self, trial: &RobustTrial) -> bool {
        trial.reached == self.variations.len()
    }

    fn trial(&mut self, bytes: u64) -> RobustTrial {
        let variant = |one: &Variation| {
            let mut scenario = one.scenario.clone();
            scenario.transfer.receive_buffer = bytes;
            Variant { label: String::new(), scenario }
        };
        let variants: Vec<Variant> = self.variations.iter().map(variant).collect();
        let before = self.trials.len() as f64;
        let tell = |part: f64| (self.on_progress)(((before + part) / USUAL_TRIALS).min(0.99));
        let runs = compare(&variants, &self.options.with_seeds(1), &tell);
        let share = |(run, one): (&Compared, &Variation)| {
            run.outcome.as_ref().map_or(0.0, |run| run.result.goodput_wire_bps / one.rates_bps)
        };
        let shares: Vec<f64> = runs.iter().zip(&self.variations).map(share).collect();
        let trial = RobustTrial {
            receive_buffer_bytes: bytes,
            reached: shares.iter().filter(|share| **share >= self.share).count(),
            worst_share: shares.iter().copied().fold(1.0, f64::min),
        };
        self.trials.push(trial);
        trial
    }
}
