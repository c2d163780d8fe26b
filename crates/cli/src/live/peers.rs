//! Peers on the command line, by name or by key.

use std::path::{Path, PathBuf};

use ropewalk_apps::access::{self, FindPeerError, NamedPeer, PeerPolicy};
use ropewalk_runtime::seal::KeyError;

use crate::failure::Failure;

/// A peer on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerArg(NamedPeer);

impl std::str::FromStr for PeerArg {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        text.parse().map(Self)
    }
}

impl PeerArg {
    /// The peer's entry in the user's list of peers, or an entry without a name for a key.
    ///
    /// # Errors
    /// The list cannot be read, or has no peer of this name. `option` is the option that named the
    /// peer.
    pub fn find(&self, option: &str) -> Result<PeerPolicy, Failure> {
        self.0.find(None).map_err(|error| match error {
            FindPeerError::List(error) => error.into(),
            FindPeerError::Unknown { .. } => {
                Failure::input(format!("{option} {error}"), error.help())
            }
            FindPeerError::NoSettings => Failure::input(&error, error.help()),
        })
    }
}

/// The file of the user's peers, even if it does not exist.
///
/// # Errors
/// No file is given, and there is no directory for settings.
pub fn peers_file(given: Option<&Path>) -> Result<PathBuf, Failure> {
    given.map(Path::to_owned).or_else(access::peers_file).ok_or_else(|| {
        let error = FindPeerError::NoSettings;
        Failure::input(&error, error.help())
    })
}
