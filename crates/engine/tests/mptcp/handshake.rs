//! Opening: MP_CAPABLE, MP_JOIN, fallback, and losses of the handshake (RFC 8684, 3.1, 3.2, 3.7).

use ropewalk_engine::mptcp::session::{CloseReason, State};
use ropewalk_engine::mptcp::{Event, MpOption, Segment};

use super::driver::{FULL, Fate, LEFT, Pair, RIGHT, config};

#[test]
fn the_first_subflow_opens_in_three_steps_and_the_second_joins_in_four() {
    let mut pair = Pair::new(&config(2, 100_000), &[10, 30]);
    pair.run_until(1_000);
    let steps = |path: usize| -> Vec<_> {
        pair.log.iter().filter(|s| s.path == path).map(|s| (s.from, s.segment.syn)).collect()
    };
    assert_eq!(steps(0), [(LEFT, true), (RIGHT, true), (LEFT, false)]);
    assert_eq!(steps(1), [(LEFT, true), (RIGHT, true), (LEFT, false), (RIGHT, false)]);
    assert!(pair.saw(LEFT, |e| *e == Event::Connected { multipath: true }));
    assert!(pair.saw(LEFT, |e| matches!(e, Event::Joined(path) if path.index() == 1)));
    assert!(pair.saw(RIGHT, |e| matches!(e, Event::Joined(path) if path.index() == 1)));
}

#[test]
fn data_waits_for_the_fourth_step_of_a_join() {
    let both = config(2, 1_000_000);
    let mut pair = Pair::of([both.clone(), both], "redundant", &[60, 10]);
    pair.write(0, 400 * FULL);
    pair.run_until(2_000);
    let fourth = pair.log.iter().position(|s| s.from == RIGHT && s.path == 1 && !s.segment.syn);
    let data = pair.log.iter().position(|s| s.from == LEFT && s.path == 1 && s.is_data());
    assert!(data.is_some() && fourth < data, "{fourth:?} before {data:?}");
    assert!(pair.has_read(400 * FULL));
}

#[test]
fn every_step_may_be_lost() {
    // The segment of the handshakes on either path that is dropped.
    for lost in 0..7 {
        let mut pair = Pair::new(&config(2, 100_000), &[10, 30]);
        let mut left = lost;
        pair.script(move |sent| {
            let opening = sent.segment.syn || sent.segment.option != MpOption::None;
            left -= i32::from(opening);
            if opening && left == -1 { Fate::Drop } else { Fate::Arrive }
        });
        pair.write(0, 40 * FULL);
        pair.run_until(20_000);
        assert!(pair.has_read(40 * FULL), "segment {lost} of the handshakes lost");
        let joined = |e: &Event| matches!(e, Event::Joined(_));
        assert!(pair.saw(LEFT, joined) && pair.saw(RIGHT, joined), "segment {lost} lost");
    }
}

#[test]
fn a_peer_that_speaks_plain_tcp_gets_plain_tcp() {
    for plain in [LEFT, RIGHT] {
        let mut configs = [config(2, 100_000), config(2, 100_000)];
        configs[plain].multipath = false;
        let mut pair = Pair::of(configs, "min-rtt", &[10, 30]);
        pair.write(0, 100 * FULL);
        pair.run_until(5_000);
        assert!(pair.has_read(100 * FULL), "end {plain} is plain");
        assert!(pair.saw(LEFT, |e| *e == Event::Connected { multipath: false }));
        assert!(pair.log.iter().all(|s| s.path == 0), "nothing leaves on the second path");
        let options = |s: &super::driver::Sent| s.segment.data_ack.is_some() && !s.segment.syn;
        assert!(!pair.log.iter().any(options), "no option of Multipath TCP");
    }
}

#[test]
fn a_first_path_that_is_dead_is_given_up_for_the_next() {
    let mut pair = Pair::new(&config(2, 100_000), &[10, 30]);
    pair.script(|sent| if sent.path == 0 { Fate::Drop } else { Fate::Arrive });
    pair.write(0, 10 * FULL);
    pair.run_until(20_000);
    assert!(pair.has_read(10 * FULL));
}

#[test]
fn a_peer_that_never_answers_is_given_up() {
    let mut pair = Pair::new(&config(2, 100_000), &[10, 30]);
    pair.script(|_| Fate::Drop);
    pair.run_until(1_000_000);
    assert_eq!(pair.ends[LEFT].state(), State::Ended(CloseReason::NoAnswer));
}

#[test]
fn a_join_with_a_token_that_nobody_knows_is_reset() {
    let mut pair = Pair::new(&config(2, 100_000), &[10, 30]);
    pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
    pair.run_until(500);
    let option = MpOption::Join { token: 12345, backup: false };
    let syn = Segment { syn: true, option, ..Segment::default() };
    pair.inject_at(pair.now, RIGHT, 1, syn);
    pair.run_until(600);
    let last = pair.log.iter().rfind(|s| s.from == RIGHT);
    assert!(last.is_some_and(|s| s.path == 1 && s.segment.rst));
}

#[test]
fn both_ends_close_once_everything_has_arrived() {
    let mut pair = Pair::new(&config(2, 100_000), &[10, 30]);
    pair.write(0, 50 * FULL);
    pair.ends[LEFT].close();
    pair.drain(LEFT);
    pair.run_until(2_000);
    assert!(pair.has_read(50 * FULL) && pair.saw(RIGHT, |e| *e == Event::PeerClosed));
    assert_eq!(pair.ends[LEFT].state(), State::Established, "the other direction is open");
    pair.ends[RIGHT].close();
    pair.drain(RIGHT);
    pair.run_until(4_000);
    for end in [LEFT, RIGHT] {
        assert_eq!(pair.ends[end].state(), State::Ended(CloseReason::Closed), "end {end}");
    }
}

#[test]
fn giving_up_is_told() {
    let mut pair = Pair::new(&config(2, 100_000), &[10, 30]);
    pair.run_until(500);
    pair.ends[LEFT].abort(pair.now);
    pair.drain(LEFT);
    pair.run_until(600);
    assert_eq!(pair.ends[LEFT].state(), State::Ended(CloseReason::Aborted));
    assert_eq!(pair.ends[RIGHT].state(), State::Ended(CloseReason::AbortedByPeer));
}
