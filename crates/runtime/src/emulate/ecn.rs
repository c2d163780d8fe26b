//! The ECN field of the IP header, which a queue may read and set (RFC 3168, 5).

use ropewalk_base::Ecn;

/// Congestion experienced. Any other value except 0 may be changed to it.
const CE: u8 = 3;

/// The ECN field; [`Ecn::NotEct`] if this is not an IP packet.
pub(super) fn field(packet: &[u8]) -> Ecn {
    match packet {
        [version, tos, ..] if version >> 4 == 4 => Ecn::from_bits(*tos),
        // The traffic class starts in the middle of the first byte.
        [version, class, ..] if version >> 4 == 6 => Ecn::from_bits(class >> 4),
        _ => Ecn::NotEct,
    }
}

/// Marks the packet, and updates the checksum of an IPv4 header (RFC 1624).
pub(super) fn mark(packet: &mut [u8]) {
    match packet {
        [version, tos, ..] if *version >> 4 == 4 => {
            let old = u16::from_be_bytes([*version, *tos]);
            *tos |= CE;
            let new = u16::from_be_bytes([*version, *tos]);
            if let Some([high, low]) = packet.get_mut(10..12) {
                let sum = !u16::from_be_bytes([*high, *low]);
                let sum = u32::from(sum) + u32::from(!old) + u32::from(new);
                // At most two carries, because three 16-bit numbers were added.
                let sum = (sum & 0xffff) + (sum >> 16);
                let sum = (sum & 0xffff) + (sum >> 16);
                [*high, *low] = (!(sum as u16)).to_be_bytes();
            }
        }
        [version, class, ..] if *version >> 4 == 6 => *class |= CE << 4,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sum over a header, including its checksum: all ones if it is correct.
    fn sum(header: &[u8]) -> u16 {
        let mut sum: u32 =
            header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// An IPv4 header with a correct checksum.
    fn header(tos: u8, number: u16) -> Vec<u8> {
        let mut header = vec![0x45, tos, 5, 220, 0, 0, 0x40, 0, 64, 17, 0, 0];
        header.extend_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        header[4..6].copy_from_slice(&number.to_be_bytes());
        let checksum = !sum(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }

    #[test]
    fn an_ipv4_header_is_right_after_a_mark_as_it_was_before() {
        for number in 0..=u16::MAX {
            for tos in [0, 1, 2, 3, 0xb8 | 2] {
                let mut packet = header(tos, number);
                assert_eq!(field(&packet), Ecn::from_bits(tos));
                mark(&mut packet);
                assert_eq!((packet[1], sum(&packet)), (tos | 3, 0xffff), "{number}");
                assert_eq!(packet[2..10], header(tos, number)[2..10]);
            }
        }
    }

    #[test]
    fn an_ipv6_header_keeps_its_class_and_flow() {
        let mut packet = vec![0x6b, 0x8a, 0xbc, 0xde, 0, 0, 17, 64];
        assert_eq!(field(&packet), Ecn::NotEct);
        packet[1] |= 0x20;
        assert_eq!(field(&packet), Ecn::Ect0);
        mark(&mut packet);
        assert_eq!(packet, [0x6b, 0xba, 0xbc, 0xde, 0, 0, 17, 64]);
    }

    #[test]
    fn what_is_no_ip_packet_stays_as_it_is() {
        for bytes in [&[][..], &[0x45], &[0x25, 2, 0], &[0x45, 2, 0]] {
            let mut packet = bytes.to_vec();
            mark(&mut packet);
            assert_eq!(packet.len(), bytes.len());
        }
        assert_eq!([&[][..], &[0x25, 2]].map(field), [Ecn::NotEct; 2]);
    }
}
