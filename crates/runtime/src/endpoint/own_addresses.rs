//! Selects the own addresses that are listed to an unsealed peer (RFC 9260, 3.3.2.1; scopes as in
//! draft-stewart-tsvwg-sctp-ipv4): only those that the peer can reach from its location.

use std::net::IpAddr;

use ropewalk_base::{Duration, Time};

use super::socket::{BindAddress, Socket};
use crate::interfaces::{self, InterfaceAddress};

/// Maximum number of addresses that are listed: an INIT with more would exceed the MTU of some links.
pub(super) const ADDRESSES_LIMIT: usize = 16;

/// Lifetime of a list of the interfaces. Reading a new one for each packet of an unauthenticated peer would cost more
/// than the answer.
const CACHE_LIFETIME: Duration = Duration::from_secs(1);

/// Cache of this machine's addresses.
#[derive(Debug, Default)]
pub struct OwnAddresses {
    all: Vec<InterfaceAddress>,
    read_at: Option<Time>,
}

impl OwnAddresses {
    /// All addresses. Empty if the system does not provide them.
    pub fn get(&mut self, now: Time) -> &[InterfaceAddress] {
        if self.read_at.is_none_or(|at| now.since(at) > CACHE_LIFETIME) {
            self.all = interfaces::list().unwrap_or_default();
            self.read_at = Some(now);
        }
        &self.all
    }

    /// The name of the interface that has the address.
    pub fn interface_of(&mut self, now: Time, ip: IpAddr) -> Option<String> {
        let ip = ip.to_canonical();
        self.get(now).iter().find(|seen| seen.ip == ip).map(|seen| seen.name.clone())
    }

    /// Whether `ip` is one of this machine's addresses.
    pub fn has(&mut self, now: Time, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.get(now).iter().any(|seen| seen.ip == ip)
            || matches!(ip, IpAddr::V4(v4) if v4.is_loopback())
    }
}

/// The scope of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    /// This machine only.
    Loopback,
    /// One link.
    Link,
    /// One site (RFC 1918, RFC 4193, RFC 6598).
    Private,
    Global,
}

impl Scope {
    fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            ip if ip.is_loopback() => Self::Loopback,
            IpAddr::V4(ip) if ip.is_link_local() => Self::Link,
            IpAddr::V4(ip) if ip.is_private() => Self::Private,
            // RFC 6598, carrier-grade translation: not a private range, but not reachable from elsewhere either.
            IpAddr::V4(ip) if ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64 => Self::Private,
            IpAddr::V6(ip) if ip.is_unicast_link_local() => Self::Link,
            IpAddr::V6(ip) if ip.is_unique_local() => Self::Private,
            _ => Self::Global,
        }
    }

    /// Whether an address of scope `own` is listed to a peer of this scope. A peer on this machine needs only
    /// loopback addresses, and no other peer may receive them. A link-local IPv6 address is meaningless without the
    /// name of the link.
    fn may_list(self, own: Self, ip: IpAddr) -> bool {
        match (self, own) {
            (Self::Loopback, own) => own == Self::Loopback,
            (_, Self::Loopback) => false,
            (peer, Self::Link) => peer == Self::Link && ip.is_ipv4(),
            (Self::Link | Self::Private, _) => true,
            (Self::Global, own) => own == Self::Global,
        }
    }
}

/// Whether an own address is listed to a peer at `peer`.
pub(super) fn may_list(peer: IpAddr, own: IpAddr) -> bool {
    Scope::of(peer).may_list(Scope::of(own), own)
}

/// Whether a NAT hides this own address from a peer at `peer`: the own address is private, and that of the peer is
/// not. Private IPv6 addresses are normally not translated.
pub(super) fn is_hidden_from(peer: IpAddr, own: IpAddr) -> bool {
    own.to_canonical().is_ipv4()
        && Scope::of(own) == Scope::Private
        && Scope::of(peer) == Scope::Global
}

/// The address of a socket, and its interface if it is bound to one.
pub(super) struct Bound<'a> {
    pub ip: IpAddr,
    pub interface: Option<&'a str>,
}

impl<'a> Bound<'a> {
    pub fn of(socket: &Socket, local: &'a BindAddress) -> Self {
        Self { ip: socket.local().ip(), interface: local.interface.as_deref() }
    }
}

/// The addresses of these sockets to list to a peer at `peer`. Empty if the peer already sees the only address. A
/// socket bound to the unspecified address stands for `all` addresses of this machine.
pub(super) fn listed(sockets: &[Bound<'_>], peer: IpAddr, all: &[InterfaceAddress]) -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    let scope = Scope::of(peer);
    for socket in sockets {
        if !socket.ip.is_unspecified() {
            // An address that the user named is listed, except that other machines cannot reach this one's loopback.
            if scope == Scope::Loopback || !socket.ip.is_loopback() {
                addresses.push(socket.ip.to_canonical());
            }
            continue;
        }
        let usable = all.iter().filter(|seen| {
            let interface = socket.interface.is_none_or(|name| name == seen.name);
            let family = seen.ip.is_ipv4() == socket.ip.is_ipv4();
            seen.up && interface && family && scope.may_list(Scope::of(seen.ip), seen.ip)
        });
        addresses.extend(usable.map(|seen| seen.ip));
    }
    let mut unique: Vec<IpAddr> = Vec::new();
    for ip in addresses {
        if !unique.contains(&ip) {
            unique.push(ip);
        }
    }
    let mut addresses = unique;
    // The peer's known address family comes first: the list is truncated at the end.
    addresses.sort_by_key(|ip| ip.is_ipv4() != peer.to_canonical().is_ipv4());
    addresses.truncate(ADDRESSES_LIMIT);
    match addresses[..] {
        // A single address of the peer's family need not be listed: the peer sees it.
        [one] if one.is_ipv4() == peer.to_canonical().is_ipv4() => Vec::new(),
        _ => addresses,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn seen(name: &str, address: &str, up: bool) -> InterfaceAddress {
        InterfaceAddress {
            name: name.to_owned(),
            index: Some(1),
            ip: ip(address),
            prefix: 24,
            broadcast: None,
            up,
        }
    }

    #[test]
    fn a_translator_hides_private_addresses_from_peers_that_have_none() {
        for (peer, own, hidden) in [
            ("203.0.113.5", "10.0.0.1", true),
            ("203.0.113.5", "192.168.7.1", true),
            ("203.0.113.5", "100.64.3.1", true),
            ("203.0.113.5", "::ffff:10.0.0.1", true),
            ("203.0.113.5", "192.0.2.1", false),
            ("203.0.113.5", "127.0.0.1", false),
            ("203.0.113.5", "169.254.1.1", false),
            ("10.9.9.9", "10.0.0.1", false),
            ("2001:db8::5", "fd00::1", false),
        ] {
            assert_eq!(is_hidden_from(ip(peer), ip(own)), hidden, "{own} from {peer}");
        }
    }

    #[test]
    fn a_peer_is_told_of_what_it_can_reach() {
        let all = [
            seen("lo", "127.0.0.1", true),
            seen("lo", "::1", true),
            seen("eth0", "192.0.2.1", true),
            seen("eth0", "2001:db8::1", true),
            seen("eth0", "fe80::1", true),
            seen("wlan0", "10.0.0.1", true),
            seen("wlan0", "fd00::1", true),
            seen("usb0", "169.254.1.1", true),
            seen("ppp0", "100.64.3.1", true),
            seen("eth1", "198.51.100.1", false),
        ];
        type Case<'a> = (&'a [(&'a str, Option<&'a str>)], &'a str, &'a [&'a str]);
        let v4 = ("0.0.0.0", None);
        let v6 = ("::", None);
        let cases: [Case<'_>; 16] = [
            (&[v4], "203.0.113.5", &[]),
            (&[v4, v6], "203.0.113.5", &["192.0.2.1", "2001:db8::1"]),
            (&[v4, v6], "2001:db8:7::5", &["2001:db8::1", "192.0.2.1"]),
            (&[v4], "10.9.9.9", &["192.0.2.1", "10.0.0.1", "100.64.3.1"]),
            (&[v6], "fd00::9", &["2001:db8::1", "fd00::1"]),
            (&[v4], "169.254.9.9", &["192.0.2.1", "10.0.0.1", "169.254.1.1", "100.64.3.1"]),
            (&[v4], "127.0.0.1", &[]),
            (&[v4, v6], "127.0.0.1", &["127.0.0.1", "::1"]),
            (&[("0.0.0.0", Some("wlan0"))], "10.9.9.9", &[]),
            (
                &[("0.0.0.0", Some("wlan0")), ("0.0.0.0", Some("eth0"))],
                "10.9.9.9",
                &["10.0.0.1", "192.0.2.1"],
            ),
            // Addresses that the user named are listed, regardless of their scope and the peer's location.
            (&[("10.0.0.1", None), ("192.0.2.1", None)], "203.0.113.5", &["10.0.0.1", "192.0.2.1"]),
            (&[("192.0.2.1", None)], "203.0.113.5", &[]),
            (&[("2001:db8::1", None)], "203.0.113.5", &["2001:db8::1"]),
            (
                &[("192.0.2.1", None), ("2001:db8::1", None)],
                "203.0.113.5",
                &["192.0.2.1", "2001:db8::1"],
            ),
            (&[("127.0.0.1", None), ("127.0.0.1", None)], "127.0.0.1", &[]),
            (&[("127.0.0.1", None), ("192.0.2.1", None)], "203.0.113.5", &[]),
        ];
        for (sockets, peer, expected) in cases {
            let bound: Vec<_> = sockets
                .iter()
                .map(|(text, interface)| Bound { ip: ip(text), interface: *interface })
                .collect();
            let addresses = listed(&bound, ip(peer), &all);
            let expected: Vec<_> = expected.iter().map(|text| ip(text)).collect();
            assert_eq!(addresses, expected, "{sockets:?} to {peer}");
        }
    }
}
