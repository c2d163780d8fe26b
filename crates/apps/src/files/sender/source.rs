//! Contents of the files to send.
//!
//! The size that the system reports for a file is only a hint: procfs reports 0, sysfs a page, and FUSE file
//! systems an arbitrary size. A file arrives only if its size is that of the content up to the end.

use std::fs::{File, Metadata};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use crate::files::manifest::{Manifest, stamp};
use crate::files::wire::{Entry, Kind};

/// Largest size that is checked against the content when the list is made. sysfs reports a page.
const PROBED_SIZE: u64 = 64 << 10;
/// Memory limit for contents that are read when the list is made, bytes per transfer.
pub const SNAPSHOT_LIMIT: u64 = 64 << 20;

/// A file that changes during the transfer would arrive in a state that never existed.
const CHANGED: &str = "changed while it was being sent";
/// The size in the list cannot be corrected later.
const WRONG_SIZE: &str = "its content does not have the size that its file system reports";

/// The content of a file.
#[derive(Debug)]
pub enum Source {
    /// An open file.
    File(File),
    /// The content at the time of the list.
    Snapshot(Cursor<Arc<[u8]>>),
}

impl Source {
    /// Opens the file of an entry, if it is unchanged since the list was made.
    ///
    /// # Errors
    /// The reason for the user.
    pub fn open(manifest: &Manifest, index: u32) -> Result<Self, String> {
        let path = &manifest.places[index as usize];
        if let Some(bytes) = manifest.snapshots.get(path) {
            return Ok(Self::Snapshot(Cursor::new(bytes.clone())));
        }
        let file = open_file(path).map_err(|error| error.to_string())?;
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        if is_as_listed(&manifest.entries[index as usize], &metadata) {
            Ok(Self::File(file))
        } else {
            Err(CHANGED.into())
        }
    }

    /// Checks that the content ends here and is as listed. `left` bytes of it were not found.
    ///
    /// # Errors
    /// The reason for the user.
    pub fn check_end(&mut self, entry: &Entry, left: u64) -> Result<(), &'static str> {
        let Self::File(file) = self else { return Ok(()) };
        let mut more = Vec::new();
        let ended = file.take(1).read_to_end(&mut more).is_ok() && more.is_empty();
        if !file.metadata().is_ok_and(|now| is_as_listed(entry, &now)) {
            return Err(CHANGED);
        }
        if left > 0 || !ended { Err(WRONG_SIZE) } else { Ok(()) }
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(out),
            Self::Snapshot(bytes) => bytes.read(out),
        }
    }
}

impl Seek for Source {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Snapshot(bytes) => bytes.seek(to),
        }
    }
}

/// The content of a file whose reported size is not that of its content. `None` if the size is right, or if the file
/// cannot be opened, which is reported when it is sent.
///
/// # Errors
/// If the content cannot be read, or has more than `limit` bytes.
pub fn snapshot(path: &Path, listed: &Metadata, limit: u64) -> io::Result<Option<Arc<[u8]>>> {
    if !is_doubtful(listed) {
        return Ok(None);
    }
    let Ok(file) = open_file(path) else { return Ok(None) };
    if !file.metadata().is_ok_and(|now| now.is_file() && now.len() == listed.len()) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(limit.max(listed.len()) + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == listed.len() {
        return Ok(None);
    }
    if bytes.len() as u64 > limit {
        let why = format!("its file system does not report its size, which is over {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(Some(bytes.into()))
}

/// Whether the content must be read to determine its size: the size is 0, or the file has a size but no blocks
/// on disk.
fn is_doubtful(listed: &Metadata) -> bool {
    #[cfg(unix)]
    let without_blocks = std::os::unix::fs::MetadataExt::blocks(listed) == 0;
    #[cfg(not(unix))]
    let without_blocks = false;
    listed.is_file() && (listed.len() == 0 || without_blocks && listed.len() <= PROBED_SIZE)
}

/// Opens a file to be sent. Does not block if a FIFO has replaced it.
#[cfg(unix)]
fn open_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    File::options().read(true).custom_flags(nonblock).open(path)
}

#[cfg(not(unix))]
fn open_file(path: &Path) -> io::Result<File> {
    File::open(path)
}

fn is_as_listed(entry: &Entry, now: &Metadata) -> bool {
    now.is_file() && entry.kind == Kind::File(now.len()) && entry.modified == stamp(now)
}
