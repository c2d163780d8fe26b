//! The introductions that the two ends of a pairing exchange, sealed.
//!
//! ```text
//! version (1) | port (2) | addresses (1), each: 4 or 6 (1), address (4 or 16), port (2)
//! | length (1), name | length (1), release
//! ```
//!
//! Numbers are big-endian. Port 0 means that servers listen on the same ports as the pairing. Later versions may append
//! more.

use std::net::{IpAddr, SocketAddr};

use bytes::{Buf, BufMut};
use ropewalk_runtime::seal::INTRODUCTION_MAX;

const VERSION: u8 = 1;
/// Maximum number of addresses in an introduction.
const ADDRESSES_LIMIT: usize = 8;
/// Maximum length of a name, bytes: its length field is one byte.
const NAME_MAX: usize = 255;
/// Maximum length of a release, bytes.
const RELEASE_MAX: usize = 32;

const _: () =
    assert!(4 + ADDRESSES_LIMIT * 19 + 1 + NAME_MAX + 1 + RELEASE_MAX <= INTRODUCTION_MAX);

/// Introduction of one end of a pairing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Introduction {
    /// The name by which it wants to be known. Chosen by the peer: show it as [`ropewalk_base::PeerText`].
    pub name: String,
    /// Its version of Ropewalk. Chosen by the peer as well.
    pub release: String,
    /// The port on which its servers listen. `None` means the port of the pairing.
    pub port: Option<u16>,
    /// Addresses at which it may be reached.
    pub addresses: Vec<SocketAddr>,
}

impl Introduction {
    /// Encodes the introduction. Leaves out the addresses after the eighth, and the end of a text that is too long.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.put_u16(self.port.unwrap_or(0));
        let addresses = &self.addresses[..self.addresses.len().min(ADDRESSES_LIMIT)];
        out.put_u8(addresses.len() as u8);
        for address in addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    out.put_u8(4);
                    out.put_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    out.put_u8(6);
                    out.put_slice(&ip.octets());
                }
            }
            out.put_u16(address.port());
        }
        put_text(&mut out, &self.name, NAME_MAX);
        put_text(&mut out, &self.release, RELEASE_MAX);
        out
    }

    /// Decodes an introduction. `None` if it makes no sense.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        if bytes.try_get_u8().ok()? != VERSION {
            return None;
        }
        let port = bytes.try_get_u16().ok()?;
        let count = bytes.try_get_u8().ok()?;
        if usize::from(count) > ADDRESSES_LIMIT {
            return None;
        }
        let addresses = (0..count).map(|_| get_address(&mut bytes)).collect::<Option<_>>()?;
        let name = get_text(&mut bytes, NAME_MAX)?;
        let release = get_text(&mut bytes, RELEASE_MAX)?;
        Some(Self { name, release, port: (port != 0).then_some(port), addresses })
    }
}

fn put_text(out: &mut Vec<u8>, text: &str, limit: usize) {
    let end = (0..=text.len().min(limit)).rev().find(|end| text.is_char_boundary(*end));
    let text = &text[..end.unwrap_or(0)];
    out.put_u8(text.len() as u8);
    out.put_slice(text.as_bytes());
}

fn get_text(bytes: &mut &[u8], limit: usize) -> Option<String> {
    let length = usize::from(bytes.try_get_u8().ok()?);
    let (text, rest) = bytes.split_at_checked(length).filter(|_| length <= limit)?;
    *bytes = rest;
    String::from_utf8(text.to_vec()).ok()
}

fn get_address(bytes: &mut &[u8]) -> Option<SocketAddr> {
    let ip: IpAddr = match bytes.try_get_u8().ok()? {
        4 => {
            let mut octets = [0; 4];
            bytes.try_copy_to_slice(&mut octets).ok()?;
            octets.into()
        }
        6 => {
            let mut octets = [0; 16];
            bytes.try_copy_to_slice(&mut octets).ok()?;
            octets.into()
        }
        _ => return None,
    };
    let port = bytes.try_get_u16().ok()?;
    // A datagram to such an address would not reach a single host, or no port.
    let sensible = !ip.is_unspecified() && !ip.is_multicast() && port != 0;
    sensible.then(|| SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn introduction() -> Introduction {
        Introduction {
            name: "anna".to_owned(),
            release: "0.1.0".to_owned(),
            port: Some(9899),
            addresses: ["192.0.2.7:1", "[2001:db8::1]:9899"]
                .map(|text| text.parse().expect("an address"))
                .to_vec(),
        }
    }

    #[test]
    fn an_introduction_comes_back_and_too_much_is_left_out() {
        for one in [introduction(), Introduction::default()] {
            assert_eq!(Introduction::decode(&one.encode()), Some(one));
        }
        let mut long = introduction();
        long.addresses = vec![long.addresses[1]; 300];
        long.name = "é".repeat(300);
        long.release = "9".repeat(300);
        let bytes = long.encode();
        assert!(bytes.len() <= INTRODUCTION_MAX);
        let read = Introduction::decode(&bytes).expect("an introduction");
        assert_eq!(read.addresses.len(), ADDRESSES_LIMIT);
        assert_eq!(read.name, "é".repeat(127));
        assert_eq!(read.release.len(), RELEASE_MAX);
    }

    #[test]
    fn nonsense_is_refused() {
        let good = introduction().encode();
        for length in 0..good.len() {
            assert_eq!(Introduction::decode(&good[..length]), None, "{length} bytes");
        }
        // Offset, value: another version, too many addresses, no family, multicast, port 0, no UTF-8.
        let name = good.len() - 10;
        for (at, value) in [(0, 2), (3, 9), (4, 5), (5, 224), (10, 0), (name, 0xff)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert_eq!(Introduction::decode(&bad), None, "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_stop_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            if let Some(introduction) = Introduction::decode(&bytes) {
                let again = introduction.encode();
                prop_assert!(again.len() <= INTRODUCTION_MAX);
                prop_assert_eq!(Introduction::decode(&again), Some(introduction));
            }
        }
    }
}
