//! The peer's window: closed, reopened, probed. Also withdrawn chunks and SACKs that overtake each other.

use ropewalk_base::{Duration, Serial32};
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{
    Chunk, Config, Event, GapBlock, GapList, Packet, PathConfig, Preset, Sack,
};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, config, ms, numbered};

fn fill(pair: &mut Pair) {
    while pair.ends[LEFT].send_room() > 0 {
        pair.queue(LEFT, 0, ropewalk_engine::Payload::Length(FULL), false);
    }
    pair.drain(LEFT);
}

/// Number of chunks sent while the first one was lost and not retransmitted yet, through a window of ten.
fn past_a_hole(unordered: bool) -> usize {
    let mut settings = config(1, 10 * 1468);
    settings.initial_window = Some(1 << 20);
    settings.send_buffer = 1 << 20;
    let mut pair = Pair::up(&settings, &[10]);
    pair.script(|sent| {
        let first = sent.data().any(|data| data.payload == numbered(FULL, 0));
        if first { Fate::Drop } else { Fate::Arrive }
    });
    for salt in 0..100 {
        pair.queue(LEFT, 0, numbered(FULL, salt), unordered);
    }
    pair.drain(LEFT);
    pair.run_for(ms(1000));
    let (held, free) = pair.ends[RIGHT].receive_occupancy();
    assert!(held + free <= 10 * 1468);
    pair.read[RIGHT].len()
}

#[test]
fn what_the_user_has_takes_no_room_so_unordered_messages_go_on_past_a_hole() {
    assert_eq!(past_a_hole(false), 0, "all wait for the first");
    assert_eq!(past_a_hole(true), 99, "all but the first have come");
}

#[test]
fn ordered_and_unordered_messages_share_a_small_window_and_all_arrive() {
    for (settings, delays) in
        [(config(1, 6 * 1468), vec![10]), (config(3, 12 * 1468), vec![10, 150, 40])]
    {
        let mut pair = Pair::up(&settings, &delays);
        let mut count = 0u32;
        pair.script(move |sent| {
            count += 1;
            let hit = sent.data().next().is_some() && count.is_multiple_of(9);
            if hit { Fate::Drop } else { Fate::Arrive }
        });
        for salt in 0..400u32 {
            while pair.ends[LEFT].send_room() == 0 {
                pair.run_for(ms(100));
            }
            let size =
                if salt.is_multiple_of(7) { 3 * FULL } else { 1 + salt.wrapping_mul(97) % FULL };
            pair.queue(LEFT, 0, numbered(size, salt), !salt.is_multiple_of(3));
            pair.drain(LEFT);
        }
        pair.run_for(Duration::from_secs(300));
        assert_eq!(pair.read[RIGHT].len(), 400, "{} paths", delays.len());
        assert!(pair.ends[LEFT].is_flushed());
    }
}

/// A pair whose reader does not read, until the window is closed.
fn closed(settings: &Config, delays: &[u64]) -> Pair {
    let mut pair = Pair::up(settings, delays);
    pair.reads[RIGHT] = false;
    fill(&mut pair);
    pair.run_for(ms(3000));
    let (held, free) = pair.ends[RIGHT].receive_occupancy();
    assert!(held == 0 && free < 2 * 1468, "{held} held, {free} free");
    pair
}

#[test]
pub fn a_reader_that_wakes_up_reopens_the_window_even_if_the_update_is_lost() {
    for lose_update in [false, true] {
        for paths in [1, 2] {
            let mut pair = closed(&config(paths, 20_000), &[10, 40][..paths]);
            pair.log.clear();
            if lose_update {
                let mut first = true;
                pair.script(move |sent| {
                    let update = sent.from == RIGHT && sent.sack().is_some();
                    if update && std::mem::take(&mut first) { Fate::Drop } else { Fate::Arrive }
                });
            }
            pair.reads[RIGHT] = true;
            pair.drain(RIGHT);
            assert!(pair.log.iter().any(|s| s.sack().is_some()), "a window update, at once");
            pair.run_for(if lose_update { ms(20_000) } else { ms(1500) });
            assert!(pair.ends[LEFT].is_flushed(), "{paths} paths, update lost: {lose_update}");
            assert!(pair.ends[RIGHT].receive_stats().refused <= 20);
        }
    }
}

#[test]
pub fn a_shut_window_is_probed_with_one_chunk_at_a_time_for_as_long_as_it_takes() {
    for preset in [Preset::Rfc9260, Preset::Paper2013] {
        for paths in [1, 2] {
            let settings = Config::preset(preset, vec![PathConfig::default(); paths], 20_000);
            let mut pair = closed(&settings, &[10, 40][..paths]);
            pair.log.clear();
            let before = pair.read[RIGHT].len();
            pair.run_for(Duration::from_secs(1200));
            let what = format!("{preset:?}, {paths} paths");
            let probes = pair.data_times(LEFT);
            assert!((5..=1200).contains(&probes.len()), "{what}: {} probes", probes.len());
            // One per timeout of at least a second. RFC 9260, 6.1 A: a peer that answers is reachable,
            // however long its window is closed.
            assert_eq!(pair.closed(LEFT), None, "{what}");
            pair.reads[RIGHT] = true;
            pair.drain(RIGHT);
            pair.run_for(Duration::from_secs(70));
            assert!(pair.ends[LEFT].is_flushed(), "{what}");
            assert!(pair.read[RIGHT].len() > before);
        }
    }
}

/// A pair with a preset of sockets at both ends, whose reader has not read for some seconds.
fn shut_socket(preset: Preset, delays: &[u64]) -> Pair {
    let mut settings = Config::preset(preset, vec![PathConfig::default(); delays.len()], 20_000);
    settings.mtu_discovery = None;
    settings.ecn = false;
    closed(&settings, delays)
}

#[test]
fn probes_of_a_shut_window_wait_for_a_timeout_and_then_twice_as_long_each_time() {
    for (preset, least) in
        [(Preset::Rfc9260, 1000), (Preset::Live, 250), (Preset::LiveRfc9260, 1000)]
    {
        // A round trip of zero, and one of 20 ms.
        for delay in [0, 10] {
            let mut settings = Config::preset(preset, vec![PathConfig::default()], 20_000);
            settings.mtu_discovery = None;
            let mut pair = Pair::up(&settings, &[delay]);
            pair.reads[RIGHT] = false;
            fill(&mut pair);
            let windows = pair.view(LEFT, 0).cwnd;
            pair.run_for(ms(200_000));
            let what = format!("{preset:?}, {delay} ms");
            let chunk = settings.chunk_limit();
            let shut_at = pair.log.iter().find(|s| s.sack().is_some_and(|s| s.window < chunk));
            let shut_at = shut_at.expect("a SACK").at + ms(delay);
            let probes: Vec<_> =
                pair.data_times(LEFT).into_iter().filter(|at| *at > shut_at).collect();
            assert!(probes.len() >= 5, "{what}: {probes:?}");
            let first = probes[0].since(shut_at);
            assert!(first >= ms(least), "{what}: the first one after {first:?}");
            let waits: Vec<_> = probes.windows(2).map(|pair| pair[1].since(pair[0])).collect();
            assert!(waits[0] >= ms(2 * least), "{what}: {waits:?}");
            for wait in waits.windows(2) {
                assert_eq!(wait[1], (wait[0] * 2).min(settings.rto.max), "{what}: {waits:?}");
            }
            // 6.1 A: no error, and no change of the congestion window.
            assert!(pair.events[LEFT].iter().all(|(_, e)| !matches!(e, Event::PathChanged(..))));
            assert!(pair.view(LEFT, 0).cwnd >= windows, "{what}");
        }
    }
}

#[test]
fn a_window_that_opens_while_a_probe_is_on_its_way_does_not_wait_for_the_next_one() {
    let mut pair = shut_socket(Preset::Live, &[100]);
    pair.run_for(Duration::from_secs(100));
    pair.log.clear();
    while pair.data_times(LEFT).is_empty() {
        pair.run_for(ms(10));
    }
    // The probe is lost, and the window opens: repaired within round trips, without waiting a minute for
    // the next probe.
    pair.reads[RIGHT] = true;
    pair.drain(RIGHT);
    pair.run_for(ms(3000));
    assert!(pair.ends[LEFT].is_flushed());
}

#[test]
fn a_peer_that_vanishes_behind_a_shut_window_is_noticed() {
    for preset in [Preset::Live, Preset::LiveRfc9260] {
        let mut pair = shut_socket(preset, &[10, 10]);
        pair.script(|_| Fate::Drop);
        pair.run_for(Duration::from_secs(3600));
        assert_eq!(pair.closed(LEFT), Some(CloseReason::Unreachable), "{preset:?}");
    }
}

#[test]
pub fn the_receive_buffer_never_holds_more_than_it_may() {
    for kb in [3, 5, 20] {
        let mut pair = Pair::up(&config(2, kb * 1000), &[5, 100]);
        for round in 0..40 {
            pair.reads[RIGHT] = round % 4 == 3;
            fill(&mut pair);
            pair.drain(RIGHT);
            pair.run_for(ms(200));
            let (held, free) = pair.ends[RIGHT].receive_occupancy();
            assert!(held + free <= kb * 1000);
        }
        assert!(pair.read_bytes(RIGHT) > 0);
    }
}

/// Ten chunks in flight, none of them delivered; the tag of packets to the left and the TSN before the
/// first.
fn ten_on_their_way() -> (Pair, u32, u32) {
    let mut settings = config(2, 1 << 20);
    settings.initial_window = Some(100_000);
    settings.max_burst = 0;
    let mut pair = Pair::up(&settings, &[10, 100]);
    pair.send_full(LEFT, 2);
    pair.run_for(ms(500));
    let sack = pair.log.iter().find(|s| s.sack().is_some()).expect("a SACK");
    let tag = sack.packet.tag;
    pair.log.clear();
    pair.script(|sent| if sent.from == RIGHT { Fate::Arrive } else { Fate::Drop });
    pair.send_full(LEFT, 10);
    assert_eq!(pair.log.len(), 10, "all leave at once");
    let sent = pair.log.iter().flat_map(|s| s.data()).map(|d| d.tsn.0);
    let before = sent.min().expect("data").wrapping_sub(1);
    (pair, tag, before)
}

fn sack(before: u32, cumulative: u32, gaps: &[(u16, u16)], window: u32) -> Chunk {
    let cumulative = Serial32(before.wrapping_add(cumulative));
    Chunk::Sack(Sack {
        cumulative,
        window,
        gaps: GapList::from_offsets(
            cumulative,
            gaps.iter().map(|(start, end)| GapBlock { start: *start, end: *end }),
        ),
        duplicates: Vec::new(),
        data_packets: 0,
        number: None,
    })
}

#[test]
pub fn chunks_that_the_peer_gives_back_are_sent_again() {
    let (mut pair, tag, before) = ten_on_their_way();
    pair.inject(LEFT, 0, Packet::of(tag, sack(before, 2, &[(2, 8)], 1 << 20)));
    // Chunk 3 arrives, but the peer no longer has the chunks beyond it.
    pair.heal();
    pair.log.clear();
    pair.inject(LEFT, 0, Packet::of(tag, sack(before, 3, &[], 1 << 20)));
    let again: Vec<_> =
        pair.log.iter().flat_map(|s| s.data()).map(|d| d.tsn.0.wrapping_sub(before)).collect();
    assert!(again.contains(&4), "sent again: {again:?}");
}

#[test]
pub fn a_sack_that_comes_late_changes_nothing() {
    let (mut pair, tag, before) = ten_on_their_way();
    pair.inject(LEFT, 0, Packet::of(tag, sack(before, 4, &[(2, 4)], 1 << 20)));
    pair.log.clear();
    let flying = |pair: &Pair| [0, 1].map(|p| pair.view(LEFT, p).in_flight);
    let windows = |pair: &Pair| [0, 1].map(|p| pair.view(LEFT, p).cwnd);
    let (before_flying, before_windows) = (flying(&pair), windows(&pair));
    for (cumulative, gaps) in
        [(0, &[(2, 4)][..]), (2, &[]), (3, &[(2, 5)]), (4, &[]), (4, &[(2, 2)])]
    {
        pair.inject(LEFT, 1, Packet::of(tag, sack(before, cumulative, gaps, 0)));
    }
    assert_eq!(flying(&pair), before_flying);
    assert_eq!(windows(&pair), before_windows);
    let data = pair.log.iter().filter(|s| s.data().next().is_some()).count();
    assert_eq!(data, 0, "nothing was taken for lost");
    assert_eq!(pair.closed(LEFT), None);
}

/// Fills the window of an end after five missing chunks, then sends these. Returns the number of messages
/// that it reads.
fn read_after_five_that_were_late(headroom: u32) -> usize {
    let chunks = 40;
    let settings =
        Config { window_headroom: headroom, ..config(1, 1468 * chunks + u64::from(headroom)) };
    let mut pair = Pair::up(&settings, &[10]);
    pair.send(LEFT, FULL);
    pair.run_for(ms(500));
    let sent = pair.log.iter().find_map(|sent| sent.data().next().cloned()).expect("it left");
    let (first, tag) = (sent.tsn, pair.ends[RIGHT].tags().0);
    // The messages are ordered, so none leaves the buffer before the first chunk has arrived.
    for at in (6..=5 + chunks as u16).chain(1..=5) {
        let mut data = sent.clone();
        (data.tsn, data.ssn) = (first.plus(at.into()), sent.ssn.plus(at));
        pair.inject(RIGHT, 0, Packet::of(tag, Chunk::Data(data)));
    }
    pair.run_for(ms(500));
    pair.read[RIGHT].len() - 1
}

#[test]
fn with_headroom_late_data_of_a_full_window_drops_nothing() {
    assert_eq!(read_after_five_that_were_late(5 * 1468), 45);
    // Without headroom, chunks with the highest TSNs are dropped to make room, and must be retransmitted.
    assert!(read_after_five_that_were_late(0) < 45);
}

#[test]
fn with_headroom_the_window_never_closes_for_good_whatever_the_length_of_messages() {
    for length in [1, 16, 100, FULL, 5 * FULL] {
        for headroom in [1, 5 * 1468, 10 * 1468, 1 << 20] {
            let small = config(1, 20 * 1468);
            let settings = Config { window_headroom: headroom, send_buffer: 1 << 24, ..small };
            let mut pair = Pair::up(&settings, &[10]);
            for salt in 0..500 {
                pair.queue(LEFT, 0, numbered(length, salt), salt % 3 == 0);
            }
            pair.drain(LEFT);
            pair.run_for(Duration::from_secs(300));
            assert_eq!(pair.read[RIGHT].len(), 500, "{length} B, headroom of {headroom} B");
        }
    }
}
