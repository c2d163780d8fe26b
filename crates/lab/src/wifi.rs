//! Wireless hops: builds channels, stations and radio links from a scenario.

use std::collections::BTreeMap;

use ropewalk_base::{Rate, Time};
use ropewalk_models::wifi::{Exchange, Standard as Modelled};
use ropewalk_netsim::cross::Pattern;
use ropewalk_netsim::link::Limit;
use ropewalk_netsim::wifi::{Phy, Preamble, RadioConfig, Standard, StationConfig, StationId};
use ropewalk_netsim::{CrossConfig, CrossPayload, Host, LinkId, World};
use ropewalk_scenario as file;

use crate::error::RunError;
use crate::link_config::limit;

/// First flow number of background stations, far above those of associations and cross traffic.
const FIRST_FLOW: u32 = 1 << 25;

/// The access point of every channel that the scenario names.
#[derive(Clone, Debug, Default)]
pub struct WifiNetwork {
    points: BTreeMap<u32, StationId>,
}

/// The two links of a station with its access point.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// From the station to the access point.
    pub to_point: LinkId,
    /// From the access point to the station.
    pub to_station: LinkId,
}

impl WifiNetwork {
    /// Adds the channels and their access points.
    pub fn new<P: Clone, H: Host<P>>(world: &mut World<P, H>, scenario: &file::Scenario) -> Self {
        let mut longest: BTreeMap<u32, Limit> = BTreeMap::new();
        let hops = scenario.paths.iter().filter_map(|path| path.wifi.map(|wifi| wifi.radio));
        for radio in hops.chain(scenario.stations.iter().map(|station| station.radio)) {
            let queue = limit(radio.queue);
            let most = longest.entry(radio.channel).or_insert(queue);
            if room(queue) > room(*most) {
                *most = queue;
            }
        }
        let mut points = BTreeMap::new();
        for (number, queue) in longest {
            let channel = world.add_channel();
            let name = format!("access-point/{number}");
            points.insert(number, world.add_station(channel, &name, StationConfig { queue }));
        }
        Self { points }
    }

    /// Adds a station and its links with the access point; both directions use the station's rate.
    pub fn add_hop<P: Clone, H: Host<P>>(
        &self,
        world: &mut World<P, H>,
        name: &str,
        radio: &file::Radio,
    ) -> Result<Hop, RunError> {
        let point = self.points[&radio.channel];
        let queue = limit(radio.queue);
        let station = world.add_station(point.channel, name, StationConfig { queue });
        let phy = Phy::new(standard(radio.standard), radio.rate)
            .map_err(|e| RunError::network(name, e))?;
        let config = RadioConfig { phy, frame_error: radio.frame_error };
        let mut link = |from| world.add_radio(from, config).map_err(|e| RunError::network(name, e));
        Ok(Hop { to_point: link(station)?, to_station: link(point)? })
    }

    /// Adds background stations and their traffic.
    pub fn add_others<P: Clone + CrossPayload, H: Host<P>>(
        &self,
        world: &mut World<P, H>,
        scenario: &file::Scenario,
    ) -> Result<(), RunError> {
        let mut flow = FIRST_FLOW;
        for (number, station) in scenario.stations.iter().enumerate() {
            let pattern = match station.load {
                Some(load) => Pattern::Poisson(load),
                // More than a channel can carry, because frames have headers and acknowledgements.
                None => Pattern::Cbr(station.radio.rate),
            };
            let config = CrossConfig {
                pattern,
                packet: station.packet,
                start: station.start,
                stop: station.stop.unwrap_or(Time::FAR_FUTURE),
            };
            for copy in 0..station.count {
                let name = format!("others/{number}/{copy}");
                let hop = self.add_hop(world, &name, &station.radio)?;
                let link = match station.direction {
                    file::Side::Up => hop.to_point,
                    file::Side::Down => hop.to_station,
                };
                let added = world.add_cross(&name, &config, flow, &[link]);
                added.map_err(|e| RunError::network(&name, e))?;
                flow += 1;
            }
        }
        Ok(())
    }
}

/// Sort key for the capacity of a queue, in bytes; packets count as 1500 bytes.
fn room(limit: Limit) -> u64 {
    match limit {
        Limit::Unlimited => u64::MAX,
        Limit::Packets(n) => u64::from(n) * 1500,
        Limit::Bytes(bytes) => bytes,
    }
}

const fn standard(standard: file::WifiStandard) -> Standard {
    match standard {
        file::WifiStandard::Dot11b { preamble: file::Preamble::Long } => {
            Standard::Dot11b(Preamble::Long)
        }
        file::WifiStandard::Dot11b { preamble: file::Preamble::Short } => {
            Standard::Dot11b(Preamble::Short)
        }
        file::WifiStandard::Dot11g => Standard::Dot11g,
    }
}

/// The rate of a path towards the receiver: that of its link or, if lower, the throughput of its station
/// alone on the channel. Other stations and the path's own acknowledgement packets are ignored, so this is an
/// upper limit.
pub fn rate_up(path: &file::Path, packet: u32) -> Rate {
    let wire = path.up.capacity.mean_rate();
    alone(path, packet).map_or(wire, |alone| alone.min(wire))
}

/// Throughput of a path's station alone on its channel, only counting packets. `None` without a
/// wireless hop.
pub fn alone(path: &file::Path, packet: u32) -> Option<Rate> {
    let radio = path.wifi?.radio;
    let modelled = match radio.standard {
        file::WifiStandard::Dot11b { preamble: file::Preamble::Long } => Modelled::Dot11b,
        file::WifiStandard::Dot11b { preamble: file::Preamble::Short } => Modelled::Dot11bShort,
        file::WifiStandard::Dot11g => Modelled::Dot11g,
    };
    let exchange = Exchange::new(modelled, radio.rate.as_bps() as f64, f64::from(packet));
    let bps = exchange.expect("the scenario names rates of the standard").single_station_bps();
    Some(Rate::from_bps(bps as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_that_a_scenario_may_name_is_known_to_simulator_and_model() {
        for (name, preamble) in [
            ("802.11b", "preamble = \"long\", "),
            ("802.11b", "preamble = \"short\", "),
            ("802.11g", ""),
        ] {
            let text = |bps: u64| {
                format!(
                    "[[path]]\nrate = \"1 Gbit/s\"\n\
                     wifi = {{ standard = \"{name}\", {preamble}rate = \"{bps} bit/s\" }}\n"
                )
            };
            let first = file::Scenario::parse(&text(11_000_000), "a")
                .or_else(|_| file::Scenario::parse(&text(54_000_000), "a"))
                .expect("one of the two");
            let wifi = first.paths[0].wifi.expect("a hop");
            let rates = wifi.radio.standard.rates_bps();
            assert_eq!(rates, standard(wifi.radio.standard).rates_bps());
            for bps in rates {
                let scenario = file::Scenario::parse(&text(*bps), "a").expect("a rate of it");
                let alone = rate_up(&scenario.paths[0], 1400).as_bps();
                assert!(alone > bps / 3 && alone < *bps, "{name} {bps}: {alone}");
            }
        }
    }
}
