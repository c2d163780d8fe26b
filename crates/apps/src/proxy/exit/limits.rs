//! Resources of an exit that its near ends share fairly.

use ropewalk_runtime::seal::PublicKey;

use super::client::Client;
use crate::proxy::quota::{FairQuota, Permit};

/// Limits of an exit for all near ends together. Half of each is reserved in equal parts for the keys that may use
/// the exit. Of the other half, one key may use half of the free part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitLimits {
    /// Connections (4096). Each needs an open file, two copy buffers of 16 KiB, and at most 80 KiB in the queues of
    /// its stream.
    pub connections: u64,
    /// Connections that are being opened, including name resolution (512). Each may use several sockets.
    pub dials: u64,
    /// Names that are being resolved (256).
    pub lookups: u64,
    /// Bytes that near ends have sent and destinations have not accepted, beyond 16 KiB for each connection (256
    /// MiB).
    pub buffered_bytes: u64,
}

impl Default for ExitLimits {
    fn default() -> Self {
        Self { connections: 4096, dials: 512, lookups: 256, buffered_bytes: 256 << 20 }
    }
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Open connections.
    Connections,
    /// Connections that are being opened.
    Dials,
    /// Bytes in buffers.
    BufferedBytes,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connections => "connections at a time",
            Self::Dials => "connections being opened",
            Self::BufferedBytes => "bytes in buffers",
        })
    }
}

/// The owner of a part of the resources. Near ends without a key share one part.
pub type QuotaUser = Option<PublicKey>;

/// The shared resources.
#[derive(Clone, Debug)]
pub struct Quotas {
    pub connections: FairQuota<QuotaUser>,
    pub dials: FairQuota<QuotaUser>,
    pub lookups: FairQuota<QuotaUser>,
    pub buffered_bytes: FairQuota<QuotaUser>,
}

/// The permit of an open connection.
pub type ConnectionPermit = Permit<QuotaUser>;

impl Quotas {
    pub fn new(limits: ExitLimits) -> Self {
        let quota = |total: u64| FairQuota::new(total.max(1), 1);
        Self {
            connections: quota(limits.connections),
            dials: quota(limits.dials),
            lookups: quota(limits.lookups),
            buffered_bytes: quota(limits.buffered_bytes),
        }
    }

    /// Changes the limits. Resources held beyond a lower limit stay.
    pub fn set_limits(&self, limits: ExitLimits) {
        for (quota, total) in [
            (&self.connections, limits.connections),
            (&self.dials, limits.dials),
            (&self.lookups, limits.lookups),
            (&self.buffered_bytes, limits.buffered_bytes),
        ] {
            quota.set_total(total.max(1));
        }
    }

    /// Reserves a part of each resource for each of this number of keys.
    pub fn expect_keys(&self, keys: u64) {
        for quota in [&self.connections, &self.dials, &self.lookups, &self.buffered_bytes] {
            quota.expect_users(keys);
        }
    }

    /// A permit for one connection of this near end.
    pub fn connection(&self, client: &Client, most: Option<usize>) -> Option<ConnectionPermit> {
        let used = self.connections.used_by(&client.key);
        let within = most.is_none_or(|most| used < most as u64);
        within.then(|| self.connections.try_one(&client.key)).flatten()
    }
}
