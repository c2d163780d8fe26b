//! Delays of an idle link: their distribution, jitter and reordering.

use ropewalk_base::statistics::mean;

use super::Probe;
use super::statistics::quantile;

/// Distribution of the one-way delays of a link that is nearly idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delays {
    /// Smallest delay plus the offset of the clocks, seconds.
    pub least_s: f64,
    /// Median, 95th and 99th percentile above the smallest delay, seconds.
    pub above_s: [f64; 3],
    /// Mean difference of successive delays, seconds (the quantity that RFC 3550, 6.4.1, smooths).
    pub jitter_s: f64,
    /// Share of the probes that arrived after one that was sent later (RFC 4737, 3.3).
    pub reordered: f64,
    /// Mean time by which these were late, seconds.
    pub reordered_by_s: f64,
    /// The distribution that the simulator should add.
    pub fit: JitterFit,
    /// Number of probes that arrived.
    pub samples: usize,
}

/// A distribution of jitter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JitterFit {
    /// Uniform from 0 to this, seconds.
    Uniform(f64),
    /// Exponential with this mean, seconds.
    Exponential(f64),
}

/// Position of the median between the 10th and the 90th percentile: 0.5 for a uniform and 0.27 for an exponential
/// distribution. The limit is in the middle.
const UNIFORM_MEDIAN: f64 = 0.38;

/// The delays of probes. `None` if none arrived.
pub fn of(probes: &[Probe]) -> Option<Delays> {
    let delays: Vec<f64> = probes.iter().filter_map(Probe::delay_s).collect();
    if delays.is_empty() {
        return None;
    }
    let least_s = quantile(&delays, 0.0);
    let above = |share| quantile(&delays, share) - least_s;
    let steps: Vec<f64> = delays.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let late = late_s(probes);
    Some(Delays {
        least_s,
        above_s: [above(0.5), above(0.95), above(0.99)],
        jitter_s: mean(&steps),
        reordered: late.len() as f64 / delays.len() as f64,
        reordered_by_s: mean(&late),
        fit: fit(above(0.1), above(0.5), above(0.9)),
        samples: delays.len(),
    })
}

/// Lateness of each reordered probe, relative to the first probe that overtook it, seconds.
fn late_s(probes: &[Probe]) -> Vec<f64> {
    let mut earliest_later = f64::INFINITY;
    let mut late = Vec::new();
    for probe in probes.iter().rev() {
        let Some(at) = probe.arrived_s else { continue };
        if at > earliest_later {
            late.push(at - earliest_later);
        }
        earliest_later = earliest_later.min(at);
    }
    late
}

fn fit(p10: f64, p50: f64, p90: f64) -> JitterFit {
    let width = p90 - p10;
    if p50 - p10 >= UNIFORM_MEDIAN * width {
        JitterFit::Uniform(width / 0.8)
    } else {
        // ln 0.9 - ln 0.1 means lie between these percentiles.
        JitterFit::Exponential(width / 9f64.ln())
    }
}

/// Round trips: sums of the delays of probes that were sent at about the same time in both directions, in ascending
/// order, seconds. The offset of the clocks cancels.
pub fn round_trips_s(up: &[Probe], down: &[Probe]) -> Vec<f64> {
    let (mut up, mut down): (Vec<f64>, Vec<f64>) = (
        up.iter().filter_map(Probe::delay_s).collect(),
        down.iter().filter_map(Probe::delay_s).collect(),
    );
    let count = up.len().min(down.len());
    up.truncate(count);
    down.truncate(count);
    let mut sums: Vec<f64> = up.iter().zip(&down).map(|(up, down)| up + down).collect();
    sums.sort_by(f64::total_cmp);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes(delays_s: &[f64]) -> Vec<Probe> {
        let one = |(i, delay): (usize, &f64)| {
            let sent_s = i as f64 * 0.01;
            Probe { sent_s, arrived_s: Some(sent_s + delay), bytes: 100 }
        };
        delays_s.iter().enumerate().map(one).collect()
    }

    #[test]
    fn percentiles_are_counted_from_the_least_delay() {
        let delays: Vec<f64> = (0..1000).map(|i| 7.0 + f64::from(i * 37 % 1000) * 1e-5).collect();
        let found = of(&probes(&delays)).expect("arrivals");
        assert!((found.least_s - 7.0).abs() < 1e-9);
        assert!((found.above_s[0] - 0.005).abs() < 1e-4, "{found:?}");
        assert!((found.above_s[1] - 0.0095).abs() < 1e-4, "{found:?}");
        assert!(matches!(found.fit, JitterFit::Uniform(width) if (width - 0.01).abs() < 1e-4));
        assert!(found.reordered == 0.0 && of(&[]).is_none());
    }

    #[test]
    fn many_small_and_few_large_additions_are_exponential() {
        let delays: Vec<f64> = (0..1000)
            .map(|i| -(1.0 - (f64::from(i * 37 % 1000) + 0.5) / 1000.0).ln() * 2e-3)
            .collect();
        let found = of(&probes(&delays)).expect("arrivals");
        assert!(
            matches!(found.fit, JitterFit::Exponential(mean) if (mean - 2e-3).abs() < 1e-4),
            "{found:?}"
        );
    }

    #[test]
    fn overtaken_probes_count_as_reordered() {
        let mut delays = vec![0.02; 100];
        delays[10] = 0.055;
        delays[50] = 0.045;
        let found = of(&probes(&delays)).expect("arrivals");
        assert!((found.reordered - 0.02).abs() < 1e-9, "{found:?}");
        assert!((found.reordered_by_s - (0.025 + 0.015) / 2.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn the_offset_of_the_clocks_cancels_in_round_trips() {
        let up: Vec<f64> = (0..50).map(|i| 1e4 + 0.010 + f64::from(i % 5) * 1e-3).collect();
        let down: Vec<f64> = (0..50).map(|i| -1e4 + 0.015 + f64::from(i % 3) * 1e-3).collect();
        let found = round_trips_s(&probes(&up), &probes(&down));
        assert!((found[0] - 0.025).abs() < 1e-6 && found.len() == 50, "{found:?}");
    }
}
