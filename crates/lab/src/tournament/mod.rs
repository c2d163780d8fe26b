//! Compares all schedulers on several scenarios and protocols, and ranks them.

mod aggregation;
mod bootstrap;
mod figures;
mod rank;

use ropewalk_scenario::{LinkSide, Path, Protocol, Scenario};
use serde::Serialize;

pub use aggregation::{Aggregation, RatioMean, ReturnTraffic};
pub use figures::{FailedRun, MatchEntry, RunFigures, SinglePath};
pub use rank::{Rank, Ranking, Worst};

use crate::compare::{CompareOptions, Compared, Variant, compare};
use crate::custom_schedulers::CustomSchedulers;

/// Relative difference from the best up to which a result counts as equal.
pub const NEAR_BEST: f64 = 0.05;

/// Share of the best single path's goodput from which it counts as kept. The rest is random, such as which
/// packets are lost.
pub const KEPT_SHARE: f64 = 0.98;

/// Share of the best single path's goodput below which a bundle is clearly worse.
pub const BELOW_SHARE: f64 = 0.95;

/// Receive buffer divided by the sum of the bandwidth-delay products, from which it counts as ample.
pub const AMPLE_BUFFER: f64 = 2.0;

/// A scenario under a protocol, with the variant for each scheduler.
#[derive(Clone, Debug)]
pub struct MatchConfig {
    /// The scenario's name.
    pub scenario: String,
    /// Name of the setting: protocol, preset and order.
    pub setting: String,
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
    /// Rankings over all matches; also for each setting and for each number of paths, if there are several.
    pub rankings: Vec<Ranking>,
}

/// A scenario under a protocol.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Match {
    /// The scenario's name.
    pub scenario: String,
    /// The setting: the name of the protocol, or of the preset and the order.
    pub setting: String,
    /// The protocol.
    pub protocol: String,
    /// The preset of the protocol.
    pub preset: String,
    /// Number of paths.
    pub paths: usize,
    /// The receive buffer.
    pub receive_buffer_bytes: u64,
    /// Sum of the paths' rates times their round trips.
    pub bandwidth_delay_bytes: u64,
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
        setting: match_config.setting.clone(),
        protocol: match_config.protocol.to_string(),
        preset: preset.unwrap_or_default(),
        paths: first.map_or(0, |scenario| scenario.paths.len()),
        receive_buffer_bytes: first.map_or(0, |scenario| scenario.transfer.receive_buffer),
        bandwidth_delay_bytes: first.map_or(0, bandwidth_delay_bytes),
        entries,
    }
}

impl Match {
    /// Whether the receive buffer is at least twice the sum of the bandwidth-delay products.
    pub fn has_ample_buffer(&self) -> bool {
        self.receive_buffer_bytes as f64 >= AMPLE_BUFFER * self.bandwidth_delay_bytes as f64
    }
}

/// The sum of the paths' bandwidth-delay products, with the mean rate of a trace.
fn bandwidth_delay_bytes(scenario: &Scenario) -> u64 {
    let product = |path: &Path| {
        let shared = path.via.iter().map(|link| &scenario.links[*link]);
        let delay = |up: &LinkSide, down: &LinkSide| (up.delay + down.delay).as_secs_f64();
        let rtt_s = shared.fold(delay(&path.up, &path.down), |s, l| s + delay(&l.up, &l.down));
        path.up.capacity.mean_rate().as_bps() as f64 * rtt_s / 8.0
    };
    scenario.paths.iter().map(product).sum::<f64>() as u64
}

#[cfg(test)]
mod tests;
