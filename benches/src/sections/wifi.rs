//! 802.11: throughput of saturated stations, compared with the standard's arithmetic and Bianchi's model, and
//! simulation speed.

use ropewalk_base::{Rate, Seed, Time};
use ropewalk_models::bianchi::bianchi;
use ropewalk_models::wifi::{Exchange, Standard as Modelled};
use ropewalk_netsim::Packet;
use ropewalk_netsim::wifi::{
    ATTEMPTS, Channel, Phy, Preamble, RadioConfig, Standard, StationConfig,
};

use crate::clock::timed;
use crate::row::{Findings, Row};

const PACKET: u32 = 1400;
/// Simulated time of each figure.
const SECONDS: u64 = 200;
const STATIONS: [u32; 5] = [1, 2, 5, 10, 20];
const DOT11B: (Standard, Modelled) = (Standard::Dot11b(Preamble::Long), Modelled::Dot11b);
const DOT11G: (Standard, Modelled) = (Standard::Dot11g, Modelled::Dot11g);

/// Results of one simulation.
struct Found {
    bps: f64,
    frames: u64,
}

pub fn measure() -> Result<Findings, String> {
    let mut findings = Findings::default();
    let (mut frames, mut took_s) = (0, 0.0);
    for (layer, bps) in
        [(DOT11B, 2_000_000), (DOT11B, 11_000_000), (DOT11G, 6_000_000), (DOT11G, 54_000_000)]
    {
        for stations in STATIONS {
            let (found, seconds) = timed(|| simulate(layer.0, bps, stations));
            let found = found?;
            frames += found.frames;
            took_s += seconds;
            findings.rows.push(beside_model(layer, bps, stations, found.bps)?);
        }
    }
    let speed = frames as f64 / took_s;
    let what = "transmissions simulated per second of one core";
    findings.rows.push(Row::told(what, speed, format!("{:.1} million", speed / 1e6)));
    findings.notes.push(format!(
        "Packets of {PACKET} bytes, {SECONDS} s, no RTS/CTS, at most {ATTEMPTS} attempts for a frame. One station is the \
         arithmetic of the standard, several are Bianchi 2000 with that limit."
    ));
    Ok(findings)
}

fn beside_model(
    (standard, modelled): (Standard, Modelled),
    bps: u64,
    stations: u32,
    found_bps: f64,
) -> Result<Row, String> {
    let exchange =
        Exchange::new(modelled, bps as f64, f64::from(PACKET)).map_err(|e| e.to_string())?;
    let model = bianchi(stations, &exchange, Some(ATTEMPTS)).map_err(|e| e.to_string())?;
    let off = found_bps / model.throughput_bps - 1.0;
    let what = format!("{} at {} Mbit/s, {stations} saturated", standard.name(), bps as f64 / 1e6);
    let measured = format!(
        "{:.3} Mbit/s for {:.3}: {:+.2} %",
        found_bps / 1e6,
        model.throughput_bps / 1e6,
        off * 100.0
    );
    Ok(Row::told(what, found_bps, measured)
        .with_target("within 3 % of the model", off.abs() < 0.03))
}

fn simulate(standard: Standard, bps: u64, stations: u32) -> Result<Found, String> {
    let phy = Phy::new(standard, Rate::from_bps(bps)).map_err(|e| e.to_string())?;
    let mut channel = Channel::new();
    for radio in 0..stations {
        let seed = Seed::root(1).child(&radio.to_string());
        let station = channel.add_station(StationConfig::default(), seed);
        channel.add_radio(station, RadioConfig::new(phy));
    }
    for radio in (0..stations).chain(0..stations) {
        channel.offer(Time::ZERO, radio, Packet::new(PACKET, radio, ()));
    }
    let end = Time::from_secs(SECONDS);
    let mut bits = 0;
    while let Some(now) = channel.next_wake().filter(|due| *due <= end) {
        if let Some(packet) = channel.take(now) {
            bits += u64::from(packet.size) * 8;
        }
        // One frame waits behind the one being sent, so that every station always has a frame.
        for radio in 0..stations {
            if channel.stats(now, radio).queued == 0 {
                channel.offer(now, radio, Packet::new(PACKET, radio, ()));
            }
        }
    }
    let frames = (0..stations).map(|i| channel.station_stats(i).attempts).sum();
    Ok(Found { bps: bits as f64 / SECONDS as f64, frames })
}
