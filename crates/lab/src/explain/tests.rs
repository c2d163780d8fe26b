use std::collections::BTreeSet;

use super::*;

fn scenario(scheduler: &str) -> Scenario {
    let text = format!(
        "[transfer]\nduration = '3 s'\nscheduler = '{scheduler}'\nreceive_buffer = '45 kB'\n\
         [[path]]\nname = 'wifi'\nrate = '1 Mbit/s'\nrtt = '20 ms'\n\
         [[path]]\nname = 'lte'\nrate = '2 Mbit/s'\nrtt = '200 ms'\n"
    );
    Scenario::parse(&text, "test.toml").expect("a sound scenario")
}

fn ask(question: Question) -> Explanation {
    explain(&scenario("daps"), &Question { first: 1000, ..question }).expect("a run")
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
    let few = explain(&scenario("daps"), &few).expect("a run");
    assert_eq!((few.decisions.len(), few.omitted), (7, all.decisions.len() - 7));
    assert_eq!(few.summary, all.summary);
}

#[test]
fn the_summary_counts_every_decision_once_per_path() {
    let all = ask(Question { idle: true, first: usize::MAX, ..Question::default() });
    let sent: u64 = all.summary.iter().filter(|c| c.path.is_some()).map(|c| c.count).sum();
    let told = explain(&scenario("daps"), &Question { first: usize::MAX, ..Question::default() });
    let told = told.expect("a run").decisions.iter().filter(|d| d.chunk.is_some()).count();
    assert_eq!(sent, told as u64);
}
