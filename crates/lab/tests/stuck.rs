//! A run that cannot continue ends with a diagnosis.

use ropewalk_lab::{RunError, RunOptions, run};
use ropewalk_scenario::Scenario;

fn diagnosis(transfer: &str, path: &str) -> String {
    let text = format!(
        "[transfer]\nduration = '600 s'\n{transfer}\n\
         [[path]]\nname = 'a'\nrate = '2 Mbit/s'\nrtt = '20 ms'\n{path}\n\
         [[path]]\nname = 'b'\nrate = '1 Mbit/s'\nrtt = '60 ms'\n{path}\n"
    );
    let scenario = Scenario::parse(&text, "stuck.toml").unwrap_or_else(|e| panic!("{e}"));
    match run(&scenario, &RunOptions::default()) {
        Err(RunError::Stuck { diagnosis, .. }) => diagnosis,
        other => panic!("{transfer} {path}: {other:?}"),
    }
}

#[test]
fn paths_that_lose_everything_get_no_answer() {
    let text = diagnosis("", "loss = 1.0");
    assert!(text.contains("never answered") && text.contains("loss"), "{text}");
}

#[test]
fn an_outage_that_never_ends_makes_the_peer_unreachable() {
    let text = diagnosis("bytes = '50 MB'", "outages = [{ from = '5 s', to = '599 s' }]");
    assert!(text.contains("stopped answering"), "{text}");
    let text = diagnosis("", "outages = [{ from = '0 s', to = '599 s' }]");
    assert!(text.contains("never answered"), "{text}");
}

#[test]
fn more_bytes_than_there_is_time_for_are_said_to_be_so() {
    let text = diagnosis("bytes = '500 MB'\nscheduler = 'min-rtt'", "");
    assert!(text.contains("duration"), "{text}");
}

#[test]
fn more_gaps_than_a_sack_has_room_for_do_not_bring_a_transfer_to_a_standstill() {
    let text = "[transfer]\nduration = '20 s'\nwarmup = '10 s'\nscheduler = 'bas'\n\
                receive_buffer = '2118956 B'\n\
                [[path]]\nname = 'a'\nrate = '43776634 bit/s'\nrtt = '111803 us'\nqueue = '407 packets'\n\
                [[path]]\nname = 'b'\nrate = '589803 bit/s'\nrtt = '186675 us'\nqueue = '20 packets'\n";
    let scenario = Scenario::parse(text, "gaps.toml").unwrap_or_else(|e| panic!("{e}"));
    let run = run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(run.result.goodput_bps > 1e6, "{}", run.result.goodput_bps);
}

#[test]
fn copies_that_another_path_delivered_do_not_keep_a_path_alive_that_is_in_an_outage() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/handover-outage.toml");
    let changes = ["transfer.seed=2", "transfer.scheduler=lay", "transfer.protocol=cmt-sctp"];
    let changes = changes.map(str::to_owned);
    let scenario = Scenario::load_with(file, &changes).unwrap_or_else(|e| panic!("{e}"));
    let run = run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    // The goodput is 7.0 Mbit/s if each copy that arrives by the other path restarts the timer of
    // the silent one.
    assert!(run.result.goodput_bps > 14e6, "{}", run.result.goodput_bps);
}
