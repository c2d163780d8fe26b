//! INIT and INIT ACK (RFC 9260, 3.3.2, 5.1).

use core::net::IpAddr;

use ropewalk_base::Time;
use ropewalk_engine::sctp::association::State;
use ropewalk_engine::sctp::{AbortCause, Answer, Chunk, ErrorCause, Extensions, Init, Packet};

use super::kit::{
    HOME, Victim, chunk, client, data, datagram, fixed, init, kind, listener, names, parameter,
    read, reply, send_to,
};
use crate::driver::{LEFT, RIGHT, ms};

const TAG: u32 = 0x0102_0304;

fn init_ack(packet: &Packet) -> &Init {
    let Chunk::InitAck(both) = &packet.chunks[0] else { panic!("{packet:?}") };
    &both.0
}

// 11. 12. 13.
#[test]
fn an_init_without_tag_under_a_tag_or_in_company_is_nothing() {
    let good = init(TAG, &[]);
    let dot = data(ropewalk_base::Serial32(77), 0, 0, 3, b"x");
    let bad = [
        datagram(0, &[init(0, &[])]),
        datagram(5, std::slice::from_ref(&good)),
        datagram(TAG, std::slice::from_ref(&good)),
        datagram(0, &[good.clone(), dot.clone()]),
        datagram(0, &[dot, good.clone()]),
        datagram(0, &[good.clone(), good.clone()]),
        datagram(0, &[good.clone(), chunk(kind::COOKIE_ACK, 0, &[])]),
    ];
    for bytes in bad {
        assert_eq!(reply(&mut listener(), Time::ZERO, &bytes), None, "{bytes:?}");
        let mut victim = Victim::up(1);
        let before = victim.all(RIGHT);
        assert_eq!(victim.take(RIGHT, 0, &bytes), [], "{bytes:?}");
        assert_eq!(victim.all(RIGHT), before);
    }
    assert!(reply(&mut listener(), Time::ZERO, &datagram(0, &[good])).is_some());
}

// 13.
#[test]
fn an_init_that_is_not_the_first_chunk_ends_its_packet() {
    let beat = |info: &[u8]| super::kit::heartbeat(info);
    let chunks = [beat(b"one"), init(TAG, &[]), beat(b"two"), init(TAG, &[])];
    let mut victim = Victim::up(1);
    let answers = victim.hit(RIGHT, &chunks);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].chunks[..], [Chunk::HeartbeatAck(b"one"[..].into())]);
}

// 14.
#[test]
fn an_init_that_asks_for_nothing_is_refused_and_leaves_an_association_alone() {
    for (window, outbound, inbound) in [(0, 5, 5), (1499, 5, 5), (9000, 0, 5), (9000, 5, 0)] {
        let bad = chunk(kind::INIT, 0, &fixed(TAG, window, outbound, inbound));
        let bytes = datagram(0, &[bad]);
        let answer = reply(&mut listener(), Time::ZERO, &bytes).expect("an answer");
        assert_eq!(answer, Packet::of(TAG, Chunk::abort(ErrorCause::InvalidParameter)));
        let mut victim = Victim::up(1);
        let before = (victim.tags(RIGHT), victim.state(RIGHT).clone());
        assert_eq!(victim.take(RIGHT, 0, &bytes), [answer]);
        assert_eq!((victim.tags(RIGHT), victim.state(RIGHT).clone()), before);
        victim.pair.heal();
        victim.pair.send(LEFT, 100);
        victim.pair.run_for(ms(500));
        assert_eq!(victim.pair.read_bytes(RIGHT), 100);
    }
    let least = chunk(kind::INIT, 0, &fixed(TAG, 1500, 1, 1));
    let answer = reply(&mut listener(), Time::ZERO, &datagram(0, &[least])).expect("an answer");
    assert_eq!(names(&[answer]), ["INIT ACK"]);
}

// 15. 19.
#[test]
fn no_init_calls_forth_more_than_three_times_its_bytes() {
    let unknown = |size: usize| parameter(0xff77, &vec![9; size]);
    let address = |i: u8| parameter(5, &[10, 9, 0, i]);
    let cases = [
        (Vec::new(), "nothing"),
        (unknown(0), "one unknown"),
        (unknown(0).repeat(1000), "a thousand unknown"),
        (unknown(60).repeat(500), "long unknown"),
        ((0..=255).flat_map(address).collect(), "addresses"),
        (parameter(11, &[b'a'; 60_000]), "a long host name"),
    ];
    for (parameters, what) in cases {
        let bytes = datagram(0, &[init(TAG, &parameters)]);
        let answer = reply(&mut listener(), Time::ZERO, &bytes).expect("an answer");
        let (asked, answered) = (bytes.len() + 20, answer.wire_len() as usize + 20);
        assert!(answered <= 3 * asked, "{what}: {answered} B for {asked} B");
        assert!(answered <= 1500, "{what}: {answered} B");
        // The same to an association that is up.
        let mut victim = Victim::up(2);
        let before = (victim.tags(RIGHT), victim.state(RIGHT).clone());
        let answers = victim.take(RIGHT, 0, &bytes);
        let answered: usize = answers.iter().map(|one| one.wire_len() as usize + 20).sum();
        assert!(answered <= 3 * asked, "{what}, up: {answered} B for {asked} B");
        assert!(answered <= 1500, "{what}, up: {answered} B");
        assert_eq!((victim.tags(RIGHT), victim.state(RIGHT).clone()), before, "{what}");
    }
}

// 16. 18.
#[test]
fn parameters_whose_lengths_lie_make_an_init_nothing() {
    let table: [&[u8]; 9] = [
        &[0, 5, 0, 0],
        &[0, 5, 0, 3],
        &[0xff, 7, 0, 2, 0, 0, 0, 0],
        &[0, 5, 0, 200, 10, 0, 0, 1],
        &[0, 5, 0xff, 0xff, 10, 0, 0, 1],
        &[0, 5, 0, 8, 10, 0, 0],
        &[0, 5, 0, 8, 10, 0, 0, 1, 0, 6, 0],
        &[0, 6, 0, 8, 10, 0, 0, 1],
        &[0, 11, 0, 60, b'x'],
    ];
    for parameters in table {
        // The length of the chunk agrees with its bytes.
        let body = [&fixed(TAG, 1 << 16, 5, 5), parameters].concat();
        let bytes = datagram(0, &[chunk(kind::INIT, 0, &body)]);
        assert_eq!(reply(&mut listener(), Time::ZERO, &bytes), None, "{parameters:?}");
        let mut victim = Victim::up(1);
        let before = victim.all(RIGHT);
        assert_eq!(victim.take(RIGHT, 0, &bytes), []);
        assert_eq!(victim.all(RIGHT), before);
    }
}

// 17.
#[test]
fn of_very_many_addresses_a_few_are_kept_and_none_is_used_unproved() {
    let odd: [[u8; 4]; 6] = [
        [224, 0, 0, 1],
        [255, 255, 255, 255],
        [127, 0, 0, 1],
        [0, 0, 0, 0],
        [192, 0, 2, 1],
        [192, 0, 2, 1],
    ];
    let many = (0..494u16).map(|i| [10, 0, (i >> 8) as u8, i as u8]);
    let parameters: Vec<u8> =
        odd.into_iter().chain(many).flat_map(|one| parameter(5, &one)).collect();
    let mut listener = listener();
    let answer = reply(&mut listener, Time::ZERO, &datagram(0, &[init(TAG, &parameters)]));
    let Some(Chunk::InitAck(both)) = answer.map(|mut one| one.chunks.remove(0)) else {
        panic!("no INIT ACK")
    };
    let echo =
        datagram(both.0.tag, &[chunk(kind::COOKIE_ECHO, 0, both.1.as_ref().expect("a cookie"))]);
    let mut echo = read(&echo).expect("a packet");
    let Answer::Accept(proof) = listener.handle(Time::ZERO, HOME, &mut echo) else {
        panic!("not accepted")
    };
    assert!(proof.peer().addresses.len() <= 32, "{}", proof.peer().addresses.len());
    assert!(proof.peer().addresses.contains(&IpAddr::from([192, 0, 2, 1])));
    // Addresses are not paths: the driver creates paths for them, and each is validated before it carries
    // data.
}

// 18.
#[test]
fn a_host_name_is_refused_and_shown_in_part_only() {
    for size in [1, 5, 255, 60_000] {
        let bytes = datagram(0, &[init(TAG, &parameter(11, &vec![b'a'; size]))]);
        let answer = reply(&mut listener(), Time::ZERO, &bytes).expect("an answer");
        let mut victim = Victim::up(1);
        for packet in [answer].into_iter().chain(victim.take(RIGHT, 0, &bytes)) {
            assert_eq!((names(std::slice::from_ref(&packet)), packet.tag), (vec!["ABORT"], TAG));
            let Chunk::Abort { causes, .. } = &packet.chunks[0] else { panic!("{packet:?}") };
            assert_eq!(AbortCause::from(&causes[0]), AbortCause::UnresolvableAddress);
            assert!(packet.wire_len() <= 12 + 4 + 4 + 128, "{size} B: {}", packet.wire_len());
        }
        assert_eq!(*victim.state(RIGHT), State::Established);
    }
}

// 19.
#[test]
fn a_flood_of_inits_from_anywhere_leaves_nothing_behind() {
    let mut listener = listener();
    let before = format!("{listener:?}");
    for i in 0..20_000u32 {
        let bytes = datagram(0, &[init(1 + i, &parameter(5, &i.to_be_bytes()))]);
        let mut packet = read(&bytes).expect("a packet");
        let from = i.wrapping_mul(2_654_435_761).to_be_bytes();
        let Answer::Reply(answer) = listener.handle(Time::ZERO, &from, &mut packet) else {
            panic!("one answer to each")
        };
        assert_eq!(init_ack(&answer).addresses.len(), 1);
    }
    assert_eq!(format!("{listener:?}"), before);
}

/// An INIT ACK with these parameters.
fn ack(tag: u32, parameters: &[u8]) -> Vec<u8> {
    chunk(kind::INIT_ACK, 0, &[&fixed(tag, 1 << 16, 5, 5), parameters].concat())
}

// 20.
#[test]
fn an_init_ack_counts_once_and_only_where_it_is_awaited() {
    let cookie = parameter(7, &[5; 100]);
    let good = ack(TAG, &cookie);
    // This end does not wait for an INIT ACK.
    let mut victim = Victim::up(1);
    let before = victim.all(RIGHT);
    assert_eq!(victim.hit(RIGHT, std::slice::from_ref(&good)), []);
    assert_eq!(victim.all(RIGHT), before);
    let other = datagram(9, std::slice::from_ref(&good));
    let answer = reply(&mut listener(), Time::ZERO, &other).expect("an ABORT");
    assert_eq!((names(std::slice::from_ref(&answer)), answer.tag), (vec!["ABORT"], 9));
    // Twice, with another tag the second time. The first is from another address of the peer.
    let (mut end, tag) = client();
    let answers = send_to(&mut end, Time::ZERO, 1, &datagram(tag, std::slice::from_ref(&good)));
    assert_eq!((names(&answers), answers[0].tag), (vec!["COOKIE ECHO"], TAG));
    let second = datagram(tag, &[ack(TAG ^ 1, &cookie)]);
    assert_eq!(send_to(&mut end, Time::ZERO, 0, &second), []);
    assert_eq!(end.tags(), (tag, TAG));
    // An INIT ACK that is not alone is never accepted.
    let (mut end, tag) = client();
    let both = datagram(tag, &[good.clone(), ack(TAG ^ 1, &cookie)]);
    assert_eq!(send_to(&mut end, Time::ZERO, 0, &both), []);
    assert!(matches!(end.state(), State::CookieWait { .. }));
    // A cookie that is too long for any packet.
    let long = datagram(tag, &[ack(TAG, &parameter(7, &vec![5; 60_000]))]);
    assert_eq!(send_to(&mut end, Time::ZERO, 0, &long), []);
    assert!(matches!(end.state(), State::CookieWait { .. }));
}

// 21.
#[test]
fn extensions_listed_oddly_are_read_as_far_as_they_make_sense() {
    let listed = |types: &[u8]| parameter(0x8008, types);
    let table = [
        (listed(&[]), Extensions::NONE),
        (listed(&[0xc0]), Extensions::FORWARD_TSN),
        (listed(&[0xc0, 0x40, 0xc0]), Extensions::FORWARD_TSN.and(Extensions::I_DATA)),
        ([listed(&[0xc0]), listed(&[0x82])].concat(), {
            Extensions::FORWARD_TSN.and(Extensions::RE_CONFIG)
        }),
        (listed(&[0, 1, 2, 3, 250, 251]), Extensions::NONE),
        (listed(&[0xc0; 60_000]), Extensions::FORWARD_TSN),
        (parameter(0xc000, &[]), Extensions::FORWARD_TSN),
    ];
    for (parameters, expected) in table {
        let packet = read(&datagram(0, &[init(TAG, &parameters)])).expect("a packet");
        let Chunk::Init(init) = &packet.chunks[0] else { panic!("{packet:?}") };
        assert_eq!(init.extensions(), expected);
    }
    // FORWARD-TSN-supported that ends within its header.
    let body = [&fixed(TAG, 1 << 16, 5, 5)[..], &[0xc0, 0, 0]].concat();
    let cut = datagram(0, &[chunk(kind::INIT, 0, &body)]);
    assert_eq!(reply(&mut listener(), Time::ZERO, &cut), None);
}

// 22.
#[test]
fn parameters_of_authentication_are_passed_over_whatever_they_say() {
    let (random, chunks, hmacs) = (0x8002, 0x8003, 0x8004);
    let table = [
        parameter(random, &[]),
        parameter(random, &[7; 31]),
        parameter(random, &[7; 60_000]),
        parameter(hmacs, &[0, 3]),
        parameter(hmacs, &[0, 1, 0]),
        parameter(chunks, &[kind::INIT, kind::INIT_ACK, kind::AUTH, kind::SHUTDOWN_COMPLETE]),
        [parameter(random, &[7; 32]), parameter(random, &[8; 32])].concat(),
    ];
    for parameters in table {
        let bytes = datagram(0, &[init(TAG, &parameters)]);
        let answer = reply(&mut listener(), Time::ZERO, &bytes).expect("an answer");
        let own = init_ack(&answer);
        assert_eq!((own.options.reported.len(), own.extensions()), (0, Extensions::NONE));
    }
}
