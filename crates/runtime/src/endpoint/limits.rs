//! What peers may make an endpoint hold: each limit has a name, a unit, a default and a reason.
//!
//! The defaults suit a machine with 512 MB that does something else as well. A limit that is reached costs
//! only peers: what this end opens itself is never refused. Each time is counted
//! ([`LimitCounters`](super::LimitCounters)) and told to [`Options::on_limit`](super::Options::on_limit).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ropewalk_base::Duration;

/// Bits of an IPv4 prefix: the smallest network that is routed on its own, and what one provider gives to
/// one customer at most without much paper.
const IPV4_PREFIX: u32 = 24;
/// Bits of an IPv6 prefix: what RFC 6177 has a site get. Each host in it has 2^72 addresses.
const IPV6_PREFIX: u32 = 56;

/// What peers may make an endpoint hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Associations that peers have opened, at a time (10 000: at 20 KiB each when idle, 200 MB). Raise it
    /// with `memory`.
    pub associations: usize,
    /// The same of one key; sealed endpoints only (256: a person's machines share a key seldom, and each
    /// program opens a few). A peer that is allowed must not keep out the others.
    pub associations_per_key: usize,
    /// The same of one prefix, IPv4 /24 or IPv6 /56 (1024: a company behind one translator). Who has one
    /// network must not keep out all others.
    pub associations_per_prefix: usize,
    /// Handshakes that were answered and whose initiator has not used its session yet (1024, 2 KiB each).
    /// One more drops the oldest of the prefix that holds most.
    pub half_open: usize,
    /// The same of one key (4: two endpoints may use one key, and each may begin again). One more drops its
    /// oldest.
    pub half_open_per_key: usize,
    /// The same of one prefix (64). One more drops its oldest.
    pub half_open_per_prefix: usize,
    /// How long an initiator may take to use its session (10 s: a round trip, and several lost datagrams).
    pub half_open_timeout: Duration,
    /// Bytes that all associations hold together: what their receive buffers contain, and
    /// [`Limits::BASE_COST`] each (256 MiB). While they hold more, no new one is taken, and the key (in the clear:
    /// the prefix) that holds most loses its largest one.
    pub memory: u64,
    /// Associations that are up and wait for [`Endpoint::accept`](super::Endpoint::accept) (256). One more is
    /// aborted.
    pub accept_queue: usize,
    /// How long one waits there before it is aborted (30 s: a program that takes longer is stuck).
    pub accept_timeout: Duration,
    /// How long an association that a peer opens may take to be up (20 s: SCTP's handshake sent again three
    /// times).
    pub setup_timeout: Duration,
    /// Once an association that a peer has opened has lived so long without a single message in either
    /// direction, it is aborted if a limit would refuse another one (60 s). While there is room it stays.
    pub silent_timeout: Duration,
    /// How long nothing at all may come from a peer that has opened an association before it counts as gone,
    /// if the association is idle (120 s: two or three HEARTBEATs, each every 30 to 46 s). SCTP's own
    /// counters take up to 400 s. While data is outstanding, they alone judge. Where the application has no
    /// HEARTBEATs sent, or less often than every 30 s, silence says nothing, and the limit does not hold.
    pub vanished_timeout: Duration,
}

impl Limits {
    /// What an association costs beside the content of its receive buffer, bytes; an idle one of one path.
    pub const BASE_COST: u64 = 20 << 10;
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

/// The network that an address belongs to, as far as limits are concerned: IPv4 /24, IPv6 /56. One address is
/// too little: who has an IPv6 network has 2^72 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Prefix(IpAddr);

impl Prefix {
    /// Of an address. An IPv4 address inside IPv6 counts as itself.
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
    /// The application's filter refused or ignored it.
    Filter,
}

impl Limit {
    /// All of them.
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

    /// Its name, as in [`Limits`].
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
    /// How often this one was.
    pub const fn of(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// How often any was.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
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
