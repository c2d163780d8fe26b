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
    let half_width = t_975(count - 1) * deviation / (count as f64).sqrt();
    Some(Estimate { mean, half_width: Some(half_width) })
}

/// Mean and sample standard deviation of two values or more.
pub(crate) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (count - 1) as f64).sqrt())
}

/// 97.5 % quantiles of Student's t with 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010,
    2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687,
    2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
];

/// The quantile for any number of degrees of freedom from 1.
fn t_975(freedom: usize) -> f64 {
    if let Some(quantile) = T_975.get(freedom - 1) {
        return *quantile;
    }
    // Beyond the table, the first terms of the expansion in 1/n are exact to four digits (Cornish
    // and Fisher, 1938; Abramowitz and Stegun 26.7.5).
    let z = 1.959_964_f64;
    let n = freedom as f64;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / n + second / (n * n)
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
    fn the_quantiles_go_on_smoothly_beyond_the_table() {
        // Values of printed tables.
        for (freedom, quantile) in [(30, 2.0423), (31, 2.0395), (60, 2.0003), (120, 1.9799)] {
            assert!((t_975(freedom) - quantile).abs() < 1e-4, "{freedom}: {}", t_975(freedom));
        }
        assert!((1..200).all(|n| t_975(n) > t_975(n + 1)));
    }
}
