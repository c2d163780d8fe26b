//! When data is acknowledged (RFC 9260, 6.2, 6.7; delayed acknowledgement for CMT).

use std::collections::BTreeSet;

use ropewalk_base::{Duration, Serial32, StreamId};
use ropewalk_engine::scheduler::DelaySource;
use ropewalk_engine::sctp::{Chunk, Data, DataFlags, GapBlock, GapList, Packet, Sack};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, as_published, config, in_turn, ms};

/// Milliseconds, from the start of the log, at which the receiver sent SACKs.
fn sack_times(pair: &Pair, since: u64) -> Vec<u64> {
    let sacks = pair.log.iter().filter(|s| s.from == RIGHT && s.sack().is_some());
    sacks.map(|s| s.at.as_nanos() / 1_000_000 - since).collect()
}

fn start(pair: &Pair) -> u64 {
    pair.now.as_nanos() / 1_000_000
}

#[test]
pub fn every_second_packet_is_acknowledged_at_once_and_a_single_one_after_200_ms() {
    let mut pair = Pair::up(&config(1, 1 << 20), &[10]);
    pair.greet();
    let since = start(&pair);
    pair.send_full(LEFT, 1);
    pair.run_for(ms(1000));
    assert_eq!(sack_times(&pair, since), [210]);
    let since = start(&pair);
    pair.log.clear();
    pair.send_full(LEFT, 2);
    pair.run_for(ms(1000));
    assert_eq!(sack_times(&pair, since), [10]);
}

#[test]
pub fn the_first_data_of_an_association_is_acknowledged_at_once() {
    for paths in [1, 2] {
        let mut pair = Pair::up(&config(paths, 1 << 20), &[10, 10][..paths]);
        for end in [LEFT, RIGHT] {
            pair.log.clear();
            pair.send(end, 100);
            pair.run_for(ms(11));
            assert_eq!(pair.count(1 - end, "SACK"), 1, "{paths} paths, end {end}");
            // The second is not acknowledged immediately.
            pair.send(end, 100);
            pair.run_for(ms(11));
            assert_eq!(pair.count(1 - end, "SACK"), 1, "{paths} paths, end {end}");
            pair.run_for(ms(1000));
        }
    }
}

#[test]
pub fn a_gap_is_reported_at_once_in_plain_sctp_until_it_is_filled() {
    let mut pair = Pair::up(&config(1, 1 << 20), &[10]);
    let mut count = 0;
    pair.script(move |sent| {
        count += usize::from(sent.data().next().is_some());
        if sent.data().next().is_some() && count == 1 { Fate::Drop } else { Fate::Arrive }
    });
    let since = start(&pair);
    pair.send_full(LEFT, 3);
    pair.run_for(ms(15));
    assert_eq!(sack_times(&pair, since), [10, 10], "one for each packet behind the gap");
}

#[test]
fn a_gap_alone_hurries_nobody_with_delayed_acknowledgement_for_cmt() {
    let mut pair = Pair::up(&as_published(2, 1 << 20), &[10, 10]);
    pair.greet();
    let mut count = 0;
    pair.script(move |sent| {
        count += usize::from(sent.data().next().is_some());
        if sent.data().next().is_some() && count == 1 { Fate::Drop } else { Fate::Arrive }
    });
    let since = start(&pair);
    pair.send_full(LEFT, 4);
    pair.run_for(ms(300));
    // Three packets arrive: one SACK for two of them, one by the timer for the third.
    assert_eq!(sack_times(&pair, since), [10, 210]);
    let told: Vec<_> = pair.log.iter().filter_map(|s| s.sack()).map(|s| s.data_packets).collect();
    assert_eq!(told, [2, 1]);
}

#[test]
pub fn duplicates_and_the_immediate_bit_are_answered_at_once() {
    for paths in [1, 2] {
        let mut pair = Pair::up(&config(paths, 1 << 20), &[10, 10][..paths]);
        pair.send_full(LEFT, 1);
        let packet = pair.log[0].packet.clone();
        pair.run_for(ms(300));
        pair.log.clear();
        pair.inject(RIGHT, 0, packet.clone());
        let sack = pair.log[0].sack().expect("at once");
        let Chunk::Data(data) = &packet.chunks[0] else { panic!("{packet:?}") };
        assert_eq!(sack.duplicates, [data.tsn]);
        pair.log.clear();
        let flags = DataFlags::WHOLE.and(DataFlags::IMMEDIATE);
        let next = Data { tsn: data.tsn.plus(1), ssn: data.ssn.plus(1), flags, ..data.clone() };
        pair.inject(RIGHT, 0, Packet::of(packet.tag, Chunk::Data(next)));
        assert!(pair.log[0].sack().is_some_and(|s| s.duplicates.is_empty()));
    }
}

#[test]
fn a_long_transfer_costs_half_a_sack_per_packet_however_unequal_the_paths() {
    let by_time = config(2, 1 << 17);
    let counted = as_published(2, 1 << 17);
    for (loss, settings) in [(false, &by_time), (false, &counted), (true, &counted)] {
        let mut pair = Pair::up(settings, &[10, 100]);
        let mut count = 0u32;
        pair.script(move |sent| {
            count += u32::from(sent.data().next().is_some());
            let hit = loss && sent.data().next().is_some() && count.is_multiple_of(50);
            if hit { Fate::Drop } else { Fate::Arrive }
        });
        for _ in 0..50 {
            while pair.ends[LEFT].send_room() > 0 {
                pair.queue(LEFT, 0, ropewalk_engine::Payload::Length(FULL), false);
            }
            pair.drain(LEFT);
            pair.run_for(ms(100));
        }
        let packets = pair.data_times(LEFT).len();
        let sacks = pair.count(RIGHT, "SACK");
        let share = sacks as f64 / packets as f64;
        assert!(packets > 1000, "{packets} packets");
        assert!((0.45..0.6).contains(&share), "loss {loss}: {share} SACKs per packet");
    }
}

#[test]
pub fn a_sack_goes_back_where_the_newest_data_came_from() {
    let mut pair = Pair::up(&config(2, 1 << 20), &[10, 60]);
    pair.send_full(LEFT, 40);
    pair.run_for(ms(1000));
    for path in 0..2 {
        assert!(pair.log.iter().any(|s| s.sack().is_some() && s.path == path), "path {path}");
    }
}

/// Share of the SACKs that return on the faster of two paths which carry the same amount, before either
/// has answered a heartbeat.
fn by_the_quick_path(to_last: bool) -> f64 {
    let mut settings = config(2, 1 << 20);
    settings.heartbeat_interval = Duration::from_secs(3600);
    settings.sack.to_last = to_last;
    let mut pair = Pair::with(&settings, &settings, &[10, 100], [in_turn(), in_turn()]);
    pair.connect();
    pair.run_for(ms(500));
    pair.log.clear();
    for _ in 0..50 {
        pair.send_full(LEFT, 4);
        pair.run_for(ms(20));
    }
    let sacks = pair.log.iter().filter(|s| s.from == RIGHT && s.sack().is_some());
    let (quick, all) =
        sacks.fold((0, 0), |(quick, all), s| (quick + (s.path == 0) as u32, all + 1));
    assert!(all > 50, "{all} SACKs");
    f64::from(quick) / f64::from(all)
}

#[test]
fn before_any_heartbeat_the_handshake_tells_which_way_back_is_the_quick_one() {
    let (quickest, last) = (by_the_quick_path(false), by_the_quick_path(true));
    assert!(quickest > last + 0.1, "{quickest} by the quickest, {last} by the last one's");
}

#[test]
fn timestamps_of_every_path_come_back_though_one_path_calls_forth_all_sacks() {
    let mut settings = as_published(2, 1 << 20);
    settings.delay_source = DelaySource::Timestamp;
    let mut pair = Pair::with(&settings, &settings, &[10, 11], [in_turn(), in_turn()]);
    pair.connect();
    for _ in 0..20 {
        // One on each path. The second to arrive is acknowledged.
        pair.send_full(LEFT, 2);
        pair.run_for(ms(50));
    }
    let echoes = pair.log.iter().filter_map(|s| s.packet.echo.as_ref());
    let of = echoes.fold([0, 0], |mut of, echo| {
        of[usize::from(echo.path)] += 1;
        of
    });
    assert!(of[0] >= 8 && of[1] >= 8, "{of:?} of 20");
}

#[test]
pub fn a_shutdown_takes_nothing_back_though_it_reports_no_gap() {
    // 3.3.8: it has no gap blocks, which does not withdraw earlier reports.
    let mut pair = Pair::up(&config(1, 1 << 18), &[10]);
    pair.greet();
    pair.script(|_| Fate::Drop);
    let first = pair.ends[RIGHT].expected(StreamId(0)).0;
    pair.send_full(LEFT, 3);
    let tag = pair.ends[LEFT].tags().0;
    let upto = |ahead: u64| Serial32::wrap(first + ahead - 1);
    let gaps = GapList::from_offsets(upto(0), [GapBlock { start: 3, end: 3 }]);
    let sack = Sack {
        cumulative: upto(0),
        window: 1 << 17,
        gaps,
        duplicates: Vec::new(),
        data_packets: 0,
        number: None,
    };
    pair.inject(LEFT, 0, Packet::of(tag, Chunk::Sack(sack)));
    pair.inject(LEFT, 0, Packet::of(tag, Chunk::Shutdown(upto(1))));
    pair.log.clear();
    pair.run_for(Duration::from_secs(20));
    let again: BTreeSet<_> = pair
        .log
        .iter()
        .filter(|s| s.from == LEFT)
        .flat_map(|s| s.data())
        .map(|d| d.tsn.0)
        .collect();
    assert_eq!(again, BTreeSet::from([upto(2).0]), "the second alone is missing");
}
