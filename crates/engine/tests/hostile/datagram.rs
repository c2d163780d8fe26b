//! Datagrams that are not packets, and chunks with wrong lengths.

use ropewalk_base::Time;
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::wire::DecodeError;

use super::kit::{
    Victim, chunk, client, data, datagram, heartbeat, kind, names, parameter, read, send_to,
    with_sum,
};
use crate::driver::{LEFT, RIGHT};

// 1. 62.
#[test]
fn what_is_shorter_than_a_header_is_nothing() {
    let whole = datagram(9, &[chunk(kind::COOKIE_ACK, 0, &[])]);
    for bytes in 0..12 {
        assert_eq!(read(&whole.slice(..bytes)), Err(DecodeError::Short { bytes }));
    }
    // A header alone is a packet without content.
    let mut victim = Victim::up(1);
    let before = victim.all(RIGHT);
    assert_eq!(victim.hit::<&[u8]>(RIGHT, &[]), []);
    assert_eq!(victim.all(RIGHT), before);
}

fn adler(bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (1u32, 0u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    b << 16 | a
}

// 2. 60.
#[test]
fn only_crc32c_in_its_own_byte_order_makes_a_packet() {
    let good = datagram(9, &[heartbeat(b"anything")]);
    let sum: [u8; 4] = good[8..12].try_into().expect("four bytes");
    assert!(read(&good).is_ok());
    let mut zeroed = good.to_vec();
    zeroed[8..12].fill(0);
    let old = adler(&zeroed);
    let inverse = sum.map(|byte| !byte);
    let reversed = u32::from_be_bytes(sum).swap_bytes().to_be_bytes();
    for wrong in [[0; 4], old.to_be_bytes(), old.to_le_bytes(), inverse, reversed] {
        let mut bytes = good.to_vec();
        bytes[8..12].copy_from_slice(&wrong);
        assert_eq!(read(&bytes.into()), Err(DecodeError::Checksum), "{wrong:?}");
    }
}

// 3.
#[test]
fn port_0_is_none() {
    let good = datagram(9, &[heartbeat(b"anything")]);
    for at in [0, 2] {
        let mut bytes = good.to_vec();
        bytes[at..at + 2].fill(0);
        assert_eq!(read(&with_sum(bytes)), Err(DecodeError::Port));
    }
}

// 4. 5. 7.
#[test]
fn a_chunk_whose_length_cannot_be_true_ends_the_packet_before_it() {
    for kind in [kind::DATA, kind::SACK, kind::HEARTBEAT, kind::ABORT, kind::ERROR, 0xff] {
        for length in [0u16, 1, 2, 3, 33, 1500, 32_768, 65_535] {
            let [a, b] = length.to_be_bytes();
            let bad = [&[kind, 0, a, b][..], &[0; 8]].concat();
            let what = format!("type {kind}, {length} B");
            assert_eq!(read(&datagram(9, &[&bad])), Err(DecodeError::Length { kind }), "{what}");
            let mut victim = Victim::up(1);
            let answers = victim.hit(RIGHT, &[heartbeat(b"one"), bad.clone(), heartbeat(b"two")]);
            // With 33 B the two following chunks are its own content.
            let within = length == 33;
            let most = if within { 2 } else { 1 };
            assert!((1..=most).contains(&names(&answers).len()), "{what}: {answers:?}");
            assert_eq!(names(&answers)[0], "HEARTBEAT ACK", "{what}");
            assert_eq!(*victim.state(RIGHT), State::Established, "{what}");
        }
    }
}

// 6.
#[test]
fn a_packet_may_end_in_the_padding_of_its_last_chunk_and_not_before() {
    // The length of the chunk, 13, excludes three bytes of padding.
    let last = chunk(kind::HEARTBEAT, 0, &parameter(1, b"five5")[..9]);
    let bytes = [heartbeat(b"one"), last].concat();
    for cut in 0..=3 {
        let answers = Victim::up(1).hit(RIGHT, &[&bytes[..bytes.len() - cut]]);
        assert_eq!(names(&answers), ["HEARTBEAT ACK"; 2], "{cut} B are missing");
    }
    let answers = Victim::up(1).hit(RIGHT, &[&bytes[..bytes.len() - 4]]);
    assert_eq!(names(&answers), ["HEARTBEAT ACK"], "a byte of its content is missing");
}

/// Ends in different states, each with the tag of packets to it.
fn answers_in_each_state(chunks: &[Vec<u8>]) -> Vec<(&'static str, usize)> {
    let mut counts = Vec::new();
    let mut victim = Victim::up(1);
    counts.push(("up", victim.hit(RIGHT, chunks).len()));
    let mut ended = Victim::up(1);
    ended.hit(RIGHT, &[chunk(kind::ABORT, 0, &[])]);
    assert!(matches!(ended.state(RIGHT), State::Ended(CloseReason::AbortedByPeer(_))));
    counts.push(("ended", ended.hit(RIGHT, chunks).len()));
    let mut closing = Victim::up(1);
    let now = closing.pair.now;
    closing.pair.ends[LEFT].shutdown(now);
    closing.pair.drain(LEFT);
    assert!(matches!(closing.state(LEFT), State::ShutdownSent { .. }));
    counts.push(("shutting down", closing.hit(LEFT, chunks).len()));
    let (mut opening, tag) = client();
    let bytes = datagram(tag, chunks);
    counts.push(("opening", send_to(&mut opening, Time::ZERO, 0, &bytes).len()));
    counts
}

// 8.
#[test]
fn very_many_empty_chunks_are_answered_with_few_packets() {
    for kind in 0..=255 {
        let chunks = vec![chunk(kind, 0, &[]); 16_000];
        for (state, packets) in answers_in_each_state(&chunks) {
            assert!(packets <= 4, "{packets} answers to chunks of type {kind}, {state}");
        }
    }
}

// 9.
#[test]
fn unknown_chunks_anywhere_do_as_their_highest_bits_say() {
    for (kind, reported, goes_on) in
        [(0x3f, false, false), (0x7f, true, false), (0xbf, false, true), (0xff, true, true)]
    {
        for place in 0..3 {
            let mut chunks = vec![heartbeat(b"one"), heartbeat(b"two")];
            chunks.insert(place, chunk(kind, 0, b"what"));
            let mut expected = vec!["HEARTBEAT ACK"; if goes_on { 2 } else { place }];
            if reported {
                expected.insert(place, "ERROR");
            }
            let answers = Victim::up(1).hit(RIGHT, &chunks);
            assert_eq!(names(&answers), expected, "type {kind:#x} in place {place}");
        }
    }
}

// 10.
#[test]
fn a_datagram_of_64_kib_is_a_packet_like_any_other() {
    let mut victim = Victim::up(1);
    let first = victim.first_tsn(LEFT);
    let most = 65_507 - 12 - 16;
    let answers = victim.hit(RIGHT, &[data(first, 0, 0, 3, &vec![7; most])]);
    assert_eq!(victim.pair.read_bytes(RIGHT), most as u64);
    assert_eq!(names(&answers), ["SACK"], "it is the first one");
}

// 59.
#[test]
fn padding_is_skipped_and_padding_that_the_packet_does_not_hold_ends_it() {
    let pad = |size: usize| chunk(kind::PAD, 0, &vec![0xaa; size]);
    assert_eq!(Victim::up(1).hit(RIGHT, &[pad(1400)]), []);
    let answers = Victim::up(1).hit(RIGHT, &[pad(5), heartbeat(b"one"), pad(0)]);
    assert_eq!(names(&answers), ["HEARTBEAT ACK"]);
    let mut long = pad(8);
    long[2..4].copy_from_slice(&u16::MAX.to_be_bytes());
    assert_eq!(read(&datagram(9, &[&long])), Err(DecodeError::Length { kind: kind::PAD }));
    let answers = Victim::up(1).hit(RIGHT, &[heartbeat(b"one"), long, heartbeat(b"two")]);
    assert_eq!(names(&answers), ["HEARTBEAT ACK"]);
}
