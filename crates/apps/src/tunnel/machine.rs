//! Networks of a machine that a tunnel has to know, and the rules of the kill switch.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use ropewalk_runtime::interfaces;
use ropewalk_runtime::system::firewall::{Action, Chain, Hook, Match, Rule, Table};

use super::addresses;
use super::steering::LOOKUP_MARK;

/// Ports of DHCP and of DHCPv6: source and destination of what a client sends (RFC 2131, 4.1; RFC 9915, 7.2).
pub(super) const DHCP: [(u16, u16); 2] = [(68, 67), (546, 547)];
/// Port of name servers (RFC 1035, 4.2).
pub(super) const DOMAIN: u16 = 53;

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

/// The rules that let nothing leave this machine, or pass it, outside of the tunnel: only packets to the peers, lookups of
/// their names, DHCP, neighbour discovery, and packets to the networks in `direct`.
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
    for port in [Match::UdpDestination(DOMAIN), Match::TcpDestination(DOMAIN)] {
        output.push(accept(vec![Match::Mark(LOOKUP_MARK), port]));
    }
    output.extend(
        DHCP.map(|(from, to)| accept(vec![Match::UdpSource(from), Match::UdpDestination(to)])),
    );
    output.extend(direct.iter().map(|network| accept(vec![Match::Destination(*network)])));
    output.push(Rule::new([], Action::Reject));
    let mut forward = vec![
        accept(vec![Match::By(device.to_owned())]),
        accept(vec![Match::From(device.to_owned())]),
    ];
    // What comes from there leaves by the tunnel, as all packets do.
    forward.extend(direct.iter().map(|network| accept(vec![Match::Destination(*network)])));
    forward.push(Rule::new([], Action::Reject));
    Table {
        name: table.to_owned(),
        chains: vec![
            Chain { hook: Hook::Output, drops: true, rules: output },
            Chain { hook: Hook::Forward, drops: true, rules: forward },
        ],
    }
}
