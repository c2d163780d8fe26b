//! Who uses an exit, and what each key may do.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use ropewalk_runtime::seal::PublicKey;

use crate::access::ExitPolicy;

/// Characters of a key that stand for it in logs.
const SHORT_KEY: usize = 8;

/// A near end that has connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// The key that it proved. None: the association is not sealed.
    pub key: Option<PublicKey>,
    /// What the operator calls the key.
    pub name: Option<String>,
    /// From where it connected first.
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

/// The beginning of a key, as logs show it.
pub fn short_key(key: &PublicKey) -> String {
    key.to_string().chars().take(SHORT_KEY).collect()
}

/// Looks up what a key may do now. None: it may not use the exit any more.
pub type PermissionsOf = Arc<dyn Fn(&PublicKey) -> Option<ExitPolicy> + Send + Sync>;
