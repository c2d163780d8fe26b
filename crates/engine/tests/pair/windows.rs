//! Silly windows (RFC 9260, 6.1 A and 6.2; RFC 1122, 4.2.3.3 and 4.2.3.4), the number of gap blocks
//! (6.2), initial windows (7.2.1), and windows on idle paths and new routes (7.2.1, 7.2.5.2).

use ropewalk_base::{Duration, PathId, Serial16, Serial32, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::path::MtuRange;
use ropewalk_engine::sctp::{
    Chunk, Config, Data, DataFlags, Packet, PathConfig, Preset, Sack, SackOptions,
};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, config, ms, preset_config};

/// The right edges of the windows that the SACKs advertise, according to the sender's ledger.
fn edges(pair: &Pair) -> Vec<u64> {
    let first = pair.ends[RIGHT].peer_initial_tsn().expect("it is up");
    let size = |tsn: u32| -> u64 {
        let mut sent = pair.log.iter().filter(|s| s.from == LEFT).flat_map(|s| s.data());
        let chunk = sent.find(|data| data.tsn.0 == tsn);
        chunk.map_or(0, |data| u64::from(Data::wire_len_of(data.payload.len())))
    };
    let edge = |sack: &Sack| {
        let count = sack.cumulative.0.wrapping_sub(first.0).wrapping_add(1);
        let acked: u64 = (0..count).map(|ahead| size(first.0.wrapping_add(ahead))).sum();
        acked + u64::from(sack.window)
    };
    pair.log.iter().filter(|s| s.from == RIGHT).filter_map(|s| s.sack()).map(edge).collect()
}

#[test]
pub fn the_right_edge_of_the_window_moves_by_a_full_chunk_or_not_at_all() {
    let buffer = 20_000;
    for size in [700, 1000, FULL] {
        let mut pair = Pair::up(&config(1, buffer), &[10]);
        pair.reads[RIGHT] = false;
        let mut read = 0;
        for _ in 0..400 {
            if pair.ends[LEFT].send_room() > 0 {
                pair.send(LEFT, size);
            }
            pair.run_for(ms(30));
            // A reader that is slower than the network: one message at a time.
            let now = pair.now;
            if pair.ends[RIGHT].read(now).is_some() {
                read += 1;
            }
            pair.drain(RIGHT);
        }
        assert!(read > 300, "{size} B: {read} messages");
        let edges = edges(&pair);
        let steps: Vec<_> = edges.windows(2).map(|two| two[1].saturating_sub(two[0])).collect();
        let silly: Vec<_> = steps.iter().filter(|step| (1..1468).contains(*step)).collect();
        assert!(silly.is_empty(), "{size} B: {silly:?}");
        assert!(steps.iter().any(|step| *step > 0), "{size} B");
        assert!(edges.windows(2).all(|two| two[1] >= two[0]), "{size} B: the window shrinks");
    }
}

#[test]
pub fn no_chunk_is_cut_to_fit_a_small_window() {
    let mut pair = Pair::up(&config(1, 1 << 18), &[10]);
    pair.script(|_| Fate::Drop);
    let first = pair.ends[RIGHT].peer_initial_tsn().expect("it is up");
    let tag = pair.ends[LEFT].tags().0;
    let sack = |ahead: u32, window: u32| {
        let cumulative = Serial32(first.0.wrapping_add(ahead).wrapping_sub(1));
        let (gaps, duplicates) = (Default::default(), Vec::new());
        Packet::of(
            tag,
            Chunk::Sack(Sack {
                cumulative,
                window,
                gaps,
                duplicates,
                data_packets: 0,
                number: None,
            }),
        )
    };
    pair.inject(LEFT, 0, sack(0, 0));
    pair.send(LEFT, 10 * FULL);
    // The window opens by a little more each time, and all sent data is acknowledged.
    for window in [100, 600, 1000, 1467] {
        pair.log.clear();
        pair.inject(LEFT, 0, sack(0, window));
        assert_eq!(pair.count(LEFT, "DATA"), 0, "a window of {window} B");
    }
    pair.inject(LEFT, 0, sack(0, 1468));
    let sizes: Vec<_> =
        pair.log.iter().flat_map(|sent| sent.data()).map(|d| d.payload.len()).collect();
    assert_eq!(sizes, [FULL]);
}

/// An end whose paths carry 1500 B, but start with less, and whose buffer has many holes. Returns its
/// last SACK.
fn full_of_holes(preset: Preset) -> Sack {
    let settings = Config {
        mtu_discovery: Some(MtuRange { least: 576, base: 1280, most: 1500 }),
        ..preset_config(preset, 1, 1 << 20)
    };
    let mut pair = Pair::up(&settings, &[10]);
    pair.run_for(ms(500));
    assert_eq!(pair.ends[RIGHT].path_mtu(PathId(0)), 1500);
    pair.script(|_| Fate::Drop);
    let first = pair.ends[RIGHT].peer_initial_tsn().expect("it is up");
    let tag = pair.ends[RIGHT].tags().0;
    for hole in 0..1000 {
        let data = Data {
            tsn: first.plus(1 + 2 * hole),
            stream: StreamId(0),
            ssn: Serial16(1 + 2 * hole as u16),
            ppid: 0,
            flags: DataFlags::WHOLE,
            payload: Payload::Length(10),
            message_high: 0,
            first_sent: Time::ZERO,
        };
        pair.inject(RIGHT, 0, Packet::of(tag, Chunk::Data(data)));
    }
    pair.log.iter().filter_map(|sent| sent.sack()).next_back().expect("a SACK").clone()
}

#[test]
fn a_sack_has_as_many_gap_blocks_as_its_packet_has_room_for() {
    let fit = |mtu: usize| (mtu - 20 - 12 - 16) / 4;
    assert_eq!(full_of_holes(Preset::LiveRfc9260).gaps.len(), fit(1500));
    // A documented deviation: limited to the base MTU.
    assert_eq!(full_of_holes(Preset::Live).gaps.len(), fit(1280));
}

#[test]
fn sacks_are_never_delayed_by_more_than_half_a_second() {
    for (asked, waits) in [(100, 100), (500, 500), (501, 500), (3000, 500)] {
        let settings = config(1, 1 << 18);
        let sack = SackOptions { delay: ms(asked), ..settings.sack };
        let mut pair = Pair::up(&Config { sack, ..settings }, &[10]);
        pair.greet();
        let since = pair.now;
        pair.send(LEFT, 100);
        pair.run_for(ms(2000));
        let left = pair.log.iter().find(|sent| sent.sack().is_some()).expect("a SACK");
        assert_eq!(left.at.since(since), ms(10 + waits), "{asked} ms");
    }
}

#[test]
fn the_first_window_to_an_ipv6_address_is_three_packets_of_ipv6() {
    for (ipv6, window) in [(false, 4404), (true, 4344)] {
        let settings = preset_config(Preset::LiveRfc9260, 1, 1 << 18);
        let paths = vec![PathConfig { ipv6, ..PathConfig::default() }];
        let pair = Pair::up(&Config { paths, ..settings }, &[10]);
        assert_eq!(pair.view(LEFT, 0).cwnd, window);
    }
    // Also a path that is added later.
    let mut pair = Pair::up(&preset_config(Preset::LiveRfc9260, 1, 1 << 18), &[10]);
    let now = pair.now;
    let six = PathConfig { ipv6: true, ..PathConfig::default() };
    pair.ends[LEFT].add_path(now, six).expect("room");
    assert_eq!(pair.view(LEFT, 1).cwnd, 4344);
    assert_eq!(pair.view(LEFT, 0).cwnd, 4404);
}

/// A sender whose window has grown to more than 40 chunks.
fn grown(preset: Preset) -> Pair {
    let mut pair = Pair::up(&Config { max_burst: 0, ..preset_config(preset, 1, 1 << 20) }, &[10]);
    for _ in 0..100 {
        while pair.ends[LEFT].send_room() > 0 {
            pair.queue(LEFT, 0, Payload::Length(FULL), false);
        }
        pair.drain(LEFT);
        pair.run_for(ms(20));
        if pair.view(LEFT, 0).cwnd > 40 * 1468 {
            break;
        }
    }
    pair.run_for(Duration::from_secs(2));
    assert!(pair.view(LEFT, 0).cwnd > 40 * 1468);
    pair
}

#[test]
fn the_window_of_an_idle_path_halves_once_per_timeout() {
    let mut pair = grown(Preset::LiveRfc9260);
    while !pair.ends[LEFT].is_flushed() {
        pair.run_for(ms(1));
    }
    pair.send(LEFT, 100);
    let full = pair.view(LEFT, 0).cwnd;
    // RTO.Min is a second. Data sent after three and a half of them finds the window halved three times.
    pair.run_for(ms(3500));
    pair.send(LEFT, 100);
    let decayed = pair.view(LEFT, 0);
    assert_eq!((decayed.cwnd, decayed.ssthresh), ((full / 8).max(4 * 1468), full));
    pair.run_for(ms(100));
    pair.send(LEFT, 100);
    assert_eq!(pair.view(LEFT, 0).cwnd, decayed.cwnd, "and not again before another one");
}

#[test]
fn a_path_that_leads_elsewhere_starts_over() {
    for preset in [Preset::Live, Preset::LiveRfc9260] {
        let mut pair = grown(preset);
        let fresh = Pair::up(&preset_config(preset, 1, 1 << 20), &[10]);
        let now = pair.now;
        pair.ends[LEFT].validate_path(now, PathId(0));
        let (found, expected) = (pair.view(LEFT, 0), fresh.view(LEFT, 0));
        assert_eq!((found.cwnd, found.ssthresh), (expected.cwnd, expected.ssthresh), "{preset:?}");
    }
}

#[test]
fn heartbeats_to_addresses_that_are_not_confirmed_leave_one_per_timeout() {
    for (preset, first) in [(Preset::LiveRfc9260, 1), (Preset::Live, 4)] {
        let mut pair = Pair::new(&preset_config(preset, 5, 1 << 18), &[10; 5]);
        pair.script(|sent| if sent.path > 0 { Fate::Drop } else { Fate::Arrive });
        pair.run_for(ms(45));
        pair.run_for(ms(900));
        assert_eq!(pair.count(LEFT, "HEARTBEAT"), first, "{preset:?}");
        pair.run_for(Duration::from_secs(60));
        let asked: std::collections::BTreeSet<_> =
            pair.log.iter().filter(|s| s.from == LEFT && s.path > 0).map(|s| s.path).collect();
        assert_eq!(asked.len(), 4, "{preset:?}: each has its turn");
        if preset == Preset::LiveRfc9260 {
            let times: Vec<_> = (pair.log.iter())
                .filter(|s| s.from == LEFT && s.names() == ["HEARTBEAT"])
                .map(|s| s.at)
                .collect();
            assert!(times.windows(2).all(|two| two[1].since(two[0]) >= ms(1000)), "{times:?}");
        }
    }
}

#[test]
fn an_address_that_is_never_confirmed_is_asked_as_seldom_as_an_idle_one_in_the_end() {
    let mut pair = Pair::new(&preset_config(Preset::LiveRfc9260, 2, 1 << 18), &[10; 2]);
    pair.script(|sent| if sent.path > 0 { Fate::Drop } else { Fate::Arrive });
    pair.run_for(Duration::from_secs(1500));
    let times: Vec<_> =
        pair.log.iter().filter(|s| s.from == LEFT && s.path == 1).map(|s| s.at).collect();
    let last: Vec<_> = times.windows(2).rev().take(5).map(|two| two[1].since(two[0])).collect();
    // HB.interval and a timeout doubled up to RTO.Max, with a jitter of half of it either way.
    let usual = Duration::from_secs(30 + 30)..Duration::from_secs(30 + 90);
    assert!(last.iter().all(|interval| usual.contains(interval)), "{last:?}");
    assert!(last.iter().any(|interval| *interval > Duration::from_secs(70)), "{last:?}");
    assert_eq!(pair.closed(LEFT), None);
}
