//! Filters the addresses that an unsealed peer lists, before HEARTBEATs are sent to them. A peer must not be able to
//! make this endpoint send to itself, to an entire network, or to a service that trusts packets from this machine.

use std::net::IpAddr;

use crate::interfaces::InterfaceAddress;

/// Whether `ip` may be probed, given that the peer was seen at `peer` and this machine has the addresses `own`.
pub(super) fn may_be_contacted(ip: IpAddr, peer: IpAddr, own: &[InterfaceAddress]) -> bool {
    let (ip, peer) = (ip.to_canonical(), peer.to_canonical());
    let here = |ip: IpAddr| ip.is_loopback() || own.iter().any(|one| one.ip == ip);
    // A peer on this machine may have more of the machine's addresses.
    is_unicast(ip, own) && (!here(ip) || here(peer))
}

/// Whether `ip` is the address of exactly one host: neither unspecified nor multicast or broadcast.
fn is_unicast(ip: IpAddr, own: &[InterfaceAddress]) -> bool {
    match ip {
        // "This network" (RFC 1122, 3.2.1.3); from 224.0.0.0 on multicast, reserved addresses and broadcast.
        IpAddr::V4(ip) => {
            let network = own.iter().any(|one| one.broadcast == Some(ip));
            !network && (1..224).contains(&ip.octets()[0])
        }
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn addresses_of_many_of_none_and_of_ourselves_are_not_asked() {
        let own = |text, broadcast: Option<[u8; 4]>| InterfaceAddress {
            name: "eth0".to_owned(),
            index: Some(2),
            ip: ip(text),
            prefix: 24,
            broadcast: broadcast.map(Ipv4Addr::from),
            up: true,
        };
        let here = [
            own("127.0.0.1", None),
            own("192.0.2.7", Some([192, 0, 2, 255])),
            own("2001:db8::7", None),
        ];
        for (listed, peer, asked) in [
            ("192.0.2.9", "192.0.2.8", true),
            ("203.0.113.255", "192.0.2.8", true),
            ("2001:db8::9", "192.0.2.8", true),
            ("0.0.0.0", "192.0.2.8", false),
            ("0.1.2.3", "192.0.2.8", false),
            ("127.0.0.1", "192.0.2.8", false),
            ("127.9.9.9", "192.0.2.8", false),
            ("::1", "2001:db8::9", false),
            ("::ffff:127.0.0.1", "2001:db8::9", false),
            ("192.0.2.7", "192.0.2.8", false),
            ("::ffff:192.0.2.7", "192.0.2.8", false),
            ("2001:db8::7", "192.0.2.8", false),
            ("192.0.2.255", "192.0.2.8", false),
            ("255.255.255.255", "192.0.2.8", false),
            ("224.0.0.1", "192.0.2.8", false),
            ("240.0.0.1", "192.0.2.8", false),
            ("::", "2001:db8::9", false),
            ("ff02::1", "2001:db8::9", false),
            // The peer is on this machine.
            ("127.0.0.2", "127.0.0.1", true),
            ("192.0.2.7", "127.0.0.1", true),
            ("127.0.0.1", "192.0.2.7", true),
            ("192.0.2.255", "127.0.0.1", false),
            ("0.0.0.0", "127.0.0.1", false),
        ] {
            assert_eq!(may_be_contacted(ip(listed), ip(peer), &here), asked, "{listed} of {peer}");
        }
    }
}
