//! Queues that mark, and senders that respond to marks.

use ropewalk_lab::{RunOptions, RunResult, run};
use ropewalk_scenario::Scenario;

/// Two paths whose queues are kept short. `sctp` and `queue` are appended to the tables.
fn result(discipline: &str, sctp: &str, queue: &str) -> RunResult {
    let path = |name: &str, rate: u32, rtt: u32| {
        format!(
            "[[path]]\nname = '{name}'\nrate = '{rate} Mbit/s'\nrtt = '{rtt} ms'\n\
             queue = {{ {discipline}{queue} }}\n"
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
    for discipline in [
        "discipline = 'codel', limit = '300 packets'",
        "discipline = 'red', limit = '80 packets', min = 0.05, max = 0.4, weight = 0.02",
    ] {
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
    let codel = "discipline = 'codel', limit = '300 packets'";
    let plain = result(codel, "", "");
    for (sctp, queue) in [("ecn = true", ""), ("", ", ecn = true"), ("ecn = false", ", ecn = true")]
    {
        let other = result(codel, sctp, queue);
        assert_eq!(other.paths, plain.paths, "{sctp} {queue}");
        assert_eq!(other.engine.events, plain.engine.events, "{sctp} {queue}");
    }
}

/// Associations that share a link of 50 Mbit/s with this queue, over a round trip of 30 ms.
fn shared([first, other]: [&str; 2], queue: &str) -> RunResult {
    let text = format!(
        "[transfer]\nprotocol = 'sctp'\ncongestion = '{first}'\nduration = '30 s'\nwarmup = '10 s'\nreceive_buffer = '4 MB'\n\
         [world]\nassociations = 2\nstagger = '100 ms'\nother_congestion = '{other}'\n[sctp]\necn = true\n\
         [[path]]\nname = 'a'\nrate = '1 Gbit/s'\nrtt = '20 ms'\nvia = ['core']\n\
         [[link]]\nname = 'core'\nrate = '50 Mbit/s'\ndelay = '5 ms'\n\
         queue = {{ limit = '1000 packets', {queue} }}\n"
    );
    let scenario = Scenario::parse(&text, "l4s.toml").unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}")).result
}

#[test]
fn prague_fills_a_dual_queue_link_with_little_delay_and_no_loss() {
    let alone = shared(["prague"; 2], "discipline = 'dualpi2'");
    assert!(alone.goodput_bps > 46e6, "{}", alone.goodput_bps);
    assert_eq!(alone.paths[0].lost_packets, 0);
    // 15 ms of propagation; a packet takes 0.24 ms.
    assert!(alone.app_delay_s.p99 < 0.018, "{}", alone.app_delay_s.p99);
    let classic = shared(["cubic"; 2], "discipline = 'dualpi2'");
    assert!(classic.app_delay_s.p50 > 0.025, "{}", classic.app_delay_s.p50);
}

#[test]
fn prague_beside_cubic_takes_about_a_fair_share_of_a_dual_queue_and_most_of_a_single_one() {
    let share = |queue: &str| {
        let found = shared(["prague", "cubic"], queue).association_goodput_bps;
        found[0] / (found[0] + found[1])
    };
    let dual = share("discipline = 'dualpi2'");
    assert!((0.35..0.75).contains(&dual), "{dual}");
    let single = share("discipline = 'codel', ecn = true");
    assert!(single > dual && single > 0.75, "{single}");
}

#[test]
fn all_associations_but_the_first_have_the_other_congestion_control() {
    let goodputs = |congestion: &str, other: &str| {
        let text = format!(
            "[transfer]\nduration = '5 s'\ncongestion = '{congestion}'\n[world]\nassociations = 3\n{other}[[path]]\n"
        );
        let scenario = Scenario::parse(&text, "turns.toml").expect("a valid scenario");
        let found = run(&scenario, &RunOptions::default()).expect("a run").result;
        found.association_goodput_bps
    };
    let mixed = goodputs("bbr", "other_congestion = 'rfc9260'\n");
    let (paced, plain) = (goodputs("bbr", ""), goodputs("rfc9260", ""));
    assert_ne!(plain, paced);
    assert_eq!(mixed, [paced[0], plain[1], plain[2]]);
}
