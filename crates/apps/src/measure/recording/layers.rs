//! The layers around an IP packet: link headers, and tunnels that do not encrypt.
//!
//! ```text
//!   link type -> EtherType -> VLAN, MPLS, PPPoE -> IP -> IP in IP, GRE, VXLAN, GTP-U, L2TP -> IP -> TCP, SCTP
//! ```

use super::ip::{Ip, UDP, UDP_HEADER};

/// Maximum number of layers of one frame.
const LAYERS_LIMIT: usize = 24;

const IP_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const ESP: u8 = 50;
const ETHER_IP: u8 = 97;
const L2TP_V3: u8 = 115;

/// The innermost IP packet of a frame that can be read.
pub(super) struct Inner<'a> {
    pub(super) ip: Ip<'a>,
    /// Size of the outermost IP packet, bytes: the size on the link.
    pub(super) outer_bytes: u32,
}

/// Why a frame has no readable IP packet: the name of a protocol that hides it, or `None`.
pub(super) type Hidden = Option<&'static str>;

/// The next layer, and its bytes.
#[derive(Clone, Copy)]
enum Layer {
    Ethernet,
    EtherType(u16),
    Ppp,
    Ip,
    WiFi,
}

type Next<'a> = Result<(Layer, &'a [u8]), Hidden>;

/// Finds the innermost IP packet of a frame of link type `link`, which had `length` bytes on the link.
pub(super) fn innermost(link: i32, data: &[u8], length: u32) -> Result<Inner<'_>, Hidden> {
    let (mut layer, mut rest) = link_layer(link, data)?;
    let mut outer_bytes = None;
    for _ in 0..LAYERS_LIMIT {
        (layer, rest) = match layer {
            Layer::Ethernet => ethernet(rest)?,
            Layer::EtherType(kind) => ether_type(kind, rest)?,
            Layer::Ppp => ppp(rest)?,
            Layer::WiFi => wifi(rest)?,
            Layer::Ip => {
                let before = data.len().saturating_sub(rest.len()) as u32;
                let ip = Ip::parse(rest, length.saturating_sub(before)).ok_or(None)?;
                let outer = *outer_bytes.get_or_insert(ip.bytes);
                match tunnel(&ip)? {
                    Some(next) => next,
                    None => return Ok(Inner { ip, outer_bytes: outer }),
                }
            }
        };
    }
    Err(None)
}

fn at(data: &[u8], from: usize) -> Result<&[u8], Hidden> {
    data.get(from..).ok_or(None)
}

fn short(data: &[u8], from: usize) -> Result<u16, Hidden> {
    let bytes = data.get(from..from + 2).ok_or(None)?;
    Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
}

fn byte(data: &[u8], from: usize) -> Result<u8, Hidden> {
    data.get(from).copied().ok_or(None)
}

/// The header of a link type (the numbers of <https://www.tcpdump.org/linktypes.html>).
fn link_layer(link: i32, data: &[u8]) -> Next<'_> {
    let found = match link {
        1 => (Layer::Ethernet, data),
        // The address family, in the byte order of the capturing machine.
        0 | 108 => (Layer::Ip, at(data, 4)?),
        12 | 14 | 101 | 228 | 229 => (Layer::Ip, data),
        // PPP; in frames of HDLC; with a byte for the direction, alone or in place of the address.
        9 => (Layer::Ppp, data),
        50 if data.first().is_some_and(|first| *first != 0xff) => cisco(data)?,
        50 => (Layer::Ppp, data),
        166 => (Layer::Ppp, at(data, 2)?),
        204 => (Layer::Ppp, at(data, 1)?),
        51 => (Layer::EtherType(0x8864), data),
        104 => cisco(data)?,
        // RFC 1483 and RFC 2225: LLC before the packet.
        11 | 100 => llc(data)?,
        105 => (Layer::WiFi, data),
        127 => (Layer::WiFi, at(data, little(data, 2)?)?),
        119 => (Layer::WiFi, at(data, 144)?),
        192 if little(data, 4)? == 105 => (Layer::WiFi, at(data, little(data, 2)?)?),
        192 => (Layer::Ethernet, at(data, little(data, 2)?)?),
        // The enciphering interface of OpenBSD, and its packet filter.
        109 => (Layer::Ip, at(data, 12)?),
        117 => (Layer::Ip, at(data, usize::from(byte(data, 0)?).next_multiple_of(4))?),
        113 => (Layer::EtherType(short(data, 14)?), at(data, 16)?),
        276 => (Layer::EtherType(short(data, 0)?), at(data, 20)?),
        138 => (Layer::EtherType(short(data, 16)?), at(data, 18)?),
        _ => return Err(Some(link_name(link))),
    };
    Ok(found)
}

fn link_name(link: i32) -> &'static str {
    match link {
        143 => "frames of DOCSIS",
        107 => "frames of Frame Relay",
        123 | 19 => "cells of ATM",
        163 => "Wi-Fi frames with AVS headers",
        187 | 201 | 251 | 256 => "frames of Bluetooth",
        189 | 220 | 249 | 266 => "frames of USB",
        195 | 215 | 230 | 283 => "frames of IEEE 802.15.4",
        197 => "records of ERF",
        227 => "frames of CAN",
        253 => "messages of netlink",
        147..=162 => "frames of a private link type",
        _ => "frames of a link type that is not known",
    }
}

fn little(data: &[u8], from: usize) -> Result<usize, Hidden> {
    short(data, from).map(|value| usize::from(value.swap_bytes()))
}

/// Cisco's HDLC: address, control, EtherType.
fn cisco(data: &[u8]) -> Next<'_> {
    Ok((Layer::EtherType(short(data, 2)?), at(data, 4)?))
}

fn ethernet(data: &[u8]) -> Next<'_> {
    Ok((Layer::EtherType(short(data, 12)?), at(data, 14)?))
}

fn llc(data: &[u8]) -> Next<'_> {
    match data.get(..6).ok_or(None)? {
        [0xaa, 0xaa, 3, ..] => Ok((Layer::EtherType(short(data, 6)?), at(data, 8)?)),
        // RFC 2364 and bridges that encapsulate PPP.
        [0xfe, 0xfe, 3, 0xcf, ..] => Ok((Layer::Ppp, at(data, 4)?)),
        _ => Err(None),
    }
}

fn ether_type(kind: u16, data: &[u8]) -> Next<'_> {
    match kind {
        0x0800 | 0x86dd => Ok((Layer::Ip, data)),
        // VLAN and QinQ: tag, then the next EtherType.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => {
            Ok((Layer::EtherType(short(data, 2)?), at(data, 4)?))
        }
        0x8847 | 0x8848 => mpls(data),
        // RFC 2516, 4: version and type, code, session, length.
        0x8864 => Ok((Layer::Ppp, at(data, 6)?)),
        0x880b => Ok((Layer::Ppp, data)),
        0x6558 => Ok((Layer::Ethernet, data)),
        0x88e5 => Err(Some("MACsec")),
        // Below 1536, the field is a length (IEEE 802.3), or the pseudo device's number for LLC.
        0..=0x05ff => llc(data),
        _ => Err(None),
    }
}

/// Labels up to the bottom of the stack (RFC 3032, 2.1). The next protocol is not named: the first bits show it.
fn mpls(data: &[u8]) -> Next<'_> {
    let labels = data.chunks_exact(4).position(|label| label[2] & 1 == 1).ok_or(None)? + 1;
    let rest = at(data, 4 * labels)?;
    match byte(rest, 0)? >> 4 {
        4 | 6 => Ok((Layer::Ip, rest)),
        // The control word of a pseudowire (RFC 4448, 4.6).
        0 => Ok((Layer::Ethernet, at(rest, 4)?)),
        _ => Ok((Layer::Ethernet, rest)),
    }
}

/// PPP (RFC 1661, 2; RFC 1662, 3.1): address and control are optional, and the protocol may be one byte.
fn ppp(data: &[u8]) -> Next<'_> {
    let data = data.strip_prefix(&[0xff, 3]).unwrap_or(data);
    let first = byte(data, 0)?;
    let (protocol, rest) = match first & 1 {
        1 => (u16::from(first), at(data, 1)?),
        _ => (short(data, 0)?, at(data, 2)?),
    };
    match protocol {
        0x0021 | 0x0057 => Ok((Layer::Ip, rest)),
        0x0281 => Ok((Layer::EtherType(0x8847), rest)),
        0x002d | 0x002f => Err(Some("PPP with compressed headers of TCP")),
        0x003d => Err(Some("multilink PPP")),
        0x0053 | 0x0055 => Err(Some("encrypted PPP")),
        0x00fb | 0x00fd => Err(Some("compressed PPP")),
        _ => Err(None),
    }
}

/// A data frame of IEEE 802.11, 9.3.2.
fn wifi(data: &[u8]) -> Next<'_> {
    let [kind, flags] = *data.first_chunk::<2>().ok_or(None)?;
    // Data frames without the bit for "no data".
    if kind & 0x4c != 0x08 {
        return Err(None);
    }
    if flags & 0x40 != 0 {
        return Err(Some("encrypted Wi-Fi"));
    }
    let four_addresses = if flags & 3 == 3 { 6 } else { 0 };
    let quality = if kind & 0x80 != 0 { 2 } else { 0 };
    let control = if kind & 0x80 != 0 && flags & 0x80 != 0 { 4 } else { 0 };
    llc(at(data, 24 + four_addresses + quality + control)?)
}

/// The packet that an IP packet carries, if it is a tunnel's.
fn tunnel<'a>(ip: &Ip<'a>) -> Result<Option<(Layer, &'a [u8])>, Hidden> {
    match ip.protocol {
        _ if ip.fragment => Ok(None),
        IP_IN_IP | IPV6_IN_IP => Ok(Some((Layer::Ip, ip.payload))),
        GRE => gre(ip.payload).map(Some),
        ESP => Err(Some("IPsec")),
        ETHER_IP => Ok(Some((Layer::Ethernet, at(ip.payload, 2)?))),
        L2TP_V3 => Err(Some("L2TP version 3")),
        UDP => in_udp(ip.payload),
        _ => Ok(None),
    }
}

/// RFC 2784 and RFC 2890; version 1 (RFC 2637, PPTP) carries PPP.
fn gre(data: &[u8]) -> Next<'_> {
    let (flags, kind) = (short(data, 0)?, short(data, 2)?);
    let mut length = 4;
    if flags & 7 == 1 {
        length +=
            4 + if flags & 0x1000 != 0 { 4 } else { 0 } + if flags & 0x80 != 0 { 4 } else { 0 };
        return Ok((Layer::Ppp, at(data, length)?));
    }
    length += 4 * (flags & 0xb000).count_ones() as usize;
    match kind {
        // ERSPAN I has no header, II one of 8 bytes with a sequence number in front, III one of 12 bytes.
        0x88be => {
            let header = if flags & 0x1000 != 0 { 8 } else { 0 };
            Ok((Layer::Ethernet, at(data, length + header)?))
        }
        0x22eb => Ok((Layer::Ethernet, at(data, length + 12)?)),
        _ => Ok((Layer::EtherType(kind), at(data, length)?)),
    }
}

/// Tunnels in UDP, by their ports.
fn in_udp(data: &[u8]) -> Result<Option<(Layer, &[u8])>, Hidden> {
    let Ok(rest) = at(data, UDP_HEADER) else { return Ok(None) };
    let ports = [short(data, 0)?, short(data, 2)?];
    let has = |port: u16| ports.contains(&port);
    let next = if (has(4789) || has(8472)) && byte(rest, 0)? & 8 != 0 {
        (Layer::Ethernet, at(rest, 8)?)
    } else if has(4790) {
        let layer = if byte(rest, 3)? == 3 { Layer::Ethernet } else { Layer::Ip };
        (layer, at(rest, 8)?)
    } else if has(6081) {
        let options = usize::from(byte(rest, 0)? & 0x3f) * 4;
        (Layer::EtherType(short(rest, 2)?), at(rest, 8 + options)?)
    } else if has(2152) {
        (Layer::Ip, gtp(rest)?)
    } else if has(1701) {
        (Layer::Ppp, l2tp(rest)?)
    } else if has(6635) {
        (Layer::EtherType(0x8847), rest)
    } else if has(4754) {
        gre(rest)?
    } else if has(3544) && byte(rest, 0)? >> 4 == 6 {
        (Layer::Ip, rest)
    } else {
        return match encrypted(ports, rest) {
            Some(name) => Err(Some(name)),
            None => Ok(None),
        };
    };
    Ok(Some(next))
}

/// Protocols over UDP that encrypt their payload.
fn encrypted(ports: [u16; 2], data: &[u8]) -> Hidden {
    let has = |port: u16| ports.contains(&port);
    match data.first_chunk::<4>() {
        Some([1..=4, 0, 0, 0]) if !has(53) => Some("WireGuard"),
        Some(first) if has(4500) && *first != [0; 4] => Some("IPsec"),
        Some(_) if has(1194) => Some("OpenVPN"),
        Some([first, ..]) if has(443) && first & 0x40 != 0 => Some("QUIC"),
        _ => None,
    }
}

/// GTP-U (3GPP TS 29.281, 5.1): G-PDUs, with their extension headers.
fn gtp(data: &[u8]) -> Result<&[u8], Hidden> {
    let (flags, kind) = (byte(data, 0)?, byte(data, 1)?);
    if flags >> 5 != 1 || kind != 255 {
        return Err(None);
    }
    if flags & 7 == 0 {
        return at(data, 8);
    }
    let (mut from, mut next) = (12, byte(data, 11)?);
    if flags & 4 == 0 {
        next = 0;
    }
    while next != 0 {
        let length = usize::from(byte(data, from)?) * 4;
        if length == 0 {
            return Err(None);
        }
        next = byte(data, from + length - 1)?;
        from += length;
    }
    at(data, from)
}

/// L2TP version 2 (RFC 2661, 3.1): data messages.
fn l2tp(data: &[u8]) -> Result<&[u8], Hidden> {
    let flags = short(data, 0)?;
    if flags & 0x8000 != 0 || flags & 0xf != 2 {
        return Err(None);
    }
    let mut length = 6;
    length += if flags & 0x4000 != 0 { 2 } else { 0 };
    length += if flags & 0x0800 != 0 { 4 } else { 0 };
    if flags & 0x0200 != 0 {
        length += 2 + usize::from(short(data, length)?);
    }
    at(data, length)
}
