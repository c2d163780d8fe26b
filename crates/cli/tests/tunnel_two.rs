//! Two tunnels of one machine to two hubs, one for all traffic and one for a single network. Needs Linux and root;
//! otherwise says so and passes.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;

use crate::tunnel::{BINARY, HOST, Hosts, Tunnel, echo};

/// The tunnels' names, the addresses of their hubs, the networks of these hubs, and their addresses there.
const TUNNELS: [[&str; 4]; 2] = [
    ["all", "198.18.0.1", "10.88.0.0/24", "10.88.0.1"],
    ["one", "198.18.0.2", "10.89.0.0/24", "10.89.0.1"],
];
/// An address that is only reachable through the tunnel for all traffic.
const OTHER_HOST: &str = "192.0.2.3";

struct Pair {
    hosts: Hosts,
    hubs: Vec<(Tunnel, String)>,
}

impl Pair {
    fn new() -> Option<Self> {
        let hosts = Hosts::new()?;
        ["h", "i"].iter().for_each(|host| echo(&hosts, host));
        let client = hosts.dir.key("client.key");
        let serve = |[name, address, network, _]: [&str; 4]| {
            hosts.ip("h", &["address", "add", &format!("{address}/32"), "dev", "lo"]);
            let (file, key) = (format!("hub-{name}.toml"), format!("hub-{name}.key"));
            fs::write(hosts.dir.file(&file), "").expect("written");
            let public = hosts.dir.key(&key);
            let words = ["serve", &format!("./{file}"), "--key", &key, "--allow", &client];
            let more = ["--listen", address, "--network", network, "--state-directory", "state"];
            let log = format!("hub-{name}.log");
            (hosts.start_as("h", &log, &[&words[..], &more].concat()), public)
        };
        let hubs = TUNNELS.map(serve).into();
        Some(Self { hosts, hubs })
    }

    fn start(&self, tunnel: usize) -> Tunnel {
        let [name, address, ..] = TUNNELS[tunnel];
        let file = format!("{name}.toml");
        fs::write(self.hosts.dir.file(&file), "").expect("written");
        let words = ["up", &format!("./{file}"), "--key", "client.key", "--to", address];
        let more = ["--peer", &self.hubs[tunnel].1, "--dns-file", "resolv.conf"];
        let networks: &[&str] = if tunnel == 0 { &[] } else { &["--route", HOST] };
        let words = [&words[..], &more, networks].concat();
        self.hosts.start_as("c", &format!("{name}.log"), &words)
    }

    /// Waits until packets to the networks of a tunnel pass through it, and its hub and a host behind it answer.
    fn is_up(&self, tunnel: usize, running: &Tunnel) {
        let to = [OTHER_HOST, HOST][tunnel];
        let [name, _, _, hub] = TUNNELS[tunnel];
        let device = format!("dev rw-{name}");
        let logs = [&self.hubs[tunnel].0, running];
        self.hosts.wait_for_answer(hub, &logs);
        self.hosts.wait_for("up", || self.shown(&["ip", "route", "get", to]).contains(&device));
        self.hosts.wait_for_answer(HOST, &logs);
    }

    fn shown(&self, words: &[&str]) -> String {
        let name = self.hosts.name("c");
        let shown = Command::new("ip").args(["netns", "exec", &name]).args(words).output();
        String::from_utf8_lossy(&shown.expect("a program").stdout).into_owned()
    }

    /// All settings that tunnels may change on the machine, in a fixed order.
    fn state(&self) -> Vec<String> {
        let words: [&[&str]; 6] = [
            &["ip", "rule"],
            &["ip", "-6", "rule"],
            &["ip", "route", "show", "table", "all"],
            &["ip", "-6", "route", "show", "table", "all"],
            &["nft", "list", "ruleset"],
            &["sysctl", "-a", "-r", "(forwarding|rp_filter)$"],
        ];
        let shown = words.iter().map(|words| self.shown(words)).collect::<String>();
        let mut lines: Vec<String> = shown.lines().map(str::to_owned).collect();
        // The kernel adds link-local addresses automatically.
        lines.retain(|line| !line.contains("fe80:") && !line.contains("ff00:"));
        lines.sort();
        lines.push(self.hosts.name_servers());
        lines
    }

    fn undo(&self, tunnel: usize) {
        let file = format!("./{}.toml", TUNNELS[tunnel][0]);
        let state = self.hosts.dir.file("run-c");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.hosts.name("c"), BINARY, "tunnel", "undo", &file]);
        command.arg("--run-directory").arg(state).current_dir(self.hosts.dir.file("."));
        assert!(command.status().expect("a program").success());
    }
}

#[test]
fn two_tunnels_of_a_machine_start_and_end_in_any_order_and_leave_nothing() {
    let Some(pair) = Pair::new() else { return };
    let before = pair.state();
    for first in [0, 1] {
        for (ends_first, signal) in [
            (first, Signal::SIGTERM),
            (1 - first, Signal::SIGTERM),
            (first, Signal::SIGKILL),
            (1 - first, Signal::SIGKILL),
        ] {
            let what = format!("{first} started first, {ends_first} ended first by {signal}");
            let started = [first, 1 - first].map(|tunnel| {
                let running = pair.start(tunnel);
                pair.is_up(tunnel, &running);
                (tunnel, running)
            });
            let (ending, staying): (Vec<_>, Vec<_>) =
                started.into_iter().partition(|(tunnel, _)| *tunnel == ends_first);
            ending.into_iter().for_each(|(_, running)| running.end(signal));
            for (tunnel, running) in staying {
                pair.is_up(tunnel, &running);
                if signal == Signal::SIGKILL {
                    // While the other one runs.
                    pair.undo(ends_first);
                    pair.is_up(tunnel, &running);
                }
                running.end(Signal::SIGTERM);
            }
            assert_eq!(pair.state(), before, "{what}");
        }
    }
}

#[test]
fn tunnels_that_were_killed_together_are_undone_in_any_order() {
    let Some(pair) = Pair::new() else { return };
    let before = pair.state();
    for order in [[0, 1], [1, 0]] {
        let started = [0, 1].map(|tunnel| {
            let running = pair.start(tunnel);
            pair.is_up(tunnel, &running);
            running
        });
        started.into_iter().for_each(|running| running.end(Signal::SIGKILL));
        order.into_iter().for_each(|tunnel| pair.undo(tunnel));
        assert_eq!(pair.state(), before, "{order:?}");
    }
}

#[test]
fn a_second_tunnel_to_the_same_networks_is_refused_and_leaves_the_first_one_alone() {
    let Some(pair) = Pair::new() else { return };
    let first = pair.start(0);
    pair.is_up(0, &first);
    let before = pair.state();
    let words = ["up", "--key", "client.key", "--to", TUNNELS[1][1], "--peer", &pair.hubs[1].1];
    let second = pair.hosts.start("c", &[&words[..], &["--dns-file", "resolv.conf"]].concat());
    let refused = || second.said().contains("another tunnel may have it");
    pair.hosts.wait_for("refused", refused);
    pair.hosts.wait_for("undone", || pair.state() == before);
    pair.is_up(0, &first);
}
