//! Means with confidence intervals.

use ropewalk_base::statistics;
use serde::Serialize;

/// A mean over several runs.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval; null for a single run.
    pub half_width: Option<f64>,
}

/// The same as [`estimate`]; 0 without values.
pub fn mean(values: impl Iterator<Item = f64>) -> Estimate {
    let values: Vec<f64> = values.collect();
    estimate(&values).unwrap_or(Estimate { mean: 0.0, half_width: None })
}

/// Mean and 95 % confidence interval of independent values, by Student's t distribution (Student,
/// Biometrika 6(1), 1908). `None` if there are no values.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let count = values.len();
    if count == 0 {
        return None;
    }
    if count == 1 {
        return Some(Estimate { mean: values[0], half_width: None });
    }
    // Rounding of the sum would give equal values a nonzero interval.
    if values.iter().all(|value| *value == values[0]) {
        return Some(Estimate { mean: values[0], half_width: Some(0.0) });
    }
    let (mean, deviation) = mean_and_deviation(values);
    let half_width = student_quantile(0.975, count - 1) * deviation / (count as f64).sqrt();
    Some(Estimate { mean, half_width: Some(half_width) })
}

/// The mean of the first values divided by the mean of the second, with a 95 % confidence interval from the
/// residuals (ratio estimator; Cochran, Sampling Techniques, 1977, 6.4). `None` if there are no pairs, or if the
/// second mean is not above zero.
pub(crate) fn ratio_of_means(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let own = statistics::mean(pairs.iter().map(|(own, _)| own));
    let reference = statistics::mean(pairs.iter().map(|(_, reference)| reference));
    if reference.is_nan() || reference <= 0.0 {
        return None;
    }
    let ratio = own / reference;
    let residuals = pairs.iter().map(|(own, other)| (own - ratio * other) / reference);
    let half_width = estimate(&residuals.collect::<Vec<_>>())?.half_width;
    Some(Estimate { mean: ratio, half_width })
}

/// How many of several cases have a property.
#[derive(Clone, Copy, Debug, Serialize, PartialEq)]
pub struct Proportion {
    /// Number of cases that have it.
    pub count: usize,
    /// Number of all cases.
    pub of: usize,
    /// Their quotient, 0 to 1.
    pub share: f64,
    /// 95 % confidence interval of the share for independent cases: lower and upper end.
    pub interval: [f64; 2],
}

impl Proportion {
    /// `count` of at least one case; the interval is Wilson's (Journal of the American Statistical Association 22,
    /// 1927).
    pub fn new(count: usize, of: usize) -> Self {
        // The 97.5 % quantile of the normal distribution.
        const Z: f64 = 1.959_963_985;
        let (n, share) = (of as f64, count as f64 / of as f64);
        let denominator = 1.0 + Z * Z / n;
        let centre = (share + Z * Z / (2.0 * n)) / denominator;
        let half = Z / denominator * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        let interval = [(centre - half).max(0.0), (centre + half).min(1.0)];
        Self { count, of, share, interval }
    }
}

/// Mean and sample standard deviation of two values or more.
pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len();
    let mean = statistics::mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (count - 1) as f64).sqrt())
}

/// Quantile of Student's t distribution for a probability above 1/2. The distribution function is a finite sum
/// for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4) and is inverted by bisection.
pub(crate) fn student_quantile(probability: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if student_probability_below(middle, freedom) < probability {
            low = middle
        } else {
            high = middle
        }
    }
    f64::midpoint(low, high)
}

/// Probability of a value below `t`, which must not be negative.
fn student_probability_below(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    // 1 + 2/3 cos^2 + 2*4/(3*5) cos^4 ... or 1 + 1/2 cos^2 + 1*3/(2*4) cos^4 ...
    let (mut term, mut sum) = (1.0, 0.0);
    for k in 0..freedom.saturating_sub(usize::from(odd)) / 2 {
        sum += term;
        let k = k as f64;
        let ratio =
            if odd { (2.0 * k + 2.0) / (2.0 * k + 3.0) } else { (2.0 * k + 1.0) / (2.0 * k + 2.0) };
        term *= ratio * cosine * cosine;
    }
    let within =
        if odd { std::f64::consts::FRAC_2_PI * (angle + sine * cosine * sum) } else { sine * sum };
    0.5 + within / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_comes_with_its_interval() {
        let three = estimate(&[1.0, 2.0, 3.0]).expect("values");
        assert_eq!(three.mean, 2.0);
        // s = 1, n = 3: 4.3027 / sqrt(3).
        assert!((three.half_width.expect("three runs") - 2.4842).abs() < 1e-4);
        assert_eq!(estimate(&[5.0]), Some(Estimate { mean: 5.0, half_width: None }));
        assert_eq!(estimate(&[4.0; 9]), Some(Estimate { mean: 4.0, half_width: Some(0.0) }));
        assert_eq!(estimate(&[0.1; 3]), Some(Estimate { mean: 0.1, half_width: Some(0.0) }));
        assert_eq!(estimate(&[]), None);
    }

    #[test]
    fn a_ratio_of_means_is_not_the_mean_of_ratios() {
        let pairs = [(2.0, 1.0), (2.0, 3.0)];
        let ratio = ratio_of_means(&pairs).expect("pairs");
        assert_eq!(ratio.mean, 1.0);
        // Residuals 0.5 and -0.5: deviation 0.7071, t(1) = 12.7062, over the root of 2.
        assert!((ratio.half_width.expect("two pairs") - 6.3531).abs() < 1e-3, "{ratio:?}");
        assert_eq!(ratio_of_means(&[(3.0, 2.0)]), Some(Estimate { mean: 1.5, half_width: None }));
        let alike = ratio_of_means(&[(2.0, 1.0), (20.0, 10.0)]).expect("pairs");
        assert_eq!(alike, Estimate { mean: 2.0, half_width: Some(0.0) });
        assert_eq!((ratio_of_means(&[]), ratio_of_means(&[(1.0, 0.0)])), (None, None));
    }

    #[test]
    fn intervals_of_proportions_are_those_of_the_literature() {
        // Newcombe, Statistics in Medicine 17, 1998, table I, method 3.
        for (count, of, expected) in [
            (81, 263, [0.2553, 0.3662]),
            (15, 148, [0.0624, 0.1605]),
            (0, 20, [0.0, 0.1611]),
            (1, 29, [0.0061, 0.1718]),
        ] {
            let found = Proportion::new(count, of);
            let near = |at: usize| (found.interval[at] - expected[at]).abs() < 1e-4;
            assert!(near(0) && near(1), "{found:?}");
        }
        assert_eq!(Proportion::new(20, 20).interval[1], 1.0);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, freedom, printed) in [
            (0.975, 1, 12.7062),
            (0.975, 2, 4.3027),
            (0.975, 9, 2.2622),
            (0.975, 30, 2.0423),
            (0.995, 4, 4.6041),
            (0.975, 31, 2.0395),
            (0.975, 60, 2.0003),
            (0.975, 120, 1.9799),
            (0.9995, 10, 4.5869),
        ] {
            let found = student_quantile(probability, freedom);
            assert!((found - printed).abs() < 1e-4, "{probability} {freedom}: {found}");
        }
    }
}
