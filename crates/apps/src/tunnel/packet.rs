//! Inner packets: the checks that every packet passes before the tunnel carries or delivers it, and the header fields
//! that decide how it is carried.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr};

use etherparse::{IpSlice, TcpSlice, UdpSlice, ip_number};

/// Fields of the IPv4 header: bytes from its start (RFC 791, 3.1).
const TTL: usize = 8;
const IPV4_CHECKSUM: usize = 10;
/// The ECN field of a packet that was marked.
const CONGESTION_EXPERIENCED: u8 = 3;
/// Hop limit in the IPv6 header (RFC 8200, 3).
const HOP_LIMIT: usize = 7;

/// Why an inner packet is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Malformed {
    /// The packet is neither IPv4 nor IPv6.
    #[error("neither IPv4 nor IPv6")]
    Version,
    /// Its headers are truncated or contradict each other.
    #[error("headers are cut off or contradict each other")]
    Header,
    /// Its length is not the length that its header gives.
    #[error("length differs from that of the header")]
    Length,
    /// Its source cannot be a single host: a multicast, broadcast, loopback or unspecified address.
    #[error("source is not the address of a host")]
    Source,
    /// Its destination is a loopback or unspecified address.
    #[error("destination is a loopback or unspecified address")]
    Destination,
    /// Its time to live does not permit another hop.
    #[error("time to live has ended")]
    TimeToLive,
}

impl Malformed {
    /// A word for metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Header => "header",
            Self::Length => "length",
            Self::Source => "source",
            Self::Destination => "destination",
            Self::TimeToLive => "ttl",
        }
    }
}

/// The fields of the transport header that the tunnel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP: whether the packet opens, closes or resets the connection, and whether it has data.
    Tcp {
        /// SYN, FIN or RST is set.
        is_control: bool,
        /// The payload is not empty.
        has_data: bool,
    },
    /// UDP, and the first byte of its payload.
    Udp {
        /// The first byte. `None` for an empty datagram.
        first: Option<u8>,
    },
    /// ICMP or ICMPv6.
    Icmp,
    /// Another protocol, or a later fragment, whose transport header is elsewhere.
    Other,
}

/// The header fields of an inner packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol number.
    pub protocol: u8,
    /// Source and destination port of TCP and UDP; 0 otherwise.
    pub ports: (u16, u16),
    /// Differentiated services code point.
    pub dscp: u8,
    /// ECN field (RFC 3168, 5).
    pub ecn: u8,
    /// Whether routers may fragment it.
    pub may_fragment: bool,
    /// Transport header.
    pub transport: Transport,
}

impl Headers {
    /// Checks a packet and reads its headers.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn read(packet: &[u8]) -> Result<Self, Malformed> {
        if !matches!(packet.first().map(|byte| byte >> 4), Some(4 | 6)) {
            return Err(Malformed::Version);
        }
        let ip = IpSlice::from_slice(packet).map_err(|_| Malformed::Header)?;
        let (dscp, ecn, length, may_fragment) = match &ip {
            IpSlice::Ipv4(ip) => {
                let header = ip.header();
                let length = usize::from(header.total_len());
                (header.dcp().value(), header.ecn().value(), length, !header.dont_fragment())
            }
            IpSlice::Ipv6(ip) => {
                let header = ip.header();
                let length = usize::from(header.payload_length()) + header.slice().len();
                (header.dscp().value(), header.ecn().value(), length, false)
            }
        };
        if length != packet.len() {
            return Err(Malformed::Length);
        }
        let (source, destination) = (ip.source_addr(), ip.destination_addr());
        if !is_host(source) {
            return Err(Malformed::Source);
        }
        if destination.is_loopback() || destination.is_unspecified() {
            return Err(Malformed::Destination);
        }
        let payload = ip.payload();
        let (ports, transport) =
            if payload.fragmented { ((0, 0), Transport::Other) } else { read_transport(&ip) };
        let protocol = payload.ip_number.0;
        Ok(Self { source, destination, protocol, ports, dscp, ecn, may_fragment, transport })
    }

    /// A number that all packets of a flow share: same addresses, protocol and ports. `seed` makes it unpredictable,
    /// so that an attacker cannot choose flows that share a number with others.
    pub fn flow(&self, seed: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (seed, self.source, self.destination, self.protocol, self.ports).hash(&mut hasher);
        hasher.finish()
    }
}

/// Whether an address can belong to a single host on another machine.
fn is_host(address: IpAddr) -> bool {
    let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(broadcast || address.is_multicast() || address.is_loopback() || address.is_unspecified())
}

fn read_transport(ip: &IpSlice<'_>) -> ((u16, u16), Transport) {
    let payload = ip.payload();
    let other = ((0, 0), Transport::Other);
    match payload.ip_number {
        ip_number::TCP => TcpSlice::from_slice(payload.payload).map_or(other, |tcp| {
            let is_control = tcp.syn() || tcp.fin() || tcp.rst();
            let has_data = !tcp.payload().is_empty();
            ((tcp.source_port(), tcp.destination_port()), Transport::Tcp { is_control, has_data })
        }),
        ip_number::UDP => UdpSlice::from_slice(payload.payload).map_or(other, |udp| {
            let first = udp.payload().first().copied();
            ((udp.source_port(), udp.destination_port()), Transport::Udp { first })
        }),
        ip_number::ICMP | ip_number::IPV6_ICMP => ((0, 0), Transport::Icmp),
        _ => other,
    }
}

/// Decrements the time to live of a checked packet, as a router does.
///
/// # Errors
/// [`Malformed::TimeToLive`] if it ends here.
pub fn decrement_ttl(packet: &mut [u8]) -> Result<(), Malformed> {
    let at = if packet[0] >> 4 == 4 { TTL } else { HOP_LIMIT };
    if packet[at] <= 1 {
        return Err(Malformed::TimeToLive);
    }
    let before = u16::from_be_bytes([packet[at], packet[at + 1]]);
    packet[at] -= 1;
    if at == TTL {
        let after = u16::from_be_bytes([packet[at], packet[at + 1]]);
        update_checksum(packet, IPV4_CHECKSUM, before, after);
    }
    Ok(())
}

/// Marks a checked packet: congestion experienced (RFC 3168, 5).
pub fn mark_congestion(packet: &mut [u8]) {
    let before = u16::from_be_bytes([packet[0], packet[1]]);
    if packet[0] >> 4 == 4 {
        packet[1] |= CONGESTION_EXPERIENCED;
        let after = u16::from_be_bytes([packet[0], packet[1]]);
        update_checksum(packet, IPV4_CHECKSUM, before, after);
    } else {
        // The traffic class starts in the middle of the first byte.
        packet[1] |= CONGESTION_EXPERIENCED << 4;
    }
}

/// Updates the checksum at `at` after a 16-bit word changed (RFC 1624, equation 3).
pub fn update_checksum(packet: &mut [u8], at: usize, before: u16, after: u16) {
    let old = u16::from_be_bytes([packet[at], packet[at + 1]]);
    let mut sum = u32::from(!old) + u32::from(!before) + u32::from(after);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    packet[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use etherparse::{Ipv4HeaderSlice, PacketBuilder};

    use super::*;

    fn udp(ttl: u8) -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4([10, 0, 0, 2], [192, 0, 2, 1], ttl).udp(5060, 53);
        builder.write(&mut packet, b"question").expect("it fits");
        packet
    }

    #[test]
    fn the_fields_of_a_packet_are_read() {
        let read = Headers::read(&udp(64)).expect("a sound packet");
        assert_eq!((read.source, read.ports), (IpAddr::from([10, 0, 0, 2]), (5060, 53)));
        assert_eq!(read.transport, Transport::Udp { first: Some(b'q') });
        let mut tcp = Vec::new();
        let builder = PacketBuilder::ipv6([0xFD; 16], [0x20; 16], 9).tcp(1, 2, 3, 4).syn();
        builder.write(&mut tcp, &[]).expect("it fits");
        let read = Headers::read(&tcp).expect("a sound packet");
        assert_eq!(
            (read.transport, read.may_fragment),
            (Transport::Tcp { is_control: true, has_data: false }, false)
        );
    }

    #[test]
    fn packets_of_a_flow_share_a_number_and_other_flows_have_others() {
        let one = Headers::read(&udp(64)).expect("a sound packet");
        let same = Headers::read(&udp(3)).expect("a sound packet");
        let other = Headers { ports: (5061, 53), ..one };
        assert_eq!(one.flow(7), same.flow(7));
        assert!(one.flow(7) != other.flow(7) && one.flow(7) != one.flow(8));
    }

    #[test]
    fn hostile_packets_are_refused_for_what_is_wrong_with_them() {
        let changed = |change: fn(&mut Vec<u8>)| {
            let mut packet = udp(64);
            change(&mut packet);
            Headers::read(&packet).expect_err("it is refused")
        };
        type Change = fn(&mut Vec<u8>);
        let cases: [(Change, Malformed); 10] = [
            (|p| p.clear(), Malformed::Version),
            (|p| p[0] = 0x55, Malformed::Version),
            (|p| p[0] = 0x44, Malformed::Header),
            (|p| p.truncate(12), Malformed::Header),
            (|p| p.truncate(30), Malformed::Header),
            (|p| p.push(0), Malformed::Length),
            (|p| p[12..16].copy_from_slice(&[224, 0, 0, 1]), Malformed::Source),
            (|p| p[12..16].copy_from_slice(&[255; 4]), Malformed::Source),
            (|p| p[12..16].copy_from_slice(&[127, 0, 0, 1]), Malformed::Source),
            (|p| p[16..20].copy_from_slice(&[127, 0, 0, 53]), Malformed::Destination),
        ];
        for (change, expected) in cases {
            assert_eq!(changed(change), expected);
        }
    }

    #[test]
    fn forwarding_ends_with_the_time_to_live_and_keeps_the_checksum_right() {
        let mut packet = udp(2);
        decrement_ttl(&mut packet).expect("one hop is left");
        let header = Ipv4HeaderSlice::from_slice(&packet).expect("a header");
        assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
        assert_eq!(decrement_ttl(&mut packet), Err(Malformed::TimeToLive));
    }

    #[test]
    fn a_mark_changes_the_ecn_field_and_keeps_the_checksum_right() {
        let mut packet = udp(64);
        mark_congestion(&mut packet);
        let header = Ipv4HeaderSlice::from_slice(&packet).expect("a header");
        assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum());
        assert_eq!(Headers::read(&packet).expect("sound").ecn, 3);
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv6([0xFD; 16], [0x20; 16], 9).udp(1, 2);
        builder.write(&mut packet, &[]).expect("it fits");
        mark_congestion(&mut packet);
        let read = Headers::read(&packet).expect("sound");
        assert_eq!((read.ecn, read.dscp), (3, 0));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_checks_panic(mut bytes in proptest::collection::vec(0_u8.., 0..80)) {
            if Headers::read(&bytes).is_ok() {
                let _ = decrement_ttl(&mut bytes);
            }
        }
    }
}
