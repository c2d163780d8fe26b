//! A host in two private networks, each behind its own translator (NAT by nftables), and a server with a public
//! address.
//!
//! ```text
//!   client  10.88.1.2 -- 10.88.1.1  translator 1  203.0.113.101 -- 203.0.113.1   server
//!           10.88.2.2 -- 10.88.2.1  translator 2  198.51.100.102 -- 198.51.100.1
//! ```
//!
//! Both networks reach the server at 203.0.113.1.

use std::fs::{self, File};
use std::io::Write;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use crate::hosts::{inside, namespace, path_of};
use crate::{Missing, ours};

/// The server's address.
pub const SERVER: &str = "203.0.113.1";
/// Translated source addresses of the client's packets, by network.
pub const PUBLIC: [&str; 2] = ["203.0.113.101", "198.51.100.102"];
/// The client's own addresses, by network.
pub const PRIVATE: [&str; 2] = ["10.88.1.2", "10.88.2.2"];

const MASQUERADE: &str = "table ip nat {\n chain post {\n  type nat hook postrouting priority srcnat;\n  \
     oifname \"out\" masquerade\n }\n}\n";

/// The namespaces, which disappear when this is dropped.
#[derive(Debug)]
pub struct Translators {
    client: File,
    server: File,
    translators: [File; 2],
}

impl Translators {
    /// Creates the hosts, with the client in the first network.
    ///
    /// # Errors
    /// If the system does not provide namespaces or nftables.
    pub fn new() -> Result<Self, Missing> {
        let translators = [namespace()?, namespace()?];
        let all = Self { client: namespace()?, server: namespace()?, translators };
        for host in [&all.client, &all.server] {
            ip(host, "link set lo up")?;
        }
        for (at, translator) in all.translators.iter().enumerate() {
            let (net, prefix) = (at + 1, ["203.0.113", "198.51.100"][at]);
            let there = path_of(translator);
            let there = there.display();
            ip(&all.client, &format!("link add n{net} type veth peer name in netns {there}"))?;
            ip(&all.server, &format!("link add s{net} type veth peer name out netns {there}"))?;
            ip(&all.server, &format!("address add {prefix}.1/24 dev s{net}"))?;
            ip(&all.server, &format!("link set s{net} up"))?;
            ip(translator, &format!("address add 10.88.{net}.1/24 dev in"))?;
            ip(translator, &format!("address add {}/24 dev out", PUBLIC[at]))?;
            ip(translator, "link set in up")?;
            ip(translator, "link set out up")?;
            ip(translator, &format!("route add default via {prefix}.1"))?;
            inside(translator, || fs::write("/proc/sys/net/ipv4/ip_forward", "1"))
                .map_err(|error| Missing(format!("forwarding of packets: {error}")))?;
            nft(translator, MASQUERADE)?;
        }
        all.enter(1)?;
        Ok(all)
    }

    /// Adds the client to a network: its interface has an address and, if it is the only one, the default route.
    ///
    /// # Errors
    /// If that fails.
    pub fn enter(&self, net: usize) -> Result<(), Missing> {
        ip(&self.client, &format!("address add {}/24 dev n{net}", PRIVATE[net - 1]))?;
        ip(&self.client, &format!("link set n{net} up"))?;
        ip(&self.client, &format!("route add default via 10.88.{net}.1 dev n{net} metric {net}"))
    }

    /// Removes the client from a network: its interface is down and has no address.
    ///
    /// # Errors
    /// If that fails.
    pub fn leave(&self, net: usize) -> Result<(), Missing> {
        ip(&self.client, &format!("link set n{net} down"))?;
        ip(&self.client, &format!("address flush dev n{net}"))
    }

    /// Runs `what` on the client, in a new runtime.
    ///
    /// # Panics
    /// If it takes longer than a minute, or panics.
    pub fn on_client<T: Send>(&self, what: impl AsyncFnOnce() -> T + Send) -> T {
        inside(&self.client, || ours::run(what))
    }

    /// Runs `what` on the server, in a new runtime.
    ///
    /// # Panics
    /// If it takes longer than a minute, or panics.
    pub fn on_server<T: Send>(&self, what: impl AsyncFnOnce() -> T + Send) -> T {
        inside(&self.server, || ours::run(what))
    }

    /// Makes a translator drop all packets.
    ///
    /// # Panics
    /// If nftables refuses.
    pub fn block(&self, net: usize) {
        let rules = "table ip block {\n chain pass {\n  type filter hook forward priority 0;\n  drop\n }\n}\n";
        nft(&self.translators[net - 1], rules).expect("nft");
    }
}

/// Parses an address.
///
/// # Panics
/// If the text is not an address.
pub fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn ip(host: &File, words: &str) -> Result<(), Missing> {
    let mut command = Command::new("ip");
    command.args(words.split(' '));
    run(host, command, "", &format!("`ip {words}` (package iproute2)"))
}

fn nft(host: &File, rules: &str) -> Result<(), Missing> {
    let mut command = Command::new("nft");
    command.args(["-f", "-"]);
    run(host, command, rules, "`nft` (package nftables)")
}

fn run(host: &File, mut command: Command, input: &str, name: &str) -> Result<(), Missing> {
    let missing = |why: String| Missing(format!("{name}: {}", why.trim()));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let ended = inside(host, || {
        let mut child = command.spawn()?;
        child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes()))?;
        child.wait_with_output()
    });
    let ended = ended.map_err(|error| missing(error.to_string()))?;
    if ended.status.success() {
        return Ok(());
    }
    Err(missing(String::from_utf8_lossy(&ended.stderr).into_owned()))
}
