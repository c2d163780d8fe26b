//! Destinations that an exit may connect to.
//!
//! A near end that uses an exit gets the exit's place in the network. By default an exit therefore connects only to
//! the open Internet: not to services that trust its machine (loopback, its own addresses), and not to its neighbours
//! (private and link-local networks).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use ropewalk_runtime::interfaces;

use super::rule::Rule;
use crate::destinations::{self, destinations};
use crate::proxy::reason::{Reason, ReasonKind};

/// Destinations that an exit may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Permitted destinations; if empty, the open Internet. A destination that a rule gives by address or by name may
    /// be private.
    pub rules: Vec<Rule>,
    /// Whether loopback, link-local and private addresses are permitted as well.
    pub allow_private: bool,
}

impl Policy {
    /// Checks a connection to `address`, an address of the requested `name`. If a form of address is ambiguous, every
    /// place where a packet may arrive must be permitted.
    ///
    /// # Errors
    /// `ReasonKind::NotAllowed`, with the reason.
    pub fn check(&self, name: Option<&str>, address: SocketAddr) -> Result<(), Reason> {
        let refuse =
            |why: &str| Err(Reason::new(ReasonKind::NotAllowed, format!("{address} {why}")));
        for ip in destinations(address.ip()) {
            if let Err(why) = self.check_one(name, SocketAddr::new(ip, address.port())) {
                return refuse(&why);
            }
        }
        // The address in its original form may be one of the exit's own, regardless of the address
        // that it embeds.
        if !self.allow_private && !self.names(name, address) && is_own(address.ip()) {
            return refuse(&private_help(OWN));
        }
        Ok(())
    }

    /// # Errors
    /// What is wrong with the address.
    fn check_one(&self, name: Option<&str>, at: SocketAddr) -> Result<(), String> {
        if is_unusable(at.ip()) {
            return Err("is not the address of a single host".to_owned());
        }
        if self.names(name, at) {
            return Ok(());
        }
        let anywhere = |rule: &Rule| rule.is_anywhere(at.port());
        if !self.rules.is_empty() && !self.rules.iter().any(anywhere) {
            return Err(
                "is not among the destinations that the exit was given with --allow-to".into()
            );
        }
        match special(at.ip()) {
            Some(what) if !self.allow_private => Err(private_help(what)),
            _ => Ok(()),
        }
    }

    fn names(&self, name: Option<&str>, at: SocketAddr) -> bool {
        self.rules.iter().any(|rule| rule.names(name, at))
    }
}

/// Checks a connection of a key with these rules to `address`. Unlike the exit's own rules, they only restrict:
/// destinations that the exit does not permit stay refused.
///
/// # Errors
/// `ReasonKind::NotAllowed`.
pub fn check_targets(
    targets: &[Rule],
    name: Option<&str>,
    address: SocketAddr,
) -> Result<(), Reason> {
    let permitted = |at: SocketAddr| {
        targets.iter().any(|rule| rule.names(name, at) || rule.is_anywhere(at.port()))
    };
    let all = || {
        let mut places = destinations(address.ip()).into_iter();
        places.all(|ip| permitted(SocketAddr::new(ip, address.port())))
    };
    if targets.is_empty() || all() {
        return Ok(());
    }
    let why = format!("{address} is not among the destinations of this key");
    Err(Reason::new(ReasonKind::NotAllowed, why))
}

fn private_help(what: &str) -> String {
    format!("is {what} at the exit, which connects there only with --allow-private or --allow-to")
}

/// The description of an address of the exit's machine.
const OWN: &str = "the exit's own address";

/// Addresses that cannot be connected to: unspecified, broadcast, multicast or reserved.
fn is_unusable(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[0] == 0 || ip.octets()[0] >= 224,
        IpAddr::V6(ip) => ip.is_unspecified() || ip.is_multicast(),
    }
}

/// The kind of an address to which the exit connects only by permission.
fn special(ip: IpAddr) -> Option<&'static str> {
    destinations::special(ip).or_else(|| is_own(ip).then_some(OWN))
}

/// Whether the address belongs to this machine. A service that listens on all addresses is often protected from the
/// outside by a filter, but not from the machine itself.
///
/// The interfaces do not list every local address: a route of type `local` makes an entire network local (AnyIP).
/// For such a destination the system uses the destination itself as the source address, which a connected UDP
/// socket shows without sending anything.
fn is_own(ip: IpAddr) -> bool {
    let listed = interfaces::list().is_ok_and(|all| all.iter().any(|it| it.ip == ip));
    listed || source_towards(ip) == Some(ip)
}

/// The source address that the system chooses for `ip`. `None` if there is no route.
fn source_towards(ip: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Any port: no datagram is sent.
    socket.connect((ip, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: &Policy, name: Option<&str>, address: &str) -> bool {
        policy.check(name, address.parse().unwrap()).is_ok()
    }

    #[test]
    fn without_rules_an_exit_connects_to_the_open_internet_only() {
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
            // IPv4 addresses in IPv6 addresses.
            ("[::ffff:127.0.0.1]:80", false, true),
            ("[::ffff:93.184.216.34]:80", true, true),
            ("[64:ff9b::7f00:1]:80", false, true),
            ("[64:ff9b:1::a00:1]:80", false, true),
            ("[2002:7f00:1::]:80", false, true),
            ("[2001:0:1:2:3:4:80ff:fffe]:80", false, true),
            ("[::10.0.0.1]:80", false, true),
            ("[::ffff:0:127.0.0.1]:80", false, true),
            ("[::ffff:0:93.184.216.34]:80", true, true),
            ("[64:ff9b::93.184.216.34]:80", true, true),
            ("[64:ff9b:1::93.184.216.34]:80", true, true),
            // RFC 6052 embeddings of all lengths within 64:ff9b:1::/48: 10.0.0.1 and 127.0.0.1.
            ("[64:ff9b:1:a00:0:100::]:80", false, true),
            ("[64:ff9b:1:7f00:0:100::]:80", false, true),
            ("[64:ff9b:1:a:0:1::]:80", false, true),
            ("[64:ff9b:1:0:a:0:100:0]:80", false, true),
            ("[64:ff9b:1:7f00:0:100:5db8:d822]:80", false, true),
            ("[2001:db8::5efe:10.0.0.1]:80", false, true),
            ("[2002:a00:1::1]:80", false, true),
            // The server of a Teredo address.
            ("[2001:0:a00:1:0:0:a247:27dd]:80", false, true),
            ("[2001:0:4136:e378:0:0:a247:27dd]:80", true, true),
            // Unspecified, broadcast, multicast, reserved.
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
    fn with_rules_it_connects_there_only_and_what_is_named_may_be_private() {
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
            // A rule for any destination only covers the open Internet.
            (Some("other.example"), "192.168.0.1:8443", false),
        ] {
            assert_eq!(check(&policy, name, address), allowed, "{name:?} {address}");
        }
    }

    #[test]
    fn a_refusal_says_what_would_help() {
        let policy = Policy::default();
        let why = policy.check(None, "127.0.0.1:80".parse().unwrap()).unwrap_err();
        assert_eq!(why.kind, ReasonKind::NotAllowed);
        let text = why.to_string();
        assert!(text.contains("loopback") && text.contains("--allow-private"), "{text}");
    }
}
