//! Packets that are returned, repeated or reordered, and clocks that jump.

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Rng, Seed, Time};
use ropewalk_engine::sctp::{Association, Chunk, Listener, Packet};

use super::kit::{Victim, bytes_of, chunk, client, datagram, init, kind, live, reply, send_to};
use crate::driver::{LEFT, Pair, RIGHT, at_ms, in_turn, ms};

// 63. 64.
#[test]
fn two_listeners_that_answer_each_other_soon_fall_silent() {
    for kind in 0..=255u8 {
        for body in [&[][..], &[0, 1, 0, 8, 1, 2, 3, 4], &[0, 3, 0, 8, 0, 0, 0, 9], &[9; 16]] {
            for tag in [0, 1, 99] {
                for t in [0, 1] {
                    let settings = live(1, 1 << 16);
                    let mut ends = [1, 2].map(|i| Listener::new(settings.clone(), Seed::root(i)));
                    let mut next = Some(datagram(tag, &[chunk(kind, t, body)]));
                    let mut answers = 0;
                    while let Some(bytes) = next {
                        next = reply(&mut ends[answers % 2], Time::ZERO, &bytes)
                            .map(|packet| bytes_of(&packet));
                        answers += 1;
                        assert!(answers < 5, "type {kind} under {tag}");
                    }
                }
            }
        }
    }
    // A real INIT and its answer, sent back to their senders.
    let mut listener = super::kit::listener();
    let answer = reply(&mut listener, Time::ZERO, &datagram(0, &[init(7, &[])])).expect("one");
    let second = reply(&mut listener, Time::ZERO, &bytes_of(&answer)).expect("an ABORT");
    assert_eq!(reply(&mut listener, Time::ZERO, &bytes_of(&second)), None);
}

// 8. 36. 52.
#[test]
fn whatever_a_packet_has_one_packet_answers_it() {
    let many = |one: Vec<u8>| vec![one; 400];
    let first = Victim::up(2).first_tsn(LEFT);
    let wrong = |ahead: u32| super::kit::data(first.plus(ahead), 60_000, 0, 3, b"no such stream");
    let lists = [
        many(super::kit::heartbeat(&[7; 90])),
        many(chunk(0xff, 0, b"what")),
        (0..200).map(wrong).chain(many(super::kit::heartbeat(&[7; 200]))).collect(),
        [many(super::kit::heartbeat(b"x")), many(chunk(kind::SHUTDOWN_ACK, 0, &[]))].concat(),
        [many(chunk(kind::SHUTDOWN, 0, &[0; 4])), many(super::kit::heartbeat(b"x"))].concat(),
    ];
    let states: [fn(&mut Victim); 3] = [
        |_| {},
        |victim| {
            let now = victim.pair.now;
            victim.pair.ends[RIGHT].shutdown(now);
            victim.pair.drain(RIGHT);
        },
        |victim| {
            victim.hit(RIGHT, &[chunk(kind::ABORT, 0, &[])]);
        },
    ];
    for (number, chunks) in lists.iter().enumerate() {
        for (state, prepare) in states.iter().enumerate() {
            for path in [0, 1] {
                let mut victim = Victim::up(2);
                prepare(&mut victim);
                let bytes = datagram(victim.tags(RIGHT).0, chunks);
                let answers = victim.take(RIGHT, path, &bytes);
                let control = |packet: &&Packet| {
                    packet
                        .chunks
                        .iter()
                        .any(|chunk| !matches!(chunk, Chunk::Data(_) | Chunk::Sack(_)))
                };
                let count = answers.iter().filter(control).count();
                assert!(count <= 1, "list {number} in state {state}: {count} packets");
            }
        }
    }
}

// 63.
#[test]
fn an_end_to_which_all_that_it_sends_comes_back_sends_little() {
    let (mut end, _) = client();
    let mut now = Time::ZERO;
    let mut sent = 1;
    let mut returning: Vec<Packet> = Vec::new();
    let mut fresh = Association::connect(live(1, 1 << 16), in_turn(), Seed::root(5), now);
    returning.extend(fresh.poll_transmit(now).map(|transmit| transmit.packet));
    for _ in 0..10_000 {
        let Some(next) = returning.pop().map(|packet| bytes_of(&packet)) else {
            let Some(due) = fresh.next_deadline().filter(|at| *at < Time::from_secs(60)) else {
                break;
            };
            now = now.max(due);
            fresh.handle_timeout(now);
            returning.extend(std::iter::from_fn(|| fresh.poll_transmit(now)).map(|t| t.packet));
            continue;
        };
        sent += 1;
        returning.extend(send_to(&mut fresh, now, 0, &next));
    }
    assert!(sent < 200, "{sent} packets in a minute");
    // A client that gets its own INIT on another path is unchanged.
    let own = datagram(0, &[init(7, &[])]);
    assert!(send_to(&mut end, now, 1, &own).len() <= 1);
}

/// Every packet of a complete association, as bytes, with its receiver.
fn life() -> Vec<(usize, Bytes)> {
    let mut pair = Pair::new(&live(2, 1 << 18), &[10, 30]);
    pair.run_for(ms(200));
    for i in 0..10 {
        pair.send(LEFT, 500 + 100 * i);
        pair.send(RIGHT, 3000);
        pair.run_for(ms(50));
    }
    let now = pair.now;
    pair.ends[LEFT].shutdown(now);
    pair.drain(LEFT);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.read[RIGHT].len(), 10);
    pair.log.iter().map(|sent| (1 - sent.from, bytes_of(&sent.packet))).collect()
}

fn shuffle<T>(list: &mut [T], rng: &mut Rng) {
    for i in (1..list.len()).rev() {
        list.swap(i, rng.below(i as u64 + 1) as usize);
    }
}

// 66.
#[test]
fn packets_of_a_whole_life_in_any_order_and_many_times_break_nothing() {
    let packets = life();
    assert!(packets.len() > 30);
    for case in 0..60 {
        let mut rng = Seed::root(case).child("order").rng();
        // The same ends with the same tags, at some time of their lives.
        let mut pair = Pair::new(&live(2, 1 << 18), &[10, 30]);
        pair.run_for(ms(rng.below(150)));
        let mut order = packets.clone();
        shuffle(&mut order, &mut rng);
        for (end, bytes) in &order {
            let packet = super::kit::read(bytes).expect("a packet");
            for _ in 0..1 + rng.below(3) {
                pair.inject(*end, rng.below(2) as usize, packet.clone());
            }
            pair.run_for(ms(rng.below(20)));
        }
        pair.run_for(Duration::from_secs(400));
        for end in [LEFT, RIGHT] {
            let (held, free) = pair.ends[end].receive_occupancy();
            assert!(held + free <= 1 << 18, "case {case}");
            // Ten messages were sent in each direction. None is delivered twice.
            assert!(pair.read[end].len() <= 10, "case {case}: {}", pair.read[end].len());
        }
    }
}

// 66.
#[test]
fn one_packet_a_thousand_times_is_one_packet() {
    let mut victim = Victim::up(2);
    let first = victim.first_tsn(LEFT);
    let bytes = datagram(victim.tags(RIGHT).0, &[super::kit::data(first, 0, 0, 3, b"once")]);
    let mut answered = 0;
    for i in 0..1000 {
        answered += victim.take(RIGHT, i % 2, &bytes).len();
    }
    assert_eq!(victim.pair.read[RIGHT].len(), 1);
    assert!(answered <= 1000, "{answered}");
    for sack in victim.pair.log.iter().filter_map(|sent| sent.sack()) {
        assert!(sack.duplicates.len() <= 16);
    }
}

// 66.
#[test]
fn a_clock_that_jumps_back_or_ahead_panics_nobody() {
    for case in 0..40 {
        let mut rng = Seed::root(case).child("clock").rng();
        let mut pair = Pair::new(&live(2, 1 << 18), &[10, 30]);
        pair.run_for(ms(rng.below(200)));
        for (end, bytes) in life() {
            let jump = Time::from_millis(rng.below(1_000_000));
            let packet = super::kit::read(&bytes).expect("a packet");
            let machine = &mut pair.ends[end];
            machine.handle_datagram(jump, PathId(rng.below(2) as u8), packet);
            while machine.poll_transmit(jump).is_some() {}
            let other = Time::from_millis(rng.below(1_000_000));
            machine.handle_timeout(other);
            while machine.poll_transmit(other).is_some() {}
            while machine.poll_event().is_some() {}
            while machine.read(other).is_some() {}
        }
    }
    // A listener with the same clock.
    let mut listener = super::kit::listener();
    let init = datagram(0, &[init(7, &[])]);
    for millis in [1_000_000, 0, 500, u64::MAX / 2_000_000, 3] {
        assert!(reply(&mut listener, at_ms(millis), &init).is_some());
        let shutdown = datagram(9, &[chunk(kind::SHUTDOWN_ACK, 0, &[])]);
        reply(&mut listener, at_ms(millis), &shutdown);
    }
}
