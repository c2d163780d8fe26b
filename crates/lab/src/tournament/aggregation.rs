//! Aggregation over paths: the goodput of a scheduler compared with that of each path alone.

use std::collections::BTreeMap;

use ropewalk_base::statistics::mean;
use serde::Serialize;

use super::bootstrap::interval;
use super::rank::{Worst, gain};
use super::{BELOW_SHARE, KEPT_SHARE, Match, MatchEntry};
use crate::compare::{Estimate, Proportion};

/// Goodput of a scheduler over some matches, compared with that of the paths alone. The goodput of a match is the mean
/// over its seeds, and 0 if a run failed.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Aggregation {
    /// Matches with at least 98 % of the goodput of the best single path. The interval is too narrow if scenarios take part
    /// under several settings.
    pub kept: Proportion,
    /// Matches with less than 95 % of it.
    pub below: usize,
    /// The match with the lowest goodput relative to the best single path.
    pub worst: Worst,
    /// Geometric mean of the goodput divided by that of the best single path.
    pub of_best: RatioMean,
    /// Mean of the goodput divided by the sum of the goodputs of all paths alone, over the matches in which no run of a path
    /// alone failed; null without such matches.
    pub of_sum: Option<RatioMean>,
}

/// A mean over matches.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct RatioMean {
    /// The mean.
    pub mean: f64,
    /// Bootstrap interval of 95 %: lower and upper end; null for a single scenario.
    pub interval: Option<[f64; 2]>,
}

/// What acknowledgements take of the return paths, over some matches.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct ReturnTraffic {
    /// Mean of the bytes carried in the return direction, divided by the user data acknowledged.
    pub share: f64,
    /// The highest of these shares.
    pub share_max: f64,
    /// Mean utilisation of the return path that is used most.
    pub utilisation: f64,
    /// The highest of these utilisations.
    pub utilisation_max: f64,
}

impl Aggregation {
    /// The aggregation of one scheduler over its matches. `None` if there are no matches, or if a match has no
    /// single path for comparison.
    pub(super) fn of(own: &[(&Match, &MatchEntry)]) -> Option<Self> {
        let gains = own.iter().map(|(one, entry)| Some((*one, gain(entry)?)));
        let gains: Vec<(&Match, f64)> = gains.collect::<Option<_>>()?;
        let (at, least) = gains.iter().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let count = |is: &dyn Fn(f64) -> bool| gains.iter().filter(|(_, gain)| is(*gain)).count();
        let of_sum = |entry: &MatchEntry| match entry.failures.is_empty() {
            true => entry.of_sum,
            false => Some(0.0),
        };
        let sums = own.iter().filter_map(|(one, entry)| Some((*one, of_sum(entry)?)));
        let sums: Vec<(&Match, f64)> = sums.collect();
        let logarithms: Vec<_> = gains.iter().map(|(one, gain)| (*one, gain.ln())).collect();
        Some(Self {
            kept: Proportion::new(count(&|gain| gain >= KEPT_SHARE), gains.len()),
            below: count(&|gain| gain < BELOW_SHARE),
            worst: Worst::of(at, *least),
            of_best: RatioMean::of(&logarithms).map(f64::exp),
            of_sum: (!sums.is_empty()).then(|| RatioMean::of(&sums)),
        })
    }
}

impl RatioMean {
    /// The mean of at least one value.
    fn of(values: &[(&Match, f64)]) -> Self {
        let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (one, value) in values {
            groups.entry(&one.scenario).or_default().push(*value);
        }
        let mean = mean(values.iter().map(|(_, value)| value));
        Self { mean, interval: interval(&groups.into_values().collect::<Vec<_>>()) }
    }

    fn map(self, function: fn(f64) -> f64) -> Self {
        Self { mean: function(self.mean), interval: self.interval.map(|ends| ends.map(function)) }
    }
}

impl ReturnTraffic {
    /// The return traffic of one scheduler over its matches. `None` if no match has these figures.
    pub(super) fn of(own: &[(&Match, &MatchEntry)]) -> Option<Self> {
        let figure = |column: &str| -> Vec<f64> {
            let means = own.iter().filter_map(|(_, entry)| *entry.figures.get(column));
            means.map(|Estimate { mean, .. }| mean).collect()
        };
        let (shares, used) = (figure("return_share"), figure("return_utilisation"));
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        (!shares.is_empty() && !used.is_empty()).then(|| Self {
            share: mean(&shares),
            share_max: most(&shares),
            utilisation: mean(&used),
            utilisation_max: most(&used),
        })
    }
}
