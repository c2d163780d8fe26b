//! Rate-based congestion control (`bbr`, `bbr-v1`) and the end of slow start (HyStart++), under both
//! protocols.

use ropewalk_lab::{RunOptions, RunResult, run};
use ropewalk_scenario::Scenario;

/// Runs a transfer over one path of 50 Mbit/s and 40 ms.
fn over_one_path(protocol: &str, transfer: &str, path: &str) -> RunResult {
    let text = format!(
        "[transfer]\nprotocol = '{protocol}'\nduration = '30 s'\n\
         receive_buffer = '16 MB'\n{transfer}\n\
         [[path]]\nname = 'a'\nrate = '50 Mbit/s'\nrtt = '40 ms'\n{path}\n"
    );
    let scenario = Scenario::parse(&text, "rates.toml").unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}")).result
}

#[test]
fn bbr_fills_a_path_and_leaves_its_queue_nearly_empty() {
    for protocol in ["sctp", "cmt-sctp", "tcp", "mptcp"] {
        let queue = "queue = '4 BDP'";
        let bbr = over_one_path(protocol, "congestion = 'bbr'", queue);
        let cubic = over_one_path(protocol, "congestion = 'cubic'", queue);
        let [delay, filled] = [&bbr, &cubic].map(|result| result.app_delay_s.p50);
        println!("{protocol}: {} bit/s, median delay {delay} and {filled} s", bbr.goodput_bps);
        assert!(bbr.goodput_bps > 0.92 * cubic.goodput_bps, "{protocol}: {}", bbr.goodput_bps);
        assert!(delay < 0.024 && filled > 0.05, "{protocol}: {delay} {filled}");
        assert_eq!(bbr.paths[0].lost_packets, 0, "{protocol}");
    }
}

#[test]
fn version_1_of_bbr_fills_a_path_keeps_a_short_queue_and_ignores_random_losses() {
    for protocol in ["cmt-sctp", "tcp"] {
        let of = |path: &str| over_one_path(protocol, "congestion = 'bbr-v1'", path);
        let (alone, lossy) = (of("queue = '4 BDP'"), of("queue = '1 BDP'\nloss = 0.01"));
        let [rate, rate_lossy] = [&alone, &lossy].map(|result| result.goodput_bps / 1e6);
        let delay = alone.app_delay_s.p50;
        println!("{protocol}: {rate:.1} Mbit/s, {delay} s; {rate_lossy:.1} with losses");
        assert!(rate > 44.0 && rate_lossy > 43.0, "{protocol}: {rate} {rate_lossy}");
        assert!(delay < 0.04 && alone.paths[0].lost_packets == 0, "{protocol}: {delay}");
    }
}

/// Two flows with different algorithms on a shared link.
fn beside_each_other(first: &str, other: &str) -> [f64; 2] {
    let text = format!(
        "[transfer]\nprotocol = 'tcp'\nduration = '20 s'\nwarmup = '5 s'\nreceive_buffer = '4 MB'\n\
         congestion = '{first}'\n[world]\nassociations = 2\nother_congestion = '{other}'\n\
         [[link]]\nname = 'shared'\nrate = '20 Mbit/s'\nqueue = '40 packets'\n\
         [[path]]\nname = 'a'\nrate = '1 Gbit/s'\nrtt = '40 ms'\nvia = ['shared']\n"
    );
    let scenario = Scenario::parse(&text, "pair.toml").unwrap_or_else(|e| panic!("{e}"));
    let result = run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}")).result;
    let rates = result.association_goodput_bps;
    [rates[0], rates[1]]
}

#[test]
fn the_other_associations_have_the_congestion_control_that_the_scenario_gives_them() {
    // If the queue is below one bandwidth-delay product, BBR version 1 takes almost all of the rate
    // from CUBIC.
    let [[bbr, cubic], [first, other]] =
        [beside_each_other("bbr-v1", "cubic"), beside_each_other("cubic", "bbr-v1")];
    assert!(bbr > 2.0 * cubic && other > 2.0 * first, "{bbr} {cubic}, {first} {other}");
}

#[test]
fn bbr_uses_a_path_with_random_losses_that_others_leave_idle() {
    for protocol in ["sctp", "tcp"] {
        let path = "queue = '1 BDP'\nloss = 0.01";
        let of = |transfer: &str| over_one_path(protocol, transfer, path).goodput_bps / 1e6;
        let (cubic, bbr) = (of("congestion = 'cubic'"), of("congestion = 'bbr'"));
        let tolerant = of("congestion = 'bbr'\ntolerated_loss = 0.03");
        println!("{protocol}: cubic {cubic:.1}, bbr {bbr:.1}, tolerant {tolerant:.1} Mbit/s");
        assert!(
            cubic < 8.0 && bbr > 35.0 && tolerant > bbr,
            "{protocol}: {cubic} {bbr} {tolerant}"
        );
    }
}

#[test]
fn hystart_loses_less_in_the_first_slow_start_and_nothing_of_the_rate() {
    for (protocol, congestion) in
        [("sctp", "rfc9260"), ("sctp", "cubic"), ("tcp", "newreno"), ("tcp", "cubic")]
    {
        let of = |hystart: bool| {
            let transfer = format!("congestion = '{congestion}'\nhystart = {hystart}");
            over_one_path(protocol, &transfer, "queue = '2 BDP'")
        };
        let (usual, hystart) = (of(false), of(true));
        let lost = |result: &RunResult| result.paths[0].lost_packets;
        println!("{protocol} {congestion}: {} and {} lost", lost(&usual), lost(&hystart));
        assert!(lost(&hystart) * 2 < lost(&usual), "{protocol} {congestion}");
        assert!(hystart.goodput_bps > 0.98 * usual.goodput_bps, "{protocol} {congestion}");
    }
}

#[test]
fn an_outage_of_80_ms_costs_bbr_less_than_a_second() {
    for protocol in ["sctp", "cmt-sctp", "tcp", "mptcp"] {
        let of = |outage: &str| {
            let path = format!("queue = '1 BDP'\noutages = [{outage}]");
            over_one_path(protocol, "congestion = 'bbr'\ntolerated_loss = 0.02", &path).goodput_bps
        };
        let (whole, interrupted) = (of(""), of("{ from = '15 s', to = '15.08 s' }"));
        println!("{protocol}: {:.1} and {:.1} Mbit/s", whole / 1e6, interrupted / 1e6);
        assert!(interrupted > 29.0 / 30.0 * whole, "{protocol}: {whole} {interrupted}");
    }
}
