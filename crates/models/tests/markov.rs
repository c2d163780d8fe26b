//! The chain compared with reference values, and its two solutions with each other.

use proptest::prelude::*;
use ropewalk_models::markov::{self, plain};
use ropewalk_models::{LossModel, LossyPath, window_packets};

const BITS: f64 = 12_000.0;

fn path(rate_mbps: f64, delay_s: f64, p: f64) -> LossyPath {
    LossyPath::from_bits(rate_mbps * 1e6, delay_s, p, 60.0, 1500.0).unwrap()
}

fn off(a: f64, b: f64) -> f64 {
    (a / b - 1.0).abs()
}

/// Loss, correlated, independent; Mbit/s, at 21 Mbit/s, 40 ms, 128 KiB, packets of 1500 bytes.
const REFERENCE: [(f64, f64, f64); 4] =
    [(1e-4, 19.791, 20.023), (1e-3, 10.966, 11.767), (1e-2, 2.725, 3.477), (1e-1, 0.462, 0.627)];

#[test]
fn both_loss_models_agree_with_the_reference_to_a_thousandth() {
    let window = window_packets(131_072.0, 1500.0).unwrap();
    for (p, correlated, independent) in REFERENCE {
        let models = [(LossModel::Correlated, correlated), (LossModel::Independent, independent)];
        for (model, expected) in models {
            let path = path(21.0, 0.04, p);
            let mbps = markov::throughput_pps(&path, window, model).unwrap() * BITS / 1e6;
            assert!(off(mbps, expected) < 1e-3, "{model} at {p}: {mbps} for {expected}");
        }
    }
}

/// All small windows, and those around powers of two, where slow start gains a state.
const WINDOWS: [u32; 35] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 23, 24, 31, 32, 33, 40, 47,
    48, 57, 63, 64, 65, 80, 87, 99, 100,
];

#[test]
fn the_structured_solution_is_that_of_the_chain_written_out() {
    for model in LossModel::ALL {
        for p in [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3] {
            let path = path(21.0, 0.04, p);
            let table = markov::table(&path, 100, model).unwrap();
            for window in WINDOWS {
                let plain = plain::solve(&path, window, model).unwrap();
                let found = off(table[window as usize - 1], plain.throughput_pps);
                assert!(found < 1e-9, "{model} W {window} p {p}: {found}");
            }
        }
    }
}

#[test]
fn paths_of_every_shape_agree_in_every_figure() {
    // Mbit/s, s, loss, maximum timer in s: no delay, one packet in flight, no doubling, almost no
    // loss, almost only loss.
    let shapes = [
        (10.0, 0.0, 0.01, 60.0),
        (0.1, 0.05, 0.02, 60.0),
        (5.0, 0.1, 0.05, 0.31),
        (5.0, 0.1, 0.05, 0.7),
        (5.0, 0.1, 0.05, 1.3),
        (50.0, 0.01, 1e-6, 60.0),
        (5.0, 0.1, 0.9, 60.0),
    ];
    for model in LossModel::ALL {
        for (rate, delay_s, p, rto_max_s) in shapes {
            let path = LossyPath::from_bits(rate * 1e6, delay_s, p, rto_max_s, 1500.0).unwrap();
            for window in [1, 2, 5, 16, 45] {
                let plain = plain::solve(&path, window, model).unwrap();
                let found = markov::solve(&path, window, model).unwrap();
                let pairs = [
                    (found.throughput_pps, plain.throughput_pps),
                    (found.sent_pps, plain.sent_pps),
                    (found.window_mean_packets, plain.window_mean_packets),
                    (found.timeouts_per_s, plain.timeouts_per_s),
                    (found.recoveries_per_s, plain.recoveries_per_s),
                    (found.timer_share, plain.timer_share),
                ];
                for (found, plain) in pairs {
                    // Rates are differences of sums over the climb: events rarer than once in the age
                    // of the universe have no significant digits left.
                    let same = (found - plain).abs() <= 1e-9 * plain + 1e-18;
                    assert!(same, "{model} {path:?} {window}: {found} {plain}");
                }
            }
        }
    }
}

#[test]
fn the_chain_written_out_loses_no_probability() {
    let path = path(21.0, 0.04, 0.02);
    for model in LossModel::ALL {
        let chain = plain::Chain::new(&path, 30, model).unwrap();
        for (state, row) in chain.states.iter().zip(&chain.transitions) {
            let all: f64 = row.iter().map(|way| way.probability).sum();
            assert!((all - 1.0).abs() < 1e-13, "{state:?}: {all}");
        }
        assert!(chain.residual(&chain.stationary()) < 1e-14);
    }
}

#[test]
fn without_loss_nearly_the_window_crosses_in_each_round_trip() {
    let path = path(21.0, 0.04, 1e-13);
    for model in LossModel::ALL {
        for (window, pps) in markov::table(&path, 200, model).unwrap().iter().enumerate() {
            let window = window as u32 + 1;
            assert!(off(*pps, path.loss_free_pps(window)) < 1e-8, "{model} {window}: {pps}");
        }
    }
}

#[test]
fn limits_out_of_reach_change_nothing_and_lower_ones_do_not_depend_on_higher() {
    let path = path(21.0, 0.04, 0.01);
    for model in LossModel::ALL {
        let long = markov::table(&path, 5000, model).unwrap();
        let short = markov::table(&path, 60, model).unwrap();
        assert_eq!(long[..60], short);
        assert_eq!(long[4999], long[999]);
        let far = markov::throughput_pps(&path, u32::MAX, model).unwrap();
        assert_eq!(far, long[4999], "a window without limit is no more work");
    }
}

#[test]
fn the_ladder_ends_where_the_rule_for_wide_windows_expects_it() {
    for p in [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9] {
        let path = LossyPath::from_bits(10e9, 0.1, p, 60.0, 1500.0).unwrap();
        for model in LossModel::ALL {
            let found = markov::stationary(&path, 100_000, model).unwrap();
            let top = found.clean.len() as f64 - 1.0;
            assert!(top <= 13.0 / f64::sqrt(p), "{model} {p}: {top}");
        }
    }
}

#[test]
fn several_windows_at_once_are_each_as_alone() {
    let path = path(21.0, 0.04, 0.003);
    let windows = [87, 1, 2, 40, 87];
    for model in LossModel::ALL {
        let each = markov::solve_each(&path, &windows, model).unwrap();
        for (window, found) in windows.iter().zip(&each) {
            assert_eq!(*found, markov::solve(&path, *window, model).unwrap());
        }
        assert_eq!(markov::solve_each(&path, &[], model), Ok(Vec::new()));
        assert!(markov::solve_each(&path, &[3, 0], model).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_path_is_solved_as_written_out_and_no_better_than_without_loss(
        rate_pps in 1.0..1e5_f64,
        delay_s in 0.0..0.5_f64,
        exponent in -6.0..-0.05_f64,
        doublings in 1.0..1e3_f64,
        window in 1_u32..30,
    ) {
        let p = 10_f64.powf(exponent);
        let rto_max_s = 3.0 * (delay_s + 1.0 / rate_pps) * doublings;
        let path = LossyPath::new(rate_pps, delay_s, p, rto_max_s).unwrap();
        for model in LossModel::ALL {
            let found = markov::solve(&path, window, model).unwrap();
            let plain = plain::solve(&path, window, model).unwrap();
            prop_assert!(off(found.throughput_pps, plain.throughput_pps) < 1e-9);
            prop_assert!(off(found.window_mean_packets, plain.window_mean_packets) < 1e-9);
            prop_assert!((found.timer_share - plain.timer_share).abs() < 1e-12);
            prop_assert!(found.throughput_pps <= path.loss_free_pps(window) * (1.0 + 1e-12));
            prop_assert!(found.throughput_pps <= found.sent_pps * (1.0 - p) * (1.0 + 1e-12));
        }
    }
}

#[test]
fn no_window_and_too_wide_a_window_are_refused() {
    let path = path(21.0, 0.04, 0.01);
    let error = markov::solve(&path, 0, LossModel::Independent).unwrap_err().to_string();
    assert_eq!(error, "window_packets = 0 is out of range: it must be 1 or more");
    assert!(markov::table(&path, 0, LossModel::Correlated).is_err());
    for (model, p) in [(LossModel::Correlated, 3e-8), (LossModel::Independent, 1e-10)] {
        let rare = self::path(21.0, 0.04, p);
        assert!(markov::solve(&rare, u32::MAX, model).is_err(), "{model}");
    }
    assert!(markov::table(&path, markov::TABLE_MAX + 1, LossModel::Independent).is_err());
    let error = plain::solve(&path, 301, LossModel::Independent).unwrap_err().to_string();
    assert!(error.contains("at most 300"), "{error}");
}

#[test]
fn the_stationary_distribution_is_that_of_the_chain_written_out() {
    for (window, p) in [(2, 0.1), (3, 0.05), (4, 0.3), (7, 0.02), (40, 1e-4), (40, 0.02)] {
        let path = path(21.0, 0.04, p);
        for model in LossModel::ALL {
            let found = markov::stationary(&path, window, model).unwrap();
            let chain = plain::Chain::new(&path, window, model).unwrap();
            let (mut clean, mut lossy) = (vec![0.0; 41], vec![0.0; 41]);
            let (mut slow_start, mut back_off) = (0.0, 0.0);
            for (state, share) in chain.states.iter().zip(chain.stationary()) {
                match *state {
                    plain::State::Avoidance { window, sent } if window == sent => {
                        clean[window as usize] += share;
                    }
                    plain::State::Avoidance { window, .. } => lossy[window as usize] += share,
                    plain::State::SlowStart { .. } => slow_start += share,
                    plain::State::BackOff { .. } => back_off += share,
                }
            }
            let close = |a: f64, b: f64| {
                assert!((a - b).abs() < 1e-12, "{model} W {window} p {p}: {a} for {b}");
            };
            found.clean.iter().zip(&clean).for_each(|(a, b)| close(*a, *b));
            found.lossy.iter().zip(&lossy).for_each(|(a, b)| close(*a, *b));
            close(found.slow_start, slow_start);
            close(found.back_off, back_off);
        }
    }
}

#[test]
fn wide_windows_are_balanced_to_a_ten_thousand_millionth() {
    for (window, model, p) in [
        (10_000, LossModel::Independent, 1e-7),
        (10_000, LossModel::Independent, 1e-4),
        (1_500, LossModel::Correlated, 1e-6),
        (1_500, LossModel::Correlated, 1e-3),
    ] {
        let path = LossyPath::from_bits(1e9, 0.05, p, 60.0, 1500.0).unwrap();
        let found = markov::stationary(&path, window, model).unwrap();
        assert!(found.residual < 1e-10, "{model} {window} {p}: {}", found.residual);
        let all: f64 = found.clean.iter().chain(&found.lossy).sum();
        assert!((all + found.slow_start + found.back_off - 1.0).abs() < 1e-12);
    }
}
