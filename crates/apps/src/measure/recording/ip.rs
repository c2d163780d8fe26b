//! The header of an IP packet, which may be cut off behind its headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The protocol numbers of TCP, UDP and SCTP.
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const SCTP: u8 = 132;
/// Length of the header of UDP, bytes.
pub(super) const UDP_HEADER: usize = 8;
const IPV6_HEADER: usize = 40;
/// Maximum number of extension headers of IPv6.
const EXTENSIONS_LIMIT: usize = 8;

/// An IP packet.
pub(super) struct Ip<'a> {
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    /// Size of the packet, bytes, also if the file has only its beginning.
    pub(super) bytes: u32,
    /// Bytes in front of the payload.
    pub(super) headers: u32,
    pub(super) protocol: u8,
    /// Whether it is part of a larger packet.
    pub(super) fragment: bool,
    /// The payload, as much of it as the file has.
    pub(super) payload: &'a [u8],
}

impl<'a> Ip<'a> {
    /// Parses a packet that had at most `on_link` bytes on the link. `None` if it is not a packet of IP.
    pub(super) fn parse(data: &'a [u8], on_link: u32) -> Option<Self> {
        match data.first()? >> 4 {
            4 => Self::v4(data, on_link),
            6 => Self::v6(data, on_link),
            _ => None,
        }
    }

    fn v4(data: &'a [u8], on_link: u32) -> Option<Self> {
        let header = data.first_chunk::<20>()?;
        let length = usize::from(header[0] & 15) * 4;
        let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let address =
            |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
        let total = u32::from(short(2));
        // A network card that splits segments may leave the length empty.
        let bytes = if total == 0 { on_link } else { total };
        if length < header.len() || bytes < length as u32 {
            return None;
        }
        let end = (bytes as usize).min(data.len());
        let found = Self {
            from: address(12).into(),
            to: address(16).into(),
            bytes,
            headers: length as u32,
            protocol: header[9],
            fragment: short(6) & 0x3fff != 0,
            payload: data.get(length..end)?,
        };
        found.behind_authentication()
    }

    fn v6(data: &'a [u8], on_link: u32) -> Option<Self> {
        let header = data.first_chunk::<IPV6_HEADER>()?;
        let payload = u32::from(u16::from_be_bytes([header[4], header[5]]));
        let bytes = if payload == 0 { on_link } else { payload + IPV6_HEADER as u32 };
        let address = |at: usize| {
            let bytes: [u8; 16] = header[at..at + 16].try_into().expect("16 bytes");
            Ipv6Addr::from(bytes)
        };
        let end = (bytes as usize).min(data.len());
        let (mut protocol, mut length, mut fragment) = (header[6], IPV6_HEADER, false);
        for _ in 0..EXTENSIONS_LIMIT {
            let next = data.get(length..length + 2);
            match protocol {
                // Hop-by-hop options, routing, destination options (RFC 8200, 4).
                0 | 43 | 60 => {
                    let next = next?;
                    (protocol, length) = (next[0], length + 8 + usize::from(next[1]) * 8);
                }
                44 => {
                    let offset = data.get(length + 2..length + 4)?;
                    fragment |= u16::from_be_bytes([offset[0], offset[1]]) & 0xfff9 != 0;
                    (protocol, length) = (next?[0], length + 8);
                }
                _ => break,
            }
        }
        let found = Self {
            from: address(8).into(),
            to: address(24).into(),
            bytes,
            headers: length as u32,
            protocol,
            fragment,
            payload: data.get(length..end)?,
        };
        found.behind_authentication()
    }

    /// Skips the authentication header of IPsec (RFC 4302, 2), which does not encrypt.
    fn behind_authentication(mut self) -> Option<Self> {
        const AUTHENTICATION: u8 = 51;
        if self.protocol == AUTHENTICATION && !self.fragment {
            let length = (usize::from(*self.payload.get(1)?) + 2) * 4;
            self.protocol = *self.payload.first()?;
            self.payload = self.payload.get(length..)?;
            self.headers += length as u32;
        }
        Some(self)
    }
}
