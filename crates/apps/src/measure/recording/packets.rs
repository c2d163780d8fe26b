//! The packets of a capture file (pcap or pcapng) that carry TCP or SCTP.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TcpOptionElement, TransportSlice};
use pcap_parser::pcapng::Block;
use pcap_parser::{Linktype, PcapBlockOwned, PcapError, create_reader};

use super::RecordingError;

/// Room for one block of the file. Segments that the network card splits have up to 64 KiB.
const BUFFER: usize = 1 << 20;
/// Most interfaces of a file.
const INTERFACES_LIMIT: usize = 4096;
/// The protocol number of SCTP.
const SCTP: u8 = 132;
/// The port of SCTP in UDP (RFC 6951, 4.1).
const ENCAPSULATION_PORT: u16 = 9899;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

/// A packet with TCP or SCTP.
pub(super) struct Packet<'a> {
    /// When it was captured, nanoseconds.
    pub(super) at_ns: u64,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// Size of the IP packet, bytes, also if the file has only its beginning.
    pub(super) bytes: u32,
    pub(super) content: Content<'a>,
}

/// What a packet carries.
pub(super) enum Content<'a> {
    Tcp(Segment),
    /// The SCTP packet, as much of it as the file has.
    Sctp(&'a [u8]),
}

/// A TCP segment.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub(super) sequence: u32,
    /// User data, bytes.
    pub(super) payload: u32,
    pub(super) syn: bool,
    pub(super) acknowledgment: Option<u32>,
    /// The timestamps option (RFC 7323): own value, echoed value.
    pub(super) timestamps: Option<(u32, u32)>,
    /// Received data beyond the acknowledgment (RFC 2018): first byte, end.
    pub(super) received: [Option<(u32, u32)>; 4],
    /// Maximum segment size, in a SYN.
    pub(super) mss: Option<u16>,
}

/// An interface of a capture.
#[derive(Clone, Copy)]
struct Interface {
    link: Linktype,
    /// Units of its timestamps per second.
    resolution: u64,
    /// Seconds to add.
    offset: i64,
}

/// Calls `take` with each packet that carries TCP or SCTP. Returns the number of all packets.
///
/// # Errors
/// [`RecordingError`].
pub(super) fn for_each(
    reader: impl Read + Send,
    mut take: impl FnMut(&Packet<'_>) -> Result<(), RecordingError>,
) -> Result<u64, RecordingError> {
    let mut reader = create_reader(BUFFER, reader).map_err(|error| wrong(&error))?;
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut packets = 0;
    loop {
        let length = match reader.next() {
            Ok((length, block)) => {
                if let Some(frame) = frame(&block, &mut interfaces)? {
                    packets += 1;
                    if let Some(packet) = frame.packet() {
                        take(&packet)?;
                    }
                }
                Some(length)
            }
            // A capture that was interrupted ends within a packet.
            Err(PcapError::Eof | PcapError::UnexpectedEof) => return Ok(packets),
            Err(PcapError::Incomplete(_)) => None,
            Err(error) => return Err(wrong(&error)),
        };
        match length {
            Some(length) => reader.consume(length),
            None if reader.reader_exhausted() => return Ok(packets),
            None => reader.refill().map_err(|error| wrong(&error))?,
        }
    }
}

fn wrong(error: &PcapError<&[u8]>) -> RecordingError {
    match error {
        PcapError::ReadError => RecordingError::Read,
        PcapError::Eof | PcapError::HeaderNotRecognized => RecordingError::Format,
        _ => RecordingError::Damaged,
    }
}

/// A captured frame.
struct Frame<'a> {
    at_ns: u64,
    link: Linktype,
    /// Its size on the link, bytes.
    length: u32,
    data: &'a [u8],
}

/// The frame of a block, if it has one. Blocks that describe interfaces are remembered.
fn frame<'a>(
    block: &'a PcapBlockOwned<'a>,
    interfaces: &mut Vec<Interface>,
) -> Result<Option<Frame<'a>>, RecordingError> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let resolution =
                if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            *interfaces = vec![Interface { link: header.network, resolution, offset: 0 }];
        }
        PcapBlockOwned::Legacy(block) => {
            let interface = interfaces.first().ok_or(RecordingError::Damaged)?;
            let fraction =
                u128::from(block.ts_usec) * 1_000_000_000 / u128::from(interface.resolution);
            let at_ns = u128::from(block.ts_sec) * 1_000_000_000 + fraction;
            let data = block.data.get(..block.caplen as usize).unwrap_or(block.data);
            return Ok(Some(Frame {
                at_ns: u64::try_from(at_ns).unwrap_or(u64::MAX),
                link: interface.link,
                length: block.origlen,
                data,
            }));
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            if interfaces.len() == INTERFACES_LIMIT {
                return Err(RecordingError::Damaged);
            }
            let resolution = interface.ts_resolution().filter(|units| *units > 0);
            interfaces.push(Interface {
                link: interface.linktype,
                resolution: resolution.ok_or(RecordingError::Damaged)?,
                offset: interface.ts_offset(),
            });
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
            let interface = interfaces.get(block.if_id as usize).ok_or(RecordingError::Damaged)?;
            let units = u128::from(u64::from(block.ts_high) << 32 | u64::from(block.ts_low));
            let at = units * 1_000_000_000 / u128::from(interface.resolution);
            let at = i128::try_from(at).unwrap_or(i128::MAX);
            let at = at.saturating_add(i128::from(interface.offset) * 1_000_000_000);
            let data = block.data.get(..block.caplen as usize).unwrap_or(block.data);
            return Ok(Some(Frame {
                at_ns: u64::try_from(at.max(0)).unwrap_or(u64::MAX),
                link: interface.link,
                length: block.origlen,
                data,
            }));
        }
        // Simple packets have no time.
        PcapBlockOwned::NG(_) => {}
    }
    Ok(None)
}

impl<'a> Frame<'a> {
    /// The TCP or SCTP packet in the frame.
    fn packet(&self) -> Option<Packet<'a>> {
        let sliced = self.sliced()?;
        let (ip, total, from, to) = match sliced.net.as_ref()? {
            LaxNetSlice::Ipv4(ip) => {
                let header = ip.header();
                let (from, to) = (header.source_addr().into(), header.destination_addr().into());
                (header.slice().as_ptr(), u32::from(header.total_len()), from, to)
            }
            LaxNetSlice::Ipv6(ip) => {
                let header = ip.header();
                let (from, to) = (header.source_addr().into(), header.destination_addr().into());
                let payload = u32::from(header.payload_length());
                let total = if payload == 0 { 0 } else { payload + 40 };
                (header.slice().as_ptr(), total, from, to)
            }
            LaxNetSlice::Arp(_) => return None,
        };
        let before = ip.addr().checked_sub(self.data.as_ptr().addr())?;
        // Segments that the network card splits may have no length in their header.
        let on_link = self.length.saturating_sub(before as u32);
        let bytes = if total == 0 { on_link } else { total };
        let place = Place { at_ns: self.at_ns, bytes, from, to, ip: ip.addr() };
        match &sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => place.tcp(tcp),
            Some(TransportSlice::Udp(udp)) => {
                let ports = [udp.source_port(), udp.destination_port()];
                let sctp = ports.contains(&ENCAPSULATION_PORT);
                sctp.then(|| place.sctp(udp.payload(), Some(ports))).flatten()
            }
            _ => {
                let payload = sliced.net.as_ref()?.ip_payload_ref()?;
                let sctp = payload.ip_number.0 == SCTP && !payload.fragmented;
                sctp.then(|| place.sctp(payload.payload, None)).flatten()
            }
        }
    }

    fn sliced(&self) -> Option<LaxSlicedPacket<'a>> {
        let data = self.data;
        match self.link {
            Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
            Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => ip(data),
            // The header of the pseudo device: 16 bytes, the last two of which are the EtherType.
            Linktype::LINUX_SLL => Self::typed(data.get(14..16)?, data.get(16..)?),
            Linktype::LINUX_SLL2 => Self::typed(data.get(..2)?, data.get(20..)?),
            // The address family, in the byte order of the capturing machine.
            Linktype::NULL | Linktype::LOOP => ip(data.get(4..)?),
            _ => None,
        }
    }

    fn typed(kind: &[u8], data: &'a [u8]) -> Option<LaxSlicedPacket<'a>> {
        match u16::from_be_bytes(kind.try_into().ok()?) {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => ip(data),
            _ => None,
        }
    }
}

fn ip(data: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    LaxSlicedPacket::from_ip(data).ok()
}

/// A packet before its content is known.
struct Place {
    at_ns: u64,
    bytes: u32,
    from: IpAddr,
    to: IpAddr,
    /// Address of its IP header in memory.
    ip: usize,
}

impl Place {
    fn tcp<'a>(&self, tcp: &etherparse::TcpSlice<'_>) -> Option<Packet<'a>> {
        let headers = tcp.header_slice().as_ptr().addr().checked_sub(self.ip)?;
        let headers = (headers + tcp.header_slice().len()) as u32;
        let (mut timestamps, mut mss, mut received) = (None, None, [None; 4]);
        for option in tcp.options_iterator().flatten() {
            match option {
                TcpOptionElement::Timestamp(own, echoed) => timestamps = Some((own, echoed)),
                TcpOptionElement::MaximumSegmentSize(bytes) => mss = Some(bytes),
                TcpOptionElement::SelectiveAcknowledgement(first, [a, b, c]) => {
                    received = [Some(first), a, b, c];
                }
                _ => {}
            }
        }
        let segment = Segment {
            sequence: tcp.sequence_number(),
            payload: self.bytes.saturating_sub(headers),
            syn: tcp.syn(),
            acknowledgment: tcp.ack().then(|| tcp.acknowledgment_number()),
            timestamps,
            received,
            mss,
        };
        let ports = [tcp.source_port(), tcp.destination_port()];
        Some(self.with(ports, Content::Tcp(segment)))
    }

    /// `udp` has the ports of the encapsulation.
    fn sctp<'a>(&self, packet: &'a [u8], udp: Option<[u16; 2]>) -> Option<Packet<'a>> {
        let [a, b, c, d] = *packet.first_chunk::<4>()?;
        let ports = udp.unwrap_or([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
        Some(self.with(ports, Content::Sctp(packet)))
    }

    fn with<'a>(&self, [from, to]: [u16; 2], content: Content<'a>) -> Packet<'a> {
        Packet {
            at_ns: self.at_ns,
            from: SocketAddr::new(self.from, from),
            to: SocketAddr::new(self.to, to),
            bytes: self.bytes,
            content,
        }
    }
}
