//! I-DATA and I-FORWARD-TSN of a peer after the negotiation of interleaving (RFC 8260).

use ropewalk_base::{Serial32, StreamId};
use ropewalk_engine::sctp::Config;
use ropewalk_engine::sctp::association::State;

use super::kit::{BEGIN, END, UNORDERED, Victim, WHOLE, chunk, data, kind, live, names};
use crate::driver::{LEFT, Pair, RIGHT};

const I_DATA: u8 = 0x40;
const FORWARD: u8 = 0xc0;
const I_FORWARD: u8 = 0xc2;

fn victim() -> Victim {
    let config = Config { interleaving: true, ..live(2, 1 << 18) };
    // Peers that list extensions negotiate nothing else.
    let listed = ropewalk_engine::sctp::Extensions::FORWARD_TSN;
    let negotiation = ropewalk_engine::sctp::Negotiation::Listed(listed);
    Victim::of(Pair::up(&Config { negotiation, ..config }, &[10, 30]))
}

fn i_data(
    tsn: Serial32,
    stream: u16,
    message: u32,
    fragment: u32,
    flags: u8,
    body: &[u8],
) -> Vec<u8> {
    let mut all = tsn.0.to_be_bytes().to_vec();
    all.extend(stream.to_be_bytes());
    all.extend([0; 2]);
    all.extend(message.to_be_bytes());
    all.extend(fragment.to_be_bytes());
    all.extend(body);
    chunk(I_DATA, flags, &all)
}

fn i_forward(tsn: Serial32, skipped: &[(u16, bool, u32)]) -> Vec<u8> {
    let mut body = tsn.0.to_be_bytes().to_vec();
    for (stream, unordered, message) in skipped {
        body.extend(stream.to_be_bytes());
        body.extend([0, u8::from(*unordered)]);
        body.extend(message.to_be_bytes());
    }
    chunk(I_FORWARD, 0, &body)
}

/// The next TSN that the right end expects.
fn next(victim: &Victim) -> Serial32 {
    Serial32::wrap(victim.pair.ends[RIGHT].expected(StreamId(0)).0)
}

#[test]
fn fragments_that_contradict_each_other_end_the_association() {
    let sound = [(1, BEGIN, 0), (2, 0, 1), (3, 0, 5)];
    /// TSN relative to the first, flags, and fragment sequence number.
    type Fragment = (u32, u8, u32);
    let table: &[(&str, &[Fragment], bool)] = &[
        ("nothing wrong", &[], false),
        ("the same fragment under another TSN", &[(4, 0, 1)], true),
        ("a second beginning", &[(4, BEGIN, 0)], true),
        ("a whole message of the same number", &[(4, WHOLE, 0)], true),
        ("an end before a fragment", &[(4, END, 4)], true),
        ("two ends", &[(4, END, 7), (5, END, 9)], true),
        ("a fragment behind the end", &[(4, END, 7), (5, 0, 8)], true),
        ("a fragment 0 that is not the first", &[(4, 0, 0)], true),
        ("the largest number", &[(4, 0, u32::MAX)], false),
        ("the largest number as the end", &[(4, END, u32::MAX)], false),
    ];
    for order in [0, UNORDERED] {
        for (what, more, ends) in table {
            let mut victim = victim();
            let first = victim.first_tsn(LEFT);
            for (ahead, flags, fragment) in sound.iter().chain(*more) {
                let tsn = first.plus(*ahead);
                let one = i_data(tsn, 0, 0, *fragment, flags | order, b"four");
                victim.hit(RIGHT, &[one]);
            }
            let ended = matches!(victim.state(RIGHT), State::Ended(_));
            assert_eq!(ended, *ends, "{what}, flags {order}");
            assert_eq!(victim.pair.read_bytes(RIGHT), 0, "{what}");
        }
    }
}

#[test]
fn a_message_that_was_delivered_does_not_come_again() {
    let mut victim = victim();
    let first = victim.first_tsn(LEFT);
    victim.hit(RIGHT, &[i_data(first, 0, 0, 0, WHOLE, b"four")]);
    assert_eq!(victim.pair.read_bytes(RIGHT), 4);
    // The same TSN is a duplicate, another one a violation.
    victim.hit(RIGHT, &[i_data(first, 0, 0, 0, WHOLE, b"four")]);
    assert_eq!((victim.pair.read_bytes(RIGHT), victim.state(RIGHT)), (4, &State::Established));
    victim.hit(RIGHT, &[i_data(first.plus(1), 0, 0, 0, WHOLE, b"four")]);
    assert!(matches!(victim.state(RIGHT), State::Ended(_)));
    for message in [u32::MAX, 1 << 31, (1 << 31) + 5] {
        let mut victim = self::victim();
        victim.hit(RIGHT, &[i_data(first, 0, message, 0, WHOLE, b"four")]);
        assert!(matches!(victim.state(RIGHT), State::Ended(_)), "{message} is behind 0");
    }
    // At the maximum distance that is still recognised as later.
    let mut victim = self::victim();
    victim.hit(RIGHT, &[i_data(first, 0, (1 << 31) - 1, 0, WHOLE, b"four")]);
    assert_eq!((victim.pair.read_bytes(RIGHT), victim.state(RIGHT)), (0, &State::Established));
}

#[test]
fn data_and_forward_tsn_end_an_interleaved_association() {
    let first = victim().first_tsn(LEFT);
    let mut forward = first.0.to_be_bytes().to_vec();
    forward.extend([0, 0, 0, 9]);
    for wrong in [data(first, 0, 0, WHOLE, b"four"), chunk(FORWARD, 0, &forward)] {
        let mut victim = victim();
        assert_eq!(names(&victim.hit(RIGHT, &[wrong])), ["ABORT"]);
        assert!(matches!(victim.state(RIGHT), State::Ended(_)));
    }
    let mut victim = Victim::up(1);
    assert_eq!(names(&victim.hit(RIGHT, &[i_data(first, 0, 0, 0, WHOLE, b"x")])), ["ABORT"]);
}

#[test]
fn malformed_chunks_are_dropped_with_their_packet() {
    let first = victim().first_tsn(LEFT);
    let whole = i_data(first, 0, 0, 0, WHOLE, b"four");
    for length in [0usize, 1, 4, 15] {
        let mut victim = victim();
        let short = chunk(I_DATA, WHOLE, &whole[4..4 + length]);
        assert!(victim.hit(RIGHT, &[short]).is_empty(), "{length} B");
        assert_eq!(victim.state(RIGHT), &State::Established);
    }
    // Without user data: RFC 9260, 6.2.
    let mut victim = victim();
    assert_eq!(names(&victim.hit(RIGHT, &[i_data(first, 0, 0, 0, WHOLE, b"")])), ["ABORT"]);
    for rest in [1usize, 4, 7] {
        let mut victim = self::victim();
        let cut = i_forward(first, &[(0, false, 0)]);
        assert!(victim.hit(RIGHT, &[chunk(I_FORWARD, 0, &cut[4..8 + rest])]).is_empty());
    }
    // A stream that does not exist: acknowledged, reported and not delivered.
    let mut victim = self::victim();
    let answer = victim.hit(RIGHT, &[i_data(first, 999, 0, 0, WHOLE, b"four")]);
    assert_eq!(names(&answer), ["ERROR", "SACK"]);
    assert_eq!(next(&victim), first.plus(1));
}

#[test]
fn an_i_forward_tsn_behind_or_out_of_reach_is_answered_and_changes_nothing() {
    let mut victim = victim();
    let first = victim.first_tsn(LEFT);
    victim.hit(RIGHT, &[i_data(first, 0, 0, 0, WHOLE, b"one")]);
    for ahead in [0u32, u32::MAX, 0x8000_0000, 0x7fff_ffff, 65_537, 1 << 20] {
        let before = next(&victim);
        let answer = victim.hit(RIGHT, &[i_forward(first.plus(ahead), &[(0, false, 9)])]);
        assert_eq!(names(&answer), ["SACK"], "{ahead}");
        assert_eq!(next(&victim), before, "{ahead}");
    }
    victim.hit(RIGHT, &[i_data(first.plus(1), 0, 1, 0, WHOLE, b"two")]);
    assert_eq!(victim.pair.read_bytes(RIGHT), 6);
}

#[test]
fn skipped_messages_are_dropped_and_what_waited_for_them_is_delivered() {
    for unordered in [false, true] {
        let mut victim = victim();
        let first = victim.first_tsn(LEFT);
        let order = if unordered { UNORDERED } else { 0 };
        // Message 0 lacks its second fragment, message 1 is complete, and message 2 lacks its end.
        victim.hit(RIGHT, &[i_data(first, 0, 0, 0, BEGIN | order, b"begin")]);
        victim.hit(RIGHT, &[i_data(first.plus(2), 0, 0, 2, END | order, b"end")]);
        victim.hit(RIGHT, &[i_data(first.plus(3), 0, 1, 0, WHOLE | order, b"whole")]);
        victim.hit(RIGHT, &[i_data(first.plus(4), 0, 2, 0, BEGIN | order, b"more")]);
        let early = if unordered { 5 } else { 0 };
        assert_eq!(victim.pair.read_bytes(RIGHT), early);
        victim.hit(
            RIGHT,
            &[i_forward(first.plus(1), &[(0, unordered, 0), (7, true, 3), (999, false, 1)])],
        );
        assert_eq!(victim.pair.read_bytes(RIGHT), 5);
        victim.hit(RIGHT, &[i_data(first.plus(5), 0, 2, 1, END | order, b"over")]);
        assert_eq!(victim.pair.read_bytes(RIGHT), 13);
        assert_eq!(victim.pair.ends[RIGHT].receive_occupancy().0, 0);
        // A late fragment of the skipped message is acknowledged and dropped.
        victim.hit(RIGHT, &[i_data(first.plus(6), 0, 0, 3, order, b"late")]);
        assert_eq!((next(&victim), victim.pair.read_bytes(RIGHT)), (first.plus(7), 13));
        assert_eq!(victim.pair.ends[RIGHT].receive_occupancy().0, 0);
        assert_eq!(victim.state(RIGHT), &State::Established);
    }
}

#[test]
fn streams_listed_a_thousand_times_are_passed_over_once() {
    let mut victim = victim();
    let first = victim.first_tsn(LEFT);
    for at in 1..200u32 {
        victim.hit(RIGHT, &[i_data(first.plus(at), 0, at * 100, 0, WHOLE, b"four")]);
    }
    let listed: Vec<_> = (0..7_000u32).map(|at| ((at % 2) as u16 * 999, false, at)).collect();
    victim.hit(RIGHT, &[i_forward(first, &listed)]);
    assert_eq!(victim.pair.read_bytes(RIGHT), 4 * 69);
    let memory = victim.pair.ends[RIGHT].receive_memory();
    let streams: Vec<_> = (0..7_000u16).map(|at| (at % 5, true, u32::from(at))).collect();
    victim.hit(RIGHT, &[i_forward(first.plus(200), &streams)]);
    assert!(victim.pair.ends[RIGHT].receive_memory() <= memory + 5 * 64);
}

#[test]
fn a_sack_never_acknowledges_more_than_came() {
    let mut victim = victim();
    let first = victim.first_tsn(LEFT);
    let far = victim.hit(RIGHT, &[i_data(first.plus(65_000), 0, 9, 3, 0, &[7; 100])]);
    assert!(names(&far).contains(&"SACK"));
    assert_eq!(next(&victim), first);
    assert_eq!(kind::SACK, 3);
}
