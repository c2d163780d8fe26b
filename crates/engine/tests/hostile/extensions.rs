//! Chunks of extensions that were not negotiated: only their highest bits count.

use ropewalk_base::Serial32;
use ropewalk_engine::sctp::association::State;

use super::kit::{Victim, WHOLE, chunk, data, heartbeat, kind, names, parameter};
use crate::driver::{LEFT, RIGHT};

/// The reaction of an end to an unknown chunk.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Answer {
    Stop,
    Skip,
    SkipAndReport,
    /// The packet is inconsistent and dropped entirely.
    Drop,
}

/// Passes such chunks to an association during a transfer, and checks the answer.
fn expect(kind: u8, bodies: &[Vec<u8>], answer: Answer) {
    let expected: &[&str] = match answer {
        Answer::Stop | Answer::Drop => &[],
        Answer::Skip => &["HEARTBEAT ACK"],
        Answer::SkipAndReport => &["ERROR", "HEARTBEAT ACK"],
    };
    for body in bodies {
        let what = format!("type {kind:#x}, {} B: {:?}", body.len(), &body[..body.len().min(24)]);
        let mut victim = Victim::up(2);
        victim.pair.send_full(RIGHT, 1);
        let (tags, flying) = (victim.tags(RIGHT), victim.pair.view(RIGHT, 0).in_flight);
        for path in 0..2 {
            let bytes = super::kit::datagram(tags.0, &[chunk(kind, 0, body), heartbeat(b"beside")]);
            assert_eq!(names(&victim.take(RIGHT, path, &bytes)), expected, "{what}");
        }
        let end = &victim.pair.ends[RIGHT];
        assert_eq!((end.tags(), end.path_count(), end.state()), (tags, 2, &State::Established));
        assert_eq!(victim.pair.view(RIGHT, 0).in_flight, flying, "{what}");
        // Numbers and streams are unchanged.
        let first = victim.first_tsn(LEFT);
        victim.hit(RIGHT, &[data(first, 0, 0, WHOLE, b"fine")]);
        assert_eq!(victim.pair.read_bytes(RIGHT), 4, "{what}");
    }
}

/// The TSN that the left end of every pair sends first.
fn next_tsn() -> Serial32 {
    Victim::up(2).first_tsn(LEFT)
}

fn tsn_and(tsn: Serial32, rest: &[u8]) -> Vec<u8> {
    [&tsn.0.to_be_bytes()[..], rest].concat()
}

// 54.
#[test]
fn forward_tsn_skips_nothing() {
    let first = next_tsn();
    let sound: Vec<_> = [0u32, 1, 5000, 0x7fff_ffff, 0x8000_0000, u32::MAX - 5]
        .into_iter()
        .map(|ahead| tsn_and(first.plus(ahead), &[]))
        .chain([tsn_and(first, &[0, 0, 0, 0]), tsn_and(first, &[0xff, 0xff, 0, 9].repeat(5000))])
        .collect();
    expect(0xc0, &sound, Answer::SkipAndReport);
    expect(0xc0, &[tsn_and(first, &[0, 0]), vec![0; 3], Vec::new()], Answer::Drop);
    let sound: Vec<_> = [0u32, 5000, 0x8000_0000]
        .into_iter()
        .map(|ahead| tsn_and(first.plus(ahead), &[0, 0, 0, 1, 0, 0, 0, 9]))
        .collect();
    expect(0xc2, &sound, Answer::SkipAndReport);
    expect(0xc2, &[tsn_and(first, &[0, 0, 0, 0]), vec![0; 3]], Answer::Drop);
}

// 55.
#[test]
fn asconf_changes_no_address() {
    let address = |ip: [u8; 4]| parameter(5, &ip);
    let lead = address([10, 0, 0, 1]);
    let request = |kind: u16, ip: [u8; 4]| {
        let inner = [&[0, 0, 0, 1][..], &address(ip)].concat();
        tsn_and(Serial32(1), &[lead.clone(), parameter(kind, &inner)].concat())
    };
    let (add, delete, primary) = (0xc001, 0xc002, 0xc004);
    let mut bodies = vec![tsn_and(Serial32(1), &lead), tsn_and(Serial32(u32::MAX), &lead)];
    for ip in [[10, 9, 9, 9], [224, 0, 0, 1], [127, 0, 0, 1], [0, 0, 0, 0], [10, 0, 0, 1]] {
        bodies.extend([add, delete, primary].map(|kind| request(kind, ip)));
    }
    bodies.push(tsn_and(Serial32(1), &[&lead[..], &parameter(add, &[]).repeat(50)].concat()));
    expect(0xc1, &bodies, Answer::SkipAndReport);
    let many = tsn_and(Serial32(1), &[&lead[..], &parameter(add, &[]).repeat(100)].concat());
    let cut = tsn_and(Serial32(1), &[0xc0, 1, 0, 99]);
    expect(0xc1, &[many, cut, vec![0; 3]], Answer::Drop);
    // An ASCONF ACK without a request.
    let acks = [tsn_and(Serial32(1), &[]), tsn_and(Serial32(0), &parameter(0xc005, &[0, 0, 0, 1]))];
    expect(0x80, &acks, Answer::Skip);
}

// 56.
#[test]
fn auth_ends_the_packet_whatever_it_says() {
    let auth = |key: u16, hmac: u16, code: &[u8]| {
        [&key.to_be_bytes()[..], &hmac.to_be_bytes(), code].concat()
    };
    let bodies = [
        auth(0, 1, &[7; 20]),
        auth(9, 1, &[7; 20]),
        auth(0, 999, &[7; 32]),
        auth(0, 1, &[7; 3]),
        auth(0, 1, &[]),
        auth(0, 3, &[7; 60_000]),
    ];
    expect(kind::AUTH, &bodies, Answer::Stop);
    expect(kind::AUTH, &[Vec::new(), vec![0; 3]], Answer::Drop);
    // After another chunk it ends the processing of the packet.
    let mut victim = Victim::up(1);
    let chunks = [heartbeat(b"one"), chunk(kind::AUTH, 0, &bodies[0]), heartbeat(b"two")];
    assert_eq!(names(&victim.hit(RIGHT, &chunks)), ["HEARTBEAT ACK"]);
}

// 57.
#[test]
fn re_config_without_agreement_resets_and_adds_no_stream() {
    let numbers = |words: &[u32]| words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<_>>();
    let far = next_tsn().plus(1 << 30).0;
    let bodies = [
        parameter(13, &numbers(&[1, 0, far])),
        parameter(13, &[numbers(&[1, 0, far]), [0, 3].repeat(1000)].concat()),
        parameter(14, &[numbers(&[1]), [0, 3].repeat(1000)].concat()),
        parameter(15, &numbers(&[1])),
        parameter(16, &numbers(&[7, 6])),
        parameter(17, &numbers(&[1, 65_535 << 16])),
        parameter(18, &numbers(&[1, 65_535 << 16])),
        Vec::new(),
    ];
    expect(0x82, &bodies, Answer::Skip);
    expect(0x82, &[vec![0, 13, 0, 3], vec![0, 13, 0, 99, 1]], Answer::Drop);
}

// 58.
#[test]
fn echoed_congestion_and_reported_drops_move_no_window() {
    let first = Victim::up(2).first_tsn(RIGHT);
    let tsns = [0u32, 1, 5000, 0x8000_0000].map(|ahead| tsn_and(first.plus(ahead), &[]));
    for kind in [12, 13] {
        expect(kind, &tsns, Answer::Stop);
        expect(kind, &[Vec::new(), vec![0; 3]], Answer::Drop);
    }
    let mut victim = Victim::up(2);
    victim.pair.send_full(RIGHT, 1);
    let window = victim.pair.view(RIGHT, 0).cwnd;
    (0..100).for_each(|_| drop(victim.hit(RIGHT, &[chunk(12, 0, &tsns[0])])));
    assert_eq!(victim.pair.view(RIGHT, 0).cwnd, window);
    // PKTDROP with a forged report inside: unknown, and skipped.
    let report =
        [&[0, 1, 0, 0, 0, 1, 0, 0, 5, 220, 0, 0][..], &data(first, 0, 0, 3, b"x")].concat();
    expect(0x81, &[report, Vec::new()], Answer::Skip);
}
