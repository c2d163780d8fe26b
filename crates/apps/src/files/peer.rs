//! The peer at the other end of an association.

use std::fmt;

use ropewalk_runtime::seal::PublicKey;

/// A peer: its key, proved in the handshake, and its name in the access list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Peer {
    /// `None` without sealing: the peer has proved nothing.
    pub key: Option<PublicKey>,
    /// `None` if no access list contains the key.
    pub name: Option<String>,
}

impl Peer {
    /// A peer with this key.
    pub const fn new(key: Option<PublicKey>) -> Self {
        Self { key, name: None }
    }

    /// Bytes that identify the key. All peers without sealing share one value.
    pub fn tag(&self) -> Vec<u8> {
        self.key.map(|key| key.to_string().into_bytes()).unwrap_or_default()
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, &self.key) {
            (Some(name), Some(key)) => write!(f, "{name} ({key})"),
            (Some(name), None) => f.write_str(name),
            (None, Some(key)) => key.fmt(f),
            (None, None) => f.write_str("an unauthenticated peer"),
        }
    }
}
