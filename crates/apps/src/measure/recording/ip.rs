//! The header of an IP packet, which may be truncated after its headers.

use std::net::IpAddr;

use etherparse::{Ipv6Header, LaxIpSlice};

/// The protocol numbers of TCP, UDP and SCTP.
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SCTP: u8 = 132;
/// Length of the header of UDP, bytes.
pub(super) const UDP_HEADER: usize = 8;

/// An IP packet.
pub(super) struct Ip<'a> {
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    /// Size of the packet, bytes, even if the file contains only its beginning.
    pub(super) bytes: u32,
    /// Bytes in front of the payload.
    pub(super) headers: u32,
    pub(super) protocol: u8,
    /// Whether the packet is a fragment of a larger one.
    pub(super) fragment: bool,
    /// The payload, as much of it as the file has.
    pub(super) payload: &'a [u8],
}

impl<'a> Ip<'a> {
    /// Parses a packet that had at most `on_link` bytes on the link. `None` if it is not an IP packet.
    pub(super) fn parse(data: &'a [u8], on_link: u32) -> Option<Self> {
        let (ip, _) = LaxIpSlice::from_slice(data).ok()?;
        let total = match &ip {
            LaxIpSlice::Ipv4(ip) => u32::from(ip.header().total_len()),
            LaxIpSlice::Ipv6(ip) => match ip.header().payload_length() {
                0 => 0,
                payload => u32::from(payload) + Ipv6Header::LEN as u32,
            },
        };
        // A network card that splits segments may leave the length empty.
        let bytes = if total == 0 { on_link } else { total };
        let payload = ip.payload();
        let headers = payload.payload.as_ptr().addr() - data.as_ptr().addr();
        (headers <= bytes as usize).then(|| Self {
            from: ip.source_addr(),
            to: ip.destination_addr(),
            bytes,
            headers: headers as u32,
            protocol: payload.ip_number.0,
            fragment: payload.fragmented,
            payload: payload.payload,
        })
    }
}
