//! Peers by name or by key, and where this user's list of peers and default key are.

use std::path::{Path, PathBuf};

use ropewalk_runtime::seal::{KeyError, PublicKey};

use super::error::AccessError;
use super::file::is_peer_name;
use super::known::KnownPeers;
use super::policy::PeerPolicy;

/// The user's list of peers, in the directory of the user's settings.
const PEERS: &str = "ropewalk/peers.toml";
/// The user's default key, in the same directory.
const IDENTITY: &str = "ropewalk/identity.key";
/// Maximum number of names that an error shows.
const NAMES_SHOWN: usize = 8;

/// A peer as users specify it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedPeer {
    /// A public key.
    Key(PublicKey),
    /// A name in the user's list of peers, and why it is not a key.
    Name(String, KeyError),
}

/// Why a named peer was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindPeerError {
    /// No list is given, and there is no directory for settings.
    #[error("no directory for your list of peers: HOME is not set")]
    NoSettings,
    /// The list cannot be read.
    #[error("{0}")]
    List(AccessError),
    /// The list has no peer of this name.
    #[error("{name}: no peer of this name in `{file}`", file = .file.display())]
    Unknown {
        /// The name.
        name: String,
        /// The list.
        file: PathBuf,
        /// A hint on how to solve the problem.
        help: String,
    },
}

impl FindPeerError {
    /// A hint on how to solve the problem.
    pub fn help(&self) -> &str {
        match self {
            Self::NoSettings => "set HOME, or give public keys",
            Self::List(error) => &error.help,
            Self::Unknown { help, .. } => help,
        }
    }
}

impl std::str::FromStr for NamedPeer {
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

impl NamedPeer {
    /// The peer's entry in the list `file`, by default the user's own, or an entry without a name for a key.
    ///
    /// # Errors
    /// [`FindPeerError`], for a name.
    pub fn find(&self, file: Option<&Path>) -> Result<PeerPolicy, FindPeerError> {
        let (name, error) = match self {
            Self::Key(key) => return Ok(PeerPolicy::nameless(*key)),
            Self::Name(name, error) => (name, error),
        };
        let file = file.map(Path::to_owned).or_else(peers_file).ok_or(FindPeerError::NoSettings)?;
        let known = KnownPeers::read(&file).map_err(FindPeerError::List)?;
        known.find(name).cloned().ok_or_else(|| {
            let help = help(&known, error);
            FindPeerError::Unknown { name: name.clone(), file, help }
        })
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

/// The user's list of peers, whether or not it exists. `None` without a directory for settings.
pub fn peers_file() -> Option<PathBuf> {
    settings().map(|settings| settings.join(PEERS))
}

/// The file of the user's default key, whether or not it exists. `None` without a directory for settings.
pub fn default_key() -> Option<PathBuf> {
    settings().map(|settings| settings.join(IDENTITY))
}

/// Where this user keeps settings.
fn settings() -> Option<PathBuf> {
    let given = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from).filter(|path| path.is_absolute())
    };
    if cfg!(windows) {
        return given("APPDATA");
    }
    given("XDG_CONFIG_HOME").or_else(|| given("HOME").map(|home| home.join(".config")))
}
