//! Permissions of one peer.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::SystemTime;

use ropewalk_runtime::seal::{PresharedKey, PublicKey};

use crate::proxy::exit::ExitPolicy;

/// Characters of a key that logs show if the peer has no name.
const SHORT_KEY: usize = 8;

/// One entry of the access list.
///
/// Not exhaustive: create one with [`PeerPolicy::unrestricted`] and change its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerPolicy {
    /// The peer's name in logs, chosen by the operator: letters, digits and `-_.@+`, at most 64 characters.
    pub name: String,
    /// The public key that the peer proves in the handshake.
    pub key: PublicKey,
    /// Addresses at which the peer's own servers listen, as text. A server does not use them.
    pub addresses: Vec<String>,
    /// The pre-shared key that its handshakes must use. `None` selects the command's key, if it has one.
    pub psk: Option<PresharedKey>,
    /// The moment from which on the peer gets no new association.
    pub expires: Option<SystemTime>,
    /// Permissions for sending files to `recv`.
    pub files: FilePolicy,
    /// Permissions for connecting through an exit.
    pub exit: ExitPolicy,
    /// Permissions in a tunnel.
    pub tunnel: TunnelPolicy,
}

/// Permissions of a client of a tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TunnelPolicy {
    /// Its addresses in the tunnel, at most one of each network of the hub. If empty, the hub chooses.
    pub addresses: Vec<IpAddr>,
    /// Its limits. The hub's options apply where no limit is set.
    pub limits: ClientLimits,
}

/// Limits of one client of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// Maximum rate of inner packets in each direction, bit/s. `None` sets no limit.
    pub rate_bps: Option<u64>,
    /// Maximum volume of inner packets in a calendar month (UTC), both directions together, bytes. `None` sets no
    /// limit.
    pub quota_bytes: Option<u64>,
}

impl ClientLimits {
    /// These limits, with those of `other` where one is not set.
    pub fn or(self, other: Self) -> Self {
        Self {
            rate_bps: self.rate_bps.or(other.rate_bps),
            quota_bytes: self.quota_bytes.or(other.quota_bytes),
        }
    }
}

/// Permissions for sending files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePolicy {
    /// Directory of this peer's files, relative to the inbox. It consists of plain names, so it is always inside.
    /// `None` selects the inbox itself.
    pub directory: Option<PathBuf>,
    /// Maximum number of bytes in the peer's directory. `None` sets no limit.
    pub quota_bytes: Option<u64>,
    /// Maximum size of a file, bytes. `None` sets no limit.
    pub max_file_bytes: Option<u64>,
    /// Whether the peer may replace files if the command permits it (`--overwrite`).
    pub allow_overwrite: bool,
}

impl PeerPolicy {
    /// An entry without restrictions: only the command's options apply.
    pub fn unrestricted(name: impl Into<String>, key: PublicKey) -> Self {
        Self {
            name: name.into(),
            key,
            addresses: Vec::new(),
            psk: None,
            expires: None,
            files: FilePolicy::default(),
            exit: ExitPolicy::default(),
            tunnel: TunnelPolicy::default(),
        }
    }

    /// An entry without restrictions and without a name: logs show the beginning of the key.
    pub fn nameless(key: PublicKey) -> Self {
        let name: String = key.to_string().chars().take(SHORT_KEY).collect();
        Self::unrestricted(name, key)
    }

    /// Whether the entry has expired.
    pub fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl Default for FilePolicy {
    fn default() -> Self {
        Self { directory: None, quota_bytes: None, max_file_bytes: None, allow_overwrite: true }
    }
}
