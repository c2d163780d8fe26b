//! A histogram with fixed relative precision and a weight per value: delays, and occupancy over time.

/// Binary logarithm of the sub-buckets per power of two: values are exact to 1/64, that is 1.6 %, and
/// quantiles to half that.
const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;

/// Weighted counts of `u64` values in buckets 1.6 % wide. Mean and maximum are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Weight of the value 0, which is common and far from the others.
    zero: u64,
    /// Number of the first bucket. Buckets below it are not stored: values seldom span many powers of two,
    /// and memory matters with thousands of histograms.
    first: usize,
    buckets: Vec<u64>,
    total_weight: u64,
    sum: u128,
    max: u64,
}

#[inline]
fn bucket_of(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - SUB_BITS;
    ((shift as u64 + 1) * SUB + ((value >> shift) - SUB)) as usize
}

/// The middle of a bucket.
fn middle_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUB {
        return bucket;
    }
    let shift = bucket / SUB - 1;
    ((bucket % SUB + SUB) << shift) + ((1u64 << shift) >> 1)
}

/// The contents of a [`Histogram`], for storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramParts {
    /// Weight of the value 0.
    pub zero: u64,
    /// Number of the first stored bucket.
    pub first: usize,
    /// Weights of the stored buckets.
    pub buckets: Vec<u64>,
    /// Sum of all values times their weights.
    pub sum: u128,
    /// Largest value.
    pub max: u64,
}

impl From<HistogramParts> for Histogram {
    fn from(HistogramParts { zero, first, buckets, sum, max }: HistogramParts) -> Self {
        let total_weight = buckets.iter().fold(zero, |total, weight| total.saturating_add(*weight));
        Self { zero, first, buckets, total_weight, sum, max }
    }
}

impl Histogram {
    /// The contents, from which an equal histogram can be made.
    pub fn parts(&self) -> HistogramParts {
        let Self { zero, first, ref buckets, total_weight: _, sum, max } = *self;
        HistogramParts { zero, first, buckets: buckets.clone(), sum, max }
    }

    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts `value` once.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.add_weighted(value, 1);
    }

    /// Counts `value` with a weight, for example the nanoseconds that the value lasted.
    #[inline]
    pub fn add_weighted(&mut self, value: u64, weight: u64) {
        if value == 0 {
            self.zero += weight;
        } else {
            *self.bucket_mut(bucket_of(value)) += weight;
        }
        self.total_weight += weight;
        self.sum += value as u128 * weight as u128;
        if weight > 0 && value > self.max {
            self.max = value;
        }
    }

    /// The counter of a bucket, which is created if necessary.
    #[inline]
    fn bucket_mut(&mut self, bucket: usize) -> &mut u64 {
        // A bucket below the first one wraps around to a large index.
        if bucket.wrapping_sub(self.first) >= self.buckets.len() {
            self.make(bucket);
        }
        &mut self.buckets[bucket - self.first]
    }

    #[cold]
    fn make(&mut self, bucket: usize) {
        if self.buckets.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let missing = self.first - bucket;
            self.buckets.reserve_exact(missing);
            self.buckets.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = bucket;
        }
        if bucket - self.first >= self.buckets.len() {
            // Reserve exactly: with thousands of histograms, doubled capacity would matter.
            let more = bucket - self.first + 1 - self.buckets.len();
            self.buckets.reserve_exact(more.next_multiple_of(SUB as usize / 2));
            self.buckets.resize(bucket - self.first + 1, 0);
        }
    }

    /// Adds all values that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.zero += other.zero;
        for (at, weight) in other.buckets.iter().enumerate().filter(|(_, weight)| **weight > 0) {
            *self.bucket_mut(other.first + at) += weight;
        }
        self.total_weight += other.total_weight;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Sum of the weights; with [`Histogram::add`], the number of values.
    pub const fn total_weight(&self) -> u64 {
        self.total_weight
    }

    /// Largest value counted; 0 if none.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// For each of `bounds`, in ascending order, the weight of the values that do not exceed it. A bound within a
    /// bucket counts all of the bucket if it is not below the bucket's middle.
    pub fn weights_up_to<const N: usize>(&self, bounds: &[u64; N]) -> [u64; N] {
        let mut weights = [0; N];
        let (mut seen, mut at) = (self.zero, 0);
        for (weight, bound) in weights.iter_mut().zip(bounds) {
            while at < self.buckets.len() && middle_of(self.first + at) <= *bound {
                seen += self.buckets[at];
                at += 1;
            }
            *weight = seen;
        }
        weights
    }

    /// The values counted, ascending and to 0.8 %, each with the weight of all values up to it. The last one is exact.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let zero = (self.zero > 0).then_some((0, self.zero));
        let counted = self.buckets.iter().enumerate().filter(|(_, weight)| **weight > 0);
        let others = counted.scan(self.zero, |seen, (at, weight)| {
            *seen += weight;
            let last = *seen == self.total_weight;
            let value = if last { self.max } else { middle_of(self.first + at) };
            Some((value, *seen))
        });
        zero.into_iter().chain(others)
    }

    /// Weighted mean; 0 if nothing was counted.
    pub fn mean(&self) -> f64 {
        if self.total_weight == 0 { 0.0 } else { self.sum as f64 / self.total_weight as f64 }
    }

    /// The value that a share `q` of the weight does not exceed, to 0.8 %; 0 if nothing was counted.
    ///
    /// # Panics
    /// If `q` is not in `[0, 1]`.
    pub fn quantile(&self, q: f64) -> u64 {
        assert!((0.0..=1.0).contains(&q), "{q} is not a share");
        let wanted = (q * self.total_weight as f64).ceil() as u64;
        let mut seen = self.zero;
        if seen > 0 && seen >= wanted {
            return 0;
        }
        for (at, weight) in self.buckets.iter().enumerate() {
            seen += weight;
            if *weight > 0 && seen >= wanted {
                return middle_of(self.first + at).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_own_middle_and_is_narrow() {
        for value in (0..5_000).chain([1 << 20, (1 << 40) + 12_345, u64::MAX / 3]) {
            let middle = middle_of(bucket_of(value));
            assert_eq!(bucket_of(middle), bucket_of(value));
            assert!(
                middle.abs_diff(value) as f64 <= value as f64 / 64.0,
                "{value} became {middle}"
            );
        }
    }

    #[test]
    fn quantiles_of_a_uniform_ramp_lie_where_they_should() {
        let mut h = Histogram::new();
        (1..=100_000).for_each(|v| h.add(v));
        for q in [0.01, 0.5, 0.99] {
            let want = q * 100_000.0;
            assert!((h.quantile(q) as f64 - want).abs() < want * 0.01, "quantile {q}");
        }
        assert_eq!(h.max(), 100_000);
        assert_eq!(h.mean(), 50_000.5);
    }

    #[test]
    fn the_cumulative_weights_agree_with_the_quantiles() {
        let mut h = Histogram::new();
        assert_eq!(h.cumulative().count(), 0);
        [0, 0, 7, 1_000, 1_003, 1 << 30].iter().for_each(|v| h.add(*v));
        let steps: Vec<_> = h.cumulative().collect();
        assert_eq!(steps.first(), Some(&(0, 2)));
        assert_eq!(steps.last(), Some(&(1 << 30, 6)));
        assert!(steps.is_sorted());
        for (value, weight) in &steps[..steps.len() - 1] {
            assert_eq!(h.quantile(*weight as f64 / 6.0), *value);
        }
    }

    #[test]
    fn weights_up_to_bounds_are_cumulative() {
        let mut h = Histogram::new();
        [0, 0, 5, 63, 1_000, 1 << 30].iter().for_each(|v| h.add(*v));
        assert_eq!(h.weights_up_to(&[0, 4, 5, 100, 1 << 20, u64::MAX]), [2, 2, 3, 4, 5, 6]);
        assert_eq!(Histogram::new().weights_up_to(&[1, 2]), [0, 0]);
    }

    #[test]
    fn order_and_merging_do_not_matter() {
        let values = [0, 900, 3, 1 << 40, 0, 17, 900, 64];
        let (mut up, mut down, mut halves) = (Histogram::new(), Histogram::new(), Histogram::new());
        values.iter().for_each(|v| up.add(*v));
        values.iter().rev().for_each(|v| down.add(*v));
        for half in values.chunks(4) {
            let mut part = Histogram::new();
            half.iter().for_each(|v| part.add(*v));
            halves.merge(&part);
        }
        assert_eq!(up, down);
        assert_eq!(up, halves);
        assert_eq!((up.quantile(0.2), up.quantile(0.3), up.quantile(1.0)), (0, 3, 1 << 40));
    }

    #[test]
    fn weights_count_as_repetitions() {
        let (mut weighted, mut repeated) = (Histogram::new(), Histogram::new());
        weighted.add_weighted(7, 3);
        weighted.add_weighted(900, 2);
        [7, 7, 7, 900, 900].iter().for_each(|v| repeated.add(*v));
        assert_eq!(weighted, repeated);
    }
}
