//! The routes of a client whose links and routes change while its tunnel runs. Needs Linux and root; otherwise says
//! so and passes.
//!
//! The client reaches the hub, whose address is on none of its links, through routers:
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
    /// Output of `ip -json` on the client.
    fn shown(&self, words: &[&str]) -> Vec<Value> {
        let name = self.name("c");
        let shown = Command::new("ip").args(["-n", &name, "-json"]).args(words).output();
        serde_json::from_slice(&shown.expect("ip").stdout).unwrap_or_default()
    }

    /// The routes of the client to a destination: the routers and interfaces that are up, with the metric of
    /// each.
    fn ways(&self, to: &str) -> BTreeSet<String> {
        let hop = |hop: &Value| format!("{} {}", hop["gateway"], hop["dev"]);
        let is_alive = |hop: &&Value| !hop["flags"].to_string().contains("dead");
        let way = |route: &Value| {
            let several = route["nexthops"].as_array().cloned();
            let all = several.unwrap_or_else(|| vec![route.clone()]);
            let hops: Vec<String> = all.iter().filter(is_alive).map(hop).collect();
            (!hops.is_empty()).then(|| format!("{} metric {}", hops.join(", "), route["metric"]))
        };
        let all = self.shown(&["route"]);
        all.iter().filter(|route| route["dst"] == to).filter_map(way).collect()
    }

    /// Waits until the exceptions for the hub correspond to the default routes, and packets arrive.
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

/// Hosts, and the public keys of the client and of the hub.
fn prepared() -> Option<(Hosts, [String; 2])> {
    let hosts = Hosts::new()?;
    let keys = ["client.key", "hub.key"].map(|file| hosts.dir.key(file));
    echo(&hosts, "i");
    hosts.ip("c", &["address", "add", &format!("{}/24", OTHER[0]), "dev", "l1"]);
    hosts.ip("h", &["address", "add", &format!("{}/24", OTHER[1]), "dev", "l1"]);
    Some((hosts, keys))
}

/// Hosts, the public key of the hub, and the hub, which admits the client.
fn started() -> Option<(Hosts, String, Tunnel)> {
    let (hosts, [client, hub]) = prepared()?;
    let serve = hosts.serve(&[&client], &[]);
    Some((hosts, hub, serve))
}

/// Enables the reverse path filter, which drops packets that arrive by another link than that of
/// the return route.
fn filter_reverse_paths(hosts: &Hosts) {
    for link in ["all", "l1", "l2"] {
        let file = format!("/proc/sys/net/ipv4/conf/{link}/rp_filter");
        hosts.inside("c", || std::fs::write(file, "1")).expect("a value");
    }
}

#[test]
fn exceptions_follow_the_default_routes_and_nothing_of_them_is_left() {
    let Some((hosts, hub, serve)) = started() else { return };
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
    // It undoes the remaining changes, and waits because there is no such link.
    let up = hosts.connect_behind(&hub, &["--from", "none"]);
    hosts.wait_for("told", || up.said().contains("no link is up"));
    up.end(Signal::SIGTERM);
    assert_eq!(hosts.ways(BEHIND), BTreeSet::new());
}

#[test]
fn a_link_that_gets_its_address_and_route_back_later_is_excepted_again() {
    let Some((hosts, hub, serve)) = started() else { return };
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
    let Some((hosts, hub, serve)) = started() else { return };
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
    let Some((hosts, hub, serve)) = started() else { return };
    let up = hosts.connect_behind(&hub, &[]);
    hosts.wait_for_exceptions(&[&serve, &up]);
    hosts.ip("c", &["link", "set", "l2", "name", "wlan7"]);
    hosts.wait_for_exceptions(&[&serve, &up]);
    up.end(Signal::SIGTERM);
    assert_eq!(hosts.ways(BEHIND), BTreeSet::new());
}

#[test]
fn ipv6_is_unreachable_while_the_hub_carries_none_unless_it_may_leave_outside() {
    let Some((hosts, [client, hub])) = prepared() else { return };
    let outside = "2001:db8:9::9";
    hosts.ip("c", &["address", "add", "2001:db8:1::1/64", "dev", "l1", "nodad"]);
    hosts.ip("c", &["-6", "route", "add", "default", "via", "2001:db8:1::2", "dev", "l1"]);
    let way = |to| hosts.shown(&["-6", "route", "get", to]).first().map(|it| it["dev"].clone());
    assert_eq!(way(outside), Some("l1".into()));
    let serve = hosts.serve(&[&client], &["--network", "10.88.0.0/16"]);
    for (more, expected) in [(None, None), (Some("--leave-ipv6"), Some("l1".into()))] {
        let up = hosts.connect(&hub, &more.into_iter().collect::<Vec<_>>());
        hosts.wait_for_answer(HOST, &[&serve, &up]);
        assert_eq!(way(outside), expected);
        assert_eq!(way("2001:db8:1::2"), Some("l1".into()), "on the link");
        assert!(up.said().contains("the hub has no IPv6 network"), "{}", up.said());
        let servers = hosts.name_servers();
        assert!(servers.contains("9.9.9.9") && !servers.contains(':'), "{servers}");
        // After a kill, the next start undoes the remaining changes.
        up.end(Signal::SIGKILL);
    }
    assert_eq!(way(outside), Some("l1".into()));
    serve.end(Signal::SIGTERM);
    let serve = hosts.serve(&[&client], &[]);
    let up = hosts.connect(&hub, &[]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    assert_eq!(way(outside), Some("rw-tunnel".into()));
}

#[test]
fn the_device_of_another_tunnel_is_no_link_unless_it_is_named() {
    let Some((hosts, hub, serve)) = started() else { return };
    let [other, two] = ["other.key", "two.key"].map(|name| hosts.dir.key(name));
    std::fs::write(hosts.dir.file("two.toml"), "network = [\"10.90.0.0/24\"]\n").expect("written");
    let at = ["--listen", "0.0.0.0:9900", "--key", "two.key", "--state-directory", "two"];
    let words = ["serve", "./two.toml", "--allow", &other];
    let second = hosts.start_as("h", "two.log", &[&words[..], &at].concat());
    let up = hosts.connect_behind(&hub, &[]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    std::fs::write(hosts.dir.file("too.toml"), "route = [\"10.91.0.0/16\"]\n").expect("written");
    let to = [BEHIND, ":9900"].concat();
    let words = ["up", "./too.toml", "--key", "other.key", "--peer", &two, "--to", &to];
    for (links, expected) in [(&[][..], false), (&["--from", "l1,rw-tunnel"], true)] {
        let too = hosts.start_as("c", "too.log", &[&words[..], links].concat());
        hosts.wait_for("up", || too.said().contains("tunnel up"));
        hosts.pause();
        let is_link = || too.said().contains("link rw-tunnel up");
        assert!(!up.said().contains("link rw-too"), "{}", up.said());
        if expected {
            hosts.wait_for("a link", is_link);
        }
        assert_eq!(is_link(), expected, "{}", too.said());
        too.end(Signal::SIGTERM);
    }
    drop(second);
}
