//! Random scenarios for comparing schedulers: bundles of two to five paths.
//!
//! There are two families. [`Family::Access`] has the links that people have, from DSL to satellite, with the rates,
//! delays and queues that are usual for each. [`Family::Extreme`] combines all properties of links at random.
//!
//! Each family has two sets. Constants are tuned on [`DrawSet::Training`]; published figures come from
//! [`DrawSet::Test`]. A family, a set, a number of paths and a number always produce the same scenario. A change of
//! this module that alters a scenario invalidates all published figures, so a test pins them.
//!
//! ```
//! use ropewalk_lab::draw::{Draw, DrawSet, Family};
//!
//! let draw = Draw { family: Family::Access, set: DrawSet::Test, paths: 3, number: 0 };
//! assert_eq!(draw.scenario().paths.len(), 3);
//! assert_eq!(draw.to_string(), "access-test-3-0");
//! ```

mod access;
mod extreme;

use core::fmt;

use ropewalk_base::{Rng, Seed};
use ropewalk_scenario::{Override, Scenario, ScenarioError};

/// Default numbers of paths.
pub const PATHS: [usize; 4] = [2, 3, 4, 5];

/// Length of the warm-up, in round trips of the path with the longest RTT.
const WARMUP_ROUND_TRIPS: f64 = 20.0;

/// The properties from which the links of a scenario are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Ordinary access links.
    Access,
    /// Any combination of properties, however unlikely.
    Extreme,
}

impl Family {
    /// The name of the family.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Access => "access",
            Self::Extreme => "extreme",
        }
    }
}

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
    /// The family.
    pub family: Family,
    /// The set.
    pub set: DrawSet,
    /// Number of paths, 1 to 64.
    pub paths: usize,
    /// Number within the set, from 0.
    pub number: u64,
}

impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { family, set, paths, number } = self;
        write!(f, "{}-{}-{paths}-{number}", family.as_str(), set.as_str())
    }
}

impl Draw {
    /// The first `count` scenarios of a set for each number of paths.
    pub fn first(family: Family, set: DrawSet, paths: &[usize], count: u64) -> Vec<Self> {
        let of = |paths: usize| (0..count).map(move |number| Self { family, set, paths, number });
        paths.iter().copied().flat_map(of).collect()
    }

    fn seed(&self) -> Seed {
        let family = match self.family {
            Family::Access => "drawn access links",
            Family::Extreme => "drawn scenarios",
        };
        let set = Seed::root(0).child(family).child(self.set.as_str());
        set.child(&self.paths.to_string()).child(&self.number.to_string())
    }

    /// The scenario with preset `cmt-sctp` and the default scheduler.
    ///
    /// # Panics
    /// If the number of paths is zero, or exceeds the limit of a scenario.
    pub fn scenario(&self) -> Scenario {
        self.scenario_with(&[]).unwrap_or_else(|error| panic!("{self} is no scenario: {error}"))
    }

    /// The scenario with overrides. The rate of a cellular path of [`Family::Extreme`] cannot be overridden: it comes
    /// from its trace.
    ///
    /// # Errors
    /// The error of the first override that is invalid.
    pub fn scenario_with(&self, overrides: &[Override<'_>]) -> Result<Scenario, ScenarioError> {
        match self.family {
            Family::Access => {
                let text = access::text(self.seed(), self.paths);
                Scenario::parse_overridden(&text, &self.to_string(), overrides)
            }
            Family::Extreme => extreme::scenario(self, self.seed(), overrides),
        }
    }
}

/// A random number whose logarithm is uniformly distributed.
fn log_uniform(rng: &mut Rng, low: f64, high: f64) -> f64 {
    low * (high / low).powf(rng.unit())
}

#[cfg(test)]
mod tests;
