//! The routes beside those into the tunnel.
//!
//! **Exceptions** keep the hubs out of the tunnel: packets to them keep the ways that they have without it. Packets of sockets that are bound to an interface do not need these routes. The reverse path filter does: it drops
//! what a hub sends unless a route back leads out of the link.
//!
//! ```text
//!   default via 192.0.2.1 dev l1 metric 100           the way without the tunnel
//!   203.0.113.9 via 192.0.2.1 dev l1 metric 100       the exception: the same, to the hub alone
//!   0.0.0.0/1 dev rw-home                             the tunnel
//! ```
//!
//! The routes of a machine change while a tunnel runs. So the exceptions are not added once, but compared with what the
//! routes ask for whenever something has changed.
//!
//! **Unreachable** is what should lead into the tunnel, but whose family of addresses the hub does not carry. Otherwise
//! the default route would carry it outside of the tunnel. Programs learn at once that they have to use the other family.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use ropewalk_runtime::system::Changes;
use ropewalk_runtime::system::routes::{self, Interface, Route};

use super::journal::Journal;
use super::machine::single;
use super::network_watch::NetworkWatch;
use crate::observe::{Event, PeerIdentity, Reporter};

/// Least time between two looks at the routes. Changes come in groups.
const PAUSE: Duration = Duration::from_millis(100);
/// How soon an exception that could not be added is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The journal, which a client's tasks share.
#[derive(Clone, Debug)]
pub struct SharedJournal(Arc<Mutex<Journal>>);

impl SharedJournal {
    /// Shares a journal. It is undone with the last clone.
    pub fn new(journal: Journal) -> Self {
        Self(Arc::new(Mutex::new(journal)))
    }

    /// The journal.
    pub fn lock(&self) -> MutexGuard<'_, Journal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The metric of routes that make networks unreachable: any other route is preferred.
const LAST: u32 = u32::MAX;

/// Keeps the routes beside the tunnel as the routes of the machine ask for.
#[derive(Debug)]
pub struct Routing {
    peers: BTreeSet<IpAddr>,
    /// The networks that lead into the tunnel.
    networks: Vec<IpNet>,
    /// TUN devices that the user has named as links.
    links: Vec<String>,
    /// Networks that are unreachable.
    blocked: Mutex<Vec<IpNet>>,
    journal: SharedJournal,
    reporter: Reporter,
    /// The problems that were reported, and are not solved.
    problems: Mutex<BTreeSet<String>>,
}

impl Routing {
    /// Routing for these hubs from a tunnel to `networks`. TUN devices are no ways to a hub unless `links` names them.
    pub fn new(
        peers: &[SocketAddr],
        networks: &[IpNet],
        links: &[String],
        journal: SharedJournal,
        reporter: Reporter,
    ) -> Self {
        let peers = peers.iter().map(|peer| peer.ip().to_canonical());
        let peers = peers.filter(|address| !address.is_loopback()).collect();
        let (networks, links) = (networks.to_vec(), links.to_vec());
        let (blocked, problems) = Default::default();
        Self { peers, networks, links, blocked, journal, reporter, problems }
    }

    /// Makes these networks unreachable, and only these.
    pub fn block(&self, networks: Vec<IpNet>) {
        *self.blocked.lock().unwrap_or_else(PoisonError::into_inner) = networks;
        self.reconcile();
    }

    /// Compares the exceptions with the routes whenever something changes.
    pub async fn keep(&self) -> Infallible {
        let mut watch = NetworkWatch::open(Changes::Routes, RETRY);
        loop {
            let complete = self.reconcile();
            watch.changed((!complete).then_some(RETRY)).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Compares the exceptions with the routes once. Returns whether all are there. Each problem is reported once.
    pub fn reconcile(&self) -> bool {
        let found = self
            .compare()
            .unwrap_or_else(|error| [format!("the routes beside the tunnel: {error}")].into());
        let mut known = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        for problem in found.difference(&known) {
            let event = Event::Problem(format!("{problem}; it is tried again"));
            self.reporter.report(PeerIdentity::default(), event);
        }
        *known = found;
        known.is_empty()
    }

    /// Removes exceptions that the routes do not ask for any more, and adds those that are missing. Returns the problems.
    fn compare(&self) -> io::Result<BTreeSet<String>> {
        let interfaces = routes::interfaces()?;
        let mut journal = self.journal.lock();
        let own: Vec<Route> = journal.routes().cloned().collect();
        // The system does not list unreachable networks among the routes. Adding one that exists changes nothing.
        let blocked = self.blocked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut present, mut wanted) =
            (Vec::new(), blocked.into_iter().map(unreachable).collect::<Vec<_>>());
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

    /// The routes by TUN devices, and the other ones.
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

/// The exceptions for one address: the routes that it has without the tunnel, unless they are more specific than those
/// of tunnels.
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
    use ropewalk_runtime::system::routes::Hop;

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
            // One that is less specific than the tunnel's is not, but is the way without the tunnel.
            (vec![first(anywhere), wide("128.0.0.0/1")], vec![wide(hub)]),
            // IPv6 permits two routes with the same metric, as router advertisements make them.
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
