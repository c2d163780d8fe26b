//! Random scenarios for comparing schedulers: bundles of two to five paths of various kinds, from DSL to
//! satellite.
//!
//! There are two sets. Constants are tuned on [`DrawSet::Training`]; published figures come from
//! [`DrawSet::Test`]. A set, a number of paths and a number always produce the same scenario. A change of this
//! module that alters a scenario invalidates all published figures, so a test pins them.
//!
//! ```
//! use ropewalk_lab::draw::{Draw, DrawSet};
//!
//! let draw = Draw { set: DrawSet::Test, paths: 3, number: 0 };
//! assert_eq!(draw.scenario().paths.len(), 3);
//! assert_eq!(draw.to_string(), "test-3-0");
//! ```

mod path;
mod trace;

use core::fmt;
use std::sync::Arc;

use ropewalk_base::{Rng, Seed};
use ropewalk_scenario::{Capacity, Override, Scenario, ScenarioError};

use path::{Kind, Path};

/// Default numbers of paths.
pub const PATHS: [usize; 4] = [2, 3, 4, 5];

/// Measured time of a run, s: at least three satellite handovers.
const MEASURED_S: f64 = 60.0;
/// Length of the warm-up, in round trips of the path with the longest RTT.
const WARMUP_ROUND_TRIPS: f64 = 20.0;
/// Minimum length of the warm-up, s.
const WARMUP_MIN_S: f64 = 10.0;

/// One of the two sets of scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrawSet {
    /// For tuning constants.
    Training,
    /// For measurements; nothing is tuned on it.
    Test,
}

impl DrawSet {
    /// The name of the set.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Test => "test",
        }
    }
}

/// The coordinates of one random scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Draw {
    /// The set.
    pub set: DrawSet,
    /// Number of paths, 1 to 64.
    pub paths: usize,
    /// Number within the set, from 0.
    pub number: u64,
}

impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.set.as_str(), self.paths, self.number)
    }
}

impl Draw {
    /// The first `count` scenarios of a set for each number of paths.
    pub fn first(set: DrawSet, paths: &[usize], count: u64) -> Vec<Self> {
        let of = |paths: usize| (0..count).map(move |number| Self { set, paths, number });
        paths.iter().copied().flat_map(of).collect()
    }

    fn seed(&self) -> Seed {
        let set = Seed::root(0).child("drawn scenarios").child(self.set.as_str());
        set.child(&self.paths.to_string()).child(&self.number.to_string())
    }

    /// The scenario with preset `cmt-sctp` and the default scheduler.
    ///
    /// # Panics
    /// If the number of paths is zero, or exceeds the limit of a scenario.
    pub fn scenario(&self) -> Scenario {
        self.scenario_with(&[]).unwrap_or_else(|error| panic!("{self} is no scenario: {error}"))
    }

    /// The scenario with overrides. The rate of a cellular path cannot be overridden: it comes from its trace.
    ///
    /// # Errors
    /// The error of the first override that is invalid.
    pub fn scenario_with(&self, overrides: &[Override<'_>]) -> Result<Scenario, ScenarioError> {
        let seed = self.seed();
        let paths = self.drawn_paths();
        let text = self.text(&paths);
        let mut scenario = Scenario::parse_overridden(&text, &self.to_string(), overrides)?;
        for (i, path) in paths.iter().enumerate().filter(|(_, path)| path.kind == Kind::Cellular) {
            let rng = seed.child("trace").child(&i.to_string()).rng();
            let name = format!("{self}-p{i}.mahi");
            let trace = trace::cellular(&name, path.rate_bps, rng);
            scenario.paths[i].up.capacity = Capacity::Trace(Arc::new(trace));
        }
        Ok(scenario)
    }

    fn drawn_paths(&self) -> Vec<Path> {
        let seed = self.seed().child("path");
        (0..self.paths).map(|i| Path::draw(&mut seed.child(&i.to_string()).rng())).collect()
    }

    /// Text of the scenario file, with a constant rate in place of each cellular trace.
    fn text(&self, paths: &[Path]) -> String {
        let seed = self.seed();
        let mut rng = seed.child("transfer").rng();
        let longest_s = paths.iter().map(|path| path.rtt_s).fold(0.0, f64::max);
        let warmup_s = (WARMUP_ROUND_TRIPS * longest_s).max(WARMUP_MIN_S).ceil();
        let duration_s = warmup_s + MEASURED_S;
        let buffer = log_uniform(&mut rng, 16e3, 16e6) as u64;
        let unordered = rng.chance(0.25);
        let run = seed.child("run").number() >> 1;
        let shared = (paths.len() >= 2 && rng.chance(0.15)).then(|| shared_link(&mut rng, paths));
        let mut text = format!(
            "[transfer]\nduration = \"{duration_s} s\"\nwarmup = \"{warmup_s} s\"\nseed = {run}\n\
             receive_buffer = \"{buffer} B\"\nunordered = {unordered}\n"
        );
        for (i, path) in paths.iter().enumerate() {
            let via = if shared.is_some() && i < 2 { "via = [\"shared\"]\n" } else { "" };
            let mut rng = seed.child("steps").child(&i.to_string()).rng();
            text += &path.text(i, duration_s, &mut rng);
            text += via;
        }
        text += shared.as_deref().unwrap_or("");
        for (i, path) in paths.iter().enumerate() {
            text += &path.cross_text(i);
        }
        text
    }
}

/// A link that the first two paths share, slower than the sum of both.
fn shared_link(rng: &mut Rng, paths: &[Path]) -> String {
    let (first, second) = (&paths[0], &paths[1]);
    let sum_bps = first.rate_bps + second.rate_bps;
    let rate_bps = (sum_bps * (0.5 + 0.5 * rng.unit())) as u64;
    let queue = log_uniform(rng, 0.5, 4.0) * rate_bps as f64 * first.rtt_s.min(second.rtt_s) / 8.0;
    let queue = queue.max(15_000.0) as u64;
    format!(
        "[[link]]\nname = \"shared\"\nrate = \"{rate_bps} bit/s\"\ndelay = \"1 ms\"\nqueue = \"{queue} B\"\n"
    )
}

/// A random number whose logarithm is uniformly distributed.
fn log_uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.unit())
}

#[cfg(test)]
mod tests;
