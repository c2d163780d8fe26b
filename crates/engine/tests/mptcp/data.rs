//! Data over one and two subflows: order, windows, acknowledgements.

use ropewalk_base::{Duration, Time};
use ropewalk_engine::Payload;

use super::driver::{FULL, Fate, LEFT, Pair, RIGHT, config};

#[test]
fn every_scheduler_delivers_every_byte_once_and_in_order() {
    for name in ropewalk_engine::scheduler::Scheduler::NAMES {
        let both = config(2, 60_000);
        let mut pair = Pair::of([both.clone(), both], name, &[5, 60]);
        pair.write(0, 100 * FULL);
        pair.run_until(30_000);
        assert!(pair.has_read(100 * FULL), "{name}: {} bytes", pair.read[RIGHT].len());
    }
}

#[test]
fn acknowledgements_come_for_every_second_segment_or_after_a_while() {
    let mut config = config(1, 1_000_000);
    config.multipath = false;
    let mut pair = Pair::new(&config, &[10]);
    pair.run_until(100);
    pair.write(0, 1_448 * 3);
    pair.run_until(200);
    let acks: Vec<_> =
        pair.log.iter().filter(|s| s.from == RIGHT && !s.segment.syn).map(|s| s.at).collect();
    assert_eq!(acks, [Time::from_millis(110), Time::from_millis(150)]);
}

#[test]
fn nothing_is_sent_beyond_the_window_whatever_the_scheduler_takes() {
    for name in ["round-robin", "daps", "redundant"] {
        let both = config(2, 20 * FULL);
        let mut pair = Pair::of([both.clone(), both], name, &[5, 100]);
        pair.write(0, 54 * FULL);
        pair.run_until(20_000);
        assert!(pair.has_read(54 * FULL), "{name}");
        let mut edge = 20 * FULL;
        for sent in &pair.log {
            if sent.from == RIGHT {
                let ack = sent.segment.data_ack.unwrap_or(0);
                edge = edge.max(ack + sent.segment.window);
            } else if sent.is_data() {
                let end = sent.segment.dsn + sent.segment.payload.len() as u64;
                assert!(end <= edge, "{name}: {end} beyond {edge}");
            }
        }
        assert_eq!(pair.ends[RIGHT].receive_stats().refused, 0, "{name}");
    }
}

#[test]
fn a_window_that_shuts_is_probed_and_opens_again() {
    let mut pair = Pair::new(&config(2, 10 * FULL), &[10, 20]);
    pair.reads[RIGHT] = false;
    pair.write(0, 25 * FULL);
    pair.run_until(30_000);
    assert_eq!(pair.ends[RIGHT].receive_occupancy(), (0, 0));
    pair.reads[RIGHT] = true;
    pair.drain(RIGHT);
    pair.run_until(35_000);
    assert!(pair.has_read(25 * FULL), "{}", pair.read[RIGHT].len());
}

/// Sends ten segments on a path of 5 ms, ten on one of 100 ms and six more on the first into this buffer.
/// Returns the path of the first acknowledgement of all of them, and the number of acknowledgements.
fn filled_by_the_slow_path(receive_buffer: u64) -> (Option<usize>, usize) {
    let both = config(2, receive_buffer);
    let mut pair = Pair::of([both.clone(), both], "round-robin", &[5, 100]);
    pair.run_until(1_000);
    let before = pair.log.len();
    pair.write(0, 26 * FULL);
    pair.run_until(5_000);
    assert!(pair.has_read(26 * FULL));
    assert_eq!(pair.data_on(1, Time::from_millis(1_000)), 10);
    let acks = || pair.log[before..].iter().filter(|sent| sent.from == RIGHT);
    let done = acks().find(|sent| sent.segment.data_ack == Some(26 * FULL));
    (done.map(|sent| sent.path), acks().count())
}

#[test]
fn what_fills_a_hole_of_a_small_window_is_told_on_the_quickest_way_back() {
    // The last hole is filled by the slow path, and the first report of this is an acknowledgement on the
    // fast path.
    assert_eq!(filled_by_the_slow_path(40 * FULL).0, Some(0));
}

#[test]
fn what_fills_a_hole_of_a_wide_window_waits_for_the_next_acknowledgement() {
    // One for every second segment.
    assert_eq!(filled_by_the_slow_path(1_000_000), (Some(1), 13));
}

#[test]
fn bytes_alone_are_counted_like_real_ones() {
    let mut pair = Pair::new(&config(2, 100_000), &[10, 10]);
    for _ in 0..50 {
        assert!(pair.ends[LEFT].send(Payload::Length(3_000)).is_ok());
        pair.drain(LEFT);
    }
    pair.run_until(5_000);
    assert_eq!(pair.read[RIGHT].len(), 150_000);
}

#[test]
fn forward_delays_are_measured_by_timestamps_and_not_by_acknowledgements_that_waited() {
    let both = config(2, 1_000_000);
    let mut pair = Pair::of([both.clone(), both], "round-robin", &[10, 80]);
    // The return delay of the second path is 40 ms longer than its forward delay.
    pair.script(|sent| match (sent.from, sent.path) {
        (RIGHT, 1) => Fate::Late(Duration::from_millis(40)),
        _ => Fate::Arrive,
    });
    pair.run_until(1_000);
    pair.write(0, 300 * FULL);
    pair.run_until(3_000);
    let delay = |path| {
        let view = pair.ends[LEFT].path_view(pair.now, ropewalk_base::PathId(path));
        view.forward_delay.map_or(0, |d| d.as_nanos() / 1_000_000)
    };
    assert!((9..=11).contains(&delay(0)), "{}", delay(0));
    assert!((79..=81).contains(&delay(1)), "{}", delay(1));
}
