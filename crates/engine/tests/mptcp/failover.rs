//! Paths that fail and return.

use ropewalk_base::{PathId, Time};
use ropewalk_engine::mptcp::Event;
use ropewalk_engine::mptcp::session::{CloseReason, State};
use ropewalk_engine::path::PathStatus;

use super::driver::{FULL, Fate, LEFT, Pair, RIGHT, config};

#[test]
fn a_path_that_fails_is_left_and_used_again_when_it_returns() {
    let both = config(2, 200_000);
    let mut pair = Pair::of([both.clone(), both], "min-rtt", &[20, 30]);
    pair.script(|sent| {
        let cut = sent.at >= Time::from_millis(2_000) && sent.at < Time::from_millis(6_000);
        if sent.path == 0 && cut { Fate::Drop } else { Fate::Arrive }
    });
    let mut written = 0;
    for second in 1..=10 {
        let room = pair.ends[LEFT].send_room();
        pair.write(written, room.min(60 * FULL));
        written += room.min(60 * FULL);
        pair.run_until(second * 1_000);
    }
    pair.run_until(15_000);
    assert!(pair.has_read(written), "{} of {written}", pair.read[RIGHT].len());
    let changed = |status| Event::PathChanged(PathId(0), status);
    assert!(pair.saw(LEFT, |e| *e == changed(PathStatus::PotentiallyFailed)));
    assert!(pair.saw(LEFT, |e| *e == changed(PathStatus::Active)));
    let since = Time::from_millis(8_500);
    assert!(pair.data_on(0, since) >= 5, "{} segments after its return", pair.data_on(0, since));
}

#[test]
fn the_gap_in_delivery_is_short_when_the_best_path_is_cut() {
    let both = config(2, 200_000);
    let mut pair = Pair::of([both.clone(), both], "min-rtt", &[20, 30]);
    pair.write(0, 130 * FULL);
    pair.run_until(900);
    pair.script(|sent| if sent.path == 0 { Fate::Drop } else { Fate::Arrive });
    pair.write(130 * FULL, 130 * FULL);
    pair.run_until(2_000);
    assert!(pair.has_read(260 * FULL), "{} segments", pair.read[RIGHT].len() as u64 / FULL);
}

#[test]
fn a_session_of_which_every_path_is_dead_is_given_up() {
    let mut pair = Pair::new(&config(2, 200_000), &[20, 30]);
    pair.run_until(1_000);
    pair.script(|_| Fate::Drop);
    pair.write(0, 50 * FULL);
    pair.run_until(1_000_000);
    assert_eq!(pair.ends[LEFT].state(), State::Ended(CloseReason::Unreachable));
}
