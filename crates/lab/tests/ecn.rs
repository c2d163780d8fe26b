//! Queues that mark, and senders that understand it.

use ropewalk_lab::{RunOptions, RunResult, run};
use ropewalk_scenario::Scenario;

/// Two paths whose queues are kept short; `sctp` and `queue` are what is added to the tables.
fn result(discipline: &str, sctp: &str, queue: &str) -> RunResult {
    let path = |name: &str, rate: u32, rtt: u32| {
        format!(
            "[[path]]\nname = '{name}'\nrate = '{rate} Mbit/s'\nrtt = '{rtt} ms'\n\
             queue = {{ {discipline}, limit = '300 packets'{queue} }}\n"
        )
    };
    let (one, other) = (path("a", 20, 20), path("b", 10, 40));
    let text = format!(
        "[transfer]\nduration = '20 s'\nwarmup = '5 s'\nreceive_buffer = '4 MB'\n[sctp]\n{sctp}\n{one}{other}"
    );
    let scenario = Scenario::parse(&text, "ecn.toml").unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}")).result
}

fn again(result: &RunResult) -> u64 {
    result.paths.iter().map(|path| path.retransmitted_packets).sum()
}

#[test]
fn where_queues_mark_and_both_ends_agree_nothing_is_sent_again_and_no_less_arrives() {
    for discipline in ["discipline = 'codel'", "discipline = 'red'"] {
        let dropped = result(discipline, "", "");
        let marked = result(discipline, "ecn = true", ", ecn = true");
        assert!(again(&dropped) > 20, "{discipline}: {} sent again", again(&dropped));
        assert_eq!(again(&marked), 0, "{discipline}");
        let (with, without) = (marked.goodput_bps, dropped.goodput_bps);
        assert!(with > 0.97 * without && with > 24e6, "{discipline}: {with} against {without}");
    }
}

#[test]
fn it_takes_the_queue_and_the_sender_both() {
    let codel = "discipline = 'codel'";
    let plain = result(codel, "", "");
    for (sctp, queue) in [("ecn = true", ""), ("", ", ecn = true"), ("ecn = false", ", ecn = true")]
    {
        assert_eq!(result(codel, sctp, queue), plain, "{sctp} {queue}");
    }
}
