//! The handshake (RFC 9260, 5.1 and 5.2).

use ropewalk_base::{Duration, PathId, Seed, Serial32, Time};
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{Association, Chunk, ErrorCause, Packet};

use crate::driver::{Fate, LEFT, Pair, RIGHT, Sent, at_ms, config, ms, name, scheduler};

/// Drops the first packet with a chunk of this name.
fn lose_first(chunk: &'static str) -> impl FnMut(&Sent) -> Fate {
    let mut lost = false;
    move |sent| {
        let hit = !lost && sent.names().contains(&chunk);
        lost |= hit;
        if hit { Fate::Drop } else { Fate::Arrive }
    }
}

fn up(pair: &Pair, end: usize) -> bool {
    *pair.ends[end].state() == State::Established
}

#[test]
pub fn four_packets_set_an_association_up() {
    let mut pair = Pair::new(&config(1, 65_536), &[10]);
    pair.run_until(at_ms(45));
    let names: Vec<_> = pair.log.iter().flat_map(Sent::names).collect();
    assert_eq!(names, ["INIT", "INIT ACK", "COOKIE ECHO", "COOKIE ACK"]);
    assert!(up(&pair, LEFT) && up(&pair, RIGHT));
    assert!(pair.log.iter().all(|s| s.packet.chunks.len() == 1));
}

#[test]
pub fn any_lost_packet_of_the_handshake_is_made_good_by_t1() {
    for chunk in ["INIT", "INIT ACK", "COOKIE ECHO", "COOKIE ACK"] {
        for paths in [1, 2] {
            let mut pair = Pair::new(&config(paths, 65_536), &[10, 30][..paths]);
            pair.script(lose_first(chunk));
            pair.send(LEFT, 100);
            pair.run_until(at_ms(990));
            assert!(!up(&pair, LEFT), "{chunk} was lost and nobody noticed");
            pair.run_until(at_ms(1600));
            assert!(up(&pair, LEFT) && up(&pair, RIGHT), "{chunk} lost, {paths} paths");
            assert_eq!(pair.read_bytes(RIGHT), 100, "{chunk} lost, {paths} paths");
        }
    }
}

#[test]
pub fn t1_doubles_goes_round_the_addresses_and_gives_up_after_max_init_retransmits() {
    let mut settings = config(2, 65_536);
    settings.max_init_retransmits = 3;
    let mut pair = Pair::new(&settings, &[10, 10]);
    pair.script(|_| Fate::Drop);
    pair.run_until(Time::from_secs(14));
    let tries: Vec<_> =
        pair.log.iter().map(|s| (s.at.as_nanos() / 1_000_000_000, s.path)).collect();
    assert_eq!(tries, [(0, 0), (1, 1), (3, 0), (7, 1)]);
    assert_eq!(pair.closed(LEFT), None);
    pair.run_until(Time::from_secs(16));
    assert_eq!(pair.closed(LEFT), Some(CloseReason::NoAnswer));
    assert_eq!(pair.ends[LEFT].next_deadline(), None, "no timer is left behind");
}

#[test]
pub fn an_init_is_answered_without_anything_kept() {
    let mut pair = Pair::new(&config(1, 65_536), &[10]);
    pair.script(|sent| if sent.names() == ["COOKIE ECHO"] { Fate::Drop } else { Fate::Arrive });
    pair.run_until(at_ms(25));
    assert_eq!(*pair.ends[RIGHT].state(), State::Closed);
    assert_eq!(pair.ends[RIGHT].next_deadline(), None, "no timer for an unproven peer");
    let Chunk::Init(init) = pair.log[0].packet.chunks[0].clone() else { panic!("no INIT") };
    // A flood of them has no effect and gets one small answer each.
    for tag in 1..=1000 {
        let mut forged = init.clone();
        forged.tag = tag;
        let before = pair.log.len();
        pair.inject(RIGHT, 0, Packet::of(0, Chunk::Init(forged)));
        assert_eq!(pair.log.len(), before + 1);
        let (asked, answer) = (20 + 8 + 12 + 20, pair.log[before].packet.wire_len() + 20);
        assert!(answer <= 4 * asked, "{answer} B for {asked} B");
    }
    assert_eq!(*pair.ends[RIGHT].state(), State::Closed);
}

#[test]
pub fn an_init_that_asks_for_the_impossible_is_refused_in_every_state_and_changes_none() {
    for up in [false, true] {
        let mut pair = Pair::new(&config(1, 65_536), &[10]);
        pair.run_until(at_ms(if up { 100 } else { 5 }));
        let Chunk::Init(good) = pair.log[0].packet.chunks[0].clone() else { panic!("no INIT") };
        for end in [LEFT, RIGHT] {
            for change in 0..3 {
                let mut init = good.clone();
                init.tag = 99;
                match change {
                    0 => init.outbound_streams = 0,
                    1 => init.inbound_streams = 0,
                    _ => init.window = 1499,
                }
                pair.log.clear();
                let (tags, state) = (pair.ends[end].tags(), pair.ends[end].state().clone());
                pair.inject(end, 0, Packet::of(0, Chunk::Init(init)));
                let refusal = Packet::of(99, Chunk::abort(ErrorCause::InvalidParameter));
                assert_eq!(pair.log.len(), 1, "change {change}, {state:?}");
                assert_eq!(pair.log[0].packet, refusal, "change {change}, {state:?}");
                assert_eq!((pair.ends[end].tags(), pair.ends[end].state()), (tags, &state));
            }
        }
    }
}

#[test]
pub fn a_bad_init_gets_no_answer() {
    let mut pair = Pair::new(&config(1, 65_536), &[10]);
    pair.run_until(at_ms(5));
    let Chunk::Init(good) = pair.log[0].packet.chunks[0].clone() else { panic!("no INIT") };
    let mut none = good.clone();
    none.tag = 0;
    let mut bad = vec![Packet::of(0, Chunk::Init(none)), Packet::of(5, Chunk::Init(good.clone()))];
    let mut bundled = Packet::of(0, Chunk::Init(good));
    bundled.chunks.push(Chunk::CookieAck);
    bad.push(bundled);
    for packet in bad {
        pair.inject(RIGHT, 0, packet.clone());
        assert_eq!(pair.log.len(), 1, "answered: {packet:?}");
    }
}

#[test]
pub fn a_duplicate_cookie_echo_is_acknowledged_again_and_changes_nothing() {
    let mut pair = Pair::new(&config(1, 65_536), &[10]);
    pair.script(|sent| if sent.names() == ["COOKIE ECHO"] { Fate::Twice } else { Fate::Arrive });
    pair.send(LEFT, 5000);
    pair.run_until(at_ms(500));
    assert_eq!(pair.count(RIGHT, "COOKIE ACK"), 2);
    assert_eq!(pair.read_bytes(RIGHT), 5000);
    let echo = pair.log.iter().find(|s| s.names() == ["COOKIE ECHO"]).expect("one").packet.clone();
    for _ in 0..3 {
        pair.inject(RIGHT, 0, echo.clone());
    }
    assert_eq!(pair.count(RIGHT, "COOKIE ACK"), 5);
    pair.send(LEFT, 5000);
    pair.run_for(ms(500));
    assert_eq!(pair.read_bytes(RIGHT), 10_000);
}

#[test]
pub fn a_forged_cookie_is_dropped_and_a_stale_one_is_reported_and_replaced() {
    let mut pair = Pair::new(&config(1, 65_536), &[10]);
    pair.script(|sent| if sent.names() == ["COOKIE ECHO"] { Fate::Drop } else { Fate::Arrive });
    pair.run_until(at_ms(30));
    let echo = pair.log[2].packet.clone();
    let Chunk::CookieEcho(cookie) = &echo.chunks[0] else { panic!("{echo:?}") };
    let mut forged = cookie.to_vec();
    forged[20] ^= 1;
    pair.inject(RIGHT, 0, Packet::of(echo.tag, Chunk::CookieEcho(forged.into())));
    assert_eq!(pair.log.len(), 3, "a forged cookie is not answered");
    // The real one is stale after its life of 60 s; the opener then starts over successfully.
    pair.run_until(Time::from_secs(62));
    pair.heal();
    pair.inject(RIGHT, 0, echo);
    let error = &pair.log.last().expect("an answer").packet.chunks[0];
    let Chunk::Error(causes) = error else { panic!("{error:?}") };
    assert!(
        matches!(causes[..], [ErrorCause::StaleCookie(micros)] if micros > 1_000_000),
        "{causes:?}"
    );
    pair.run_until(Time::from_secs(63));
    assert!(up(&pair, LEFT) && up(&pair, RIGHT));
}

#[test]
pub fn a_cookie_that_grew_old_on_the_way_is_good_for_the_association_it_made() {
    let mut pair = Pair::new(&config(1, 65_536), &[10]);
    pair.script(|sent| if sent.names() == ["COOKIE ACK"] { Fate::Drop } else { Fate::Arrive });
    pair.run_until(Time::from_secs(100));
    assert!(!up(&pair, LEFT) && up(&pair, RIGHT));
    assert_eq!(pair.count(RIGHT, "ERROR"), 0);
    pair.heal();
    pair.run_until(Time::from_secs(200));
    assert!(up(&pair, LEFT));
    pair.send(LEFT, 1000);
    pair.run_for(ms(500));
    assert_eq!(pair.read_bytes(RIGHT), 1000);
}

#[test]
pub fn two_ends_that_open_at_once_become_one_association() {
    for (delay, apart) in [(10, 0), (10, 5), (10, 15), (10, 25)] {
        let settings = config(1, 65_536);
        let seed = Seed::root(3);
        let start = |name: &str, at| {
            let round_robin = scheduler("round-robin");
            Association::start_later(settings.clone(), round_robin, seed.child(name), at_ms(at))
        };
        let mut pair = Pair::of(start("left", 0), start("right", apart), &[delay]);
        pair.run_until(at_ms(500));
        for end in [LEFT, RIGHT] {
            assert!(up(&pair, end), "{apart} ms apart: {:?}", pair.ends[end].state());
            pair.send(end, 20_000);
        }
        pair.run_for(ms(2000));
        for end in [LEFT, RIGHT] {
            assert_eq!(pair.read_bytes(end), 20_000, "{apart} ms apart");
            let ups = pair.events[end].iter().filter(|(_, e)| format!("{e:?}") == "Connected");
            assert_eq!(ups.count(), 1);
        }
    }
}

#[test]
fn an_init_from_anybody_does_not_keep_an_end_from_starting() {
    let settings = config(1, 65_536);
    let start = |at| {
        let round_robin = scheduler("round-robin");
        Association::start_later(settings.clone(), round_robin, Seed::root(at), at_ms(at))
    };
    let (mut first, mut second) = (start(1), start(500));
    first.handle_timeout(at_ms(1));
    let init = first.poll_transmit(at_ms(1)).expect("an INIT").packet;
    second.handle_datagram(at_ms(2), PathId(0), init);
    let answer = second.poll_transmit(at_ms(2)).expect("an answer");
    assert_eq!(name(&answer.packet.chunks[0]), "INIT ACK");
    assert_eq!(second.next_deadline(), Some(at_ms(500)), "it still means to start");
}

#[test]
pub fn an_init_for_an_association_that_is_up_changes_nothing() {
    let mut pair = Pair::up(&config(2, 65_536), &[10, 40]);
    let mut other = Association::connect(
        config(2, 65_536),
        scheduler("round-robin"),
        Seed::root(99),
        Time::ZERO,
    );
    let init = other.poll_transmit(Time::ZERO).expect("an INIT").packet;
    let mut sane = true;
    for end in [LEFT, RIGHT] {
        pair.inject(end, 1, init.clone());
        sane &= up(&pair, end);
    }
    assert!(sane);
    pair.send(LEFT, 10_000);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.read_bytes(RIGHT), 10_000);
}

#[test]
pub fn data_waits_for_the_cookie_and_starts_with_the_announced_tsn() {
    let mut pair = Pair::new(&config(1, 65_536), &[10]);
    pair.send(LEFT, 100);
    pair.run_until(at_ms(200));
    let Chunk::Init(init) = &pair.log[0].packet.chunks[0] else { panic!("no INIT") };
    let first = pair.log.iter().find_map(|s| s.data().next()).expect("data");
    assert_eq!(first.tsn, init.initial_tsn);
    assert_ne!(init.initial_tsn, Serial32(0));
}

/// RFC 9260, 10 (ICMP8), for an association with several addresses.
#[test]
pub fn a_refused_init_goes_to_the_next_address_at_once_and_all_refusals_end_the_association() {
    let mut pair = Pair::new(&config(3, 65_536), &[10, 10, 10]);
    pair.script(|_| Fate::Drop);
    pair.run_until(at_ms(1));
    let refuse = |pair: &mut Pair, at: u64, path: usize| {
        pair.run_until(at_ms(at));
        pair.ends[LEFT].on_init_refused(at_ms(at), |refused| refused == path);
        pair.drain(LEFT);
    };
    refuse(&mut pair, 5, 0);
    // A copy of the message has no effect, and neither has one about an address without an INIT so far.
    refuse(&mut pair, 6, 0);
    refuse(&mut pair, 7, 9);
    // T1 continues with the address that has not refused.
    pair.run_until(at_ms(1020));
    let tries: Vec<_> =
        pair.log.iter().map(|sent| (sent.at.as_nanos() / 1_000_000, sent.path)).collect();
    assert_eq!(tries[..2], [(0, 0), (5, 1)]);
    assert_eq!(tries[2].0, 1005, "{tries:?}");
    assert_ne!(tries[2].1, 0, "{tries:?}");
    refuse(&mut pair, 1030, 1);
    assert_eq!(pair.closed(LEFT), None);
    refuse(&mut pair, 1040, 2);
    assert_eq!(pair.closed(LEFT), Some(CloseReason::Refused));
    assert_eq!(pair.ends[LEFT].next_deadline(), None, "no timer is left behind");
}

#[test]
pub fn refusals_matter_only_before_the_peer_has_answered() {
    // In COOKIE-ECHOED, and when it is established.
    for at in [25, 100] {
        let mut pair = Pair::new(&config(2, 65_536), &[10, 10]);
        // One address refuses, and the other one answers.
        pair.ends[LEFT].on_init_refused(Time::ZERO, |path| path == 0);
        pair.run_until(at_ms(at));
        assert!(!matches!(pair.ends[LEFT].state(), State::CookieWait { .. }), "at {at} ms");
        pair.ends[LEFT].on_init_refused(at_ms(at), |_| true);
        pair.send(LEFT, 100);
        pair.run_until(at_ms(2000));
        assert!(up(&pair, LEFT) && up(&pair, RIGHT), "at {at} ms");
        assert_eq!(pair.read_bytes(RIGHT), 100, "at {at} ms");
    }
}
