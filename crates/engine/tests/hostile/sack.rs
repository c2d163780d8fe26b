//! Incorrect SACKs (RFC 9260, 3.3.4, 6.2.1, 7.2).

use ropewalk_base::{Duration, Serial32};
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::wire::DecodeError;
use ropewalk_engine::sctp::{AbortCause, Config};

use super::kit::{Victim, chunk, datagram, kind, live, names, read, sack};
use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, ms};

const WINDOW: u32 = 1 << 18;

/// The left end with `count` chunks in flight, none of them delivered, and the TSN before the first.
fn sending(count: usize) -> (Victim, Serial32) {
    let settings = Config { initial_window: Some(1 << 17), max_burst: 0, ..live(1, 1 << 18) };
    let mut victim = Victim::of(Pair::up(&settings, &[10]));
    victim.pair.send_full(LEFT, count);
    assert_eq!(victim.pair.log.len(), count, "all leave at once");
    let before = Serial32(victim.first_tsn(LEFT).0.wrapping_sub(1));
    (victim, before)
}

/// The network heals, and all chunks arrive.
fn finishes(victim: &mut Victim, count: usize, what: &str) {
    victim.pair.heal();
    victim.pair.run_for(Duration::from_secs(30));
    assert_eq!(*victim.state(LEFT), State::Established, "{what}");
    assert_eq!(victim.pair.read[RIGHT].len(), count, "{what}");
    assert!(victim.pair.ends[LEFT].is_flushed(), "{what}");
}

// 42.
#[test]
fn acknowledging_what_was_never_sent_ends_the_association_and_what_lies_behind_is_old() {
    for ahead in [11, 12, 65_535, 1 << 20, 0x7fff_fff0] {
        let (mut victim, before) = sending(10);
        let answers = victim.hit(LEFT, &[sack(before.plus(ahead), WINDOW, &[], 0)]);
        assert_eq!(names(&answers), ["ABORT"], "{ahead} ahead");
        let violation = CloseReason::Aborted(AbortCause::ProtocolViolation);
        assert_eq!(victim.pair.closed(LEFT), Some(violation), "{ahead} ahead");
    }
    for behind in [1u32, 2, 65_536, 0x7fff_fff0] {
        let (mut victim, before) = sending(10);
        let old = Serial32(before.0.wrapping_sub(behind));
        // 43: its window is ignored like the rest of it.
        assert_eq!(victim.hit(LEFT, &[sack(old, 0, &[(1, 9)], 0)]), [], "{behind} behind");
        assert_eq!(victim.pair.view(LEFT, 0).in_flight, 10 * u64::from(FULL + 16));
        finishes(&mut victim, 10, &format!("{behind} behind"));
    }
}

// 43.
#[test]
fn a_cumulative_tsn_that_goes_back_takes_nothing_back() {
    let (mut victim, before) = sending(10);
    victim.hit(LEFT, &[sack(before.plus(6), WINDOW, &[], 0)]);
    let flying = victim.pair.view(LEFT, 0).in_flight;
    assert_eq!(flying, 4 * u64::from(FULL + 16));
    for back in [5, 0, 1] {
        victim.hit(LEFT, &[sack(before.plus(back), 0, &[], 0)]);
        assert_eq!(victim.pair.view(LEFT, 0).in_flight, flying, "back to {back}");
    }
    // The six are lost permanently: the left end no longer has them.
    victim.pair.log.clear();
    victim.pair.run_for(Duration::from_secs(5));
    let sent = victim.pair.log.iter().flat_map(|sent| sent.data());
    let again: Vec<u32> = sent.map(|data| data.tsn.0.wrapping_sub(before.0)).collect();
    assert!(!again.is_empty() && again.iter().all(|tsn| *tsn > 6), "{again:?}");
    assert_eq!(*victim.state(LEFT), State::Established);
}

// 44.
#[test]
fn gap_blocks_that_are_reversed_zero_overlapping_descending_or_endless_are_not_believed() {
    let same = vec![(2, 9); 16_000];
    let tables: [(&str, &[(u16, u16)]); 6] = [
        ("reversed", &[(9, 2)]),
        ("zero", &[(0, 0)]),
        ("from zero", &[(0, 9)]),
        ("overlapping", &[(2, 5), (4, 8)]),
        ("descending", &[(8, 9), (5, 6), (2, 3)]),
        ("the same very often", &same),
    ];
    for (what, gaps) in tables {
        let (mut victim, before) = sending(10);
        for _ in 0..5 {
            victim.hit(LEFT, &[sack(before, WINDOW, gaps, 0)]);
        }
        assert_eq!(*victim.state(LEFT), State::Established, "{what}");
        finishes(&mut victim, 10, what);
    }
}

// 44.
#[test]
fn gap_blocks_for_what_was_never_sent_end_the_association_however_many_there_are() {
    let thousands: Vec<_> = (0..16_000u16).map(|i| (2 + 2 * i, 2 + 2 * i)).collect();
    let tables: [(&str, &[(u16, u16)]); 5] = [
        ("the next one", &[(2, 11)]),
        ("that alone", &[(11, 11)]),
        ("all that blocks can name", &[(2, u16::MAX)]),
        ("far beyond", &[(60_000, 60_001)]),
        ("very many", &thousands),
    ];
    for (what, gaps) in tables {
        let (mut victim, before) = sending(10);
        let answers = victim.hit(LEFT, &[sack(before, WINDOW, gaps, 0)]);
        assert_eq!(names(&answers), ["ABORT"], "{what}");
        let violation = CloseReason::Aborted(AbortCause::ProtocolViolation);
        assert_eq!(victim.pair.closed(LEFT), Some(violation), "{what}");
    }
    // The last TSN that was sent is valid.
    let (mut victim, before) = sending(10);
    victim.hit(LEFT, &[sack(before, WINDOW, &[(2, 10)], 0)]);
    finishes(&mut victim, 10, "all of it");
}

// 44. 49.
#[test]
fn counts_that_promise_more_than_there_is_make_a_sack_nothing() {
    let (gaps_at, duplicates_at) = (12, 14);
    for (at, count) in
        [(gaps_at, 1u16), (gaps_at, u16::MAX), (duplicates_at, 1), (duplicates_at, u16::MAX)]
    {
        let mut lying = sack(Serial32(5), WINDOW, &[], 0);
        lying[at..at + 2].copy_from_slice(&count.to_be_bytes());
        let malformed = DecodeError::Malformed { kind: kind::SACK, at: 12 };
        assert_eq!(read(&datagram(9, &[&lying])), Err(malformed), "{count} at {at}");
        let (mut victim, _) = sending(10);
        let before = victim.all(LEFT);
        assert_eq!(victim.hit(LEFT, &[&lying]), []);
        assert_eq!(victim.all(LEFT), before);
    }
}

// 49.
#[test]
fn duplicates_that_never_were_cost_nothing() {
    let (mut victim, before) = sending(10);
    let mut body = before.0.to_be_bytes().to_vec();
    body.extend(WINDOW.to_be_bytes());
    body.extend([0, 0]);
    body.extend(16_000u16.to_be_bytes());
    (0..16_000u32).for_each(|i| body.extend(i.wrapping_mul(77_777).to_be_bytes()));
    for _ in 0..20 {
        assert_eq!(victim.hit(LEFT, &[chunk(kind::SACK, 0, &body)]), []);
    }
    assert_eq!(victim.pair.view(LEFT, 0).in_flight, 10 * u64::from(FULL + 16));
    finishes(&mut victim, 10, "duplicates");
}

// 45.
#[test]
fn a_window_that_stays_shut_is_probed_by_one_chunk_at_a_time_and_a_huge_one_is_not_filled_at_once()
{
    let (mut victim, before) = sending(2);
    victim.hit(LEFT, &[sack(before.plus(2), 0, &[], 0)]);
    victim.pair.log.clear();
    for _ in 0..30 {
        victim.pair.queue(LEFT, 0, ropewalk_engine::Payload::Length(FULL), false);
    }
    victim.pair.drain(LEFT);
    for _ in 0..600 {
        victim.pair.run_for(ms(500));
        victim.hit(LEFT, &[sack(before.plus(2), 0, &[], 0)]);
    }
    assert_eq!(*victim.state(LEFT), State::Established, "a peer that answers is alive");
    let probes = victim.pair.count(LEFT, "DATA");
    assert!((5..100).contains(&probes), "{probes} in 300 s");
    let probe = |sent: &crate::driver::Sent| sent.data().all(|data| data.tsn == before.plus(3));
    assert!(victim.pair.log.iter().all(probe), "nothing but the next chunk leaves");
    // A window of 4 GiB opens the peer's window, not the congestion window.
    let mut victim = Victim::up(1);
    victim.pair.send_full(LEFT, 1);
    let first = victim.first_tsn(LEFT);
    victim.hit(LEFT, &[sack(first, u32::MAX, &[], 0)]);
    let room = victim.pair.view(LEFT, 0).cwnd;
    victim.pair.log.clear();
    victim.pair.send_full(LEFT, 40);
    let flying = victim.pair.view(LEFT, 0).in_flight;
    assert!(flying < room + u64::from(FULL + 16), "{flying} B through a window of {room} B");
}

// 46.
#[test]
fn many_sacks_for_what_one_could_acknowledge_open_the_window_no_further() {
    let grown = |congestion: &'static str, acks: &[u32]| {
        let mut live = live(1, 1 << 18);
        live.sack.on_request = false;
        let settings = Config { congestion, max_burst: 0, ..live };
        let mut victim = Victim::of(Pair::up(&settings, &[10]));
        victim.pair.send_full(LEFT, 40);
        let before = Serial32(victim.first_tsn(LEFT).0.wrapping_sub(1));
        let window = victim.pair.view(LEFT, 0).cwnd;
        for ack in acks {
            victim.hit(LEFT, &[sack(before.plus(*ack), WINDOW, &[], 0)]);
        }
        victim.pair.view(LEFT, 0).cwnd - window
    };
    let unit = u64::from(FULL + 16);
    assert!(grown("rfc9260", &[3]) <= unit, "one SACK, one unit");
    // Three chunks are in flight. Each is acknowledged separately, and each SACK arrives a hundred times.
    let split: Vec<u32> = [1, 2, 3].into_iter().flat_map(|ack| [ack; 100]).collect();
    for congestion in ["rfc9260", "cubic", "bbr"] {
        assert_eq!(grown(congestion, &split), grown(congestion, &[1, 2, 3]), "{congestion}");
        assert!(grown(congestion, &split) <= 3 * unit, "{congestion}: more than was acknowledged");
    }
}

// 47.
#[test]
fn a_peer_that_takes_back_what_it_had_a_thousand_times_gets_it_all_in_the_end() {
    let (mut victim, before) = sending(10);
    for i in 0..1000u32 {
        let gaps: &[(u16, u16)] = if i % 2 == 0 { &[(2, 10)] } else { &[] };
        victim.hit(LEFT, &[sack(before, WINDOW, gaps, 0)]);
        victim.pair.run_for(ms(1));
    }
    // Data that it had withdrawn may be reported again.
    victim.hit(LEFT, &[sack(before, WINDOW, &[(2, 10)], 0)]);
    let sent = victim.pair.count(LEFT, "DATA");
    assert!(sent < 10 * 520, "{sent} transmissions of ten chunks");
    victim.hit(LEFT, &[sack(before, WINDOW, &[], 0)]);
    finishes(&mut victim, 10, "after reneging");
    let settings = live(1, 1 << 18);
    let mut pair = Pair::up(&settings, &[10]);
    pair.script(|sent| if sent.sack().is_some() { Fate::Late(ms(70)) } else { Fate::Arrive });
    pair.send_full(LEFT, 50);
    pair.run_for(Duration::from_secs(30));
    assert_eq!(pair.read[RIGHT].len(), 50, "and old SACKs that overtake nothing harm nobody");
}

// 48.
#[test]
fn an_nr_sack_that_was_not_agreed_on_acknowledges_nothing() {
    let nr_sack = |cumulative: Serial32, gaps: &[(u16, u16)], kept: &[(u16, u16)]| {
        let mut body = cumulative.0.to_be_bytes().to_vec();
        body.extend(WINDOW.to_be_bytes());
        for count in [gaps.len(), kept.len(), 0, 0] {
            body.extend((count as u16).to_be_bytes());
        }
        for (start, end) in gaps.iter().chain(kept) {
            body.extend(start.to_be_bytes());
            body.extend(end.to_be_bytes());
        }
        chunk(0x10, 0, &body)
    };
    let (mut victim, before) = sending(10);
    for (cumulative, gaps, kept) in [
        (before.plus(10), &[][..], &[][..]),
        (before, &[(2, 5)], &[(2, 5)]),
        (before, &[], &[(2, 60_000)]),
        (before.plus(5000), &[(1, 1)], &[]),
    ] {
        assert_eq!(victim.hit(LEFT, &[nr_sack(cumulative, gaps, kept)]), []);
        assert_eq!(victim.pair.view(LEFT, 0).in_flight, 10 * u64::from(FULL + 16));
    }
    finishes(&mut victim, 10, "NR-SACK");
}
