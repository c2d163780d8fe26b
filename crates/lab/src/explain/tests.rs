use std::collections::BTreeSet;

use super::*;
use crate::run::run;

fn scenario(scheduler: &str) -> Scenario {
    let text = format!(
        "[transfer]\nduration = '3 s'\nscheduler = '{scheduler}'\nreceive_buffer = '45 kB'\n\
         [[path]]\nname = 'wifi'\nrate = '1 Mbit/s'\nrtt = '20 ms'\n\
         [[path]]\nname = 'lte'\nrate = '2 Mbit/s'\nrtt = '200 ms'\n"
    );
    Scenario::parse(&text, "test.toml").expect("a sound scenario")
}

fn ask(question: Question) -> Explanation {
    let first = question.first.max(1000);
    explain(&scenario("daps"), &Question { first, ..question }, &|_| ()).expect("a run")
}

#[test]
fn every_chunk_that_was_delivered_has_a_reason() {
    let mut scenario = scenario("daps");
    scenario.record.decisions = true;
    let run = run(&scenario, &RunOptions::default()).expect("a run");
    let delivered = run.result.delivered_packets;
    assert!(delivered > 100, "{delivered}");
    let all = explain_run(&scenario, &run, &Question { first: usize::MAX, ..Question::default() });
    let explained: BTreeSet<u64> = all.decisions.iter().filter_map(|d| d.chunk).collect();
    assert!((0..delivered).all(|chunk| explained.contains(&chunk)));
}

#[test]
fn a_question_about_one_chunk_is_answered_with_that_chunk() {
    let answer = ask(Question { chunk: Some(20), ..Question::default() });
    assert!(!answer.decisions.is_empty());
    assert!(answer.decisions.iter().all(|d| d.chunk == Some(20)));
    assert!(answer.decisions[0].sentence.starts_with("chunk 20"));
}

#[test]
fn time_and_path_restrict_the_answer() {
    let from = Some(Time::from_millis(1_000));
    let answer = ask(Question { from, path: Some(1), ..Question::default() });
    assert!(!answer.decisions.is_empty());
    assert!(answer.decisions.iter().all(|d| d.at_s >= 1.0 && d.sent_on == ["lte"]));
}

#[test]
fn what_is_left_out_is_counted() {
    let (all, few) = (ask(Question::default()), Question { first: 7, ..Question::default() });
    let few = explain(&scenario("daps"), &few, &|_| ()).expect("a run");
    assert_eq!((few.decisions.len(), few.omitted), (7, all.decisions.len() - 7));
    assert_eq!(few.summary, all.summary);
}

#[test]
fn the_summary_counts_every_decision_once_per_path() {
    let all = ask(Question { idle: true, first: usize::MAX, ..Question::default() });
    let sent: u64 = all.summary.iter().filter(|c| c.path.is_some()).map(|c| c.count).sum();
    let told = ask(Question { first: usize::MAX, ..Question::default() });
    let told = told.decisions.iter().filter(|d| d.chunk.is_some()).count();
    assert_eq!(sent, told as u64);
}

#[test]
fn the_number_of_chunks_is_told_so_that_a_question_beyond_it_can_be_answered() {
    let answer = ask(Question { chunk: Some(1_000_000), ..Question::default() });
    assert_eq!(answer.decisions, []);
    let last = ask(Question { chunk: Some(answer.chunks - 1), ..Question::default() });
    assert!(!last.decisions.is_empty());
}

#[test]
fn only_the_association_that_was_asked_about_keeps_its_decisions() {
    let mut scenario = scenario("daps");
    scenario.world.associations = 3;
    scenario.world.stagger = ropewalk_base::Duration::from_millis(500);
    for association in 0..3 {
        let question = Question { association, first: 10, ..Question::default() };
        let answer = explain(&scenario, &question, &|_| ()).expect("a run");
        let start = f64::from(association) * 0.5;
        assert_eq!(answer.association, association);
        assert_eq!(answer.decisions[0].chunk, Some(0), "one sender's chunks, from its first");
        assert!(answer.decisions[0].at_s > start && answer.decisions[0].at_s < start + 0.5);
        let chunks: Vec<_> = answer.decisions.iter().filter_map(|d| d.chunk).collect();
        assert_eq!(chunks.iter().collect::<BTreeSet<_>>().len(), chunks.len(), "{chunks:?}");
    }
}

fn changed(limits: &Limits, change: &str) -> f64 {
    let found = limits.changes.iter().find(|one| one.change == change);
    found.unwrap_or_else(|| panic!("{change}: {limits:?}")).ratio.mean
}

#[test]
fn a_small_receive_buffer_is_found_as_the_limit() {
    let mut scenario = scenario("lay");
    scenario.transfer.receive_buffer = 20_000;
    let found = limits(&scenario, 1, 2, &|_| ()).expect("runs");
    assert!(changed(&found, "4 times the receive buffer") > 1.5, "{found:?}");
    assert!(found.conclusions[0].contains("the receive buffer limits"), "{found:?}");
    assert!(found.changes.is_sorted_by(|a, b| a.ratio.mean >= b.ratio.mean));
}

#[test]
fn a_path_that_costs_goodput_is_named() {
    let text = "[transfer]\nduration = '5 s'\nscheduler = 'round-robin'\nreceive_buffer = '45 kB'\n\
                [[path]]\nname = 'wifi'\nrate = '20 Mbit/s'\nrtt = '20 ms'\n\
                [[path]]\nname = 'lte'\nrate = '1 Mbit/s'\nrtt = '300 ms'\n";
    let scenario = Scenario::parse(text, "test.toml").expect("a sound scenario");
    let found = limits(&scenario, 1, 2, &|_| ()).expect("runs");
    assert!(changed(&found, "wifi only") > 2.0, "{found:?}");
    assert!(found.conclusions.iter().any(|one| one.contains("wifi alone")), "{found:?}");
}

#[test]
fn a_path_that_is_full_limits_itself() {
    let text = "[transfer]\nduration = '3 s'\ncongestion = 'bbr'\n[[path]]\nrate = '1 Mbit/s'\nrtt = '20 ms'\n";
    let scenario = Scenario::parse(text, "test.toml").expect("a sound scenario");
    let found = limits(&scenario, 1, 1, &|_| ()).expect("runs");
    assert_eq!(found.conclusions, ["no change of these gives more goodput: the paths limit"]);
}

#[test]
fn the_rules_of_linux_are_changed_where_they_apply() {
    let of = |preset: &str| {
        let text = format!(
            "[transfer]\nprotocol = 'mptcp'\npreset = '{preset}'\nduration = '2 s'\nreceive_buffer = '45 kB'\n\
             [[path]]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n[[path]]\nrate = '10 Mbit/s'\nrtt = '20 ms'\n"
        );
        let scenario = Scenario::parse(&text, "test.toml").expect("a sound scenario");
        limits(&scenario, 1, 2, &|_| ()).expect("runs")
    };
    let linux = of("linux-6");
    assert!(changed(&linux, "only payload charged to the receive buffer") > 1.1, "{linux:?}");
    assert!(linux.conclusions.iter().any(|one| one.contains("Linux charges")), "{linux:?}");
    assert!(!of("rfc8684").changes.iter().any(|one| one.change == "no Nagle algorithm"));
}
