//! Paths that fail and return (RFC 9260, 5.4, 8; RFC 7829).

use ropewalk_base::{Duration, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{Chunk, Config, Event, HeartbeatInfo, Packet};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, at_ms, config, ms};

fn two_paths() -> Config {
    config(2, 1 << 20)
}

/// A user that sends four chunks every 20 ms.
fn bulk(pair: &mut Pair, millis: u64) {
    for _ in 0..millis / 20 {
        for _ in 0..4 {
            if pair.ends[LEFT].send_room() > 0 {
                pair.queue(LEFT, 0, Payload::Length(FULL), false);
            }
        }
        pair.drain(LEFT);
        pair.run_for(ms(20));
    }
}

fn changes(pair: &Pair, path: u8) -> Vec<(Time, PathStatus)> {
    let one = |(at, event): &(Time, Event)| match event {
        Event::PathChanged(id, status) if id.0 == path => Some((*at, *status)),
        _ => None,
    };
    pair.events[LEFT].iter().filter_map(one).collect()
}

#[test]
fn a_path_carries_no_data_before_its_heartbeat_was_answered() {
    let mut pair = Pair::new(&two_paths(), &[10, 50]);
    pair.script(
        |sent| if sent.path == 1 && sent.from == RIGHT { Fate::Drop } else { Fate::Arrive },
    );
    pair.send_full(LEFT, 30);
    pair.run_until(at_ms(5000));
    assert!(
        pair.log
            .iter()
            .filter(|s| s.path == 1)
            .all(|s| s.names() == ["HEARTBEAT"] || s.from == RIGHT)
    );
    assert!(pair.ends[LEFT].is_flushed(), "path 0 carries it");
    let asked: Vec<_> = (pair.log.iter())
        .filter(|s| s.from == LEFT && s.path == 1)
        .map(|s| s.at.as_nanos() / 1_000_000)
        .collect();
    assert!(asked.windows(2).all(|w| w[1] - w[0] >= 1000), "at most one per RTO: {asked:?}");
    assert_eq!(pair.closed(LEFT), None);
}

#[test]
fn after_one_timeout_a_path_is_doubted_probed_at_once_and_given_no_data() {
    let mut pair = Pair::up(&two_paths(), &[10, 30]);
    bulk(&mut pair, 500);
    pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
    pair.log.clear();
    bulk(&mut pair, 3000);
    let (at, status) = changes(&pair, 1)[0];
    let (at, status) =
        if status == PathStatus::Active { changes(&pair, 1)[1] } else { (at, status) };
    assert_eq!(status, PathStatus::PotentiallyFailed);
    let probe = pair.log.iter().find(|s| s.path == 1 && s.names().contains(&"HEARTBEAT"));
    assert_eq!(probe.map(|s| s.at), Some(at));
    let after = pair.log.iter().filter(|s| s.path == 1 && s.at > at && s.data().next().is_some());
    assert_eq!(after.count(), 0);
    let read = pair.read_bytes(RIGHT);
    bulk(&mut pair, 500);
    assert!(pair.read_bytes(RIGHT) > read + 100_000, "path 0 goes on");
}

#[test]
fn a_doubted_path_that_answers_returns_with_a_window_of_one_chunk() {
    let mut pair = Pair::up(&two_paths(), &[10, 30]);
    bulk(&mut pair, 500);
    pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
    // Until path 1 is potentially failed, and no further data is queued.
    for _ in 0..200 {
        bulk(&mut pair, 20);
        if changes(&pair, 1).iter().any(|c| c.1 == PathStatus::PotentiallyFailed) {
            break;
        }
    }
    pair.heal();
    let mut window = None;
    for _ in 0..1000 {
        pair.run_for(ms(5));
        if changes(&pair, 1).last().is_some_and(|c| c.1 == PathStatus::Active) {
            window = Some(pair.view(LEFT, 1).cwnd);
            break;
        }
    }
    assert!(window.is_some_and(|w| w <= 2 * 1468), "{window:?}");
    let before = pair.counters(LEFT)[1].delivered_bytes;
    bulk(&mut pair, 2000);
    assert!(pair.counters(LEFT)[1].delivered_bytes > before + 20_000, "it is used again");
}

#[test]
fn more_errors_than_path_max_retrans_make_a_path_inactive_and_one_answer_brings_it_back() {
    let mut pair = Pair::up(&two_paths(), &[10, 30]);
    bulk(&mut pair, 300);
    pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
    bulk(&mut pair, 100_000);
    let seen: Vec<_> = changes(&pair, 1).iter().map(|c| c.1).collect();
    assert!(seen.ends_with(&[PathStatus::PotentiallyFailed, PathStatus::Inactive]), "{seen:?}");
    assert_eq!(pair.closed(LEFT), None, "the association lives on path 0");
    pair.heal();
    bulk(&mut pair, 100_000);
    assert_eq!(changes(&pair, 1).last().map(|c| c.1), Some(PathStatus::Active));
    let read = pair.counters(LEFT)[1].delivered_bytes;
    bulk(&mut pair, 2000);
    assert!(pair.counters(LEFT)[1].delivered_bytes > read);
}

#[test]
fn a_timeout_and_the_heartbeat_it_calls_for_are_one_error() {
    let mut settings = config(1, 1 << 20);
    settings.failure.path_max_retrans = 3;
    let mut pair = Pair::up(&settings, &[10]);
    pair.send_full(LEFT, 1);
    pair.run_for(ms(1000));
    pair.script(|_| Fate::Drop);
    let start = pair.now;
    pair.send_full(LEFT, 1);
    pair.run_for(Duration::from_secs(30));
    let seen: Vec<_> = changes(&pair, 0)
        .into_iter()
        .filter(|(at, _)| *at > start)
        .map(|(at, status)| (at.since(start).as_nanos() / 1_000_000_000, status))
        .collect();
    // Timeouts after 1, 3, 7 and 15 s; the fourth is one more than Path.Max.Retrans.
    assert_eq!(seen, [(1, PathStatus::PotentiallyFailed), (15, PathStatus::Inactive)]);
}

#[test]
fn a_peer_that_stops_answering_everywhere_ends_the_association() {
    let mut pair = Pair::up(&two_paths(), &[10, 30]);
    bulk(&mut pair, 300);
    pair.script(|_| Fate::Drop);
    pair.run_for(Duration::from_secs(2000));
    assert_eq!(pair.closed(LEFT), Some(CloseReason::Unreachable));
    assert_eq!(pair.ends[LEFT].next_deadline(), None);
}

#[test]
fn an_idle_association_keeps_itself_alive_and_notices_a_dead_peer() {
    let mut pair = Pair::up(&two_paths(), &[10, 30]);
    pair.run_for(Duration::from_secs(200));
    for path in 0..2 {
        let asked = pair
            .log
            .iter()
            .filter(|s| s.path == path && s.from == LEFT && s.names() == ["HEARTBEAT"]);
        assert!((5..=8).contains(&asked.count()), "path {path}: every 30 s and a bit");
    }
    pair.script(|_| Fate::Drop);
    pair.run_for(Duration::from_secs(3600));
    assert_eq!(pair.closed(LEFT), Some(CloseReason::Unreachable));
}

#[test]
fn a_heartbeat_ack_counts_only_with_its_nonce_whichever_way_it_arrives() {
    let mut pair = Pair::new(&two_paths(), &[10, 50]);
    pair.script(
        |sent| if sent.path == 1 && sent.from == RIGHT { Fate::Drop } else { Fate::Arrive },
    );
    pair.run_until(at_ms(500));
    let asked = pair.log.iter().find(|s| s.from == LEFT && s.path == 1).expect("a HEARTBEAT");
    let Chunk::Heartbeat(info) = &asked.packet.chunks[0] else { panic!("{asked:?}") };
    let info = HeartbeatInfo::parse(info).expect("ours");
    let tag =
        pair.log.iter().find(|s| s.from == RIGHT && s.packet.tag != 0).expect("one").packet.tag;
    let ack = |nonce, path, pair: &mut Pair| {
        let chunk = Chunk::HeartbeatAck(HeartbeatInfo { nonce, ..info }.to_bytes());
        pair.inject(LEFT, path, Packet::of(tag, chunk));
        pair.view(LEFT, 1).usable
    };
    assert!(!ack(info.nonce ^ 1, 1, &mut pair), "another nonce");
    // RFC 9260, 5.4: the address in the HEARTBEAT is verified, regardless of the address of its answer.
    assert!(ack(info.nonce, 0, &mut pair), "the real one, by another path");
}

#[test]
fn one_way_of_a_path_may_fail_and_the_transfer_goes_on_over_the_other() {
    for dead in [LEFT, RIGHT] {
        let mut pair = Pair::up(&two_paths(), &[10, 30]);
        bulk(&mut pair, 300);
        pair.script(
            move |sent| {
                if sent.path == 1 && sent.from == dead { Fate::Drop } else { Fate::Arrive }
            },
        );
        bulk(&mut pair, 3000);
        let before = pair.read_bytes(RIGHT);
        bulk(&mut pair, 3000);
        assert!(pair.read_bytes(RIGHT) > before + 200_000, "dead from {dead}");
    }
}

#[test]
fn a_heartbeat_that_overtakes_the_cookie_ack_is_answered() {
    // The responder is up first, and sends HEARTBEATs on the faster path.
    let mut pair = Pair::new(&config(2, 1 << 20), &[40, 5]);
    pair.run_for(ms(400));
    let asked = pair.log.iter().filter(|s| s.from == RIGHT && s.names().contains(&"HEARTBEAT"));
    assert_eq!(asked.count(), 1, "the first one is answered");
    assert_eq!(pair.view(RIGHT, 1).srtt, Some(ms(10)));
}
