//! The links of a scenario for packets from outside, as the emulator uses them.
//!
//! The code that builds a simulation builds these links too, under the same names. Equal seeds therefore give
//! equal random impairments.

use core::fmt;

use ropewalk_base::Seed;
use ropewalk_netsim::{CrossPayload, Host, HostId, LinkId, RouteId, World};
use ropewalk_scenario as file;

use crate::error::RunError;
use crate::network::{add_cross, add_paths, add_routes, add_shared_links};
use crate::wifi::WifiNetwork;

/// The links of a scenario between two hosts that the caller provides.
#[derive(Debug)]
pub struct LiveNetwork<P, H> {
    /// Links, cross traffic and the two hosts.
    pub world: World<P, H>,
    /// The host at the sender's end.
    pub sender: HostId,
    /// The host at the receiver's end.
    pub receiver: HostId,
    /// Each path, in the order of the file.
    pub paths: Vec<LivePath>,
}

/// Routes and links of one path in both directions.
#[derive(Clone, Copy, Debug)]
pub struct LivePath {
    /// From the sender to the receiver.
    pub up: RouteId,
    /// From the receiver to the sender.
    pub down: RouteId,
    /// The path's own link towards the receiver.
    pub link_up: LinkId,
    /// The path's own link towards the sender.
    pub link_down: LinkId,
}

/// A feature of a scenario that an emulation does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedInEmulation {
    /// The unsupported feature and its place.
    pub what: String,
    /// The suggested alternative.
    pub hint: &'static str,
}

impl fmt::Display for UnsupportedInEmulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Checks that an emulation supports the scenario.
///
/// # Errors
/// The first feature that it does not support.
pub fn check_live(scenario: &file::Scenario) -> Result<(), UnsupportedInEmulation> {
    if scenario.world.associations != 1 {
        let count = scenario.world.associations;
        return Err(UnsupportedInEmulation {
            what: format!("`world.associations` = {count}: an emulation has one set of paths"),
            hint: "take --set world.associations=1, and let the program open as many connections \
                   as it likes",
        });
    }
    let paths = scenario.paths.iter().map(|p| ("path", &p.name, &p.up, &p.down));
    let links = scenario.links.iter().map(|l| ("link", &l.name, &l.up, &l.down));
    for (kind, name, up, down) in paths.chain(links) {
        for side in [up, down] {
            if matches!(side.loss, file::Loss::Round { .. }) {
                return Err(UnsupportedInEmulation {
                    what: format!(
                        "`{kind}.{name}` loses the rest of a sender's round (loss model \
                         \"round\"), and packets do not show rounds"
                    ),
                    hint: "take the loss model \"gilbert-elliott\" for bursts, or \"bernoulli\"",
                });
            }
        }
    }
    Ok(())
}

/// Builds the network of a scenario, cross traffic included, between two hosts.
///
/// # Errors
/// If the network cannot be built.
pub fn live_network<P: Clone + CrossPayload, H: Host<P>>(
    scenario: &file::Scenario,
    sender: H,
    receiver: H,
) -> Result<LiveNetwork<P, H>, RunError> {
    let mut world = World::new(Seed::root(scenario.transfer.seed).child("network"));
    let shared = add_shared_links(&mut world, scenario)?;
    let air = WifiNetwork::new(&mut world, scenario);
    let (sender, receiver) = (world.add_host(sender), world.add_host(receiver));
    let links = add_paths(&mut world, scenario, &shared, &air, 0)?;
    let (up, down) = add_routes(&mut world, &links, sender, receiver);
    air.add_others(&mut world, scenario)?;
    add_cross(&mut world, scenario, &links, &shared)?;
    let ways = up.into_iter().zip(down).zip(&links);
    let paths = ways.map(|((up, down), links)| {
        let (link_up, link_down) = links.wire;
        LivePath { up, down, link_up, link_down }
    });
    let paths = paths.collect();
    Ok(LiveNetwork { world, sender, receiver, paths })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> file::Scenario {
        file::Scenario::parse(text, "a").expect("a scenario")
    }

    #[test]
    fn what_packets_from_outside_cannot_have_is_found_where_it_is() {
        const PATH: &str = "[[path]]\nname = \"dsl\"\nrate = \"1 Mbit/s\"\nrtt = \"20 ms\"\n";
        for (text, found) in [
            (PATH.to_owned(), None),
            (
                format!("{PATH}loss = {{ model = \"round\", rate = 0.01 }}\n"),
                Some("`path.dsl` loses the rest"),
            ),
            (format!("{PATH}[world]\nassociations = 3\n"), Some("`world.associations` = 3")),
        ] {
            let checked = check_live(&scenario(&text)).err().map(|e| e.to_string());
            match (checked, found) {
                (None, None) => {}
                (Some(error), Some(part)) => assert!(error.starts_with(part), "{error}"),
                (checked, found) => panic!("{checked:?}, not {found:?}"),
            }
        }
    }
}
