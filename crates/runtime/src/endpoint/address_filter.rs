//! Which of the addresses that a peer in the clear lists are asked whether it is there. Nobody shall have us send to
//! ourselves, to a whole network, or to a service of this machine that trusts what comes from it.

use std::net::IpAddr;

use crate::interfaces::Seen;

/// Whether a peer that is at `peer` may be looked for at `ip`.
pub(super) fn may_be_asked(ip: IpAddr, peer: IpAddr, own: &[Seen]) -> bool {
    let (ip, peer) = (ip.to_canonical(), peer.to_canonical());
    let here = |ip: IpAddr| ip.is_loopback() || own.iter().any(|one| one.ip == ip);
    // Who is on this machine itself may have more of its addresses.
    leads_to_one(ip, own) && (!here(ip) || here(peer))
}

/// Whether it is the address of one host, and not of many or of none.
fn leads_to_one(ip: IpAddr, own: &[Seen]) -> bool {
    match ip {
        // "This network" (RFC 1122, 3.2.1.3), and from 224.0.0.0 on multicast, what is reserved, and broadcast.
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
        let own = |text, broadcast: Option<[u8; 4]>| Seen {
            name: "eth0".to_owned(),
            index: Some(2),
            ip: ip(text),
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
            assert_eq!(may_be_asked(ip(listed), ip(peer), &here), asked, "{listed} of {peer}");
        }
    }
}
