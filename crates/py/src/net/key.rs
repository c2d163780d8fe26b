//! Keys.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use ropewalk_apps::access::{self, NamedPeer, PeerPolicy};
use ropewalk_runtime::seal::{PublicKey, SecretKey};

use crate::error;

/// A secret key. It does not show itself; `public` is its public key.
#[pyclass(frozen, module = "ropewalk._ropewalk")]
pub(crate) struct Key {
    pub(super) secret: SecretKey,
}

#[pymethods]
impl Key {
    /// Creates a key from the machine's random numbers.
    #[staticmethod]
    fn generate() -> PyResult<Self> {
        SecretKey::generate().map(|secret| Self { secret }).map_err(error::net)
    }

    /// Reads the key from a file that only its owner may read.
    #[staticmethod]
    fn read(file: PathBuf) -> PyResult<Self> {
        read(&file).map(|secret| Self { secret })
    }

    /// Writes the key to a new file that only its owner may read.
    fn write(&self, file: PathBuf) -> PyResult<()> {
        self.secret.write_new_file(&file).map_err(error::option)
    }

    /// The public key: 44 characters.
    #[getter]
    fn public(&self) -> String {
        self.secret.public().to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Key, public {}>", self.secret.public())
    }
}

fn read(file: &Path) -> PyResult<SecretKey> {
    SecretKey::read_file(file).map_err(error::option)
}

/// # Errors
/// The option error for a key, with the name of the option.
pub(super) fn public_key(option: &str, text: &str) -> PyResult<PublicKey> {
    text.parse().map_err(|error| error::option(format_args!("{option} = {text:?}: {error}")))
}

/// The entry of a peer that is given by its name in the list of peers, or by its public key.
///
/// # Errors
/// The option error, with the name of the option.
pub(super) fn peer(option: &str, text: &str, peers: Option<&Path>) -> PyResult<PeerPolicy> {
    let named: NamedPeer = text
        .parse()
        .map_err(|error| error::option(format_args!("{option} = {text:?}: {error}")))?;
    named.find(peers).map_err(|error| {
        error::option(format_args!("{option} = {text:?}: {error}; {}", error.help()))
    })
}

/// The public key and the addresses of a peer that is given by its name in the list of peers, or by its public key,
/// and whether it was a name.
#[pyfunction]
pub(crate) fn net_find_peer(
    option: &str,
    text: &str,
    peers: Option<PathBuf>,
) -> PyResult<(String, Vec<String>, bool)> {
    let found = peer(option, text, peers.as_deref())?;
    let key = found.key.to_string();
    let is_name = text != key;
    Ok((key, found.addresses, is_name))
}

/// The file of the user's default key, if it exists.
#[pyfunction]
pub(crate) fn net_default_key() -> Option<PathBuf> {
    access::default_key().filter(|file| file.exists())
}
