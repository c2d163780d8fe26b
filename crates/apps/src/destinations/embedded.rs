//! IPv4 addresses inside IPv6 addresses.
//!
//! A router or a translator may turn an IPv6 destination into an IPv4 one. A rule for destinations applies to the
//! address where the packet arrives, so it must know every form that embeds an IPv4 address.
//!
//! ```text
//!  prefix             form                              bytes of the IPv4 address
//!  ::ffff:0:0/96      IPv4-mapped (RFC 4291, 2.5.5.2)   12 13 14 15
//!  ::/96              IPv4-compatible (RFC 4291, 2.5.5.1)   12 13 14 15
//!  ::ffff:0:0:0/96    IPv4-translated (RFC 2765, 2.1)   12 13 14 15
//!  64:ff9b::/96       NAT64, well-known (RFC 6052, 2.1) 12 13 14 15
//!  64:ff9b:1::/48     NAT64, local use (RFC 8215)       /48: 6 7 9 10     /56: 7 9 10 11
//!                                                       /64: 9 10 11 12   /96: 12 13 14 15
//!  2002::/16          6to4 (RFC 3056, 2)                2 3 4 5
//!  2001::/32          Teredo (RFC 4380, 4)              server 4 5 6 7, client 12 13 14 15 inverted
//!  any/64             ISATAP (RFC 5214, 6.1)            12 13 14 15 behind 0:5efe or 200:5efe
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address that an unambiguous form embeds; any other address unchanged.
pub fn innermost(ip: IpAddr) -> IpAddr {
    match destinations(ip)[..] {
        [one] => one,
        _ => ip,
    }
}

/// All addresses at which a packet to `ip` may arrive.
pub fn destinations(ip: IpAddr) -> Vec<IpAddr> {
    let IpAddr::V6(v6) = ip else { return vec![ip] };
    readings(v6).unwrap_or_else(|| vec![ip])
}

/// All addresses at which a packet to `v6` may arrive. `None` if `v6` embeds no IPv4 address. An ambiguous form has
/// several: with the local-use NAT64 prefix, the length of the translator's own prefix is unknown (RFC 8215, 5).
pub(super) fn readings(v6: Ipv6Addr) -> Option<Vec<IpAddr>> {
    let octets = v6.octets();
    let at = |places: [usize; 4]| Ipv4Addr::from(places.map(|place| octets[place]));
    let last = at([12, 13, 14, 15]);
    Some(match v6.segments() {
        // `::` and `::1` are ordinary addresses.
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => vec![last.into()],
        [0, 0, 0, 0, 0, 0xffff, ..]
        | [0, 0, 0, 0, 0xffff, 0, ..]
        | [0x64, 0xff9b, 0, 0, 0, 0, ..] => vec![last.into()],
        [0x64, 0xff9b, 1, ..] => {
            plausible(vec![at([6, 7, 9, 10]), at([7, 9, 10, 11]), at([9, 10, 11, 12]), last])
        }
        [0x2002, ..] => vec![at([2, 3, 4, 5]).into()],
        [0x2001, 0, ..] => plausible(vec![Ipv4Addr::from_bits(!last.to_bits()), at([4, 5, 6, 7])]),
        // An ISATAP host may also be reached at the IPv6 address itself.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => vec![v6.into(), last.into()],
        _ => return None,
    })
}

/// Filters the readings of an ambiguous form. Zeros around an embedded address read as 0.0.0.0/8, to which no packet
/// can be sent. Such a reading counts only if there is no other.
fn plausible(readings: Vec<Ipv4Addr>) -> Vec<IpAddr> {
    let (zeros, others): (Vec<_>, Vec<_>) =
        readings.into_iter().partition(|ip| ip.octets()[0] == 0);
    let mut kept = if others.is_empty() { zeros } else { others };
    kept.dedup();
    kept.into_iter().map(IpAddr::V4).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_shows_the_ipv4_addresses_inside_it() {
        for (outer, inside) in [
            ("192.0.2.33", &["192.0.2.33"][..]),
            ("2001:db8::1", &["2001:db8::1"]),
            ("::", &["::"]),
            ("::1", &["::1"]),
            ("::ffff:192.0.2.33", &["192.0.2.33"]),
            ("::192.0.2.33", &["192.0.2.33"]),
            ("::ffff:0:192.0.2.33", &["192.0.2.33"]),
            ("64:ff9b::192.0.2.33", &["192.0.2.33"]),
            // RFC 6052, 2.4, with the local-use prefix in place of 2001:db8:122.
            ("64:ff9b:1:c000:2:2100::", &["192.0.2.33", "2.33.0.0"]),
            ("64:ff9b:1:3c0:0:221::", &["192.0.2.33", "3.192.0.2"]),
            ("64:ff9b:1:344:c0:2:2100:0", &["3.68.192.0", "68.192.0.2", "192.0.2.33", "33.0.0.0"]),
            ("64:ff9b:1::192.0.2.33", &["192.0.2.33"]),
            ("64:ff9b:1::", &["0.0.0.0"]),
            ("2002:c000:221::7", &["192.0.2.33"]),
            ("2001:0:c000:221:0:0:3fff:fdde", &["192.0.2.33"]),
            ("2001:0:101:101:0:0:3fff:fdde", &["192.0.2.33", "1.1.1.1"]),
            ("2001:db8::5efe:192.0.2.33", &["2001:db8::5efe:192.0.2.33", "192.0.2.33"]),
            ("2001:db8::200:5efe:192.0.2.33", &["2001:db8::200:5efe:192.0.2.33", "192.0.2.33"]),
        ] {
            let mut found = destinations(outer.parse().unwrap());
            let mut expected: Vec<IpAddr> = inside.iter().map(|ip| ip.parse().unwrap()).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{outer}");
        }
    }
}
