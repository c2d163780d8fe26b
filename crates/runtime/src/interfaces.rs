//! The addresses of this machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

/// An address of an interface of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// The interface's name.
    pub name: String,
    /// The interface's index. An interface that is recreated under the same name gets another one.
    pub index: Option<u32>,
    /// The address.
    pub ip: IpAddr,
    /// Length of its network's prefix, bits.
    pub prefix: u8,
    /// The broadcast address of its network, if there is one.
    pub broadcast: Option<Ipv4Addr>,
    /// Whether the interface is up and has a carrier.
    pub up: bool,
}

impl InterfaceAddress {
    /// Whether the address may be reachable from other links: it is neither loopback nor link-local.
    pub const fn is_routable(&self) -> bool {
        match self.ip {
            IpAddr::V4(ip) => !(ip.is_loopback() || ip.is_link_local()),
            IpAddr::V6(ip) => !(ip.is_loopback() || ip.is_unicast_link_local()),
        }
    }

    /// Whether this is the name of its interface, or the address itself.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || name.parse() == Ok(self.ip)
    }

    /// Whether an address is in its network.
    pub fn is_in_network(&self, other: IpAddr) -> bool {
        IpNet::new(self.ip, self.prefix).is_ok_and(|network| network.contains(&other))
    }
}

/// Lists all current addresses of this machine.
///
/// # Errors
/// The error of the system.
pub fn list() -> io::Result<Vec<InterfaceAddress>> {
    let found = if_addrs::get_if_addrs()?.into_iter().map(|it| InterfaceAddress {
        ip: it.ip(),
        up: it.is_oper_up(),
        index: it.index,
        prefix: match &it.addr {
            if_addrs::IfAddr::V4(address) => address.prefixlen,
            if_addrs::IfAddr::V6(address) => address.prefixlen,
        },
        broadcast: match it.addr {
            if_addrs::IfAddr::V4(address) => {
                // If none is set, the system returns the address itself.
                let set = address.broadcast.filter(|broadcast| *broadcast != address.ip);
                set.or_else(|| broadcast_of(address.ip, address.prefixlen))
            }
            if_addrs::IfAddr::V6(_) => None,
        },
        name: it.name,
    });
    Ok(found.collect())
}

/// Lists the current addresses of this machine except those of TUN devices, which lead into tunnels. A TUN device
/// with one of `peers` in its network is included.
///
/// # Errors
/// The error of the system.
pub fn outside_tunnels(peers: &[IpAddr]) -> io::Result<Vec<InterfaceAddress>> {
    let mut all = list()?;
    let mut tun = tun_devices()?;
    let leads = |seen: &InterfaceAddress| peers.iter().any(|peer| seen.is_in_network(*peer));
    tun.retain(|name| !all.iter().any(|seen| seen.name == *name && leads(seen)));
    all.retain(|seen| !tun.contains(&seen.name));
    Ok(all)
}

/// Names of the TUN devices of this machine, which carry the IP packets of programs. Empty on systems other than
/// Linux.
///
/// # Errors
/// The error of the system.
pub fn tun_devices() -> io::Result<Vec<String>> {
    #[cfg(target_os = "linux")]
    let all = crate::system::routes::interfaces()?;
    #[cfg(target_os = "linux")]
    let tun = all.into_iter().filter(|one| one.is_tun).map(|one| one.name).collect();
    #[cfg(not(target_os = "linux"))]
    let tun = Vec::new();
    Ok(tun)
}

/// The last address of a network, which reaches all of its hosts whether or not it is configured (RFC 919). `None`
/// for networks of one or two addresses (RFC 3021).
fn broadcast_of(ip: Ipv4Addr, prefix: u8) -> Option<Ipv4Addr> {
    let hosts = u32::MAX.checked_shr(u32::from(prefix)).filter(|hosts| *hosts > 1);
    hosts.map(|hosts| Ipv4Addr::from_bits(ip.to_bits() | hosts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_network_is_told_from_others() {
        let seen = |ip: &str, prefix| InterfaceAddress {
            name: "lte".to_owned(),
            index: None,
            ip: ip.parse().expect("an address"),
            prefix,
            broadcast: None,
            up: true,
        };
        for (own, prefix, other, expected) in [
            ("10.77.2.1", 24, "10.77.2.2", true),
            ("10.77.2.1", 24, "203.0.113.1", false),
            ("fd77::2:1", 112, "fd77::2:2", true),
            ("fd77::2:1", 112, "10.77.2.2", false),
        ] {
            let other = other.parse().expect("an address");
            assert_eq!(seen(own, prefix).is_in_network(other), expected, "{own} {other}");
        }
        let lte = seen("fd77::2:1", 112);
        assert!(lte.is_called("lte") && lte.is_called("fd77:0::2:1") && !lte.is_called("lt"));
    }

    #[test]
    fn the_last_address_of_a_network_of_more_than_two_is_that_of_all() {
        let ip = Ipv4Addr::new(10, 77, 1, 1);
        let last = |prefix| broadcast_of(ip, prefix).map(|ip| ip.octets());
        assert_eq!(last(24), Some([10, 77, 1, 255]));
        assert_eq!(last(30), Some([10, 77, 1, 3]));
        assert_eq!(last(8), Some([10, 255, 255, 255]));
        assert_eq!([last(31), last(32), last(200)], [None; 3]);
    }
}
