//! Paired comparison of variants with a reference, seed by seed. Effects of the seed cancel, so that smaller
//! differences become significant.

use serde::Serialize;

use super::{Compared, estimate};
use crate::result::RunResult;

/// A variant compared with the reference, over the seeds for which both runs succeeded.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Paired {
    /// Label of the variant.
    pub label: String,
    /// Label of the reference variant.
    pub reference: String,
    /// Number of seeds that count.
    pub pairs: usize,
    /// Change of the goodput.
    pub goodput: Option<Change>,
    /// Change of the mean delay between the applications.
    pub app_delay_mean: Option<Change>,
    /// Change of the 99th percentile of that delay.
    pub app_delay_p99: Option<Change>,
    /// Change of the peak of the receive buffer.
    pub receive_buffer_max: Option<Change>,
}

/// Relative difference of a figure from the reference: 0.1 means 10 % more. It is computed from the mean of the
/// logarithms of the ratios, with a 95 % interval by Student's t distribution.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Change {
    /// Mean relative difference.
    pub mean: f64,
    /// Lower end of the 95 % interval; null for a single pair.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval; null for a single pair.
    pub high: Option<f64>,
    /// Number of pairs in which the figure is larger than the reference's.
    pub larger: usize,
    /// Number of pairs in which the figure is smaller than the reference's.
    pub smaller: usize,
}

impl Change {
    /// Computes the change from pairs (figure, reference). `None` if there are no pairs, or if a value is not
    /// positive.
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

/// Compares each other variant with `reference`, in the order of `runs`.
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
        // Each pair has 10 % more, so differences between the seeds cancel.
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
