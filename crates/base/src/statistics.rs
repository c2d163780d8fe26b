//! Means, and moments of pairs of values: how far two series vary together.

use core::borrow::Borrow;

/// Arithmetic mean; 0 without values.
pub fn mean<T: Borrow<f64>>(values: impl IntoIterator<Item = T>) -> f64 {
    let mut count = 0_u32;
    let sum: f64 = values.into_iter().inspect(|_| count += 1).map(|value| *value.borrow()).sum();
    sum / f64::from(count.max(1))
}

/// Means, variances and covariance of pairs, updated pair by pair (Welford's algorithm).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairMoments {
    count: u32,
    mean: (f64, f64),
    /// Sums of squared distances from the mean.
    squares: (f64, f64),
    /// Sum of the products of both distances.
    products: f64,
}

impl PairMoments {
    /// Adds a pair.
    pub fn add(&mut self, x: f64, y: f64) {
        self.count += 1;
        let count = f64::from(self.count);
        let (dx, dy) = (x - self.mean.0, y - self.mean.1);
        self.mean.0 += dx / count;
        self.mean.1 += dy / count;
        self.squares.0 += dx * (x - self.mean.0);
        self.squares.1 += dy * (y - self.mean.1);
        self.products += dx * (y - self.mean.1);
    }

    /// Number of pairs.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Standard deviations of both series; 0 without pairs.
    pub fn deviations(&self) -> (f64, f64) {
        let count = f64::from(self.count.max(1));
        ((self.squares.0 / count).sqrt(), (self.squares.1 / count).sqrt())
    }

    /// Pearson's correlation coefficient, -1 to 1: to what extent one series is a linear function of the other. 0
    /// if one of them is constant.
    pub fn correlation(&self) -> f64 {
        let scale = (self.squares.0 * self.squares.1).sqrt();
        if scale > 0.0 { self.products / scale } else { 0.0 }
    }

    /// The part of both variances that is common, -1 to 1: `2 cov / (var x + var y)`, the concordance correlation of
    /// Lin (1989) without its term for the means. Unlike [`correlation`](Self::correlation), it is small if both
    /// series vary together but by different amounts. 0 if both are constant.
    pub fn concordance(&self) -> f64 {
        let scale = self.squares.0 + self.squares.1;
        if scale > 0.0 { 2.0 * self.products / scale } else { 0.0 }
    }
}

impl FromIterator<(f64, f64)> for PairMoments {
    fn from_iter<I: IntoIterator<Item = (f64, f64)>>(pairs: I) -> Self {
        let mut moments = Self::default();
        pairs.into_iter().for_each(|(x, y)| moments.add(x, y));
        moments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_part_counts_by_its_share_of_both_variances() {
        let series = |scale: f64, offset: f64| {
            (0..100).map(move |i| ((i % 10) as f64, scale * (i % 10) as f64 + offset))
        };
        for (scale, offset, correlation, concordance) in [
            (1.0, 0.0, 1.0, 1.0),
            (1.0, 1e6, 1.0, 1.0),
            (3.0, 0.0, 1.0, 0.6),
            (-1.0, 0.0, -1.0, -1.0),
            (0.0, 5.0, 0.0, 0.0),
        ] {
            let moments: PairMoments = series(scale, offset).collect();
            let found = (moments.correlation(), moments.concordance());
            assert!((found.0 - correlation).abs() < 1e-9, "{scale}: {found:?}");
            assert!((found.1 - concordance).abs() < 1e-9, "{scale}: {found:?}");
            assert!((moments.deviations().0 - 8.25_f64.sqrt()).abs() < 1e-9);
            assert_eq!(moments.count(), 100);
        }
    }

    #[test]
    fn constant_series_and_no_pairs_have_nothing_in_common() {
        let constant: PairMoments = [(1.0, 2.0); 5].into_iter().collect();
        for moments in [constant, PairMoments::default()] {
            assert_eq!((moments.correlation(), moments.concordance()), (0.0, 0.0));
        }
    }
}
