//! Cookies in transit (RFC 9260, 3.2.2, 5.1, 5.1.4) and the addresses that they confirm (5.4).

use bytes::Bytes;
use ropewalk_base::{PathId, Seed, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::association::{PacketSize, State};
use ropewalk_engine::sctp::{
    Answer, Association, Chunk, Config, Event, Init, Listener, Packet, PathConfig, Transmit,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, at_ms, config, in_turn, ms, name};

const HOME: &[u8] = b"192.0.2.1:9899";

/// A client that waits for its INIT ACK, the answer of a peer of the same kind, and its cookie.
fn waiting(settings: &Config) -> (Association, Init, Bytes, u32) {
    let mut client = Association::connect(settings.clone(), in_turn(), Seed::root(1), Time::ZERO);
    let mut init = client.poll_transmit(Time::ZERO).expect("an INIT").packet;
    let mut listener = Listener::new(settings.clone(), Seed::root(2));
    let Answer::Reply(answer) = listener.handle(Time::ZERO, HOME, &mut init) else {
        panic!("no INIT ACK")
    };
    let Chunk::InitAck(both) = &answer.chunks[0] else { panic!("{answer:?}") };
    (client, both.0.clone(), both.1.clone().expect("a cookie"), answer.tag)
}

fn ack(tag: u32, init: &Init, cookie: &Bytes) -> Packet {
    Packet::of(tag, Chunk::InitAck(Box::new((init.clone(), Some(cookie.clone())))))
}

fn sent(end: &mut Association, now: Time) -> Vec<Transmit> {
    std::iter::from_fn(|| end.poll_transmit(now)).collect()
}

fn names(transmit: &Transmit) -> Vec<&'static str> {
    transmit.packet.chunks.iter().map(name).collect()
}

#[test]
pub fn an_init_ack_asks_for_no_more_streams_than_the_init_allows() {
    let settings = Config { streams: 100, ..config(1, 1 << 16) };
    for (allowed, asked) in [(1, 1), (7, 7), (100, 100), (65_535, 100)] {
        let peer = Config { streams: allowed, ..settings.clone() };
        let mut client = Association::connect(peer, in_turn(), Seed::root(1), Time::ZERO);
        let mut init = client.poll_transmit(Time::ZERO).expect("an INIT").packet;
        let mut listener = Listener::new(settings.clone(), Seed::root(2));
        let Answer::Reply(one) = listener.handle(Time::ZERO, HOME, &mut init.clone()) else {
            panic!("no INIT ACK")
        };
        // Also an association that is up or being set up.
        let mut pair = Pair::up(&settings, &[10]);
        if let Chunk::Init(init) = &mut init.chunks[0] {
            init.addresses.clear();
        }
        pair.inject(RIGHT, 0, init.clone());
        let up = pair.log[0].packet.clone();
        let mut begun =
            Association::connect(settings.clone(), in_turn(), Seed::root(3), Time::ZERO);
        sent(&mut begun, Time::ZERO);
        begun.handle_datagram(Time::ZERO, PathId(0), init);
        let begun = sent(&mut begun, Time::ZERO).remove(0).packet;
        for answer in [one, up, begun] {
            let Chunk::InitAck(both) = &answer.chunks[0] else { panic!("{answer:?}") };
            let found = (both.0.outbound_streams, both.0.inbound_streams);
            assert_eq!(found, (asked, 100), "{allowed} allowed");
        }
    }
}

#[test]
pub fn a_cookie_does_not_show_the_tags_of_an_association_that_exists() {
    let mut pair = Pair::up(&config(1, 1 << 16), &[10]);
    let settings = config(1, 1 << 16);
    let mut other = Association::connect(settings, in_turn(), Seed::root(9), Time::ZERO);
    let init = other.poll_transmit(Time::ZERO).expect("an INIT").packet;
    for end in [LEFT, RIGHT] {
        pair.log.clear();
        pair.inject(end, 0, init.clone());
        let Chunk::InitAck(both) = &pair.log[0].packet.chunks[0] else { panic!("no INIT ACK") };
        let (local, peer) = pair.ends[end].tags();
        for tag in [local, peer] {
            let cookie = both.1.as_ref().expect("a cookie");
            let shown = cookie.windows(4).any(|four| four == tag.to_be_bytes());
            assert!(!shown, "end {end}: {tag:x} in {cookie:x?}");
        }
    }
}

/// A pair on two paths whose right end is up and receives nothing, and the packet with the cookie that
/// set it up.
fn half_up() -> (Pair, Packet) {
    let mut pair = Pair::new(&config(2, 1 << 16), &[10, 10]);
    pair.script(|sent| match sent.names()[..] {
        ["INIT" | "INIT ACK" | "COOKIE ECHO"] => Fate::Arrive,
        _ => Fate::Drop,
    });
    pair.run_until(at_ms(40));
    assert_eq!(*pair.ends[RIGHT].state(), State::Established);
    pair.script(|_| Fate::Drop);
    let echo = pair.log.iter().find(|sent| sent.names() == ["COOKIE ECHO"]).expect("one");
    let echo = echo.packet.clone();
    (pair, echo)
}

#[test]
pub fn a_cookie_ack_to_an_address_that_is_not_confirmed_goes_with_a_heartbeat() {
    let (mut pair, echo) = half_up();
    for (path, expected) in [
        (0, &["COOKIE ACK"][..]),
        (1, &["COOKIE ACK", "HEARTBEAT"]),
        (1, &["COOKIE ACK", "HEARTBEAT"]),
    ] {
        pair.log.clear();
        pair.inject(RIGHT, path, echo.clone());
        let answers: Vec<_> = pair.log.iter().map(|sent| (sent.path, sent.names())).collect();
        assert_eq!(answers, [(path, expected.to_vec())]);
    }
    // Its answer confirms the address, like that of any other HEARTBEAT.
    let beats = pair.log[0].packet.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Heartbeat(info) => Some(info.clone()),
        _ => None,
    });
    let tag = pair.ends[RIGHT].tags().0;
    pair.inject(RIGHT, 0, Packet::of(tag, Chunk::HeartbeatAck(beats.expect("a HEARTBEAT"))));
    assert_eq!(pair.ends[RIGHT].path_status(PathId(1)), PathStatus::Active);
}

#[test]
pub fn a_cookie_confirms_the_address_that_the_init_ack_went_to_wherever_it_comes_from() {
    for restart in [false, true] {
        let mut pair = match restart {
            false => Pair::new(&config(2, 1 << 16), &[10, 10]),
            true => Pair::up(&config(2, 1 << 16), &[10, 10]),
        };
        if restart {
            let fresh =
                Association::connect(config(2, 1 << 16), in_turn(), Seed::root(5), pair.now);
            pair.replace(LEFT, fresh);
        }
        pair.script(|_| Fate::Drop);
        pair.run_for(ms(1));
        let init = pair.log.iter().rev().find(|s| s.names() == ["INIT"]).expect("one");
        let init = init.packet.clone();
        pair.log.clear();
        pair.inject(RIGHT, 0, init);
        let answer = pair.log[0].packet.clone();
        assert_eq!(pair.log[0].path, 0);
        pair.inject(LEFT, 0, answer);
        let echo = pair.log.iter().find(|s| s.names() == ["COOKIE ECHO"]).expect("one");
        let echo = echo.packet.clone();
        pair.log.clear();
        pair.inject(RIGHT, 1, echo);
        let expected = if restart { Event::Restarted } else { Event::Connected };
        assert!(pair.events[RIGHT].iter().any(|(_, event)| *event == expected));
        let status = [0, 1].map(|path| pair.ends[RIGHT].path_status(PathId(path)));
        assert_eq!(status, [PathStatus::Active, PathStatus::Unconfirmed], "restart: {restart}");
        let first = &pair.log[0];
        assert_eq!((first.path, first.names()), (1, vec!["COOKIE ACK", "HEARTBEAT"]));
        // Data is sent to the address of the INIT ACK.
        pair.log.clear();
        pair.send(RIGHT, 500);
        assert!(
            pair.count(RIGHT, "DATA") > 0 && pair.log.iter().all(|sent| sent.path == 0),
            "restart: {restart}"
        );
    }
}

#[test]
pub fn what_finds_no_room_beside_the_cookie_waits_for_no_other_packet() {
    let (_, mut init, _, tag) = waiting(&config(1, 1 << 16));
    init.options.unknown = vec![Bytes::from_static(&[0xff, 1, 0, 5, 9])];
    for (cookie, report) in [(1432, true), (1448, true), (1449, false), (1460, false)] {
        let (mut client, ..) = waiting(&config(1, 1 << 16));
        client.handle_datagram(Time::ZERO, PathId(0), ack(tag, &init, &vec![5; cookie].into()));
        let packets = sent(&mut client, Time::ZERO);
        let expected = if report { vec!["COOKIE ECHO", "ERROR"] } else { vec!["COOKIE ECHO"] };
        assert_eq!(packets.iter().map(names).collect::<Vec<_>>(), [expected], "{cookie} B");
    }
}

#[test]
pub fn until_the_cookie_is_acknowledged_chunks_that_are_not_known_are_not_reported() {
    let (mut client, init, cookie, tag) = waiting(&config(1, 1 << 16));
    client.handle_datagram(Time::ZERO, PathId(0), ack(tag, &init, &cookie));
    assert_eq!(sent(&mut client, Time::ZERO).len(), 1);
    let unknown = || Chunk::Unknown(Bytes::from_static(&[0xff, 0, 0, 5, 9]));
    client.handle_datagram(Time::ZERO, PathId(0), Packet::of(tag, unknown()));
    assert_eq!(sent(&mut client, Time::ZERO).len(), 0);
    // Together with the COOKIE ACK they are.
    let mut packet = Packet::of(tag, Chunk::CookieAck);
    packet.chunks.push(unknown());
    client.handle_datagram(Time::ZERO, PathId(0), packet);
    let all: Vec<_> = sent(&mut client, Time::ZERO).iter().flat_map(names).collect();
    assert_eq!(all, ["ERROR"]);
}

#[test]
pub fn a_cookie_echo_begins_a_packet_whatever_else_waits() {
    let settings = config(1, 1 << 16);
    let (mut client, init, cookie, tag) = waiting(&settings);
    client.handle_datagram(Time::ZERO, PathId(0), ack(tag, &init, &cookie));
    sent(&mut client, Time::ZERO);
    // A driver may pass a packet and the time before it drains.
    let now = Time::ZERO + settings.rto.initial;
    let beat = Chunk::Heartbeat(Bytes::from_static(b"there?"));
    client.handle_datagram(now, PathId(0), Packet::of(tag, beat));
    client.handle_timeout(now);
    let packets: Vec<_> = sent(&mut client, now).iter().map(names).collect();
    assert_eq!(packets, [["HEARTBEAT ACK"], ["COOKIE ECHO"]]);
}

#[test]
pub fn a_cookie_longer_than_a_packet_is_echoed_whole_for_ip_to_cut() {
    for (length, size) in [
        (1464, Some(PacketSize::Usual)),
        (1465, Some(PacketSize::TooLong)),
        (9000, Some(PacketSize::TooLong)),
        (32 << 10, Some(PacketSize::TooLong)),
        ((32 << 10) + 1, None),
    ] {
        let (mut client, init, _, tag) = waiting(&config(1, 1 << 16));
        let cookie: Bytes = vec![7; length].into();
        client.handle_datagram(Time::ZERO, PathId(0), ack(tag, &init, &cookie));
        let packets = sent(&mut client, Time::ZERO);
        assert_eq!(packets.first().map(|one| one.size), size, "{length} B");
        match packets.first() {
            Some(one) => assert_eq!(one.packet.chunks[..], [Chunk::CookieEcho(cookie)]),
            None => assert!(matches!(client.state(), State::CookieWait { .. })),
        }
    }
}

/// A client whose INIT ACK, with a cookie of this length, arrives from an address that its user has not
/// named. Returns its next packets, and those at its first timeout.
fn learned(length: usize) -> [Vec<(usize, Vec<&'static str>)>; 2] {
    let settings = config(1, 1 << 16);
    let (mut client, init, _, tag) = waiting(&settings);
    let path = client.add_path(Time::ZERO, PathConfig::default()).expect("one more");
    client.handle_datagram(Time::ZERO, path, ack(tag, &init, &vec![5; length].into()));
    let mut drain = |now: Time| {
        let all = sent(&mut client, now);
        let told: Vec<_> = all.iter().map(|one| (one.path.index(), names(one))).collect();
        client.handle_timeout(now + settings.rto.initial);
        told
    };
    let first = drain(Time::ZERO);
    [first, drain(Time::ZERO + settings.rto.initial)]
}

#[test]
pub fn a_cookie_echo_to_an_address_that_is_not_confirmed_goes_with_a_heartbeat_or_not_at_all() {
    let both = vec!["COOKIE ECHO", "HEARTBEAT"];
    // The second attempt uses an address that the user has named.
    let named = vec![(0, vec!["COOKIE ECHO"])];
    let again = |tries: &[(usize, Vec<&'static str>)]| {
        tries.iter().all(|(path, names)| *path == 0 || names.len() == 2)
    };
    let [first, second] = learned(88);
    assert_eq!(first, [(1, both.clone())]);
    assert!(again(&second), "{second:?}");
    let [first, _] = learned(1440);
    assert_eq!(first, [(1, both)]);
    let [first, second] = learned(1441);
    assert!(first.is_empty(), "{first:?}");
    assert!(second.is_empty() || second == named, "{second:?}");
}
