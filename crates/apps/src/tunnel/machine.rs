//! What a tunnel changes on its machine: routes, packet filter, name servers. Every change is in the journal.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use ropewalk_runtime::system::firewall::{Action, Chain, Hook, Match, Rule, Table};
use ropewalk_runtime::system::routes::{self, Hop, Route};

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

/// Lets this machine forward packets of these networks.
///
/// # Errors
/// As the system says.
pub fn forward(journal: &mut Journal, pool: &[IpNet]) -> Result<(), JournalError> {
    if pool.iter().any(|network| network.addr().is_ipv4()) {
        journal.set(Path::new("/proc/sys/net/ipv4/ip_forward"), "1")?;
    }
    if pool.iter().all(|network| network.addr().is_ipv4()) {
        return Ok(());
    }
    let interfaces = Path::new("/proc/sys/net/ipv6/conf");
    // A machine without IPv6 forwards none.
    let Ok(entries) = std::fs::read_dir(interfaces) else { return Ok(()) };
    // A machine that forwards ignores router advertisements, and would lose its own default route, unless told so.
    for entry in entries.flatten() {
        let file = entry.path().join("accept_ra");
        if std::fs::read_to_string(&file).is_ok_and(|value| value.trim() == "1") {
            journal.set(&file, "2")?;
        }
    }
    journal.set(&interfaces.join("all/forwarding"), "1")
}

/// Sets the name servers, unless this tunnel has set the same ones.
///
/// # Errors
/// Another tunnel has set them, or as the system says.
pub fn set_name_servers(
    journal: &mut Journal,
    file: &Path,
    tunnel: &str,
    servers: &[IpAddr],
) -> Result<(), JournalError> {
    let mark = "# written by ropewalk tunnel ";
    let now = std::fs::read_to_string(file).unwrap_or_default();
    let lines: String = servers.iter().map(|server| format!("nameserver {server}\n")).collect();
    let text = format!("{mark}{tunnel}\n{lines}");
    if now == text {
        return Ok(());
    }
    let owner = now.lines().next().and_then(|line| line.strip_prefix(mark));
    if let Some(other) = owner.filter(|owner| *owner != tunnel) {
        let message = format!("the tunnel {other} has set the name servers");
        return Err(JournalError::Io(file.to_owned(), io::Error::other(message)));
    }
    journal.replace(file, &text)
}
