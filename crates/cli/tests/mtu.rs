//! Links with a small MTU that drop longer packets without notice, in namespaces: two hosts with a router
//! between them.
//! Needs Linux and root; otherwise says so and passes.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "waits for real programs, which take real time")]

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{TestDir, can_emulate, noise};

const BINARY: &str = env!("CARGO_BIN_EXE_ropewalk");
/// No transfer takes this long, unless the connection is broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// Hosts `a` and `b`, and the router `r` between them, in separate namespaces. The router forwards 20 Mbit/s
/// and does not send packets itself, not even ICMP.
struct Hosts {
    prefix: String,
}

impl Hosts {
    /// Creates the topology; `None`, with a note, if the system does not permit it.
    fn new(name: &str) -> Option<Self> {
        if !can_emulate() {
            return None;
        }
        let hosts = Self { prefix: format!("rope{}{name}", std::process::id()) };
        let made = ["a", "r", "b"].map(|host| ip(&["netns", "add", &hosts.name(host)]));
        if made.contains(&false) {
            eprintln!("skipped: no network namespaces");
            return None;
        }
        let router = hosts.name("r");
        for (host, near, far, side) in
            [("a", "10.91.1.1", "10.91.1.2", "w"), ("b", "10.91.2.1", "10.91.2.2", "e")]
        {
            let own = hosts.name(host);
            assert!(ip(&[
                "-n", &own, "link", "add", "e0", "type", "veth", "peer", side, "netns", &router
            ]));
            for (at, device, address) in [(&own, "e0", near), (&router, side, far)] {
                assert!(ip(&["-n", at, "address", "add", &format!("{address}/24"), "dev", device]));
                assert!(ip(&["-n", at, "link", "set", device, "up"]));
            }
            assert!(ip(&["-n", &own, "route", "add", "default", "via", far]));
            hosts.shape("r", side);
        }
        assert!(hosts.run("r", &["sysctl", "-qw", "net.ipv4.ip_forward=1"]));
        assert!(ip(&["-n", &router, "rule", "add", "iif", "lo", "blackhole", "priority", "1"]));
        Some(hosts)
    }

    /// Limits the rate to 20 Mbit/s per datagram: batches that the kernel would segment later are
    /// segmented here.
    fn shape(&self, host: &str, device: &str) {
        let limits = ["rate", "20mbit", "burst", "10000", "latency", "30ms"];
        let words = [&["tc", "qdisc", "add", "dev", device, "root", "tbf"], &limits[..]].concat();
        assert!(self.run(host, &words), "tc");
    }

    fn name(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    fn command(&self, host: &str, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(host)]).args(words);
        command
    }

    fn run(&self, host: &str, words: &[&str]) -> bool {
        self.command(host, words).status().is_ok_and(|status| status.success())
    }

    /// Sets the MTU of the router's link towards `b`.
    fn set_mtu(&self, mtu: u32) {
        let mtu = mtu.to_string();
        assert!(ip(&["-n", &self.name("r"), "link", "set", "e", "mtu", &mtu]));
    }

    /// Sets the MTU of the link's end at `b`, which then drops longer packets.
    fn set_mtu_of_b(&self, mtu: u32) {
        assert!(ip(&["-n", &self.name("b"), "link", "set", "e0", "mtu", &mtu.to_string()]));
    }

    /// Packets that the router could not forward unfragmented, and packets that it fragmented.
    fn troubles(&self) -> (u64, u64) {
        let shown = self.command("r", &["cat", "/proc/net/snmp"]).output().expect("cat");
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let mut lines = shown.lines().filter(|line| line.starts_with("Ip:"));
        let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
        let value = |name: &str| {
            let at = names.split(' ').position(|one| one == name).expect(name);
            values.split(' ').nth(at).and_then(|value| value.parse().ok()).expect("a number")
        };
        (value("FragFails"), value("FragOKs"))
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in ["a", "r", "b"] {
            ip(&["netns", "del", &self.name(host)]);
        }
    }
}

fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).status().is_ok_and(|status| status.success())
}

/// A process that is killed when this value is dropped.
struct Running(Child);

impl Running {
    fn wait(&mut self) -> bool {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return status.success();
            }
            thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends 8 MB from `a` to `b` while `meanwhile` runs; the data must arrive unchanged.
fn transfer(dir: &TestDir, hosts: &Hosts, sealed: bool, meanwhile: impl FnOnce()) {
    let bytes = noise(8_000_000);
    fs::write(dir.file("it"), &bytes).expect("a file");
    let (near, far) = (dir.key("near.key"), dir.key("far.key"));
    let (recv, send) = match sealed {
        true => (["--key", "far.key", "--allow", &near], ["--key", "near.key", "--peer", &far]),
        false => (["--plain"; 4], ["--plain"; 4]),
    };
    let options = if sealed { 4 } else { 1 };
    let begin = |host: &str, words: &[&str]| {
        let mut command = hosts.command(host, &[&[BINARY], words].concat());
        command.current_dir(dir.file(".")).stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("a program"))
    };
    let listen = ["recv", "inbox", "--once", "--overwrite", "--listen", "10.91.2.1"];
    let mut receiver = begin("b", &[&listen[..], &recv[..options]].concat());
    let mut sender = begin("a", &[&["send", "it", "--to", "10.91.2.1"], &send[..options]].concat());
    meanwhile();
    assert!(sender.wait(), "send, sealed {sealed}");
    assert!(receiver.wait(), "recv, sealed {sealed}");
    let arrived = fs::read(dir.file("inbox/it")).expect("a file");
    assert!(arrived == bytes, "other bytes arrived");
}

#[test]
fn a_file_crosses_a_link_that_carries_less_and_says_nothing() {
    let Some(hosts) = Hosts::new("s") else { return };
    for (mtu, sealed) in [(1400, true), (1280, false)] {
        let dir = TestDir::new(&format!("mtu-small-{mtu}"));
        hosts.set_mtu(mtu);
        let before = hosts.troubles();
        transfer(&dir, &hosts, sealed, || {});
        let after = hosts.troubles();
        // Probes were dropped, and no packet had to be fragmented.
        assert!(after.0 > before.0, "{mtu} B");
        assert!(after.0 - before.0 < 60, "{mtu} B: {} packets were too long", after.0 - before.0);
        assert_eq!(after.1, before.1, "{mtu} B");
    }
}

#[test]
fn a_file_crosses_a_link_that_carries_less_of_a_sudden() {
    let Some(hosts) = Hosts::new("h") else { return };
    for sealed in [true, false] {
        let dir = TestDir::new(&format!("mtu-hole-{sealed}"));
        hosts.set_mtu(1500);
        let before = hosts.troubles();
        transfer(&dir, &hosts, sealed, || {
            thread::sleep(Duration::from_millis(1500));
            hosts.set_mtu(1300);
        });
        assert!(hosts.troubles().0 > before.0, "sealed {sealed}: the file was through before");
    }
}

#[test]
fn a_file_crosses_a_link_that_loses_long_packets_without_looking_at_them() {
    let Some(hosts) = Hosts::new("l") else { return };
    let dir = TestDir::new("mtu-deaf");
    let before = hosts.troubles();
    transfer(&dir, &hosts, true, || {
        thread::sleep(Duration::from_millis(1500));
        hosts.set_mtu_of_b(1300);
    });
    // The router did not know the smaller MTU, so IP fragmentation would not have helped.
    assert_eq!(hosts.troubles(), before);
}
