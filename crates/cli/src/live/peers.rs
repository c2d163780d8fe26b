//! Peers by name or by key. Names are those of the user's list of peers, to which `ropewalk pair` adds.

use std::path::{Path, PathBuf};

use ropewalk_apps::access::{KnownPeers, PeerPolicy, is_peer_name};
use ropewalk_runtime::seal::{KeyError, PublicKey};

use super::identity::settings;
use crate::failure::Failure;

/// The user's list of peers, in the directory of the user's settings.
const FILE: &str = "ropewalk/peers.toml";
/// Most names that an error shows.
const NAMES_SHOWN: usize = 8;

/// A peer on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerArg {
    /// A public key.
    Key(PublicKey),
    /// A name in the user's list of peers, and why it is no key.
    Name(String, KeyError),
}

impl std::str::FromStr for PeerArg {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        match text.parse() {
            Ok(key) => Ok(Self::Key(key)),
            // A key ends with `=`, which no name contains.
            Err(error) if is_peer_name(text) => Ok(Self::Name(text.to_owned(), error)),
            Err(error) => Err(error),
        }
    }
}

impl PeerArg {
    /// The peer's entry in the list, or one without a name for a key.
    ///
    /// # Errors
    /// The list cannot be read, or has no peer of this name. `option` is what the user gave.
    pub fn find(&self, option: &str) -> Result<PeerPolicy, Failure> {
        let (name, error) = match self {
            Self::Key(key) => return Ok(PeerPolicy::nameless(*key)),
            Self::Name(name, error) => (name, error),
        };
        let file = peers_file(None)?;
        let known = KnownPeers::read(&file)?;
        if let Some(peer) = known.find(name) {
            return Ok(peer.clone());
        }
        let message = format!("{option} {name}: no peer of this name in `{}`", file.display());
        Err(Failure::input(message, help(&known, error)))
    }
}

fn help(known: &KnownPeers, error: &KeyError) -> String {
    let names: Vec<_> = known.names().take(NAMES_SHOWN).collect();
    let pair = "`ropewalk pair` adds a peer";
    match names.as_slice() {
        [] => format!("{pair}. As a public key: {error}"),
        names => format!("it has {}; {pair}. As a public key: {error}", names.join(", ")),
    }
}

/// The file of the user's peers, whether or not it exists.
///
/// # Errors
/// No file is given, and there is no directory for settings.
pub fn peers_file(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let default = || settings().map(|settings| settings.join(FILE));
    given.map(Path::to_owned).or_else(default).ok_or_else(|| {
        Failure::input(
            "no directory for your list of peers: HOME is not set",
            "set HOME, or give public keys",
        )
    })
}
