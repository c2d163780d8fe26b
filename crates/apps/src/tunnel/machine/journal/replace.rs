//! Files that a tunnel replaces: their previous content, and how it is restored.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

/// Mode of a new file, regardless of the umask.
const NEW_MODE: u32 = 0o644;

/// The bytes of a file. In the journal they are a text if they are UTF-8, and a list of numbers otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Content(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Stored> for Content {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Text(text) => Self(text.into_bytes()),
            Stored::Bytes(bytes) => Self(bytes),
        }
    }
}

impl From<Content> for Stored {
    fn from(content: Content) -> Self {
        let bytes = content.0;
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }
}

/// The previous state of a replaced file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Before {
    /// Nothing.
    Nothing,
    /// A file with this text.
    Text(Content),
    /// A symbolic link to this place.
    Link(PathBuf),
}

impl Before {
    /// One line of text that [`Self::decode`] reads.
    pub fn encode(&self) -> String {
        BASE64.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads what [`Self::encode`] has written. `None` for any other text.
    pub fn decode(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(&BASE64.decode(text).ok()?).ok()
    }

    /// The current state of a file.
    ///
    /// # Errors
    /// The error of the system.
    pub fn read(file: &Path) -> io::Result<Self> {
        if let Ok(target) = fs::read_link(file) {
            return Ok(Self::Link(target));
        }
        match fs::read(file) {
            Ok(bytes) => Ok(Self::Text(Content(bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Restores the file.
    ///
    /// # Errors
    /// The error of the system.
    pub fn restore(&self, file: &Path) -> io::Result<()> {
        match self {
            Self::Nothing => fs::remove_file(file),
            Self::Text(text) => put(file, &text.0),
            Self::Link(target) => {
                fs::remove_file(file)?;
                symlink(target, file)
            }
        }
    }
}

/// Replaces a file atomically, so that no reader sees a part of it. It keeps its mode and its owner.
pub(super) fn put(file: &Path, text: &[u8]) -> io::Result<()> {
    let aside = file.with_extension("ropewalk-new");
    let replaced = write_aside(&aside, file, text).and_then(|()| fs::rename(&aside, file));
    if replaced.is_err() {
        let _ = fs::remove_file(&aside);
        // A mounted file, as in containers, cannot be replaced.
        return fs::write(file, text);
    }
    replaced
}

/// Writes a new file with the mode and the owner of another one. Those of a link are not used: its target may belong
/// to a service, such as systemd-resolved.
fn write_aside(aside: &Path, like: &Path, text: &[u8]) -> io::Result<()> {
    let _ = fs::remove_file(aside);
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(aside)?;
    new.write_all(text)?;
    let like = fs::symlink_metadata(like).ok().filter(|like| !like.is_symlink());
    let mode = like.as_ref().map_or(NEW_MODE, |like| like.mode() & 0o7777);
    // Before the owner, so that CAP_FOWNER is not needed.
    new.set_permissions(Permissions::from_mode(mode))?;
    let own = new.metadata()?;
    match like {
        // A change of owner needs CAP_CHOWN, even if it changes nothing.
        Some(like) if (like.uid(), like.gid()) != (own.uid(), own.gid()) => {
            chown(aside, Some(like.uid()), Some(like.gid()))
        }
        _ => Ok(()),
    }
}
