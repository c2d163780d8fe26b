//! Claims of Sarwar et al. 2013 for Figures 5 to 8, as inequalities over the slot model.

use ropewalk_models::slot::{Plan, PlannedCapacity, SlotModel, SlotPath, SlotScheduler, SlotTrace};

const QUANTUM_S: f64 = 1e-3;
const PACKET_BYTES: f64 = 1000.0;
const SECOND: u64 = 1_000;

fn run(scheduler: SlotScheduler, seconds: u64) -> SlotTrace {
    let fast = SlotPath { delay_ticks: 10, capacity_packets: 2 };
    let slow = SlotPath { delay_ticks: 100, capacity_packets: 5 };
    let model = SlotModel { paths: vec![fast, slow], buffer_packets: 10, scheduler };
    model.run(seconds * SECOND).unwrap()
}

fn round_robin() -> SlotTrace {
    run(SlotScheduler::RoundRobin, 61)
}

fn delay_aware(plan: Plan) -> SlotTrace {
    run(SlotScheduler::DelayAware(plan), 61)
}

fn goodput_mbps(trace: &SlotTrace) -> f64 {
    trace.goodput_bps(SECOND, PACKET_BYTES, QUANTUM_S) / 1e6
}

/// Goodput in Mbit/s at errors of 0, 10, ... 100 % on the paths where the weight is 1.
fn goodput_by_error(weights: [f64; 2], capacity: PlannedCapacity) -> Vec<f64> {
    let at = |step: u32| {
        let errors = weights.map(|w| w * f64::from(step) / 10.0);
        goodput_mbps(&delay_aware(Plan::with_errors(&errors, capacity)))
    };
    (0..=10).map(at).collect()
}

#[test]
fn figure_5_delay_aware_reaches_the_sum_of_the_paths_and_round_robin_does_not() {
    let aware = goodput_mbps(&delay_aware(Plan::perfect()));
    let robin = goodput_mbps(&round_robin());
    assert!((aware - 2.0).abs() < 1e-9, "1.6 + 0.4 Mbit/s, not {aware}");
    assert!(aware > 1.4 * robin, "{aware} against {robin}");
}

#[test]
fn figure_5_delay_aware_is_smoother() {
    let (aware, robin) = (delay_aware(Plan::perfect()), round_robin());
    assert_eq!(aware.longest_silence_ticks(SECOND), 10, "something arrives in every slot");
    assert!(robin.longest_silence_ticks(SECOND) >= 50, "round robin stalls for the slow path");
    // Per slow round, deliveries in slots of 10 ms: spread about their mean.
    let spread = |trace: &SlotTrace| {
        let slots = trace.delivered_per_interval(10);
        let mean = slots.iter().sum::<u64>() as f64 / slots.len() as f64;
        slots.iter().map(|&n| (n as f64 - mean).abs()).sum::<f64>() / slots.len() as f64 / mean
    };
    assert!(spread(&aware) < 0.5 * spread(&robin), "{} {}", spread(&aware), spread(&robin));
}

#[test]
fn figure_6_the_buffer_is_emptier_while_more_packets_fly() {
    let (aware, robin) = (delay_aware(Plan::perfect()), round_robin());
    let stored = |t: &SlotTrace| t.mean_packets(SECOND, |i| i.in_buffer_packets);
    let flying = |t: &SlotTrace| t.mean_packets(SECOND, |i| i.in_flight_packets);
    let unacknowledged = |t: &SlotTrace| t.mean_packets(SECOND, |i| i.unacknowledged_packets);
    assert_eq!(stored(&aware), 0.0);
    // By hand, per slow round: 2, 4, 6, 8 packets for 10 ms each, then 10 for 40 ms.
    assert!((stored(&robin) - 6.0).abs() < 1e-9 && robin.in_buffer_max_packets() == 10);
    assert!(flying(&aware) > flying(&robin));
    assert!(unacknowledged(&aware) > unacknowledged(&robin));
}

#[test]
fn figures_7_and_8_a_slow_path_believed_slower_costs_gracefully() {
    let goodput = goodput_by_error([0.0, 1.0], PlannedCapacity::PerWindow);
    let robin = goodput_mbps(&round_robin());
    assert!((goodput[0] - 2.0).abs() < 1e-9);
    for pair in goodput.windows(2) {
        let step = pair[0] - pair[1];
        assert!((0.0..0.05).contains(&step), "no cliff, no gain: {goodput:?}");
    }
    assert!(goodput[10] > robin && goodput[10] >= 1.79, "{goodput:?} against {robin}");
}

#[test]
fn figures_7_and_8_an_error_common_to_both_paths_does_not_change_the_lists() {
    let goodput = goodput_by_error([1.0, 1.0], PlannedCapacity::PerWindow);
    assert!(goodput.iter().all(|g| (g - 2.0).abs() < 1e-9), "{goodput:?}");
}

#[test]
fn figures_7_and_8_with_the_rate_known_every_error_stays_above_round_robin() {
    let robin = goodput_mbps(&round_robin());
    for weights in [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]] {
        let goodput = goodput_by_error(weights, PlannedCapacity::PerRate);
        assert!(goodput.iter().all(|&g| g > 1.15 * robin), "{weights:?}: {goodput:?}");
    }
}

/// A case in which the claim does *not* hold: with the window known, a fast path believed slower
/// gets too few packets of each period, and everything that follows strict lists moves in this
/// proportion. The slow path runs full (50 packets/s), the fast one at 4 / (1 + e) times as much.
#[test]
fn figures_7_and_8_with_the_window_known_a_wrong_fast_path_falls_below_round_robin_at_70_percent() {
    let goodput = goodput_by_error([1.0, 0.0], PlannedCapacity::PerWindow);
    let robin = goodput_mbps(&round_robin());
    for (step, &g) in goodput.iter().enumerate() {
        let e = step as f64 / 10.0;
        let expected = 0.4 * (1.0 + 4.0 / (1.0 + e));
        assert!((g - expected).abs() < 0.01, "{g} Mbit/s for {expected} at {e}");
        assert_eq!(g > robin, e < 0.667, "{g} against {robin} at {e}");
    }
}

#[test]
fn the_goodput_per_second_is_steady_from_the_second_second() {
    let per_second = round_robin().delivered_per_interval(SECOND);
    assert!(per_second[1..].iter().all(|&n| n == 170), "{per_second:?}");
}
