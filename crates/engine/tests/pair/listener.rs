//! A listener and its answers (RFC 9260, 5.1 and 8.4), and complete associations through it, once in
//! typed packets and once in bytes.

use core::net::IpAddr;

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Seed, Serial32, Time};
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{
    AbortCause, Answer, Association, Chunk, Config, ErrorCause, Extensions, Init, Listener,
    Negotiation, Packet,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, config, in_turn, ms, name, numbered};

const HOME: &[u8] = b"192.0.2.1:9899";

fn listener(config: &Config) -> Listener {
    Listener::new(config.clone(), Seed::root(11))
}

fn client(config: &Config) -> Association {
    Association::connect(config.clone(), in_turn(), Seed::root(12), Time::ZERO)
}

fn next(end: &mut Association, now: Time) -> Packet {
    end.poll_transmit(now).expect("a packet").packet
}

fn reply(answer: Answer) -> Packet {
    let Answer::Reply(packet) = answer else { panic!("{answer:?}") };
    packet
}

/// A client whose COOKIE ECHO is in flight, and that packet.
fn knocking(config: &Config, listener: &mut Listener, now: Time) -> (Association, Packet) {
    let mut client = client(config);
    let mut init = next(&mut client, now);
    let answer = reply(listener.handle(now, HOME, &mut init));
    client.handle_datagram(now, PathId(0), answer);
    let echo = next(&mut client, now);
    assert_eq!(name(&echo.chunks[0]), "COOKIE ECHO");
    (client, echo)
}

/// Both ends of an association that a listener has accepted.
fn accepted(config: &Config) -> (Association, Association, Packet) {
    let mut listener = listener(config);
    let (client, echo) = knocking(config, &mut listener, Time::ZERO);
    let mut packet = echo.clone();
    let Answer::Accept(proof) = listener.handle(Time::ZERO, HOME, &mut packet) else {
        panic!("not accepted")
    };
    assert!(packet.chunks.is_empty(), "the cookie has been taken out");
    let tags = proof.tags();
    let seed = Seed::root(13);
    let server =
        Association::accepted(config.clone(), in_turn(), seed, Time::ZERO, PathId(0), *proof);
    assert_eq!(server.tags(), tags);
    (client, server, echo)
}

/// A complete association: data in both directions over two paths, where one path loses every seventh
/// packet, then the shutdown.
fn life(through_bytes: bool) -> Pair {
    let mut settings = config(2, 1 << 17);
    settings.negotiation = Negotiation::Listed(Extensions::DELAY);
    settings.delay_source = ropewalk_engine::scheduler::DelaySource::Timestamp;
    let (client, server, _) = accepted(&settings);
    let mut pair = Pair::of(client, server, &[10, 35]);
    pair.through_bytes = through_bytes;
    pair.now = Time::ZERO;
    let mut count = 0;
    pair.script(move |sent| {
        count += (sent.path == 1) as u32;
        if sent.path == 1 && count % 7 == 0 { Fate::Drop } else { Fate::Arrive }
    });
    pair.drain(RIGHT);
    pair.run_for(ms(300));
    for i in 0..60 {
        pair.send_on(LEFT, 0, numbered(1 + 97 * i, i), i % 5 == 0);
        pair.send_on(RIGHT, 0, numbered(700, 1000 + i), false);
        pair.run_for(ms(20));
    }
    pair.run_for(ms(5000));
    let now = pair.now;
    pair.ends[LEFT].shutdown(now);
    pair.drain(LEFT);
    pair.run_for(ms(5000));
    pair
}

#[test]
fn one_engine_tells_the_same_in_bytes_as_in_typed_packets() {
    let (typed, bytes) = (life(false), life(true));
    assert_eq!(typed.closed(RIGHT), Some(CloseReason::Shutdown));
    assert_eq!((typed.read[LEFT].len(), typed.read[RIGHT].len()), (60, 60));
    assert!(typed.log.iter().any(|sent| sent.packet.echo.is_some()), "stamps were agreed on");
    assert!(typed.log.iter().any(|sent| sent.fate == Fate::Drop));
    assert_eq!(typed.events, bytes.events);
    assert_eq!(typed.read, bytes.read);
    assert_eq!(typed.log.len(), bytes.log.len());
    for (one, other) in typed.log.iter().zip(&bytes.log) {
        assert_eq!((one.at, one.from, one.path), (other.at, other.from, other.path));
        assert_eq!(one.packet, other.packet);
    }
}

#[test]
fn timestamps_go_only_to_a_peer_that_lists_them() {
    for (negotiation, expected) in [
        (Negotiation::Assumed, true),
        (Negotiation::Listed(Extensions::DELAY), true),
        (Negotiation::Listed(Extensions::DELAY_STAMP), false),
        (Negotiation::Listed(Extensions::NONE), false),
    ] {
        let mut settings = config(1, 1 << 17);
        settings.negotiation = negotiation;
        settings.delay_source = ropewalk_engine::scheduler::DelaySource::Timestamp;
        let mut pair = Pair::up(&settings, &[10]);
        pair.send_full(LEFT, 3);
        pair.run_for(ms(500));
        let stamped = pair.log.iter().filter(|s| s.packet.stamp.is_some()).count();
        let echoed = pair.log.iter().filter(|s| s.packet.echo.is_some()).count();
        assert_eq!((stamped > 0, echoed > 0), (expected, expected), "{negotiation:?}");
    }
}

#[test]
fn a_listener_is_the_same_after_any_number_of_inits_and_each_answer_is_small() {
    let mut many = config(2, 1 << 16);
    let addresses = (0..60).map(|i| IpAddr::from([10, 1, 1, i])).collect();
    many.addresses = Some(addresses);
    for settings in [config(1, 1 << 16), many] {
        let mut listener = listener(&settings);
        let mut init = next(&mut client(&config(1, 1 << 16)), Time::ZERO);
        let before = format!("{listener:?}");
        let mut tags = Vec::new();
        for i in 0..1000 {
            let Chunk::Init(content) = &mut init.chunks[0] else { panic!() };
            content.tag = 1 + i;
            content.options.unknown = vec![Bytes::from_static(&[0xff, 1, 0, 4]); 8];
            content.addresses.clear();
            let answer = reply(listener.handle(Time::ZERO, HOME, &mut init));
            assert_eq!(answer.tag, 1 + i);
            // With the header of IPv4.
            let (asked, answered) = (init.wire_len() + 20, answer.wire_len() + 20);
            assert!(answered <= 3 * asked, "{answered} B for {asked} B");
            let Chunk::InitAck(both) = &answer.chunks[0] else { panic!("{answer:?}") };
            tags.push(both.0.tag);
        }
        assert_eq!(format!("{listener:?}"), before);
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 1000, "a new tag for each");
    }
}

#[test]
fn unknown_parameters_of_an_init_are_reported_in_its_answer() {
    let settings = config(1, 1 << 16);
    let mut init = next(&mut client(&settings), Time::ZERO);
    let Chunk::Init(content) = &mut init.chunks[0] else { panic!() };
    content.options.unknown = vec![Bytes::from_static(&[0xff, 1, 0, 5, 7])];
    let answer = reply(listener(&settings).handle(Time::ZERO, HOME, &mut init));
    let Chunk::InitAck(both) = &answer.chunks[0] else { panic!("{answer:?}") };
    assert_eq!(both.0.options.reported, [&[0xff, 1, 0, 5, 7, 0, 0, 0][..]]);
}

#[test]
fn an_init_that_asks_for_the_impossible_is_refused_and_one_without_a_tag_is_nothing() {
    let settings = config(1, 1 << 16);
    let good = next(&mut client(&settings), Time::ZERO);
    let Chunk::Init(init) = &good.chunks[0] else { panic!() };
    let name = Bytes::from_static(&[0, 11, 0, 6, b'a', 0]);
    let with = |change: &dyn Fn(&mut Init)| {
        let mut changed = init.as_ref().clone();
        change(&mut changed);
        Packet::of(0, Chunk::Init(Box::new(changed)))
    };
    let refused = [
        (with(&|i| i.outbound_streams = 0), ErrorCause::InvalidParameter),
        (with(&|i| i.inbound_streams = 0), ErrorCause::InvalidParameter),
        (with(&|i| i.window = 1499), ErrorCause::InvalidParameter),
        (
            with(&|i| i.options.host_name = Some(name.clone())),
            ErrorCause::UnresolvableAddress(name.clone()),
        ),
    ];
    for (mut packet, cause) in refused {
        let answer = reply(listener(&settings).handle(Time::ZERO, HOME, &mut packet));
        assert_eq!(answer, Packet::of(init.tag, Chunk::abort(cause)));
    }
    let mut bundled = good.clone();
    bundled.chunks.push(Chunk::CookieAck);
    for mut packet in [with(&|i| i.tag = 0), bundled, Packet { tag: 5, ..good }] {
        let answer = listener(&settings).handle(Time::ZERO, HOME, &mut packet);
        assert!(matches!(answer, Answer::Nothing), "{answer:?} to {packet:?}");
    }
}

#[test]
fn packets_out_of_the_blue_are_answered_in_the_order_of_the_rfc() {
    let stale = Chunk::error(ErrorCause::StaleCookie(5));
    let abort = Chunk::abort(ErrorCause::USER);
    let gone = Chunk::Abort { reflected: true, causes: Vec::new() };
    let complete = Chunk::ShutdownComplete { reflected: true };
    let table: Vec<(Vec<Chunk>, Option<&Chunk>)> = vec![
        (vec![], None),
        (vec![abort.clone()], None),
        (vec![Chunk::ShutdownAck, abort], None),
        (vec![Chunk::CookieEcho(Bytes::from_static(&[1; 88]))], None),
        (vec![Chunk::ShutdownAck], Some(&complete)),
        (vec![Chunk::CookieAck, Chunk::ShutdownAck], Some(&complete)),
        (vec![Chunk::SHUTDOWN_COMPLETE], None),
        (vec![stale], None),
        (vec![Chunk::CookieAck], None),
        (vec![Chunk::error(ErrorCause::OutOfResource)], Some(&gone)),
        (vec![Chunk::Shutdown(Serial32(1))], Some(&gone)),
        (vec![Chunk::Heartbeat(Bytes::from_static(&[1]))], Some(&gone)),
        (vec![Chunk::Unknown(Bytes::from_static(&[0xff, 0, 0, 4]))], Some(&gone)),
    ];
    for (chunks, expected) in table {
        for tag in [0, 99] {
            let mut listener = listener(&config(1, 1 << 16));
            let mut packet = Packet { tag, chunks: chunks.clone().into(), ..Packet::default() };
            let answer = match listener.handle(Time::ZERO, HOME, &mut packet) {
                Answer::Nothing => None,
                answer => Some(reply(answer)),
            };
            let expected = expected.filter(|_| tag != 0).map(|c| Packet::of(tag, c.clone()));
            assert_eq!(answer, expected, "{chunks:?} under tag {tag}");
        }
    }
}

#[test]
fn aborts_to_strangers_are_few_whatever_comes() {
    let mut listener = listener(&config(1, 1 << 16));
    let mut answers = 0;
    for i in 0..100_000 {
        let mut packet = Packet::of(1 + i, Chunk::Shutdown(Serial32(1)));
        let now = Time::from_nanos(u64::from(i) * 10_000);
        answers += matches!(listener.handle(now, HOME, &mut packet), Answer::Reply(_)) as u32;
    }
    assert!((90..=110).contains(&answers), "{answers} in a second");
}

#[test]
fn a_cookie_is_good_from_where_it_was_asked_for_and_under_its_tag_and_unchanged() {
    let settings = config(1, 1 << 16);
    let mut listener = listener(&settings);
    let (_, echo) = knocking(&settings, &mut listener, Time::ZERO);
    let Chunk::CookieEcho(cookie) = &echo.chunks[0] else { panic!("{echo:?}") };
    let mut changed = cookie.to_vec();
    changed[9] ^= 4;
    let bad = [
        (&b"192.0.2.1:9898"[..], echo.clone()),
        (HOME, Packet { tag: echo.tag ^ 1, ..echo.clone() }),
        (HOME, Packet::of(echo.tag, Chunk::CookieEcho(changed.into()))),
        (HOME, Packet::of(echo.tag, Chunk::CookieEcho(cookie.slice(..80)))),
        (HOME, Packet::of(echo.tag, Chunk::CookieEcho(Bytes::new()))),
    ];
    for (from, mut packet) in bad {
        let answer = listener.handle(Time::ZERO, from, &mut packet);
        assert!(matches!(answer, Answer::Nothing), "{answer:?}");
    }
    let another_boot =
        Listener::new(settings, Seed::root(99)).handle(Time::ZERO, HOME, &mut echo.clone());
    assert!(matches!(another_boot, Answer::Nothing));
    let answer = listener.handle(Time::ZERO, HOME, &mut echo.clone());
    assert!(matches!(answer, Answer::Accept(_)));
}

#[test]
fn a_lost_cookie_echo_goes_again_first_from_where_the_cookie_is_good() {
    for (negotiation, expected) in [
        (Negotiation::Listed(Extensions::NONE), [0, 0, 2, 0]),
        // In a simulation, as in the RFC: the addresses in turn.
        (Negotiation::Assumed, [0, 1, 2, 0]),
    ] {
        let mut settings = config(3, 1 << 16);
        settings.negotiation = negotiation;
        let mut pair = Pair::new(&settings, &[10, 10, 10]);
        pair.script(|sent| if sent.names() == ["COOKIE ECHO"] { Fate::Drop } else { Fate::Arrive });
        pair.run_until(Time::from_secs(10));
        let echoes = pair.log.iter().filter(|sent| sent.names() == ["COOKIE ECHO"]);
        let paths: Vec<_> = echoes.map(|sent| sent.path).collect();
        assert_eq!(paths, expected, "{negotiation:?}");
    }
}

#[test]
fn keys_change_and_a_cookie_lives_its_life_and_no_longer() {
    let settings = config(1, 1 << 16);
    // A cookie is valid for 60 s, and a key for 120 s.
    for (made, back, expected) in [
        (0, 59, "accepted"),
        (119, 121, "accepted"),
        (119, 179, "accepted"),
        (119, 200, "stale"),
        (100, 1000, "nothing"),
    ] {
        let mut listener = listener(&settings);
        let (_, mut echo) = knocking(&settings, &mut listener, Time::from_secs(made));
        let found = match listener.handle(Time::from_secs(back), HOME, &mut echo) {
            Answer::Accept(_) => "accepted",
            Answer::Reply(packet) => {
                let Chunk::Error(causes) = &packet.chunks[0] else { panic!("{packet:?}") };
                assert_eq!(causes[..], [ErrorCause::StaleCookie(21_000_000)]);
                "stale"
            }
            Answer::Nothing => "nothing",
        };
        assert_eq!(found, expected, "made at {made} s, back at {back} s");
    }
}

#[test]
fn a_cookie_that_comes_again_is_acknowledged_again_by_the_association_it_made() {
    let (_, mut server, echo) = accepted(&config(1, 1 << 16));
    let mut now = Time::ZERO;
    assert_eq!(name(&next(&mut server, now).chunks[0]), "COOKIE ACK");
    for _ in 0..3 {
        now += Duration::from_secs(50);
        while server.poll_transmit(now).is_some() {}
        server.handle_datagram(now, PathId(0), echo.clone());
        assert_eq!(name(&next(&mut server, now).chunks[0]), "COOKIE ACK");
        assert_eq!(*server.state(), State::Established);
    }
}

#[test]
fn abort_and_shutdown_complete_with_t_go_with_the_peers_tag_and_without_with_our_own() {
    let abort = |reflected| Chunk::Abort { reflected, causes: Vec::new() };
    let complete = |reflected| Chunk::ShutdownComplete { reflected };
    let aborted = |cause| Some(CloseReason::AbortedByPeer(cause));
    let table = [
        (abort(false), aborted(AbortCause::Unspecified), None),
        (abort(true), None, aborted(AbortCause::Unknown)),
        (complete(false), Some(CloseReason::Shutdown), None),
        (complete(true), None, Some(CloseReason::Shutdown)),
    ];
    for (chunk, under_ours, under_theirs) in table {
        for (theirs, expected) in [(false, under_ours), (true, under_theirs)] {
            let mut pair = Pair::up(&config(1, 1 << 16), &[10]);
            pair.script(|sent| if sent.from == RIGHT { Fate::Drop } else { Fate::Arrive });
            let now = pair.now;
            pair.ends[LEFT].shutdown(now);
            pair.drain(LEFT);
            pair.run_for(ms(15));
            assert!(matches!(pair.ends[RIGHT].state(), State::ShutdownAckSent { .. }));
            let (ours, peers) = pair.ends[RIGHT].tags();
            let tag = if theirs { peers } else { ours };
            let mut packet = Packet::of(tag, chunk.clone());
            if theirs {
                // Other chunks with that tag are ignored.
                packet.chunks.push(Chunk::abort(ErrorCause::USER));
            }
            pair.inject(RIGHT, 0, packet);
            assert_eq!(pair.closed(RIGHT), expected, "{chunk:?}, under the peer's: {theirs}");
        }
    }
    // Before the peer's tag is known, no tag matches it.
    let mut opener = client(&config(1, 1 << 16));
    opener.handle_datagram(Time::ZERO, PathId(0), Packet::of(0, abort(true)));
    assert!(matches!(opener.state(), State::CookieWait { .. }));
}
