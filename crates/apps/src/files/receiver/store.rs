//! The directory that receives files. Nothing outside of it is opened, regardless of the names that a peer sends
//! and the links in the directory: the system resolves every name below the opened directory.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::quota::{Ledger, Usage};
use super::workdir::{WorkDir, WorkDirError};
use crate::files::names::{Name, shown_path};

/// Memory for the names of folders that unfinished transfers have created, bytes. Further folders keep their times.
const MADE_LIMIT: usize = 32 << 20;
/// Memory overhead of such a name.
const MADE_COST: usize = 64;

/// Rules for senders to a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// Whether existing files that differ are replaced, and existing folders in the list get the sender's times.
    pub overwrite: bool,
    /// Whether the sender's permissions are used, if it requests that as well. Otherwise the umask decides.
    pub exact_modes: bool,
    /// Maximum number of bytes in the directory, counted in blocks and including a cost for each entry. `None` sets
    /// no limit.
    pub quota_bytes: Option<u64>,
    /// Maximum size of a file, bytes. `None` sets no limit.
    pub max_file_bytes: Option<u64>,
}

/// The directory that receives files, locked.
#[derive(Debug)]
pub struct Store {
    pub(super) root: Dir,
    pub(super) work: WorkDir,
    pub(super) usage: Usage,
    /// Permissions that the umask leaves.
    pub(super) granted: u32,
    /// Permissions that this process needs to compare a file that it has received, and to resume.
    pub(super) own_access: OwnAccess,
    path: PathBuf,
    /// Folders created by transfers that have not finished.
    made: Mutex<Made>,
}

/// Permissions of the owner that are added to those of the sender's files and folders.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnAccess {
    pub file: u32,
    pub folder: u32,
}

impl OwnAccess {
    fn of(reads_everything: bool) -> Self {
        if reads_everything {
            Self { file: 0, folder: 0 }
        } else {
            Self { file: 0o400, folder: 0o500 }
        }
    }
}

#[derive(Debug, Default)]
struct Made {
    names: BTreeSet<Name>,
    bytes: usize,
}

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process uses it.
    #[error("another `ropewalk recv` receives into `{}`", shown_path(.0))]
    Locked(PathBuf),
    /// A system error.
    #[error("cannot receive into `{path}`: {1}", path = shown_path(.0))]
    Io(PathBuf, io::Error),
}

impl StoreError {
    /// A hint on how to solve the problem.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Locked(_) => "use another directory, or stop the other one",
            Self::Io(_, error) if error.kind() == ErrorKind::PermissionDenied => {
                "give a directory that you may write to"
            }
            Self::Io(..) => "give a directory, or the name of a new one in an existing directory",
        }
    }
}

impl Store {
    /// Opens a directory. Creates it if its parent exists.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_in(Arc::default(), path)
    }

    /// Opens a directory that this one may contain. Its path is relative to this one. Creates it and its parents.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open_inner(&self, path: &Path) -> Result<Self, StoreError> {
        let own = self.path.join(path);
        if let Some(parent) = own.parent() {
            fs::create_dir_all(parent).map_err(|error| StoreError::Io(own.clone(), error))?;
        }
        let inner = Self::open_in(self.usage.ledger().clone(), &own)?;
        inner.usage.expire_outer(Instant::now());
        Ok(inner)
    }

    fn open_in(ledger: Arc<Ledger>, path: &Path) -> Result<Self, StoreError> {
        let failed = |error| StoreError::Io(path.to_owned(), error);
        match fs::create_dir(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let root = Dir::open_ambient_dir(path, ambient_authority()).map_err(failed)?;
        let work = WorkDir::open(&root).map_err(|error| match error {
            WorkDirError::Locked => StoreError::Locked(path.to_owned()),
            WorkDirError::Io(error) => failed(error),
        })?;
        let granted = work.granted();
        let own_access = OwnAccess::of(work.reads_everything());
        let directory = fs::canonicalize(path).map_err(failed)?;
        Ok(Self {
            root,
            work,
            usage: Usage::new(ledger, directory),
            granted,
            own_access,
            path: path.to_owned(),
            made: Mutex::default(),
        })
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that the directory is charged, and the open unfinished files of this and all related directories, with the
    /// bytes reserved for each.
    #[cfg(test)]
    pub fn account(&self) -> (Option<u64>, Vec<(PathBuf, u64)>) {
        self.usage.account()
    }

    /// Whether the directory itself was deleted, so that no more files can be received.
    pub fn is_deleted(&self) -> bool {
        matches!(fs::metadata(&self.path), Err(error) if error.kind() == ErrorKind::NotFound)
    }

    /// Records that a transfer has created this folder.
    pub(super) fn add_made(&self, name: &Name) {
        let mut made = self.made.lock();
        let cost = MADE_COST + name.bytes().len();
        if made.bytes + cost <= MADE_LIMIT && made.names.insert(name.clone()) {
            made.bytes += cost;
        }
    }

    /// Whether a transfer has created this folder and not settled it yet. Marks it as settled.
    pub(super) fn take_made(&self, name: &Name) -> bool {
        let mut made = self.made.lock();
        let was_ours = made.names.remove(name);
        if was_ours {
            made.bytes -= MADE_COST + name.bytes().len();
        }
        was_ours
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.work.remove_stale();
    }
}
