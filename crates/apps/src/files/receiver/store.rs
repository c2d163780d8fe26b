//! The directory that files arrive in. Whatever a peer calls them, and wherever links in it point to,
//! nothing outside of it is opened: the system resolves every name below the opened directory.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, FileTimes, TryLockError};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use crate::files::names::{HIDDEN, Name, shown, shown_path};
use crate::files::sender::reader::hash_beginning;
use crate::files::wire::{Entry, Hash, Kind, Stamp};

/// In the hidden folder: who has it locked uses the directory.
const LOCK: &str = "lock";
/// Characters of a file's own name in that of its unfinished part.
const OWN_NAME: usize = 150;

/// The directory that files arrive in, locked.
#[derive(Debug)]
pub struct Store {
    root: Dir,
    /// Unfinished files.
    parts: Dir,
    path: PathBuf,
    overwrite: bool,
    _lock: File,
}

/// Why a directory cannot be used.
#[derive(Debug)]
pub enum StoreError {
    /// Another process uses it.
    Locked(PathBuf),
    /// The system says no.
    Io(PathBuf, io::Error),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked(path) => {
                write!(f, "another `ropewalk recv` receives into `{}`", shown_path(path))
            }
            Self::Io(path, error) => {
                write!(f, "cannot receive into `{}`: {error}", shown_path(path))
            }
        }
    }
}

impl std::error::Error for StoreError {}

impl StoreError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Locked(_) => "use another directory, or stop the other one",
            Self::Io(_, error) if error.kind() == ErrorKind::PermissionDenied => {
                "give a directory that you may write to"
            }
            Self::Io(..) => "give a directory, or the name of one to be made in one that exists",
        }
    }
}

/// What is there of an entry.
#[derive(Debug)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// A folder, or what else needs nothing.
    Ready,
    /// So many bytes of its beginning, which the hasher has seen.
    Part(u64, Box<blake3::Hasher>),
    /// A file of its size.
    Same(Hash),
    /// Something that is in the way.
    Obstacle(String),
}

impl Store {
    /// Opens a directory, or makes it in one that exists.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path, overwrite: bool) -> Result<Self, StoreError> {
        let failed = |error| StoreError::Io(path.to_owned(), error);
        match fs::create_dir(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let root = Dir::open_ambient_dir(path, ambient_authority()).map_err(failed)?;
        match root.create_dir(HIDDEN) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let parts = root.open_dir(HIDDEN).map_err(failed)?;
        let options = OpenOptions::new().write(true).create(true).clone();
        let lock = parts.open_with(LOCK, &options).map_err(failed)?.into_std();
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::Locked(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        Ok(Self { root, parts, path: path.to_owned(), overwrite, _lock: lock })
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether files that exist are replaced.
    pub const fn overwrites(&self) -> bool {
        self.overwrite
    }

    /// Looks what is there of an entry; makes it if it is a folder.
    pub fn look(&self, entry: &Entry) -> Found {
        let result = match entry.kind {
            Kind::Folder => self.look_folder(&entry.name),
            Kind::File(size) => self.look_file(&entry.name, size),
        };
        result.unwrap_or_else(|error| Found::Obstacle(error.to_string()))
    }

    fn look_folder(&self, name: &Name) -> io::Result<Found> {
        let path = name.path();
        match self.root.symlink_metadata(&path) {
            Ok(there) if there.is_dir() => Ok(Found::Ready),
            Ok(_) => Ok(Found::Obstacle("there is something that is no folder".to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.root.create_dir_all(&path).map(|()| Found::Ready)
            }
            Err(error) => Err(error),
        }
    }

    fn look_file(&self, name: &Name, size: u64) -> io::Result<Found> {
        let path = name.path();
        match self.root.symlink_metadata(&path) {
            Ok(there) if there.is_dir() => {
                Ok(Found::Obstacle("there is a folder of this name".to_owned()))
            }
            Ok(there) if there.is_file() && there.len() == size => {
                let (hasher, seen) = hash_beginning(self.root.open(&path)?.into_std(), size)?;
                let same = seen == size;
                Ok(if same { Found::Same(hasher.finalize().into()) } else { Found::Nothing })
            }
            Ok(_) if self.overwrite => self.look_part(name, size),
            Ok(_) => Ok(Found::Obstacle("exists with another size (see --overwrite)".to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => self.look_part(name, size),
            Err(error) => Err(error),
        }
    }

    fn look_part(&self, name: &Name, size: u64) -> io::Result<Found> {
        let file = match self.parts.open(part_name(name)) {
            Ok(file) => file.into_std(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(error),
        };
        let len = file.metadata()?.len();
        if len == 0 || len > size {
            return Ok(Found::Nothing);
        }
        let (hasher, seen) = hash_beginning(file, len)?;
        Ok(if seen == len { Found::Part(len, Box::new(hasher)) } else { Found::Nothing })
    }

    /// Opens the unfinished file of an entry, to be written from an offset on.
    ///
    /// # Errors
    /// As the system says.
    pub fn begin(&self, name: &Name, offset: u64) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(offset == 0);
        let mut file = self.parts.open_with(part_name(name), &options)?.into_std();
        file.set_len(offset)?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(file)
    }

    /// Gives a complete file its permissions, its time and, when it is on disk, its name.
    ///
    /// # Errors
    /// As the system says; the file stays where it is.
    pub fn finish(&self, entry: &Entry, file: File) -> io::Result<()> {
        set_mode(&file, entry.mode)?;
        if let Some(time) = time_of(entry.modified) {
            file.set_times(FileTimes::new().set_modified(time))?;
        }
        file.sync_all()?;
        drop(file);
        let (part, path) = (part_name(&entry.name), entry.name.path());
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.root.create_dir_all(parent)?;
        }
        if self.overwrite {
            return self.parts.rename(part, &self.root, &path);
        }
        // A second name, which fails if somebody else has taken it in the meantime.
        match self.parts.hard_link(&part, &self.root, &path) {
            Ok(()) => self.parts.remove_file(part),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
            // Some file systems have no second names.
            Err(_) if self.root.symlink_metadata(&path).is_ok() => {
                Err(ErrorKind::AlreadyExists.into())
            }
            Err(_) => self.parts.rename(part, &self.root, &path),
        }
    }

    /// Forgets what there is of an unfinished file.
    pub fn forget(&self, name: &Name) {
        // It may not even exist.
        let _ = self.parts.remove_file(part_name(name));
    }

    /// Gives folders their permissions and times, when all that is in them is there, and has the names on disk.
    ///
    /// # Errors
    /// As the system says; with the folder.
    pub fn settle(&self, entries: &[Entry], written: &BTreeSet<u32>) -> Result<(), String> {
        let folder = |entry: &Entry| entry.kind == Kind::Folder;
        let parents = written.iter().filter_map(|place| entries.get(*place as usize));
        let parents: BTreeSet<PathBuf> =
            parents.filter_map(|entry| entry.name.path().parent().map(Path::to_owned)).collect();
        for parent in parents {
            self.sync(&parent).map_err(|error| format!("`{}`: {error}", shown_path(&parent)))?;
        }
        // The innermost first: what is done to it changes nothing in those around it.
        for entry in entries.iter().rev().filter(|entry| folder(entry)) {
            self.settle_folder(entry).map_err(|error| format!("`{}`: {error}", entry.name))?;
        }
        Ok(())
    }

    fn sync(&self, folder: &Path) -> io::Result<()> {
        // Some systems cannot open a folder as a file.
        if cfg!(unix) { self.open_folder(folder)?.sync_all() } else { Ok(()) }
    }

    fn settle_folder(&self, entry: &Entry) -> io::Result<()> {
        let folder = match self.open_folder(&entry.name.path()) {
            Ok(folder) if cfg!(unix) => folder,
            // It could not be made, which has been said.
            _ => return Ok(()),
        };
        if let Some(time) = time_of(entry.modified) {
            folder.set_times(FileTimes::new().set_modified(time))?;
        }
        set_mode(&folder, entry.mode)
    }

    /// A folder as a file, which has a time and permissions and can be synchronised.
    fn open_folder(&self, path: &Path) -> io::Result<File> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let file = self.root.open(path)?.into_std();
        if file.metadata()?.is_dir() { Ok(file) } else { Err(ErrorKind::NotADirectory.into()) }
    }

    /// Removes the hidden folder if nothing unfinished is in it.
    pub fn tidy(&self) {
        let inside = self.parts.entries().map(|entries| entries.count());
        if matches!(inside, Ok(1)) {
            let _ = self.parts.remove_file(LOCK);
            let _ = self.root.remove_dir(HIDDEN);
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.tidy();
    }
}

/// The name of an unfinished file: for people the beginning of its own, against mistakes a hash of all of it.
fn part_name(name: &Name) -> String {
    let own: String = shown(name.last_part()).chars().take(OWN_NAME).collect();
    let own = own.replace(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)), "_");
    format!("{own}.{}.part", &blake3::hash(name.bytes()).to_hex()[..16])
}

fn time_of(stamp: Stamp) -> Option<SystemTime> {
    let part = Duration::from_nanos(u64::from(stamp.nanoseconds));
    let whole = Duration::from_secs(stamp.seconds.unsigned_abs());
    let time = match stamp.seconds < 0 {
        true => UNIX_EPOCH.checked_sub(whole),
        false => UNIX_EPOCH.checked_add(whole),
    };
    time?.checked_add(part)
}

#[cfg(unix)]
fn set_mode(file: &File, mode: u16) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(u32::from(mode)))
}

#[cfg(not(unix))]
fn set_mode(_: &File, _: u16) -> io::Result<()> {
    Ok(())
}
