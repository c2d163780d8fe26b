//! The two checks of new data against the receive window.

use ropewalk_lab::{RunOptions, RunResult, run};
use ropewalk_scenario::Scenario;

/// 2 MB over a fast and a slow path with losses, through a buffer of 20 packets.
const SCENARIO: &str = "[transfer]\nprotocol = \"cmt-sctp\"\npreset = \"paper-2013\"\n\
    bytes = \"2 MB\"\nduration = \"600 s\"\nreceive_buffer = \"30 kB\"\n\
    [[path]]\nname = \"fast\"\nrate = \"8 Mbit/s\"\nrtt = \"20 ms\"\nloss = 0.01\n\
    [[path]]\nname = \"slow\"\nrate = \"4 Mbit/s\"\nrtt = \"200 ms\"\nloss = 0.01\n";

fn result(sets: &[&str], seed: u64) -> RunResult {
    let mut sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    sets.push(format!("transfer.seed={seed}"));
    let scenario = Scenario::parse_with(SCENARIO, "window.toml", &sets).unwrap();
    run(&scenario, &RunOptions::default()).unwrap().result
}

/// Data sent far ahead may fill the buffer, but never stops the transfer or overflows the buffer.
#[test]
fn a_transfer_ends_when_only_unacknowledged_data_counts() {
    for scheduler in ["daps", "daps-lcm", "round-robin"] {
        for capacity in ["window", "window-per-round-trip"] {
            let scheduler = format!("transfer.scheduler={scheduler}");
            let capacity = format!("scheduler.capacity={capacity}");
            let sets = [&scheduler, &capacity, "sctp.window_check=unacknowledged"];
            for seed in 1..6 {
                let done = result(&sets, seed);
                assert!(done.completion_s.is_some(), "{sets:?} seed {seed}: {done:?}");
                assert!(done.receive_buffer.max_bytes <= 30_000, "{sets:?}: {done:?}");
            }
        }
    }
}

/// Round robin sends in order, so both checks permit the same data. A schedule that sends ahead does not.
#[test]
fn only_a_schedule_that_sends_ahead_tells_the_checks_apart() {
    let both = |scheduler: &str| {
        let scheduler = format!("transfer.scheduler={scheduler}");
        ["span", "unacknowledged"].map(|check| {
            let check = format!("sctp.window_check={check}");
            // With `capacity=window`, DAPS plans a full window per forward delay, far ahead of the
            // order.
            let done = result(&[&scheduler, &check, "scheduler.capacity=window"], 1);
            (done.delivered_packets, done.completion_s.map(f64::to_bits), done.paths)
        })
    };
    let [span, unacknowledged] = both("round-robin");
    assert_eq!(span, unacknowledged);
    let [span, unacknowledged] = both("daps");
    assert_ne!(span, unacknowledged);
}
