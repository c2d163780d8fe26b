//! Simulated 802.11 compared with its models.

use ropewalk_base::{Rate, Seed, Time};
use ropewalk_models::bianchi::{Saturation, bianchi};
use ropewalk_models::wifi::{Exchange, Standard as Modelled};
use ropewalk_netsim::Packet;
use ropewalk_netsim::wifi::{
    ATTEMPTS, Channel, Phy, Preamble, RadioConfig, Standard, StationConfig,
};

const PACKET: u32 = 1400;

/// The same layer in the simulator and in the model.
const LAYERS: [(Standard, Modelled); 3] = [
    (Standard::Dot11b(Preamble::Long), Modelled::Dot11b),
    (Standard::Dot11b(Preamble::Short), Modelled::Dot11bShort),
    (Standard::Dot11g, Modelled::Dot11g),
];

/// Total throughput of `stations` stations that always have a packet, bit/s, and the share of transmissions that
/// collide.
fn simulate(standard: Standard, bps: u64, stations: u32, seconds: u64) -> (f64, f64) {
    let phy = Phy::new(standard, Rate::from_bps(bps)).expect("a rate of the standard");
    let mut channel = Channel::new();
    for radio in 0..stations {
        let seed = Seed::root(1).child(&radio.to_string());
        let station = channel.add_station(StationConfig::default(), seed);
        assert_eq!(channel.add_radio(station, RadioConfig::new(phy)), radio);
    }
    for radio in (0..stations).chain(0..stations) {
        channel.offer(Time::ZERO, radio, Packet::new(PACKET, radio, ()));
    }
    let end = Time::from_secs(seconds);
    let mut bits = 0;
    while let Some(now) = channel.next_wake().filter(|due| *due <= end) {
        bits += channel.take(now).map_or(0, |packet| u64::from(packet.size) * 8);
        for radio in 0..stations {
            if channel.stats(now, radio).queued == 0 {
                channel.offer(now, radio, Packet::new(PACKET, radio, ()));
            }
        }
    }
    let stats = (0..stations).map(|i| channel.station_stats(i));
    let (collided, sent) =
        stats.fold((0, 0), |(c, a), stats| (c + stats.collisions, a + stats.attempts));
    (bits as f64 / seconds as f64, collided as f64 / sent as f64)
}

fn model(modelled: Modelled, bps: u64, stations: u32) -> Saturation {
    let exchange = Exchange::new(modelled, bps as f64, f64::from(PACKET)).expect("a known rate");
    bianchi(stations, &exchange, Some(ATTEMPTS)).expect("a station and an attempt")
}

#[test]
fn simulator_and_model_have_the_same_rates_and_agree_on_a_single_station() {
    for (standard, modelled) in LAYERS {
        let rates: Vec<f64> = standard.rates_bps().iter().map(|bps| *bps as f64).collect();
        assert_eq!(rates, modelled.rates_bps());
        for bps in standard.rates_bps() {
            let (found, collided) = simulate(standard, *bps, 1, 60);
            let expected = model(modelled, *bps, 1).throughput_bps;
            let off = found / expected - 1.0;
            assert!(off.abs() < 0.01, "{standard:?} {bps}: {found} for {expected}");
            assert_eq!(collided, 0.0);
        }
    }
}

#[test]
fn any_number_of_saturated_stations_carries_what_bianchi_says() {
    for (layer, bps) in [(0, 2_000_000), (0, 11_000_000), (2, 6_000_000), (2, 54_000_000)] {
        let (standard, modelled) = LAYERS[layer];
        for stations in [2, 5, 10, 20] {
            let (found, collided) = simulate(standard, bps, stations, 200);
            let expected = model(modelled, bps, stations);
            let off = found / expected.throughput_bps - 1.0;
            let case = format!("{standard:?} {bps}, {stations} stations");
            assert!(off.abs() < 0.03, "{case}: {found} for {}", expected.throughput_bps);
            // In the model, backoffs continue while other stations send; in the standard, they do not. This
            // causes the difference.
            let off = collided - expected.collision;
            assert!(off.abs() < 0.025, "{case}: {collided} for {}", expected.collision);
        }
    }
}

fn run_wifi(text: &str) -> ropewalk_lab::RunResult {
    let scenario = ropewalk_scenario::Scenario::parse(text, "test.toml").expect("a valid scenario");
    ropewalk_lab::run(&scenario, &ropewalk_lab::RunOptions::default()).expect("it runs").result
}

/// Two wireless paths on the given channels, followed by `more`.
fn two_wifi(channels: [u32; 2], end: &str, more: &str) -> ropewalk_lab::RunResult {
    let path = |channel: u32| {
        format!(
            "[[path]]\nrate = '100 Mbit/s'\ndelay = '10 ms'\n\
             wifi = {{ channel = {channel}, end = '{end}' }}\n"
        )
    };
    let transfer = "[transfer]\nduration = '10 s'\nwarmup = '2 s'\npacket = '1400 B'\n\
                    receive_buffer = '1 MB'\n";
    run_wifi(&format!("{transfer}{}{}{more}", path(channels[0]), path(channels[1])))
}

#[test]
fn paths_of_one_channel_contend_and_paths_of_two_do_not() {
    let alone = Exchange::new(Modelled::Dot11g, 54e6, 1400.0).expect("a rate").single_station_bps();
    for end in ["sender", "receiver"] {
        let apart = two_wifi([1, 6], end, "");
        let together = two_wifi([1, 1], end, "");
        // Acknowledgements contend too, so no path reaches the throughput of a station that receives no
        // answers.
        for path in &apart.paths {
            let share = path.throughput_bps / alone;
            assert!((0.65..0.9).contains(&share), "{end}: {share} of {alone}");
        }
        let ratio = together.goodput_bps / apart.goodput_bps;
        assert!((0.4..0.6).contains(&ratio), "{end}: {ratio}");
    }
}

#[test]
fn other_peoples_stations_take_their_part_of_the_channel() {
    let free = two_wifi([1, 6], "sender", "").goodput_bps;
    let light = two_wifi([1, 6], "sender", "[[station]]\nload = '2 Mbit/s'\n").goodput_bps;
    let heavy = two_wifi([1, 6], "sender", "[[station]]\ncount = 4\n").goodput_bps;
    let elsewhere = two_wifi([1, 6], "sender", "[[station]]\nchannel = 11\n").goodput_bps;
    assert!(light < free - 1e6, "{light} {free}");
    // Less than half of the first channel is left, and all of the second.
    assert!(heavy < 0.75 * free && heavy > 0.45 * free, "{heavy} {free}");
    assert_eq!(elsewhere, free);
}
