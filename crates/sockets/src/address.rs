//! Socket addresses in the layout of C programs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use crate::errno::{Errno, Result};

/// Length of `struct sockaddr_in`, bytes.
pub const V4_LEN: usize = 16;
/// Length of `struct sockaddr_in6`, bytes.
pub const V6_LEN: usize = 28;
/// Length of `struct sockaddr_storage`, bytes.
pub const STORAGE_LEN: usize = 128;

/// Length of an address of this family, bytes.
const fn length_of(family: u16) -> Option<usize> {
    match family as i32 {
        libc::AF_INET => Some(V4_LEN),
        libc::AF_INET6 => Some(V6_LEN),
        _ => None,
    }
}

/// Parses the address at the beginning of `bytes`. Returns it and its length in bytes.
///
/// # Errors
/// `EINVAL` if it is too short, or neither IPv4 nor IPv6, as in Linux (`sctp_connect`, `sctp_sockaddr_af`).
pub fn parse(bytes: &[u8]) -> Result<(SocketAddr, usize)> {
    let family = bytes.first_chunk().map(|family| u16::from_ne_bytes(*family));
    let family = family.ok_or(Errno(libc::EINVAL))?;
    let length = length_of(family).ok_or(Errno(libc::EINVAL))?;
    let bytes = bytes.get(..length).ok_or(Errno(libc::EINVAL))?;
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    let address = if length == V4_LEN {
        SocketAddr::from((Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7]), port))
    } else {
        let ip: [u8; 16] = std::array::from_fn(|i| bytes[8 + i]);
        let scope = u32::from_ne_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]);
        SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope))
    };
    Ok((address, length))
}

/// Parses consecutive addresses, as passed to `sctp_bindx` and `sctp_connectx`.
///
/// # Errors
/// As [`parse`]; `EINVAL` if there is no address.
pub fn parse_all(mut bytes: &[u8]) -> Result<Vec<SocketAddr>> {
    let mut addresses = Vec::new();
    while !bytes.is_empty() {
        let (address, length) = parse(bytes)?;
        addresses.push(address);
        bytes = &bytes[length..];
    }
    if addresses.is_empty() { Err(Errno(libc::EINVAL)) } else { Ok(addresses) }
}

/// The bytes of an address.
pub fn image(address: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(V6_LEN);
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    bytes.extend((family as u16).to_ne_bytes());
    bytes.extend(address.port().to_be_bytes());
    match address {
        SocketAddr::V4(v4) => {
            bytes.extend(v4.ip().octets());
            bytes.resize(V4_LEN, 0);
        }
        SocketAddr::V6(v6) => {
            bytes.extend([0; 4]);
            bytes.extend(v6.ip().octets());
            bytes.extend(v6.scope_id().to_ne_bytes());
        }
    }
    bytes
}

/// The bytes of an address in a `struct sockaddr_storage`.
pub fn storage(address: SocketAddr) -> Vec<u8> {
    let mut bytes = image(address);
    bytes.resize(STORAGE_LEN, 0);
    bytes
}

/// An address as a socket reports it: an IPv6 socket reports IPv4 addresses as mapped ones if `mapped` is
/// set.
pub fn shown(address: SocketAddr, ipv6: bool, mapped: bool) -> SocketAddr {
    let ip = address.ip().to_canonical();
    let ip = match ip {
        IpAddr::V4(v4) if ipv6 && mapped => v4.to_ipv6_mapped().into(),
        other => other,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_address_survives_its_image(ip: IpAddr, port: u16, more in 0..40_usize) {
            let address = SocketAddr::new(ip, port);
            let mut bytes = image(address);
            let length = bytes.len();
            bytes.resize(length + more, 7);
            prop_assert_eq!(parse(&bytes), Ok((address, length)));
            let both = [image(address), image(address)].concat();
            prop_assert_eq!(parse_all(&both), Ok(vec![address; 2]));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes);
            let _ = parse_all(&bytes);
        }
    }

    #[test]
    fn an_ipv6_socket_shows_ipv4_addresses_as_its_option_says() {
        let v4: SocketAddr = "192.0.2.1:7".parse().expect("an address");
        let mapped: SocketAddr = "[::ffff:192.0.2.1]:7".parse().expect("an address");
        let v6: SocketAddr = "[2001:db8::1]:7".parse().expect("an address");
        assert_eq!(shown(mapped, false, true), v4);
        assert_eq!(shown(v4, true, true), mapped);
        assert_eq!(shown(mapped, true, false), v4);
        assert_eq!(shown(v6, true, true), v6);
    }
}
