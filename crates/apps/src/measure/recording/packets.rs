//! The packets of a capture file that carry TCP or SCTP.

use std::io::Read;
use std::net::SocketAddr;

use etherparse::{TcpOptionElement, TcpSlice};

use super::RecordingError;
use super::frames::{self, Frame, Frames};
use super::ip::{Ip, SCTP, TCP, UDP, UDP_HEADER};
use super::layers::{Hidden, innermost};

/// The port of SCTP in UDP (RFC 6951, 4.1).
const ENCAPSULATION_PORT: u16 = 9899;

/// A packet with TCP or SCTP.
pub(super) struct Packet<'a> {
    /// When it was captured, nanoseconds.
    pub(super) at_ns: u64,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// Size of the IP packet, including tunnels around it, bytes, even if the file contains only its beginning.
    pub(super) bytes: u32,
    pub(super) content: Content<'a>,
}

/// The content of a packet.
pub(super) enum Content<'a> {
    Tcp(Segment),
    /// The SCTP packet, as far as the file contains it.
    Sctp(&'a [u8]),
}

/// A TCP segment.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub(super) sequence: u32,
    /// User data, bytes.
    pub(super) payload: u32,
    /// Length of TCP's options, bytes.
    pub(super) options: u16,
    pub(super) syn: bool,
    pub(super) acknowledgment: Option<u32>,
    /// The timestamps option (RFC 7323): own value, echoed value.
    pub(super) timestamps: Option<(u32, u32)>,
    /// Received data beyond the acknowledgment (RFC 2018): first byte, end.
    pub(super) received: [Option<(u32, u32)>; 4],
    /// Maximum segment size, in a SYN.
    pub(super) mss: Option<u16>,
}

/// Calls `take` with each packet that carries TCP or SCTP, or with the name of the protocol that hides it.
///
/// # Errors
/// [`RecordingError`].
pub(super) fn for_each(
    reader: impl Read + Send,
    mut take: impl FnMut(Result<&Packet<'_>, Hidden>) -> Result<(), RecordingError>,
) -> Result<Frames, RecordingError> {
    frames::for_each(reader, |frame| match packet(frame) {
        Ok(packet) => take(Ok(&packet)),
        Err(hidden) => take(Err(hidden)),
    })
}

/// The TCP or SCTP packet in the frame.
fn packet<'a>(frame: &Frame<'a>) -> Result<Packet<'a>, Hidden> {
    let inner = innermost(frame.link, frame.data, frame.length)?;
    let ip = &inner.ip;
    let (ports, content) = match ip.protocol {
        _ if ip.fragment => return Err(None),
        TCP => tcp(ip)?,
        SCTP => sctp(ip.payload, None)?,
        UDP => {
            let ports = ports(ip.payload).ok_or(None)?;
            if !ports.contains(&ENCAPSULATION_PORT) {
                return Err(None);
            }
            sctp(ip.payload.get(UDP_HEADER..).ok_or(None)?, Some(ports))?
        }
        _ => return Err(None),
    };
    Ok(Packet {
        at_ns: frame.at_ns,
        from: SocketAddr::new(ip.from, ports[0]),
        to: SocketAddr::new(ip.to, ports[1]),
        bytes: inner.outer_bytes,
        content,
    })
}

fn ports(data: &[u8]) -> Option<[u16; 2]> {
    let [a, b, c, d] = *data.first_chunk::<4>()?;
    Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

fn tcp<'a>(ip: &Ip<'a>) -> Result<([u16; 2], Content<'a>), Hidden> {
    let tcp = TcpSlice::from_slice(ip.payload).map_err(|_| None)?;
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
        payload: ip.bytes.saturating_sub(ip.headers + tcp.header_slice().len() as u32),
        options: tcp.options().len() as u16,
        syn: tcp.syn(),
        acknowledgment: tcp.ack().then(|| tcp.acknowledgment_number()),
        timestamps,
        received,
        mss,
    };
    Ok(([tcp.source_port(), tcp.destination_port()], Content::Tcp(segment)))
}

/// `udp` has the ports of the encapsulation.
fn sctp(packet: &[u8], udp: Option<[u16; 2]>) -> Result<([u16; 2], Content<'_>), Hidden> {
    let own = ports(packet).ok_or(None)?;
    Ok((udp.unwrap_or(own), Content::Sctp(packet)))
}
