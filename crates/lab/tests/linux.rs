//! The preset `linux-6`: its rules are options; and the cost of a small buffer.

use ropewalk_lab::{RunOptions, RunResult, run};
use ropewalk_scenario::{Named, Scenario, SchedulerName};

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
    // Linux 6.18 reached 9.1 and 9.2 Mbit/s.
    assert!((8.0e6..11.0e6).contains(&linux), "{linux}");
}

/// Goodput of Linux 6.18 in Mbit/s for TCP on one path with a queue of one BDP: rate in Mbit/s, round trip in ms, and
/// `SO_RCVBUF`.
const KERNEL: &[(u32, u32, &str, f64)] = &[
    (10, 20, "45 kB", 9.34),
    (10, 20, "1 MiB", 9.65),
    (10, 200, "45 kB", 2.11),
    (10, 200, "1 MiB", 9.30),
    (50, 20, "45 kB", 20.52),
    (50, 20, "1 MiB", 48.27),
    (2, 200, "45 kB", 1.93),
    (2, 200, "1 MiB", 1.93),
];

#[test]
fn tcp_on_one_path_is_within_five_percent_of_the_kernel() {
    for (rate, rtt, buffer, kernel) in KERNEL {
        let sets = [
            "transfer.protocol=tcp".to_owned(),
            "transfer.duration=15 s".to_owned(),
            "transfer.warmup=5 s".to_owned(),
            format!("transfer.receive_buffer={buffer}"),
            format!("path.a.rate={rate} Mbit/s"),
            format!("path.a.rtt={rtt} ms"),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let ratio = goodput(&sets) / 1e6 / kernel;
        assert!((ratio - 1.0).abs() < 0.05, "{rate} Mbit/s, {rtt} ms, {buffer}: {ratio}");
    }
}

#[test]
fn a_growing_buffer_fills_a_path_that_a_fixed_one_does_not() {
    let path = ["transfer.protocol=tcp", "transfer.receive_buffer=128 KiB", "path.a.rtt=200 ms"];
    let grows: Vec<_> = path.iter().copied().chain(["tcp.receive_buffer_max=32 MiB"]).collect();
    let (fixed, growing) = (goodput(&path), goodput(&grows));
    // The window of the fixed buffer is 163 840 B.
    assert!(fixed < 6.6e6 && growing > 9.0e6, "{fixed} and {growing}");
}

#[test]
fn a_large_buffer_hides_the_rules() {
    let linux = goodput(&["transfer.receive_buffer=1 MiB"]);
    // Linux 6.18 reached 19.0 Mbit/s.
    assert!((18.5e6..19.5e6).contains(&linux), "{linux}");
}

#[test]
fn every_scheduler_fills_a_path() {
    for scheduler in SchedulerName::ALL {
        let text = format!(
            "[transfer]\nprotocol = 'mptcp'\npreset = 'linux-6'\nscheduler = '{scheduler}'\n\
             duration = '4 s'\nwarmup = '2 s'\nreceive_buffer = '4 MB'\n\
             [[path]]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n"
        );
        let scenario = Scenario::parse(&text, "linux.toml").unwrap();
        let goodput = run(&scenario, &RunOptions::default()).unwrap().result.goodput_bps;
        assert!(goodput > 9e6, "{scheduler}: {goodput} bit/s");
    }
}
