//! Who is good everywhere.

use std::collections::BTreeSet;

use serde::Serialize;

use super::bootstrap::{Spread, spreads};
use super::{Entry, KEPT, Match, NEAR};

/// All schedulers over some matches, the best first.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Ranking {
    /// The protocol of the matches; null for all.
    pub protocol: Option<String>,
    /// The number of paths of the matches; null for any.
    pub paths: Option<usize>,
    /// How many matches.
    pub matches: usize,
    /// The schedulers, by descending score.
    pub ranks: Vec<Rank>,
}

/// A scheduler over some matches. Means are geometric: a ratio that is twice as good in one match
/// and half as good in another cancels, whatever the rates of the two; one failed match makes them 0.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Rank {
    /// The scheduler.
    pub scheduler: String,
    /// Mean of goodput over the best goodput times best delay over delay (99th percentile), 0 to 1.
    pub score: f64,
    /// How far score and place can be trusted: the scenarios drawn again from themselves. None of a single scenario.
    pub spread: Option<Spread>,
    /// Mean of goodput over the best goodput, 0 to 1.
    pub goodput: f64,
    /// Mean of the best delay over its delay, 0 to 1.
    pub delay: f64,
    /// Matches in which its goodput is within 5 % of the best.
    pub near_goodput: usize,
    /// Matches in which its delay is: the best is at least 95 % of it.
    pub near_delay: usize,
    /// Matches in which its goodput is within 5 % of the best, and its delay of the best delay among all
    /// whose goodput is: who leaves slow paths alone is quick, but no measure for who does not.
    pub near_both: usize,
    /// Matches in which its score is the best, alone or with others.
    pub wins: usize,
    /// Matches in which it carries at least 98 % of what the best of their paths does alone; null where one of them
    /// has no single path to compare with.
    pub kept: Option<usize>,
    /// Where it carries least beside the best path.
    pub worst_gain: Option<Worst>,
    /// Mean of its goodput over that of the best path alone.
    pub gain: Option<f64>,
    /// Matches in which a run failed.
    pub failed: usize,
    /// Where its goodput is farthest behind the best.
    pub worst_goodput: Worst,
    /// Where its delay is.
    pub worst_delay: Worst,
}

/// A match in which a scheduler is far from the best.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Worst {
    /// The scenario's name.
    pub scenario: String,
    /// The protocol.
    pub protocol: String,
    /// How good it is beside the best, 0 to 1; above 1 where it beats every single path.
    pub ratio: f64,
}

/// The ranking over all matches; if they are of several protocols or numbers of paths, also one for each.
pub(super) fn rankings(matches: &[Match]) -> Vec<Ranking> {
    let mut protocols: Vec<&str> = Vec::new();
    for one in matches {
        if !protocols.contains(&one.protocol.as_str()) {
            protocols.push(&one.protocol);
        }
    }
    let paths: BTreeSet<usize> = matches.iter().map(|one| one.paths).collect();
    let all: Vec<&Match> = matches.iter().collect();
    let of = |is: &dyn Fn(&Match) -> bool| -> Vec<&Match> {
        matches.iter().filter(|one| is(one)).collect()
    };
    let mut rankings = vec![ranking(None, None, &all)];
    if protocols.len() > 1 {
        let each = protocols.into_iter();
        rankings.extend(each.map(|p| ranking(Some(p), None, &of(&|one| one.protocol == p))));
    }
    if paths.len() > 1 {
        let each = paths.into_iter();
        rankings.extend(each.map(|n| ranking(None, Some(n), &of(&|one| one.paths == n))));
    }
    rankings
}

fn ranking(protocol: Option<&str>, paths: Option<usize>, matches: &[&Match]) -> Ranking {
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
    // Stable: equal ones stay in the order given.
    ranks.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ranking { protocol: protocol.map(str::to_owned), paths, matches: matches.len(), ranks }
}

/// A scheduler over the matches that it is in; none if it is in none.
fn rank(name: &str, matches: &[&Match]) -> Option<Rank> {
    let own = matches.iter().filter_map(|one| {
        let entry = one.entries.iter().find(|entry| entry.scheduler == name)?;
        Some((*one, entry))
    });
    let own: Vec<(&Match, &Entry)> = own.collect();
    let count = |is: &dyn Fn(&Match, &Entry) -> bool| own.iter().filter(|(m, e)| is(m, e)).count();
    let mean = |of: fn(&Entry) -> f64| geometric_mean(own.iter().map(|(_, entry)| of(entry)));
    let gains: Option<Vec<f64>> = own.iter().map(|(_, entry)| gain(entry)).collect();
    let least = own.iter().filter_map(|(one, entry)| Some((*one, gain(entry)?)));
    let least = least.min_by(|(_, a), (_, b)| a.total_cmp(b));
    Some(Rank {
        scheduler: name.to_owned(),
        score: mean(Entry::score),
        spread: None,
        goodput: mean(|entry| entry.goodput_ratio),
        delay: mean(|entry| entry.delay_ratio),
        near_goodput: count(&|_, entry| carries_most(entry)),
        near_delay: count(&|_, entry| entry.delay_ratio >= 1.0 - NEAR),
        near_both: count(&is_quick_among_those_that_carry_most),
        wins: count(&|one, entry| {
            entry.score() > 0.0 && one.entries.iter().all(|other| other.score() <= entry.score())
        }),
        kept: gains.as_ref().map(|gains| gains.iter().filter(|gain| **gain >= KEPT).count()),
        worst_gain: least.map(|(one, gain)| Worst::of(one, gain)),
        gain: gains.map(|gains| geometric_mean(gains.into_iter())),
        failed: count(&|_, entry| !entry.failures.is_empty()),
        worst_goodput: worst(&own, |entry| entry.goodput_ratio)?,
        worst_delay: worst(&own, |entry| entry.delay_ratio)?,
    })
}

/// Whether its goodput is within 5 % of the best.
fn carries_most(entry: &Entry) -> bool {
    entry.goodput_ratio >= 1.0 - NEAR
}

fn is_quick_among_those_that_carry_most(one: &Match, entry: &Entry) -> bool {
    let rivals = one.entries.iter().filter(|rival| carries_most(rival));
    let best = rivals.map(|rival| rival.delay_ratio).fold(0.0, f64::max);
    carries_most(entry) && entry.delay_ratio >= (1.0 - NEAR) * best
}

/// Its goodput over that of the best path; 0 if one of its runs failed, none if no path was run alone.
fn gain(entry: &Entry) -> Option<f64> {
    if entry.failures.is_empty() { Some(entry.gain?.mean) } else { Some(0.0) }
}

fn worst(own: &[(&Match, &Entry)], of: fn(&Entry) -> f64) -> Option<Worst> {
    let (at, entry) = own.iter().min_by(|(_, a), (_, b)| of(a).total_cmp(&of(b)))?;
    Some(Worst::of(at, of(entry)))
}

impl Worst {
    fn of(at: &Match, ratio: f64) -> Self {
        Self { scenario: at.scenario.clone(), protocol: at.protocol.clone(), ratio }
    }
}

/// The geometric mean of ratios, 0 if one of them is.
fn geometric_mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) =
        ratios.fold((0_u32, 0.0), |(count, sum), ratio| (count + 1, sum + ratio.ln()));
    (sum / f64::from(count.max(1))).exp()
}
