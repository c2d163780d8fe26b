//! Capacity of a link: dispersion of packet trains, and the rate at which a filled queue empties.
//!
//! A link that always has a packet waiting emits bits at its capacity, so the spacing of arrivals shows it (Dovrolis,
//! Ramanathan and Moore, "Packet-Dispersion Techniques and a Capacity-Estimation Methodology", IEEE/ACM ToN 12(6),
//! 2004). A short train is enough for a first guess. Timers, interrupts and schedulers of both hosts shift single
//! arrivals by milliseconds, so the final value comes from an overload of more than a second.

use ropewalk_base::statistics::mean;

use super::Probe;
use super::statistics::{deviation, median, quantile};

/// Share of the largest queueing delays above which the queue certainly has packets.
const BUSY_SHARE: f64 = 0.3;
/// Batches whose rates give the interval, and the quantile of Student's t for 99 % and one degree of freedom less.
const BATCHES: usize = 10;
const STUDENT_99: f64 = 3.25;
/// Minimum duration of a bin of [`rates`], seconds, and minimum mean number of packets in it. A stall of a host by
/// 20 ms changes the rate of a bin by 6 %, and one packet by 3 %.
const BIN_S: f64 = 0.35;
const BIN_PACKETS: f64 = 30.0;
/// Delivered share of the offered rate below which the link was overloaded.
const OVERLOAD: f64 = 0.8;
/// Minimum spacing of the arrivals, seconds. Below it, the gap that a lost packet leaves cannot be distinguished from
/// the millisecond by which hosts shift arrivals.
const SPACING_S: f64 = 4e-3;
/// Minimum dispersion of a train, seconds: receivers may stamp all packets of one read with the same time.
const LEAST_DISPERSION_S: f64 = 1e-3;
/// How often the transmission time of a packet is recomputed from the number of packets in each gap.
const REFINEMENTS: usize = 3;
/// Bytes of a delivery opportunity in a Mahimahi trace.
const OPPORTUNITY_BYTES: f64 = 1504.0;

/// Estimate of a capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Bits of IP packets per second.
    pub rate_bps: f64,
    /// 99 % interval, by batch means.
    pub low_bps: f64,
    /// Its upper end.
    pub high_bps: f64,
    /// Duration of the overload that was evaluated, seconds.
    pub seconds: f64,
    /// Whether the link was overloaded. Otherwise the rate is only a lower bound.
    pub saturated: bool,
}

/// Arrivals in the order of their times: (time, bytes, one-way delay).
fn arrivals(probes: &[Probe]) -> Vec<(f64, f64, f64)> {
    let mut found: Vec<_> = probes
        .iter()
        .filter_map(|probe| Some((probe.arrived_s?, f64::from(probe.bytes), probe.delay_s()?)))
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found
}

/// Bits and seconds between the first and the last of these arrivals.
fn carried(arrivals: &[(f64, f64, f64)]) -> Option<(f64, f64)> {
    let (first, rest) = arrivals.split_first()?;
    let bytes: f64 = rest.iter().map(|(_, bytes, _)| bytes).sum();
    Some((bytes * 8.0, rest.last()?.0 - first.0))
}

/// Bits per second between the first and the last of these arrivals.
fn rate(arrivals: &[(f64, f64, f64)]) -> Option<f64> {
    let (bits, seconds) = carried(arrivals)?;
    (seconds > 0.0).then(|| bits / seconds)
}

/// Rate of a train that was sent back to back, bit/s. `None` with fewer than three arrivals. Arrivals within
/// a millisecond count as spread over it.
pub fn of_train(probes: &[Probe]) -> Option<f64> {
    let arrivals = arrivals(probes);
    let (bits, seconds) = carried(&arrivals)?;
    (arrivals.len() >= 3).then(|| bits / seconds.max(LEAST_DISPERSION_S))
}

/// Seconds between the first and the last arrival.
pub fn dispersion_s(probes: &[Probe]) -> f64 {
    let arrivals = arrivals(probes);
    arrivals.last().map_or(0.0, |last| last.0 - arrivals[0].0)
}

/// The arrivals during which the queue had packets: from the first one whose queueing delay is considerable, to the
/// last one. After the last probe was sent, the queue empties at the same rate.
fn busy(probes: &[Probe], idle_delay_s: f64) -> Vec<(f64, f64, f64)> {
    let mut all = arrivals(probes);
    let queueing: Vec<f64> = all.iter().map(|(_, _, delay)| delay - idle_delay_s).collect();
    let threshold = BUSY_SHARE * quantile(&queueing, 0.9);
    let from = queueing.iter().position(|delay| *delay >= threshold).unwrap_or(0);
    all.split_off(from)
}

/// Share of the packets that were lost behind the queue of an overloaded link: each leaves a gap of its transmission
/// time between the arrivals. Packets that the queue drops, or that are lost in front of it, leave none. `None` if
/// the link is too fast to resolve single gaps.
pub fn lost_behind_queue(probes: &[Probe], idle_delay_s: f64) -> Option<f64> {
    let busy = busy(probes, idle_delay_s);
    let spacing: Vec<f64> = busy.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    if spacing.len() < BATCHES || median(&spacing) < SPACING_S {
        return None;
    }
    // A delayed arrival makes the gap before it too long and the gap after it too short by the same time, so such
    // errors cancel.
    let packets = |usual: f64| spacing.iter().map(|gap| (gap / usual).round()).sum::<f64>();
    let whole: f64 = spacing.iter().sum();
    let usual = (0..REFINEMENTS).fold(median(&spacing), |usual, _| whole / packets(usual).max(1.0));
    let lost = (packets(usual) - spacing.len() as f64).max(0.0);
    Some(lost / (lost + busy.len() as f64))
}

/// Capacity from probes that were sent faster than the link carries. `idle_delay_s` is the one-way delay of a probe
/// of this size on the idle link. `loss` is the loss rate behind the queue: the lost share has used capacity. If the
/// queue had packets for fewer than twenty arrivals, all arrivals give a lower bound. `None` with fewer than twenty
/// arrivals, or if all have the same time.
pub fn of_overload(probes: &[Probe], idle_delay_s: f64, loss: f64) -> Option<Capacity> {
    let mut busy = busy(probes, idle_delay_s);
    let filled = busy.len() >= 2 * BATCHES;
    if !filled {
        busy = arrivals(probes);
    }
    if busy.len() < 2 * BATCHES {
        return None;
    }
    let carried = rate(&busy)? / (1.0 - loss);
    let batch = busy.len() / BATCHES;
    let each: Vec<f64> = (0..BATCHES)
        .filter_map(|i| rate(&busy[i * batch..((i + 1) * batch + 1).min(busy.len())]))
        .map(|rate| rate / (1.0 - loss))
        .collect();
    let half = STUDENT_99 * deviation(&each) / (each.len() as f64).sqrt();
    let offered = offered(probes)?;
    let saturated = filled && carried < OVERLOAD * offered;
    // Without an overload, the queue may have been full only briefly, and arrivals may come in groups.
    let most = if saturated { f64::INFINITY } else { offered };
    Some(Capacity {
        rate_bps: carried.min(most),
        low_bps: (carried - half).max(0.0).min(most),
        high_bps: (carried + half).min(most),
        seconds: busy.last()?.0 - busy[0].0,
        saturated,
    })
}

/// Offered rate, bit/s.
fn offered(probes: &[Probe]) -> Option<f64> {
    let (first, rest) = probes.split_first()?;
    let bytes: f64 = rest.iter().map(|probe| f64::from(probe.bytes)).sum();
    let seconds = rest.last()?.sent_s - first.sent_s;
    (seconds > 0.0).then(|| bytes * 8.0 / seconds)
}

/// Rates of the overloaded link in successive intervals of 0.35 s, or longer ones for slow links, bit/s.
pub fn rates(probes: &[Probe], idle_delay_s: f64, loss: f64) -> Vec<f64> {
    let busy = busy(probes, idle_delay_s);
    let Some((first, last)) = busy.first().zip(busy.last()) else { return Vec::new() };
    let bin_s = BIN_S.max((last.0 - first.0) * BIN_PACKETS / busy.len() as f64);
    let bins = ((last.0 - first.0) / bin_s) as usize;
    let mut bytes = vec![0.0; bins];
    for (at, size, _) in &busy[1..] {
        if let Some(bin) = bytes.get_mut(((at - first.0) / bin_s) as usize) {
            *bin += size;
        }
    }
    bytes.iter().map(|bytes| bytes * 8.0 / bin_s / (1.0 - loss)).collect()
}

/// Variation of the rate: (largest - smallest) / mean of [`rates`]. `None` with fewer than four intervals.
pub fn variation(rates: &[f64]) -> Option<f64> {
    let (low, high) = (quantile(rates, 0.0), quantile(rates, 1.0));
    (rates.len() >= 4).then(|| (high - low) / mean(rates))
}

/// The overloaded link as a Mahimahi trace: the times, in milliseconds, at which it could deliver 1504 bytes
/// (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015).
pub fn trace(probes: &[Probe], idle_delay_s: f64, loss: f64) -> Vec<u64> {
    let busy = busy(probes, idle_delay_s);
    let Some(first) = busy.first() else { return Vec::new() };
    let (mut due, mut times) = (0.0, Vec::new());
    for (at, bytes, _) in &busy[1..] {
        due += bytes / (1.0 - loss);
        while due >= OPPORTUNITY_BYTES {
            due -= OPPORTUNITY_BYTES;
            times.push(((at - first.0) * 1e3).round().max(1.0) as u64);
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::queue::tests::link;
    use super::*;

    proptest! {
        #[test]
        fn an_overloaded_link_shows_its_rate(
            mbps in 0.5f64..200.0, factor in 1.3f64..3.0, packets in 5usize..300, offset in -1e6f64..1e6,
        ) {
            let rate_bps = mbps * 1e6;
            let count = (1.5 * factor * rate_bps / 12_000.0) as usize;
            prop_assume!(count > 60);
            // The probes come in groups every millisecond: a smaller queue would be empty in between.
            prop_assume!(packets as f64 > 2.0 + rate_bps * 1e-3 / 12_000.0);
            let probes = link(rate_bps, packets, factor, count, 0.02, offset);
            let idle = 0.02 + offset + 12_000.0 / rate_bps;
            let found = of_overload(&probes, idle, 0.0).expect("enough");
            prop_assert!((found.rate_bps / rate_bps - 1.0).abs() < 0.02, "{found:?}");
            prop_assert!(found.saturated);
            prop_assert!(found.low_bps <= found.rate_bps && found.rate_bps <= found.high_bps);
        }

        #[test]
        fn a_late_group_of_arrivals_leaves_a_lower_bound(
            mbps in 0.5f64..50.0, late in 1usize..20, late_ms in 1.0f64..20.0, jitter_us in 0.0f64..100.0,
        ) {
            let mut probes = link(mbps * 1e6, 50, 0.5, 300, 0.02, 0.0);
            let first = probes.len() - late;
            for (i, probe) in probes.iter_mut().enumerate() {
                let more = if i < first { jitter_us * 1e-6 * (i % 7) as f64 } else { late_ms * 1e-3 };
                probe.arrived_s = probe.arrived_s.map(|at| at + more);
            }
            let found = of_overload(&probes, 0.02 + 12_000.0 / (mbps * 1e6), 0.0).expect("arrivals");
            prop_assert!(!found.saturated && found.rate_bps <= 0.51 * mbps * 1e6, "{found:?}");
            prop_assert!(found.rate_bps > 0.3 * mbps * 1e6, "{found:?}");
        }

        #[test]
        fn any_times_give_finite_estimates(
            times in prop::collection::vec((0.0f64..10.0, prop::option::of(0.0f64..10.0)), 0..100),
        ) {
            let probes: Vec<_> = times
                .iter()
                .map(|(sent_s, arrived_s)| Probe { sent_s: *sent_s, arrived_s: *arrived_s, bytes: 1200 })
                .collect();
            if let Some(found) = of_overload(&probes, 0.0, 0.1) {
                prop_assert!(found.rate_bps.is_finite() && found.rate_bps >= 0.0);
            }
            prop_assert!(rates(&probes, 0.0, 0.0).iter().all(|rate| rate.is_finite()));
            prop_assert!(trace(&probes, 0.0, 0.0).is_sorted());
        }
    }

    #[test]
    fn a_link_below_its_capacity_gives_a_lower_bound() {
        let probes = link(10e6, 50, 0.5, 500, 0.02, 0.0);
        let found = of_overload(&probes, 0.0212, 0.0).expect("enough");
        assert!(!found.saturated && (found.rate_bps / 5e6 - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_change_of_the_rate_shows_in_the_rates_and_in_the_trace() {
        let mut probes = link(10e6, 50, 2.0, 2500, 0.02, 0.0);
        let after = probes.last().expect("some").sent_s + 0.1;
        let slow = link(5e6, 50, 2.0, 1250, 0.02, 0.0);
        probes.extend(slow.iter().map(|probe| Probe {
            sent_s: probe.sent_s + after,
            arrived_s: probe.arrived_s.map(|at| at + after),
            ..*probe
        }));
        let found = rates(&probes, 0.0212, 0.0);
        assert!(variation(&found).expect("enough") > 0.5, "{found:?}");
        let steady = rates(&link(10e6, 50, 2.0, 5000, 0.02, 0.0), 0.0212, 0.0);
        assert!(variation(&steady).expect("enough") < 0.05, "{steady:?}");
        let times = trace(&probes, 0.0212, 0.0);
        let carried =
            times.len() as f64 * 1504.0 * 8.0 / (*times.last().expect("some") as f64 * 1e-3);
        assert!((6.5e6..8.5e6).contains(&carried), "{carried}");
    }

    proptest! {
        #[test]
        fn losses_behind_the_queue_leave_gaps_and_those_in_front_of_it_none(
            mbps in 0.3f64..2.5, packets in 10usize..100, every in 5usize..60, late_ms in 0.0f64..1.5,
        ) {
            let mut probes = link(mbps * 1e6, packets, 2.0, 1200, 0.02, 0.0);
            let idle = 0.02 + 12_000.0 / (mbps * 1e6);
            for (i, probe) in probes.iter_mut().enumerate() {
                probe.arrived_s = probe.arrived_s.map(|at| at + late_ms * 1e-3 * f64::from((i as u32).wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24));
            }
            let without = lost_behind_queue(&probes, idle).expect("slow enough");
            prop_assert!(without < 0.005, "{without}");
            let arrived = probes.iter_mut().filter(|probe| probe.arrived_s.is_some());
            arrived.skip(every / 2).step_by(every).for_each(|probe| probe.arrived_s = None);
            let lost = lost_behind_queue(&probes, idle).expect("slow enough");
            prop_assert!((lost - 1.0 / every as f64).abs() < 0.02, "{lost} {every}");
            let found = of_overload(&probes, idle, lost).expect("enough");
            prop_assert!((found.rate_bps / (mbps * 1e6) - 1.0).abs() < 0.03, "{found:?}");
        }
    }

    #[test]
    fn a_train_shows_its_dispersion_even_with_losses() {
        let probes: Vec<_> = (0..40)
            .map(|i| Probe {
                sent_s: 0.0,
                arrived_s: (i < 30).then(|| 5.0 + f64::from(i) * 1e-3),
                bytes: 1000,
            })
            .collect();
        assert!((of_train(&probes).expect("enough") - 8e6).abs() < 1.0);
        assert_eq!(of_train(&probes[..2]), None);
        let at_once: Vec<_> =
            probes.iter().map(|probe| Probe { arrived_s: Some(5.0), ..*probe }).collect();
        assert!((of_train(&at_once).expect("enough") - 312e6).abs() < 1.0);
    }
}
