//! The routes of a tunnel, and the other settings of its device. They are kept, regardless of changes by other
//! programs.
//!
//! **Into the tunnel** lead the networks that the hub carries, in the main table and, on a closed machine, in the
//! table that its rules of policy routing use.
//!
//! **Exceptions** keep the hubs out of the tunnel: packets to them use the same routes as without the tunnel. Packets
//! of sockets that are bound to an interface do not need these routes, but the reverse path filter does: it drops a
//! hub's packets unless a route to the hub leads out of the link.
//!
//! ```text
//!   default via 192.0.2.1 dev l1 metric 100           the route without the tunnel
//!   203.0.113.9 via 192.0.2.1 dev l1 metric 100       the exception: the same, only for the hub
//!   0.0.0.0/1 dev rw-home                             the tunnel
//! ```
//!
//! The routes of a machine change while a tunnel runs. The exceptions are therefore compared with the routes whenever
//! something has changed.
//!
//! **Unreachable** are networks that should lead into the tunnel, but whose address family the hub does not carry.
//! Otherwise the default route would carry them outside of the tunnel. Programs learn immediately that they must use
//! the other family.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use ropewalk_runtime::system::routes::{self, Hop, Interface, Route};

use super::journal::{CLOSED_TABLE, Journal};
use super::networks::single;

/// The metric of routes that make networks unreachable: any other route is preferred.
const LAST: u32 = u32::MAX;

/// The routes of a tunnel, and its device.
#[derive(Debug, Default)]
pub(super) struct Routing {
    /// Hubs, whose routes are kept out of the tunnel.
    peers: BTreeSet<IpAddr>,
    /// The networks that may lead into the tunnel.
    networks: Vec<IpNet>,
    /// TUN devices that the user has named as links. Others are not routes to a hub.
    links: Vec<String>,
    /// Whether the machine is closed.
    is_closed: bool,
    device: Option<DeviceState>,
    /// Previous states that must be removed.
    stale: Vec<DeviceState>,
    blocked: Vec<IpNet>,
}

/// The state of the tunnel's device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceState {
    /// Its index.
    pub index: u32,
    /// Its addresses.
    pub addresses: Vec<IpNet>,
    /// The networks that lead into it.
    pub networks: Vec<IpNet>,
    /// MTU when the device is started, bytes.
    pub mtu: u32,
}

impl Routing {
    /// Creates the routing of a machine that may be closed. Nothing is changed yet.
    pub fn new(is_closed: bool) -> Self {
        Self { is_closed, ..Self::default() }
    }

    /// Sets the networks that may lead into the tunnel, and the TUN devices that are links.
    pub fn set_networks(&mut self, networks: &[IpNet], links: &[String]) {
        (self.networks, self.links) = (networks.to_vec(), links.to_vec());
    }

    /// Keeps the routes to these hubs out of the tunnel, and only these.
    pub fn set_peers(&mut self, peers: &[SocketAddr]) {
        let peers = peers.iter().map(|peer| peer.ip().to_canonical());
        self.peers = peers.filter(|address| !address.is_loopback()).collect();
    }

    /// Sets the state of the device, and the networks that are unreachable.
    pub fn declare(&mut self, device: DeviceState, blocked: Vec<IpNet>) {
        self.stale.extend(self.device.replace(device));
        self.blocked = blocked;
    }

    /// Changes the MTU of the device, bytes.
    ///
    /// # Errors
    /// The error of the system.
    pub fn set_mtu(&mut self, mtu: u32) -> io::Result<()> {
        let Some(device) = &mut self.device else { return Ok(()) };
        device.mtu = mtu;
        routes::start_interface(device.index, mtu)
    }

    /// Starts the device, and adds addresses and routes of it that are missing.
    ///
    /// # Errors
    /// The error of the system.
    pub fn compare_device(&mut self) -> io::Result<()> {
        let Some(device) = &self.device else { return Ok(()) };
        let interfaces = routes::interfaces()?;
        let Some(interface) = interfaces.iter().find(|one| one.index == device.index) else {
            // The tunnel ends with its device.
            return Ok(());
        };
        if !interface.is_up {
            routes::start_interface(device.index, device.mtu)?;
        }
        let has = routes::addresses(device.index)?;
        for address in device.addresses.iter().filter(|address| !has.contains(address)) {
            routes::add_address(device.index, *address)?;
        }
        let tables = self.tables();
        for table in tables {
            for ipv6 in [false, true] {
                let of_family = device.networks.iter().filter(|to| to.addr().is_ipv6() == ipv6);
                let wanted: Vec<IpNet> = of_family.copied().collect();
                if !wanted.is_empty() {
                    add_missing(*table, device.index, ipv6, &wanted)?;
                }
            }
        }
        // New addresses come first: the system removes the routes of an interface with its last address.
        for old in self.stale.drain(..) {
            for network in old.networks.iter().filter(|old| !device.networks.contains(old)) {
                for table in tables {
                    // The system may have removed it.
                    let _ = routes::remove_route_in(*table, &into_tunnel(old.index, *network));
                }
            }
            for address in old.addresses.iter().filter(|old| !device.addresses.contains(old)) {
                let _ = routes::remove_address(old.index, *address);
            }
        }
        Ok(())
    }

    /// The tables that have the routes into the tunnel.
    const fn tables(&self) -> &'static [u32] {
        if self.is_closed { &[routes::MAIN, CLOSED_TABLE] } else { &[routes::MAIN] }
    }

    /// Removes exceptions that are no longer needed, and adds those that are missing. Returns the problems.
    ///
    /// # Errors
    /// The routes cannot be listed, or the journal cannot be written.
    pub fn compare_exceptions(&self, journal: &mut Journal) -> io::Result<BTreeSet<String>> {
        let interfaces = routes::interfaces()?;
        let own: Vec<Route> = journal.routes().cloned().collect();
        // The system does not list unreachable networks among the routes. Adding one that exists changes nothing.
        let mut wanted: Vec<Route> = self.blocked.iter().copied().map(unreachable).collect();
        let mut present = Vec::new();
        for ipv6 in [false, true] {
            let mut peers = self.peers.iter().filter(|peer| peer.is_ipv6() == ipv6).peekable();
            if peers.peek().is_none() {
                continue;
            }
            let all = routes::main_routes(ipv6)?;
            let (mine, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| own.contains(it));
            let (tunnels, others) = self.split(&others, &interfaces);
            for peer in peers {
                wanted.extend(wanted_for(*peer, &others, &tunnels, &self.networks));
            }
            present.extend(mine);
        }
        for stale in own.iter().filter(|own| !wanted.contains(own)) {
            journal.remove_route(stale).map_err(io::Error::other)?;
        }
        let mut problems = BTreeSet::new();
        for missing in wanted.iter().filter(|one| !present.contains(one)) {
            if let Err(error) = journal.add_route(missing) {
                problems.insert(format!("{error}{}", names(missing, &interfaces)));
            }
        }
        Ok(problems)
    }

    /// Splits the routes into those through TUN devices and the other ones.
    fn split(&self, all: &[Route], interfaces: &[Interface]) -> (Vec<Route>, Vec<Route>) {
        let tunnels: Vec<u32> = interfaces
            .iter()
            .filter(|interface| interface.is_tun && !self.links.contains(&interface.name))
            .map(|interface| interface.index)
            .collect();
        let by = |route: &Route, tunnel: bool| {
            let mut route = route.clone();
            route.hops.retain(|hop| tunnels.contains(&hop.interface) == tunnel);
            (!route.hops.is_empty()).then_some(route)
        };
        let of = |tunnel| all.iter().filter_map(|route| by(route, tunnel)).collect();
        (of(true), of(false))
    }
}

/// The exceptions for one address: its routes without the tunnel, unless they are more specific than those of
/// tunnels.
fn wanted_for(
    address: IpAddr,
    others: &[Route],
    tunnels: &[Route],
    networks: &[IpNet],
) -> Vec<Route> {
    let inside = tunnels.iter().map(|route| &route.to).chain(networks);
    let inside = inside.filter(|network| network.contains(&address)).map(IpNet::prefix_len).max();
    let leading = || others.iter().filter(|route| route.to.contains(&address));
    let longest = leading().map(|route| route.to.prefix_len()).max();
    let (Some(inside), Some(longest)) = (inside, longest) else { return Vec::new() };
    if longest > inside {
        return Vec::new();
    }
    // There is one route for each metric.
    let mut wanted = BTreeMap::<Option<u32>, Route>::new();
    for route in leading().filter(|route| route.to.prefix_len() == longest) {
        let exception = Route { to: single(address), ..route.clone() };
        let same = wanted
            .entry(route.metric)
            .or_insert_with(|| Route { hops: Vec::new(), ..exception.clone() });
        if same.source != exception.source {
            same.source = None;
        }
        for hop in exception.hops {
            if !same.hops.iter().any(|other| other.interface == hop.interface) {
                same.hops.push(hop);
            }
        }
    }
    wanted.into_values().map(normal).collect()
}

/// Adds the routes into the tunnel that a table does not have.
fn add_missing(table: u32, index: u32, ipv6: bool, networks: &[IpNet]) -> io::Result<()> {
    let present = routes::routes_in(table, ipv6)?;
    let leads = |network: &IpNet| {
        present
            .iter()
            .any(|one| one.to == *network && one.hops.iter().any(|hop| hop.interface == index))
    };
    for network in networks.iter().filter(|network| !leads(network)) {
        if !routes::add_route_in(table, &into_tunnel(index, *network))? {
            let message =
                format!("there is a route to {network} already: another tunnel may have it");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
    }
    Ok(())
}

fn into_tunnel(interface: u32, to: IpNet) -> Route {
    Route { to, hops: vec![Hop::to_link(interface)], metric: None, source: None }
}

fn unreachable(to: IpNet) -> Route {
    Route { to, hops: Vec::new(), metric: Some(LAST), source: None }
}

/// A route as the system lists it.
fn normal(mut route: Route) -> Route {
    if let [hop] = &mut route.hops[..] {
        hop.weight = 0;
    }
    route
}

/// The interfaces of a route, in parentheses.
fn names(route: &Route, interfaces: &[Interface]) -> String {
    let name =
        |index| interfaces.iter().find(|one| one.index == index).map(|one| one.name.as_str());
    let names: Vec<&str> = route.hops.iter().filter_map(|hop| name(hop.interface)).collect();
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const L1: u32 = 2;
    const L2: u32 = 3;
    const TUN: u32 = 9;

    fn route(to: &str, hops: &[(&str, u32)], metric: u32) -> Route {
        let hop = |(gateway, interface): &(&str, u32)| Hop {
            gateway: gateway.parse().ok(),
            ..Hop::to_link(*interface)
        };
        let to = to.parse().expect("a network");
        let metric = Some(metric).filter(|metric| *metric > 0);
        Route { to, hops: hops.iter().map(hop).collect(), metric, source: None }
    }

    #[test]
    fn an_exception_is_what_the_routes_say_without_the_tunnel() {
        let hub = "203.0.113.1/32";
        let first = |to| route(to, &[("198.18.1.1", L1)], 100);
        let second = |to| route(to, &[("198.18.2.1", L2)], 200);
        let anywhere = "0.0.0.0/0";
        let both = [("198.18.1.1", L1), ("198.18.2.1", L2)];
        let connected = route("203.0.113.0/24", &[("", L1)], 0);
        let wide = |to| route(to, &[("198.18.1.9", L1)], 50);
        for (others, expected) in [
            (vec![], vec![]),
            (vec![first(anywhere)], vec![first(hub)]),
            (vec![first(anywhere), second(anywhere)], vec![first(hub), second(hub)]),
            (vec![route(anywhere, &both, 0)], vec![route(hub, &both, 0)]),
            // A more specific route than the tunnel's is used in any case.
            (vec![first(anywhere), connected], vec![]),
            // A route that is less specific than the tunnel's is not used, but is the route without the tunnel.
            (vec![first(anywhere), wide("128.0.0.0/1")], vec![wide(hub)]),
            // IPv6 permits two routes with the same metric, as created by router advertisements.
            (
                vec![route(anywhere, &both[..1], 1024), route(anywhere, &both[1..], 1024)],
                vec![route(hub, &both, 1024)],
            ),
        ] {
            let address = "203.0.113.1".parse().expect("an address");
            let tunnels = [route("128.0.0.0/1", &[("", TUN)], 0)];
            let networks = ["128.0.0.0/1".parse().expect("a network")];
            for (tunnels, networks) in [(&tunnels[..], &[][..]), (&[], &networks)] {
                assert_eq!(wanted_for(address, &others, tunnels, networks), expected, "{others:?}");
            }
            assert_eq!(wanted_for(address, &others, &[], &[]), [], "no tunnel leads there");
        }
    }
}
