//! A rule for permitted destinations: a network, a host, a port.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::destinations::innermost;
use crate::proxy::target::Host;

/// A permitted destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    place: Place,
    ports: RangeInclusive<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Addresses that share this number of leading bits.
    Network(IpAddr, u32),
    /// This name.
    Name(String),
    /// Names with this ending, which includes the leading dot.
    Below(String),
    /// Any destination in the open Internet.
    Anywhere,
}

/// The text is not a valid rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a destination; give 10.0.0.0/8, 192.0.2.7:22, [2001:db8::]/32:443, wiki.example, \
     *.example.org:443, or *:8000-8999"
)]
pub struct RuleError(String);

impl Rule {
    /// Whether the rule gives this destination by address or name.
    pub fn names(&self, name: Option<&str>, address: SocketAddr) -> bool {
        let place = match &self.place {
            Place::Network(network, bits) => contains(*network, *bits, address.ip()),
            Place::Name(own) => name == Some(own),
            Place::Below(end) => name.is_some_and(|name| name.ends_with(end.as_str())),
            Place::Anywhere => false,
        };
        place && self.ports.contains(&address.port())
    }

    /// Whether the rule permits any destination in the open Internet at this port.
    pub fn is_anywhere(&self, port: u16) -> bool {
        self.place == Place::Anywhere && self.ports.contains(&port)
    }
}

fn contains(network: IpAddr, bits: u32, ip: IpAddr) -> bool {
    match (network, ip) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() >= bits,
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros() >= bits,
        _ => false,
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let error = || RuleError(text.chars().take(80).collect());
        // IPv6 without brackets contains colons, so it has no port.
        let bare = text.split('/').next().is_some_and(|ip| ip.parse::<Ipv6Addr>().is_ok());
        let (place, ports) = match text.rsplit_once(':') {
            Some((place, ports)) if !bare && !ports.contains(']') => {
                (place, parse_ports(ports).ok_or_else(error)?)
            }
            _ => (text, 1..=u16::MAX),
        };
        let place = parse_place(place).ok_or_else(error)?;
        Ok(Self { place, ports })
    }
}

fn parse_ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (u16, u16) = (parse_digits(first)?, parse_digits(last)?);
    (first > 0 && first <= last).then_some(first..=last)
}

/// Parses a number without a sign: `str::parse` accepts a leading `+`.
fn parse_digits<T: FromStr>(text: &str) -> Option<T> {
    if text.bytes().all(|c| c.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn parse_place(text: &str) -> Option<Place> {
    if text == "*" {
        return Some(Place::Anywhere);
    }
    if let Some(below) = text.strip_prefix("*.") {
        let Ok(Host::Name(name)) = Host::parse(below) else { return None };
        return Some(Place::Below(format!(".{name}")));
    }
    let (host, bits) = match text.split_once('/') {
        Some((host, bits)) => (host, Some(parse_digits(bits)?)),
        None => (text, None),
    };
    let unwrapped = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    match (Host::parse(unwrapped).ok()?, bits) {
        (Host::Name(name), None) => Some(Place::Name(name)),
        (Host::Name(_), Some(_)) => None,
        (Host::Ip(ip), bits) => {
            // A single address stands for the embedded address; a network is taken literally.
            let ip = if bits.is_none() { innermost(ip) } else { ip };
            let most = if ip.is_ipv4() { 32 } else { 128 };
            let bits = bits.unwrap_or(most);
            (bits <= most).then_some(Place::Network(ip, bits))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_people_write_them() {
        for (text, address, named) in [
            ("10.0.0.0/8", "10.200.0.1:1", true),
            ("10.0.0.0/8", "11.0.0.1:1", false),
            ("10.0.0.0/8", "[2001:db8::1]:1", false),
            ("0.0.0.0/0", "9.9.9.9:1", true),
            ("192.0.2.7", "192.0.2.7:80", true),
            ("192.0.2.7", "192.0.2.8:80", false),
            ("192.0.2.7:22", "192.0.2.7:22", true),
            ("192.0.2.7:22", "192.0.2.7:23", false),
            ("192.0.2.0/24:20-22", "192.0.2.7:22", true),
            ("192.0.2.0/24:20-22", "192.0.2.7:23", false),
            ("2001:db8::/32", "[2001:db8:9::1]:443", true),
            ("2001:db8::1", "[2001:db8::1]:443", true),
            ("[2001:db8::]/32:443", "[2001:db8::5]:443", true),
            ("[2001:db8::]/32:443", "[2001:db8::5]:80", false),
            ("[2001:db8::1]", "[2001:db8::1]:80", true),
            ("::ffff:192.0.2.7", "192.0.2.7:80", true),
        ] {
            let rule: Rule = text.parse().unwrap();
            assert_eq!(rule.names(None, address.parse().unwrap()), named, "{text} {address}");
        }
    }

    #[test]
    fn what_is_no_rule_is_shown_with_examples() {
        for text in [
            "",
            "10.0.0.0/33",
            "2001:db8::/129",
            "a/8",
            "a:0",
            "a:9-8",
            "a:x",
            "a:+80",
            "a:1-+80",
            "10.0.0.0/+8",
            "*.",
            "a b",
            "[::1",
            "*x",
        ] {
            let error = text.parse::<Rule>().unwrap_err().to_string();
            assert!(
                error.contains(&format!("`{text}`")) && error.contains("10.0.0.0/8"),
                "{error}"
            );
        }
    }
}
