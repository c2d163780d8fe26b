//! Pacing: a window is spread over a round trip, under both protocols.

use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

/// Retransmitted packets of a path with a short queue that carries a message of 300 kB per second.
fn retransmitted(protocol: &str, pacing: &str) -> u64 {
    let text = format!(
        "[transfer]\nprotocol = '{protocol}'\nduration = '20 s'\nreceive_buffer = '4 MB'\n\
         pacing = {pacing}\n\
         application = {{ rate = '2.4 Mbit/s', message = '300 kB' }}\n\
         [[path]]\nname = 'a'\nrate = '100 Mbit/s'\nrtt = '60 ms'\nqueue = '40 packets'\n"
    );
    let scenario = Scenario::parse(&text, "pacing.toml").unwrap_or_else(|e| panic!("{e}"));
    let result = run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}")).result;
    let path = &result.paths[0];
    println!("{protocol} pacing {pacing}: {} of {}", path.retransmitted_packets, path.sent_packets);
    path.retransmitted_packets
}

#[test]
fn bursts_that_overflow_a_short_queue_do_not_when_they_are_paced() {
    for protocol in ["cmt-sctp", "sctp", "mptcp", "tcp"] {
        let (at_once, paced) = (retransmitted(protocol, "false"), retransmitted(protocol, "true"));
        assert!(at_once > 0 && paced == 0, "{protocol}: {at_once} and {paced}");
    }
}

#[test]
fn a_burst_larger_than_the_queue_overflows_it() {
    for protocol in ["cmt-sctp", "mptcp"] {
        let small = retransmitted(protocol, "{ burst = '2 packets', burst_time = '0 s' }");
        let large = retransmitted(protocol, "{ burst = '200 packets' }");
        assert!(small == 0 && large > 0, "{protocol}: {small} and {large}");
    }
}
