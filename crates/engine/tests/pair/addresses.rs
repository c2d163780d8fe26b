//! The addresses of a peer (RFC 9260, 5.1.2, 5.2.1, 5.2.2), ports without a listener (8.4), and
//! unguessable numbers (5.3.1).

use core::net::IpAddr;

use ropewalk_base::{PathId, Seed, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::association::State;
use ropewalk_engine::sctp::{
    Answer, Association, Chunk, Config, ErrorCause, Extensions, Init, Listener, Negotiation,
    Packet, Randomness, Secret,
};

use crate::driver::{config, in_turn, name, numbered};

const HOME: &[u8] = b"192.0.2.1:9899";

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn list(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| ip(text)).collect()
}

/// An end on a real network, which lists these addresses.
fn live(paths: usize, addresses: &[&str]) -> Config {
    let mut settings = config(paths, 1 << 17);
    settings.negotiation = Negotiation::Listed(Extensions::NONE);
    settings.addresses = Some(list(addresses));
    settings
}

fn connect(settings: Config, randomness: impl Into<Randomness>) -> Association {
    Association::connect(settings, in_turn(), randomness, Time::ZERO)
}

fn sent(end: &mut Association) -> Vec<(usize, Packet)> {
    std::iter::from_fn(|| end.poll_transmit(Time::ZERO))
        .map(|transmit| (transmit.path.index(), transmit.packet))
        .collect()
}

fn first(end: &mut Association) -> Packet {
    sent(end).into_iter().next().expect("a packet").1
}

fn init_of(packet: &Packet) -> &Init {
    let Chunk::Init(init) = &packet.chunks[0] else { panic!("{packet:?}") };
    init
}

/// An INIT that lists these addresses.
fn init(addresses: &[&str], seed: u64) -> Packet {
    first(&mut connect(live(1, addresses), Seed::root(seed)))
}

/// A client of `paths` paths that has echoed the cookie of a peer with `theirs`, whose INIT ACK arrived
/// on `path` from `source`; and the client's next packets.
fn echoing(paths: usize, path: usize, theirs: &[&str], source: &str) -> (Association, Listener) {
    // Its INIT is long enough for an INIT ACK that lists two.
    let mut client = connect(live(paths, &["192.0.2.1", "192.0.2.11"]), Seed::root(1));
    let mut listener = Listener::new(live(1, theirs), Seed::root(2));
    let Answer::Reply(answer) = listener.handle(Time::ZERO, HOME, &mut first(&mut client)) else {
        panic!("no INIT ACK")
    };
    client.handle_datagram(Time::ZERO, PathId::from_index(path), answer);
    client.set_peer_source(ip(source));
    assert!(matches!(client.state(), State::CookieEchoed { .. }));
    (client, listener)
}

#[test]
fn targets_that_the_peer_does_not_list_are_not_used_once_its_init_ack_is_there() {
    // 5.1.2: without address parameters the source is the sole destination.
    for kept in 0..3 {
        let (mut client, mut listener) = echoing(3, kept, &[], "192.0.2.9");
        client.retain_paths(|path| path.index() == kept);
        assert_eq!(client.path_count(), 1);
        let (path, mut echo) = sent(&mut client).into_iter().next().expect("a COOKIE ECHO");
        assert_eq!((path, name(&echo.chunks[0])), (0, "COOKIE ECHO"));
        let Answer::Accept(proof) = listener.handle(Time::ZERO, HOME, &mut echo) else {
            panic!("not accepted")
        };
        let seed = Seed::root(3);
        let mut server =
            Association::accepted(live(1, &[]), in_turn(), seed, Time::ZERO, PathId(0), *proof);
        for _ in 0..3 {
            for (path, packet) in sent(&mut server) {
                client.handle_datagram(Time::ZERO, PathId::from_index(path), packet);
            }
            client.send(Default::default(), numbered(1000, 7), false).expect("it is up");
            for (path, packet) in sent(&mut client) {
                assert_eq!(path, 0);
                server.handle_datagram(Time::ZERO, PathId::from_index(path), packet);
            }
        }
        assert_eq!(*client.state(), State::Established);
        assert_eq!(client.path_status(PathId(0)), PathStatus::Active);
        assert_eq!(server.read(Time::ZERO).map(|message| message.payload), Some(numbered(1000, 7)));
    }
}

#[test]
fn an_ipv4_address_is_never_listed_as_one_of_ipv6() {
    // 3.3.2.1.2: not even if a dual-stack socket reports it in this form.
    let own = ["::ffff:192.0.2.1", "2001:db8::1", "198.51.100.1"];
    let listed = list(&["192.0.2.1", "2001:db8::1", "198.51.100.1"]);
    let invitation = init(&own, 1);
    assert_eq!(init_of(&invitation).addresses, listed);

    let answered = |answer: &Packet| {
        let Chunk::InitAck(both) = &answer.chunks[0] else { panic!("{answer:?}") };
        both.0.addresses.clone()
    };
    let mut listener = Listener::new(live(1, &[]), Seed::root(2));
    listener.list_addresses(list(&own));
    let Answer::Reply(answer) = listener.handle(Time::ZERO, HOME, &mut invitation.clone()) else {
        panic!("no INIT ACK")
    };
    assert_eq!(answered(&answer), listed);
    let end = Association::listen(live(1, &own), in_turn(), Seed::root(3));
    let answer = end.answer_to_init(Time::ZERO, PathId(0), &invitation, Some(ip("192.0.2.9")));
    assert_eq!(answered(&answer.expect("INIT ACK")), listed);
}

#[test]
fn a_collision_keeps_only_the_paths_of_the_peer_too() {
    // Both ends sent an INIT. The peer's cookie is echoed first.
    let [mut here, mut there] = [1, 2].map(|seed| connect(live(2, &[]), Seed::root(seed)));
    let (_, theirs) = (first(&mut here), first(&mut there));
    here.send(Default::default(), numbered(900, 1), false).expect("queued");
    let answer = here
        .answer_to_init(Time::ZERO, PathId(1), &theirs, Some(ip("192.0.2.2")))
        .expect("INIT ACK");
    there.handle_datagram(Time::ZERO, PathId(1), answer);
    there.retain_paths(|path| path == PathId(1));
    here.handle_datagram(Time::ZERO, PathId(1), first(&mut there));
    here.set_peer_source(ip("192.0.2.2"));
    assert_eq!(*here.state(), State::Established);
    here.retain_paths(|path| path == PathId(1));
    let left = sent(&mut here);
    assert!(left.iter().all(|(path, _)| *path == 0), "{left:?}");
    assert_eq!(name(&left[0].1.chunks[0]), "COOKIE ACK");
    for (path, packet) in left {
        there.handle_datagram(Time::ZERO, PathId::from_index(path), packet);
    }
    assert_eq!(there.read(Time::ZERO).map(|message| message.payload), Some(numbered(900, 1)));
}

/// Expected answers to an INIT that lists `addresses` and comes from `source`: the new ones, or none.
type Case<'a> = (&'a [&'a str], &'a str, &'a [&'a str]);

fn assert_new(end: &Association, (addresses, source, new): Case<'_>) {
    let packet = init(addresses, 9);
    let answer =
        end.answer_to_init(Time::ZERO, PathId(0), &packet, Some(ip(source))).expect("an answer");
    let case = format!("{addresses:?} from {source} in {:?}", end.state());
    assert_eq!(answer.tag, init_of(&packet).tag, "{case}");
    match &answer.chunks[0] {
        Chunk::InitAck(_) => assert!(new.is_empty(), "{case}"),
        Chunk::Abort { reflected: false, causes } => {
            let found: Vec<_> = causes.iter().map(addresses_in).collect();
            assert_eq!(found, [list(new)], "{case}");
        }
        other => panic!("{case}: {other:?}"),
    }
}

fn addresses_in(cause: &ErrorCause) -> Vec<IpAddr> {
    let ErrorCause::NewAddresses(parameters) = cause else { panic!("{cause:?}") };
    let v4 = |one: &[u8]| IpAddr::from([one[4], one[5], one[6], one[7]]);
    parameters.chunks(8).map(v4).collect()
}

#[test]
fn an_init_adds_no_addresses_to_an_association_that_is_being_set_up_or_is_up() {
    let (echoing, _) = echoing(2, 0, &["192.0.2.2", "192.0.2.3"], "192.0.2.2");
    let mut up = Association::listen(live(2, &[]), in_turn(), Seed::root(5));
    let mut peer = connect(live(1, &["192.0.2.2", "192.0.2.3"]), Seed::root(6));
    for _ in 0..2 {
        sent(&mut peer).into_iter().for_each(|(_, p)| up.handle_datagram(Time::ZERO, PathId(0), p));
        sent(&mut up).into_iter().for_each(|(_, p)| peer.handle_datagram(Time::ZERO, PathId(0), p));
    }
    assert_eq!(*up.state(), State::Established);
    let cases: [Case<'_>; 5] = [
        (&["192.0.2.2", "192.0.2.3"], "192.0.2.3", &[]),
        (&[], "192.0.2.2", &[]),
        (&["192.0.2.3"], "192.0.2.2", &[]),
        (&["192.0.2.2", "192.0.2.4"], "192.0.2.2", &["192.0.2.4"]),
        // 5.1.2: the source is also an address of the peer.
        (&["192.0.2.2"], "192.0.2.5", &["192.0.2.5"]),
    ];
    for case in cases {
        assert_new(&echoing, case);
        assert_new(&up, case);
    }
}

#[test]
fn a_restart_may_list_the_address_that_the_association_was_set_up_from() {
    let mut up = Association::listen(live(1, &[]), in_turn(), Seed::root(5));
    let mut peer = connect(live(1, &[]), Seed::root(6));
    for _ in 0..2 {
        sent(&mut peer).into_iter().for_each(|(_, p)| up.handle_datagram(Time::ZERO, PathId(0), p));
        up.set_peer_source(ip("192.0.2.2"));
        sent(&mut up).into_iter().for_each(|(_, p)| peer.handle_datagram(Time::ZERO, PathId(0), p));
    }
    assert_eq!((up.state(), up.peer_addresses()), (&State::Established, &[][..]));
    assert_new(&up, (&["192.0.2.2"], "192.0.2.2", &[]));
    assert_new(&up, (&["192.0.2.2", "192.0.2.7"], "192.0.2.2", &["192.0.2.7"]));
}

#[test]
fn an_init_to_a_port_on_which_nobody_listens_is_answered_with_an_abort() {
    let mut listener = Listener::new(live(1, &[]), Seed::root(2));
    let packet = init(&[], 3);
    let tag = init_of(&packet).tag;
    let Answer::Reply(answer) = listener.refuse(Time::ZERO, HOME, &mut packet.clone()) else {
        panic!("no ABORT")
    };
    // 8.4, 3: the initiate tag, and T is 0.
    assert_eq!(answer, Packet::of(tag, Chunk::Abort { reflected: false, causes: Vec::new() }));
    let silent = |listener: &mut Listener, mut packet: Packet| {
        let answer = listener.refuse(Time::ZERO, HOME, &mut packet);
        assert!(matches!(answer, Answer::Nothing), "{answer:?}");
    };
    silent(&mut listener, Packet { tag: 5, ..packet.clone() });
    silent(&mut listener, Packet::of(7, Chunk::Abort { reflected: false, causes: Vec::new() }));
    silent(&mut listener, Packet::of(7, Chunk::CookieEcho(vec![0; 88].into())));
    // A cookie that was made while a listener existed.
    let mut client = connect(live(1, &[]), Seed::root(4));
    let Answer::Reply(answer) = listener.handle(Time::ZERO, HOME, &mut first(&mut client)) else {
        panic!("no INIT ACK")
    };
    client.handle_datagram(Time::ZERO, PathId(0), answer);
    let Answer::Reply(answer) = listener.refuse(Time::ZERO, HOME, &mut first(&mut client)) else {
        panic!("no ABORT")
    };
    client.handle_datagram(Time::ZERO, PathId(0), answer);
    assert!(matches!(client.state(), State::Ended(_)), "{:?}", client.state());
    // At most a burst of them.
    let replies = (0..1000).filter(|_| {
        matches!(listener.refuse(Time::ZERO, HOME, &mut packet.clone()), Answer::Reply(_))
    });
    assert!(replies.count() <= 50);
}

#[test]
fn tags_tsns_and_nonces_of_a_secret_are_unlike_those_of_another() {
    let numbers = |secret: u8| {
        let mut end = connect(live(2, &[]), Secret::new([secret; 32]));
        let packet = first(&mut end);
        (init_of(&packet).tag, init_of(&packet).initial_tsn)
    };
    let mut all: Vec<_> = (0..100).map(numbers).collect();
    assert_eq!(numbers(7), all[7]);
    all.sort_by_key(|(tag, tsn)| (*tag, tsn.0));
    all.dedup_by_key(|(tag, _)| *tag);
    assert_eq!(all.len(), 100);
}
