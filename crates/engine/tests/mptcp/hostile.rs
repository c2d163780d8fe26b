//! Segments from a hostile peer or a third party must not stop, shrink or corrupt a session.

use ropewalk_engine::Payload;
use ropewalk_engine::mptcp::session::State;
use ropewalk_engine::mptcp::{MpOption, Sacks, Segment};

use super::driver::{FULL, LEFT, Pair, RIGHT, config};

#[test]
fn segments_that_make_no_sense_change_nothing() {
    let acks = |ack, data_ack| Segment { acks: true, ack, data_ack, ..Segment::default() };
    let far = u64::MAX / 4;
    let inputs = [
        ("acknowledges what was never sent", acks(far, Some(0))),
        ("acknowledges data that was never sent", acks(1, Some(far))),
        ("no acknowledgement at all", Segment::default()),
        ("a SYN within the session", Segment { syn: true, ..Segment::default() }),
        (
            "blocks that end before they begin",
            Segment { sacks: Sacks::from_slice(&[(5_000, 100)]), ..acks(1, Some(0)) },
        ),
        (
            "blocks beyond everything",
            Segment { sacks: Sacks::from_slice(&[(far, far + 1)]), ..acks(1, Some(0)) },
        ),
        (
            "data far beyond the window",
            Segment { payload: Payload::Length(1_000), dsn: far, seq: 1, ..acks(1, Some(0)) },
        ),
        (
            "an end of the data that is not there",
            Segment { data_fin: true, dsn: far, ..acks(1, Some(0)) },
        ),
        ("a window of nothing", Segment { window: 0, ..acks(1, Some(0)) }),
        ("a key", Segment { option: MpOption::Capable { key: 1 }, ..acks(1, Some(0)) }),
    ];
    for (what, segment) in inputs {
        for end in [LEFT, RIGHT] {
            let mut pair = Pair::new(&config(2, 100_000), &[10, 30]);
            pair.run_until(100);
            pair.write(0, 60 * FULL);
            for path in [0, 1] {
                pair.inject_at(pair.now, end, path, segment.clone());
            }
            pair.inject_at(pair.now, end, 7, segment.clone());
            pair.run_until(5_000);
            assert!(pair.has_read(60 * FULL), "{what}, at end {end}");
            assert_eq!(pair.ends[end].state(), State::Established, "{what}");
        }
    }
}

#[test]
fn a_reset_ends_one_subflow_and_the_others_carry_on() {
    let mut pair = Pair::new(&config(2, 100_000), &[10, 30]);
    pair.run_until(100);
    pair.write(0, 60 * FULL);
    pair.inject_at(pair.now, LEFT, 0, Segment { rst: true, acks: true, ..Segment::default() });
    pair.run_until(10_000);
    assert!(pair.has_read(60 * FULL), "{}", pair.read[RIGHT].len());
}
