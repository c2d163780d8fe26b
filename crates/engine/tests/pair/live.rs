//! Paths that are added while an association is up, and drivers that know the fate of a path.

use ropewalk_base::{PathId, Time};
use ropewalk_engine::congestion::{Congestion, CongestionFlavour};
use ropewalk_engine::path::{Pacing, PathStatus};
use ropewalk_engine::sctp::{Association, Chunk, Config, Event, Packet, PathConfig, Preset};

use crate::driver::{Fate, LEFT, Pair, RIGHT, Sent, config, ms};

/// One path, with further ones possible.
fn one_of_several() -> Config {
    let mut settings = config(1, 1 << 20);
    settings.cmt.concurrent = true;
    settings
}

fn bulk(pair: &mut Pair, millis: u64) {
    for _ in 0..millis / 20 {
        pair.send_full(LEFT, 4);
        pair.run_for(ms(20));
    }
}

fn sent_on(pair: &Pair, path: u8) -> u64 {
    pair.counters(LEFT).get(usize::from(path)).map_or(0, |counters| counters.sent_packets)
}

#[test]
fn a_path_that_comes_later_is_proved_and_then_carries_data_under_every_congestion_control() {
    for name in Congestion::NAMES {
        let mut settings = one_of_several();
        settings.use_congestion(name, CongestionFlavour::Published).expect("a registered name");
        let mut pair = Pair::up(&settings, &[10, 15]);
        bulk(&mut pair, 200);
        for end in [LEFT, RIGHT] {
            let now = pair.now;
            let id = pair.ends[end].add_path(now, PathConfig::default());
            assert_eq!(id, Some(PathId(1)));
            assert_eq!(pair.ends[end].path_status(PathId(1)), PathStatus::Unconfirmed);
        }
        bulk(&mut pair, 200);
        let proved = (PathId(1), PathStatus::Active);
        let told = |(_, event): &(_, Event)| *event == Event::PathChanged(proved.0, proved.1);
        assert!(pair.events[LEFT].iter().any(told), "{name}");
        assert!(sent_on(&pair, 1) >= 10, "{name}: {} packets", sent_on(&pair, 1));
        pair.run_for(ms(2000));
        assert!(pair.ends[LEFT].is_flushed(), "{name}");
        assert_eq!(pair.read_bytes(RIGHT) % 20, 0);
    }
}

#[test]
fn there_is_an_end_to_the_paths_that_one_can_add() {
    let mut pair = Pair::up(&one_of_several(), &[10]);
    let now = pair.now;
    for _ in 1..Association::PATHS_LIMIT {
        assert!(pair.ends[LEFT].add_path(now, PathConfig::default()).is_some());
    }
    assert_eq!(pair.ends[LEFT].add_path(now, PathConfig::default()), None);
    assert_eq!(pair.ends[LEFT].path_count(), Association::PATHS_LIMIT);
}

#[test]
fn what_was_on_its_way_on_a_path_that_is_lost_goes_elsewhere_at_once() {
    let mut pair = Pair::up(&config(2, 1 << 20), &[10, 10]);
    bulk(&mut pair, 200);
    pair.send_full(LEFT, 8);
    let now = pair.now;
    let stuck = pair.view(LEFT, 1).in_flight;
    assert!(stuck > 0, "both paths are in use");
    pair.ends[LEFT].path_lost(now, PathId(1));
    pair.drain(LEFT);
    assert_eq!(pair.ends[LEFT].path_status(PathId(1)), PathStatus::Inactive);
    assert_eq!(pair.view(LEFT, 1).in_flight, 0);
    pair.run_for(ms(100));
    assert!(pair.ends[LEFT].is_flushed(), "long before a timer of a second");
    // It is probed again as soon as the driver reports a change.
    let now = pair.now;
    pair.ends[LEFT].validate_path(now, PathId(1));
    pair.run_for(ms(30));
    assert_eq!(pair.ends[LEFT].path_status(PathId(1)), PathStatus::Active);
}

/// Some presets have no separate probe interval: HEARTBEATs are sent to failed paths as to idle ones.
#[test]
fn a_lost_path_is_probed_within_the_interval_of_heartbeats_with_any_preset() {
    for preset in [Preset::Live, Preset::LiveRfc9260, Preset::Rfc9260, Preset::Paper2013] {
        let settings = Config::preset(preset, vec![PathConfig::default(); 2], 1 << 18);
        let interval = settings.heartbeat_interval;
        let mut pair = Pair::up(&settings, &[10, 10]);
        let now = pair.now;
        pair.ends[LEFT].path_lost(now, PathId(1));
        let due = pair.ends[LEFT].next_deadline().expect("a HEARTBEAT is due");
        assert!(due > now && due <= now + interval, "{preset:?}: {due}");
    }
}

#[test]
fn a_path_that_leads_elsewhere_now_is_asked_whatever_is_acknowledged_beside() {
    let mut pair = Pair::up(&config(1, 1 << 16), &[10]);
    pair.send_full(LEFT, 2);
    pair.run_for(ms(11));
    let sack = pair.log.iter().find(|sent| sent.sack().is_some()).expect("a SACK").packet.clone();
    pair.log.clear();
    // A packet from there reports the change, and its acknowledgements concern data on the old route.
    let now = pair.now;
    pair.ends[LEFT].validate_path(now, PathId(0));
    pair.inject(LEFT, 0, sack);
    pair.run_for(ms(1));
    assert_eq!(pair.count(LEFT, "HEARTBEAT"), 1);
}

// RFC 9260, 5.4: only HEARTBEAT, HEARTBEAT ACK and the handshake are sent to an UNCONFIRMED address.
#[test]
fn an_unconfirmed_path_carries_neither_data_nor_sacks_nor_errors() {
    let mut settings = config(2, 1 << 20);
    settings.sack.to_last = true;
    let mut pair = Pair::new(&settings, &[10, 10]);
    // Packets of the receiver arrive on both paths, but its HEARTBEATs on the second one are lost.
    let asks = |sent: &Sent| sent.from == RIGHT && sent.path == 1 && sent.names() == ["HEARTBEAT"];
    pair.script(move |sent| if asks(sent) { Fate::Drop } else { Fate::Arrive });
    pair.connect();
    bulk(&mut pair, 400);
    assert!(sent_on(&pair, 1) > 5, "data comes by the second path");
    let tag = pair.ends[RIGHT].tags().0;
    pair.inject(RIGHT, 1, Packet::of(tag, Chunk::Unknown(vec![0x7f, 0, 0, 4].into())));
    pair.run_for(ms(2000));
    assert_eq!(pair.ends[RIGHT].path_status(PathId(1)), PathStatus::Unconfirmed);
    let back = pair.log.iter().filter(|sent| sent.from == RIGHT && sent.path == 1);
    for name in back.flat_map(|sent| sent.names()) {
        assert!(["HEARTBEAT", "HEARTBEAT ACK"].contains(&name), "{name} to an unproved address");
    }
    assert!(pair.count(RIGHT, "ERROR") == 1 && pair.ends[LEFT].is_flushed());
}

/// Maximum number of packets with data that leave within a millisecond, once the paths are known.
fn largest_burst(settings: &Config) -> usize {
    let mut pair = Pair::up(settings, &[50, 50]);
    for _ in 0..60 {
        pair.send_full(LEFT, 40);
        pair.run_for(ms(50));
    }
    pair.log.clear();
    for _ in 0..20 {
        pair.send_full(LEFT, 40);
        pair.run_for(ms(50));
    }
    let times = pair.data_times(LEFT);
    assert!(times.len() > 300, "{} packets", times.len());
    let within =
        |from: &Time| times.iter().filter(|at| **at >= *from && **at <= *from + ms(1)).count();
    times.iter().map(within).max().unwrap_or(0)
}

#[test]
fn a_paced_path_spreads_what_is_handed_over_at_once() {
    let mut settings = config(1, 1 << 20);
    settings.max_burst = 0;
    let unpaced = largest_burst(&settings);
    settings.pacing = Some(Pacing::default());
    let paced = largest_burst(&settings);
    assert!(unpaced >= 35, "{unpaced} at once without pacing");
    assert!(paced <= 20, "{paced} at once with it: ten, and what the rate gives in a millisecond");
}

#[test]
fn a_path_that_falls_silent_is_noticed_though_its_losses_are_repaired_elsewhere() {
    let mut pair = Pair::up(&config(2, 1 << 20), &[10, 10]);
    bulk(&mut pair, 400);
    let cut = pair.now;
    pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
    bulk(&mut pair, 4000);
    let doubted = pair.events[LEFT].iter().find(|(at, event)| {
        *at > cut && *event == Event::PathChanged(PathId(1), PathStatus::PotentiallyFailed)
    });
    let noticed = doubted.expect("long before a heartbeat of an idle path").0;
    assert!(noticed.since(cut) < ms(2500), "a timeout of a second and little more: {noticed:?}");
    assert!(pair.ends[LEFT].is_flushed(), "all of it went elsewhere");
}
