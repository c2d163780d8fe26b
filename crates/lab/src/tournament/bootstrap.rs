//! Confidence of a ranking, by bootstrap over the scenarios (Efron and Tibshirani, An Introduction to the
//! Bootstrap, 1993, percentile intervals).

use std::collections::BTreeMap;

use ropewalk_base::Seed;
use serde::Serialize;

use super::{Match, MatchEntry};

/// Number of bootstrap samples.
const RESAMPLES: usize = 2000;

/// Positions of the ends of a 95 % interval among the sorted samples.
const LOW: usize = RESAMPLES / 40;
const HIGH: usize = RESAMPLES - 1 - RESAMPLES / 40;

/// 95 % intervals of a scheduler's score and rank, and the confidence in its first rank.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Spread {
    /// Score, 0 to 1: lower and upper end.
    pub score: [f64; 2],
    /// Rank, 1 for the best: lower and upper end.
    pub place: [usize; 2],
    /// Share of the samples in which it ranks first, 0 to 1.
    pub first: f64,
}

/// The spread of each of `names`, in order. `None` for a single scenario. A sample consists of scenarios
/// with all of their matches, because matches of the same scenario under two protocols are not independent.
pub fn spreads(names: &[&str], matches: &[&Match]) -> Option<Vec<Spread>> {
    let mut groups: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for one in matches {
        let of = |name: &&str| one.entries.iter().find(|entry| entry.scheduler == **name);
        let scores =
            names.iter().map(|name| of(name).map_or(0.0, MatchEntry::score).ln()).collect();
        groups.entry(&one.scenario).or_default().push(scores);
    }
    let groups: Vec<Vec<Vec<f64>>> = groups.into_values().collect();
    if groups.len() < 2 {
        return None;
    }
    let mut rng = Seed::root(0).child("bootstrap").rng();
    let mut scores = vec![Vec::with_capacity(RESAMPLES); names.len()];
    let mut places = vec![Vec::with_capacity(RESAMPLES); names.len()];
    for _ in 0..RESAMPLES {
        let (mut sums, mut count) = (vec![0.0; names.len()], 0.0);
        for _ in 0..groups.len() {
            for one in &groups[rng.below(groups.len() as u64) as usize] {
                sums.iter_mut().zip(one).for_each(|(sum, score)| *sum += score);
                count += 1.0;
            }
        }
        for (i, sum) in sums.iter().enumerate() {
            scores[i].push((sum / count).exp());
            places[i].push(1 + sums.iter().filter(|other| *other > sum).count());
        }
    }
    let each = scores.into_iter().zip(places);
    let spread = |(mut scores, mut places): (Vec<f64>, Vec<usize>)| {
        scores.sort_by(f64::total_cmp);
        places.sort_unstable();
        let first = places.iter().take_while(|place| **place == 1).count();
        Spread {
            score: [scores[LOW], scores[HIGH]],
            place: [places[LOW], places[HIGH]],
            first: first as f64 / RESAMPLES as f64,
        }
    };
    Some(each.map(spread).collect())
}

/// 95 % interval of the mean of all values, by resampling `groups` of values that belong together. `None` for a
/// single group.
pub fn interval(groups: &[Vec<f64>]) -> Option<[f64; 2]> {
    if groups.len() < 2 {
        return None;
    }
    let sums: Vec<(f64, f64)> =
        groups.iter().map(|group| (group.iter().sum(), group.len() as f64)).collect();
    let mut rng = Seed::root(0).child("bootstrap of a mean").rng();
    let mut means = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let (mut sum, mut count) = (0.0, 0.0);
        for _ in 0..sums.len() {
            let (own, values) = sums[rng.below(sums.len() as u64) as usize];
            sum += own;
            count += values;
        }
        means.push(sum / count);
    }
    means.sort_by(f64::total_cmp);
    Some([means[LOW], means[HIGH]])
}
