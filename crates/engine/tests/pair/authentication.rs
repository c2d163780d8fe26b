//! Authenticated chunks (AUTH, RFC 4895).

use bytes::Bytes;
use ropewalk_base::{Duration, Seed, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::{CloseReason, Event, State};
use ropewalk_engine::sctp::{
    AbortCause, Answer, Association, AuthParameters, Chunk, ChunkTypes, Config, ErrorCause,
    Extensions, Listener, Negotiation, Packet, SharedKeyError, SharedKeys,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, config, in_turn, ms, name, numbered};

const HOME: &[u8] = b"192.0.2.1:9899";
const DATA: u8 = 0;
const SACK: u8 = 3;
const HEARTBEAT: u8 = 4;
const ABORT: u8 = 6;
const COOKIE_ECHO: u8 = 10;

/// An end that accepts these types only in authenticated packets.
fn requiring(types: &[u8]) -> Config {
    Config {
        authentication: true,
        authenticated_chunks: ChunkTypes::of(types),
        negotiation: Negotiation::Listed(Extensions::OFFERED),
        ..config(2, 1 << 16)
    }
}

fn keyed(config: Config, id: u16, key: &[u8]) -> Config {
    let mut keys = SharedKeys::default();
    keys.set(id, key).and_then(|()| keys.activate(id)).expect("room");
    Config { shared_keys: keys, ..config }
}

/// Whether a packet has an AUTH chunk before this type of chunk.
fn is_covered(packet: &Packet, kind: u8) -> bool {
    let at = |wanted: u8| packet.chunks.iter().position(|chunk| chunk.kind() == wanted);
    at(0x0f).is_some_and(|auth| at(kind).is_some_and(|one| auth < one))
}

fn has(packet: &Packet, kind: u8) -> bool {
    packet.chunks.iter().any(|chunk| chunk.kind() == kind)
}

fn up(left: &Config, right: &Config) -> Pair {
    let mut pair = Pair::with(left, right, &[10, 20], [in_turn(), in_turn()]);
    pair.connect();
    pair
}

#[test]
fn what_the_peer_requires_is_authenticated_and_everything_arrives() {
    for (left, right) in [
        (&[][..], &[DATA][..]),
        (&[DATA, SACK, HEARTBEAT, 5, 11, COOKIE_ECHO, 7, 8], &[DATA, SACK, HEARTBEAT, 5, 10, 11]),
        (&[0x82, 0xc1], &[SACK]),
    ] {
        let ends = [requiring(left), requiring(right)];
        let mut pair = up(&ends[0], &ends[1]);
        for end in [LEFT, RIGHT] {
            assert!(pair.ends[end].authenticates());
            for bytes in [1, 700, 40_000] {
                pair.send_on(end, 0, numbered(bytes, end as u32), false);
            }
        }
        pair.run_for(Duration::from_secs(5));
        for end in [LEFT, RIGHT] {
            let read: Vec<_> = pair.read[end].iter().map(|one| one.payload.clone()).collect();
            assert_eq!(read, [1, 700, 40_000].map(|bytes| numbered(bytes, 1 - end as u32)));
            assert!(pair.ends[end].is_flushed());
        }
        pair.ends[LEFT].shutdown(pair.now);
        pair.run_for(Duration::from_secs(2));
        for end in [LEFT, RIGHT] {
            assert_eq!(pair.ends[end].state(), &State::Ended(CloseReason::Shutdown));
        }
        for sent in &pair.log {
            let types = if sent.from == LEFT { right } else { left };
            for kind in types.iter().filter(|kind| has(&sent.packet, **kind)) {
                assert!(is_covered(&sent.packet, *kind), "{kind}: {:?}", sent.packet);
            }
            assert_eq!(
                has(&sent.packet, 0x0f),
                types.iter().any(|kind| has(&sent.packet, *kind)),
                "{:?}",
                sent.packet
            );
            let mtu = 1500 - 20;
            assert!(sent.packet.wire_len() <= mtu, "{} B", sent.packet.wire_len());
        }
    }
}

#[test]
fn it_is_used_only_if_both_ends_offer_it() {
    let on = requiring(&[DATA]);
    let off = Config { authentication: false, ..on.clone() };
    for (left, right) in [(&on, &off), (&off, &on), (&off, &off)] {
        let mut pair = up(left, right);
        for end in [LEFT, RIGHT] {
            assert!(!pair.ends[end].authenticates());
            assert!(!pair.ends[end].agreed_extensions().has(Extensions::AUTH));
            pair.send_on(end, 0, Payload::Length(5000), false);
        }
        pair.run_for(Duration::from_secs(2));
        assert_eq!((pair.read_bytes(LEFT), pair.read_bytes(RIGHT)), (5000, 5000));
        assert!(pair.log.iter().all(|sent| !has(&sent.packet, 0x0f)));
    }
}

#[test]
fn ends_with_different_secrets_do_not_hear_each_other_and_those_with_the_same_do() {
    let plain = requiring(&[DATA]);
    for (left, right, bytes) in [
        (keyed(plain.clone(), 0, b"one"), keyed(plain.clone(), 0, b"one"), 900),
        (keyed(plain.clone(), 5, b"one"), keyed(plain.clone(), 5, b"one"), 900),
        (keyed(plain.clone(), 0, b"one"), keyed(plain.clone(), 0, b"two"), 0),
        (keyed(plain.clone(), 5, b"one"), plain.clone(), 0),
    ] {
        let mut pair = up(&left, &right);
        pair.send_on(LEFT, 0, Payload::Length(900), false);
        pair.run_for(ms(500));
        assert_eq!(pair.read_bytes(RIGHT), bytes);
        assert_eq!(pair.ends[RIGHT].state(), &State::Established);
    }
}

#[test]
fn keys_are_changed_while_data_flows() {
    let end = requiring(&[DATA]);
    let mut pair = up(&end, &end);
    for round in 0..5_u16 {
        // The receiver gets the key first.
        for end in [RIGHT, LEFT] {
            pair.ends[end].set_shared_key(round + 1, &[round as u8; 20]).expect("room");
        }
        pair.send_on(LEFT, 0, Payload::Length(30_000), false);
        pair.run_for(ms(15));
        pair.ends[LEFT].activate_shared_key(round + 1).expect("it was set");
        pair.send_on(LEFT, 0, Payload::Length(30_000), false);
        pair.run_for(Duration::from_secs(2));
        assert_eq!(pair.read_bytes(RIGHT), u64::from(round + 1) * 60_000);
    }
    // Each key is reported on the peer's first use, although packets with the old one arrived later.
    let used = pair.events[RIGHT].iter().filter_map(|(_, event)| match event {
        Event::PeerUsesKey(id) => Some(*id),
        _ => None,
    });
    assert_eq!(used.collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let of_left = pair.events[LEFT].iter();
    assert!(of_left.into_iter().all(|(_, event)| !matches!(event, Event::PeerUsesKey(_))));
    // Packets authenticated with a deleted key are discarded.
    pair.ends[RIGHT].delete_shared_key(5).expect("it is not the active one there");
    pair.send_on(LEFT, 0, Payload::Length(100), false);
    pair.run_for(ms(300));
    assert_eq!(pair.read_bytes(RIGHT), 300_000);
}

#[test]
fn a_deactivated_key_is_used_by_the_peer_alone_until_it_is_set_again() {
    let end = keyed(requiring(&[DATA]), 1, b"one");
    let mut pair = up(&end, &end);
    let left = &mut pair.ends[LEFT];
    assert_eq!(left.deactivate_shared_key(1), Err(SharedKeyError::Active));
    assert_eq!(left.deactivate_shared_key(9), Err(SharedKeyError::Unknown));
    left.activate_shared_key(0).and_then(|()| left.deactivate_shared_key(1)).expect("it was set");
    assert_eq!(left.activate_shared_key(1), Err(SharedKeyError::Deactivated));
    for (from, to) in [(LEFT, RIGHT), (RIGHT, LEFT)] {
        pair.send_on(from, 0, Payload::Length(900), false);
        pair.run_for(ms(500));
        assert_eq!(pair.read_bytes(to), 900);
    }
    let left = &mut pair.ends[LEFT];
    left.set_shared_key(1, b"one").and_then(|()| left.activate_shared_key(1)).expect("it is new");
    left.deactivate_shared_key(0).expect("it is not active");
}

/// The answer of a listener to an INIT, and the listener.
fn asked(settings: &Config, init: &mut Packet) -> (Listener, Option<Packet>) {
    let mut listener = Listener::new(settings.clone(), Seed::root(3));
    let answer = match listener.handle(Time::ZERO, HOME, init) {
        Answer::Reply(packet) => Some(packet),
        _ => None,
    };
    (listener, answer)
}

fn client(settings: &Config) -> (Association, Packet) {
    let mut end = Association::connect(settings.clone(), in_turn(), Seed::root(8), Time::ZERO);
    let init = end.poll_transmit(Time::ZERO).expect("an INIT").packet;
    (end, init)
}

/// A client and the association that a listener creates for it, with packets transferred as bytes.
fn through_listener(settings: [&Config; 2]) -> Option<[Association; 2]> {
    let (mut client, mut init) = client(settings[0]);
    let (mut listener, answer) = asked(settings[1], &mut init);
    client.handle_datagram(Time::ZERO, ropewalk_base::PathId(0), answer?);
    let mut echo = client.poll_transmit(Time::ZERO)?.packet;
    let Answer::Accept(accepted) = listener.handle(Time::ZERO, HOME, &mut echo) else {
        return None;
    };
    let path = ropewalk_base::PathId(0);
    let mut server = Association::accepted(
        settings[1].clone(),
        in_turn(),
        Seed::root(4),
        Time::ZERO,
        path,
        *accepted,
    );
    server.handle_datagram(Time::ZERO, path, echo);
    Some([client, server])
}

#[test]
fn packets_without_a_valid_code_are_counted_once_each() {
    let cookie = requiring(&[DATA, COOKIE_ECHO]);
    let (right, wrong) = (keyed(cookie.clone(), 1, b"one"), keyed(cookie, 1, b"two"));
    let (mut end, mut init) = client(&wrong);
    let (mut listener, answer) = asked(&right, &mut init);
    end.handle_datagram(Time::ZERO, ropewalk_base::PathId(0), answer.expect("an INIT ACK"));
    let mut echo = end.poll_transmit(Time::ZERO).expect("a COOKIE ECHO").packet;
    for _ in 0..2 {
        assert!(matches!(listener.handle(Time::ZERO, HOME, &mut echo.clone()), Answer::Nothing));
        assert_eq!(listener.take_unauthenticated(), 1);
    }
    echo.chunks.retain(|chunk| chunk.kind() != 0x0f);
    assert!(matches!(listener.handle(Time::ZERO, HOME, &mut echo), Answer::Nothing));
    assert_eq!((listener.take_unauthenticated(), listener.take_unauthenticated()), (1, 0));

    let mut pair = up(&requiring(&[DATA]), &requiring(&[DATA]));
    pair.send_on(LEFT, 0, Payload::Length(900), false);
    pair.run_for(ms(500));
    assert_eq!([LEFT, RIGHT].map(|end| pair.ends[end].take_unauthenticated()), [0, 0]);
    pair.ends[LEFT].set_shared_key(3, b"of one end").expect("room");
    pair.ends[LEFT].activate_shared_key(3).expect("it was set");
    pair.send_on(LEFT, 0, Payload::Length(900), false);
    pair.run_for(ms(5));
    pair.run_for(ms(50));
    assert!(pair.ends[RIGHT].take_unauthenticated() > 0);
    assert_eq!(pair.ends[LEFT].take_unauthenticated(), 0);
}

#[test]
fn an_init_ack_without_authentication_is_ignored_if_it_is_required_and_the_next_one_is_not() {
    let cookie = requiring(&[DATA, COOKIE_ECHO]);
    let (mut end, init) = client(&cookie);
    let off = Config { authentication: false, ..cookie.clone() };
    let forged = asked(&off, &mut init.clone()).1.expect("an INIT ACK");
    let path = ropewalk_base::PathId(0);
    end.handle_datagram(Time::ZERO, path, forged);
    assert!(matches!(end.state(), State::CookieWait { .. }), "{:?}", end.state());
    assert_eq!(end.take_unauthenticated(), 1);
    let real = asked(&cookie, &mut init.clone()).1.expect("an INIT ACK");
    end.handle_datagram(Time::ZERO, path, real);
    assert!(matches!(end.state(), State::CookieEchoed { .. }), "{:?}", end.state());
}

#[test]
fn a_listener_computes_the_keys_from_the_cookie_and_requires_its_authentication() {
    let cookie = requiring(&[DATA, COOKIE_ECHO]);
    let secret = keyed(cookie.clone(), 0, b"secret");
    let plain = Config { authentication: false, ..cookie.clone() };
    for (client, server, accepted) in [
        (&cookie, &cookie, true),
        (&secret, &secret, true),
        (&requiring(&[]), &cookie, true),
        (&secret, &requiring(&[DATA]), true),
        (&cookie, &secret, false),
        (&plain, &cookie, false),
        // The client also accepts only servers that can authenticate: the INIT ACK may be forged.
        (&cookie, &plain, false),
        (&requiring(&[DATA]), &plain, true),
    ] {
        let ends = through_listener([client, server]);
        assert_eq!(ends.is_some(), accepted);
        let Some([mut client, mut server]) = ends else { continue };
        let both = client.agreed_extensions().has(Extensions::AUTH);
        assert_eq!(server.authenticates(), server.agreed_extensions().has(Extensions::AUTH));
        let ack = server.poll_transmit(Time::ZERO).expect("a COOKIE ACK").packet;
        client.handle_datagram(Time::ZERO, ropewalk_base::PathId(0), ack);
        assert_eq!(client.state(), &State::Established);
        assert_eq!(client.authenticates(), both);
    }
}

#[test]
fn a_handshake_with_wrong_parameters_is_aborted() {
    let settings = requiring(&[DATA]);
    let bytes = |length: usize| Some(Bytes::from(vec![0x80; length]));
    let sha1 = Some(Bytes::from_static(&[0, 1]));
    for (random, hmacs, good) in [
        (bytes(32), sha1.clone(), true),
        (bytes(31), sha1.clone(), false),
        (bytes(33), sha1.clone(), false),
        (bytes(32), Some(Bytes::from_static(&[0, 3])), true),
        (bytes(32), Some(Bytes::from_static(&[0, 3, 1])), false),
        // Without one of them, or a known algorithm, the peer does not support authenticated chunks.
        (bytes(32), Some(Bytes::from_static(&[0, 2])), true),
        (bytes(32), Some(Bytes::new()), true),
        (bytes(32), None, true),
        (None, sha1, true),
    ] {
        let (_, mut init) = client(&settings);
        let Chunk::Init(chunk) = &mut init.chunks[0] else { panic!("no INIT") };
        let parameters = AuthParameters { random, hmacs, chunks: None };
        chunk.options.authentication = Some(Box::new(parameters.clone()));
        let (_, answer) = asked(&settings, &mut init.clone());
        let answer = answer.expect("an answer");
        assert_eq!(name(&answer.chunks[0]), if good { "INIT ACK" } else { "ABORT" });
        if !good {
            let expected = Chunk::abort(ErrorCause::VIOLATION);
            assert_eq!(answer.chunks[0], expected);
        }
        // The same in an INIT ACK.
        let (mut end, mut init) = client(&settings);
        let (_, answer) = asked(&settings, &mut init);
        let mut answer = answer.expect("an INIT ACK");
        let Chunk::InitAck(both) = &mut answer.chunks[0] else { panic!("no INIT ACK") };
        both.0.options.authentication = Some(Box::new(parameters));
        end.handle_datagram(Time::ZERO, ropewalk_base::PathId(0), answer);
        match good {
            true => assert!(matches!(end.state(), State::CookieEchoed { .. })),
            false => {
                let reason = CloseReason::Aborted(AbortCause::ProtocolViolation);
                assert_eq!(end.state(), &State::Ended(reason));
            }
        }
    }
}

#[test]
fn an_init_ack_offers_it_only_to_a_peer_that_does_and_the_listener_keeps_nothing() {
    let settings = requiring(&[DATA]);
    let off = Config { authentication: false, ..settings.clone() };
    for (peer, offered) in [(&settings, true), (&off, false)] {
        let (_, mut init) = client(peer);
        let (listener, answer) = asked(&settings, &mut init);
        let answer = answer.expect("an INIT ACK");
        let Chunk::InitAck(both) = &answer.chunks[0] else { panic!("no INIT ACK") };
        assert_eq!(both.0.options.authentication.is_some(), offered);
        assert_eq!(both.0.options.extensions.has(Extensions::AUTH), offered);
        let fresh = Listener::new(settings.clone(), Seed::root(3));
        assert_eq!(format!("{listener:?}"), format!("{fresh:?}"));
    }
    // An end that does not use it omits the parameters from its cookie.
    let cookie = |peer: &Config, own: &Config| {
        let (_, mut init) = client(peer);
        let answer = asked(own, &mut init).1.expect("an INIT ACK");
        let Chunk::InitAck(both) = &answer.chunks[0] else { panic!("no INIT ACK") };
        both.1.as_ref().expect("a cookie").len()
    };
    assert_eq!(cookie(&settings, &off), cookie(&off, &off));
    assert_eq!(cookie(&settings, &settings), 48 + 16 + 2 * 4 + 2 + 36 + 5 + 8);
}

#[test]
fn a_restart_and_a_collision_have_keys_of_their_own() {
    let settings = requiring(&[DATA, SACK]);
    let mut pair = up(&settings, &settings);
    pair.send_on(LEFT, 0, Payload::Length(3000), false);
    pair.run_for(ms(500));
    // The left end has lost its state.
    let fresh = Association::connect(settings.clone(), in_turn(), Seed::root(99), pair.now);
    pair.replace(LEFT, fresh);
    pair.connect();
    for end in [LEFT, RIGHT] {
        assert!(pair.ends[end].authenticates());
        pair.send_on(end, 0, Payload::Length(4000), false);
    }
    pair.run_for(Duration::from_secs(2));
    assert_eq!((pair.read_bytes(LEFT), pair.read_bytes(RIGHT)), (4000, 7000));
    // Both ends open the association simultaneously.
    let mut pair = Pair::with(&settings, &settings, &[10, 20], [in_turn(), in_turn()]);
    for (end, seed) in [(LEFT, 1), (RIGHT, 2)] {
        let one = Association::connect(settings.clone(), in_turn(), Seed::root(seed), pair.now);
        pair.replace(end, one);
    }
    pair.connect();
    for end in [LEFT, RIGHT] {
        pair.send_on(end, 0, Payload::Length(4000), false);
    }
    pair.run_for(Duration::from_secs(2));
    assert_eq!((pair.read_bytes(LEFT), pair.read_bytes(RIGHT)), (4000, 4000));
}

#[test]
fn an_abort_that_must_be_authenticated_ends_nothing_without_a_code() {
    let settings = requiring(&[ABORT]);
    for (reflected, with_code) in [(false, false), (true, false), (false, true)] {
        let mut pair = up(&settings, &settings);
        pair.script(|_| Fate::Drop);
        let (tag, peer_tag) = pair.ends[RIGHT].tags();
        let abort = Chunk::Abort { reflected, causes: Vec::new() };
        let mut packet = Packet::of(if reflected { peer_tag } else { tag }, abort);
        if with_code {
            pair.ends[LEFT].sign_packet(&mut packet);
        }
        pair.inject(RIGHT, 0, packet);
        assert_eq!(matches!(pair.ends[RIGHT].state(), State::Ended(_)), with_code);
    }
}
