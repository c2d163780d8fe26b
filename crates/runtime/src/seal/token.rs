//! Tokens, by which an initiator proves that it receives datagrams at its address.
//!
//! The responder stores only one key. A token contains the time of issue, and its MAC binds it to address,
//! port and session.

use core::net::{IpAddr, SocketAddr};

use ring::hmac::{HMAC_SHA256, Key};
use ring::rand::SystemRandom;
use ropewalk_base::{Duration, Time};

use super::keys::KeyError;
use super::mac::{half, same};
use super::wire::{TOKEN_LEN, bytes_at};

/// Lifetime of a token: a few round trips of the slowest path.
pub(super) const TOKEN_LIFETIME: Duration = Duration::from_secs(10);

/// Issues and checks tokens.
pub(super) struct Tokens(Key);

impl Tokens {
    pub(super) fn new() -> Result<Self, KeyError> {
        let key = Key::generate(HMAC_SHA256, &SystemRandom::new());
        key.map(Self).map_err(|_| KeyError::NoRandomness)
    }

    /// Creates a token for the initiator's session at an address.
    pub(super) fn issue(&self, now: Time, to: SocketAddr, session: u32) -> [u8; TOKEN_LEN] {
        let mut token = [0; TOKEN_LEN];
        let issued = now.as_nanos().to_be_bytes();
        token[..8].copy_from_slice(&issued);
        token[8..].copy_from_slice(&self.mac(issued, to, session));
        token
    }

    /// Whether a token was issued for this address and session, and has not expired.
    pub(super) fn is_good(
        &self,
        now: Time,
        from: SocketAddr,
        session: u32,
        token: &[u8; TOKEN_LEN],
    ) -> bool {
        let (Some(issued), Some(mac)) = (bytes_at(token, 0), bytes_at(token, 8)) else {
            return false;
        };
        let time = Time::from_nanos(u64::from_be_bytes(issued));
        let young = time <= now && now.since(time) <= TOKEN_LIFETIME;
        young && same(&self.mac(issued, from, session), &mac)
    }

    fn mac(&self, issued: [u8; 8], address: SocketAddr, session: u32) -> super::mac::Mac {
        let ip = octets(address.ip());
        let port = address.port().to_be_bytes();
        half(&self.0, &[b"token", &issued, &ip, &port, &session.to_be_bytes()])
    }

    /// The rate-limiter counter of an address. Third parties cannot predict it.
    pub(super) fn bucket(&self, ip: IpAddr) -> u16 {
        let mut ip = octets(ip);
        if ip[..12] != octets(IpAddr::from([0, 0, 0, 0]))[..12] {
            // One IPv6 subscriber has 2^64 addresses.
            ip[8..].fill(0);
        }
        let mac = half(&self.0, &[b"bucket", &ip]);
        u16::from_be_bytes([mac[0], mac[1]])
    }
}

/// An address as an IPv6 address, so that it does not depend on the socket's address family.
fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_token_counts_for_its_address_port_session_and_time_only() {
        let tokens = Tokens::new().expect("random numbers");
        let issued = Time::from_secs(100);
        let token = tokens.issue(issued, address("192.0.2.1:5000"), 7);
        let end = issued.saturating_add(TOKEN_LIFETIME);
        for (from, session, now, good) in [
            ("192.0.2.1:5000", 7, issued, true),
            ("[::ffff:192.0.2.1]:5000", 7, issued, true),
            ("192.0.2.1:5000", 7, end, true),
            ("192.0.2.1:5000", 7, end.saturating_add(Duration::from_nanos(1)), false),
            ("192.0.2.1:5000", 7, Time::from_secs(99), false),
            ("192.0.2.1:5000", 8, issued, false),
            ("192.0.2.1:5001", 7, issued, false),
            ("192.0.2.2:5000", 7, issued, false),
            ("[2001:db8::1]:5000", 7, issued, false),
        ] {
            let found = tokens.is_good(now, address(from), session, &token);
            assert_eq!(found, good, "{from} {session} {now:?}");
        }
    }

    #[test]
    fn a_changed_token_or_one_of_another_process_does_not_count() {
        let (tokens, others) =
            (Tokens::new().expect("random bytes"), Tokens::new().expect("random bytes"));
        let (now, from) = (Time::from_secs(100), address("[2001:db8::1]:5000"));
        let token = tokens.issue(now, from, 7);
        assert!(tokens.is_good(now, from, 7, &token));
        assert!(!others.is_good(now, from, 7, &token));
        for index in 0..TOKEN_LEN {
            let mut changed = token;
            changed[index] ^= 1;
            assert!(!tokens.is_good(now, from, 7, &changed), "byte {index}");
        }
    }

    #[test]
    fn one_network_of_ipv6_is_one_source() {
        let tokens = Tokens::new().expect("random numbers");
        let bucket = |ip: &str| tokens.bucket(ip.parse().expect("an address"));
        assert_eq!(bucket("2001:db8::1"), bucket("2001:db8::ffff:1:2:3"));
        assert_eq!(bucket("192.0.2.1"), bucket("::ffff:192.0.2.1"));
        let many: std::collections::BTreeSet<u16> =
            (0..100).map(|n| tokens.bucket(IpAddr::from([192, 0, 2, n]))).collect();
        assert!(many.len() > 90, "{}", many.len());
    }
}
