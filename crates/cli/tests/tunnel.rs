//! Tunnels between network namespaces: a client with two links to a hub, another client, and a host behind the hub.
//!
//! ```text
//!   client  === l1, l2 ===  hub  --- out ---  host
//!   other   ------ l3 ------'
//! ```
//!
//! Needs Linux and root; otherwise says so and passes.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "waits for real programs, which take real time")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{TestDir, can_emulate, noise};

pub const BINARY: &str = env!("CARGO_BIN_EXE_ropewalk");
/// No step takes this long, unless something is broken.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Interval between polls.
pub const POLL: Duration = Duration::from_millis(50);
/// Timeout for an answer before the request is repeated.
const ANSWER: Duration = Duration::from_millis(300);
/// The client, the other client, the hub and the host.
const HOSTS: [&str; 4] = ["c", "d", "h", "i"];
/// The port of the echo servers.
const ECHO: u16 = 7777;
/// Addresses of the hub on the two links, of the hub towards the host, and of the host.
pub const HUB: [&str; 2] = ["198.51.100.2", "203.0.113.2"];
pub const HOST: &str = "192.0.2.2";
/// Addresses in the tunnel.
const INNER_HUB: &str = "10.88.0.1";
const INNER_HUB_V6: &str = "fd88::1";

/// The namespaces, which are removed when this is dropped.
pub struct Hosts {
    prefix: String,
    pub dir: TestDir,
}

impl Hosts {
    /// Creates the topology; `None`, with a note, if the system does not permit it.
    pub fn new() -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        if !can_emulate() {
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = TestDir::new(&format!("tunnel-{number}"));
        let hosts = Self { prefix: format!("rt{}n{number}", std::process::id()), dir };
        let made = HOSTS.map(|host| ip(&["netns", "add", &hosts.name(host)]));
        if made.contains(&false) {
            eprintln!("skipped: no network namespaces");
            return None;
        }
        HOSTS.iter().for_each(|host| hosts.ip(host, &["link", "set", "lo", "up"]));
        hosts.join(["c", "l1", "198.51.100.1/30"], ["h", "l1", "198.51.100.2/30"]);
        hosts.join(["c", "l2", "203.0.113.1/30"], ["h", "l2", "203.0.113.2/30"]);
        hosts.join(["d", "l3", "100.100.0.1/30"], ["h", "l3", "100.100.0.2/30"]);
        hosts.join(["h", "out", "192.0.2.1/24"], ["i", "e0", "192.0.2.2/24"]);
        for (way, metric) in HUB.iter().zip(["100", "200"]) {
            hosts.ip("c", &["route", "add", "default", "via", way, "metric", metric]);
        }
        fs::write(hosts.dir.file("resolv.conf"), "nameserver 192.0.2.53\n").expect("written");
        Some(hosts)
    }

    pub fn name(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    pub fn ip(&self, host: &str, words: &[&str]) {
        assert!(ip(&[&["-n", &self.name(host)], words].concat()), "ip -n {host} {words:?}");
    }

    /// Joins two hosts by a link, each end given as host, device and address.
    pub fn join(&self, near: [&str; 3], far: [&str; 3]) {
        let there = self.name(far[0]);
        let pair = ["link", "add", near[1], "type", "veth", "peer", far[1], "netns", &there];
        self.ip(near[0], &pair);
        for [host, device, address] in [near, far] {
            self.ip(host, &["address", "add", address, "dev", device]);
            self.ip(host, &["link", "set", device, "up"]);
        }
    }

    /// Calls `what` in the namespace of a host.
    pub fn inside<T: Send>(&self, host: &str, what: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.name(host))).expect("it exists");
        thread::scope(|scope| {
            let work = move || {
                setns(namespace, CloneFlags::CLONE_NEWNET).expect("root may");
                what()
            };
            scope.spawn(work).join().expect("no panic")
        })
    }

    /// Starts `ropewalk tunnel` with these words on a host.
    pub fn start(&self, host: &str, words: &[&str]) -> Tunnel {
        self.start_as(host, &format!("{host}.log"), words)
    }

    pub fn start_as(&self, host: &str, log: &str, words: &[&str]) -> Tunnel {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(host), BINARY, "tunnel"]).args(words);
        command.args(["--run-directory", &format!("run-{host}")]);
        self.spawn(log, &mut command)
    }

    /// Starts a program that writes to a log.
    pub fn spawn(&self, log: &str, command: &mut Command) -> Tunnel {
        command
            .current_dir(self.dir.file("."))
            .env("ROPEWALK_RUNTIME_DIR", self.dir.file("status"));
        let log = self.dir.file(log);
        command.stdout(Stdio::null()).stderr(File::create(&log).expect("a file"));
        Tunnel { child: command.spawn().expect("a program"), log }
    }

    /// Starts a hub that admits these clients.
    pub fn serve(&self, allow: &[&str], more: &[&str]) -> Tunnel {
        let allow = allow.join(",");
        let words = ["serve", "--key", "hub.key", "--allow", &allow, "--state-directory", "state"];
        self.start("h", &[&words[..], more].concat())
    }

    /// Starts a client of the hub with this key.
    pub fn connect(&self, hub: &str, more: &[&str]) -> Tunnel {
        let to = HUB.join(",");
        let words = ["up", "--key", "client.key", "--peer", hub, "--to", &to];
        let dns = ["--dns-file", "resolv.conf"];
        self.start("c", &[&words[..], &dns, more].concat())
    }

    /// Starts a hub, a client with these words, and an echo server behind the hub. Returns the first two once it
    /// answers.
    pub fn bring_up(&self, more: &[&str]) -> (Tunnel, Tunnel) {
        let (client, hub) = (self.dir.key("client.key"), self.dir.key("hub.key"));
        echo(self, "i");
        let serve = self.serve(&[&client], &[]);
        let up = self.connect(&hub, more);
        self.wait_for_answer(HOST, &[&serve, &up]);
        (serve, up)
    }

    /// Starts a client of the hub with a umask that permits nothing to others.
    pub fn connect_masked(&self, hub: &str) -> Tunnel {
        let words = ["tunnel", "up", "--key", "client.key", "--peer", hub, "--to", HUB[0]];
        let mut command = Command::new("sh");
        command.args(["-c", "umask 077; exec \"$@\"", "sh", "ip", "netns", "exec"]);
        command.args([&self.name("c"), BINARY]).args(words);
        command.args(["--run-directory", "run-c", "--dns-file", "resolv.conf"]);
        self.spawn("c.log", &mut command)
    }

    /// Starts the other client, whose key is also admitted.
    pub fn connect_other(&self, hub: &str) -> Tunnel {
        let words = ["up", "--key", "other.key", "--peer", hub, "--to", "100.100.0.2", "--no-dns"];
        self.start("d", &words)
    }

    /// Whether an echo server on a host answers the client within [`ANSWER`].
    pub fn answers(&self, from: &str, to: &str) -> bool {
        let to = SocketAddr::new(to.parse().expect("an address"), ECHO);
        self.inside(from, || ask(to).is_some())
    }

    /// Whether an echo server answers the client and saw the address of a link, so that the packet was
    /// outside of the tunnel.
    pub fn answers_outside(&self, to: &str) -> bool {
        let to = SocketAddr::new(to.parse().expect("an address"), ECHO);
        let of_links = ["198.51.100.1", "203.0.113.1"].map(|link| link.parse().ok());
        self.inside("c", || ask(to)).is_some_and(|seen| of_links.contains(&Some(seen)))
    }

    /// Waits until the echo server answers.
    pub fn wait_for_answer(&self, to: &str, tunnels: &[&Tunnel]) {
        self.wait_for_answer_to("c", to, tunnels);
    }

    /// Waits until the echo server answers a host.
    pub fn wait_for_answer_to(&self, from: &str, to: &str, tunnels: &[&Tunnel]) {
        let start = Instant::now();
        while !self.answers(from, to) {
            let logs: Vec<String> = tunnels.iter().map(|tunnel| tunnel.said()).collect();
            assert!(start.elapsed() < PATIENCE, "no answer from {to}:\n{}", logs.join("\n"));
            thread::sleep(POLL);
        }
    }

    /// The status of the tunnel of this command.
    pub fn status(&self, command: &str) -> Value {
        let mut run = Command::new(BINARY);
        run.args(["tunnel", "status", "--json"]);
        let output = run.env("ROPEWALK_RUNTIME_DIR", self.dir.file("status")).output();
        let document: Value =
            serde_json::from_slice(&output.expect("the command").stdout).expect("JSON");
        let all = document["commands"].as_array().expect("a list").clone();
        all.into_iter().find(|it| it["command"] == command).unwrap_or_default()
    }

    /// The value of a metric of the client.
    pub fn metric(&self, name: &str) -> f64 {
        let page = self.inside("c", || {
            let mut stream = TcpStream::connect("127.0.0.1:9464").expect("it listens");
            let request =
                "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\nConnection: close\r\n\r\n";
            stream.write_all(request.as_bytes()).expect("sent");
            let mut page = String::new();
            stream.read_to_string(&mut page).expect("text");
            page
        });
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0.0)
    }

    /// Packets that a tunnel has refused for this reason.
    pub fn refused(&self, command: &str, reason: &str) -> u64 {
        let status = self.status(command);
        let all = status["tunnel"]["refused"].as_array().cloned().unwrap_or_default();
        let found = all.iter().find(|refused| refused["reason"] == reason);
        found.and_then(|refused| refused["packets"].as_u64()).unwrap_or(0)
    }

    /// The links of a tunnel.
    pub fn links(&self, command: &str) -> Vec<String> {
        let all = self.status(command)["links"].as_array().cloned().unwrap_or_default();
        all.iter().filter_map(|link| link["link"].as_str().map(str::to_owned)).collect()
    }

    /// The links of a tunnel that carry data.
    pub fn links_up(&self, command: &str) -> Vec<String> {
        let all = self.status(command)["links"].as_array().cloned().unwrap_or_default();
        let active = all.iter().filter(|link| link["state"] == "active");
        active.filter_map(|link| link["link"].as_str().map(str::to_owned)).collect()
    }

    pub fn wait_for(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < PATIENCE, "not {what}");
            thread::sleep(POLL);
        }
    }

    /// Waits until a tunnel has logged these words.
    pub fn wait_for_words(&self, tunnel: &Tunnel, words: &str) {
        let start = Instant::now();
        while !tunnel.said().contains(words) {
            assert!(start.elapsed() < PATIENCE, "not said: {words}\n{}", tunnel.said());
            thread::sleep(POLL);
        }
    }

    /// Waits for the time after which the programs have reacted to a change.
    pub fn pause(&self) {
        thread::sleep(Duration::from_millis(700));
    }

    /// The routes of the client.
    pub fn routes(&self) -> String {
        let name = self.name("c");
        let shown = Command::new("ip").args(["-n", &name, "route"]).output().expect("ip");
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }

    /// The addresses of the client in the tunnel.
    pub fn inner_addresses(&self) -> String {
        let words = ["-n", &self.name("c"), "-brief", "address", "show", "dev", "rw-tunnel"];
        let shown = Command::new("ip").args(words).output().expect("ip");
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }

    pub fn name_servers(&self) -> String {
        fs::read_to_string(self.dir.file("resolv.conf")).expect("a file")
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in HOSTS {
            ip(&["netns", "del", &self.name(host)]);
        }
    }
}

pub fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).status().is_ok_and(|status| status.success())
}

/// The source address that an echo server saw, if it answers in time.
fn ask(to: SocketAddr) -> Option<IpAddr> {
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).ok()?;
    socket.set_read_timeout(Some(ANSWER)).ok()?;
    socket.send_to(b"who am I?", to).ok()?;
    let mut answer = [0; 64];
    let (size, _) = socket.recv_from(&mut answer).ok()?;
    String::from_utf8_lossy(&answer[..size]).parse().ok()
}

/// Returns to each peer its address, until the test ends.
pub fn echo(hosts: &Hosts, host: &str) {
    for any in ["0.0.0.0", "::"] {
        let address = SocketAddr::new(any.parse().expect("an address"), ECHO);
        let socket = hosts.inside(host, || {
            let domain =
                if address.is_ipv4() { socket2::Domain::IPV4 } else { socket2::Domain::IPV6 };
            let socket =
                socket2::Socket::new(domain, socket2::Type::DGRAM, None).expect("a socket");
            if address.is_ipv6() {
                socket.set_only_v6(true).expect("an option");
            }
            socket.bind(&address.into()).expect("a free port");
            UdpSocket::from(socket)
        });
        thread::spawn(move || {
            let mut question = [0; 64];
            while let Ok((_, from)) = socket.recv_from(&mut question) {
                let _ = socket.send_to(from.ip().to_string().as_bytes(), from);
            }
        });
    }
}

/// A running `ropewalk tunnel`.
pub struct Tunnel {
    pub child: Child,
    log: PathBuf,
}

impl Tunnel {
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it runs");
    }

    /// Ends it with a signal, and waits until it has ended.
    pub fn end(mut self, signal: Signal) {
        self.signal(signal);
        self.child.wait().expect("a child");
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_client_reaches_the_internet_through_the_hub_and_everything_is_undone() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    ["h", "i"].iter().for_each(|host| echo(&hosts, host));
    let routes = hosts.routes();
    assert!(!hosts.answers("c", HOST), "the hub forwards nothing yet");
    let serve = hosts.serve(&[&client], &[]);
    let up = hosts.connect(&hub, &["--metrics", "9464"]);
    for to in [HOST, INNER_HUB, INNER_HUB_V6] {
        hosts.wait_for_answer(to, &[&serve, &up]);
    }
    let seen = || hosts.inside("c", || ask(SocketAddr::new(HOST.parse().expect("one"), ECHO)));
    hosts.wait_for("translated", || seen() == Some([192, 0, 2, 1].into()));
    assert!(hosts.name_servers().contains("9.9.9.9"), "{}", hosts.name_servers());
    // The status is published once a second.
    hosts.wait_for("both links", || hosts.links("tunnel up").len() == 2);
    let links = hosts.links("tunnel up");
    assert!(links.iter().all(|link| ["l1", "l2"].contains(&link.as_str())), "{links:?}");
    carry_much(&hosts);
    // The figures are at most a second old.
    let carried = || hosts.metric("ropewalk_tunnel_data_bytes_total{direction=\"sent\"}") > 4e6;
    hosts.wait_for("counted", carried);
    assert!(hosts.metric("ropewalk_tunnel_clients") > 0.0);
    up.end(Signal::SIGTERM);
    assert_eq!(hosts.routes(), routes);
    assert_eq!(hosts.name_servers(), "nameserver 192.0.2.53\n");
    serve.end(Signal::SIGTERM);
    let forwards = hosts.inside("h", || fs::read_to_string("/proc/sys/net/ipv4/ip_forward"));
    assert_eq!(forwards.expect("a value").trim(), "0");
}

/// Sends some megabytes by TCP through the tunnel. They must arrive unchanged.
pub fn carry_much(hosts: &Hosts) {
    let bytes = noise(4_000_000);
    let listener = hosts.inside("i", || TcpListener::bind((HOST, ECHO)).expect("a free port"));
    let receiver = thread::spawn(move || {
        let mut received = Vec::new();
        listener.accept().expect("a connection").0.read_to_end(&mut received).expect("data");
        received
    });
    hosts.inside("c", || {
        let mut stream = TcpStream::connect((HOST, ECHO)).expect("a connection");
        stream.write_all(&bytes).expect("sent");
    });
    assert!(receiver.join().expect("no panic") == bytes, "other bytes arrived");
}

#[test]
fn the_kill_switch_outlives_a_kill_and_the_next_start_undoes_what_was_left() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    ["h", "i"].iter().for_each(|host| echo(&hosts, host));
    let serve = hosts.serve(&[&client], &[]);
    let outside = HUB[1];
    hosts.wait_for("answered outside of the tunnel", || hosts.answers_outside(outside));
    let up = hosts.connect(&hub, &["--kill-switch"]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    assert!(!hosts.answers_outside(outside), "nothing leaves outside of the tunnel");
    up.end(Signal::SIGKILL);
    assert!(!hosts.answers_outside(outside), "not even after a kill");
    assert!(hosts.name_servers().contains("9.9.9.9"), "nobody has restored the name servers");
    let up = hosts.connect(&hub, &[]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    assert!(up.said().contains("tunnel changes undone"), "{}", up.said());
    hosts.wait_for("free of the kill switch", || hosts.answers_outside(outside));
    up.end(Signal::SIGINT);
    assert_eq!(hosts.name_servers(), "nameserver 192.0.2.53\n");
}

#[test]
fn a_client_may_send_only_from_its_own_addresses_and_not_to_private_networks() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    ["h", "i"].iter().for_each(|host| echo(&hosts, host));
    hosts.ip("i", &["address", "add", "10.1.2.3/24", "dev", "e0"]);
    hosts.ip("h", &["route", "add", "10.1.2.0/24", "dev", "out"]);
    let serve = hosts.serve(&[&client], &[]);
    let up = hosts.connect(&hub, &[]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    assert!(!hosts.answers("c", "10.1.2.3"), "a private network behind the hub");
    let refused = || hosts.refused("tunnel up", "foreign source");
    let before = refused();
    hosts.ip("c", &["address", "add", "10.88.7.7/32", "dev", "rw-tunnel"]);
    hosts.inside("c", || {
        let socket = UdpSocket::bind("10.88.7.7:0").expect("an own address");
        socket.send_to(b"from another client", (HOST, ECHO)).expect("sent");
    });
    hosts.wait_for("counted", || refused() > before);
    assert_eq!(hosts.refused("tunnel serve", "foreign source"), 0);
}

#[test]
fn clients_come_back_to_a_restarted_hub_and_reach_each_other_only_if_it_permits_that() {
    let Some(hosts) = Hosts::new() else { return };
    let keys = ["client.key", "other.key", "hub.key"].map(|name| hosts.dir.key(name));
    let [client, other, hub] = &keys;
    ["d", "i"].iter().for_each(|host| echo(&hosts, host));
    let serve = hosts.serve(&[client, other], &["--client-to-client"]);
    let up = hosts.connect(hub, &[]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    let down = hosts.connect_other(hub);
    hosts.wait_for_answer_to("d", HOST, &[&serve, &down]);
    // Each client got the next free address.
    hosts.wait_for_answer("10.88.0.3", &[&serve, &up, &down]);
    serve.end(Signal::SIGKILL);
    let serve = hosts.serve(&[client, other], &[]);
    for from in ["c", "d"] {
        hosts.wait_for_answer_to(from, HOST, &[&serve, &up, &down]);
    }
    assert!(!hosts.answers("c", "10.88.0.3"), "the hub does not permit it any more");
    let refused = || hosts.refused("tunnel serve", "client to client") > 0;
    hosts.wait_for("counted", refused);
}

#[test]
fn a_client_moves_to_its_next_hub_and_back_and_nothing_leaves_outside_of_the_tunnel() {
    let Some(hosts) = Hosts::new() else { return };
    let keys = ["client.key", "hub.key", "two.key"].map(|name| hosts.dir.key(name));
    let [client, hub, two] = &keys;
    ["h", "i"].iter().for_each(|host| echo(&hosts, host));
    let serve = hosts.serve(&[client], &[]);
    fs::write(hosts.dir.file("two.toml"), "network = [\"10.89.0.0/16\"]\n").expect("written");
    let at = ["--listen", "0.0.0.0:9900", "--key", "two.key", "--dns", "192.0.2.54"];
    let who = ["serve", "./two.toml", "--allow", client, "--state-directory", "two"];
    let second = hosts.start_as("h", "two.log", &[&who[..], &at].concat());
    let backup = HUB.map(|address| format!("{address}:9900")).join(",") + "=" + two;
    let up = hosts.connect(hub, &["--kill-switch", "--backup-hub", &backup]);
    hosts.wait_for_answer(HOST, &[&serve, &second, &up]);
    assert!(hosts.inner_addresses().contains("10.88.0.2"), "{}", hosts.inner_addresses());
    let outside = HUB[1];
    for _ in 0..2 {
        assert!(!hosts.answers_outside(outside), "nothing leaves outside of the tunnel");
    }
    serve.end(Signal::SIGKILL);
    let moved = || {
        assert!(!hosts.answers_outside(outside), "nothing leaves outside of the tunnel");
        hosts.answers("c", HOST) && hosts.inner_addresses().contains("10.89.0.2")
    };
    hosts.wait_for("by the second hub", moved);
    assert!(!hosts.inner_addresses().contains("10.88."), "{}", hosts.inner_addresses());
    hosts.wait_for("its name servers", || hosts.name_servers().contains("192.0.2.54"));
    let serve = hosts.serve(&[client], &[]);
    let back = || hosts.answers("c", HOST) && hosts.inner_addresses().contains("10.88.0.2");
    hosts.wait_for("back at the first hub", back);
    hosts.wait_for("its name servers", || hosts.name_servers().contains("9.9.9.9"));
    assert!(!hosts.answers_outside(outside), "nothing leaves outside of the tunnel");
    up.end(Signal::SIGTERM);
    assert_eq!(hosts.name_servers(), "nameserver 192.0.2.53\n");
    drop((serve, second));
}
