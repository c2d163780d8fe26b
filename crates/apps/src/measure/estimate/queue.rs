//! Depth of a link's queue: the longest delay before loss.
//!
//! A drop-tail queue is full exactly when it drops a packet. The probe before a dropped one took the last place, so
//! its queueing delay is that of the full queue. The median over all drops is not affected by probes that the hosts
//! delayed. A full queue drops the share by which it is overloaded. If far fewer probes are lost while the delay is
//! long, these are losses of the link itself, and the queue has not been full.

use super::Probe;
use super::statistics::{median, quantile};

/// Number of drops required to conclude that the queue was full.
const DROPS_MIN: usize = 5;
/// Share of the largest queueing delays below which a loss does not count as a drop of the queue.
const FULL_SHARE: f64 = 0.8;
/// Share of the overload that must be dropped while the queue is full.
const DROPPED_SHARE: f64 = 0.5;

/// Estimate of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Bytes that wait in the full queue; the packet in transmission does not count.
    pub bytes: f64,
    /// Delay of the full queue, seconds.
    pub delay_s: f64,
    /// The same at its lower and upper quartile.
    pub quartiles_s: [f64; 2],
    /// Number of drops that were evaluated.
    pub drops: usize,
    /// Whether the queue was full. Otherwise `bytes` is a lower bound.
    pub full: bool,
}

/// Share of the delay below which another queue in series accounts for the rest.
const SERIES_SHARE: f64 = 0.9;

impl Queue {
    /// The queue of a shared bottleneck without other queues, if probes on another link have waited for `shared_s`
    /// seconds in it. The rest of the delay belongs to a queue in front of it.
    #[must_use]
    pub fn without_queue_in_front(self, shared_s: f64) -> Self {
        if shared_s <= 0.0 || shared_s >= SERIES_SHARE * self.delay_s {
            return self;
        }
        let share = shared_s / self.delay_s;
        let quartiles_s = self.quartiles_s.map(|quartile| quartile * share);
        Self { bytes: self.bytes * share, delay_s: shared_s, quartiles_s, ..self }
    }
}

/// The queue from probes that were sent faster than the link of `rate_bps` carries. `idle_delay_s` is the one-way
/// delay of a probe of this size on the idle link. `None` if no probe arrived.
pub fn depth(probes: &[Probe], idle_delay_s: f64, rate_bps: f64) -> Option<Queue> {
    let queueing = |probe: &Probe| Some(probe.delay_s()? - idle_delay_s);
    let all: Vec<f64> = probes.iter().filter_map(queueing).collect();
    if all.is_empty() {
        return None;
    }
    let threshold = FULL_SHARE * quantile(&all, 0.95);
    let drops: Vec<f64> = probes
        .windows(2)
        .filter(|pair| pair[1].arrived_s.is_none())
        .filter_map(|pair| queueing(&pair[0]))
        .filter(|delay| *delay >= threshold)
        .collect();
    let full = drops.len() >= DROPS_MIN && is_dropping(probes, &queueing, threshold, rate_bps);
    let samples = if full { drops } else { vec![quantile(&all, 0.99)] };
    let delay_s = median(&samples).max(0.0);
    // The packet in transmission is on average half sent when the last place is taken.
    let half_packet = f64::from(probes[0].bytes) / 2.0;
    Some(Queue {
        bytes: delay_s * rate_bps / 8.0 + half_packet,
        delay_s,
        quartiles_s: [quantile(&samples, 0.25), quantile(&samples, 0.75)],
        drops: if full { samples.len() } else { 0 },
        full,
    })
}

/// Whether enough probes were dropped, starting with the first one whose delay was that of a full queue.
fn is_dropping(
    probes: &[Probe],
    queueing: &dyn Fn(&Probe) -> Option<f64>,
    threshold: f64,
    rate_bps: f64,
) -> bool {
    let is_long = |probe: &Probe| queueing(probe).is_some_and(|delay| delay >= threshold);
    let rest = probes.iter().position(is_long).map_or(&probes[..0], |from| &probes[from..]);
    let (Some(first), Some(last)) = (rest.first(), rest.last()) else { return false };
    let offered = rest.iter().map(|probe| f64::from(probe.bytes) * 8.0).sum::<f64>()
        / (last.sent_s - first.sent_s).max(1e-9);
    let lost = rest.iter().filter(|probe| probe.arrived_s.is_none()).count() as f64;
    let excess = (1.0 - rate_bps / offered).max(0.0);
    // Before the queue is full, a fifth of its depth is filled without drops.
    lost >= DROPPED_SHARE * excess * rest.len() as f64 / 2.0
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Probes of 1500 B that arrive over a drop-tail link in groups every millisecond, at `factor` times its rate.
    pub fn link(
        rate_bps: f64,
        packets: usize,
        factor: f64,
        count: usize,
        delay_s: f64,
        offset_s: f64,
    ) -> Vec<Probe> {
        let service = 12_000.0 / rate_bps;
        let mut departures: Vec<f64> = Vec::new();
        let send = |i: usize| ((i as f64 * service / factor) * 1e3).floor() * 1e-3;
        (0..count)
            .map(|i| {
                let sent_s = send(i);
                // Packets whose transmission has not started; the departures are ascending.
                let begun = departures.partition_point(|at| *at - service <= sent_s);
                let admitted = departures.len() - begun < packets;
                let arrived_s = admitted.then(|| {
                    let free = departures.last().copied().unwrap_or(0.0).max(sent_s);
                    departures.push(free + service);
                    free + service + delay_s + offset_s
                });
                Probe { sent_s, arrived_s, bytes: 1500 }
            })
            .collect()
    }

    proptest! {
        #[test]
        fn the_depth_of_a_full_queue_is_found(
            mbps in 0.5f64..100.0, factor in 1.4f64..2.5, packets in 10usize..300, offset in -1e3f64..1e3,
        ) {
            let rate_bps = mbps * 1e6;
            let fill = packets as f64 / (factor - 1.0) * factor;
            let count = (fill * 1.5) as usize + (factor * rate_bps / 12_000.0) as usize;
            let probes = link(rate_bps, packets, factor, count, 0.02, offset);
            let idle = 0.02 + offset + 12_000.0 / rate_bps;
            let found = depth(&probes, idle, rate_bps).expect("arrivals");
            prop_assert!(found.full, "{found:?}");
            prop_assert!((found.bytes / 1500.0 / packets as f64 - 1.0).abs() < 0.1, "{found:?}");
        }
    }

    #[test]
    fn a_queue_in_front_of_a_shared_one_is_subtracted() {
        let both =
            Queue { bytes: 100e3, delay_s: 0.4, quartiles_s: [0.38, 0.42], drops: 9, full: true };
        let shared = both.without_queue_in_front(0.1);
        assert!((shared.bytes - 25e3).abs() < 1.0 && shared.delay_s == 0.1, "{shared:?}");
        assert_eq!(both.without_queue_in_front(0.39), both);
        assert_eq!(both.without_queue_in_front(0.0), both);
    }

    #[test]
    fn losses_of_the_link_are_not_taken_for_a_full_queue() {
        let mut probes = link(10e6, 100_000, 1.5, 3000, 0.02, 0.0);
        probes.iter_mut().step_by(40).for_each(|probe| probe.arrived_s = None);
        let found = depth(&probes, 0.0212, 10e6).expect("arrivals");
        assert!(!found.full && found.drops == 0, "{found:?}");
    }

    #[test]
    fn a_queue_that_was_never_full_gives_a_lower_bound() {
        let probes = link(10e6, 1000, 1.5, 500, 0.02, 0.0);
        let found = depth(&probes, 0.0212, 10e6).expect("arrivals");
        assert!(!found.full && found.bytes < 1_500_000.0 && found.bytes > 100_000.0, "{found:?}");
        assert_eq!(depth(&[], 0.0, 1e6), None);
    }
}
