//! The preset `chihani2011` compared with measurements of the model that it repeats: two point-to-point
//! paths of 10 ms each way, queues of 100 packets, segments of 1400 B, 50 s, uncoupled windows.

use ropewalk_lab::{RunOptions, RunResult, run};
use ropewalk_scenario::Scenario;

fn scenario(rates: [f64; 2], rule: &str, more: &str) -> Scenario {
    // Headers of 64 B, and 12 B of timestamps if they are used.
    let packet = if rule == "eifel" { 1476 } else { 1464 };
    let path = |name, rate| {
        format!(
            "[[path]]\nname = '{name}'\nrate = '{rate} Mbit/s'\ndelay = '10 ms'\n\
             queue = '100 packets'\n"
        )
    };
    let text = format!(
        "[transfer]\nprotocol = 'mptcp'\npreset = 'chihani2011'\nduration = '50 s'\n\
         packet = '{packet} B'\n{more}\n[tcp]\nrecovery = '{rule}'\n{}{}",
        path("a", rates[0]),
        path("b", rates[1])
    );
    Scenario::parse(&text, "chihani.toml").unwrap_or_else(|e| panic!("{e}"))
}

fn result(rates: [f64; 2], rule: &str) -> RunResult {
    let scenario = scenario(rates, rule, "");
    run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{rule}: {e}")).result
}

const EQUAL: [f64; 2] = [5.0, 5.0];
const UNEQUAL: [f64; 2] = [20.0, 1.5];

/// Rates, rule, goodput of the model in Mbit/s, and its out-of-order ratio where it is known.
const MEASURED: [([f64; 2], &str, f64, Option<f64>); 8] = [
    (EQUAL, "none", 5.0, None),
    (EQUAL, "eifel", 6.4, None),
    (EQUAL, "tcp-door", 9.4, None),
    (EQUAL, "d-sack", 9.4, None),
    (UNEQUAL, "none", 1.5, Some(0.07)),
    (UNEQUAL, "eifel", 3.0, Some(0.54)),
    (UNEQUAL, "tcp-door", 3.0, Some(0.55)),
    (UNEQUAL, "d-sack", 19.0, Some(0.10)),
];

#[test]
fn goodput_and_out_of_order_ratio_are_those_of_the_model_within_a_quarter() {
    let mut misses = Vec::new();
    for (rates, rule, goodput, ratio) in MEASURED {
        let found = result(rates, rule);
        let mbit = found.goodput_bps / 1e6;
        let mut off = (mbit / goodput - 1.0).abs();
        if let Some(ratio) = ratio {
            off = off.max((found.out_of_order.ratio / ratio - 1.0).abs());
        }
        let line = format!(
            "{rates:?} {rule:9} {mbit:6.2} Mbit/s ({goodput}), out of order {:.3} ({ratio:?})",
            found.out_of_order.ratio
        );
        println!("{line}");
        misses.extend((off > 0.25).then_some(line));
    }
    assert!(misses.is_empty(), "more than a quarter off:\n{}", misses.join("\n"));
}

#[test]
fn the_rules_come_in_the_order_of_the_model() {
    for rates in [EQUAL, UNEQUAL] {
        let order = ["none", "eifel", "tcp-door", "d-sack"];
        let found = order.map(|rule| result(rates, rule).goodput_bps);
        let of_model: Vec<f64> =
            MEASURED.iter().filter(|row| row.0 == rates).map(|row| row.2).collect();
        for i in 1..order.len() {
            // Values that are equal in the model may differ by a tenth here.
            let (less, more) =
                if of_model[i - 1] < of_model[i] { (1.0, "above") } else { (0.9, "beside") };
            assert!(
                found[i] >= less * found[i - 1],
                "{rates:?}: {} is not {more} {}: {found:?}",
                order[i],
                order[i - 1]
            );
        }
    }
}

#[test]
fn f_rto_is_tcp_door_until_a_timer_expires() {
    // 5 Mbit/s for 60 s do not fill a queue of 10 000 packets, so nothing is lost.
    let lossless = |rule| {
        let sets = ["a", "b"].map(|path| format!("path.{path}.queue=10000 packets"));
        let text = scenario(EQUAL, rule, "").to_toml();
        let scenario = Scenario::parse_with(&text, "chihani.toml", &sets).expect("it stands");
        run(&scenario, &RunOptions::default()).expect("it runs").result
    };
    let (door, same) = (lossless("tcp-door"), lossless("f-rto"));
    let timeouts = |result: &RunResult| result.paths.iter().map(|path| path.timeouts).sum::<u64>();
    assert_eq!((timeouts(&door), timeouts(&same)), (0, 0));
    assert_eq!(same.delivered_bytes, door.delivered_bytes);
    assert_eq!(same.out_of_order, door.out_of_order);
    // A queue of 100 packets causes losses. After a timeout, only F-RTO's windows grow on duplicates.
    let (door, other) = (result(EQUAL, "tcp-door"), result(EQUAL, "f-rto"));
    assert!(timeouts(&door) > 0 && timeouts(&other) > 0);
    assert_ne!(other.delivered_bytes, door.delivered_bytes);
}

#[test]
fn f_rto_loses_goodput_by_the_acknowledgements_that_it_throws_away() {
    let whole = result(EQUAL, "f-rto");
    let mut faulty = scenario(EQUAL, "f-rto", "");
    faulty.tcp.ack_burst_loss = Some(0.03);
    let once = run(&faulty, &RunOptions::default()).expect("it runs").result;
    let again = run(&faulty, &RunOptions::default()).expect("it runs").result;
    assert_eq!(once.delivered_bytes, again.delivered_bytes, "it is seeded");
    assert!(once.goodput_bps < 0.95 * whole.goodput_bps, "{}", once.goodput_bps);
}

#[test]
fn every_coupling_of_the_model_carries_data_with_every_rule() {
    for congestion in ["newreno", "lia", "fully-coupled"] {
        for rule in ["none", "d-sack", "eifel", "tcp-door", "f-rto"] {
            let more = format!("congestion = '{congestion}'");
            let scenario = scenario(EQUAL, rule, &more);
            let found = run(&scenario, &RunOptions::default()).expect("it runs").result;
            assert!(found.goodput_bps > 3e6, "{congestion}, {rule}: {}", found.goodput_bps);
        }
    }
}

#[test]
fn a_single_path_of_the_model_fills_its_link_and_finishes() {
    let text = "[transfer]\nprotocol = 'tcp'\npreset = 'chihani2011'\nbytes = '5 MB'\n\
                [[path]]\nname = 'a'\nrate = '5 Mbit/s'\ndelay = '10 ms'\nqueue = '100 packets'\n";
    let scenario = Scenario::parse(text, "chihani.toml").expect("a valid scenario");
    let found = run(&scenario, &RunOptions::default()).expect("it runs").result;
    assert!(found.completion_s.is_some_and(|s| (8.0..12.0).contains(&s)), "{found:?}");
}
