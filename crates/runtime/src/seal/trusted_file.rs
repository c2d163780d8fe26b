//! Files that decide who may do what: keys, pre-shared keys, access lists.
//!
//! Opening never blocks, only regular files are read, and the file must belong to somebody who could do
//! everything that it permits anyway: this user, or root.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use zeroize::Zeroizing;

use super::key_file::{KeyFileError, KeyFileProblem};

/// Who may read a file besides its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// Nobody: it holds a secret.
    Secret,
    /// Everybody, but only the owner may write it: it says who is trusted.
    Public,
}

impl Secrecy {
    /// The bits of the mode that must be clear.
    const fn forbidden(self) -> u32 {
        match self {
            Self::Secret => 0o077,
            Self::Public => 0o022,
        }
    }
}

/// Reads a regular file of at most `limit` bytes that belongs to this user or to root.
///
/// # Errors
/// [`KeyFileError`]: there is no such file, it is something else than a file, others may write it (or read it,
/// if it is secret), it belongs to somebody else, is too large, or is not text.
pub fn read_trusted(
    path: &Path,
    secrecy: Secrecy,
    limit: u64,
) -> Result<Zeroizing<String>, KeyFileError> {
    read(path, secrecy, limit).map_err(|problem| KeyFileError { path: path.to_owned(), problem })
}

pub(super) fn read(
    path: &Path,
    secrecy: Secrecy,
    limit: u64,
) -> Result<Zeroizing<String>, KeyFileProblem> {
    // Before it is opened: opening a device may do something.
    check_kind(&fs::metadata(path)?)?;
    let file = without_waiting(OpenOptions::new().read(true)).open(path)?;
    // Of the opened file, not of the name: it may be exchanged in between.
    let metadata = file.metadata()?;
    check_kind(&metadata)?;
    check_owner(&metadata)?;
    check_mode(&metadata, secrecy)?;
    text(file, limit)
}

fn text(file: File, limit: u64) -> Result<Zeroizing<String>, KeyFileProblem> {
    // Large enough from the start: growing would leave copies behind.
    let room = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
    let mut text = Zeroizing::new(String::with_capacity(room));
    file.take(limit + 1).read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => KeyFileProblem::NotText,
        _ => KeyFileProblem::Io(error),
    })?;
    if text.len() as u64 > limit { Err(KeyFileProblem::TooLarge(limit)) } else { Ok(text) }
}

fn check_kind(metadata: &Metadata) -> Result<(), KeyFileProblem> {
    if metadata.is_file() { Ok(()) } else { Err(KeyFileProblem::NotAFile(kind(metadata))) }
}

fn kind(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() {
        return "a directory";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            return "a FIFO";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    "something else than a file"
}

/// A FIFO that takes the file's place in between does not block us.
#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed())
}

#[cfg(not(unix))]
fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn check_owner(metadata: &Metadata) -> Result<(), KeyFileProblem> {
    use std::os::unix::fs::MetadataExt;
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner == user || owner == 0 { Ok(()) } else { Err(KeyFileProblem::Owner { owner, user }) }
}

#[cfg(not(unix))]
fn check_owner(_: &Metadata) -> Result<(), KeyFileProblem> {
    Ok(())
}

#[cfg(unix)]
fn check_mode(metadata: &Metadata, secrecy: Secrecy) -> Result<(), KeyFileProblem> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & secrecy.forbidden() == 0 {
        Ok(())
    } else {
        Err(KeyFileProblem::Open { mode, secrecy })
    }
}

#[cfg(not(unix))]
fn check_mode(_: &Metadata, _: Secrecy) -> Result<(), KeyFileProblem> {
    Ok(())
}
