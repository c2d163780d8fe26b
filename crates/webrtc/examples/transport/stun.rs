//! The part of STUN that an ICE-lite end needs (RFC 8445, 2.5; RFC 8489): it answers Binding requests.

use std::net::{IpAddr, SocketAddr};

use ring::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY};

const BINDING_REQUEST: u16 = 0x0001;
const BINDING_RESPONSE: u16 = 0x0101;
const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
const HEADER: usize = 20;
const USERNAME: u16 = 0x0006;
const MESSAGE_INTEGRITY: u16 = 0x0008;
const XOR_MAPPED_ADDRESS: u16 = 0x0020;
const USE_CANDIDATE: u16 = 0x0025;
const FINGERPRINT: u16 = 0x8028;
/// XORed into the CRC-32 of FINGERPRINT (RFC 8489, 14.7).
const FINGERPRINT_XOR: u32 = 0x5354_554e;

/// A Binding request whose attributes have been read, but whose integrity has not been checked yet.
pub struct Request<'a> {
    bytes: &'a [u8],
    /// Offset of MESSAGE-INTEGRITY.
    integrity_at: usize,
    /// The ICE user name fragment of the receiver of the request.
    pub ufrag: &'a str,
    /// Whether the controlling end nominates this pair.
    pub nominates: bool,
}

/// Whether a datagram is STUN and neither DTLS nor media (RFC 7983).
pub fn is_stun(datagram: &[u8]) -> bool {
    datagram.len() >= HEADER && datagram[0] < 4 && datagram[4..8] == COOKIE
}

impl<'a> Request<'a> {
    /// Reads a request. `None` if the datagram is not a well-formed Binding request with credentials.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let kind = u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]);
        let length = usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]));
        if kind != BINDING_REQUEST || !is_stun(bytes) || length + HEADER != bytes.len() {
            return None;
        }
        let (mut integrity_at, mut username, mut nominates) = (None, None, false);
        let mut at = HEADER;
        while at < bytes.len() {
            let head = bytes.get(at..at + 4)?;
            let attribute = u16::from_be_bytes([head[0], head[1]]);
            let size = usize::from(u16::from_be_bytes([head[2], head[3]]));
            let value = bytes.get(at + 4..at + 4 + size)?;
            match attribute {
                USERNAME => username = std::str::from_utf8(value).ok(),
                USE_CANDIDATE => nominates = true,
                MESSAGE_INTEGRITY if size == 20 => integrity_at = Some(at),
                FINGERPRINT => {
                    let sum = fingerprint(&bytes[..at]).to_be_bytes();
                    return (value == sum).then_some(()).and(Self::of(
                        bytes,
                        integrity_at?,
                        username?,
                        nominates,
                    ));
                }
                _ => {}
            }
            at += 4 + size.next_multiple_of(4);
        }
        // RFC 8445, 7.1: FINGERPRINT is in every connectivity check.
        None
    }

    fn of(
        bytes: &'a [u8],
        integrity_at: usize,
        username: &'a str,
        nominates: bool,
    ) -> Option<Self> {
        // RFC 8445, 7.2.2: the user name is that of the receiver of the request, a colon, and that of its
        // sender.
        let (ufrag, _) = username.split_once(':')?;
        Some(Self { bytes, integrity_at, ufrag, nominates })
    }

    /// Whether the sender of the request knows the password (RFC 8489, 14.5).
    pub fn is_authentic(&self, password: &str) -> bool {
        let key = hmac::Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, password.as_bytes());
        let mut covered = self.bytes[..self.integrity_at].to_vec();
        set_length(&mut covered, self.integrity_at + 24);
        hmac::verify(&key, &covered, &self.bytes[self.integrity_at + 4..self.integrity_at + 24])
            .is_ok()
    }

    /// The success response, with the source address of the request.
    pub fn response(&self, from: SocketAddr, password: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.extend_from_slice(&BINDING_RESPONSE.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&self.bytes[4..HEADER]);
        let address = xor_address(from, &self.bytes[4..HEADER]);
        put(&mut out, XOR_MAPPED_ADDRESS, &address);
        let end = out.len() + 24;
        set_length(&mut out, end);
        let key = hmac::Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, password.as_bytes());
        let mac = hmac::sign(&key, &out);
        put(&mut out, MESSAGE_INTEGRITY, mac.as_ref());
        let end = out.len() + 8;
        set_length(&mut out, end);
        let sum = fingerprint(&out);
        put(&mut out, FINGERPRINT, &sum.to_be_bytes());
        out
    }
}

/// Sets the length field to that of a message of `end` bytes.
fn set_length(message: &mut [u8], end: usize) {
    message[2..4].copy_from_slice(&((end - HEADER) as u16).to_be_bytes());
}

fn put(out: &mut Vec<u8>, attribute: u16, value: &[u8]) {
    out.extend_from_slice(&attribute.to_be_bytes());
    out.extend_from_slice(&(value.len() as u16).to_be_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// RFC 8489, 14.2: the address XORed with the magic cookie and the transaction identifier.
fn xor_address(address: SocketAddr, mask: &[u8]) -> Vec<u8> {
    let port = address.port() ^ u16::from_be_bytes([COOKIE[0], COOKIE[1]]);
    let (family, ip) = match address.ip() {
        IpAddr::V4(ip) => (1, ip.octets().to_vec()),
        IpAddr::V6(ip) => (2, ip.octets().to_vec()),
    };
    let mut out = vec![0, family];
    out.extend_from_slice(&port.to_be_bytes());
    out.extend(ip.iter().zip(mask).map(|(byte, mask)| byte ^ mask));
    out
}

/// CRC-32 (ISO/IEC/IEEE 8802-3) of the message, as in FINGERPRINT.
fn fingerprint(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc ^ FINGERPRINT_XOR
}
