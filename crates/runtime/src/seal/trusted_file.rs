//! Files that control access: keys, pre-shared keys, access lists.
//!
//! Opening never blocks, and only regular files are read. The file must belong to this user or to root, who could do
//! everything that the file permits anyway.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use zeroize::Zeroizing;

use super::key_file::{KeyFileError, KeyFileProblem};

/// Who may read a file in addition to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    /// No other user: it contains a secret.
    Secret,
    /// All users, but only the owner may write it: it defines who is trusted.
    Public,
}

impl Secrecy {
    /// The mode bits that must be clear.
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
/// [`KeyFileError`]: the file does not exist, is not a regular file, is writable by others (or readable, if it is
/// secret), belongs to another user, is too large, or is not text.
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
    // Before opening, because opening a device may have an effect.
    check_kind(&fs::metadata(path)?)?;
    let file = without_waiting(OpenOptions::new().read(true)).open(path)?;
    // From the opened file, because the name may have been replaced in between.
    let metadata = file.metadata()?;
    check_kind(&metadata)?;
    check_owner(&metadata)?;
    check_mode(&metadata, secrecy)?;
    text(file, limit)
}

fn text(file: File, limit: u64) -> Result<Zeroizing<String>, KeyFileProblem> {
    // Allocated in full: a growing string would leave copies of the secret in memory.
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

/// Prevents blocking if a FIFO replaces the file in between.
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
