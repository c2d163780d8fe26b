//! Every scheduler against every other, on several scenarios and protocols: who wins where, and who
//! is good everywhere.

mod bootstrap;
mod figures;
mod rank;

use ropewalk_scenario::{Protocol, Scenario};
use serde::Serialize;

pub use figures::{Entry, FailedRun, RunFigures};
pub use rank::{Rank, Ranking, Worst};

use crate::compare::{CompareOptions, Compared, Variant, compare};

/// Within so much of the best counts as being as good as the best.
pub const NEAR: f64 = 0.05;

/// So much of the goodput of the best single path counts as keeping it; what is missing is chance, such as which
/// packets are lost.
pub const KEPT: f64 = 0.98;

/// A scenario under a protocol, as each scheduler runs it.
#[derive(Clone, Debug)]
pub struct Course {
    /// The scenario's name.
    pub scenario: String,
    /// The protocol.
    pub protocol: Protocol,
    /// Who takes part, in this order: a label, such as the scheduler's name, and what it is to run.
    pub entrants: Vec<(String, Scenario)>,
}

/// How to play.
#[derive(Clone, Copy, Debug)]
pub struct TournamentOptions {
    /// Runs of each entrant: with its scenario's seed, and with those that follow. At least 1.
    pub seeds: u64,
    /// Threads; the results do not depend on it. At least 1.
    pub threads: usize,
}

/// A tournament, `ropewalk.tournament/1`.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Tournament {
    schema: &'static str,
    /// Runs of each scheduler in each match.
    pub seeds: u64,
    /// Within so much of the best counts as near, as a share.
    pub near: f64,
    /// From such a share of the best single path's goodput on it counts as kept.
    pub kept: f64,
    /// Each scenario under each protocol.
    pub matches: Vec<Match>,
    /// Over all matches; over those of each protocol if there are several; and over those of each number of
    /// paths if there are several.
    pub rankings: Vec<Ranking>,
}

/// A scenario under a protocol.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Match {
    /// The scenario's name.
    pub scenario: String,
    /// The protocol.
    pub protocol: String,
    /// Its rules.
    pub preset: String,
    /// How many paths it has.
    pub paths: usize,
    /// Each scheduler, in the order given.
    pub entries: Vec<Entry>,
}

/// Plays all courses; `told` hears, from any thread, which share of it is over, 0 to 1. A run that
/// fails is kept as such.
pub fn tournament(
    courses: &[Course],
    options: &TournamentOptions,
    told: &(dyn Fn(f64) + Sync),
) -> Tournament {
    let TournamentOptions { seeds, threads } = *options;
    let all = courses.iter().flat_map(|course| &course.entrants);
    let variants: Vec<Variant> = all
        .map(|(label, scenario)| Variant { label: label.clone(), scenario: scenario.clone() })
        .collect();
    // One batch for all, so that no core waits for the last run of a scenario.
    let options =
        CompareOptions { seeds, threads, series: false, sequence: None, single_paths: true };
    let runs = compare(&variants, &options, told);
    let mut groups = runs.chunks(seeds.max(1) as usize);
    let matches: Vec<Match> = courses.iter().map(|course| played(course, &mut groups)).collect();
    let rankings = rank::rankings(&matches);
    Tournament { schema: "ropewalk.tournament/1", seeds, near: NEAR, kept: KEPT, matches, rankings }
}

fn played<'a>(course: &Course, groups: &mut impl Iterator<Item = &'a [Compared]>) -> Match {
    let entrants = course.entrants.iter().zip(groups);
    let mut entries: Vec<Entry> =
        entrants.map(|((label, _), runs)| Entry::new(label.clone(), runs)).collect();
    figures::relate(&mut entries);
    let first = course.entrants.first().map(|(_, scenario)| scenario);
    let preset = first.map(|scenario| scenario.transfer.preset.to_string());
    Match {
        scenario: course.scenario.clone(),
        protocol: course.protocol.to_string(),
        preset: preset.unwrap_or_default(),
        paths: first.map_or(0, |scenario| scenario.paths.len()),
        entries,
    }
}

#[cfg(test)]
mod tests;
