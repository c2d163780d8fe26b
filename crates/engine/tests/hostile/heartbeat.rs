//! HEARTBEAT, HEARTBEAT ACK and ERROR (RFC 9260, 3.3.5, 3.3.10, 5.4, 8.3).

use bytes::Bytes;
use ropewalk_base::{Duration, PathId};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::Chunk;
use ropewalk_engine::sctp::association::State;
use ropewalk_engine::sctp::wire::DecodeError;

use super::kit::{
    Victim, bytes_of, chunk, datagram, heartbeat, kind, live, names, parameter, read,
};
use crate::driver::{Fate, LEFT, Pair, RIGHT, ms};

/// A victim whose left end has sent a HEARTBEAT on path 1, where nothing arrives; and its information.
fn asking() -> (Victim, Bytes) {
    let mut pair = Pair::new(&live(2, 1 << 18), &[10, 30]);
    pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
    pair.run_for(ms(150));
    let asked = pair.log.iter().find(|s| s.from == LEFT && s.path == 1).expect("a HEARTBEAT");
    let Chunk::Heartbeat(info) = asked.packet.chunks[0].clone() else { panic!("{asked:?}") };
    (Victim::of(pair), info)
}

// 50.
#[test]
fn a_heartbeat_goes_back_if_a_packet_can_hold_it_and_without_content_it_is_nothing() {
    for (size, expected) in [(0, 1), (1, 1), (1460, 1), (1461, 0), (60_000, 0)] {
        let answers = Victim::up(1).hit(RIGHT, &[heartbeat(&vec![0x5a; size])]);
        assert_eq!(names(&answers).len(), expected, "{size} B");
        for packet in answers {
            let back = Bytes::from(vec![0x5a; size]);
            assert_eq!(packet.chunks[..], [Chunk::HeartbeatAck(back)]);
        }
    }
    for kind in [kind::HEARTBEAT, kind::HEARTBEAT_ACK] {
        let malformed = DecodeError::Malformed { kind, at: 12 };
        for body in [&[][..], &[0, 1], &[0, 1, 0, 3], &[0, 1, 0, 9, 1, 2, 3, 4], &[0, 2, 0, 4]] {
            let bytes = datagram(9, &[chunk(kind, 0, body)]);
            assert_eq!(read(&bytes), Err(malformed), "type {kind}: {body:?}");
        }
    }
}

// 50.
#[test]
fn the_heartbeat_information_may_stand_anywhere_among_the_parameters() {
    let (info, other) = (parameter(1, b"ours"), parameter(0x8001, b"what else"));
    for parameters in [[info.clone(), other.clone()].concat(), [other, info].concat()] {
        let answers = Victim::up(1).hit(RIGHT, &[chunk(kind::HEARTBEAT, 0, &parameters)]);
        let expected = bytes_of(&answers[0]);
        assert_eq!(names(&answers), ["of an extension"]);
        assert!(expected.ends_with(&parameters), "{expected:?}");
    }
    // The answer to one of ours counts as well.
    let (mut victim, info) = asking();
    let answer = [parameter(0x8001, b"what else"), parameter(1, &info)].concat();
    victim.hit(LEFT, &[chunk(kind::HEARTBEAT_ACK, 0, &answer)]);
    assert_eq!(victim.pair.ends[LEFT].path_status(PathId(1)), PathStatus::Active);
}

// 51.
#[test]
fn a_heartbeat_ack_confirms_the_path_of_its_nonce_once_whichever_way_it_arrives() {
    let (mut victim, info) = asking();
    let ack = |info: &[u8]| chunk(kind::HEARTBEAT_ACK, 0, &parameter(1, info));
    let bytes = |victim: &Victim, info: &[u8]| datagram(victim.tags(LEFT).0, &[ack(info)]);
    let status = |victim: &Victim| victim.pair.ends[LEFT].path_status(PathId(1));
    for at in 0..8 {
        let mut forged = info.to_vec();
        forged[at] ^= 1;
        let forged = bytes(&victim, &forged);
        victim.take(LEFT, 1, &forged);
        assert_eq!(status(&victim), PathStatus::Unconfirmed, "nonce changed in byte {at}");
    }
    let cut = bytes(&victim, &info[..info.len() - 1]);
    let none = bytes(&victim, &[0; 16]);
    let good = bytes(&victim, &info);
    for (path, bytes) in [(1, &cut), (1, &none), (2, &good), (15, &good)] {
        victim.take(LEFT, path, bytes);
        assert_eq!(status(&victim), PathStatus::Unconfirmed, "on path {path}");
    }
    // A multihomed peer with one default route answers a HEARTBEAT of path 1 on path 0.
    victim.take(LEFT, 0, &good);
    assert_eq!(status(&victim), PathStatus::Active);
    // Much later it gives no sample of the path's round trip.
    let trip = victim.pair.view(LEFT, 1).srtt;
    victim.pair.now += Duration::from_secs(3);
    victim.take(LEFT, 1, &good);
    assert_eq!(victim.pair.view(LEFT, 1).srtt, trip);
}

// 52.
#[test]
fn a_flood_of_heartbeats_is_answered_by_no_more_bytes_than_it_has() {
    for size in [0, 1, 4, 100, 1000] {
        let one = heartbeat(&vec![1; size]);
        let many = vec![one; 60_000 / (8 + size.next_multiple_of(4))];
        let asked: usize = many.iter().map(Vec::len).sum::<usize>() + 12;
        let mut victim = Victim::up(1);
        let answers = victim.hit(RIGHT, &many);
        // 12.4: one packet is answered by one packet.
        assert_eq!(answers.len(), 1);
        assert!(answers[0].wire_len() as usize <= asked.min(1480), "for {asked} B");
        let fit = (1468 - 16) / (8 + size.next_multiple_of(4));
        assert!(names(&answers).len() >= fit.min(many.len()).min(64));
    }
}

// 53.
#[test]
fn error_causes_without_number_or_sense_are_read_as_far_as_they_have_any() {
    let cause = parameter(6, b"what");
    let lists: [Vec<u8>; 6] = [
        Vec::new(),
        cause.repeat(200),
        [cause.clone(), vec![0, 6, 0, 0, 0, 0, 0, 0]].concat(),
        [cause.clone(), vec![0, 6, 0, 200, 1]].concat(),
        [cause.clone(), vec![0, 6]].concat(),
        parameter(0xffff, &[0; 60_000]),
    ];
    for list in lists {
        let mut victim = Victim::up(1);
        let error = chunk(kind::ERROR, 0, &list);
        let answers = victim.hit(RIGHT, &[error, heartbeat(b"beside")]);
        assert_eq!(names(&answers), ["HEARTBEAT ACK"]);
        assert_eq!(*victim.state(RIGHT), State::Established);
    }
    let packet = read(&datagram(9, &[chunk(kind::ERROR, 0, &cause.repeat(200))])).expect("one");
    let Chunk::Error(causes) = &packet.chunks[0] else { panic!("{packet:?}") };
    assert_eq!(causes.len(), 16);
}
