//! The second lock of a closed machine: rules of policy routing.
//!
//! ```text
//!   10  to the hubs, to name servers for marked lookups, to direct networks: main table
//!   11  TCP, UDP, ICMP, ICMPv6, SCTP: the table of the tunnel, in which everything else is unreachable
//! ```
//!
//! The packet filter closes the machine on its own. A program that flushes it (`nft flush ruleset`) opens it for the moment
//! that the client needs to install it again: then the rules hold. They name protocols, because a rule for all packets
//! would keep the kernel from accepting default routes: it looks up their gateways by the same rules.

use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use ropewalk_runtime::system::rules::RoutingRule;

use super::journal::CLOSED_TABLE;
use super::machine::{DHCP, single};

/// The mark of the sockets that look up the names of hubs: "rw" and a number.
pub const LOOKUP_MARK: u32 = 0x7277_0035;

const MAIN: u32 = 254;
const EXCEPTIONS: u32 = 10;
const CLOSED: u32 = 11;
/// Protocol numbers of IP (IANA).
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const SCTP: u8 = 132;

/// The rules of a closed machine. Packets that the tunnel's device delivers keep their ways, and so do packets to the networks in
/// `direct`, and UDP and TCP to the addresses in `outside`: hubs and name servers. An answer to a packet of these must find
/// a way back, or the reverse path filter drops it.
pub fn rules(device: &str, direct: &[IpNet], outside: &[IpAddr]) -> Vec<RoutingRule> {
    let families = [false, true].into_iter().filter(|ipv6| !ipv6 || has_ipv6());
    families.flat_map(|ipv6| of_family(ipv6, device, direct, outside)).collect()
}

fn of_family(ipv6: bool, device: &str, direct: &[IpNet], outside: &[IpAddr]) -> Vec<RoutingRule> {
    let except = RoutingRule { ipv6, priority: EXCEPTIONS, table: MAIN, ..RoutingRule::default() };
    let mut all = vec![
        RoutingRule { from_interface: Some(device.to_owned()), ..except.clone() },
        RoutingRule { mark: Some(LOOKUP_MARK), ..except.clone() },
        RoutingRule { protocol: Some(UDP), ports: Some(DHCP[usize::from(ipv6)]), ..except.clone() },
    ];
    for network in direct.iter().filter(|network| network.addr().is_ipv6() == ipv6) {
        all.push(RoutingRule { to: Some(*network), ..except.clone() });
    }
    for address in outside.iter().filter(|address| address.is_ipv6() == ipv6) {
        let to = Some(single(*address));
        for protocol in [UDP, TCP].map(Some) {
            all.push(RoutingRule { to, protocol, ..except.clone() });
        }
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

/// Whether this machine has IPv6, and it is not switched off.
pub fn has_ipv6() -> bool {
    is_on(Path::new("/proc/sys/net/ipv6/conf/lo/disable_ipv6"))
}

/// Whether an interface may have addresses of IPv6.
pub fn permits_ipv6(device: &str) -> bool {
    is_on(&Path::new("/proc/sys/net/ipv6/conf").join(device).join("disable_ipv6"))
}

/// A machine without IPv6 has no such file.
fn is_on(disabled: &Path) -> bool {
    std::fs::read_to_string(disabled).is_ok_and(|value| value.trim() == "0")
}
