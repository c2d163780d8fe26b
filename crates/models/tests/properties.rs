//! Random inputs: the bound is the optimum, and the slot model loses no packets and never stops.

use std::collections::BTreeSet;

use proptest::prelude::*;
use ropewalk_models::slot::{
    Plan, PlannedCapacity, SlotInstant, SlotModel, SlotPath, SlotScheduler,
};
use ropewalk_models::{
    BoundInput, PathNumbers, flow_control_bound, packets_per_period, receive_buffer_min_bytes,
    receive_order, sequence_lists,
};

fn a_path() -> impl Strategy<Value = PathNumbers> {
    (0.1_f64..100.0, 1.0_f64..500.0)
        .prop_map(|(mbps, rtt_ms)| PathNumbers::new(mbps * 1e6, rtt_ms * 1e-3).unwrap())
}

fn an_input() -> impl Strategy<Value = BoundInput> {
    (0.0_f64..2e6, 100.0_f64..9000.0).prop_map(|(buffer, packet)| BoundInput::new(buffer, packet))
}

/// The rate of a split of the buffer into `cells` parts, `parts[i]` of them to path i.
fn rate_of(parts: &[u32], cells: u32, paths: &[PathNumbers], input: &BoundInput) -> f64 {
    let rates = paths.iter().zip(parts).map(|(path, &part)| {
        let out_s = 8.0 * input.packet_bytes / path.rate_bps();
        let back_s = 8.0 * input.sack_bytes / path.reverse_rate_bps();
        let window_bits = 8.0 * input.buffer_bytes * f64::from(part) / f64::from(cells);
        path.rate_bps().min(window_bits / (path.rtt_s() + out_s + back_s))
    });
    rates.sum()
}

/// The best of all splits on a grid, by exhaustive search.
fn best_on_grid(paths: &[PathNumbers], input: &BoundInput, cells: u32) -> f64 {
    let mut best = 0.0_f64;
    for a in 0..=cells {
        for b in 0..=cells - a {
            best = best.max(rate_of(&[a, b, cells - a - b], cells, paths, input));
        }
    }
    best
}

proptest! {
    #[test]
    fn the_bound_is_the_best_split_of_the_buffer(
        paths in prop::collection::vec(a_path(), 2..=3), input in an_input(),
    ) {
        let cells = 60;
        let bound = flow_control_bound(&paths, &input).unwrap();
        let grid = best_on_grid(&paths, &input, cells);
        prop_assert!(bound.bound_bps >= grid * (1.0 - 1e-9), "a split beats the bound");
        // Off the grid by less than a cell per path: the bound's own windows, rounded down.
        let cell = input.buffer_bytes / f64::from(cells);
        let loss: f64 = bound.shares.iter().map(|s| 8.0 * cell / s.round_trip_s).sum();
        prop_assert!(bound.bound_bps <= (grid + loss) * (1.0 + 1e-9), "the bound is not reached");
    }

    #[test]
    fn the_shares_add_up_to_the_bound_and_keep_within_the_buffer(
        paths in prop::collection::vec(a_path(), 1..=6), input in an_input(),
    ) {
        let bound = flow_control_bound(&paths, &input).unwrap();
        let windows: f64 = bound.shares.iter().map(|s| s.window_bytes).sum();
        prop_assert!((windows + bound.spare_bytes - input.buffer_bytes).abs() < 1e-3);
        for (share, path) in bound.shares.iter().zip(&paths) {
            prop_assert!(share.rate_bps <= path.rate_bps());
            let by_window = 8.0 * share.window_bytes / share.round_trip_s;
            prop_assert!((share.rate_bps - by_window).abs() <= 1e-6 * path.rate_bps());
        }
    }

    #[test]
    fn the_bound_grows_with_the_buffer_and_with_another_path(
        paths in prop::collection::vec(a_path(), 2..=5), input in an_input(), more in 0.0_f64..1e6,
    ) {
        let bound = |paths: &[PathNumbers], buffer_bytes: f64| {
            flow_control_bound(paths, &BoundInput { buffer_bytes, ..input }).unwrap().bound_bps
        };
        let here = bound(&paths, input.buffer_bytes);
        prop_assert!(bound(&paths, input.buffer_bytes + more) >= here * (1.0 - 1e-12));
        prop_assert!(bound(&paths[1..], input.buffer_bytes) <= here * (1.0 + 1e-12));
        let sum: f64 = paths.iter().map(PathNumbers::rate_bps).sum();
        prop_assert!(here <= sum * (1.0 + 1e-12));
    }

    #[test]
    fn the_least_buffer_without_blocking_lets_every_path_run_full(
        paths in prop::collection::vec(a_path(), 1..=5),
    ) {
        let bytes = receive_buffer_min_bytes(&paths).unwrap();
        let bound = flow_control_bound(&paths, &BoundInput::propagation_only(bytes)).unwrap();
        let sum: f64 = paths.iter().map(PathNumbers::rate_bps).sum();
        prop_assert!((bound.bound_bps - sum).abs() <= 1e-9 * sum);
    }

    #[test]
    fn the_lists_hold_every_packet_of_a_period_once(
        delays in prop::collection::vec(1_u64..40, 1..=4), capacity in 1_u64..9,
    ) {
        let capacities: Vec<u64> = (0..delays.len() as u64).map(|i| capacity + i).collect();
        let n = packets_per_period(&delays, &capacities, None).unwrap();
        let order = receive_order(&delays, n.period.ticks).unwrap();
        let lists = sequence_lists(&order, &capacities).unwrap();
        let mut seen = BTreeSet::new();
        for (list, &packets) in lists.iter().zip(&n.per_path) {
            prop_assert_eq!(list.iter().map(|r| r.count()).sum::<u64>(), packets);
            prop_assert!(list.windows(2).all(|w| w[0].last < w[1].first), "lists only rise");
            seen.extend(list.iter().flat_map(|r| r.first..=r.last));
        }
        prop_assert_eq!(seen.len() as u64, n.total);
        prop_assert_eq!(seen.last().copied(), Some(n.total));
    }
}

fn a_scheduler(paths: usize) -> impl Strategy<Value = SlotScheduler> {
    let errors = prop::collection::vec(-0.9_f64..3.0, paths);
    let capacity = prop_oneof![Just(PlannedCapacity::PerWindow), Just(PlannedCapacity::PerRate)];
    prop_oneof![
        Just(SlotScheduler::RoundRobin),
        (errors, capacity).prop_map(|(e, c)| SlotScheduler::DelayAware(Plan::with_errors(&e, c))),
    ]
}

fn a_model() -> impl Strategy<Value = SlotModel> {
    let path = (1_u64..30, 1_u64..6)
        .prop_map(|(delay_ticks, capacity_packets)| SlotPath { delay_ticks, capacity_packets });
    (prop::collection::vec(path, 1..=4), 1_u64..20).prop_flat_map(|(paths, buffer_packets)| {
        a_scheduler(paths.len()).prop_map(move |scheduler| SlotModel {
            paths: paths.clone(),
            buffer_packets,
            scheduler,
        })
    })
}

fn packets(runs: &[Vec<ropewalk_models::PacketRange>]) -> impl Iterator<Item = u64> + '_ {
    runs.iter().flatten().flat_map(|r| r.first..=r.last)
}

/// Asserts that no packet vanishes or appears, and that only discarded packets are sent twice.
fn assert_conserved(instants: &[SlotInstant]) {
    let (mut sent, mut arrived, mut discarded) = (0_u64, 0_u64, 0_u64);
    for instant in instants {
        arrived += packets(&instant.arrived).count() as u64;
        sent += packets(&instant.sent).count() as u64;
        discarded += instant.discarded_packets;
        assert_eq!(sent, arrived + instant.in_flight_packets, "at {}", instant.tick);
        let kept = instant.delivered_to + instant.in_buffer_packets;
        assert_eq!(arrived, kept + discarded, "at {}", instant.tick);
    }
}

proptest! {
    #[test]
    fn the_slot_model_loses_nothing_keeps_its_buffer_and_never_stops(model in a_model()) {
        let trace = model.run(6_000).unwrap();
        assert_conserved(&trace.instants);
        prop_assert!(trace.in_buffer_max_packets() <= model.buffer_packets);
        // No deadlock: with delays under 30 ticks something is delivered within 1000.
        let delivered = trace.delivered_per_interval(1_000);
        prop_assert!(delivered.iter().all(|&n| n > 0), "stopped: {delivered:?}");
    }

    #[test]
    fn no_path_ever_sends_more_than_its_capacity(model in a_model()) {
        for instant in model.run(600).unwrap().instants {
            for (runs, path) in instant.sent.iter().zip(&model.paths) {
                prop_assert!(runs.iter().map(|r| r.count()).sum::<u64>() <= path.capacity_packets);
                prop_assert!(runs.is_empty() || instant.tick % path.delay_ticks == 0);
            }
        }
    }

    /// The aim of Algorithm 1: with true delays no packet waits, for any paths, as long as the
    /// buffer can hold the packets in flight.
    #[test]
    fn with_true_delays_and_room_nothing_is_ever_stored(mut model in a_model()) {
        model.buffer_packets = 1_000_000;
        model.scheduler = SlotScheduler::DelayAware(Plan::perfect());
        // Short enough that no period is capped: 64 times the longest delay, or the lcm itself.
        let trace = model.run(500).unwrap();
        prop_assert_eq!(trace.in_buffer_max_packets(), 0);
    }
}

#[test]
fn three_round_robin_paths_can_overflow_the_buffer_and_what_was_discarded_is_sent_again() {
    let path = |delay_ticks, capacity_packets| SlotPath { delay_ticks, capacity_packets };
    let model = SlotModel {
        paths: vec![path(1, 3), path(2, 3), path(20, 1)],
        buffer_packets: 4,
        scheduler: SlotScheduler::RoundRobin,
    };
    let trace = model.run(2_000).unwrap();
    let discarded: u64 = trace.instants.iter().map(|i| i.discarded_packets).sum();
    assert!(discarded > 0, "the case does not show what it should");
    assert_conserved(&trace.instants);
    assert!(trace.delivered_per_interval(100).iter().all(|&n| n > 0));
}
