//! What one peer may do.

use std::path::PathBuf;
use std::time::SystemTime;

use ropewalk_runtime::seal::{PresharedKey, PublicKey};

use crate::proxy::exit::Rule;

/// One entry of the access list.
///
/// New fields may be added: make one with [`PeerPolicy::unrestricted`] and change its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerPolicy {
    /// What logs call the peer. The operator chose it: letters, digits and `-_.@+`, at most 64 characters.
    pub name: String,
    /// The public key that the peer proves in the handshake.
    pub key: PublicKey,
    /// The pre-shared key that its handshakes must use. None: that of the command, if it has one.
    pub psk: Option<PresharedKey>,
    /// From this moment on the peer gets no new association.
    pub expires: Option<SystemTime>,
    /// What it may send to `recv`.
    pub files: FilePolicy,
    /// Where it may connect to through an exit.
    pub exit: ExitPolicy,
}

/// What a peer may send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePolicy {
    /// Directory of this peer's files, relative to the inbox. It consists of plain names only, so it
    /// never leads outside. None: the inbox itself.
    pub directory: Option<PathBuf>,
    /// Most bytes that all files in the peer's directory together may have. None: no limit.
    pub quota_bytes: Option<u64>,
    /// Most bytes of one file. None: no limit.
    pub max_file_bytes: Option<u64>,
    /// Whether the peer may replace files where the command permits it (`--overwrite`).
    pub allow_overwrite: bool,
}

/// Where a peer may connect to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitPolicy {
    /// Only there, if there are any rules. They have the syntax of the exit's `--allow-to`.
    pub targets: Vec<Rule>,
    /// Most connections of this peer at a time. None: the exit's own limit.
    pub max_connections: Option<usize>,
}

impl PeerPolicy {
    /// An entry without restrictions: all that the command's options permit.
    pub fn unrestricted(name: impl Into<String>, key: PublicKey) -> Self {
        Self {
            name: name.into(),
            key,
            psk: None,
            expires: None,
            files: FilePolicy::default(),
            exit: ExitPolicy::default(),
        }
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
