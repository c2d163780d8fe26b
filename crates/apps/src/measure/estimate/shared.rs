//! Whether two links share a bottleneck.
//!
//! While one link is overloaded, few small probes cross the other one. If both lead through the same queue, the
//! small probes wait as long as the overload does. RFC 8382 compares statistics of delays of flows that run anyway.
//! Here the overload is known, so the delays are compared directly: how much the small probes' delay rises when the
//! overload's does, and how well the two are correlated (Rubenstein, Kurose and Towsley, "Detecting Shared Congestion
//! of Flows via End-to-End Measurement", IEEE/ACM ToN 10(3), 2002).

use ropewalk_base::PairMoments;

use super::Probe;
use super::statistics::{median, quantile};

/// Share of the overload's queueing delay that the other link's probes must have.
const RISE_MIN: f64 = 0.35;
/// Correlation that the delays must have.
const CORRELATION_MIN: f64 = 0.4;
/// Number of probes required while the queue is filled, and while it is empty.
const SAMPLES_MIN: usize = 5;

/// Effect of the overload of one link on another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sharing {
    /// Rise of the median delay on the watched link, as a share of that on the overloaded link.
    pub rise: f64,
    /// Pearson's coefficient of correlation of both delays.
    pub correlation: f64,
    /// 95th percentile of the watched link's queueing delay during the overload, seconds. It is that of the shared
    /// queue only.
    pub delay_s: f64,
    /// Whether both lead through the same bottleneck.
    pub shared: bool,
}

/// Compares the overload of a link with the `watch` probes that crossed another link meanwhile, before and after it.
/// `None` if too few probes arrived, or the overload has filled no queue.
pub fn compare(overload: &[Probe], watch: &[Probe]) -> Option<Sharing> {
    let loaded: Vec<(f64, f64)> =
        overload.iter().filter_map(|probe| Some((probe.sent_s, probe.delay_s()?))).collect();
    let delays: Vec<f64> = loaded.iter().map(|(_, delay)| *delay).collect();
    let (first, last) = (loaded.first()?.0, loaded.last()?.0);
    let empty = quantile(&delays, 0.0);
    let depth = quantile(&delays, 0.9) - empty;
    let mut pairs = Vec::new();
    for probe in watch {
        let Some(delay) = probe.delay_s() else { continue };
        let own = if (first..=last).contains(&probe.sent_s) {
            at(&loaded, probe.sent_s)
        } else if probe.sent_s < first {
            empty
        } else {
            // The queue empties at an unknown time.
            continue;
        };
        pairs.push((own - empty, delay));
    }
    let side = |filled: bool| -> Vec<f64> {
        let wanted = |(own, _): &&(f64, f64)| {
            if filled { *own >= 0.6 * depth } else { *own <= 0.1 * depth }
        };
        pairs.iter().filter(wanted).map(|(_, delay)| *delay).collect()
    };
    let (filled, idle) = (side(true), side(false));
    if filled.len() < SAMPLES_MIN || idle.len() < SAMPLES_MIN || depth <= 0.0 {
        return None;
    }
    let rise = (median(&filled) - median(&idle)) / depth;
    let correlation = pairs.iter().copied().collect::<PairMoments>().correlation();
    let during: Vec<f64> =
        pairs.iter().filter(|(own, _)| *own > 0.0).map(|(_, delay)| *delay).collect();
    let delay_s = (quantile(&during, 0.95) - median(&idle)).max(0.0);
    Some(Sharing {
        rise,
        correlation,
        delay_s,
        shared: rise >= RISE_MIN && correlation >= CORRELATION_MIN,
    })
}

/// The overload's delay at a time, from the nearest probe that was sent before it.
fn at(loaded: &[(f64, f64)], time: f64) -> f64 {
    let after = loaded.partition_point(|(sent, _)| *sent <= time);
    loaded[after.saturating_sub(1)].1
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::super::queue::tests::link;
    use super::*;

    /// Small probes every 10 ms from 0.5 s before the overload; `own` is their queueing delay at a time.
    fn watch(seconds: f64, noise_s: f64, own: impl Fn(f64) -> f64) -> Vec<Probe> {
        let mut rng = Seed::root(1).rng();
        (0..((seconds + 0.5) * 100.0) as usize)
            .map(|i| {
                let sent_s = i as f64 * 0.01 - 0.5;
                let noise = rng.exponential(noise_s);
                Probe { sent_s, arrived_s: Some(sent_s + 77.0 + own(sent_s) + noise), bytes: 100 }
            })
            .collect()
    }

    #[test]
    fn a_shared_queue_is_told_from_noise() {
        let overload = link(10e6, 100, 1.6, 2000, 0.02, -5.0);
        let delays: Vec<_> =
            overload.iter().filter_map(|p| Some((p.sent_s, p.delay_s()?))).collect();
        let queue = |time: f64| if time < 0.0 { 0.0 } else { at(&delays, time) + 5.0 - 0.0212 };
        let together = compare(&overload, &watch(1.5, 1e-3, queue)).expect("enough");
        assert!(together.shared && together.rise > 0.8, "{together:?}");
        assert!((together.delay_s / 0.12 - 1.0).abs() < 0.1, "{together:?}");
        let apart = compare(&overload, &watch(1.5, 3e-3, |_| 0.0)).expect("enough");
        assert!(!apart.shared && apart.rise.abs() < 0.1, "{apart:?}");
    }

    #[test]
    fn too_few_probes_decide_nothing() {
        let overload = link(10e6, 100, 1.6, 2000, 0.02, 0.0);
        assert_eq!(compare(&overload, &[]), None);
        assert_eq!(compare(&[], &watch(1.0, 1e-3, |_| 0.0)), None);
    }
}
