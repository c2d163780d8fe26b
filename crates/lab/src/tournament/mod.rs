//! Compares all schedulers on several scenarios and protocols, and ranks them.

mod bootstrap;
mod figures;
mod rank;

use ropewalk_scenario::{Protocol, Scenario};
use serde::Serialize;

pub use figures::{FailedRun, MatchEntry, RunFigures};
pub use rank::{Rank, Ranking, Worst};

use crate::compare::{CompareOptions, Compared, Variant, compare};
use crate::custom_schedulers::CustomSchedulers;

/// Relative difference from the best up to which a result counts as equal.
pub const NEAR_BEST: f64 = 0.05;

/// Share of the best single path's goodput from which it counts as kept. The rest is random, such as which
/// packets are lost.
pub const KEPT_SHARE: f64 = 0.98;

/// A scenario under a protocol, with the variant for each scheduler.
#[derive(Clone, Debug)]
pub struct MatchConfig {
    /// The scenario's name.
    pub scenario: String,
    /// The protocol.
    pub protocol: Protocol,
    /// The participants in order: a label, such as the scheduler's name, and the scenario to run.
    pub participants: Vec<(String, Scenario)>,
}

/// Options of a tournament.
#[derive(Clone, Debug)]
pub struct TournamentOptions {
    /// Runs of each participant, with consecutive seeds that begin at its scenario's. At least 1.
    pub seeds: u64,
    /// Number of threads; the results do not depend on it. At least 1.
    pub threads: usize,
    /// The custom schedulers that the scenarios may select by name.
    pub custom_schedulers: CustomSchedulers,
}

/// A tournament, `ropewalk.tournament/1`.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Tournament {
    schema: &'static str,
    /// Number of runs of each scheduler in each match.
    pub seeds: u64,
    /// Relative difference from the best up to which a result counts as near.
    pub near: f64,
    /// Share of the best single path's goodput from which it counts as kept.
    pub kept: f64,
    /// Each scenario under each protocol.
    pub matches: Vec<Match>,
    /// Rankings over all matches; also for each protocol and for each number of paths, if there are several.
    pub rankings: Vec<Ranking>,
}

/// A scenario under a protocol.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Match {
    /// The scenario's name.
    pub scenario: String,
    /// The protocol.
    pub protocol: String,
    /// The preset of the protocol.
    pub preset: String,
    /// Number of paths.
    pub paths: usize,
    /// Each scheduler, in the order given.
    pub entries: Vec<MatchEntry>,
}

/// Runs all matches. `on_progress` is called from any thread with the completed share, 0 to 1. Failed runs are part of
/// the result.
pub fn tournament(
    match_configs: &[MatchConfig],
    options: &TournamentOptions,
    on_progress: &(dyn Fn(f64) + Sync),
) -> Tournament {
    let TournamentOptions { seeds, threads, custom_schedulers } = options.clone();
    let all = match_configs.iter().flat_map(|match_config| &match_config.participants);
    let variants: Vec<Variant> = all
        .map(|(label, scenario)| Variant { label: label.clone(), scenario: scenario.clone() })
        .collect();
    // One batch for all matches, so that no core waits for the last run of a scenario.
    let options = CompareOptions {
        seeds,
        threads,
        series: false,
        sequence: None,
        single_paths: true,
        custom_schedulers,
    };
    let runs = compare(&variants, &options, on_progress);
    let mut groups = runs.chunks(seeds.max(1) as usize);
    let matches: Vec<Match> =
        match_configs.iter().map(|match_config| play(match_config, &mut groups)).collect();
    let rankings = rank::rankings(&matches);
    Tournament {
        schema: "ropewalk.tournament/1",
        seeds,
        near: NEAR_BEST,
        kept: KEPT_SHARE,
        matches,
        rankings,
    }
}

fn play<'a>(
    match_config: &MatchConfig,
    groups: &mut impl Iterator<Item = &'a [Compared]>,
) -> Match {
    let participants = match_config.participants.iter().zip(groups);
    let mut entries: Vec<MatchEntry> =
        participants.map(|((label, _), runs)| MatchEntry::new(label.clone(), runs)).collect();
    figures::set_ratios(&mut entries);
    let first = match_config.participants.first().map(|(_, scenario)| scenario);
    let preset = first.map(|scenario| scenario.transfer.preset.to_string());
    Match {
        scenario: match_config.scenario.clone(),
        protocol: match_config.protocol.to_string(),
        preset: preset.unwrap_or_default(),
        paths: first.map_or(0, |scenario| scenario.paths.len()),
        entries,
    }
}

#[cfg(test)]
mod tests;
