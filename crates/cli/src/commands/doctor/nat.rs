//! Determines the kind of NAT between this machine and the peer from the addresses that the peer
//! sees (RFC 4787, 4.1).

use std::net::{IpAddr, SocketAddr};

/// How a NAT maps the socket of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nat {
    /// The peer sees the socket's own address.
    None(SocketAddr),
    /// There is a NAT. Its kind cannot be determined from one address.
    Unknown(SocketAddr),
    /// All addresses of the peer see the same address.
    EndpointIndependent(SocketAddr),
    /// They see different addresses.
    EndpointDependent(Vec<SocketAddr>),
}

/// The kind, from the local port and the source that the peer saw at each of its addresses. `own` contains the
/// addresses of this machine. `None` if `seen` is empty.
pub fn kind(seen: &[(u16, SocketAddr)], own: &[IpAddr]) -> Option<Nat> {
    let mut addresses: Vec<SocketAddr> = seen.iter().map(|(_, address)| *address).collect();
    let first = *addresses.first()?;
    if seen.iter().all(|(port, address)| *port == address.port() && own.contains(&address.ip())) {
        return Some(Nat::None(first));
    }
    addresses.sort_unstable();
    addresses.dedup();
    Some(match (seen.len(), addresses.len()) {
        (1, _) => Nat::Unknown(first),
        (_, 1) => Nat::EndpointIndependent(first),
        _ => Nat::EndpointDependent(addresses),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_follows_from_what_the_addresses_of_the_peer_see() {
        let address = |text: &str| -> SocketAddr { text.parse().expect("an address") };
        let own: [IpAddr; 2] = [[192, 168, 1, 5].into(), [10, 0, 0, 5].into()];
        let [inside, outside, other] =
            ["192.168.1.5:4000", "203.0.113.5:4000", "203.0.113.5:4001"].map(address);
        for (seen, expected) in [
            (vec![], None),
            (vec![(4000, inside)], Some(Nat::None(inside))),
            (vec![(4000, inside), (4000, address("10.0.0.5:4000"))], Some(Nat::None(inside))),
            (vec![(4001, inside)], Some(Nat::Unknown(inside))),
            (vec![(4000, outside)], Some(Nat::Unknown(outside))),
            (vec![(4000, outside); 2], Some(Nat::EndpointIndependent(outside))),
            (
                vec![(4000, outside), (4000, other)],
                Some(Nat::EndpointDependent(vec![outside, other])),
            ),
        ] {
            assert_eq!(kind(&seen, &own), expected, "{seen:?}");
        }
    }
}
