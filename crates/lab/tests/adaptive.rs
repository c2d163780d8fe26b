//! Adaptive window management compared with none, using the same seeds. Where nothing changes, it costs
//! nothing. It gains where a path queues, becomes slow, or is not worth its share of the buffer
//! (docs/concepts/models.md).

use ropewalk_lab::compare::{Estimate, estimate, map_in_parallel};
use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

const TWO_PATHS: &str = include_str!("../../../papers/wallace2014/two-paths.toml");
const SEEDS: u64 = 4;

fn goodput(manager: &str, seed: u64, sets: &[&str]) -> f64 {
    let usual = [
        "transfer.duration=60 s".to_owned(),
        format!("transfer.window_manager={manager}"),
        format!("transfer.seed={seed}"),
    ];
    let sets: Vec<_> = usual.into_iter().chain(sets.iter().map(|s| (*s).to_owned())).collect();
    let scenario = Scenario::parse_with(TWO_PATHS, "two-paths.toml", &sets);
    let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
    let done = run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    done.result.goodput_bps
}

/// Relative gain in goodput of adaptive management over none.
fn gain(sets: &[&str]) -> Estimate {
    let seeds: Vec<u64> = (1..=SEEDS).collect();
    let gains = map_in_parallel(&seeds, 2, |seed| {
        goodput("adaptive", *seed, sets) / goodput("none", *seed, sets) - 1.0
    });
    estimate(&gains).expect("seeds")
}

#[test]
fn where_nothing_changes_and_nothing_is_to_be_gained_it_costs_less_than_half_a_percent() {
    for sets in [
        &["path.first.loss=3e-3"][..],
        &["path.first.loss=1e-2"],
        &["path.first.loss=3e-3", "path.second.loss=3e-3"],
        &["path.first.loss=3e-3", "transfer.receive_buffer=192 KiB"],
        &["path.second.rtt=20 ms"],
        &["path.second.rtt=80 ms"],
        &["path.first.loss=1e-2", "path.second.rtt=80 ms"],
    ] {
        let gain = gain(sets);
        assert!(gain.mean > -0.005, "{sets:?}: {gain:?}");
    }
}

#[test]
fn a_queue_that_shuts_the_window_goes_and_so_does_a_path_that_only_costs() {
    for (sets, least) in [
        (&["path.second.rate=5 Mbit/s"][..], 0.4),
        (&["path.second.rate=10 Mbit/s"], 0.05),
        (&["path.second.steps=[{ at = '30 s', rate = '5 Mbit/s' }]"], 0.1),
        (&["path.first.loss=1e-1", "transfer.receive_buffer=64 KiB"], 0.2),
    ] {
        let gain = gain(sets);
        assert!(gain.mean > least, "{sets:?}: {gain:?}");
    }
}
