//! Limits on what peers may make an endpoint hold. Each has a name, a unit, a default and a reason.
//!
//! The defaults suit a machine with 512 MB of memory that has other work as well. Limits apply only to peers:
//! associations that this end opens are never refused. Each time a limit is reached, it is counted
//! ([`LimitCounters`](super::LimitCounters)) and reported to [`Options::on_limit`](super::Options::on_limit).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ropewalk_base::Duration;

/// Bits of an IPv4 prefix: the smallest network that is routed on its own, and about the largest that a provider
/// assigns to one customer without formalities.
const IPV4_PREFIX: u32 = 24;
/// Bits of an IPv6 prefix: the assignment to a site in RFC 6177. It contains 2^72 addresses.
const IPV6_PREFIX: u32 = 56;

/// Limits on what peers may make an endpoint hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of simultaneous associations that peers have opened (10 000: at 20 KiB each when idle, 200 MB).
    /// Raise it together with `memory`.
    pub associations: usize,
    /// Maximum number of associations of one key; sealed endpoints only (256: machines of one person seldom share a
    /// key, and each program opens a few). An allowed peer must not be able to exclude the others.
    pub associations_per_key: usize,
    /// Maximum number of associations of one prefix, IPv4 /24 or IPv6 /56 (1024: a company behind one NAT). A single
    /// network must not be able to exclude all others.
    pub associations_per_prefix: usize,
    /// Maximum number of half-open sessions: answered handshakes whose initiator has not used its session yet (1024,
    /// 2 KiB each). Another one drops the oldest session of the prefix that holds the most.
    pub half_open: usize,
    /// Maximum number of half-open sessions of one key (4: two endpoints may use one key, and each may restart).
    /// Another one drops the key's oldest session.
    pub half_open_per_key: usize,
    /// Maximum number of half-open sessions of one prefix (64). Another one drops the prefix's oldest session.
    pub half_open_per_prefix: usize,
    /// Longest time until an initiator uses its session (10 s: one round trip and several lost datagrams).
    pub half_open_timeout: Duration,
    /// Maximum memory of all associations together, bytes: the contents of their receive buffers, and
    /// [`Limits::BASE_COST`] each (256 MiB). Above the limit no new association is accepted, and the key (without
    /// sealing: the prefix) that holds the most loses its largest association.
    pub memory: u64,
    /// Maximum number of established associations that wait for [`Endpoint::accept`](super::Endpoint::accept)
    /// (256). Further ones are aborted.
    pub accept_queue: usize,
    /// Longest wait for [`Endpoint::accept`](super::Endpoint::accept); then the association is aborted (30 s: a
    /// program that takes longer is stuck).
    pub accept_timeout: Duration,
    /// Longest setup of an association that a peer opens (20 s: SCTP's handshake with three retransmissions).
    pub setup_timeout: Duration,
    /// Age at which an association that a peer opened counts as silent, if it has carried no message in either
    /// direction. A silent association is aborted when a limit would otherwise refuse another one (60 s). While there
    /// is room, it stays.
    pub silent_timeout: Duration,
    /// Longest silence of a peer that opened an association, while the association is idle; then the peer counts as
    /// gone (120 s: two or three HEARTBEATs, one every 30 to 46 s). SCTP's own counters take up to 400 s. While data
    /// is outstanding, only those counters apply. The limit does not apply if the application disables HEARTBEATs or
    /// sends them less often than every 30 s.
    pub vanished_timeout: Duration,
}

impl Limits {
    /// Cost of an idle association with one path, without the contents of its receive buffer, bytes.
    pub const BASE_COST: u64 = 20 << 10;

    /// The limits of one of `shards` shards of an endpoint. Memory and queues are divided. Associations are counted
    /// for all shards together. Limits on half-open sessions per key and per prefix are not divided: these are few,
    /// and may belong to the same shard.
    #[must_use]
    pub(super) fn of_one_of(&self, shards: usize) -> Self {
        let part = |whole: usize| whole.div_ceil(shards);
        Self {
            half_open: part(self.half_open),
            accept_queue: part(self.accept_queue),
            memory: self.memory.div_ceil(shards as u64),
            ..self.clone()
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            associations: 10_000,
            associations_per_key: 256,
            associations_per_prefix: 1024,
            half_open: 1024,
            half_open_per_key: 4,
            half_open_per_prefix: 64,
            half_open_timeout: Duration::from_secs(10),
            memory: 256 << 20,
            accept_queue: 256,
            accept_timeout: Duration::from_secs(30),
            setup_timeout: Duration::from_secs(20),
            silent_timeout: Duration::from_secs(60),
            vanished_timeout: Duration::from_secs(120),
        }
    }
}

/// The network of an address, for the purpose of limits: IPv4 /24, IPv6 /56. Single addresses are too fine: an IPv6
/// site has 2^72 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Prefix(IpAddr);

impl Prefix {
    /// The prefix of an address. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn of(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits() & !(u32::MAX >> IPV4_PREFIX)).into(),
            IpAddr::V6(ip) => {
                Ipv6Addr::from_bits(ip.to_bits() & !(u128::MAX >> IPV6_PREFIX)).into()
            }
        })
    }
}

/// A limit of [`Limits`], or a decision of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// [`Limits::associations`].
    Associations,
    /// [`Limits::associations_per_key`].
    AssociationsPerKey,
    /// [`Limits::associations_per_prefix`].
    AssociationsPerPrefix,
    /// [`Limits::half_open`], [`Limits::half_open_per_key`] or [`Limits::half_open_per_prefix`].
    HalfOpen,
    /// [`Limits::memory`].
    Memory,
    /// [`Limits::accept_queue`].
    AcceptQueue,
    /// [`Limits::accept_timeout`].
    AcceptTimeout,
    /// [`Limits::setup_timeout`].
    SetupTimeout,
    /// [`Limits::silent_timeout`].
    SilentTimeout,
    /// [`Limits::vanished_timeout`].
    VanishedTimeout,
    /// The application's filter refused or ignored the handshake.
    Filter,
}

impl Limit {
    /// All limits.
    pub const ALL: [Self; 11] = [
        Self::Associations,
        Self::AssociationsPerKey,
        Self::AssociationsPerPrefix,
        Self::HalfOpen,
        Self::Memory,
        Self::AcceptQueue,
        Self::AcceptTimeout,
        Self::SetupTimeout,
        Self::SilentTimeout,
        Self::VanishedTimeout,
        Self::Filter,
    ];

    /// The limit's name, as in [`Limits`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Associations => "associations",
            Self::AssociationsPerKey => "associations_per_key",
            Self::AssociationsPerPrefix => "associations_per_prefix",
            Self::HalfOpen => "half_open",
            Self::Memory => "memory",
            Self::AcceptQueue => "accept_queue",
            Self::AcceptTimeout => "accept_timeout",
            Self::SetupTimeout => "setup_timeout",
            Self::SilentTimeout => "silent_timeout",
            Self::VanishedTimeout => "vanished_timeout",
            Self::Filter => "filter",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How often each limit was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCounters([u64; Limit::ALL.len()]);

impl LimitCounters {
    /// How often `limit` was reached.
    pub const fn of(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// How often any limit was reached.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own += other);
    }

    pub(super) const fn add(&mut self, limit: Limit, times: u64) {
        self.0[limit as usize] += times;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_share_a_prefix() {
        let prefix = |text: &str| Prefix::of(text.parse().expect("an address"));
        for (one, other, same) in [
            ("192.0.2.1", "192.0.2.254", true),
            ("192.0.2.1", "192.0.3.1", false),
            ("192.0.2.1", "::ffff:192.0.2.77", true),
            ("2001:db8:0:100::1", "2001:db8:0:1ff:ffff::1", true),
            ("2001:db8:0:100::1", "2001:db8:0:200::1", false),
        ] {
            assert_eq!(prefix(one) == prefix(other), same, "{one}, {other}");
        }
    }

    #[test]
    fn each_limit_has_a_counter_of_its_own() {
        let mut counters = LimitCounters::default();
        for (times, limit) in Limit::ALL.into_iter().enumerate() {
            counters.add(limit, times as u64);
        }
        for (times, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!(counters.of(limit), times as u64, "{limit}");
        }
        assert_eq!(counters.total(), 55);
    }
}
