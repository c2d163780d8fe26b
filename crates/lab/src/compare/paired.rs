//! Variants beside one of them, seed by seed: what both meet alike cancels, so that a smaller difference shows.

use serde::Serialize;

use super::{Compared, estimate};
use crate::result::RunResult;

/// A variant beside the reference, over the seeds with which both came to their end.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Paired {
    /// The variant.
    pub label: String,
    /// What it stands beside.
    pub reference: String,
    /// Seeds that count.
    pub pairs: usize,
    /// Goodput.
    pub goodput: Option<Change>,
    /// Mean delay between the applications.
    pub app_delay_mean: Option<Change>,
    /// 99th percentile of it.
    pub app_delay_p99: Option<Change>,
    /// Peak of the receive buffer.
    pub receive_buffer_max: Option<Change>,
}

/// How much larger a figure is than the reference's, as a fraction of that: 0.1 for 10 % more. The mean of the logarithms of
/// the ratios, with a 95 % interval by Student's t distribution.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Change {
    /// In the mean.
    pub mean: f64,
    /// Lower end of the interval; null for a single pair.
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
    /// Pairs in which the figure is larger than the reference's.
    pub larger: usize,
    /// Pairs in which it is smaller.
    pub smaller: usize,
}

impl Change {
    /// Of pairs of a figure and the reference's; none without pairs, or where one of them is not above zero.
    fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let ratios: Option<Vec<f64>> = pairs
            .iter()
            .map(|(own, reference)| {
                (*own > 0.0 && *reference > 0.0).then(|| (own / reference).ln())
            })
            .collect();
        let logarithm = estimate(&ratios?)?;
        let fraction = |logarithm: f64| logarithm.exp_m1();
        let end = |sign: f64| {
            logarithm.half_width.map(|half| fraction(sign.mul_add(half, logarithm.mean)))
        };
        Some(Self {
            mean: fraction(logarithm.mean),
            low: end(-1.0),
            high: end(1.0),
            larger: pairs.iter().filter(|(own, reference)| own > reference).count(),
            smaller: pairs.iter().filter(|(own, reference)| own < reference).count(),
        })
    }
}

/// Each variant but `reference` beside it, in the order of `runs`.
pub fn paired(runs: &[Compared], reference: &str) -> Vec<Paired> {
    let mut labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
    labels.dedup();
    labels.retain(|label| *label != reference);
    let of = |label: &str| -> Vec<(u64, &RunResult)> {
        let own = runs.iter().filter(|run| run.label == label);
        own.filter_map(|run| Some((run.scenario.transfer.seed, &run.outcome.as_ref().ok()?.result)))
            .collect()
    };
    let base = of(reference);
    let one = |label: &str| {
        let pairs: Vec<(&RunResult, &RunResult)> = of(label)
            .into_iter()
            .filter_map(|(seed, own)| {
                base.iter().find(|(other, _)| *other == seed).map(|(_, base)| (own, *base))
            })
            .collect();
        let change = |figure: fn(&RunResult) -> f64| {
            let values: Vec<(f64, f64)> =
                pairs.iter().map(|(own, base)| (figure(own), figure(base))).collect();
            Change::of(&values)
        };
        Paired {
            label: label.to_owned(),
            reference: reference.to_owned(),
            pairs: pairs.len(),
            goodput: change(|result| result.goodput_bps),
            app_delay_mean: change(|result| result.app_delay_s.mean),
            app_delay_p99: change(|result| result.app_delay_s.p99),
            receive_buffer_max: change(|result| result.receive_buffer.max_bytes as f64),
        }
    };
    labels.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_the_mean_of_the_ratios_and_its_interval_is_that_of_their_logarithms() {
        let change = Change::of(&[(2.0, 1.0), (1.0, 2.0)]).expect("pairs");
        assert!(change.mean.abs() < 1e-12, "twice and half cancel");
        assert_eq!((change.larger, change.smaller), (1, 1));
        // Differences between the seeds cancel: each pair has 10 % more.
        let steady = Change::of(&[(1.1, 1.0), (110.0, 100.0), (5.5, 5.0)]).expect("pairs");
        assert!((steady.mean - 0.1).abs() < 1e-12);
        assert!((steady.low.expect("three") - 0.1).abs() < 1e-9);
        // ln 1.1 and ln 1.3: mean 0.17884, deviation 0.11813, t(1) = 12.7062, over the root of 2.
        let wide = Change::of(&[(1.1, 1.0), (1.3, 1.0)]).expect("pairs");
        assert!((wide.low.expect("two") - ((0.178_837_f64 - 1.061_3).exp() - 1.0)).abs() < 1e-3);
    }

    #[test]
    fn one_pair_has_no_interval_and_a_figure_of_zero_no_ratio() {
        let one = Change::of(&[(3.0, 2.0)]).expect("a pair");
        assert_eq!((one.low, one.high), (None, None));
        assert_eq!(Change::of(&[(0.0, 1.0), (1.0, 1.0)]), None);
        assert_eq!(Change::of(&[]), None);
    }
}
