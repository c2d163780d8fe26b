//! The preset `linux-6`: its rules are options, and what a small buffer costs.

use ropewalk_lab::{RunOptions, RunResult, run};
use ropewalk_scenario::Scenario;

/// Two equal paths with queues of one BDP.
const SCENARIO: &str = "[transfer]\nprotocol = \"mptcp\"\npreset = \"linux-6\"\nduration = \"8 s\"\n\
    warmup = \"2 s\"\nreceive_buffer = \"45 kB\"\n\
    [[path]]\nname = \"a\"\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\nqueue = \"1 BDP\"\n\
    [[path]]\nname = \"b\"\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\nqueue = \"1 BDP\"\n";

/// The rules of the preset, one by one.
const RULES: &[&str] = &[
    "transfer.congestion=cubic",
    "transfer.hystart=true",
    "transfer.prr=true",
    "transfer.guard=false",
    "transfer.scheduler=linux",
    "scheduler.linux_turns=push",
    "tcp.receive_rules=linux",
    "tcp.quick_acks=16",
    "tcp.rto_formula=linux",
    "tcp.window_use=linux",
    "tcp.hystart_rules=linux",
    "tcp.cubic_rules=linux",
    "tcp.fragment=32704 B",
    "tcp.nagle=true",
    "tcp.whole_packets=true",
];

fn result(sets: &[&str]) -> RunResult {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse_with(SCENARIO, "linux.toml", &sets).unwrap();
    run(&scenario, &RunOptions::default()).unwrap().result
}

fn goodput(sets: &[&str]) -> f64 {
    result(sets).goodput_bps
}

#[test]
fn the_preset_is_rfc_8684_with_the_rules_of_linux_as_options() {
    let sets: Vec<_> = RULES.iter().copied().chain(["transfer.preset=rfc8684"]).collect();
    let (preset, options) = (result(&[]), result(&sets));
    assert_eq!(preset.delivered_packets, options.delivered_packets);
    assert_eq!(preset.paths, options.paths);
}

/// Data out of order takes space in the buffer, so the right edge of the window stays where it is.
#[test]
fn the_receive_rules_of_linux_make_a_bundle_with_a_small_buffer_slower_than_its_paths() {
    let (linux, payload) = (goodput(&[]), goodput(&["tcp.receive_rules=payload"]));
    assert!(linux < 0.85 * payload, "{linux} and {payload}");
    // Linux 6.18 had 9.1 and 9.2 Mbit/s.
    assert!((8.0e6..11.0e6).contains(&linux), "{linux}");
}

#[test]
fn a_large_buffer_hides_the_rules() {
    let linux = goodput(&["transfer.receive_buffer=1 MiB"]);
    // Linux 6.18 had 19.0 Mbit/s.
    assert!((18.5e6..19.5e6).contains(&linux), "{linux}");
}
