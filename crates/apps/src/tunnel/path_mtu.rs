//! Answers to inner packets that are not carried, and the MSS of TCP connections.

use std::net::IpAddr;

use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::icmpv6::DestUnreachableCode;
use etherparse::{
    Icmpv4Type, Icmpv6Type, IpSlice, PacketBuilder, TcpOptionElement, TcpSlice, ip_number,
};

use super::packet::update_checksum;

/// The minimum MTU of IPv6 (RFC 8200, 5), bytes.
pub const LEAST_MTU: u32 = 1280;
/// Headers of IP and TCP without options, bytes.
const TCP_OVER_IPV4: u32 = 40;
const TCP_OVER_IPV6: u32 = 60;
/// Maximum length of an error with all headers, bytes: it contains as much of the packet as fits into the minimum
/// MTU of IPv6 (RFC 4443, 2.4 c) or IPv4 (RFC 1812, 4.3.2.3).
const ERROR_LENGTH_IPV6: usize = 1280;
const ERROR_LENGTH_IPV4: usize = 576;
/// Headers of IP and ICMP in the error, bytes.
const ERROR_HEADERS_IPV4: usize = 28;
const ERROR_HEADERS_IPV6: usize = 48;
const ERROR_TTL: u8 = 64;
/// Checksum in the TCP header, and kind and length of the option MSS (RFC 9293, 3.1 and 3.2).
const TCP_CHECKSUM: usize = 16;
const TCP_HEADER: usize = 20;
const MSS_KIND: u8 = 2;

/// The answer to a packet that does not fit into the tunnel (RFC 1191, 4; RFC 4443, 3.2), from the tunnel's own
/// address `from`. `None` for packets that must not be answered, and if `from` is of the other family.
pub fn too_big(packet: &[u8], mtu: u32, from: IpAddr) -> Option<Vec<u8>> {
    let next_hop_mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
    let cause = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu };
    error_about(packet, from, cause, Icmpv6Type::PacketTooBig { mtu })
}

/// The answer to a packet that the hub's operator does not permit: communication administratively prohibited (RFC
/// 1812, 5.2.7.1; RFC 4443, 3.1). `None` in the same cases as [`too_big`].
pub fn prohibited(packet: &[u8], from: IpAddr) -> Option<Vec<u8>> {
    let cause = Icmpv6Type::DestinationUnreachable(DestUnreachableCode::Prohibited);
    error_about(packet, from, DestUnreachableHeader::FilterProhibited, cause)
}

fn error_about(
    packet: &[u8],
    from: IpAddr,
    ipv4: DestUnreachableHeader,
    ipv6: Icmpv6Type,
) -> Option<Vec<u8>> {
    let ip = IpSlice::from_slice(packet).ok()?;
    // RFC 1812, 4.3.2.7: no error about an error, or to a destination that is not a single host.
    if is_icmp_error(&ip) || ip.destination_addr().is_multicast() {
        return None;
    }
    let mut answer = Vec::new();
    match (from, ip.source_addr()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let quoted = &packet[..packet.len().min(ERROR_LENGTH_IPV4 - ERROR_HEADERS_IPV4)];
            PacketBuilder::ipv4(from.octets(), to.octets(), ERROR_TTL)
                .icmpv4(Icmpv4Type::DestinationUnreachable(ipv4))
                .write(&mut answer, quoted)
                .ok()?;
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let quoted = &packet[..packet.len().min(ERROR_LENGTH_IPV6 - ERROR_HEADERS_IPV6)];
            PacketBuilder::ipv6(from.octets(), to.octets(), ERROR_TTL)
                .icmpv6(ipv6)
                .write(&mut answer, quoted)
                .ok()?;
        }
        _ => return None,
    }
    Some(answer)
}

fn is_icmp_error(ip: &IpSlice<'_>) -> bool {
    let payload = ip.payload();
    match (payload.ip_number, payload.payload.first()) {
        // Queries: echo, router discovery, timestamp, information, address mask.
        (ip_number::ICMP, Some(kind)) => !matches!(kind, 0 | 8..=10 | 13..=18),
        // RFC 4443, 2.1: error messages have a zero in the high-order bit.
        (ip_number::IPV6_ICMP, Some(kind)) => *kind < 128,
        _ => payload.fragmented,
    }
}

/// Lowers the MSS that a TCP SYN announces, so that segments of the peer fit into `mtu`. Returns whether the
/// packet was changed.
pub fn clamp_mss(packet: &mut [u8], mtu: u32) -> bool {
    let Some((tcp_at, option_at, announced)) = find_mss(packet) else { return false };
    let headers = if packet[0] >> 4 == 4 { TCP_OVER_IPV4 } else { TCP_OVER_IPV6 };
    let most = u16::try_from(mtu.saturating_sub(headers)).unwrap_or(u16::MAX);
    if announced <= most {
        return false;
    }
    // The checksum adds 16-bit words: a value at an odd offset spreads over two of them.
    let odd = (option_at - tcp_at) % 2;
    let places = (option_at - odd..option_at + odd + 2).step_by(2);
    let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let before: Vec<u16> = places.clone().map(|at| word(packet, at)).collect();
    packet[option_at..option_at + 2].copy_from_slice(&most.to_be_bytes());
    for (at, old) in places.zip(before) {
        let new = word(packet, at);
        update_checksum(packet, tcp_at + TCP_CHECKSUM, old, new);
    }
    true
}

/// Offsets of the TCP header and of its MSS value, and this value. `None` if the packet is not a SYN with
/// an MSS.
fn find_mss(packet: &[u8]) -> Option<(usize, usize, u16)> {
    let ip = IpSlice::from_slice(packet).ok()?;
    let payload = ip.payload();
    if payload.ip_number != ip_number::TCP || payload.fragmented {
        return None;
    }
    let tcp = TcpSlice::from_slice(payload.payload).ok()?;
    let announced = tcp.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::MaximumSegmentSize(size)) => Some(size),
        _ => None,
    });
    let announced = announced.filter(|_| tcp.syn())?;
    let tcp_at = packet.len() - payload.payload.len();
    let mut rest = tcp.options();
    while let [kind, tail @ ..] = rest {
        match (*kind, tail.first()) {
            (MSS_KIND, Some(_)) => break,
            (0, _) | (_, None) => return None,
            (1, _) => rest = tail,
            (_, Some(length)) => rest = rest.get(usize::from(*length).max(2)..)?,
        }
    }
    let option_at = tcp_at + TCP_HEADER + tcp.options().len() - rest.len() + 2;
    // The length of a TCP header is a multiple of four bytes, so the second word of a value at an odd
    // offset exists as well.
    (option_at + 2 <= packet.len()).then_some((tcp_at, option_at, announced))
}

#[cfg(test)]
mod tests {
    use etherparse::{Ipv4Slice, SlicedPacket, TransportSlice};

    use super::super::packet::Headers;
    use super::*;

    fn syn(options: &[TcpOptionElement], payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 0, 0, 2], [192, 0, 2, 1], 64).tcp(80, 81, 1, 9);
        let builder = builder.syn().options(options).expect("options that fit");
        builder.write(&mut packet, payload).expect("it fits");
        packet
    }

    #[test]
    fn the_mss_of_a_syn_is_lowered_and_its_checksum_stays_right() {
        use TcpOptionElement::{MaximumSegmentSize, Noop, WindowScale};
        for (options, payload) in [
            (&[MaximumSegmentSize(1460)][..], &b""[..]),
            (&[Noop, MaximumSegmentSize(1460)], b""),
            (&[WindowScale(7), MaximumSegmentSize(1460), Noop], b"fast open"),
        ] {
            let mut packet = syn(options, payload);
            assert!(clamp_mss(&mut packet, 1280), "{options:?}");
            let ip = Ipv4Slice::from_slice(&packet).expect("IPv4");
            let tcp = TcpSlice::from_slice(ip.payload().payload).expect("TCP");
            let found = tcp.options_iterator().filter_map(Result::ok);
            assert!(found.clone().any(|option| option == MaximumSegmentSize(1240)), "{options:?}");
            let (from, to) = (ip.header().source(), ip.header().destination());
            assert_eq!(tcp.calc_checksum_ipv4(from, to), Ok(tcp.checksum()), "{options:?}");
            assert!(!clamp_mss(&mut packet, 1280), "it is low enough now");
        }
        assert!(!clamp_mss(&mut syn(&[Noop], b""), 1280), "no MSS");
    }

    #[test]
    fn a_packet_that_is_too_big_is_answered_with_the_mtu() {
        let mut packet = syn(&[], &[7; 1400]);
        let answer = too_big(&packet, 1280, [10, 0, 0, 1].into()).expect("an answer");
        let sliced = SlicedPacket::from_ip(&answer).expect("a sound packet");
        let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("not ICMP") };
        let cause = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1280 };
        assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(cause));
        assert!(answer.len() <= ERROR_LENGTH_IPV4 && Headers::read(&answer).is_ok());
        assert_eq!(too_big(&answer, 1280, [10, 0, 0, 1].into()), None, "an error about an error");
        assert_eq!(too_big(&packet, 1280, [0xFD; 16].into()), None, "the other family");
        packet[16] = 224;
        assert_eq!(too_big(&packet, 1280, [10, 0, 0, 1].into()), None, "multicast");
    }

    #[test]
    fn a_packet_that_is_not_permitted_is_answered_with_the_reason() {
        let packet = syn(&[], b"");
        let answer = prohibited(&packet, [10, 0, 0, 1].into()).expect("an answer");
        let sliced = SlicedPacket::from_ip(&answer).expect("a sound packet");
        let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("not ICMP") };
        assert_eq!((icmp.type_u8(), icmp.code_u8()), (3, 13));
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv6([0xFD; 16], [0x20; 16], 64).udp(80, 81);
        builder.write(&mut packet, b"data").expect("it fits");
        let answer = prohibited(&packet, [0xFC; 16].into()).expect("an answer");
        let sliced = SlicedPacket::from_ip(&answer).expect("a sound packet");
        let Some(TransportSlice::Icmpv6(icmp)) = sliced.transport else { panic!("not ICMPv6") };
        assert_eq!((icmp.type_u8(), icmp.code_u8()), (1, 1));
        assert_eq!(prohibited(&answer, [0xFC; 16].into()), None, "an error about an error");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_them_panic(mut bytes in proptest::collection::vec(0_u8.., 0..90)) {
            bytes.insert(0, 0x45);
            let _ = too_big(&bytes, 1280, [10, 0, 0, 1].into());
            let _ = prohibited(&bytes, [10, 0, 0, 1].into());
            clamp_mss(&mut bytes, 600);
        }

        #[test]
        fn no_options_make_it_panic(options in proptest::collection::vec(0_u8.., 0..40)) {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4([10, 0, 0, 2], [192, 0, 2, 1], 64).tcp(80, 81, 1, 9);
            if let Ok(builder) = builder.syn().options_raw(&options) {
                builder.write(&mut packet, &[]).expect("it fits");
                clamp_mss(&mut packet, 600);
            }
        }
    }
}
