//! Incorrect NR-SACKs to an end that has negotiated them (draft-natarajan-tsvwg-sctp-nrsack-08, 4).

use std::collections::BTreeSet;

use ropewalk_base::{Duration, Rng, Seed, Serial32};
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{AbortCause, Config, Extensions, Negotiation};

use super::kit::{Victim, chunk, live, names, sack};
use crate::driver::{FULL, LEFT, Pair, RIGHT};

const WINDOW: u32 = 1 << 18;
const CHUNK: u64 = FULL as u64 + 16;

/// An NR-SACK with these offsets. `duplicates`: the number of duplicates, which do not follow.
pub fn nr_sack(
    cumulative: Serial32,
    gaps: &[(u16, u16)],
    kept: &[(u16, u16)],
    duplicates: u16,
) -> Vec<u8> {
    let mut body = cumulative.0.to_be_bytes().to_vec();
    body.extend(WINDOW.to_be_bytes());
    for count in [gaps.len() as u16, kept.len() as u16, duplicates, 0] {
        body.extend(count.to_be_bytes());
    }
    for (start, end) in gaps.iter().chain(kept) {
        body.extend([start.to_be_bytes(), end.to_be_bytes()].concat());
    }
    chunk(0x10, 0, &body)
}

/// The left end with `count` chunks in flight, none of them delivered, and the TSN before the first.
fn sending(count: usize) -> (Victim, Serial32) {
    let settings = Config {
        initial_window: Some(1 << 17),
        max_burst: 0,
        nr_sack: true,
        negotiation: Negotiation::Listed(Extensions::NONE),
        ..live(1, 1 << 18)
    };
    let mut victim = Victim::of(Pair::up(&settings, &[10]));
    victim.pair.send_full(LEFT, count);
    assert_eq!(victim.pair.log.len(), count, "all leave at once");
    let before = Serial32(victim.first_tsn(LEFT).0.wrapping_sub(1));
    (victim, before)
}

fn flying(victim: &Victim) -> u64 {
    victim.pair.view(LEFT, 0).in_flight / CHUNK
}

/// Chunks that the send buffer charges in full.
fn charged(victim: &Victim) -> u64 {
    let end = &victim.pair.ends[LEFT];
    (end.config().send_buffer - end.send_room()) / CHUNK
}

fn ends_by_violation(victim: &mut Victim, chunk: Vec<u8>, what: &str) {
    assert_eq!(names(&victim.hit(LEFT, &[chunk])), ["ABORT"], "{what}");
    let violation = CloseReason::Aborted(AbortCause::ProtocolViolation);
    assert_eq!(victim.pair.closed(LEFT), Some(violation), "{what}");
}

// 48.
#[test]
fn what_was_never_sent_ends_the_association_in_either_list() {
    for (ahead, gaps, kept) in [
        (11, &[][..], &[][..]),
        (0, &[(2, 11)], &[]),
        (0, &[], &[(2, 11)]),
        (5, &[], &[(6, 6)]),
        (0, &[(2, 3)], &[(5, 5), (60_000, 60_001)]),
        (0x7fff_fff0, &[], &[]),
    ] {
        let (mut victim, before) = sending(10);
        let chunk = nr_sack(before.plus(ahead), gaps, kept, 0);
        ends_by_violation(&mut victim, chunk, &format!("{ahead} {gaps:?} {kept:?}"));
    }
}

// 48.
#[test]
fn a_promise_that_is_broken_ends_the_association() {
    let (mut victim, before) = sending(10);
    victim.hit(LEFT, &[nr_sack(before.plus(1), &[], &[(3, 5)], 0)]);
    assert_eq!((flying(&victim), charged(&victim)), (6, 6));
    // The promised chunks are not listed, as in an old or a short report. They are not retransmitted.
    victim.hit(LEFT, &[nr_sack(before.plus(1), &[], &[], 0)]);
    victim.hit(LEFT, &[nr_sack(before.plus(2), &[], &[], 0)]);
    assert_eq!((flying(&victim), victim.state(LEFT)), (5, &State::Established));
    // All chunks before them have arrived, but they have not: they are lost permanently.
    let chunk = nr_sack(before.plus(3), &[(3, 3)], &[], 0);
    ends_by_violation(&mut victim, chunk, "withdrawn");
}

// 48.
#[test]
fn lists_that_overlap_or_are_out_of_order_count_as_far_as_they_make_sense() {
    for (gaps, kept, left, full) in [
        // A chunk in both lists is non-renegable.
        (&[(2, 5)][..], &[(4, 6)][..], 5, 7),
        (&[(2, 5)], &[(2, 5)], 6, 6),
        // The rest of a list that is not ascending is ignored.
        (&[(5, 6), (2, 3)], &[(8, 8)], 7, 9),
        (&[(8, 8)], &[(5, 6), (2, 3)], 7, 8),
        (&[], &[(9, 3)], 10, 10),
        (&[], &[(0, 4)], 10, 10),
        // A chunk next to the cumulative TSN would be covered by it, so it is not freed.
        (&[], &[(1, 4)], 10, 7),
    ] {
        let (mut victim, before) = sending(10);
        let answers = victim.hit(LEFT, &[nr_sack(before, gaps, kept, 0)]);
        assert!(!names(&answers).contains(&"ABORT"), "{gaps:?} {kept:?}");
        let found = charged(&victim);
        assert_eq!(found, full, "{gaps:?} {kept:?}");
        if left < 10 {
            assert_eq!(flying(&victim), left, "{gaps:?} {kept:?}");
        }
    }
}

// 48. 49.
#[test]
fn counts_beyond_the_length_are_no_nr_sack() {
    let (mut victim, before) = sending(10);
    let whole = nr_sack(before, &[(2, 3)], &[(5, 5)], 0);
    for cut in 4..whole.len() {
        let mut short = whole[..cut].to_vec();
        short[2..4].copy_from_slice(&(cut as u16).to_be_bytes());
        short.resize(cut.next_multiple_of(4), 0);
        victim.hit(LEFT, &[short]);
        assert_eq!((flying(&victim), charged(&victim)), (10, 10), "{cut} B");
    }
    victim.hit(LEFT, &[nr_sack(before, &[(2, 3)], &[(5, 5)], 1)]);
    assert_eq!(flying(&victim), 10);
    assert_eq!(*victim.state(LEFT), State::Established);
}

/// As sent by some stacks without non-renegable data.
#[test]
fn a_sack_is_accepted_where_nr_sacks_were_agreed_on() {
    let (mut victim, before) = sending(10);
    victim.hit(LEFT, &[sack(before, WINDOW, &[(2, 5)], 0)]);
    assert_eq!((flying(&victim), charged(&victim)), (6, 10));
    victim.hit(LEFT, &[nr_sack(before, &[], &[(2, 5)], 0)]);
    assert_eq!((flying(&victim), charged(&victim)), (6, 6));
    victim.hit(LEFT, &[sack(before.plus(10), WINDOW, &[], 0)]);
    assert!(victim.pair.ends[LEFT].is_flushed());
}

fn blocks(rng: &mut Rng) -> Vec<(u16, u16)> {
    let (mut at, mut list) = (rng.below(4) as u16, Vec::new());
    for _ in 0..rng.below(5) {
        let end = at + rng.below(4) as u16;
        list.push((at, end));
        at = if rng.chance(0.1) { rng.below(20) as u16 } else { end + 1 + rng.below(4) as u16 };
    }
    list
}

/// Promises further chunks of thirty. The cumulative TSN passes promised chunks that follow it. Returns
/// it, and the blocks of the promised chunks beyond.
fn keep_promises(
    rng: &mut Rng,
    mut cumulative: u32,
    promised: &mut BTreeSet<u32>,
) -> (u32, Vec<(u16, u16)>) {
    let further = (0..rng.below(3)).map(|_| cumulative + 2 + rng.below(6) as u32);
    promised.extend(further.filter(|tsn| *tsn <= 30));
    while promised.contains(&(cumulative + 1)) {
        cumulative += 1;
    }
    promised.retain(|tsn| *tsn > cumulative);
    let offsets = promised.iter().map(|tsn| (tsn - cumulative) as u16);
    (cumulative, offsets.map(|offset| (offset, offset)).collect())
}

/// Random reports about thirty chunks. In every second case the peer keeps its promises. Whatever the
/// reports say, an end that is still up after them and then gets all data acknowledged is flushed.
#[test]
fn random_reports_break_nothing() {
    let (mut aborted, mut finished) = (0, 0);
    for case in 0..400 {
        let mut rng = Seed::root(case).child("reports").rng();
        let (mut victim, before) = sending(30);
        let (mut cumulative, mut promised) = (0u32, BTreeSet::new());
        for _ in 0..12 {
            cumulative += rng.below(3) as u32;
            let (mut gaps, mut kept) = (blocks(&mut rng), blocks(&mut rng));
            if case % 2 == 0 {
                (cumulative, kept) = keep_promises(&mut rng, cumulative, &mut promised);
                gaps.retain(|(first, last)| *first > 1 && u32::from(*last) + cumulative <= 30);
            }
            let back = if rng.chance(0.2) { rng.below(3) as u32 } else { 0 };
            let at = before.plus(cumulative).0.wrapping_sub(back);
            victim.hit(LEFT, &[nr_sack(Serial32(at), &gaps, &kept, 0)]);
            // The same to an end that has sent nothing: all reported TSNs do not exist.
            if rng.chance(0.05) {
                victim.hit(RIGHT, &[nr_sack(Serial32(at), &gaps, &kept, 0)]);
            }
            victim.pair.run_for(Duration::from_millis(rng.below(300)));
            if matches!(victim.state(LEFT), State::Ended(_)) {
                break;
            }
            let (charged, flying) = (charged(&victim), flying(&victim));
            // A chunk may be in flight twice, because a tail loss probe repeats it.
            assert!(charged <= 30 && flying <= 60, "case {case}: {charged} {flying}");
        }
        if matches!(victim.state(LEFT), State::Ended(_)) {
            aborted += 1;
            continue;
        }
        victim.hit(LEFT, &[nr_sack(before.plus(30), &[], &[], 0)]);
        assert!(victim.pair.ends[LEFT].is_flushed(), "case {case}");
        assert_eq!((flying(&victim), charged(&victim)), (0, 0), "case {case}");
        finished += 1;
    }
    assert!(aborted > 20 && finished > 20, "{aborted} aborted, {finished} finished");
}
