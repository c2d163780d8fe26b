//! The clients of an exit, and their permissions.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use ropewalk_runtime::seal::PublicKey;

use super::rule::Rule;

/// Length of the part of a key that logs show, characters.
const SHORT_KEY: usize = 8;

/// A near end that has connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// The key that it proved. `None` without sealing.
    pub key: Option<PublicKey>,
    /// The operator's name of the key.
    pub name: Option<String>,
    /// The address from which it connected first.
    pub address: Option<SocketAddr>,
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.key) {
            (Some(name), Some(key)) => write!(f, "{name} ({})", short_key(&key))?,
            (Some(name), None) => f.write_str(name)?,
            (None, Some(key)) => f.write_str(&short_key(&key))?,
            (None, None) => f.write_str("a near end")?,
        }
        self.address.map_or(Ok(()), |address| write!(f, " at {address}"))
    }
}

/// The beginning of a key, for logs.
pub fn short_key(key: &PublicKey) -> String {
    key.to_string().chars().take(SHORT_KEY).collect()
}

/// Permissions for connecting through an exit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitPolicy {
    /// If not empty, the only permitted destinations, in the syntax of the exit's `--allow-to`.
    pub targets: Vec<Rule>,
    /// Maximum number of simultaneous connections of this peer. `None` selects the exit's own limit.
    pub max_connections: Option<usize>,
}

/// Returns the current permissions of a key. `None` if it may no longer use the exit.
pub type PermissionsOf = Arc<dyn Fn(&PublicKey) -> Option<ExitPolicy> + Send + Sync>;
