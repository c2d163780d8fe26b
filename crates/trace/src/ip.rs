//! IP headers of captured packets (RFC 791, 3.1; RFC 8200, 3).

use std::net::IpAddr;

/// Protocol number in an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp = 6,
    /// SCTP.
    Sctp = 132,
}

/// Hop limit of captured packets. The real one is unknown.
const HOP_LIMIT: u8 = 64;

/// Appends an IP header for a payload of this many bytes. It is an IPv6 header if either address is an IPv6
/// address.
pub fn ip_header(
    out: &mut Vec<u8>,
    protocol: Protocol,
    (from, to): (IpAddr, IpAddr),
    payload: usize,
) {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = [0; 20];
            (header[0], header[8], header[9]) = (0x45, HOP_LIMIT, protocol as u8);
            header[2..4].copy_from_slice(&(payload as u16 + 20).to_be_bytes());
            header[12..16].copy_from_slice(&from.octets());
            header[16..20].copy_from_slice(&to.octets());
            let words = header.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
            let sum = words.sum::<u32>();
            let folded = (sum & 0xffff) + (sum >> 16);
            let checksum = !(folded as u16 + (folded >> 16) as u16);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            out.extend(header);
        }
        (from, to) => {
            let six = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            out.extend([0x60, 0, 0, 0]);
            out.extend((payload as u16).to_be_bytes());
            out.extend([protocol as u8, HOP_LIMIT]);
            out.extend(six(from).octets());
            out.extend(six(to).octets());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_header_with_a_correct_checksum_add_up_to_zero() {
        // RFC 1071: in ones' complement arithmetic.
        let way = |from: &str, to: &str| (from.parse().unwrap(), to.parse().unwrap());
        for payload in [0, 12, 1480, 65_515] {
            let mut header = Vec::new();
            let ends = way("192.0.2.1", "198.51.100.7");
            ip_header(&mut header, Protocol::Sctp, ends, payload);
            let words = header.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
            let sum = words.sum::<u32>();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "{payload} B");
        }
    }

    #[test]
    fn one_address_of_ipv6_makes_it_a_header_of_ipv6() {
        let mut header = Vec::new();
        let ends = ("192.0.2.1".parse().unwrap(), "2001:db8::7".parse().unwrap());
        ip_header(&mut header, Protocol::Tcp, ends, 300);
        assert_eq!((header.len(), header[0] >> 4, header[6]), (40, 6, 6));
        assert_eq!(header[4..6], 300_u16.to_be_bytes());
        assert_eq!(header[18..24], [0xff, 0xff, 192, 0, 2, 1]);
    }
}
