//! Short messages that compete with long ones, with DATA and with I-DATA (RFC 8260).

use std::path::Path;

use ropewalk_lab::result::FlowResult;
use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/short-beside-long.toml");

/// Two congestion controls, each with queues below the bandwidth-delay product (17 packets), equal to it, and three
/// times as long.
const SETTINGS: [(&str, &str, u32); 6] = [
    ("rfc9260", "cubic", 7),
    ("rfc9260", "cubic", 17),
    ("rfc9260", "cubic", 50),
    ("live", "bbr", 7),
    ("live", "bbr", 17),
    ("live", "bbr", 50),
];

/// The longest delay of the short messages, ms.
fn play(changes: &[String]) -> f64 {
    let scenario = Scenario::load_with(Path::new(FILE), changes).expect("a scenario");
    let result = run(&scenario, &RunOptions::default()).expect("it runs").result;
    let [control, file] = <[FlowResult; 2]>::try_from(result.flows).expect("two sources");
    assert!(control.lost.is_some_and(|lost| lost < 0.003), "{control:?}");
    assert!(file.lost.is_none_or(|lost| lost == 0.0), "{file:?}");
    control.delay_max_s.expect("some arrive") * 1e3
}

/// The same for 20 start times of the long messages, in ascending order. Nothing else in the scenario is random.
fn play_each(changes: &[String]) -> Vec<f64> {
    let begin = |i: u32| format!("source.file.start={} ms", 2_000 + 7 * i);
    let each = (0..20).map(|i| play(&[changes, &[begin(i)]].concat()));
    let mut longest: Vec<f64> = each.collect();
    longest.sort_by(f64::total_cmp);
    longest
}

fn alone() -> f64 {
    play(&["source.file.start=30 s", "source.file.stop=40 s"].map(str::to_owned))
}

/// The packets in the queue of the link take 8.4 ms, and no stream scheduler can overtake them.
#[test]
fn short_messages_beside_long_ones_are_ten_milliseconds_later_than_alone_at_most() {
    let (alone, beside) = (alone(), play_each(&[]));
    assert!(alone < 10.5, "{alone}");
    assert!(beside.iter().all(|longest| *longest <= alone + 10.0), "{beside:?}, alone {alone}");
}

/// The figures of `docs/data/interleaving.csv`.
#[test]
fn interleaving_saves_short_messages_most_of_their_wait_in_every_setting() {
    println!("alone: {:.1} ms", alone());
    for (preset, congestion, queue) in SETTINGS {
        let with = |change: String| {
            play_each(&[
                format!("transfer.preset={preset}"),
                format!("transfer.congestion={congestion}"),
                format!("path.access.queue={queue} packets"),
                change,
            ])
        };
        let plain = with("sctp.interleaving=false".to_owned());
        println!("{congestion}, {queue}: DATA {:.1} {:.1}", plain[10], plain[19]);
        for scheduler in ["round-robin", "priority", "fair-capacity", "weighted-fair"] {
            let beside = with(format!("sctp.stream_scheduler={scheduler}"));
            println!("{congestion}, {queue}: {scheduler} {:.1} {:.1}", beside[10], beside[19]);
            assert!(beside[19] < plain[0] / 5.0, "{congestion} {queue} {scheduler}: {beside:?}");
        }
    }
}
