//! The peers that a user knows by name: a file in the syntax of `peers.toml`, to which pairing adds entries.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ropewalk_runtime::seal::PublicKey;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use super::error::AccessError;
use super::file::{PEER_NAME_LIMIT, is_peer_name};
use super::list::{parse_text, read_text};
use super::policy::PeerPolicy;

/// The name of a peer whose own name has no usable characters.
const NAMELESS: &str = "peer";
/// Numbers that are tried to distinguish a peer from another one with the same name.
const NUMBERS: std::ops::Range<u32> = 2..10_000;

/// The peers that a user knows by name.
#[derive(Clone, Debug)]
pub struct KnownPeers {
    file: PathBuf,
    peers: Vec<PeerPolicy>,
}

/// Result of adding a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// The name under which the peer is stored.
    pub name: String,
    /// Whether its key was stored before.
    pub known: bool,
}

impl KnownPeers {
    /// Reads the file. A file that does not exist has no peers.
    ///
    /// # Errors
    /// If the file cannot be read, others may write it, or it contains an error.
    pub fn read(file: &Path) -> Result<Self, AccessError> {
        let peers = match fs::symlink_metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            _ => parse_text(&read_text(file)?, file)?,
        };
        Ok(Self { file: file.to_owned(), peers })
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The peer of this name.
    pub fn find(&self, name: &str) -> Option<&PeerPolicy> {
        self.peers.iter().find(|peer| peer.name == name)
    }

    /// The names, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.peers.iter().map(|peer| peer.name.as_str())
    }

    /// Adds a peer under `name`, and writes the file. Invalid characters are removed, and a number is appended
    /// if another key has the name. If the key is known, its entry keeps its name and only gets the addresses,
    /// unless they are empty. Comments and other entries of the file are preserved.
    ///
    /// # Errors
    /// If the file cannot be read or written, or contains an error.
    pub fn add(
        file: &Path,
        name: &str,
        key: PublicKey,
        addresses: &[String],
    ) -> Result<Added, AccessError> {
        let failed = |error: io::Error| AccessError {
            path: file.to_owned(),
            line: None,
            message: format!("{}: {error}", file.display()),
            help: "name a file in a directory that you may write to".to_owned(),
        };
        // Concurrent pairings must not lose an entry. The lock ends with this value.
        let _lock = lock(file);
        let known = Self::read(file)?;
        let text = if known.peers.is_empty() && fs::symlink_metadata(file).is_err() {
            String::new()
        } else {
            read_text(file)?
        };
        let mut document: DocumentMut =
            text.parse().map_err(|error| failed(io::Error::other(error)))?;
        let place = known.peers.iter().position(|peer| peer.key == key);
        let name = match place {
            Some(place) => known.peers[place].name.clone(),
            None => known.free_name(name),
        };
        let entries = document.entry("peer").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let entries = entries.as_array_of_tables_mut().ok_or_else(|| {
            failed(io::Error::other("entries are not in the form [[peer]], so none can be added"))
        })?;
        match place.and_then(|place| entries.get_mut(place)) {
            Some(entry) => set_addresses(entry, addresses),
            None => entries.push(entry(&name, key, addresses)),
        }
        replace(file, &document.to_string()).map_err(failed)?;
        Ok(Added { name, known: place.is_some() })
    }

    /// `wanted` in the characters of a name, with a number if the name is taken.
    fn free_name(&self, wanted: &str) -> String {
        let mut name: String = wanted.chars().filter(|c| is_peer_name(&c.to_string())).collect();
        // Leaves space for a number.
        name = name.chars().take(PEER_NAME_LIMIT - 6).collect();
        if name.is_empty() {
            NAMELESS.clone_into(&mut name);
        }
        if self.find(&name).is_none() {
            return name;
        }
        let mut numbered = NUMBERS.map(|number| format!("{name}-{number}"));
        numbered.find(|name| self.find(name).is_none()).unwrap_or(name)
    }
}

fn entry(name: &str, key: PublicKey, addresses: &[String]) -> Table {
    let mut entry = Table::new();
    entry.insert("name", value(name));
    entry.insert("key", value(key.to_string()));
    set_addresses(&mut entry, addresses);
    entry
}

fn set_addresses(entry: &mut Table, addresses: &[String]) {
    if !addresses.is_empty() {
        entry.insert("addresses", value(addresses.iter().collect::<Array>()));
    }
}

/// Locks the file's directory, if the system supports that.
fn lock(file: &Path) -> Option<File> {
    let directory = File::open(file.parent()?).ok()?;
    directory.lock().ok()?;
    Some(directory)
}

/// Replaces the file's content atomically: a reader sees the old content or the new one.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    // The name may be a link, which is kept.
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let draft = target.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let written = write_draft(&draft, text).and_then(|()| fs::rename(&draft, &target));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

fn write_draft(draft: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
