//! Cookies that are returned modified, late, twice or from another address (RFC 9260, 5.1.5, 5.2.4,
//! 5.2.6).

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Seed, Serial32, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{
    Answer, Association, Chunk, Config, CookieContent, ErrorCause, Event, Init, Listener, Packet,
};

use super::kit::{
    CLIENT_SEED, HOME, Victim, bytes_of, chunk, client, data, datagram, init, kind, listener, live,
    names, own_cookie, own_tie_tags, parameter, read, send_to,
};
use crate::driver::{LEFT, Pair, RIGHT, in_turn, ms};

/// A listener, and a COOKIE ECHO that it accepts.
fn knocking() -> (Listener, Packet) {
    let mut listener = listener();
    let mut end = Association::connect(live(1, 1 << 16), in_turn(), Seed::root(12), Time::ZERO);
    let mut init = end.poll_transmit(Time::ZERO).expect("an INIT").packet;
    let Answer::Reply(answer) = listener.handle(Time::ZERO, HOME, &mut init) else {
        panic!("no INIT ACK")
    };
    let echo = send_to(&mut end, Time::ZERO, 0, &bytes_of(&answer)).remove(0);
    (listener, echo)
}

fn accepts(listener: &mut Listener, now: Time, from: &[u8], bytes: &Bytes) -> bool {
    let Ok(mut packet) = read(bytes) else { return false };
    matches!(listener.handle(now, from, &mut packet), Answer::Accept(_))
}

// 23.
#[test]
fn a_cookie_with_any_byte_changed_cut_or_added_or_from_elsewhere_opens_nothing() {
    let (mut listener, echo) = knocking();
    let Chunk::CookieEcho(cookie) = &echo.chunks[0] else { panic!("{echo:?}") };
    let with = |cookie: &[u8]| datagram(echo.tag, &[chunk(kind::COOKIE_ECHO, 0, cookie)]);
    for at in 0..cookie.len() {
        let mut changed = cookie.to_vec();
        changed[at] ^= 0x40;
        assert!(!accepts(&mut listener, Time::ZERO, HOME, &with(&changed)), "byte {at}");
        assert!(!accepts(&mut listener, Time::ZERO, HOME, &with(&cookie[..at])), "{at} B");
        assert!(!accepts(&mut listener, Time::ZERO, HOME, &with(&cookie[at + 1..])), "from {at}");
    }
    let longer = [cookie, &[0; 4][..]].concat();
    assert!(!accepts(&mut listener, Time::ZERO, HOME, &with(&longer)));
    assert!(!accepts(&mut listener, Time::ZERO, HOME, &with(&[0; 60_000])));
    let good = with(cookie);
    for elsewhere in [&b"192.0.2.2:9899"[..], b"192.0.2.1:9898", b""] {
        assert!(!accepts(&mut listener, Time::ZERO, elsewhere, &good));
    }
    // Expired, with a deleted key, and with the key of another process.
    for late in [61, 500, 100_000] {
        assert!(!accepts(&mut listener.clone(), Time::from_secs(late), HOME, &good), "{late} s");
    }
    let mut another = Listener::new(live(1, 1 << 16), Seed::root(99));
    assert!(!accepts(&mut another, Time::ZERO, HOME, &good));
    assert!(accepts(&mut listener, Time::ZERO, HOME, &good));
}

// 24.
#[test]
fn authentication_that_was_not_agreed_on_lets_nothing_pass() {
    let (mut listener, echo) = knocking();
    let Chunk::CookieEcho(cookie) = &echo.chunks[0] else { panic!("{echo:?}") };
    let cookie = chunk(kind::COOKIE_ECHO, 0, cookie);
    let auth = chunk(kind::AUTH, 0, &[&[0, 0, 0, 1][..], &[7; 20]].concat());
    let first = datagram(echo.tag, &[auth.clone(), cookie.clone()]);
    assert!(!accepts(&mut listener, Time::ZERO, HOME, &first), "AUTH ends the packet before it");
    // After the cookie it ends the processing of the packet.
    let dot = data(Serial32(1), 0, 0, 3, b"x");
    let mut packet = read(&datagram(echo.tag, &[cookie, auth, dot])).expect("a packet");
    let Answer::Accept(proof) = listener.handle(Time::ZERO, HOME, &mut packet) else {
        panic!("not accepted")
    };
    let now = Time::ZERO;
    let settings = live(1, 1 << 16);
    let mut end = Association::accepted(settings, in_turn(), Seed::root(1), now, PathId(0), *proof);
    end.handle_in_place(now, PathId(0), &mut packet);
    assert_eq!(end.receive_stats().received, 0);
}

/// An end in the state of that name, the COOKIE ECHO that set it up, and its links cut.
fn in_state(wanted: &str) -> (Victim, Bytes) {
    let mut pair = Pair::new(&live(1, 1 << 16), &[10]);
    pair.run_for(ms(150));
    let echo = pair.log.iter().find(|s| s.names()[0] == "COOKIE ECHO").expect("one");
    let echo = bytes_of(&echo.packet);
    let mut victim = Victim::of(pair);
    let now = victim.pair.now;
    let shutdown = chunk(kind::SHUTDOWN, 0, &[0; 4]);
    if matches!(wanted, "ShutdownPending" | "ShutdownReceived") {
        victim.pair.send(RIGHT, 100);
    }
    match wanted {
        "ShutdownPending" | "ShutdownSent" => {
            victim.pair.ends[RIGHT].shutdown(now);
            victim.pair.drain(RIGHT);
        }
        "ShutdownReceived" | "ShutdownAckSent" => {
            victim.hit(RIGHT, &[shutdown]);
        }
        "Ended" => {
            victim.hit(RIGHT, &[chunk(kind::ABORT, 0, &[])]);
        }
        _ => {}
    }
    let state = format!("{:?}", victim.state(RIGHT));
    assert!(state.starts_with(wanted), "{state}");
    (victim, echo)
}

// 25.
#[test]
fn a_cookie_that_comes_again_is_acknowledged_in_every_state_that_is_up_and_moves_none() {
    for state in [
        "Established",
        "ShutdownPending",
        "ShutdownSent",
        "ShutdownReceived",
        "ShutdownAckSent",
        "Ended",
    ] {
        let (mut victim, echo) = in_state(state);
        let (tags, before) = (victim.tags(RIGHT), victim.state(RIGHT).clone());
        for _ in 0..3 {
            let answers = victim.take(RIGHT, 0, &echo);
            let expected: &[&str] = if state == "Ended" { &[] } else { &["COOKIE ACK"] };
            assert_eq!(names(&answers), expected, "{state}");
            assert_eq!((victim.tags(RIGHT), victim.state(RIGHT)), (tags, &before), "{state}");
        }
        let news = victim.pair.events[RIGHT].iter().filter(|(_, e)| *e == Event::Connected);
        assert_eq!(news.count(), 1, "{state}");
    }
    // The end that sent the COOKIE ECHO did not make the cookie.
    let (mut victim, echo) = in_state("Established");
    let before = victim.all(LEFT);
    assert_eq!(victim.take(LEFT, 0, &echo), []);
    assert_eq!(victim.all(LEFT), before);
}

// 26.
#[test]
fn an_init_that_would_add_an_address_to_an_association_is_refused() {
    let mut victim = Victim::up(2);
    let before = (victim.tags(RIGHT), victim.state(RIGHT).clone());
    let known = [parameter(5, &[10, 0, 0, 1]), parameter(5, &[10, 0, 1, 1])].concat();
    let new = parameter(5, &[10, 9, 9, 9]);
    let v6 = parameter(6, &[7; 16]);
    for (addresses, refused) in [
        (known.clone(), false),
        (Vec::new(), false),
        ([known.clone(), new.clone()].concat(), true),
        ([new, known.clone()].concat(), true),
        ([known, v6].concat(), true),
    ] {
        let answers = victim.take(RIGHT, 0, &datagram(0, &[init(9, &addresses)]));
        assert_eq!(names(&answers), [if refused { "ABORT" } else { "INIT ACK" }]);
        assert_eq!(answers[0].tag, 9, "under the initiate tag");
        if let Chunk::Abort { causes, .. } = &answers[0].chunks[0] {
            assert!(matches!(causes[..], [ErrorCause::NewAddresses(_)]), "{causes:?}");
        }
        assert_eq!((victim.tags(RIGHT), victim.state(RIGHT)), (before.0, &before.1));
    }
}

fn content(local: u32, peer: u32, tie_tags: (u32, u32), created: Time) -> CookieContent {
    let peer = Init {
        tag: peer,
        window: 1 << 16,
        outbound_streams: 5,
        inbound_streams: 5,
        initial_tsn: Serial32(9),
        ..Init::default()
    };
    let (local_tsn, path) = (Serial32(5), PathId(0));
    CookieContent { local_tag: local, local_tsn, peer, created, tie_tags, path }
}

/// The seed of the right end of every pair.
fn right_seed() -> Seed {
    Seed::root(7).child("right")
}

// 27.
#[test]
fn tags_and_tie_tags_decide_over_a_cookie_as_the_table_has_it() {
    let other = 0x7777_7777;
    let (ours, theirs) = Victim::up(1).tags(RIGHT);
    let right = own_tie_tags(right_seed(), (ours, theirs));
    for local in [ours, other] {
        for peer in [theirs, other] {
            for ties in [
                right,
                (right.0, other),
                (other, right.1),
                (0, 0),
                (right.1, right.0),
                (0, right.1),
                // The tags themselves are not tie-tags: any host that requests a cookie would see them.
                (ours, theirs),
            ] {
                let mut victim = Victim::up(1);
                let now = victim.pair.now;
                let cookie = own_cookie(right_seed(), &content(local, peer, ties, now));
                let echo = [chunk(kind::COOKIE_ECHO, 0, &cookie)];
                let what = format!("local {local:x}, peer {peer:x}, ties {ties:x?}");
                // With any other tag it has no effect.
                let before = victim.all(RIGHT);
                assert_eq!(victim.take(RIGHT, 0, &datagram(local ^ 1, &echo)), [], "{what}");
                assert_eq!(victim.all(RIGHT), before, "{what}");
                let answers = victim.take(RIGHT, 0, &datagram(local, &echo));
                let restarted =
                    victim.pair.events[RIGHT].iter().any(|(_, e)| *e == Event::Restarted);
                let tags = victim.tags(RIGHT);
                match (local == ours, peer == theirs) {
                    // D, and B: the peer may have chosen another tag.
                    (true, _) => {
                        assert_eq!(names(&answers), ["COOKIE ACK"], "{what}");
                        assert_eq!((tags, restarted), ((ours, peer), false), "{what}");
                    }
                    // A.
                    (false, false) if ties == right => {
                        assert_eq!(names(&answers)[0], "COOKIE ACK", "{what}");
                        assert_eq!((tags, restarted), ((other, other), true), "{what}");
                    }
                    // C, and combinations that are not in the table.
                    (false, _) => {
                        assert_eq!(names(&answers), [] as [&str; 0], "{what}");
                        assert_eq!((tags, restarted), ((ours, theirs), false), "{what}");
                    }
                }
                assert_eq!(*victim.state(RIGHT), State::Established, "{what}");
            }
        }
    }
}

// 27.
#[test]
fn a_cookie_of_our_own_sets_up_an_end_that_only_began_whatever_tag_the_peer_has_picked() {
    for after_init_ack in [false, true] {
        for (change, expected) in [(0, &["COOKIE ACK"][..]), (1, &[])] {
            let (mut end, tag) = if after_init_ack { echoed(Time::ZERO) } else { client() };
            let before = end.state().clone();
            // Action B: the INIT of the peer crossed ours, and its tag is not the known one.
            let local = tag ^ change;
            let cookie = own_cookie(CLIENT_SEED, &content(local, 22, (0, 0), Time::ZERO));
            let echo = datagram(local, &[chunk(kind::COOKIE_ECHO, 0, &cookie)]);
            let answers = send_to(&mut end, Time::ZERO, 0, &echo);
            let told: Vec<_> =
                names(&answers).into_iter().filter(|name| *name != "HEARTBEAT").collect();
            assert_eq!(told, expected, "after INIT ACK: {after_init_ack}");
            if expected.is_empty() {
                assert_eq!(*end.state(), before, "another tag of ours: it is not for this end");
            } else {
                assert_eq!((end.state(), end.tags()), (&State::Established, (tag, 22)));
            }
        }
    }
}

// 23.
#[test]
fn a_stale_cookie_is_good_with_both_tags_of_the_association_also_while_that_is_set_up() {
    let made = Time::ZERO;
    let now = Time::from_secs(100);
    for (change, expected) in [(0, &["COOKIE ACK"][..]), (1, &["ERROR"])] {
        let (mut end, tag) = echoed(now);
        // The peer's tag is that of its INIT ACK, or another one.
        let cookie = own_cookie(CLIENT_SEED, &content(tag, 9 + change, (0, 0), made));
        let echo = datagram(tag, &[chunk(kind::COOKIE_ECHO, 0, &cookie)]);
        let answers = send_to(&mut end, now, 0, &echo);
        let told: Vec<_> =
            names(&answers).into_iter().filter(|name| *name != "HEARTBEAT").collect();
        assert_eq!(told, expected);
        assert_eq!(*end.state() == State::Established, change == 0, "{:?}", end.state());
    }
}

// 23. 34.
#[test]
fn a_stale_cookie_under_another_tag_is_not_even_reported() {
    let settings = live(1, 1 << 16);
    let seed = Seed::root(3);
    let now = Time::from_secs(100);
    let cookie = own_cookie(seed, &content(21, 22, (0, 0), Time::ZERO));
    let echo = [chunk(kind::COOKIE_ECHO, 0, &cookie)];
    for (tag, expected) in [(20, &[][..]), (22, &[]), (0, &[]), (21, &["ERROR"])] {
        let mut end = Association::listen(settings.clone(), in_turn(), seed);
        let answers = send_to(&mut end, now, 0, &datagram(tag, &echo));
        assert_eq!(names(&answers), expected, "under tag {tag}");
        assert_eq!(*end.state(), State::Closed);
    }
}

/// An end that has sent its COOKIE ECHO at the given time, and its tag.
fn echoed(now: Time) -> (Association, u32) {
    let (mut end, tag) = client();
    let body = [&super::kit::fixed(9, 1 << 16, 5, 5)[..], &parameter(7, &[1; 40])].concat();
    let ack = chunk(kind::INIT_ACK, 0, &body);
    assert_eq!(names(&send_to(&mut end, now, 0, &datagram(tag, &[ack]))), ["COOKIE ECHO"]);
    (end, tag)
}

fn stale(measure: u32) -> Vec<u8> {
    chunk(kind::ERROR, 0, &parameter(3, &measure.to_be_bytes()))
}

// 28.
#[test]
fn cookie_ack_and_stale_cookie_count_only_where_a_cookie_was_sent() {
    let ack = chunk(kind::COOKIE_ACK, 0, &[]);
    for chunks in [[ack.clone(), ack], [stale(5), stale(u32::MAX)]] {
        // Before a cookie was sent, and after it was accepted.
        let (mut end, tag) = client();
        assert_eq!(send_to(&mut end, Time::ZERO, 0, &datagram(tag, &chunks)), []);
        assert!(matches!(end.state(), State::CookieWait { .. }));
        let mut victim = Victim::up(1);
        for side in [LEFT, RIGHT] {
            assert_eq!(victim.hit(side, &chunks), []);
            assert_eq!(*victim.state(side), State::Established);
        }
    }
    for measure in [0, 1, u32::MAX] {
        let (mut end, tag) = echoed(Time::ZERO);
        let now = Time::from_millis(70);
        // One packet reports it three times, once with a truncated measure.
        let cut = chunk(kind::ERROR, 0, &[0, 3, 0, 6, 0, 0]);
        let answers =
            send_to(&mut end, now, 0, &datagram(tag, &[cut, stale(measure), stale(measure)]));
        assert_eq!(names(&answers), ["INIT"], "one more try");
        let Chunk::Init(init) = &answers[0].chunks[0] else { panic!("{answers:?}") };
        assert_eq!(init.preserve_millis, 1070, "the round trip and a second, whatever was said");
    }
}

// 28.
#[test]
fn a_peer_that_calls_every_cookie_stale_is_given_up() {
    let (mut end, tag) = echoed(Time::ZERO);
    let mut tries = 0;
    while !matches!(end.state(), State::Ended(_)) {
        tries += 1;
        assert!(tries < 20);
        send_to(&mut end, Time::ZERO, 0, &datagram(tag, &[stale(u32::MAX)]));
        let body = [&super::kit::fixed(9, 1 << 16, 5, 5)[..], &parameter(7, &[1; 40])].concat();
        let ack = chunk(kind::INIT_ACK, 0, &body);
        send_to(&mut end, Time::ZERO, 0, &datagram(tag, &[ack]));
    }
    assert_eq!(*end.state(), State::Ended(CloseReason::StaleCookie));
}

// 25.
#[test]
fn data_beside_a_cookie_is_taken_once_however_often_the_cookie_comes() {
    let settings = Config { cookie_life: Duration::from_secs(60), ..live(1, 1 << 16) };
    let seed = Seed::root(3);
    let cookie = own_cookie(seed, &content(21, 22, (0, 0), Time::ZERO));
    let dot = data(Serial32(9), 0, 0, 3, b"once");
    let both = datagram(21, &[chunk(kind::COOKIE_ECHO, 0, &cookie), dot]);
    let mut end = Association::listen(settings, in_turn(), seed);
    for _ in 0..3 {
        send_to(&mut end, Time::ZERO, 0, &both);
    }
    let read = std::iter::from_fn(|| end.read(Time::ZERO)).collect::<Vec<_>>();
    assert_eq!(read.len(), 1);
    assert_eq!(
        (read[0].stream, &read[0].payload),
        (StreamId(0), &Payload::from(Bytes::from("once")))
    );
}
