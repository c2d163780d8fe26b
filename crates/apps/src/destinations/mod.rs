//! Determines which destinations are in the open Internet. An exit of a proxy and a hub of a tunnel give others their
//! place in the network, so both use this check before they connect or forward.
//!
//! The list follows IANA's registries of special-purpose addresses (RFC 6890): an address that is not globally
//! reachable is not public. Documentation networks (RFC 5737, RFC 3849, RFC 9637) are an exception: no network uses
//! them, so there is nothing to protect, and tests use them in place of public addresses.

mod embedded;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use self::embedded::{destinations, innermost};

/// Whether a packet to the address can only arrive in the open Internet. An IPv6 address that embeds IPv4 addresses is
/// public if each of them is.
pub fn is_public(ip: IpAddr) -> bool {
    let embedded = match ip {
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) => embedded::readings(v6),
    };
    match embedded {
        Some(all) => all.into_iter().all(|one| special(one).is_none()),
        None => special(ip).is_none(),
    }
}

/// The kind of an address that is not in the open Internet, such as `loopback`. `None` for a public one. IPv4
/// addresses that the address embeds are not considered: see [`destinations`].
pub fn special(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => special_v4(ip),
        IpAddr::V6(ip) => special_v6(ip),
    }
}

fn special_v4(ip: Ipv4Addr) -> Option<&'static str> {
    Some(match ip.octets() {
        [0, ..] => "unspecified",
        [127, ..] => "loopback",
        [169, 254, ..] => "link-local",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "private",
        // Carrier-grade NAT (RFC 6598) and benchmarking (RFC 2544).
        [100, 64..=127, ..] | [198, 18..=19, ..] => "private",
        // Anycast addresses of PCP and TURN (RFC 7723, RFC 8155) within the network of protocol assignments.
        [192, 0, 0, 9 | 10] => return None,
        [192, 0, 0, _] => "private",
        [224..=239, ..] => "multicast",
        [240..=255, ..] => "reserved",
        _ => return None,
    })
}

fn special_v6(ip: Ipv6Addr) -> Option<&'static str> {
    Some(match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => "unspecified",
        [0, 0, 0, 0, 0, 0, 0, 1] => "loopback",
        [0xfe80..=0xfebf, ..] => "link-local",
        // Unique local (RFC 4193), and the site-local addresses that they replaced (RFC 3879).
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => "private",
        [0xff00..=0xffff, ..] => "multicast",
        // Globally reachable protocol assignments: anycast of PCP, TURN and DNS-SD, AMT, AS112, ORCHIDv2, DETs
        // (RFC 7723, 8155, 9665, 7450, 7535, 7343, 9374).
        [0x2001, 1, 0, 0, 0, 0, 0, 1..=3]
        | [0x2001, 3, ..]
        | [0x2001, 4, 0x112, ..]
        | [0x2001, 0x20..=0x3f, ..] => return None,
        [0x2001, 0..=0x1ff, ..] => "reserved",
        // IANA assigns global unicast addresses from 2000::/3 only.
        [0x2000..=0x3fff, ..] => return None,
        _ => "reserved",
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether each of these is public is as expected.
    fn check(all: &[(&str, bool)]) {
        for (address, expected) in all {
            assert_eq!(is_public(address.parse().unwrap()), *expected, "{address}");
        }
    }

    #[test]
    fn ipv4_addresses_are_public_or_not() {
        check(&[
            ("9.9.9.9", true),
            ("93.184.216.34", true),
            ("0.1.2.3", false),
            ("10.50.0.2", false),
            ("100.63.255.255", true),
            ("100.64.0.1", false),
            ("100.128.0.0", true),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("172.15.255.255", true),
            ("172.16.0.0", false),
            ("172.31.255.255", false),
            ("172.32.0.0", true),
            ("192.0.0.1", false),
            ("192.0.0.9", true),
            ("192.0.1.1", true),
            ("192.167.255.255", true),
            ("192.168.0.1", false),
            ("198.17.255.255", true),
            ("198.18.0.1", false),
            ("198.19.255.255", false),
            ("198.20.0.0", true),
            ("223.255.255.255", true),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
        ]);
    }

    #[test]
    fn ipv6_addresses_in_every_spelling_are_public_or_not() {
        check(&[
            ("::", false),
            ("::1", false),
            ("::10.50.0.2", false),
            ("::9.9.9.9", true),
            ("::ffff:10.50.0.2", false),
            ("::ffff:240.0.0.1", false),
            ("::ffff:9.9.9.9", true),
            ("::ffff:0:192.168.0.1", false),
            ("64:ff9b::10.50.0.2", false),
            ("64:ff9b::0.1.2.3", false),
            ("64:ff9b::9.9.9.9", true),
            ("64:ff9b::1:0:0", false),
            ("64:ff9b:1::", false),
            ("64:ff9b:1::10.50.0.2", false),
            ("64:ff9b:1:a32:0:200::", false),
            ("64:ff9b:2::1", false),
            ("100::1", false),
            ("100:0:0:1::1", false),
            ("2000::", true),
            ("2001:0:a32:2::f6f6:f6f6", false),
            ("2001:1::1", true),
            ("2001:2::1", false),
            ("2001:10::1", false),
            ("2001:200::1", true),
            ("2002:a32:2::1", false),
            ("2002:7f00:1::", false),
            ("2002:909:909::1", true),
            ("2606:4700::1111", true),
            ("2620:fe::fe", true),
            ("2a00:1450::5efe:10.0.0.1", false),
            ("2a00:1450::200:5efe:10.0.0.1", false),
            ("2a00:1450::5efe:9.9.9.9", true),
            ("4000::", false),
            ("5f00::1", false),
            ("fc00::1", false),
            ("fd88::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("feff::1", false),
            ("ff02::1", false),
        ]);
    }

    /// Every form that embeds only this IPv4 address.
    fn spellings(ip: Ipv4Addr) -> Vec<Ipv6Addr> {
        let [a, b, c, d] = ip.octets().map(u128::from);
        let bits = u128::from(ip.to_bits());
        let nat64 = 0x64_ff9b_u128 << 96;
        let local = nat64 | 1 << 80;
        let dns = u128::from(0x0909_0909_u32);
        [
            bits,
            0xffff << 32 | bits,
            0xffff << 48 | bits,
            nat64 | bits,
            // RFC 6052, 2.2: prefixes of 48, 56, 64 and 96 bits. Byte 8 is zero.
            local | a << 72 | b << 64 | c << 48 | d << 40,
            local | a << 64 | b << 48 | c << 40 | d << 32,
            local | a << 48 | b << 40 | c << 32 | d << 24,
            local | bits,
            0x2002_u128 << 112 | bits << 80 | 1,
            // Teredo: the address of the server, and the inverted address of the client.
            0x2001_u128 << 112 | bits << 64 | dns ^ 0xffff_ffff,
            0x2001_u128 << 112 | dns << 64 | bits ^ 0xffff_ffff,
            0x2606_4700_u128 << 96 | 0x5efe << 32 | bits,
            0x2606_4700_u128 << 96 | 0x0200_5efe << 32 | bits,
        ]
        .map(Ipv6Addr::from_bits)
        .to_vec()
    }

    /// The networks of the registry, written independently of the code.
    const PRIVATE: [(u32, u32); 12] = [
        (0x0a00_0000, 8),
        (0x7f00_0000, 8),
        (0xa9fe_0000, 16),
        (0xac10_0000, 12),
        (0xc0a8_0000, 16),
        (0x6440_0000, 10),
        (0xc612_0000, 15),
        (0xc000_0000, 29),
        (0xe000_0000, 4),
        (0xf000_0000, 4),
        (0xffff_ffff, 32),
        (0xc000_00aa, 31),
    ];

    proptest! {
        #[test]
        fn no_spelling_of_a_private_address_is_public(which in 0..PRIVATE.len(), host: u32) {
            let (network, bits) = PRIVATE[which];
            let hosts = u32::MAX.checked_shr(bits).unwrap_or(0);
            let ip = Ipv4Addr::from_bits(network | host & hosts);
            prop_assert!(!is_public(ip.into()), "{}", ip);
            for spelling in spellings(ip) {
                prop_assert!(!is_public(spelling.into()), "{} in {}", ip, spelling);
            }
        }

        #[test]
        fn ordinary_addresses_are_public(a in 1_u8..=99, b: u8, c: u8, d: u8, low: u128) {
            prop_assume!(a != 10);
            let ip = Ipv4Addr::new(a, b, c, d);
            prop_assert!(is_public(ip.into()), "{}", ip);
            let nat64 = Ipv6Addr::from_bits(0x64_ff9b_u128 << 96 | u128::from(ip.to_bits()));
            prop_assert!(is_public(nat64.into()), "{}", nat64);
            prop_assert!(is_public(ip.to_ipv6_mapped().into()), "{}", ip);
            // 2400::/8, without the interface identifiers of ISATAP.
            let ip = Ipv6Addr::from_bits(0x2400_u128 << 112 | low >> 8 | 1 << 48);
            prop_assert!(is_public(ip.into()), "{}", ip);
        }
    }
}
