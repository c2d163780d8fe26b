//! The second lock of a closed machine: rules of policy routing.
//!
//! ```text
//!   10  to the hubs, marked packets, to direct networks: main table
//!   11  TCP, UDP, ICMP, ICMPv6, SCTP: the table of the tunnel, in which everything else is unreachable
//! ```
//!
//! The packet filter alone closes the machine. A program that flushes it (`nft flush ruleset`) opens the machine
//! until the client has installed it again; the rules hold during that time. They name protocols, because a rule for
//! all packets would prevent the kernel from accepting default routes: it looks up their gateways by the same rules.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use ipnet::IpNet;
use ropewalk_runtime::system::routes::MAIN;
use ropewalk_runtime::system::rules::RoutingRule;

use super::journal::CLOSED_TABLE;
use super::networks::single;
use crate::captive_portal::HTTP;

/// Ports of DHCP and of DHCPv6: source and destination of what a client sends (RFC 2131, 4.1; RFC 9915, 7.2).
pub(super) const DHCP: [(u16, u16); 2] = [(68, 67), (546, 547)];
/// Port of name servers (RFC 1035, 4.2).
pub(super) const DOMAIN: u16 = 53;

/// The mark of the sockets that look up the names of hubs or find captive portals: "rw" and a number.
pub const OUTSIDE_MARK: u32 = 0x7277_0035;

const EXCEPTIONS: u32 = 10;
const CLOSED: u32 = 11;
/// Protocol numbers of IP (IANA).
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;

/// The rules of a closed machine. Packets that the tunnel's device delivers keep their routes, and so do packets to
/// the networks in `direct` and to the hubs. If the reverse path filter is strict, an answer to a marked packet must
/// find a route back.
pub(super) fn rules(
    device: &str,
    direct: &[IpNet],
    hubs: &[SocketAddr],
    name_servers: &[IpAddr],
) -> Vec<RoutingRule> {
    let ips = hubs.iter().map(|hub| hub.ip().to_canonical());
    let servers = name_servers.iter().flat_map(|ip| [(*ip, UDP, DOMAIN), (*ip, TCP, DOMAIN)]);
    let answers = servers.chain(ips.map(|ip| (ip, TCP, HTTP)));
    let answers = answers.filter(|(ip, ..)| ip.is_ipv4() && filters_strictly());
    let hubs = hubs.iter().map(|hub| (hub.ip().to_canonical(), UDP, hub.port()));
    let outside: BTreeSet<_> = hubs.chain(answers).filter(|(ip, ..)| !ip.is_loopback()).collect();
    let families = [false, true].into_iter().filter(|ipv6| !ipv6 || has_ipv6());
    families.flat_map(|ipv6| of_family(ipv6, device, direct, &outside)).collect()
}

/// `outside`: addresses, protocols and ports.
fn of_family(
    ipv6: bool,
    device: &str,
    direct: &[IpNet],
    outside: &BTreeSet<(IpAddr, u8, u16)>,
) -> Vec<RoutingRule> {
    let (dhcp_client, dhcp_server) = DHCP[usize::from(ipv6)];
    let except = RoutingRule { ipv6, priority: EXCEPTIONS, table: MAIN, ..RoutingRule::default() };
    let mut all = vec![
        RoutingRule { from_interface: Some(device.to_owned()), ..except.clone() },
        RoutingRule { mark: Some(OUTSIDE_MARK), ..except.clone() },
        RoutingRule {
            protocol: Some(UDP),
            source_port: Some(dhcp_client),
            destination_port: Some(dhcp_server),
            ..except.clone()
        },
    ];
    for network in direct.iter().filter(|network| network.addr().is_ipv6() == ipv6) {
        all.push(RoutingRule { to: Some(*network), ..except.clone() });
    }
    for (address, protocol, port) in outside.iter().filter(|(ip, ..)| ip.is_ipv6() == ipv6) {
        let (to, protocol) = (Some(single(*address)), Some(*protocol));
        all.push(RoutingRule { to, protocol, destination_port: Some(*port), ..except.clone() });
    }
    let icmp = if ipv6 { ICMPV6 } else { ICMP };
    for protocol in [TCP, UDP, SCTP, icmp] {
        all.push(RoutingRule {
            ipv6,
            priority: CLOSED,
            table: CLOSED_TABLE,
            protocol: Some(protocol),
            ..RoutingRule::default()
        });
    }
    all
}

/// Whether an interface drops packets whose sender is reached through another interface (`rp_filter` 1, IPv4
/// only).
fn filters_strictly() -> bool {
    let entries = fs::read_dir("/proc/sys/net/ipv4/conf").into_iter().flatten().flatten();
    let values = entries.map(|entry| fs::read_to_string(entry.path().join("rp_filter")));
    values.flatten().any(|value| value.trim() == "1")
}

/// Whether this machine has IPv6, and it is not disabled.
pub fn has_ipv6() -> bool {
    is_on(Path::new("/proc/sys/net/ipv6/conf/lo/disable_ipv6"))
}

/// Whether an interface may have IPv6 addresses.
pub fn permits_ipv6(device: &str) -> bool {
    is_on(&Path::new("/proc/sys/net/ipv6/conf").join(device).join("disable_ipv6"))
}

/// A machine without IPv6 has no such file.
fn is_on(disabled: &Path) -> bool {
    fs::read_to_string(disabled).is_ok_and(|value| value.trim() == "0")
}
