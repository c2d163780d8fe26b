//! What a tunnel changes on its machine: routes, packet filter. Every change is in the journal.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use ropewalk_runtime::interfaces;
use ropewalk_runtime::system::firewall::{Action, Chain, Hook, Match, Rule, Table};
use ropewalk_runtime::system::routes::{self, Hop, Route};

use super::addresses;
use super::journal::{Journal, JournalError};

/// Ports of DHCP and of DHCPv6: source and destination of what a client sends (RFC 2131, 4.1; RFC 9915, 7.2).
const DHCP: [(u16, u16); 2] = [(68, 67), (546, 547)];
/// Networks that are not in the open Internet, which clients of a hub reach only if the operator permits it
/// (RFC 6890): private, shared and link-local.
const PRIVATE: [&str; 6] = [
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "fc00::/7",
];

/// The networks that a tunnel carries: two halves of each address space, which leave the default route as it is.
pub fn everything() -> Vec<IpNet> {
    let halves = ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"];
    halves.iter().map(|half| half.parse().expect("a network")).collect()
}

/// A network of one address.
pub fn single(address: IpAddr) -> IpNet {
    match address {
        IpAddr::V4(ip) => Ipv4Net::from(ip).into(),
        IpAddr::V6(ip) => Ipv6Net::from(ip).into(),
    }
}

/// A network of a tunnel overlaps one that this machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The network of the tunnel.
    pub network: IpNet,
    /// The machine's address, with the prefix of its network.
    pub address: IpNet,
    /// The interface that has it.
    pub interface: String,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { network, address, interface } = self;
        write!(
            f,
            "the tunnel's network {network} overlaps {address}, which {interface} of this machine has"
        )
    }
}

/// Finds a network of this machine that overlaps one of these, except those of the interface `own`.
///
/// # Errors
/// As the system says.
pub fn overlap(networks: &[IpNet], own: &str) -> io::Result<Option<Overlap>> {
    let addresses = interfaces::list()?.into_iter().filter(|address| address.name != own);
    let mut found = addresses.filter_map(|address| {
        let with_prefix = IpNet::new(address.ip, address.prefix).ok()?;
        let network = *networks.iter().find(|it| addresses::overlap(it, &with_prefix.trunc()))?;
        Some(Overlap { network, address: with_prefix, interface: address.name })
    });
    Ok(found.next())
}

/// Sends a network into the tunnel.
///
/// # Errors
/// A route exists already, or as the system says.
pub fn route_into_tunnel(interface: u32, network: IpNet) -> io::Result<()> {
    if routes::add_route(&into_tunnel(interface, network))? {
        return Ok(());
    }
    let message = format!("there is a route to {network} already: another tunnel may have it");
    Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
}

/// Sends a network into the tunnel no longer.
pub fn route_past_tunnel(interface: u32, network: IpNet) {
    // The system may have removed it.
    let _ = routes::remove_route(&into_tunnel(interface, network));
}

fn into_tunnel(interface: u32, to: IpNet) -> Route {
    Route { to, hops: vec![Hop::to_link(interface)], metric: None, source: None }
}

/// The rules that let nothing leave this machine, or pass it, outside of the tunnel: only packets to the peers, DHCP,
/// neighbour discovery, and packets to the networks in `direct`.
pub fn kill_switch(table: &str, device: &str, peers: &[SocketAddr], direct: &[IpNet]) -> Table {
    let accept = |matches: Vec<Match>| Rule::new(matches, Action::Accept);
    let to_peer = |peer: &SocketAddr| {
        let network = single(peer.ip().to_canonical());
        accept(vec![Match::Destination(network), Match::UdpDestination(peer.port())])
    };
    let mut output = vec![
        accept(vec![Match::By("lo".to_owned())]),
        accept(vec![Match::By(device.to_owned())]),
        accept(vec![Match::NeighbourDiscovery]),
    ];
    output.extend(peers.iter().map(to_peer));
    output.extend(
        DHCP.map(|(from, to)| accept(vec![Match::UdpSource(from), Match::UdpDestination(to)])),
    );
    output.extend(direct.iter().map(|network| accept(vec![Match::Destination(*network)])));
    output.push(Rule::new([], Action::Reject));
    let mut forward = vec![
        accept(vec![Match::By(device.to_owned())]),
        accept(vec![Match::From(device.to_owned())]),
    ];
    for network in direct {
        forward.push(accept(vec![Match::Source(*network)]));
        forward.push(accept(vec![Match::Destination(*network)]));
    }
    forward.push(Rule::new([], Action::Reject));
    Table {
        name: table.to_owned(),
        chains: vec![
            Chain { hook: Hook::Output, drops: true, rules: output },
            Chain { hook: Hook::Forward, drops: true, rules: forward },
        ],
    }
}

/// The rules that give packets of networks behind this machine the client's address.
pub fn share(device: &str) -> Chain {
    let translated = Rule::new([Match::By(device.to_owned())], Action::Masquerade);
    Chain { hook: Hook::SourceNat, drops: false, rules: vec![translated] }
}

/// The rules of a hub: translation of the clients' addresses, and protection of private networks.
pub fn hub_rules(table: &str, device: &str, pool: &[IpNet], nat: bool, private: bool) -> Table {
    let leaves = |network: &IpNet| {
        let matches = [Match::Source(*network), Match::NotBy(device.to_owned())];
        Rule::new(matches, Action::Masquerade)
    };
    let protects = |network: &&str| {
        let network = network.parse().expect("a network");
        let from = Match::From(device.to_owned());
        let matches = [from, Match::NotBy(device.to_owned()), Match::Destination(network)];
        Rule::new(matches, Action::Reject)
    };
    let forward = if private { Vec::new() } else { PRIVATE.iter().map(protects).collect() };
    let source_nat = if nat { pool.iter().map(leaves).collect() } else { Vec::new() };
    Table {
        name: table.to_owned(),
        chains: vec![
            Chain { hook: Hook::Forward, drops: false, rules: forward },
            Chain { hook: Hook::SourceNat, drops: false, rules: source_nat },
        ],
    }
}

/// Lets this machine forward packets of these networks: each interface, except the loopback interface. Must be called
/// again from time to time: interfaces may appear.
///
/// The switches for the whole machine stay as they are where the kernel permits it. Writing them resets other values of all
/// interfaces, and other programs take them for a sign that they need not be written.
///
/// # Errors
/// As the system says.
pub fn forward(journal: &mut Journal, pool: &[IpNet]) -> Result<(), JournalError> {
    if pool.iter().any(|network| network.addr().is_ipv4()) {
        let conf = Path::new("/proc/sys/net/ipv4/conf");
        set_on_interfaces(journal, conf, "forwarding")?;
    }
    let conf = Path::new("/proc/sys/net/ipv6/conf");
    // A machine without IPv6 forwards none.
    if pool.iter().all(|network| network.addr().is_ipv4()) || !conf.exists() {
        return Ok(());
    }
    // IPv6 looks at the switch for the whole machine, or, since Linux 6.17, at this value of the interface.
    if conf.join("all/force_forwarding").exists() {
        return set_on_interfaces(journal, conf, "force_forwarding");
    }
    forward_ipv6_everywhere(journal, conf)
}

/// Switches a value on for all interfaces.
fn set_on_interfaces(journal: &mut Journal, conf: &Path, key: &str) -> Result<(), JournalError> {
    let switch = conf.join("all").join(key);
    for interface in interface_values(conf) {
        match journal.set(&interface.join(key), "1", Some(&switch)) {
            // The interface has gone meanwhile.
            Err(JournalError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

/// The directories of the interfaces' values, except the one of the loopback interface.
fn interface_values(conf: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(conf).into_iter().flatten().flatten();
    let is_other =
        |path: &PathBuf| !["all", "default", "lo"].iter().any(|name| path.ends_with(name));
    entries.map(|entry| entry.path()).filter(is_other)
}

/// Switches forwarding of IPv6 on for the whole machine. A machine that forwards ignores router advertisements, and would
/// lose its own default route, unless told so.
fn forward_ipv6_everywhere(journal: &mut Journal, conf: &Path) -> Result<(), JournalError> {
    let all: Vec<PathBuf> = interface_values(conf).collect();
    for file in all.iter().map(|interface| interface.join("accept_ra")) {
        if std::fs::read_to_string(&file).is_ok_and(|value| value.trim() == "1") {
            journal.set(&file, "2", None)?;
        }
    }
    let others = [conf.join("default"), conf.join("lo")];
    let dependent: Vec<PathBuf> =
        all.iter().chain(&others).map(|interface| interface.join("forwarding")).collect();
    journal.set_switch(&conf.join("all/forwarding"), "1", &dependent)
}
