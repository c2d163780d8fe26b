//! Mean windows of single flows against the response functions of their algorithms.
//!
//! The functions are derived for a loss of every n-th packet, so that is what the link does here, by a
//! trace of losses: with random losses of the same rate CUBIC has less. Byte counting makes growth
//! independent of how seldom acknowledgements come; each packet has its own here, so that the wait for a
//! held-back one does not lengthen small windows' round trips, and once they are delayed to see that.

use ropewalk_lab::{RunOptions, run};
use ropewalk_models::response::{cubic_window, reno_window};
use ropewalk_scenario::Scenario;

const RTT_S: f64 = 0.1;

/// Mean window, packets: those sent per second times the round trip. Every `period`-th packet is lost.
fn mean_window(congestion: &str, period: u64, sack_every: u32) -> f64 {
    // At least fifty losses after the warm-up, and no run so short that one tooth more or less counts.
    let pps = cubic_window(1.0 / period as f64, RTT_S).unwrap() / RTT_S;
    let measured_s = (50.0 * period as f64 / pps).max(100.0).ceil();
    let warmup_s = (measured_s / 5.0).ceil();
    let packets = (measured_s + warmup_s) * pps * 2.0;
    let losses: Vec<_> = (1..(packets as u64 / period)).map(|k| (k * period).to_string()).collect();
    let text = format!(
        "[transfer]\nprotocol = 'sctp'\ncongestion = '{congestion}'\nreceive_buffer = '8 MB'\n\
         duration = '{} s'\nwarmup = '{warmup_s} s'\n[sctp]\nsack_every = {sack_every}\n[[path]]\n\
         name = 'only'\nrate = '10 Gbit/s'\nrtt = '{RTT_S} s'\nqueue = 'unlimited'\n\
         loss = {{ model = 'trace', losses = [{}] }}\n",
        measured_s + warmup_s,
        losses.join(", ")
    );
    let scenario = Scenario::parse(&text, "response.toml").expect("a valid scenario");
    let result = run(&scenario, &RunOptions::default()).expect("a run").result;
    let path = &result.paths[0];
    let lost = path.lost_packets as f64 / path.sent_packets as f64;
    assert!((lost * period as f64 - 1.0).abs() < 0.05, "{lost} lost, every {period}-th wanted");
    path.sent_packets as f64 / measured_s * RTT_S
}

#[test]
fn newreno_has_the_window_of_mathis() {
    for period in [100, 300, 1000, 3000, 10_000] {
        for sack_every in [1, 2] {
            let expected = reno_window(1.0 / period as f64, 1.0).unwrap();
            let found = mean_window("newreno", period, sack_every);
            let off = found / expected - 1.0;
            eprintln!(
                "newreno {period} {sack_every}: {found:.2}, {expected:.2}: {:+.2} %",
                off * 100.0
            );
        }
    }
}

#[test]
fn cubic_has_the_window_of_rfc_9438() {
    for period in [100, 300, 1000, 3000, 10_000, 30_000] {
        let expected = cubic_window(1.0 / period as f64, RTT_S).unwrap();
        let found = mean_window("cubic", period, 1);
        let off = found / expected - 1.0;
        eprintln!("cubic {period}: {found:.2}, {expected:.2}: {:+.2} %", off * 100.0);
    }
}
