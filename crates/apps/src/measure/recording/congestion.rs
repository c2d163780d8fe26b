//! Losses of a full queue, distinguished from others by the delay of the packets around them.
//!
//! A queue drops packets when it is full, that is when the round-trip time is longest. Other losses do not depend on
//! the round-trip time: the round-trip times around them are distributed like all others. Fisher's method
//! (Statistical Methods for Research Workers, 21.1) decides: for each loss, the share of the round-trip times that
//! are at least as long as the one before it is distributed evenly, unless the queue drops.

use std::collections::BTreeMap;

use crate::measure::estimate::quantile;

/// Maximum probability that the losses follow long round trips by chance.
const CHANCE: f64 = 1e-3;
/// The same for losses in bursts, as when a sender overruns the queue at its start, and the size of such a burst.
const CHANCE_OF_BURSTS: f64 = 0.01;
const BURST: usize = 8;
/// Minimum delay of a full queue that can be detected, seconds: the clock of TCP's timestamps counts
/// milliseconds.
const LEAST_DELAY_S: f64 = 2e-3;
/// A queue counts as full from this share of its delay on.
const NEARLY_FULL: f64 = 0.8;

/// A delay that a packet shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// When the packet was at the capture, nanoseconds.
    pub at_ns: u64,
    pub delay_s: f64,
    /// Its size, bytes.
    pub bytes: u32,
}

impl Sample {
    pub fn new(at_ns: u64, delay_ns: u64, bytes: u32) -> Self {
        Self { at_ns, delay_s: delay_ns as f64 * 1e-9, bytes }
    }
}

/// A unit of data.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitSent {
    /// When it passed the queue, as far as is known, nanoseconds.
    pub at_ns: u64,
    pub lost: bool,
}

/// Properties of a queue that overflows.
#[derive(Debug, PartialEq)]
pub(super) struct FullQueue {
    /// Its delay when it is full, seconds.
    pub delay_s: f64,
    /// The units that were lost while it was full.
    pub drops: usize,
    /// Whether each of the other units, sent while the queue was not full, was lost.
    pub others: Vec<bool>,
}

/// The delays at one queue: times, nanoseconds, and delays, seconds.
#[derive(Debug, Default)]
pub(super) struct Delays {
    samples: Vec<(u64, f64)>,
    /// The delays, seconds, with the sizes of the packets, bytes.
    sizes: Vec<(f64, u32)>,
    /// Delays above the minimum, ascending.
    rises: Vec<f64>,
}

impl Delays {
    pub fn new(all: &[Sample]) -> Self {
        let least = all.iter().map(|one| one.delay_s).fold(f64::INFINITY, f64::min);
        let mut samples: Vec<(u64, f64)> =
            all.iter().map(|one| (one.at_ns, one.delay_s - least)).collect();
        samples.sort_by_key(|(time, _)| *time);
        let mut rises: Vec<f64> = samples.iter().map(|(_, rise)| *rise).collect();
        rises.sort_by(f64::total_cmp);
        let sizes = all.iter().map(|one| (one.delay_s, one.bytes)).collect();
        Self { samples, sizes, rises }
    }

    /// The minimum delay, excluding the time that a packet takes to enter a link of this rate, seconds; a rate of 0
    /// includes it. Zero without samples.
    pub fn least_s(&self, rate_bps: f64) -> f64 {
        let entering =
            |bytes: u32| if rate_bps > 0.0 { f64::from(bytes) * 8.0 / rate_bps } else { 0.0 };
        let all = self.sizes.iter().map(|(delay, bytes)| delay - entering(*bytes));
        all.reduce(f64::min).unwrap_or(0.0)
    }

    /// Range of the delay, excluding the longest hundredth of the samples, seconds.
    pub fn range_s(&self) -> f64 {
        if self.rises.is_empty() { 0.0 } else { quantile(&self.rises, 0.99) }
    }

    /// The last sample before a time: its number and its delay above the minimum.
    fn before(&self, at_ns: u64) -> Option<(usize, f64)> {
        let next = self.samples.partition_point(|(time, _)| *time <= at_ns);
        let place = next.max(1) - 1;
        self.samples.get(place).map(|(_, rise)| (place, *rise))
    }

    /// The share of the samples that are at least as long.
    fn share_above(&self, rise: f64) -> f64 {
        let below = self.rises.partition_point(|one| *one < rise);
        (self.rises.len() - below) as f64 / self.rises.len() as f64
    }

    /// The delay of the full queue, if losses show one.
    fn full(&self, units: &[UnitSent]) -> Option<f64> {
        // Losses after the same sample are one event.
        let mut events = BTreeMap::<usize, (f64, usize)>::new();
        let lost = units.iter().filter(|unit| unit.lost);
        for (place, rise) in lost.filter_map(|unit| self.before(unit.at_ns)) {
            events.entry(place).or_insert((rise, 0)).1 += 1;
        }
        let events: Vec<(f64, usize)> = events.into_values().collect();
        [(1, CHANCE), (BURST, CHANCE_OF_BURSTS)].into_iter().find_map(|(least, chance)| {
            let rises: Vec<f64> = events
                .iter()
                .filter(|(_, losses)| *losses >= least)
                .map(|(rise, _)| *rise)
                .collect();
            let surprise: f64 = rises.iter().map(|rise| -self.share_above(*rise).ln()).sum();
            let high = rises.iter().copied().filter(|rise| *rise >= NEARLY_FULL * self.range_s());
            let high: Vec<f64> = high.collect();
            let is_full = gamma_tail(rises.len(), surprise) < chance && !high.is_empty();
            is_full.then(|| quantile(&high, 0.5))
        })
    }

    /// Divides the units into those that passed the queue while it was full, and others. `None` if no losses belong
    /// to a full queue.
    pub fn full_queue(&self, units: &[UnitSent]) -> Option<FullQueue> {
        let delay_s = self.full(units).filter(|delay| *delay >= LEAST_DELAY_S)?;
        let is_full = |unit: &UnitSent| {
            self.before(unit.at_ns).is_some_and(|(_, rise)| rise >= NEARLY_FULL * delay_s)
        };
        let mut drops: Vec<u64> =
            units.iter().filter(|unit| unit.lost && is_full(unit)).map(|unit| unit.at_ns).collect();
        drops.sort_unstable();
        // A sender that overruns the queue loses packets for a while, not all of them next to a sample.
        let near_ns = (delay_s * 1e9) as u64;
        let is_near_drop = |unit: &UnitSent| {
            let next = drops.partition_point(|at| *at < unit.at_ns);
            let around = [next.checked_sub(1), Some(next)].into_iter().flatten();
            around.filter_map(|place| drops.get(place)).any(|at| at.abs_diff(unit.at_ns) <= near_ns)
        };
        let is_queues = |unit: &&UnitSent| is_full(unit) || unit.lost && is_near_drop(unit);
        let (full, others): (Vec<&UnitSent>, Vec<_>) = units.iter().partition(is_queues);
        Some(FullQueue {
            delay_s,
            drops: full.iter().filter(|unit| unit.lost).count(),
            others: others.iter().map(|unit| unit.lost).collect(),
        })
    }
}

/// The probability that the sum of `count` exponential variables of mean 1 is at least `sum`.
fn gamma_tail(count: usize, sum: f64) -> f64 {
    if count == 0 || sum <= 0.0 {
        return 1.0;
    }
    // Term by term from its logarithm: the first ones may be smaller than the smallest number.
    let mut log_term = -sum;
    let mut tail = 0.0;
    for k in 1..=count {
        tail += log_term.exp();
        log_term += (sum / k as f64).ln();
    }
    tail
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_tail_of_the_gamma_distribution_is_exact() {
        // Poisson: fewer than `count` events where `sum` are expected.
        for (count, sum, expected) in [
            (0, 1.0, 1.0),
            (1, 2.0, (-2.0_f64).exp()),
            (2, 1.0, 2.0 * (-1.0_f64).exp()),
            (5, 0.0, 1.0),
            (1000, 500.0, 1.0),
            (1000, 2000.0, 0.0),
        ] {
            let found = gamma_tail(count, sum);
            assert!((found - expected).abs() < 1e-9, "{count} {sum}: {found}");
        }
    }

    const MS: u64 = 1_000_000;

    fn delays_of(all: impl Iterator<Item = (u64, f64)>) -> Delays {
        let samples: Vec<Sample> =
            all.map(|(at_ns, delay_s)| Sample { at_ns, delay_s, bytes: 1500 }).collect();
        Delays::new(&samples)
    }

    /// The delays of a sender that fills a queue of 50 ms repeatedly, and those of a queue that is never full.
    fn saw(number: u64, period: u64) -> f64 {
        0.02 + 0.05 * (number % period) as f64 / period as f64
    }

    proptest! {
        #[test]
        fn losses_at_the_top_are_the_queues_and_others_are_not(
            period in 50_u64..400, every in 37_u64..300, count in 3_u64..40,
        ) {
            let delays = |numbers: std::ops::Range<u64>| {
                delays_of(numbers.map(|n| (n * MS, saw(n, period))))
            };
            let units = |is_lost: &dyn Fn(u64) -> bool| -> Vec<UnitSent> {
                let all = 0..period * count;
                all.map(|n| UnitSent { at_ns: n * MS + 1, lost: is_lost(n) }).collect()
            };
            let dropped = units(&|n| n % period == period - 1);
            let found = delays(0..period * count).full_queue(&dropped).expect("a full queue");
            prop_assert!((found.delay_s - 0.05).abs() < 0.0025, "{}", found.delay_s);
            prop_assert_eq!(found.drops as u64, count);
            prop_assert!(found.others.iter().all(|lost| !lost));
            // Both kinds: the rate of the others is right.
            let is_random = |n: u64| (n as u32).wrapping_mul(0x9e37_79b1) < u32::MAX / every as u32;
            let both = units(&|n| n % period == period - 1 || is_random(n));
            if let Some(found) = delays(0..period * count).full_queue(&both) {
                let lost = found.others.iter().filter(|lost| **lost).count();
                // Losses within 50 ms of a drop count as drops.
                let near = 50.0 / period as f64;
                let most = found.others.len() as f64 / every as f64;
                let least = (most * (1.0 - 2.0 * near)).max(0.0);
                let noise = 3.0 * most.sqrt() + 3.0;
                prop_assert!((least - noise..=most + noise).contains(&(lost as f64)), "{lost} of {most}");
            }
        }

        #[test]
        fn losses_that_do_not_depend_on_the_delay_are_rarely_taken_for_drops(seed in any::<u64>()) {
            let mut state = seed | 1;
            let mut draw = move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            let delays = delays_of((0..5000).map(|n| (n * 1000, saw(n, 100))));
            let mut taken = 0;
            for _ in 0..20 {
                let units: Vec<UnitSent> = (0..5000)
                    .map(|n| UnitSent { at_ns: n * 1000 + 1, lost: draw() % 100 == 0 })
                    .collect();
                taken += usize::from(delays.full_queue(&units).is_some());
            }
            prop_assert!(taken <= 1, "{taken} of 20");
        }
    }
}
