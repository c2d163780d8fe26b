//! 802.11 compared with the arithmetic of the standard, and invariants under any load.

use crate::common::race::frames_ratio;
use crate::common::{Scripted, TestWorld, at, mbit, ms, plan, world};
use proptest::prelude::*;
use ropewalk_base::{Duration, Rate, Seed, Time};
use ropewalk_netsim::cross::Pattern;
use ropewalk_netsim::link::Limit;
use ropewalk_netsim::wifi::{
    ATTEMPTS, Channel, Phy, Preamble, RadioConfig, Standard, StationConfig, StationStats,
};
use ropewalk_netsim::{Admission, CrossConfig, DropCause, LinkConfig, LinkStats, Packet, Port};

const B: Standard = Standard::Dot11b(Preamble::Long);
const G: Standard = Standard::Dot11g;

fn phy(standard: Standard, kbps: u64) -> Phy {
    Phy::new(standard, Rate::from_bps(kbps * 1000)).expect("a rate of the standard")
}

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// A channel with one link from each of `stations` stations, all with the same configuration.
fn channel(stations: u32, radio: RadioConfig, queue: Limit, seed: u64) -> Channel<u64> {
    let mut channel = Channel::new();
    for i in 0..stations {
        let seed = Seed::root(seed).child(&i.to_string());
        let station = channel.add_station(StationConfig { queue }, seed);
        assert_eq!(channel.add_radio(station, radio), i);
    }
    channel
}

/// Runs until `end` while every station always has a packet of `size` bytes to send. Returns the bytes that
/// arrived.
fn saturate(channel: &mut Channel<u64>, stations: u32, size: u32, end: Time) -> u64 {
    for radio in 0..stations {
        for _ in 0..2 {
            channel.offer(Time::ZERO, radio, Packet::new(size, radio, u64::from(radio)));
        }
    }
    let mut bytes = 0;
    while let Some(now) = channel.next_wake().filter(|due| *due <= end) {
        if let Some(packet) = channel.take(now) {
            bytes += u64::from(packet.size);
        }
        for radio in 0..stations {
            if channel.stats(now, radio).queued == 0 {
                channel.offer(now, radio, Packet::new(size, radio, u64::from(radio)));
            }
        }
    }
    bytes
}

#[test]
fn one_saturated_station_carries_what_the_standard_leaves_it() {
    // Standard, rate in kbit/s; microseconds of DIFS, mean backoff, frame of 1400 + 36 bytes, SIFS, acknowledgement.
    for (standard, kbps, cycle) in [
        (B, 1_000, 50.0 + 310.0 + (192.0 + 11_488.0) + 10.0 + 304.0),
        (B, 2_000, 50.0 + 310.0 + (192.0 + 5_744.0) + 10.0 + 248.0),
        (B, 11_000, 50.0 + 310.0 + (192.0 + 1_045.0) + 10.0 + 248.0),
        (Standard::Dot11b(Preamble::Short), 11_000, 50.0 + 310.0 + (96.0 + 1_045.0) + 10.0 + 152.0),
        (G, 6_000, 28.0 + 67.5 + (26.0 + 1_920.0) + 10.0 + 50.0),
        (G, 24_000, 28.0 + 67.5 + (26.0 + 480.0) + 10.0 + 34.0),
        (G, 54_000, 28.0 + 67.5 + (26.0 + 216.0) + 10.0 + 34.0),
    ] {
        let radio = RadioConfig::new(phy(standard, kbps));
        let mut channel = channel(1, radio, Limit::Packets(400), 1);
        let bytes = saturate(&mut channel, 1, 1400, Time::from_secs(60));
        let found = bytes as f64 * 8.0 / 60.0;
        let expected = 1400.0 * 8.0 / (cycle * 1e-6);
        assert!((found / expected - 1.0).abs() < 0.01, "{standard:?} {kbps}: {found} {expected}");
    }
}

#[test]
fn a_frame_for_an_idle_channel_goes_at_once_and_arrives_after_its_airtime() {
    let mut channel = channel(1, RadioConfig::new(phy(G, 54_000)), Limit::Packets(1), 1);
    channel.offer(at(5), 0, Packet::new(1400, 0, 7));
    // 5 ms is not a multiple of the 9 us slot, so the frame waits for the next one, at 5004 us.
    assert_eq!(channel.next_wake(), Some(Time::ZERO + us(5_004)));
    assert_eq!(channel.take(Time::ZERO + us(5_004)), None);
    assert_eq!(channel.next_wake(), Some(Time::ZERO + us(5_004 + 242)));
    let arrived = channel.take(Time::ZERO + us(5_004 + 242)).expect("it has arrived");
    assert_eq!(arrived.payload, 7);
    assert_eq!(channel.next_wake(), None);
}

#[test]
fn a_frame_that_meets_a_busy_channel_waits_for_the_acknowledgement_and_difs_and_a_backoff() {
    let mut starts = [0u32; 16];
    for seed in 0..1_000 {
        let mut channel = channel(2, RadioConfig::new(phy(G, 54_000)), Limit::Packets(1), seed);
        channel.offer(Time::ZERO, 0, Packet::new(1400, 0, 0));
        channel.take(Time::ZERO);
        channel.offer(Time::ZERO + us(100), 1, Packet::new(1400, 1, 1));
        assert!(channel.take(Time::ZERO + us(242)).is_some());
        let begins = channel.next_wake().expect("the second frame").since(Time::ZERO + us(242));
        let slots = begins.as_nanos() - us(10 + 34 + 28).as_nanos();
        assert_eq!(slots % 9_000, 0);
        starts[(slots / 9_000) as usize] += 1;
    }
    assert!(starts.iter().all(|n| (35..95).contains(n)), "{starts:?}");
}

#[test]
fn two_frames_offered_at_the_same_instant_collide_and_both_arrive_later() {
    let mut channel = channel(2, RadioConfig::new(phy(B, 11_000)), Limit::Packets(1), 1);
    for radio in 0..2 {
        channel.offer(Time::ZERO, radio, Packet::new(1400, 0, u64::from(radio)));
    }
    let mut arrived = Vec::new();
    while let Some(now) = channel.next_wake() {
        arrived.extend(channel.take(now).map(|packet| packet.payload));
    }
    arrived.sort_unstable();
    assert_eq!(arrived, [0, 1]);
    for station in 0..2 {
        let stats = channel.station_stats(station);
        assert!(stats.collisions >= 1, "{stats:?}");
        assert_eq!(stats.attempts, stats.collisions + stats.acknowledged);
    }
}

/// Which of two frames of these sizes, offered at the same instant, arrives first.
fn first_after_a_collision(sizes: [u32; 2], seed: u64) -> u64 {
    let radio = RadioConfig::new(phy(B, 2_000));
    let mut channel = channel(2, radio, Limit::Packets(400), seed);
    for (station, size) in (0..).zip(sizes) {
        channel.offer(Time::ZERO, station, Packet::new(size, station, u64::from(station)));
    }
    loop {
        let now = channel.next_wake().expect("frames that collide are sent again");
        if let Some(arrived) = channel.take(now) {
            return arrived.payload;
        }
    }
}

#[test]
fn the_sender_of_the_shorter_frame_is_ahead_after_a_collision() {
    let second = |sizes| (0..400).filter(|seed| first_after_a_collision(sizes, *seed) == 1).count();
    let (equal, shorter) = (second([1500, 1500]), second([1500, 60]));
    assert!((160..240).contains(&equal), "nobody is ahead: {equal} of 400");
    // 16 slots in a window of 64: (64^2 - 48^2 / 2) / 64^2 = 0.72.
    assert!((265..310).contains(&shorter), "{shorter} of 400");
}

#[test]
fn a_frame_error_costs_attempts_and_the_last_attempt_costs_the_packet() {
    let (error, packets) = (0.5, 20_000u64);
    let radio = RadioConfig { frame_error: error, ..RadioConfig::new(phy(G, 54_000)) };
    let mut channel = channel(1, radio, Limit::Unlimited, 3);
    for number in 0..packets {
        channel.offer(Time::ZERO, 0, Packet::new(1400, 0, number));
    }
    let (mut now, mut delivered) = (Time::ZERO, 0);
    while let Some(due) = channel.next_wake() {
        now = due;
        delivered += u64::from(channel.take(now).is_some());
    }
    let stats = channel.stats(now, 0);
    let given_up = stats.dropped.by(DropCause::Retries);
    assert_eq!(delivered + given_up, packets);
    let expected = packets as f64 * error.powi(ATTEMPTS as i32);
    assert!((given_up as f64 - expected).abs() < 4.0 * expected.sqrt(), "{given_up} {expected}");
    let attempts = channel.station_stats(0).attempts as f64 / packets as f64;
    let mean = (1.0 - error.powi(ATTEMPTS as i32)) / (1.0 - error);
    assert!((attempts / mean - 1.0).abs() < 0.02, "{attempts} {mean}");
    assert_eq!(channel.station_stats(0).given_up, given_up);
}

#[test]
fn saturated_stations_share_the_channel_equally() {
    let stations = 5;
    let mut channel = channel(stations, RadioConfig::new(phy(G, 54_000)), Limit::Packets(400), 1);
    saturate(&mut channel, stations, 1400, Time::from_secs(60));
    let counts: Vec<u64> = (0..stations).map(|i| channel.station_stats(i).acknowledged).collect();
    let mean = counts.iter().sum::<u64>() as f64 / f64::from(stations);
    assert!(mean > 10_000.0, "{counts:?}");
    assert!(counts.iter().all(|n| (*n as f64 / mean - 1.0).abs() < 0.03), "{counts:?}");
}

#[test]
fn a_slow_station_holds_up_a_fast_one() {
    // Nearly equal shares of frames, not of time (Heusse et al. 2003): both fall below the slow one's rate.
    let (end, seconds) = (Time::from_secs(600), 600.0);
    let mut channel = Channel::new();
    for (i, kbps) in [54_000, 6_000].into_iter().enumerate() {
        let seed = Seed::root(1).child(&i.to_string());
        let station = channel.add_station(StationConfig::default(), seed);
        channel.add_radio(station, RadioConfig::new(phy(G, kbps)));
    }
    saturate(&mut channel, 2, 1400, end);
    let bps = |radio| channel.stats(end, radio).delivered_bytes as f64 * 8.0 / seconds;
    let (fast, slow): (f64, f64) = (bps(0), bps(1));
    // The sender of the shorter frame of a collision has a head start of EIFS - DIFS: an acknowledgement of
    // 50 us and SIFS, rounded up to slots of 9 us.
    let expected = frames_ratio(16, 7);
    assert!((fast / slow / expected - 1.0).abs() < 0.02, "{fast} {slow} {expected}");
    assert!(fast < 6e6, "{fast}");
}

#[test]
fn stations_share_frames_equally_where_nobody_is_ahead_after_a_collision() {
    assert!((frames_ratio(16, 0) - 1.0).abs() < 1e-9);
}

/// Sends two thousand packets from a station over an uplink with a wired part, answered over the same channel.
/// `bystanders` adds stations that send nothing, before and after.
fn over_the_air(bystanders: bool) -> (Vec<crate::common::Seen>, StationStats, LinkStats) {
    let mut world: TestWorld = world(1);
    let (left, right) = (world.add_host(Scripted::default()), world.add_host(Scripted::default()));
    let air = world.add_channel();
    let radio = RadioConfig { frame_error: 0.1, ..RadioConfig::new(phy(G, 54_000)) };
    let idle = |world: &mut TestWorld, name: &str| {
        if bystanders {
            let station = world.add_station(air, name, StationConfig::default());
            world.add_radio(station, radio).expect("a good link");
        }
    };
    idle(&mut world, "idle/1");
    let mobile = world.add_station(air, "mobile", StationConfig::default());
    let point = world.add_station(air, "access-point", StationConfig::default());
    idle(&mut world, "idle/2");
    let up = world.add_radio(mobile, radio).expect("a good link");
    let down = world.add_radio(point, radio).expect("a good link");
    let wire = LinkConfig::new(mbit(100), ms(10));
    let there = world.add_link("wire/up", &wire).expect("a good link");
    let back = world.add_link("wire/down", &wire).expect("a good link");
    let forward = world.add_route(&[up, there], right, Port(0));
    let backward = world.add_route(&[back, down], left, Port(0));
    assert_eq!(world.route_links(backward).collect::<Vec<_>>(), [back, down]);
    world.host_mut(right).answers = vec![backward];
    plan(&mut world, left, (0..2_000).map(|i| (at(i / 2), forward, 1400)).collect());
    world.run_until(Time::from_secs(5));
    (world.host(left).seen.clone(), world.station_stats(point), world.link_stats(up))
}

#[test]
fn data_and_answers_contend_and_idle_stations_change_nobodys_luck() {
    let (seen, point, up) = over_the_air(false);
    assert_eq!(up.offered, 2_000);
    assert_eq!(up.delivered + up.dropped.total(), 2_000);
    assert_eq!(seen.len() as u64, point.acknowledged);
    assert!(point.collisions > 10, "{point:?}");
    assert_eq!((seen, point, up), over_the_air(true));
}

#[test]
fn cross_traffic_contends_as_a_station_of_its_own() {
    let mut world: TestWorld = world(1);
    let air = world.add_channel();
    let mut links = Vec::new();
    for name in ["a", "b"] {
        let station = world.add_station(air, name, StationConfig::default());
        links.push(world.add_radio(station, RadioConfig::new(phy(G, 54_000))).expect("a link"));
    }
    for (flow, link) in links.iter().enumerate() {
        let config = CrossConfig::new(Pattern::Cbr(mbit(54)));
        world.add_cross(&flow.to_string(), &config, flow as u32, &[*link]).expect("a source");
    }
    world.run_until(Time::from_secs(10));
    let delivered: Vec<u64> = links.iter().map(|link| world.link_stats(*link).delivered).collect();
    let share = delivered[0] as f64 / delivered.iter().sum::<u64>() as f64;
    assert!((share - 0.5).abs() < 0.02, "{delivered:?}");
    // A frame causes two events, in addition to those of the source.
    let offered: u64 = links.iter().map(|link| world.link_stats(*link).offered).sum();
    let attempts = delivered.iter().sum::<u64>() * 2 * 12 / 10;
    assert!(world.events() < offered + attempts, "{} {offered} {attempts}", world.events());
}

/// An offered packet: microseconds since the previous one, link, size.
fn load() -> impl Strategy<Value = Vec<(u64, u32, u32)>> {
    prop::collection::vec((0u64..2_000, 0u32..6, 1u32..2_300), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_offered_is_queued_in_flight_delivered_or_dropped(
        load in load(),
        queue in 0u32..10,
        error_tenths in 0u32..=10,
        mixed in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut channel = Channel::new();
        for i in 0..3u32 {
            let seed = Seed::root(seed).child(&i.to_string());
            let config = StationConfig { queue: Limit::Packets(queue) };
            channel.add_station(config, seed);
        }
        for radio in 0..6 {
            let phy = if mixed && radio % 2 == 0 { phy(B, 11_000) } else { phy(G, 24_000) };
            let config = RadioConfig { phy, frame_error: f64::from(error_tenths) / 10.0 };
            channel.add_radio(radio % 3, config);
        }
        let (mut now, mut refused, mut delivered) = (Time::ZERO, [0u64; 6], [0u64; 6]);
        let check = |channel: &Channel<u64>, now, radio: usize, refused: u64, delivered: u64| {
            let stats = channel.stats(now, radio as u32);
            assert_eq!(
                stats.offered,
                stats.queued + stats.in_flight + stats.delivered + stats.dropped.total()
            );
            assert_eq!(stats.dropped.by(DropCause::Full), refused);
            assert_eq!(stats.delivered, delivered);
            assert!(stats.queued <= stats.queue_max_packets);
        };
        for (number, (gap, radio, size)) in (0..).zip(load.iter().copied()) {
            let offer = now + us(gap);
            while let Some(due) = channel.next_wake().filter(|due| *due <= offer) {
                prop_assert!(due >= now, "a channel's time went back");
                now = due;
                if let Some(packet) = channel.take(now) {
                    delivered[packet.flow as usize] += 1;
                }
            }
            now = offer;
            let packet = Packet::new(size, radio, number);
            let full = channel.offer(now, radio, packet) != Admission::Admitted;
            refused[radio as usize] += u64::from(full);
            for radio in 0..6 {
                check(&channel, now, radio, refused[radio], delivered[radio]);
            }
        }
        while let Some(due) = channel.next_wake() {
            prop_assert!(due >= now);
            now = due;
            if let Some(packet) = channel.take(now) {
                delivered[packet.flow as usize] += 1;
            }
        }
        for radio in 0..6 {
            check(&channel, now, radio, refused[radio], delivered[radio]);
            let stats = channel.stats(now, radio as u32);
            prop_assert_eq!((stats.queued, stats.in_flight), (0, 0));
        }
    }
}
