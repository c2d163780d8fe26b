//! The Markov chain compared with simulated packets, under the assumptions of the chain (Wallace and
//! Shami 2014, Sections 4.1 and 6.1): a SACK for each packet, timeouts of three round trips, four
//! missing reports, windows in packets that are rounded down when halved.

use ropewalk_lab::compare::{Estimate, estimate, map_in_parallel};
use ropewalk_lab::predict::predict;
use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

const ONE_PATH: &str = include_str!("../../../papers/wallace2014/one-path.toml");

/// One path with this loss, and the counting rules of the chain.
fn scenario(loss: &str, duration_s: u64, seed: u64) -> Scenario {
    let sets = [
        "sctp.window_rounding=packets".to_owned(),
        "sctp.min_ssthresh=1".to_owned(),
        "transfer.warmup=20s".to_owned(),
        format!("transfer.duration={duration_s}s"),
        format!("transfer.seed={seed}"),
        format!("path.one.loss={loss}"),
    ];
    Scenario::parse_with(ONE_PATH, "one-path.toml", &sets).unwrap_or_else(|e| panic!("{e}"))
}

fn independent(p: f64) -> String {
    format!("{{ model = 'bernoulli', rate = {p} }}")
}

fn by_rounds(p: f64) -> String {
    format!("{{ model = 'round', rate = {p} }}")
}

/// Throughput of the chain divided by that of the simulation.
fn chain_over_packets(loss: &str, duration_s: u64, seeds: u64) -> Estimate {
    let prediction = predict(&scenario(loss, duration_s, 1));
    let by = &prediction.bundle.markov_bps;
    let chain = if loss.contains("round") { by.correlated } else { by.independent };
    let chain = chain.expect("the chain takes this path");
    let seeds: Vec<u64> = (1..=seeds).collect();
    let ratios = map_in_parallel(&seeds, 2, |seed| {
        let done = run(&scenario(loss, duration_s, *seed), &RunOptions::default());
        chain / done.unwrap_or_else(|e| panic!("{e}")).result.goodput_wire_bps
    });
    estimate(&ratios).expect("seeds")
}

/// Maximum relative difference of the chain from packets.
const MOST: f64 = 0.015;

/// Asserts the maximum difference, within the accuracy of this number of runs (1 % or better).
fn assert_not_beyond(loss: &str, duration_s: u64, seeds: u64) {
    let ratio = chain_over_packets(loss, duration_s, seeds);
    let half_width = ratio.half_width.expect("several seeds");
    assert!(half_width < 0.0125, "{loss}: ± {half_width} tells nothing");
    assert!((ratio.mean - 1.0).abs() - half_width < MOST, "{loss}: {ratio:?}");
}

#[test]
fn up_to_1e_3_packets_do_not_contradict_1_5_percent_with_either_kind_of_loss() {
    for (p, duration_s, seeds) in [(1e-4, 500, 6), (3e-4, 500, 12), (1e-3, 500, 28)] {
        assert_not_beyond(&independent(p), duration_s, seeds);
        assert_not_beyond(&by_rounds(p), duration_s, seeds);
    }
}

/// The one point up to 1e-3 that exceeds the maximum: losses by rounds at 1e-3. Its difference is within
/// these bounds (docs/decisions/models.md).
const BELOW_BY_ROUNDS: std::ops::Range<f64> = 0.015..0.023;

/// Takes ten minutes on two cores: `cargo test --release -p ropewalk-lab --test all markov --
/// --ignored`.
#[test]
#[ignore = "takes minutes: so many losses are needed for a third of a percent"]
fn up_to_1e_3_the_chain_is_within_1_5_percent_of_packets_but_for_losses_by_rounds_at_1e_3() {
    for (p, seeds) in [(1e-4, 16), (3e-4, 32), (1e-3, 64)] {
        for loss in [independent(p), by_rounds(p)] {
            let ratio = chain_over_packets(&loss, 2000, seeds);
            assert!(ratio.half_width.is_some_and(|half| half < MOST / 3.0), "{loss}: {ratio:?}");
            if loss == by_rounds(1e-3) {
                assert!(BELOW_BY_ROUNDS.contains(&(1.0 - ratio.mean)), "{loss}: {ratio:?}");
            } else {
                assert!((ratio.mean - 1.0).abs() < MOST, "{loss}: {ratio:?}");
            }
        }
    }
}

#[test]
fn above_the_chain_says_too_little_and_windows_in_bytes_widen_the_gap() {
    let packets = chain_over_packets(&independent(1e-2), 400, 3).mean;
    let bytes = scenario(&independent(1e-2), 400, 1);
    let mut sctp = bytes.sctp;
    sctp.window_rounding = None;
    sctp.min_ssthresh = None;
    let done = run(&Scenario { sctp, ..bytes.clone() }, &RunOptions::default());
    let goodput = done.unwrap_or_else(|e| panic!("{e}")).result.goodput_wire_bps;
    let chain = predict(&bytes).bundle.markov_bps.independent.expect("the chain takes this path");
    let as_published = chain / goodput;
    assert!((0.93..0.98).contains(&packets), "{packets}");
    assert!(as_published < packets - 0.02, "{as_published} in bytes, {packets} in packets");
}
