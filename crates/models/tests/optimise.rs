//! The optimiser compared with an exhaustive search, on random tables and on the paper's case.

use proptest::prelude::*;
use ropewalk_models::optimise::{
    Members, Method, OptimiseError, PathTable, allocate, brute_force, dynamic, greedy, heuristic,
    least_buffer,
};
use ropewalk_models::{LossModel, LossyPath};

fn tables(entries: &[Vec<f64>]) -> Vec<PathTable> {
    entries.iter().map(|entries| PathTable::new(entries).unwrap()).collect()
}

/// Exhaustive search over limits from 0 or 1. Returns the best sum.
fn exhaustive(tables: &[PathTable], packets: u32, members: Members) -> f64 {
    let Some((first, others)) = tables.split_first() else { return 0.0 };
    (members.least()..=first.limit_packets().min(packets))
        .map(|limit| first.throughput_pps(limit) + exhaustive(others, packets - limit, members))
        .fold(f64::NEG_INFINITY, f64::max)
}

fn any_tables() -> impl Strategy<Value = Vec<Vec<f64>>> {
    prop::collection::vec(prop::collection::vec(0.0..100.0_f64, 1..8), 1..4)
}

/// Sums of falling steps.
fn concave_tables() -> impl Strategy<Value = Vec<Vec<f64>>> {
    let steps = prop::collection::vec(0_u32..100, 1..8).prop_map(|mut steps| {
        steps.sort_by(|a, b| b.cmp(a));
        let mut sum = 0;
        let sums = steps.iter().map(|step| {
            sum += step;
            f64::from(sum)
        });
        sums.collect::<Vec<_>>()
    });
    prop::collection::vec(steps, 1..4)
}

proptest! {
    #[test]
    fn nothing_beats_the_dynamic_program(entries in any_tables(), packets in 3_u32..24) {
        let tables = tables(&entries);
        for members in [Members::All, Members::Paying] {
            let found = allocate(&tables, packets, members).unwrap();
            let used: u32 = found.limits_packets.iter().sum();
            prop_assert!(used <= packets);
            for (limit, table) in found.limits_packets.iter().zip(&tables) {
                prop_assert!((members.least()..=table.limit_packets()).contains(limit));
            }
            let best = exhaustive(&tables, packets, members);
            prop_assert!((found.throughput_pps - best).abs() < 1e-9, "{found:?} for {best}");
        }
    }

    #[test]
    fn the_steepest_step_is_enough_where_tables_are_concave(
        entries in concave_tables(), packets in 3_u32..24
    ) {
        let tables = tables(&entries);
        for members in [Members::All, Members::Paying] {
            let best = dynamic::limits(&tables, packets, members).throughput_pps;
            // With whole numbers the sums are exact in any order.
            let steepest = greedy::limits(&tables, packets, members);
            if tables.iter().all(|table| table.is_concave(members)) {
                prop_assert_eq!(steepest.throughput_pps, best);
                prop_assert_eq!(allocate(&tables, packets, members).unwrap(), steepest);
            }
        }
    }

    #[test]
    fn multiples_are_as_good_as_the_search_through_all_of_them(
        entries in any_tables(), packets in 3_u32..24, multiple in 1_u32..4
    ) {
        let tables = tables(&entries);
        let limits: Vec<_> = tables.iter().map(PathTable::limit_packets).collect();
        let fits = multiple * tables.len() as u32 <= packets
            && limits.iter().all(|limit| multiple <= *limit);
        let found = heuristic(&tables, packets, multiple);
        prop_assert_eq!(found.is_ok(), fits);
        if let Ok(found) = found {
            let value = |path: usize, limit| tables[path].throughput_pps(limit);
            let best = brute_force(&limits, packets, multiple, value);
            prop_assert!((found.throughput_pps - best.throughput_pps).abs() < 1e-9);
            prop_assert!(found.limits_packets.iter().all(|limit| limit.is_multiple_of(multiple)));
            let combinations: u64 =
                limits.iter().map(|limit| u64::from(packets.min(*limit) / multiple)).product();
            prop_assert_eq!(best.combinations, combinations);
        }
    }

    #[test]
    fn the_least_buffer_suffices_and_one_packet_less_does_not(
        entries in any_tables(), share in 0.01..1.0_f64
    ) {
        let tables = tables(&entries);
        let most: f64 = tables.iter().map(PathTable::most_pps).sum();
        prop_assume!(most > 0.0);
        for members in [Members::All, Members::Paying] {
            let found = least_buffer(&tables, share * most, members).unwrap();
            prop_assert!(found.allocation.throughput_pps >= share * most * (1.0 - 1e-12));
            prop_assert!(found.allocation.limits_packets.iter().sum::<u32>() <= found.packets);
            let less = allocate(&tables, found.packets - 1, members);
            prop_assert!(less.is_err() || less.unwrap().throughput_pps < share * most);
        }
    }
}

#[test]
fn a_path_that_does_not_pay_off_is_left_out() {
    // The slow path needs three packets before it delivers anything.
    let tables = tables(&[vec![10.0, 20.0, 30.0, 40.0], vec![0.0, 0.0, 25.0, 50.0]]);
    let all = allocate(&tables, 4, Members::All).unwrap();
    assert_eq!((&all.limits_packets[..], all.throughput_pps), (&[1, 3][..], 35.0));
    let paying = allocate(&tables, 3, Members::Paying).unwrap();
    assert_eq!((&paying.limits_packets[..], paying.throughput_pps), (&[3, 0][..], 30.0));
    assert_eq!(paying.method, Method::Dynamic, "the second table is not concave");
    let four = allocate(&tables, 4, Members::Paying).unwrap();
    assert_eq!((&four.limits_packets[..], four.throughput_pps), (&[0, 4][..], 50.0));
}

/// Figure 14: one path with 10 Mbit/s and 50 ms, one with 25 ms; 128 KiB, packets of 1500 bytes.
#[test]
fn on_the_papers_own_case_the_search_finds_the_same_optimum() {
    for rate_mbps in [5.0, 15.0, 25.0, 35.0, 45.0] {
        let paths = [(rate_mbps, 0.025), (10.0, 0.05)].map(|(rate, delay)| {
            LossyPath::from_bits(rate * 1e6, delay, 1e-3, 60.0, 1500.0).unwrap()
        });
        let tables =
            paths.map(|path| PathTable::markov(&path, 87, LossModel::Independent).unwrap());
        let limits = paths.map(|path| path.window_limit());
        let value = |path: usize, limit| tables[path].throughput_pps(limit);
        let searched = brute_force(&limits, 87, 1, value);
        let found = allocate(&tables, 87, Members::All).unwrap();
        assert_eq!(found.throughput_pps, searched.throughput_pps, "{rate_mbps} Mbit/s");
        let mut before = found.throughput_pps;
        for multiple in [1, 2, 4, 8] {
            let coarse = heuristic(&tables, 87, multiple).unwrap().throughput_pps;
            assert!(coarse <= before, "{multiple} divides into what came before");
            before = coarse;
        }
    }
}

#[test]
fn more_buffer_never_delivers_less_and_ample_buffer_delivers_all() {
    let path = LossyPath::from_bits(10e6, 0.05, 1e-3, 60.0, 1500.0).unwrap();
    let tables = [
        PathTable::markov(&path, 1000, LossModel::Independent).unwrap(),
        PathTable::renewal(&path, 1000).unwrap(),
    ];
    let mut before = 0.0;
    for packets in 2..120 {
        let found = allocate(&tables, packets, Members::All).unwrap().throughput_pps;
        assert!(found >= before, "{packets}: {found} after {before}");
        before = found;
    }
    let most: f64 = tables.iter().map(PathTable::most_pps).sum();
    assert!((before / most - 1.0).abs() < 1e-12, "{before} of {most}");
}

#[test]
fn without_loss_the_shorter_round_trip_is_filled_first() {
    // 35 packets fill the first path, 71 the second.
    let tables =
        [(1750.0, 0.02), (1750.0, 0.04)].map(|(b, d)| PathTable::loss_free(b, d, 1000).unwrap());
    assert_eq!(tables.each_ref().map(PathTable::limit_packets), [36, 71]);
    let found = allocate(&tables, 60, Members::All).unwrap();
    // The 36th packet still gains something, because a round trip is 20 ms and a packet.
    assert_eq!(found.limits_packets, [36, 24]);
    let ample = allocate(&tables, 1000, Members::All).unwrap();
    assert_eq!(ample.throughput_pps, 3500.0);
    assert!(PathTable::loss_free(0.0, 0.02, 9).is_err());
    assert!(PathTable::loss_free(1750.0, 0.02, 0).is_err());
}

#[test]
fn what_cannot_be_is_said_with_what_could() {
    let two = tables(&[vec![1.0, 2.0], vec![3.0]]);
    let error = allocate(&two, 1, Members::All).unwrap_err().to_string();
    assert!(error.contains("1 packet(s) is too small") && error.contains("need 2"), "{error}");
    assert_eq!(allocate(&[], 9, Members::All), Err(OptimiseError::NoPaths));
    assert!(allocate(&two, 0, Members::Paying).is_ok(), "all are left out");
    let error = least_buffer(&two, 6.0, Members::All).unwrap_err().to_string();
    assert!(error.contains("6 is out of reach") && error.ends_with("deliver 5"), "{error}");
    assert!(least_buffer(&two, 0.0, Members::All).is_err());
    assert!(PathTable::new(&[]).is_err() && PathTable::new(&[f64::NAN]).is_err());
    let error = heuristic(&two, 9, 2).unwrap_err().to_string();
    assert!(error.starts_with("multiple_packets = 2"), "{error}");
}
