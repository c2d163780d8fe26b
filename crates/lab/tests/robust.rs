//! Guarantees of the live transport on bad paths, simulated with the same settings.

use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

fn result(name: &str, text: &str, changes: &[String]) -> ropewalk_lab::RunResult {
    let scenario = Scenario::parse_with(text, name, changes).unwrap_or_else(|e| panic!("{e}"));
    let finished = run(&scenario, &RunOptions::default());
    finished.unwrap_or_else(|e| panic!("{name} {changes:?}: {e}")).result
}

/// The scenario's text, and that of its first path alone.
fn of_live_benchmark(name: &str) -> [String; 2] {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/live/robust/");
    let text = std::fs::read_to_string(format!("{file}{name}")).expect("a scenario");
    let second = text.rfind("[[path]]").expect("two paths");
    [text.clone(), text[..second].to_owned()]
}

#[test]
fn two_fast_unequal_paths_that_lose_by_overrun_neither_close_nor_fall_below_the_first() {
    let [both, first] = of_live_benchmark("overrun.toml");
    let changes = ["transfer.duration=6 s".to_owned()];
    let single = result("overrun.toml", &first, &changes);
    let bundle = result("overrun.toml", &both, &changes);
    for path in &bundle.paths {
        assert!(path.lost_packets > 20, "{}: {} lost", path.name, path.lost_packets);
    }
    let (got, alone) = (bundle.goodput_bps, single.goodput_bps);
    assert!(got > alone, "{got} beside {alone} alone");
}

#[test]
fn a_path_that_loses_one_packet_in_twenty_costs_a_clean_one_nothing() {
    let [both, clean] = of_live_benchmark("lossy.toml");
    for (buffer, rate, rtt) in [
        ("64 kB", 20, 20),
        ("1 MB", 20, 20),
        ("1 MB", 50, 10),
        ("256 kB", 5, 100),
        ("16 MB", 20, 20),
    ] {
        let changes = [
            "transfer.duration=15 s".to_owned(),
            format!("transfer.receive_buffer={buffer}"),
            format!("path.clean.rate={rate} Mbit/s"),
            format!("path.clean.rtt={rtt} ms"),
        ];
        let alone = result("lossy.toml", &clean, &changes).goodput_bps;
        let got = result("lossy.toml", &both, &changes).goodput_bps;
        assert!(got >= 0.95 * alone, "{buffer}, {rate} Mbit/s: {got} beside {alone} alone");
    }
}

/// A link whose rate is almost zero twice for three seconds: packets wait, and arrive after they were declared
/// lost.
fn link_with_gaps(name: &str, mbps: u32, rtt_ms: u32) -> String {
    let full = format!("rate = '{mbps} Mbit/s'");
    let steps: Vec<_> = [5, 14]
        .map(|at| {
            let end = at + 3;
            format!("{{ at = '{at} s', rate = '1 bit/s' }}, {{ at = '{end} s', {full} }}")
        })
        .into();
    let steps = steps.join(", ");
    let queue = 25 * mbps;
    format!(
        "[[path]]\nname = '{name}'\n{full}\nrtt = '{rtt_ms} ms'\nqueue = '{queue} kB'\nsteps = [{steps}]\n"
    )
}

#[test]
fn a_bundle_whose_links_stop_together_is_as_fast_after_it_as_before() {
    for (rates, rtts) in [([10, 16], [40, 40]), ([10, 30], [25, 25]), ([8, 20], [30, 60])] {
        let links =
            link_with_gaps("a", rates[0], rtts[0]) + &link_with_gaps("b", rates[1], rtts[1]);
        for seed in 1..=4 {
            let text = format!(
                "[transfer]\npreset = 'live'\nduration = '40 s'\nwarmup = '18 s'\nreceive_buffer = '6 MB'\nseed = {seed}\n{links}"
            );
            let scenario = Scenario::parse(&text, "gaps.toml").unwrap_or_else(|e| panic!("{e}"));
            let result = run(&scenario, &RunOptions::default()).expect("it runs").result;
            let sum = f64::from(rates[0] + rates[1]) * 1e6;
            // Headers of sealed packets take 6 %.
            let share = result.goodput_bps / sum;
            assert!(share > 0.90, "{rates:?} {rtts:?}, seed {seed}: {share}");
        }
    }
}

/// `lay` and the transports of its presets, with paths that become longer.
const TRANSPORTS: [&str; 4] = [
    "protocol = 'cmt-sctp'\npreset = 'live'",
    "protocol = 'cmt-sctp'",
    "protocol = 'mptcp'",
    "protocol = 'mptcp'\npreset = 'linux-6'",
];

#[test]
fn a_bundle_of_which_one_link_becomes_longer_is_as_fast_as_before() {
    let delays = [23, 26, 30, 35, 50];
    for (transport, delay_ms) in TRANSPORTS.iter().flat_map(|t| delays.map(|delay| (t, delay))) {
        let text = format!(
            "[transfer]\n{transport}\nduration = '50 s'\nwarmup = '25 s'\nreceive_buffer = '6 MB'\n\
             [[path]]\nname = 'a'\nrate = '10 Mbit/s'\nrtt = '40 ms'\nqueue = '250 kB'\n\
             [[path]]\nname = 'b'\nrate = '30 Mbit/s'\nrtt = '40 ms'\nqueue = '400 kB'\n\
             steps = [{{ at = '10 s', delay = '{delay_ms} ms' }}]\n"
        );
        let goodput_bps = result("longer.toml", &text, &[]).goodput_bps;
        // Headers of sealed packets take 6 %.
        assert!(goodput_bps > 0.91 * 40e6, "{transport}, {delay_ms} ms: {goodput_bps}");
    }
}
