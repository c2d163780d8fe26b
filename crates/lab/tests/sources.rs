//! Messages of several sources on one association.

use ropewalk_lab::result::FlowResult;
use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

fn results_of(text: &str) -> Vec<FlowResult> {
    let scenario = Scenario::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, &RunOptions::default()).expect("it runs").result.flows
}

const PATH: &str = "[[path]]\nname = 'a'\nrate = '10 Mbit/s'\nrtt = '20 ms'\n";

#[test]
fn the_messages_of_each_source_are_counted_once_from_when_they_are_due() {
    let text = format!(
        "[transfer]\nduration = '10 s'\nwarmup = '2 s'\n{PATH}\
         [[source]]\nname = 'often'\nmessage = '200 B'\nevery = '10 ms'\nstreams = 3\n\
         [[source]]\nname = 'part'\nmessage = '5 kB'\nevery = '100 ms'\nstart = '4 s'\nstop = '6 s'\n\
         [[source]]\nname = 'later'\nstart = '20 s'\n"
    );
    let [often, part, later] = &results_of(&text)[..] else { panic!("three sources") };
    for (one, delay) in [(often, 0.0102), (part, 0.0145)] {
        assert_eq!(one.kind, "messages");
        let [p50, max] = [one.delay_p50_s, one.delay_max_s].map(|delay| delay.expect("some"));
        assert!((p50 - delay).abs() < 0.001, "{one:?}");
        assert!(p50 <= max && max < 0.04, "{one:?}");
    }
    // The last one or two are in flight.
    assert_eq!((often.sent, often.delivered + often.under_way), (801, 801), "{often:?}");
    assert!((1..=2).contains(&often.under_way), "{often:?}");
    assert_eq!((often.abandoned, often.lost), (0, Some(0.0)), "{often:?}");
    assert!((often.goodput_bps - 160_000.0).abs() < 500.0, "{often:?}");
    assert_eq!(part.lost, Some(0.0));
    // Twenty messages in the two seconds in which the source is active.
    assert!((part.goodput_bps - 20.0 * 5_000.0 * 8.0 / 2.0).abs() < 1.0, "{part:?}");
    assert_eq!((later.sent, later.lost, later.delay_max_s), (0, None, None));
    assert_eq!(later.goodput_bps, 0.0);
}

#[test]
fn a_source_that_has_to_wait_for_the_send_buffer_holds_up_no_other_and_its_wait_counts() {
    // Twice the rate of the path.
    let text = format!(
        "[transfer]\nduration = '10 s'\nreceive_buffer = '100 kB'\n[sctp]\nsend_buffer = '100 kB'\n\
         interleaving = true\nstream_scheduler = 'priority'\n{PATH}\
         [[source]]\nname = 'much'\nmessage = '20 kB'\nevery = '8 ms'\nvalue = 9\n\
         [[source]]\nname = 'little'\n"
    );
    let [much, little] = &results_of(&text)[..] else { panic!("two sources") };
    assert!(much.delay_max_s.is_some_and(|delay| delay > 4.0), "{much:?}");
    assert!(little.delay_p99_s.is_some_and(|delay| delay < 0.5), "{little:?}");
    assert_eq!(little.lost, Some(0.0), "{little:?}");
    // Messages that wait for the send buffer also count as under way.
    assert!(much.under_way > 600 && much.sent == 1251, "{much:?}");
}
