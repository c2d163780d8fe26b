//! Peers that restart (RFC 9260, 5.2.4) and cookies whose life is too short (5.2.6).

use ropewalk_base::{Duration, Seed, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{Association, Chunk, Config, ErrorCause, Event, Packet};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, Sent, config, in_turn, ms, numbered};

fn settings(paths: usize) -> Config {
    config(paths, 1 << 18)
}

/// The left end crashes during the transfer and starts again.
fn crash(pair: &mut Pair, seed: u64) {
    let paths = pair.delays.len();
    let fresh = Association::connect(settings(paths), in_turn(), Seed::root(seed), pair.now);
    pair.log.clear();
    pair.replace(LEFT, fresh);
}

fn events(pair: &Pair, end: usize, event: Event) -> usize {
    pair.events[end].iter().filter(|(_, e)| *e == event).count()
}

#[test]
fn a_peer_that_starts_anew_gets_a_new_association_and_the_user_is_told() {
    for paths in [1, 2] {
        let mut pair = Pair::up(&settings(paths), &[10, 30][..paths]);
        for i in 0..30 {
            pair.queue(LEFT, 0, numbered(FULL, i), false);
            pair.queue(RIGHT, 0, numbered(FULL, i), false);
        }
        pair.drain(LEFT);
        pair.drain(RIGHT);
        pair.run_for(ms(25));
        let old = pair.view(RIGHT, 0).cwnd;
        for round in 0..2 {
            crash(&mut pair, 100 + round);
            pair.run_for(ms(1000));
            let what = format!("{paths} paths, round {round}");
            assert_eq!(*pair.ends[LEFT].state(), State::Established, "{what}");
            assert_eq!(*pair.ends[RIGHT].state(), State::Established, "{what}");
            assert_eq!(events(&pair, RIGHT, Event::Restarted), 1 + round as usize, "{what}");
            assert_eq!(events(&pair, RIGHT, Event::Connected), 1, "{what}");
            assert!(pair.ends[RIGHT].is_flushed(), "{what}: nothing for the old peer is left");
            assert!(pair.view(RIGHT, 0).cwnd <= old.min(4404), "{what}: windows start over");
            pair.read = [Vec::new(), Vec::new()];
            for end in [LEFT, RIGHT] {
                (0..40).for_each(|i| pair.queue(end, 0, numbered(FULL, 90 + i), false));
                pair.drain(end);
            }
            pair.run_for(ms(3000));
            let sent: Vec<_> = (0..40).map(|i| numbered(FULL, 90 + i)).collect();
            for end in [LEFT, RIGHT] {
                let read: Vec<_> = pair.read[end].iter().map(|m| m.payload.clone()).collect();
                assert!(read == sent, "{what}: end {end} read {}", read.len());
            }
        }
    }
}

#[test]
fn what_had_arrived_before_a_restart_can_still_be_read() {
    let mut pair = Pair::up(&settings(1), &[10]);
    pair.reads[RIGHT] = false;
    pair.send_full(LEFT, 3);
    pair.run_for(ms(500));
    crash(&mut pair, 5);
    pair.run_for(ms(500));
    pair.send(LEFT, 77);
    pair.run_for(ms(500));
    pair.reads[RIGHT] = true;
    pair.drain(RIGHT);
    let sizes: Vec<_> = pair.read[RIGHT].iter().map(|m| m.payload.len()).collect();
    assert_eq!(sizes, [FULL, FULL, FULL, 77]);
    assert_eq!(pair.ends[RIGHT].receive_occupancy().0, 0);
}

#[test]
fn an_init_alone_restarts_nothing_and_each_gets_another_tag() {
    let mut pair = Pair::up(&settings(2), &[10, 30]);
    let mut tags = Vec::new();
    for seed in 0..20 {
        let mut other = Association::connect(settings(2), in_turn(), Seed::root(seed), Time::ZERO);
        let init = other.poll_transmit(Time::ZERO).expect("an INIT").packet;
        pair.log.clear();
        pair.inject(RIGHT, 0, init);
        let Chunk::InitAck(both) = &pair.log[0].packet.chunks[0] else { panic!("no answer") };
        tags.push(both.0.tag);
    }
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 20, "5.2.2: a new tag for each");
    assert_eq!(events(&pair, RIGHT, Event::Restarted), 0);
    pair.send(LEFT, 5000);
    pair.run_for(ms(500));
    assert_eq!(pair.read_bytes(RIGHT), 5000);
}

#[test]
fn a_restart_brings_no_addresses_along() {
    let mut pair = Pair::up(&settings(1), &[10]);
    let mut other = Association::connect(settings(2), in_turn(), Seed::root(4), Time::ZERO);
    let init = other.poll_transmit(Time::ZERO).expect("an INIT").packet;
    let Chunk::Init(content) = init.chunks[0].clone() else { panic!("{init:?}") };
    pair.inject(RIGHT, 0, init);
    let answer = &pair.log.last().expect("an answer").packet;
    let Chunk::Abort { reflected: false, causes } = &answer.chunks[0] else { panic!("{answer:?}") };
    let brought: &[u8] = &[0, 5, 0, 8, 10, 0, 1, 1];
    assert_eq!(causes[..], [ErrorCause::NewAddresses(brought.into())], "the second address");
    assert_eq!((answer.tag, answer.chunks.len()), (content.tag, 1));
    assert_eq!(*pair.ends[RIGHT].state(), State::Established);
}

#[test]
fn a_peer_that_starts_anew_during_a_shutdown_hears_that_all_is_over() {
    let mut pair = Pair::up(&settings(1), &[10]);
    // The cookie of a restart, made while the association is up, is held back.
    let mut fresh = Association::connect(settings(1), in_turn(), Seed::root(6), pair.now);
    let init = fresh.poll_transmit(pair.now).expect("an INIT").packet;
    pair.script(|_| Fate::Drop);
    pair.inject(RIGHT, 0, init);
    let answer = pair.log.last().expect("an INIT ACK").packet.clone();
    fresh.handle_datagram(pair.now, ropewalk_base::PathId(0), answer);
    let echo = fresh.poll_transmit(pair.now).expect("a COOKIE ECHO").packet;
    pair.heal();
    pair.script(|s: &Sent| if s.from == RIGHT { Fate::Drop } else { Fate::Arrive });
    let now = pair.now;
    pair.ends[LEFT].shutdown(now);
    pair.drain(LEFT);
    pair.run_for(ms(15));
    assert!(matches!(pair.ends[RIGHT].state(), State::ShutdownAckSent { .. }));
    pair.log.clear();
    pair.inject(RIGHT, 0, echo);
    let names = pair.log[0].names();
    assert_eq!(names, ["SHUTDOWN ACK", "ERROR"]);
    assert!(matches!(pair.ends[RIGHT].state(), State::ShutdownAckSent { .. }));
}

#[test]
fn a_restart_cookie_with_other_tie_tags_is_dropped() {
    let mut pair = Pair::up(&settings(1), &[10]);
    let mut twin = Pair::up(&settings(1), &[10]);
    crash(&mut twin, 8);
    twin.run_for(ms(15));
    let before = pair.log.len();
    let echoes: Vec<_> = (twin.log.iter())
        .filter(|s| s.names().contains(&"INIT ACK"))
        .filter_map(|s| match &s.packet.chunks[0] {
            Chunk::InitAck(both) => Some((both.0.tag, both.1.clone()?)),
            _ => None,
        })
        .collect();
    assert_eq!(echoes.len(), 1);
    for (tag, cookie) in echoes {
        // It also has the tie-tags of `pair`, which has the same keys. Modified, it is forged.
        let mut cookie = cookie.to_vec();
        cookie[39] ^= 1;
        pair.inject(RIGHT, 0, Packet::of(tag, Chunk::CookieEcho(cookie.into())));
    }
    assert_eq!(pair.log.len(), before);
    assert_eq!(events(&pair, RIGHT, Event::Restarted), 0);
}

#[test]
fn a_cookie_that_lives_shorter_than_the_round_trip_is_asked_to_live_longer() {
    let mut short = settings(1);
    short.cookie_life = Duration::from_millis(5);
    let mut pair = Pair::with(&settings(1), &short, &[40], [in_turn(), in_turn()]);
    pair.send(LEFT, 500);
    pair.run_for(ms(1000));
    let inits: Vec<_> = (pair.log.iter())
        .filter_map(|s| match &s.packet.chunks[0] {
            Chunk::Init(init) => Some(init.preserve_millis),
            _ => None,
        })
        .collect();
    // The round trip of 80 ms and a second.
    assert_eq!(inits, [0, 1080]);
    assert_eq!(pair.read_bytes(RIGHT), 500);
}

#[test]
fn a_peer_whose_cookies_are_always_stale_is_given_up() {
    let mut pair = Pair::new(&settings(1), &[40]);
    for _ in 0..100 {
        pair.run_for(ms(80));
        if let State::CookieEchoed { .. } = pair.ends[LEFT].state() {
            let tag = pair.log.iter().rev().find(|s| s.names() == ["INIT ACK"]);
            let tag = tag.expect("an INIT ACK").packet.tag;
            pair.inject(LEFT, 0, Packet::of(tag, Chunk::error(ErrorCause::StaleCookie(1000))));
        }
        pair.script(|s| if s.names() == ["COOKIE ECHO"] { Fate::Drop } else { Fate::Arrive });
    }
    assert_eq!(pair.closed(LEFT), Some(CloseReason::StaleCookie));
    assert_eq!(pair.count(LEFT, "INIT"), 1 + 8, "Max.Init.Retransmits");
    assert_eq!(pair.ends[LEFT].next_deadline(), None);
    let refused = pair.ends[LEFT].send(StreamId(0), Payload::Length(1), false);
    assert!(refused.is_err());
}
