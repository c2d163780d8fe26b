//! Means with confidence intervals.

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

/// Mean and 95 % confidence interval of independent values, by Student's t distribution
/// (Student, Biometrika 6(1), 1908); none without values.
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let count = values.len();
    if count == 0 {
        return None;
    }
    if count == 1 {
        return Some(Estimate { mean: values[0], half_width: None });
    }
    let (mean, deviation) = mean_and_deviation(values);
    let half_width = student_quantile(0.975, count - 1) * deviation / (count as f64).sqrt();
    Some(Estimate { mean, half_width: Some(half_width) })
}

/// Mean and sample standard deviation of two values or more.
pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count as f64;
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
        assert_eq!(estimate(&[]), None);
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
