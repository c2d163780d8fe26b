//! Rankings of schedulers over several matches.

use std::collections::BTreeSet;

use serde::Serialize;

use super::aggregation::{Aggregation, ReturnTraffic};
use super::bootstrap::{Spread, spreads};
use super::{KEPT_SHARE, Match, MatchEntry, NEAR_BEST};

/// All schedulers over some matches, ordered by score.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Ranking {
    /// The setting of the matches; null for all settings.
    pub setting: Option<String>,
    /// The protocol of the matches; null for all settings.
    pub protocol: Option<String>,
    /// The number of paths of the matches; null for all numbers.
    pub paths: Option<usize>,
    /// Number of matches.
    pub matches: usize,
    /// The schedulers, by descending score.
    pub ranks: Vec<Rank>,
}

/// A scheduler over some matches. Means are geometric: a ratio that is doubled in one match and halved in
/// another cancels. A failed match makes them 0.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Rank {
    /// The scheduler.
    pub scheduler: String,
    /// Mean of the score, 0 to 1: goodput divided by the best, times the best delay (99th percentile) divided
    /// by the scheduler's.
    pub score: f64,
    /// Bootstrap intervals of score and rank. None for a single scenario.
    pub spread: Option<Spread>,
    /// Mean of goodput divided by the best goodput, 0 to 1.
    pub goodput: f64,
    /// Mean of the best delay divided by the scheduler's, 0 to 1.
    pub delay: f64,
    /// Matches in which the goodput is within 5 % of the best.
    pub near_goodput: usize,
    /// Matches in which the best delay is at least 95 % of the scheduler's.
    pub near_delay: usize,
    /// Matches in which the goodput is within 5 % of the best, and the best delay among the schedulers with
    /// such goodput is at least 95 % of the scheduler's. A scheduler that leaves slow paths unused has short
    /// delays and is no reference for one that uses them.
    pub near_both: usize,
    /// Matches with the highest score, shared ones included.
    pub wins: usize,
    /// Matches with at least 98 % of the goodput of the best single path; null if a match has no single path
    /// for comparison.
    pub kept: Option<usize>,
    /// The match with the lowest goodput relative to the best single path.
    pub worst_gain: Option<Worst>,
    /// Mean of goodput divided by that of the best path alone.
    pub gain: Option<f64>,
    /// Goodput compared with that of the paths alone; null if a match has only one path, or if all of these runs failed.
    pub aggregation: Option<Aggregation>,
    /// The same over the matches whose receive buffer is at least twice the sum of the bandwidth-delay products.
    pub aggregation_ample: Option<Aggregation>,
    /// What acknowledgements take of the return paths; null if all runs failed.
    pub return_traffic: Option<ReturnTraffic>,
    /// Matches in which a run failed.
    pub failed: usize,
    /// The match with the lowest goodput relative to the best.
    pub worst_goodput: Worst,
    /// The match with the longest delay relative to the best.
    pub worst_delay: Worst,
}

/// The match with a scheduler's worst ratio to the best.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Worst {
    /// Name of the scenario.
    pub scenario: String,
    /// The setting.
    pub setting: String,
    /// The protocol.
    pub protocol: String,
    /// Ratio to the best, 0 to 1; above 1 if it exceeds every single path.
    pub ratio: f64,
}

/// The ranking over all matches; with several settings or numbers of paths, also one for each.
pub(super) fn rankings(matches: &[Match]) -> Vec<Ranking> {
    let mut settings: Vec<&str> = Vec::new();
    for one in matches {
        if !settings.contains(&one.setting.as_str()) {
            settings.push(&one.setting);
        }
    }
    let paths: BTreeSet<usize> = matches.iter().map(|one| one.paths).collect();
    let all: Vec<&Match> = matches.iter().collect();
    let of = |is: &dyn Fn(&Match) -> bool| -> Vec<&Match> {
        matches.iter().filter(|one| is(one)).collect()
    };
    let mut rankings = vec![ranking(None, None, &all)];
    if settings.len() > 1 {
        let each = settings.into_iter();
        rankings.extend(each.map(|s| ranking(Some(s), None, &of(&|one| one.setting == s))));
    }
    if paths.len() > 1 {
        let each = paths.into_iter();
        rankings.extend(each.map(|n| ranking(None, Some(n), &of(&|one| one.paths == n))));
    }
    rankings
}

fn ranking(setting: Option<&str>, paths: Option<usize>, matches: &[&Match]) -> Ranking {
    let mut names: Vec<&str> = Vec::new();
    for entry in matches.iter().flat_map(|one| &one.entries) {
        if !names.contains(&entry.scheduler.as_str()) {
            names.push(&entry.scheduler);
        }
    }
    let spreads = spreads(&names, matches);
    let mut ranks: Vec<Rank> = names.into_iter().filter_map(|name| rank(name, matches)).collect();
    for (rank, spread) in ranks.iter_mut().zip(spreads.unwrap_or_default()) {
        rank.spread = Some(spread);
    }
    // The sort is stable: equal schedulers keep their order.
    ranks.sort_by(|a, b| b.score.total_cmp(&a.score));
    let protocol = matches.first().filter(|_| setting.is_some()).map(|one| one.protocol.clone());
    let setting = setting.map(str::to_owned);
    Ranking { setting, protocol, paths, matches: matches.len(), ranks }
}

/// The rank of a scheduler over its matches. `None` if it took part in no match.
fn rank(name: &str, matches: &[&Match]) -> Option<Rank> {
    let own = matches.iter().filter_map(|one| {
        let entry = one.entries.iter().find(|entry| entry.scheduler == name)?;
        Some((*one, entry))
    });
    let own: Vec<(&Match, &MatchEntry)> = own.collect();
    let count =
        |is: &dyn Fn(&Match, &MatchEntry) -> bool| own.iter().filter(|(m, e)| is(m, e)).count();
    let mean = |of: fn(&MatchEntry) -> f64| geometric_mean(own.iter().map(|(_, entry)| of(entry)));
    let gains: Option<Vec<f64>> = own.iter().map(|(_, entry)| gain(entry)).collect();
    let least = own.iter().filter_map(|(one, entry)| Some((*one, gain(entry)?)));
    let least = least.min_by(|(_, a), (_, b)| a.total_cmp(b));
    let is_ample = |(one, _): &(&Match, &MatchEntry)| one.has_ample_buffer();
    let ample: Vec<(&Match, &MatchEntry)> = own.iter().copied().filter(is_ample).collect();
    Some(Rank {
        scheduler: name.to_owned(),
        score: mean(MatchEntry::score),
        spread: None,
        goodput: mean(|entry| entry.goodput_ratio),
        delay: mean(|entry| entry.delay_ratio),
        near_goodput: count(&|_, entry| goodput_order(entry)),
        near_delay: count(&|_, entry| entry.delay_ratio >= 1.0 - NEAR_BEST),
        near_both: count(&is_quick_among_those_that_carry_most),
        wins: count(&|one, entry| {
            entry.score() > 0.0 && one.entries.iter().all(|other| other.score() <= entry.score())
        }),
        kept: gains.as_ref().map(|gains| gains.iter().filter(|gain| **gain >= KEPT_SHARE).count()),
        worst_gain: least.map(|(one, gain)| Worst::of(one, gain)),
        gain: gains.map(|gains| geometric_mean(gains.into_iter())),
        aggregation: Aggregation::of(&own),
        aggregation_ample: Aggregation::of(&ample),
        return_traffic: ReturnTraffic::of(&own),
        failed: count(&|_, entry| !entry.failures.is_empty()),
        worst_goodput: worst(&own, |entry| entry.goodput_ratio)?,
        worst_delay: worst(&own, |entry| entry.delay_ratio)?,
    })
}

/// Whether the goodput is within 5 % of the best.
fn goodput_order(entry: &MatchEntry) -> bool {
    entry.goodput_ratio >= 1.0 - NEAR_BEST
}

fn is_quick_among_those_that_carry_most(one: &Match, entry: &MatchEntry) -> bool {
    let rivals = one.entries.iter().filter(|rival| goodput_order(rival));
    let best = rivals.map(|rival| rival.delay_ratio).fold(0.0, f64::max);
    goodput_order(entry) && entry.delay_ratio >= (1.0 - NEAR_BEST) * best
}

/// Goodput divided by that of the best path: 0 if a run failed, `None` if no path was run alone.
pub(super) fn gain(entry: &MatchEntry) -> Option<f64> {
    if entry.failures.is_empty() { Some(entry.gain?.mean) } else { Some(0.0) }
}

fn worst(own: &[(&Match, &MatchEntry)], of: fn(&MatchEntry) -> f64) -> Option<Worst> {
    let (at, entry) = own.iter().min_by(|(_, a), (_, b)| of(a).total_cmp(&of(b)))?;
    Some(Worst::of(at, of(entry)))
}

impl Worst {
    pub(super) fn of(at: &Match, ratio: f64) -> Self {
        let [scenario, setting, protocol] =
            [&at.scenario, &at.setting, &at.protocol].map(Clone::clone);
        Self { scenario, setting, protocol, ratio }
    }
}

/// The geometric mean of ratios; 0 if one of them is 0.
fn geometric_mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) =
        ratios.fold((0_u32, 0.0), |(count, sum), ratio| (count + 1, sum + ratio.ln()));
    (sum / f64::from(count.max(1))).exp()
}
