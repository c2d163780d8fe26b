//! Where an exit leads.
//!
//! Whoever may use the exit stands, as it were, in its place in the network. So unless its operator
//! says otherwise it leads to the open Internet only: not to services that trust the machine
//! (loopback, its own addresses), not to its neighbours (private and link-local networks).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::rule::Rule;
use crate::proxy::reason::{Kind, Reason};

/// Where an exit leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Only there, if there are any. Who names an address or a name means it: it may be private.
    pub rules: Vec<Rule>,
    /// To loopback, link-local and private addresses too.
    pub allow_private: bool,
}

impl Policy {
    /// Whether a connection may go to `address`, for which `name` was asked.
    ///
    /// # Errors
    /// `Kind::NotAllowed`, with the reason.
    pub fn check(&self, name: Option<&str>, address: SocketAddr) -> Result<(), Reason> {
        let refuse = |why: &str| Err(Reason::new(Kind::NotAllowed, format!("{address} {why}")));
        let ip = innermost(address.ip());
        if is_nobody(ip) {
            return refuse("is no address of one host");
        }
        let at = SocketAddr::new(ip, address.port());
        if self.rules.iter().any(|rule| rule.names(name, at)) {
            return Ok(());
        }
        let anywhere = |rule: &Rule| rule.is_anywhere(at.port());
        if !self.rules.is_empty() && !self.rules.iter().any(anywhere) {
            return refuse("is not among the destinations that the exit was given with --allow-to");
        }
        match special(ip) {
            Some(what) if !self.allow_private => refuse(&format!(
                "is {what} at the exit, which leads there only with --allow-private or --allow-to"
            )),
            _ => Ok(()),
        }
    }
}

/// The address that a packet really goes to: IPv4 addresses travel within IPv6 ones in several ways.
pub fn innermost(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = ip else { return ip };
    if let Some(v4) = v6.to_ipv4_mapped() {
        return v4.into();
    }
    let s = v6.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    let inside = match s {
        // NAT64 (RFC 6052, 2.1; RFC 8215).
        [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x64, 0xff9b, 1, _, _, _, a, b] => v4(a, b),
        // 6to4 (RFC 3056, 2).
        [0x2002, a, b, ..] => v4(a, b),
        // Teredo (RFC 4380, 4): the client's address, inverted.
        [0x2001, 0, .., a, b] => v4(!a, !b),
        // IPv4-compatible (RFC 4291, 2.5.5.1), but for `::` and `::1`.
        [0, 0, 0, 0, 0, 0, a, b] if a != 0 || b > 1 => v4(a, b),
        _ => return ip,
    };
    inside.into()
}

/// Addresses that nobody may connect to: none, all, many, or reserved.
fn is_nobody(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[0] == 0 || ip.octets()[0] >= 224,
        IpAddr::V6(ip) => ip.is_unspecified() || ip.is_multicast(),
    }
}

/// What is special about an address (IANA's registries of special-purpose addresses, RFC 6890).
fn special(ip: IpAddr) -> Option<&'static str> {
    let known = match ip {
        IpAddr::V4(ip) => special_v4(ip),
        IpAddr::V6(ip) => special_v6(ip),
    };
    known.or_else(|| is_own(ip).then_some("the exit's own address"))
}

fn special_v4(ip: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = ip.octets();
    Some(match (a, b, c) {
        (127, ..) => "loopback",
        (169, 254, _) => "link-local",
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => "private",
        // Carriers' NAT (RFC 6598), networks for benchmarks (RFC 2544) and protocols (RFC 6890).
        (100, 64..=127, _) | (198, 18..=19, _) | (192, 0, 0) => "private",
        _ => return None,
    })
}

fn special_v6(ip: Ipv6Addr) -> Option<&'static str> {
    let first = ip.segments()[0];
    Some(match first {
        0 if ip.is_loopback() => "loopback",
        0xfe80..=0xfebf => "link-local",
        // Unique local (RFC 4193), and the site-local ones that they replaced (RFC 3879).
        0xfc00..=0xfdff | 0xfec0..=0xfeff => "private",
        _ => return None,
    })
}

/// Whether this machine has the address: only then can a socket be bound to it. What listens there on
/// all addresses is often kept from the outside by a filter, and from the machine itself by none.
fn is_own(ip: IpAddr) -> bool {
    std::net::UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: &Policy, name: Option<&str>, address: &str) -> bool {
        policy.check(name, address.parse().unwrap()).is_ok()
    }

    #[test]
    fn without_rules_an_exit_leads_to_the_open_internet_only() {
        for (address, open, private) in [
            ("93.184.216.34:443", true, true),
            ("[2606:4700::1111]:443", true, true),
            ("127.0.0.1:80", false, true),
            ("127.255.0.9:80", false, true),
            ("10.1.2.3:80", false, true),
            ("172.16.0.1:80", false, true),
            ("172.32.0.1:80", true, true),
            ("192.168.7.7:80", false, true),
            ("169.254.169.254:80", false, true),
            ("100.64.0.1:80", false, true),
            ("[::1]:80", false, true),
            ("[fe80::1]:80", false, true),
            ("[fd00::1]:80", false, true),
            // IPv4 in IPv6.
            ("[::ffff:127.0.0.1]:80", false, true),
            ("[::ffff:93.184.216.34]:80", true, true),
            ("[64:ff9b::7f00:1]:80", false, true),
            ("[64:ff9b:1::a00:1]:80", false, true),
            ("[2002:7f00:1::]:80", false, true),
            ("[2001:0:1:2:3:4:80ff:fffe]:80", false, true),
            ("[::10.0.0.1]:80", false, true),
            // Nobody, everybody, many.
            ("0.0.0.0:80", false, false),
            ("0.1.2.3:80", false, false),
            ("255.255.255.255:80", false, false),
            ("224.0.0.1:80", false, false),
            ("240.0.0.1:80", false, false),
            ("[::]:80", false, false),
            ("[ff02::1]:80", false, false),
            ("[::ffff:0.0.0.0]:80", false, false),
        ] {
            let policy = Policy::default();
            assert_eq!(check(&policy, None, address), open, "{address}");
            let policy = Policy { allow_private: true, ..policy };
            assert_eq!(check(&policy, None, address), private, "{address} with --allow-private");
        }
    }

    #[test]
    fn with_rules_it_leads_there_only_and_what_is_named_may_be_private() {
        let rules = ["10.0.0.0/8:22", "wiki.example", "*.corp.example:443", "*:8443"];
        let rules = rules.map(|text| text.parse().unwrap()).to_vec();
        let policy = Policy { rules, allow_private: false };
        for (name, address, allowed) in [
            (None, "10.9.9.9:22", true),
            (None, "[::ffff:10.9.9.9]:22", true),
            (None, "10.9.9.9:23", false),
            (None, "11.9.9.9:22", false),
            (Some("wiki.example"), "192.168.0.1:80", true),
            (Some("wiki.example"), "0.0.0.0:80", false),
            (Some("wiki.example.org"), "192.168.0.1:80", false),
            (Some("a.corp.example"), "192.168.0.1:443", true),
            (Some("a.b.corp.example"), "192.168.0.1:443", true),
            (Some("corp.example"), "192.168.0.1:443", false),
            (Some("acorp.example"), "192.168.0.1:443", false),
            (Some("other.example"), "93.184.216.34:8443", true),
            // Anywhere is anywhere in the open Internet.
            (Some("other.example"), "192.168.0.1:8443", false),
        ] {
            assert_eq!(check(&policy, name, address), allowed, "{name:?} {address}");
        }
    }

    #[test]
    fn a_refusal_says_what_would_help() {
        let policy = Policy::default();
        let why = policy.check(None, "127.0.0.1:80".parse().unwrap()).unwrap_err();
        assert_eq!(why.kind, Kind::NotAllowed);
        assert!(why.detail.contains("loopback") && why.detail.contains("--allow-private"), "{why}");
    }
}
