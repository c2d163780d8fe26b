//! The kill switch, forwarding, and hostile or lost networks: which packets leave or pass a machine, and what a hub
//! may set. Needs Linux and root; otherwise says so and passes.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "waits for real programs, which take real time")]

use std::fs;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::tunnel::{BINARY, HOST, HUB, Hosts, Tunnel, echo};

/// An unused port, for datagrams of programs that know nothing of the tunnel.
const FOREIGN: u16 = 5555;
/// Time for which nothing may arrive.
const QUIET: Duration = Duration::from_millis(700);

/// An address of the hub's machine at which no client connects.
const ELSEWHERE: &str = "192.0.2.1";

/// A program on the client that continuously sends to another machine, and the number of its packets that arrive
/// outside of the tunnel.
pub struct Leak {
    arrived: Arc<AtomicU64>,
    ends: Arc<AtomicBool>,
}

impl Leak {
    pub fn start(hosts: &Hosts) -> Self {
        let arrived = Arc::<AtomicU64>::default();
        let ends = Arc::<AtomicBool>::default();
        let receiver = hosts.inside("h", || UdpSocket::bind((ELSEWHERE, FOREIGN)).expect("a port"));
        receiver.set_read_timeout(Some(Duration::from_millis(2))).expect("an option");
        let sender = hosts.inside("c", || UdpSocket::bind("0.0.0.0:0").expect("a port"));
        let (count, end) = (arrived.clone(), ends.clone());
        thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                // Sending fails while the machine is closed.
                let _ = sender.send_to(b"clear", (ELSEWHERE, FOREIGN));
                let mut bytes = [0; 16];
                while let Ok((_, from)) = receiver.recv_from(&mut bytes) {
                    // Packets that have passed through the tunnel have an address of the tunnel.
                    let is_outside = !from.ip().to_string().starts_with("10.88.");
                    count.fetch_add(u64::from(is_outside), Ordering::Relaxed);
                }
            }
        });
        Self { arrived, ends }
    }

    fn count(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Waits until a packet arrives.
    pub fn arrives(&self, hosts: &Hosts) {
        let before = self.count();
        hosts.wait_for("open", || self.count() > before);
    }

    /// Whether nothing arrives while `what` runs, and for a while afterwards.
    pub fn is_shut_while<T>(&self, what: impl FnOnce() -> T) -> (bool, T) {
        let before = self.count();
        let result = what();
        thread::sleep(QUIET);
        (self.count() == before, result)
    }
}

impl Drop for Leak {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// Output of a command in the namespace of a host.
fn shown(hosts: &Hosts, host: &str, words: &[&str]) -> String {
    let name = hosts.name(host);
    let shown = Command::new("ip").args(["netns", "exec", &name]).args(words).output();
    String::from_utf8_lossy(&shown.expect("a program").stdout).into_owned()
}

fn table_is_there(hosts: &Hosts) -> bool {
    shown(hosts, "c", &["nft", "list", "tables"]).contains("ropewalk-tunnel")
}

fn undo(hosts: &Hosts) {
    let directory = hosts.dir.file("run-c");
    shown(
        hosts,
        "c",
        &[BINARY, "tunnel", "undo", "--run-directory", &directory.display().to_string()],
    );
}

/// Remaining parts of a kill switch.
pub fn locks(hosts: &Hosts) -> String {
    let rules = [&["ip", "rule"][..], &["ip", "-6", "rule"], &["nft", "list", "ruleset"]];
    rules.map(|words| shown(hosts, "c", words)).concat()
}

#[test]
fn nothing_leaves_from_the_first_rule_until_an_orderly_end_whatever_fails_in_between() {
    let Some(hosts) = Hosts::new() else { return };
    let before = locks(&hosts);
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let leak = Leak::start(&hosts);
    leak.arrives(&hosts);
    // The name server is silent.
    let unknown = ["up", "--key", "client.key", "--peer", &hub, "--to", "hub.example"];
    let switch = ["--dns-file", "resolv.conf", "--kill-switch"];
    let waiting = hosts.start("c", &[&unknown[..], &switch].concat());
    hosts.wait_for("closed", || table_is_there(&hosts));
    assert!(leak.is_shut_while(|| hosts.pause()).0, "before the lookup has ended");
    assert!(leak.is_shut_while(|| waiting.end(Signal::SIGKILL)).0, "after a kill");
    // The key is missing.
    let words = ["up", "--key", "no.key", "--peer", &hub, "--to", HUB[0]];
    let (is_shut, mut failed) = leak.is_shut_while(|| {
        hosts.start("c", &[&words[..], &switch, &["--psk-file", "no.psk"]].concat())
    });
    assert!(is_shut, "without a key");
    assert_eq!(failed.child.wait().expect("a child").code(), Some(2), "{}", failed.said());
    assert!(failed.said().contains("ropewalk tunnel undo tunnel"), "{}", failed.said());
    // The tunnel runs, and another program removes the rules.
    let serve = hosts.serve(&[&client], &[]);
    let (is_shut, up) = leak.is_shut_while(|| hosts.connect(&hub, &["--kill-switch"]));
    assert!(is_shut, "while it starts");
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    for flush in [
        &["nft", "flush", "ruleset"][..],
        &["ip", "rule", "flush"],
        &["ip", "route", "flush", "table", "main"],
    ] {
        let (is_shut, _) = leak.is_shut_while(|| shown(&hosts, "c", flush));
        assert!(is_shut, "{flush:?}");
        if flush[1] == "rule" {
            hosts.ip("c", &["rule", "add", "table", "main", "priority", "32766"]);
            hosts.ip("c", &["rule", "add", "table", "default", "priority", "32767"]);
        }
        hosts
            .wait_for("closed again", || table_is_there(&hosts) && locks(&hosts).contains("29303"));
    }
    let gone = || shown(&hosts, "c", &["ip", "link", "del", "rw-tunnel"]);
    assert!(leak.is_shut_while(gone).0, "without its device");
    hosts.wait_for("ended", || up.said().contains("ropewalk tunnel undo"));
    undo(&hosts);
    restore_routes(&hosts);
    leak.arrives(&hosts);
    assert_eq!(locks(&hosts), before);
}

/// Restores the routes that a flush has removed.
fn restore_routes(hosts: &Hosts) {
    for link in ["l1", "l2"] {
        hosts.ip("c", &["link", "set", link, "down"]);
        hosts.ip("c", &["link", "set", link, "up"]);
    }
    // The addresses remain, and restore the routes of their networks.
    for (way, metric) in HUB.iter().zip(["100", "200"]) {
        hosts.ip("c", &["route", "replace", "default", "via", way, "metric", metric]);
    }
}

#[test]
fn a_machine_that_is_held_closed_stays_so_when_tunnels_end() {
    let Some(hosts) = Hosts::new() else { return };
    let before = locks(&hosts);
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let leak = Leak::start(&hosts);
    let mut close = hosts.connect(&hub, &["--kill-switch", "--only-close"]);
    assert_eq!(close.child.wait().expect("a child").code(), Some(0), "{}", close.said());
    let serve = hosts.serve(&[&client], &[]);
    for words in [&["--kill-switch"][..], &[]] {
        let (is_shut, ()) = leak.is_shut_while(|| {
            let up = hosts.connect(&hub, words);
            hosts.wait_for_answer(HOST, &[&serve, &up]);
            up.end(Signal::SIGTERM);
        });
        assert!(is_shut, "{words:?}");
    }
    undo(&hosts);
    leak.arrives(&hosts);
    assert_eq!(locks(&hosts), before);
}

#[test]
fn the_routes_into_a_tunnel_come_back_whatever_other_programs_do() {
    let Some(hosts) = Hosts::new() else { return };
    let (serve, up) = hosts.bring_up(&[]);
    let device = "rw-tunnel";
    for words in [
        &["link", "set", device, "down"][..],
        &["route", "flush", "dev", device],
        &["address", "flush", "dev", device],
    ] {
        hosts.ip("c", words);
        hosts.wait_for("there again", || {
            let routes = hosts.routes();
            ["0.0.0.0/1", "128.0.0.0/1"]
                .iter()
                .all(|half| routes.contains(&format!("{half} dev {device}")))
        });
        hosts.wait_for_answer(HOST, &[&serve, &up]);
    }
}

#[test]
fn a_hub_that_moves_is_found_by_its_name() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    // `ip netns exec` mounts this as /etc/hosts.
    let directory = format!("/etc/netns/{}", hosts.name("c"));
    fs::create_dir_all(&directory).expect("root may");
    let file = format!("{directory}/hosts");
    let name =
        |address: &str| fs::write(&file, format!("{address} hub.example\n")).expect("root may");
    name(HUB[0]);
    let serve = hosts.serve(&[&client], &[]);
    let words = ["up", "--key", "client.key", "--peer", &hub, "--to", "hub.example"];
    for more in [&["--no-dns"][..], &["--no-dns", "--kill-switch"]] {
        name(HUB[0]);
        hosts.ip("h", &["address", "replace", "198.51.100.2/30", "dev", "l1"]);
        let up = hosts.start("c", &[&words[..], more].concat());
        hosts.wait_for_answer(HOST, &[&serve, &up]);
        hosts.ip("h", &["address", "del", "198.51.100.2/30", "dev", "l1"]);
        name(HUB[1]);
        let moved = Instant::now();
        hosts.wait_for_answer(HOST, &[&serve, &up]);
        hosts.wait_for("moved", || {
            hosts.answers("c", HOST) || moved.elapsed() > Duration::from_secs(30)
        });
        assert!(moved.elapsed() < Duration::from_secs(30), "{}", up.said());
        up.end(Signal::SIGTERM);
    }
    fs::remove_dir_all(&directory).expect("its own");
}

#[test]
fn where_ipv6_is_off_at_either_end_ipv4_is_carried_and_one_line_says_so() {
    for host in ["c", "h"] {
        let Some(hosts) = Hosts::new() else { return };
        for which in ["all", "default"] {
            let file = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
            hosts.inside(host, || fs::write(&file, "1").expect("root may"));
        }
        let (serve, up) = hosts.bring_up(&["--kill-switch"]);
        let said = [serve.said(), up.said()].concat();
        assert!(said.contains("IPv6"), "{said}");
        for tunnel in [up, serve] {
            tunnel.end(Signal::SIGTERM);
        }
    }
}

/// Whether a host receives an answer from the echo server on another one, with routes through these
/// machines.
fn passes(hosts: &Hosts, from: &str, to: &str) -> bool {
    (0..3).any(|_| hosts.answers(from, to))
}

/// Another program flushes the packet filter of a host while its tunnel cannot react. Nothing may pass meanwhile. Linux
/// before 6.9 has no tables that other programs cannot remove.
fn holds_without_reaction(hosts: &Hosts, [of, from]: [&str; 2], tunnel: &Tunnel, to: &str) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
    if (numbers.next(), numbers.next()) < (Some(6), Some(9)) {
        println!(
            "skipped a flushed packet filter: Linux {release} has no lasting owners of tables"
        );
        return;
    }
    let rules = || shown(hosts, of, &["nft", "list", "ruleset"]);
    tunnel.signal(Signal::SIGSTOP);
    shown(hosts, of, &["nft", "flush", "ruleset"]);
    let passed = passes(hosts, from, to);
    tunnel.signal(Signal::SIGCONT);
    assert!(!passed, "the packet filter was flushed: {}", rules());
}

#[test]
fn a_hub_forwards_for_its_clients_and_between_no_other_networks() {
    let Some(hosts) = Hosts::new() else { return };
    // A neighbour of the hub that uses it as a router to the host behind it.
    hosts.ip("d", &["route", "add", "default", "via", "100.100.0.2"]);
    hosts.ip("i", &["route", "add", "100.100.0.0/30", "via", "192.0.2.1"]);
    let (serve, up) = hosts.bring_up(&[]);
    assert!(!passes(&hosts, "d", HOST), "not before the tunnel, and not with it");
    // A packet to a client that has sent none.
    hosts.ip("i", &["route", "add", "10.88.0.0/16", "via", "192.0.2.1"]);
    echo(&hosts, "c");
    assert!(!passes(&hosts, "i", "10.88.0.2"), "unsolicited");
    holds_without_reaction(&hosts, ["h", "d"], &serve, HOST);
    let ends = |tunnel: Tunnel| tunnel.end(Signal::SIGKILL);
    ends(serve);
    assert!(!passes(&hosts, "d", HOST), "after a kill");
    drop(up);
}

#[test]
fn a_client_that_shares_its_tunnel_forwards_nothing_else() {
    let Some(hosts) = Hosts::new() else { return };
    hosts.join(["c", "lan", "172.30.0.1/24"], ["d", "l4", "172.30.0.2/24"]);
    hosts.ip("d", &["route", "add", "default", "via", "172.30.0.1"]);
    echo(&hosts, "d");
    echo(&hosts, "h");
    // A neighbour on a link of the client that uses it as a router.
    hosts.ip("h", &["route", "add", "172.30.0.0/24", "via", "198.51.100.1"]);
    let (serve, up) = hosts.bring_up(&["--share"]);
    hosts.wait_for_answer_to("d", HOST, &[&serve, &up]);
    assert!(!passes(&hosts, "h", "172.30.0.2"), "from a link into the home network");
    let rules = shown(&hosts, "c", &["nft", "list", "ruleset"]);
    let value = |link: &str| {
        let file = format!("/proc/sys/net/ipv4/conf/{link}/forwarding");
        hosts.inside("c", || fs::read_to_string(&file).expect("a value"))
    };
    assert_eq!(
        ["l1", "l2", "lan"].map(|link| value(link).trim() == "1"),
        [false, false, true],
        "{rules}"
    );
    up.end(Signal::SIGTERM);
    assert!(!passes(&hosts, "d", HOST), "after the end");
}

#[test]
fn the_port_of_the_endpoint_takes_no_part_in_translation() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let serve = hosts.serve(&[&client], &["--allow-private"]);
    let up = hosts.connect(&hub, &[]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    // A packet from inside the tunnel, with the port of the hub, to a machine that is about to send
    // to the hub.
    let victim = hosts.inside("d", || UdpSocket::bind(("100.100.0.1", FOREIGN)).expect("a port"));
    let attacker = hosts.inside("c", || UdpSocket::bind(("10.88.0.2", 9899)).expect("a port"));
    for socket in [&victim, &attacker] {
        socket.set_read_timeout(Some(QUIET)).expect("an option");
    }
    let mut bytes = [0; 64];
    attacker.send_to(b"shadow", ("100.100.0.1", FOREIGN)).expect("sent");
    let (_, from) = victim.recv_from(&mut bytes).expect("it is carried");
    assert_eq!(from.ip().to_string(), "100.100.0.2", "translated");
    victim.send_to(b"for the hub", ("100.100.0.2", 9899)).expect("sent");
    assert!(attacker.recv_from(&mut bytes).is_err(), "it went to another client: {from}");
}
