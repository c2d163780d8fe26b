//! The destination of a connection: a host and a port.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{BufMut, Bytes, BytesMut};

/// Maximum length of a name (RFC 1035, 2.3.4, as text), bytes.
const LONGEST_NAME: usize = 253;

/// Kinds of hosts on the wire; the numbers are those of SOCKS (RFC 1928, 5).
mod kind {
    pub const IPV4: u8 = 1;
    pub const NAME: u8 = 3;
    pub const IPV6: u8 = 4;
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// By address.
    Ip(IpAddr),
    /// By name, in lower case.
    Name(String),
}

/// The destination of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port, never 0.
    pub port: u16,
}

/// Why a text or message is not a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a valid name or address; the text.
    #[error("`{0}` is neither a host name nor an address")]
    Host(String),
    /// Not a port from 1 to 65535; the text.
    #[error("`{0}` is not a port; ports are 1 to 65535")]
    Port(String),
    /// Not in the form HOST:PORT.
    #[error("`{0}` is not HOST:PORT; for example example.org:80, 192.0.2.1:80 or [2001:db8::1]:80")]
    Shape(String),
    /// Invalid bytes from a peer.
    #[error("a target that means nothing")]
    Malformed,
}

impl Host {
    /// Parses a name or an address (IPv6 without brackets).
    ///
    /// # Errors
    /// [`TargetError::Host`].
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Self::Ip(ip));
        }
        // A final dot marks a complete name, which all names here are.
        let name = text.strip_suffix('.').unwrap_or(text);
        let fits = (1..=LONGEST_NAME).contains(&name.len());
        let label = |label: &str| (1..=63).contains(&label.len());
        let letter = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
        if fits && name.split('.').all(label) && name.bytes().all(letter) {
            return Ok(Self::Name(name.to_ascii_lowercase()));
        }
        Err(TargetError::Host(text.chars().take(80).collect()))
    }
}

impl Target {
    /// Creates a target.
    ///
    /// # Errors
    /// [`TargetError::Port`] if it is 0.
    pub fn new(host: Host, port: u16) -> Result<Self, TargetError> {
        if port == 0 {
            return Err(TargetError::Port("0".into()));
        }
        Ok(Self { host, port })
    }

    /// Parses `host:port`, with IPv6 addresses in brackets. If there is no port, `default` is used.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn parse(text: &str, default: Option<u16>) -> Result<Self, TargetError> {
        let shape = || TargetError::Shape(text.chars().take(80).collect());
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(shape)?;
                let ip: Ipv6Addr = host.parse().map_err(|_| TargetError::Host(host.into()))?;
                let port = if rest.is_empty() { None } else { rest.strip_prefix(':') };
                if port.is_none() && !rest.is_empty() {
                    return Err(shape());
                }
                (Host::Ip(ip.into()), port)
            }
            None => match text.split_once(':') {
                Some((_, port)) if port.contains(':') => return Err(shape()),
                Some((host, port)) => (Host::parse(host)?, Some(port)),
                None => (Host::parse(text)?, None),
            },
        };
        let port = match port {
            Some(port) => parse_port(port)?,
            None => default.ok_or_else(shape)?,
        };
        Self::new(host, port)
    }

    /// Encodes the target for the exit.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(3 + LONGEST_NAME);
        out.put_u16(self.port);
        match &self.host {
            Host::Ip(IpAddr::V4(ip)) => {
                out.put_u8(kind::IPV4);
                out.put_slice(&ip.octets());
            }
            Host::Ip(IpAddr::V6(ip)) => {
                out.put_u8(kind::IPV6);
                out.put_slice(&ip.octets());
            }
            Host::Name(name) => {
                out.put_u8(kind::NAME);
                out.put_slice(name.as_bytes());
            }
        }
        out.freeze()
    }

    /// Decodes the output of [`Target::encode`].
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, TargetError> {
        let [high, low, kind, host @ ..] = bytes else { return Err(TargetError::Malformed) };
        Self::new(host_of(*kind, host)?, u16::from_be_bytes([*high, *low]))
    }
}

/// Decodes a host by its address type in SOCKS.
///
/// # Errors
/// [`TargetError`].
pub fn host_of(kind: u8, bytes: &[u8]) -> Result<Host, TargetError> {
    let malformed = |_| TargetError::Malformed;
    match kind {
        kind::IPV4 => {
            let octets: [u8; 4] = bytes.try_into().map_err(malformed)?;
            Ok(Host::Ip(Ipv4Addr::from(octets).into()))
        }
        kind::IPV6 => {
            let octets: [u8; 16] = bytes.try_into().map_err(malformed)?;
            Ok(Host::Ip(Ipv6Addr::from(octets).into()))
        }
        kind::NAME => Host::parse(&String::from_utf8_lossy(bytes)),
        _ => Err(TargetError::Malformed),
    }
}

/// # Errors
/// [`TargetError::Port`].
fn parse_port(text: &str) -> Result<u16, TargetError> {
    let digits = !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let port = if digits { text.parse().ok() } else { None };
    port.ok_or_else(|| TargetError::Port(text.chars().take(20).collect()))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_people_write_them() {
        for (text, default, expected) in [
            ("example.org:80", None, "example.org:80"),
            ("EXAMPLE.org.:80", None, "example.org:80"),
            ("my_host", Some(80), "my_host:80"),
            ("192.0.2.1:443", None, "192.0.2.1:443"),
            ("[2001:db8::1]:443", None, "[2001:db8::1]:443"),
            ("[2001:db8::1]", Some(80), "[2001:db8::1]:80"),
        ] {
            let target = Target::parse(text, default).unwrap();
            assert_eq!(target.to_string(), expected);
            assert_eq!(Target::decode(&target.encode()), Ok(target));
        }
    }

    #[test]
    fn what_is_no_target_says_why() {
        let long = format!("{}:80", "a".repeat(64));
        for (text, words) in [
            ("example.org", "HOST:PORT"),
            ("example.org:0", "is not a port"),
            ("example.org:65536", "is not a port"),
            ("example.org:+80", "is not a port"),
            ("example.org:", "is not a port"),
            (":80", "neither"),
            ("a..b:80", "neither"),
            ("a b:80", "neither"),
            ("bücher.example:80", "neither"),
            ("2001:db8::1:80", "HOST:PORT"),
            ("[::1]80", "HOST:PORT"),
            ("[::1:80", "HOST:PORT"),
            ("[x]:80", "neither"),
            (&long, "neither"),
        ] {
            let error = Target::parse(text, None).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn bytes_that_mean_nothing_are_refused() {
        for bytes in [
            &b""[..],
            b"\0\x50",
            b"\0\0\x01\x01\x02\x03\x04",
            b"\0\x50\x01\x01\x02\x03",
            b"\0\x50\x04\x01\x02\x03\x04",
            b"\0\x50\x02\x01\x02\x03\x04",
            b"\0\x50\x03",
            b"\0\x50\x03a\0b",
            b"\0\x50\x03\xff\xfe",
        ] {
            assert!(Target::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
