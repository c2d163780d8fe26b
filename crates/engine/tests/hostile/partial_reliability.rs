//! FORWARD-TSN of a peer after its negotiation (no. 54).

use ropewalk_base::Serial32;
use ropewalk_engine::sctp::association::State;
use ropewalk_engine::sctp::{Config, Extensions, Negotiation};

use super::kit::{BEGIN, END, UNORDERED, Victim, WHOLE, chunk, data, live, names};
use crate::driver::{LEFT, Pair, RIGHT};

const FORWARD: u8 = 0xc0;

fn victim() -> Victim {
    let agreed = Negotiation::Listed(Extensions::FORWARD_TSN);
    Victim::of(Pair::up(&Config { negotiation: agreed, ..live(2, 1 << 18) }, &[10, 30]))
}

fn forward(tsn: Serial32, streams: &[(u16, u16)]) -> Vec<u8> {
    let mut body = tsn.0.to_be_bytes().to_vec();
    for (stream, ssn) in streams {
        body.extend(stream.to_be_bytes());
        body.extend(ssn.to_be_bytes());
    }
    chunk(FORWARD, 0, &body)
}

/// The next TSN that the right end expects.
fn next(victim: &Victim) -> Serial32 {
    Serial32::wrap(victim.pair.ends[RIGHT].expected(ropewalk_base::StreamId(0)).0)
}

#[test]
fn a_forward_tsn_behind_or_out_of_reach_is_answered_and_changes_nothing() {
    let mut victim = victim();
    let first = victim.first_tsn(LEFT);
    victim.hit(RIGHT, &[data(first, 0, 0, WHOLE, b"one")]);
    for ahead in [0u32, u32::MAX, 0x8000_0000, 0x7fff_ffff, 65_537, 1 << 20] {
        let before = next(&victim);
        let tsn = first.plus(ahead);
        let answer = victim.hit(RIGHT, &[forward(tsn, &[(0, 9)])]);
        assert_eq!(names(&answer), ["SACK"], "{ahead}");
        assert_eq!(next(&victim), before, "{ahead}");
    }
    // The stream is unchanged.
    victim.hit(RIGHT, &[data(first.plus(1), 0, 1, WHOLE, b"two")]);
    assert_eq!(victim.pair.read_bytes(RIGHT), 6);
    assert_eq!(victim.state(RIGHT), &State::Established);
}

#[test]
fn a_forward_tsn_to_the_end_of_the_reach_costs_nothing() {
    let mut victim = victim();
    let first = victim.first_tsn(LEFT);
    let before = victim.pair.ends[RIGHT].receive_memory();
    for round in 0..50 {
        let tsn = next(&victim).plus(65_534);
        victim.hit(RIGHT, &[forward(tsn, &[])]);
        assert_eq!(next(&victim), tsn.plus(1), "round {round}");
        assert_eq!(victim.pair.ends[RIGHT].receive_memory(), before);
    }
    let tsn = next(&victim);
    assert_ne!(tsn, first);
    victim.hit(RIGHT, &[data(tsn, 0, 0, WHOLE, b"fine")]);
    assert_eq!(victim.pair.read_bytes(RIGHT), 4);
}

#[test]
fn streams_that_do_not_exist_or_are_listed_a_thousand_times_are_nothing() {
    let mut victim = victim();
    let first = victim.first_tsn(LEFT);
    // Messages far ahead on stream 0 wait for earlier ones.
    for at in 1..200u16 {
        let tsn = first.plus(u32::from(at));
        victim.hit(RIGHT, &[data(tsn, 0, at * 100, WHOLE, b"four")]);
    }
    assert_eq!(victim.pair.read_bytes(RIGHT), 0);
    let listed: Vec<_> = (0..10_000u16).map(|at| (at % 3 * 0x7fff, at)).collect();
    victim.hit(RIGHT, &[forward(first, &listed)]);
    // Stream 0 has been advanced beyond 9999, so 10 000 is next.
    assert_eq!(victim.pair.read_bytes(RIGHT), 4 * 100);
    // Backwards on the stream: too late to have an effect.
    victim.hit(RIGHT, &[forward(first.plus(199), &[(0, 5)]), forward(first.plus(200), &[(0, 5)])]);
    assert_eq!(victim.pair.read_bytes(RIGHT), 4 * 100);
    assert_eq!(victim.state(RIGHT), &State::Established);
}

#[test]
fn fragments_that_lose_their_beginning_or_end_are_dropped_whatever_order_they_come_in() {
    let parts = [BEGIN, 0, 0, END];
    for skipped in 0..4u32 {
        for late in [false, true] {
            for order in [0, UNORDERED] {
                let mut victim = victim();
                let first = victim.first_tsn(LEFT);
                let fragment =
                    |at: u32| data(first.plus(at), 0, 0, parts[at as usize] | order, &[7; 50]);
                let others: Vec<u32> = (0..4).filter(|at| *at != skipped).collect();
                let now = |at: &&u32| !late || **at < skipped;
                for at in others.iter().filter(now) {
                    victim.hit(RIGHT, &[fragment(*at)]);
                }
                victim.hit(RIGHT, &[forward(first.plus(skipped), &[(0, 0)])]);
                for at in others.iter().filter(|at| !now(at)) {
                    victim.hit(RIGHT, &[fragment(*at)]);
                }
                // A correct peer abandons all fragments of a message.
                victim.hit(RIGHT, &[forward(first.plus(3), &[(0, 0)])]);
                let what = format!("fragment {skipped}, late {late}, flags {order}");
                assert_eq!(victim.pair.read_bytes(RIGHT), 0, "{what}");
                assert_eq!(victim.pair.ends[RIGHT].receive_occupancy().0, 0, "{what}");
                victim.hit(RIGHT, &[data(first.plus(4), 0, 1, WHOLE, b"fine")]);
                assert_eq!(victim.pair.read_bytes(RIGHT), 4, "{what}");
                assert_eq!(victim.state(RIGHT), &State::Established, "{what}");
            }
        }
    }
}

#[test]
fn for_a_peer_that_acknowledges_nothing_little_is_kept() {
    use ropewalk_engine::sctp::Delivery;
    let mut victim = victim();
    let delivery = Delivery::datagram(crate::driver::ms(50));
    let mut sizes = Vec::new();
    for _ in 0..3 {
        for _ in 0..100 {
            victim.pair.send_message(RIGHT, ropewalk_engine::Payload::Length(100), delivery);
            victim.pair.run_for(crate::driver::ms(20));
        }
        sizes.push(victim.all(RIGHT).len());
    }
    // All sent data is lost, and the timer permits one packet at a time.
    assert!(sizes[2] < sizes[1] + 3_000, "{sizes:?}");
    // An acknowledgement of data that was never sent ends the association, as always.
    let first = victim.first_tsn(RIGHT);
    victim.hit(RIGHT, &[super::kit::sack(first.plus(9_000), 1 << 16, &[], 0)]);
    assert!(matches!(victim.state(RIGHT), State::Ended(_)));
}
