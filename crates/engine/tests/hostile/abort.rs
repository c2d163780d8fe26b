//! ABORT, the chunks of the shutdown, and packets with foreign tags (RFC 9260, 8.4, 8.5, 9).

use ropewalk_base::{Duration, PathId, Serial32, Time};
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{AbortCause, Chunk};

use super::kit::{
    Victim, chunk, client, data, datagram, heartbeat, kind, listener, names, parameter, reply,
    sack, send_to,
};
use crate::driver::{LEFT, RIGHT, ms};

// 29.
#[test]
fn an_abort_counts_under_our_tag_without_t_and_under_the_peers_with_t_and_is_never_answered() {
    let abort = |t: u8| chunk(kind::ABORT, t, &[]);
    let (ours, theirs) = Victim::up(1).tags(RIGHT);
    for (tag, t, ends) in [
        (ours, 0, true),
        (ours, 1, false),
        (theirs, 1, true),
        (theirs, 0, false),
        (0, 0, false),
        (0, 1, false),
        (ours ^ 1, 0, false),
        (theirs ^ 1, 1, false),
    ] {
        let mut victim = Victim::up(1);
        assert_eq!(victim.take(RIGHT, 0, &datagram(tag, &[abort(t)])), [], "never answered");
        let ended = matches!(victim.state(RIGHT), State::Ended(CloseReason::AbortedByPeer(_)));
        assert_eq!(ended, ends, "tag {tag:x}, T {t}");
    }
    // While the peer's tag is unknown, no tag matches it.
    for (under_ours, tag, t) in [(false, 0, 1), (true, 0, 1), (false, 1, 1), (false, 0, 0)] {
        let (mut end, ours) = client();
        let tag = if under_ours { ours } else { tag };
        assert_eq!(send_to(&mut end, Time::ZERO, 0, &datagram(tag, &[abort(t)])), []);
        assert!(matches!(end.state(), State::CookieWait { .. }), "tag {tag:x}, T {t}");
    }
    let (mut end, tag) = client();
    send_to(&mut end, Time::ZERO, 0, &datagram(tag, &[abort(0)]));
    let told = CloseReason::AbortedByPeer(AbortCause::Unspecified);
    assert_eq!(*end.state(), State::Ended(told));
    // Without an association there is no answer, whatever the other chunks of the packet are.
    for t in [0, 1] {
        for tag in [0, 9] {
            let lone = datagram(tag, &[abort(t)]);
            assert_eq!(reply(&mut listener(), Time::ZERO, &lone), None);
            let company = [chunk(kind::SHUTDOWN_ACK, 0, &[]), abort(t)];
            assert_eq!(reply(&mut listener(), Time::ZERO, &datagram(tag, &company)), None);
        }
    }
}

// 53.
#[test]
fn an_abort_whose_causes_contradict_its_length_is_nothing_and_any_other_counts() {
    let cause = parameter(6, b"what");
    let sound: [Vec<u8>; 5] = [
        Vec::new(),
        cause.repeat(200),
        parameter(0xffff, &[0; 60_000]),
        // Too short for its code, but a valid parameter.
        parameter(3, &[]),
        [cause.clone(), parameter(0, &[1])].concat(),
    ];
    let broken: [Vec<u8>; 6] = [
        [cause.clone(), vec![0, 6, 0, 0, 0, 0, 0, 0]].concat(),
        [cause.clone(), vec![0, 6, 0, 3]].concat(),
        [cause.clone(), vec![0, 6, 0, 200, 1]].concat(),
        [cause.clone(), vec![0, 6]].concat(),
        [cause.repeat(40), vec![0, 6, 0, 9]].concat(),
        vec![9],
    ];
    for (lists, ends) in [(&sound[..], true), (&broken[..], false)] {
        for list in lists {
            let mut victim = Victim::up(1);
            assert_eq!(victim.hit(RIGHT, &[chunk(kind::ABORT, 0, list)]), []);
            let ended = matches!(victim.state(RIGHT), State::Ended(CloseReason::AbortedByPeer(_)));
            assert_eq!(ended, ends, "{list:?}");
        }
    }
}

// 29.
#[test]
fn nothing_in_a_packet_with_an_abort_is_answered_wherever_it_stands() {
    let abort = chunk(kind::ABORT, 0, &[]);
    let others = [
        heartbeat(b"are you there"),
        chunk(0xff, 0, b"what"),
        chunk(kind::SHUTDOWN_ACK, 0, &[]),
        chunk(kind::SHUTDOWN, 0, &[0; 4]),
        chunk(kind::COOKIE_ACK, 0, &[]),
    ];
    for other in others {
        for chunks in [[other.clone(), abort.clone()], [abort.clone(), other.clone()]] {
            let mut victim = Victim::up(1);
            assert_eq!(victim.hit(RIGHT, &chunks), [], "{chunks:?}");
            victim.pair.run_for(Duration::from_secs(100));
            assert!(victim.pair.log.iter().all(|sent| sent.from == LEFT), "{chunks:?}");
            let ended = matches!(victim.state(RIGHT), State::Ended(CloseReason::AbortedByPeer(_)));
            assert!(ended, "{chunks:?}");
        }
    }
    // DATA or a SACK before it is processed, but not answered either.
    let victim = Victim::up(1);
    let (first, before) = (victim.first_tsn(LEFT), victim.first_tsn(RIGHT).0.wrapping_sub(1));
    let dot = data(first, 0, 0, 3, b"x");
    let sack = sack(Serial32(before), 1 << 16, &[], 0);
    for chunks in [vec![sack, heartbeat(b"?"), abort.clone()], vec![dot, abort]] {
        let mut victim = Victim::up(1);
        assert_eq!(victim.hit(RIGHT, &chunks), []);
        assert!(matches!(victim.state(RIGHT), State::Ended(CloseReason::AbortedByPeer(_))));
    }
}

/// The right end while it waits for the SHUTDOWN COMPLETE.
fn waiting_for_the_end() -> Victim {
    let mut victim = Victim::up(1);
    let tsn = Serial32(victim.first_tsn(RIGHT).0.wrapping_sub(1));
    victim.hit(RIGHT, &[chunk(kind::SHUTDOWN, 0, &tsn.0.to_be_bytes())]);
    assert!(matches!(victim.state(RIGHT), State::ShutdownAckSent { .. }));
    victim
}

// 30.
#[test]
fn a_shutdown_complete_counts_only_at_its_time_and_under_its_tag() {
    let complete = |t: u8| chunk(kind::SHUTDOWN_COMPLETE, t, &[]);
    let (ours, theirs) = waiting_for_the_end().tags(RIGHT);
    for (tag, t, ends) in [
        (ours, 0, true),
        (ours, 1, false),
        (theirs, 1, true),
        (theirs, 0, false),
        (0, 1, false),
        (ours ^ 1, 0, false),
        (theirs ^ 1, 1, false),
    ] {
        let bytes = datagram(tag, &[complete(t)]);
        let mut victim = waiting_for_the_end();
        assert_eq!(victim.take(RIGHT, 0, &bytes), []);
        let ended = *victim.state(RIGHT) == State::Ended(CloseReason::Shutdown);
        assert_eq!(ended, ends, "tag {tag:x}, T {t}");
        let mut victim = Victim::up(1);
        assert_eq!(victim.take(RIGHT, 0, &bytes), []);
        assert_eq!(*victim.state(RIGHT), State::Established, "it is not the time");
    }
    let (mut end, tag) = client();
    for t in [0, 1] {
        for tag in [tag, 0] {
            assert_eq!(send_to(&mut end, Time::ZERO, 0, &datagram(tag, &[complete(t)])), []);
            assert!(matches!(end.state(), State::CookieWait { .. }));
        }
    }
}

// 31.
#[test]
fn a_flood_of_shutdown_acks_out_of_the_blue_is_answered_seldom() {
    let mut listener = listener();
    let mut answers = Vec::new();
    for i in 0..20_000u32 {
        let bytes = datagram(1 + i, &[chunk(kind::SHUTDOWN_ACK, 0, &[])]);
        answers.extend(reply(&mut listener, Time::from_nanos(u64::from(i) * 50_000), &bytes));
    }
    assert!((90..=110).contains(&answers.len()), "{} in a second", answers.len());
    let complete = Chunk::ShutdownComplete { reflected: true };
    assert!(answers.iter().all(|answer| answer.chunks[..] == [complete.clone()]));
    // An ended association answers each packet once, however many chunks it has.
    let mut victim = Victim::up(1);
    victim.hit(RIGHT, &[chunk(kind::ABORT, 0, &[])]);
    let many = vec![chunk(kind::SHUTDOWN_ACK, 0, &[]); 16_000];
    assert_eq!(names(&victim.hit(RIGHT, &many)), ["SHUTDOWN COMPLETE"]);
}

// 32.
#[test]
fn a_shutdown_acknowledges_nothing_that_was_never_sent() {
    for ahead in [2, 3, 1000, 1 << 20, 0x7fff_ffff, 0x8000_0000, 0xffff_0000] {
        let mut victim = Victim::up(1);
        victim.pair.send_full(LEFT, 2);
        let cumulative = victim.first_tsn(LEFT).plus(ahead);
        victim.hit(LEFT, &[chunk(kind::SHUTDOWN, 0, &cumulative.0.to_be_bytes())]);
        assert!(!victim.pair.ends[LEFT].is_flushed(), "{ahead} ahead");
        assert_eq!(
            *victim.state(LEFT),
            State::ShutdownReceived { path: PathId(0) },
            "{ahead} ahead"
        );
        assert!(victim.pair.view(LEFT, 0).in_flight > 0, "{ahead} ahead");
    }
}

// 33.
#[test]
fn after_its_shutdown_a_peer_gets_no_more_data_in_and_what_we_owe_it_still_goes() {
    let mut victim = Victim::up(1);
    victim.pair.send_full(LEFT, 2);
    let before = Serial32(victim.first_tsn(LEFT).0.wrapping_sub(1));
    let shutdown = chunk(kind::SHUTDOWN, 0, &before.0.to_be_bytes());
    assert_eq!(names(&victim.hit(LEFT, &[shutdown])), [] as [&str; 0]);
    assert_eq!(*victim.state(LEFT), State::ShutdownReceived { path: PathId(0) });
    let dot = data(victim.first_tsn(RIGHT), 0, 0, 3, b"late");
    assert_eq!(victim.hit(LEFT, &[dot]), []);
    assert_eq!(victim.pair.read_bytes(LEFT), 0);
    victim.pair.heal();
    victim.pair.run_for(Duration::from_secs(20));
    assert_eq!(victim.pair.read[RIGHT].len(), 2);
}

// 34.
#[test]
fn under_a_tag_that_is_not_ours_no_chunk_of_any_type_does_anything() {
    let mut victim = Victim::up(1);
    victim.pair.send_full(LEFT, 1);
    victim.pair.run_for(ms(50));
    let (ours, theirs) = victim.tags(LEFT);
    let before = victim.all(LEFT);
    for kind in 0..=255u8 {
        for body in [&[][..], &[0, 1, 0, 12, 1, 2, 3, 4], &[7; 20], &[0; 32]] {
            for tag in [0, 1, ours ^ 1, theirs, u32::MAX] {
                // T with the peer's tag is a different case, and so is an INIT with tag 0.
                let bytes = datagram(tag, &[chunk(kind, 0, body)]);
                if kind == kind::INIT && tag == 0 {
                    continue;
                }
                assert_eq!(victim.take(LEFT, 0, &bytes), [], "type {kind} under {tag:x}");
                assert_eq!(victim.all(LEFT), before, "type {kind} under {tag:x}");
            }
        }
    }
}
