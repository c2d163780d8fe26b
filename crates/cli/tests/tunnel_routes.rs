//! The routes of a client whose links and routes change while its tunnel runs. Needs Linux and root; otherwise says so and
//! passes.
//!
//! The client reaches the hub at an address that is on none of its links, by routers on them:
//!
//! ```text
//!   client  === l1, l2 === routers  --- hub, host
//! ```
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::tunnel::{HOST, HUB, Hosts, Tunnel, echo};

/// The hub's address behind the routers.
const BEHIND: &str = "192.0.2.1";
/// Another network on the first link, the client's address in it, and another router.
const OTHER: [&str; 2] = ["198.51.101.1", "198.51.101.3"];

impl Hosts {
    /// What `ip -json` prints on the client.
    fn shown(&self, words: &[&str]) -> Vec<Value> {
        let name = self.name("c");
        let shown = Command::new("ip").args(["-n", &name, "-json"]).args(words).output();
        serde_json::from_slice(&shown.expect("ip").stdout).unwrap_or_default()
    }

    /// The routes of the client to a destination: routers and interfaces of each, and its metric.
    fn ways(&self, to: &str) -> BTreeSet<String> {
        let hop = |hop: &Value| format!("{} {}", hop["gateway"], hop["dev"]);
        let way = |route: &Value| {
            let several = route["nexthops"].as_array().cloned().unwrap_or_default();
            let hops: Vec<String> = several.iter().map(hop).collect();
            let hops = if hops.is_empty() { hop(route) } else { hops.join(", ") };
            format!("{hops} metric {}", route["metric"])
        };
        let alive =
            |route: &&Value| route["dst"] == to && !route["flags"].to_string().contains("dead");
        self.shown(&["route"]).iter().filter(alive).map(way).collect()
    }

    /// Waits until the exceptions for the hub are what the default routes say, and packets arrive.
    fn wait_for_exceptions(&self, tunnels: &[&Tunnel]) {
        let same = || !self.ways("default").is_empty() && self.ways(BEHIND) == self.ways("default");
        self.wait_for(&format!("excepted: {}", self.routes()), same);
        self.wait_for_answer(HOST, tunnels);
    }

    /// A client of the hub behind the routers.
    fn connect_behind(&self, hub: &str, more: &[&str]) -> Tunnel {
        let words = ["up", "--key", "client.key", "--peer", hub, "--to", BEHIND, "--no-dns"];
        self.start("c", &[&words[..], more].concat())
    }

    fn default_route(&self, what: &str, words: &str) {
        let words: Vec<&str> = words.split(' ').collect();
        self.ip("c", &[&["route", what, "default"], &words[..]].concat());
    }
}

/// Hosts, an admitted client and a running hub.
fn started(name: &str) -> Option<(Hosts, String, Tunnel)> {
    let hosts = Hosts::new(name)?;
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    hosts.ip("c", &["address", "add", &format!("{}/24", OTHER[0]), "dev", "l1"]);
    hosts.ip("h", &["address", "add", &format!("{}/24", OTHER[1]), "dev", "l1"]);
    let serve = hosts.serve(&[&client], &[]);
    Some((hosts, hub, serve))
}

/// The reverse path filter drops what arrives by another link than that of the route back.
fn filter_reverse_paths(hosts: &Hosts) {
    for link in ["all", "l1", "l2"] {
        let file = format!("/proc/sys/net/ipv4/conf/{link}/rp_filter");
        hosts.inside("c", || std::fs::write(file, "1")).expect("a value");
    }
}

#[test]
fn exceptions_follow_the_default_routes_and_nothing_of_them_is_left() {
    let Some((hosts, hub, serve)) = started("e") else { return };
    filter_reverse_paths(&hosts);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let up = hosts.connect_behind(&hub, &[]);
        hosts.wait_for_exceptions(&[&serve, &up]);
        hosts.default_route("del", "dev l1");
        hosts.wait_for_exceptions(&[&serve, &up]);
        hosts.default_route("add", &format!("via {} dev l1 metric 100", OTHER[1]));
        hosts.wait_for_exceptions(&[&serve, &up]);
        let [first, second] = HUB.map(|router| format!("nexthop via {router}"));
        hosts.default_route("replace", &format!("metric 50 {first} dev l1 {second} dev l2"));
        hosts.wait_for_exceptions(&[&serve, &up]);
        hosts.ip("c", &["link", "set", "l2", "down"]);
        hosts.wait_for_exceptions(&[&serve, &up]);
        hosts.ip("c", &["link", "set", "l2", "up"]);
        hosts.default_route("add", &format!("via {} dev l2 metric 200", HUB[1]));
        hosts.wait_for_exceptions(&[&serve, &up]);
        hosts.default_route("del", "metric 50");
        hosts.default_route("replace", &format!("via {} dev l1 metric 100", HUB[0]));
        hosts.wait_for_exceptions(&[&serve, &up]);
        up.end(signal);
    }
    assert_eq!(hosts.ways(BEHIND), hosts.ways("default"), "killed");
    // It undoes what was left, and ends because there is no such link.
    hosts.connect_behind(&hub, &["--from", "none"]).wait();
    assert_eq!(hosts.ways(BEHIND), BTreeSet::new());
}

#[test]
fn a_link_that_gets_its_address_and_route_back_later_is_excepted_again() {
    let Some((hosts, hub, serve)) = started("o") else { return };
    filter_reverse_paths(&hosts);
    let up = hosts.connect_behind(&hub, &["--from", "l2"]);
    hosts.default_route("del", "dev l1");
    for _ in 0..2 {
        hosts.wait_for_exceptions(&[&serve, &up]);
        hosts.ip("c", &["link", "set", "l2", "down"]);
        hosts.ip("c", &["address", "flush", "dev", "l2"]);
        hosts.ip("c", &["link", "set", "l2", "up"]);
        hosts.pause();
        hosts.ip("c", &["address", "add", "203.0.113.1/30", "dev", "l2"]);
        hosts.pause();
        hosts.default_route("add", &format!("via {} dev l2", HUB[1]));
    }
    hosts.wait_for_exceptions(&[&serve, &up]);
}

#[test]
fn a_router_outside_of_the_network_of_its_link_is_used() {
    let Some((hosts, hub, serve)) = started("u") else { return };
    hosts.ip("c", &["address", "flush", "dev", "l1"]);
    hosts.ip("c", &["address", "add", "198.51.100.1/32", "dev", "l1"]);
    let on_link = format!("via {} dev l1 onlink metric 100", HUB[0]);
    hosts.default_route("add", &on_link);
    for links in [&[][..], &["--from", "l2"]] {
        let up = hosts.connect_behind(&hub, links);
        hosts.wait_for_exceptions(&[&serve, &up]);
        hosts.default_route("del", "dev l1");
        hosts.wait_for_exceptions(&[&serve, &up]);
        hosts.default_route("add", &on_link);
        hosts.wait_for_exceptions(&[&serve, &up]);
        assert!(!up.said().contains("problem"), "{}", up.said());
        up.end(Signal::SIGTERM);
        assert_eq!(hosts.ways(BEHIND), BTreeSet::new());
    }
}

#[test]
fn the_exception_of_a_link_that_is_renamed_ends_with_the_tunnel() {
    let Some((hosts, hub, serve)) = started("g") else { return };
    let up = hosts.connect_behind(&hub, &[]);
    hosts.wait_for_exceptions(&[&serve, &up]);
    hosts.ip("c", &["link", "set", "l2", "name", "wlan7"]);
    hosts.wait_for_exceptions(&[&serve, &up]);
    up.end(Signal::SIGTERM);
    assert_eq!(hosts.ways(BEHIND), BTreeSet::new());
}
