//! Identity of a sweep, so that only its own results are resumed.

use std::collections::BTreeSet;

use ropewalk_scenario::{Capacity, Scenario};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::SweepError;
use super::grid::Grid;

/// Identifies the computation of a sweep. Runs with equal identities, points and seed numbers are equal, so
/// seeds can be added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// SHA-256 over the other fields and the scenario of every point, traces included.
    pub hash: String,
    /// Version of ropewalk.
    pub version: String,
    /// The scenario without varied keys, with all values given explicitly.
    pub scenario: String,
    /// Each axis as `key=v1,v2`.
    pub vary: Vec<String>,
}

impl Identity {
    /// The identity of a grid. Reads and checks every point.
    ///
    /// # Errors
    /// The first point that is not a valid scenario, or that equals another.
    pub(super) fn of(grid: &Grid) -> Result<Self, SweepError> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let scenario = grid.base().to_toml();
        let vary: Vec<String> = grid.axes().iter().map(super::Axis::text).collect();
        let mut all = Sha256::new();
        for text in [&version, &scenario].into_iter().chain(&vary) {
            add(&mut all, text.as_bytes());
        }
        let mut points = BTreeSet::new();
        for point in 0..grid.points() {
            let digest = digest_of(&grid.scenario(point)?);
            all.update(digest);
            if !points.insert(digest) {
                return Err(same_point(grid, point));
            }
        }
        let hash = all.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { hash, version, scenario, vary })
    }

    /// Describes how `other` differs.
    pub(super) fn difference(&self, other: &Self) -> String {
        if self.version != other.version {
            return format!("it is of version {}, this is {}", other.version, self.version);
        }
        if self.vary != other.vary {
            let [theirs, ours] = [&other.vary, &self.vary].map(|vary| vary.join(" --vary "));
            return format!("it has --vary {theirs}, this one --vary {ours}");
        }
        let lines = other.scenario.lines().zip(self.scenario.lines());
        match lines.into_iter().find(|(theirs, ours)| theirs != ours) {
            Some((theirs, ours)) => format!("its scenario has `{theirs}`, this one `{ours}`"),
            None => "its scenario, or a file that it names, was different".to_owned(),
        }
    }
}

fn same_point(grid: &Grid, point: usize) -> SweepError {
    let values = grid.axes().iter().zip(grid.indices(point));
    let values: Vec<String> = values.map(|(axis, index)| axis.set(index)).collect();
    let message = format!("--vary {}: this point equals another", values.join(" "));
    let help =
        "vary only keys that have their own effect: one of these cancels the effect of another";
    SweepError::input(message, help)
}

/// Digest of a scenario: its text, and the contents of the traces that it names.
fn digest_of(scenario: &Scenario) -> [u8; 32] {
    let mut digest = Sha256::new();
    add(&mut digest, scenario.to_toml().as_bytes());
    let paths = scenario.paths.iter().flat_map(|path| [&path.up, &path.down]);
    let links = scenario.links.iter().flat_map(|link| [&link.up, &link.down]);
    for side in paths.chain(links) {
        if let Capacity::Trace(trace) = &side.capacity {
            for at in &trace.opportunities {
                digest.update(at.as_nanos().to_le_bytes());
            }
        }
    }
    digest.finalize().into()
}

fn add(digest: &mut Sha256, bytes: &[u8]) {
    digest.update((bytes.len() as u64).to_le_bytes());
    digest.update(bytes);
}
