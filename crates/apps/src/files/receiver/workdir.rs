//! The hidden directory of unfinished files, inside the directory that receives files.
//!
//! It is private (mode 0700, its files 0600) from its creation. Nothing in it is followed or waited for: a symbolic
//! link, FIFO, socket or device in place of an unfinished file is removed or refused. If the directory is deleted
//! while the receiver runs, it is created again for the next file.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::path::Path;

use cap_std::fs::{Dir, DirBuilder, OpenOptions};
use parking_lot::Mutex;

use crate::files::names::HIDDEN;

/// The owner keeps this file locked: only one process uses a directory at a time.
const LOCK: &str = "lock";
/// Created temporarily to determine the umask, and the permissions that apply to this process.
const PROBE: &str = "umask";

/// The hidden directory, locked.
#[derive(Debug)]
pub struct WorkDir {
    root: Dir,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    dir: Dir,
    _lock: File,
}

/// Why the hidden directory cannot be used.
#[derive(Debug)]
pub enum WorkDirError {
    /// Another process uses it.
    Locked,
    /// A system error.
    Io(io::Error),
}

impl From<io::Error> for WorkDirError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<WorkDirError> for io::Error {
    fn from(error: WorkDirError) -> Self {
        match error {
            WorkDirError::Locked => {
                Self::new(ErrorKind::ResourceBusy, "another process uses the directory")
            }
            WorkDirError::Io(error) => error,
        }
    }
}

impl WorkDir {
    /// Opens or creates the hidden directory.
    ///
    /// # Errors
    /// [`WorkDirError`].
    pub fn open(root: &Dir) -> Result<Self, WorkDirError> {
        let root = root.try_clone()?;
        let open = Mutex::new(open(&root)?);
        Ok(Self { root, open })
    }

    /// The directory, which is created again if it was deleted.
    ///
    /// # Errors
    /// The error of the system.
    pub fn dir(&self) -> io::Result<Dir> {
        let mut now = self.open.lock();
        if !is_at(&self.root, HIDDEN, &now.dir)? {
            *now = open(&self.root)?;
        }
        now.dir.try_clone()
    }

    /// Opens an unfinished file for reading. `None` if it does not exist.
    ///
    /// # Errors
    /// The error of the system.
    pub fn read(&self, name: &str) -> io::Result<Option<File>> {
        match open_regular(&self.dir()?, Path::new(name), OpenOptions::new().read(true)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            // Everything except a regular file is removed before the next file is written.
            Err(_) if !self.is_regular(name) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_regular(&self, name: &str) -> bool {
        self.dir().and_then(|dir| dir.symlink_metadata(name)).is_ok_and(|found| found.is_file())
    }

    /// Opens an unfinished file for writing at an offset. At offset 0 a new file is created.
    ///
    /// # Errors
    /// The error of the system.
    pub fn write(&self, name: &str, offset: u64) -> io::Result<File> {
        let dir = self.dir()?;
        if offset == 0 {
            return create(&dir, name);
        }
        let path = Path::new(name);
        let mut file = match open_regular(&dir, path, OpenOptions::new().write(true)) {
            // A complete file that did not get its name has the permissions of the sender's file.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                set_permissions(&open_regular(&dir, path, OpenOptions::new().read(true))?, 0o600)?;
                open_regular(&dir, path, OpenOptions::new().write(true))?
            }
            result => result?,
        };
        set_private(&file, 0o600)?;
        file.set_len(offset)?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(file)
    }

    /// The size of an unfinished file. `None` if it does not exist.
    pub fn size(&self, name: &str) -> Option<u64> {
        let found = self.dir().ok()?.symlink_metadata(name).ok()?;
        found.is_file().then(|| found.len())
    }

    /// Removes an unfinished file.
    pub fn remove(&self, name: &str) {
        // The file may not exist.
        let _ = self.dir().and_then(|dir| dir.remove_file(name));
    }

    /// The permissions of a new file that requests all: those that the umask and an ACL of the directory leave.
    pub fn granted(&self) -> u32 {
        let probe = || {
            let dir = self.dir()?;
            let _ = dir.remove_file(PROBE);
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            mode(&mut options, 0o777);
            let found = permissions(&dir.open_with(PROBE, &options)?.into_std())?;
            dir.remove_file(PROBE)?;
            Ok::<_, io::Error>(found)
        };
        probe().unwrap_or(0o700)
    }

    /// Whether this process reads files regardless of their permissions, as root does.
    pub fn reads_everything(&self) -> bool {
        let probe = || {
            let dir = self.dir()?;
            let mut options = OpenOptions::new();
            options.write(true).create_new(true);
            mode(&mut options, 0);
            let _ = dir.remove_file(PROBE);
            drop(dir.open_with(PROBE, &options)?);
            let read = dir.open(PROBE);
            dir.remove_file(PROBE)?;
            read
        };
        probe().is_ok()
    }

    /// Removes the directory if it contains no unfinished files.
    pub fn remove_stale(&self) {
        let now = self.open.lock();
        let entries = now.dir.entries().map(|entries| entries.take(2).count());
        if matches!(entries, Ok(1)) && matches!(is_at(&self.root, HIDDEN, &now.dir), Ok(true)) {
            let _ = now.dir.remove_file(LOCK);
            let _ = self.root.remove_dir(HIDDEN);
        }
    }
}

fn open(root: &Dir) -> Result<Open, WorkDirError> {
    let mut builder = DirBuilder::new();
    dir_mode(&mut builder, 0o700);
    match root.create_dir_with(HIDDEN, &builder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
        _ => {}
    }
    let dir = open_hidden(root)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    mode(&mut options, 0o600);
    let lock = open_regular(&dir, Path::new(LOCK), &mut options)?;
    match lock.try_lock() {
        Ok(()) => Ok(Open { dir, _lock: lock }),
        Err(TryLockError::WouldBlock) => Err(WorkDirError::Locked),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Opens the hidden directory. Makes it private, in case an older version made it readable.
fn open_hidden(root: &Dir) -> io::Result<Dir> {
    if !root.symlink_metadata(HIDDEN)?.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    let folder = open_folder(root, Path::new(HIDDEN))?;
    set_private(&folder, 0o700)?;
    Ok(Dir::from_std_file(folder))
}

/// Opens a folder as a file, to set its time and permissions and to sync it.
///
/// # Errors
/// The error of the system.
pub fn open_folder(root: &Dir, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    special(&mut options, rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NONBLOCK);
    Ok(root.open_with(path, &options)?.into_std())
}

/// Opens a folder to read it. A symbolic link is not followed.
///
/// # Errors
/// The error of the system.
pub fn open_nofollow(dir: &Dir, name: &OsStr) -> io::Result<Dir> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        special(&mut options, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK);
    }
    Ok(Dir::from_std_file(dir.open_with(name, &options)?.into_std()))
}

/// Creates a private file. Anything with its name is removed first.
fn create(dir: &Dir, name: &str) -> io::Result<File> {
    match dir.remove_file(name) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    mode(&mut options, 0o600);
    Ok(dir.open_with(name, &options)?.into_std())
}

/// Opens a regular file. Links are not followed, and the call never blocks.
///
/// # Errors
/// The error of the system; [`ErrorKind::InvalidInput`] if it is not a regular file.
pub fn open_regular(dir: &Dir, path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    special(options, rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK);
    let file = dir.open_with(path, options)?.into_std();
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"))
    }
}

/// Whether the entry `name` of `root` is this directory.
#[cfg(unix)]
fn is_at(root: &Dir, name: &str, dir: &Dir) -> io::Result<bool> {
    use cap_std::fs::MetadataExt;
    let own = dir.dir_metadata()?;
    match root.symlink_metadata(name) {
        Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn is_at(_: &Dir, _: &str, _: &Dir) -> io::Result<bool> {
    // An open directory cannot be deleted on such systems.
    Ok(true)
}

#[cfg(unix)]
fn special(options: &mut OpenOptions, flags: rustix::fs::OFlags) {
    cap_std::fs::OpenOptionsExt::custom_flags(options, flags.bits() as i32);
}

#[cfg(unix)]
fn mode(options: &mut OpenOptions, mode: u32) {
    cap_std::fs::OpenOptionsExt::mode(options, mode);
}

#[cfg(not(unix))]
fn mode(_: &mut OpenOptions, _: u32) {}

#[cfg(unix)]
pub(super) fn dir_mode(builder: &mut DirBuilder, mode: u32) {
    cap_std::fs::DirBuilderExt::mode(builder, mode);
}

#[cfg(not(unix))]
pub(super) fn dir_mode(_: &mut DirBuilder, _: u32) {}

/// Removes the permissions of other users.
fn set_private(file: &File, mode: u32) -> io::Result<()> {
    if permissions(file)? & 0o077 == 0 { Ok(()) } else { set_permissions(file, mode) }
}

/// The lower nine bits of the mode.
///
/// # Errors
/// The error of the system.
#[cfg(unix)]
pub fn permissions(file: &File) -> io::Result<u32> {
    use std::os::unix::fs::PermissionsExt;
    Ok(file.metadata()?.permissions().mode() & 0o777)
}

/// The lower nine bits of the mode.
///
/// # Errors
/// Never on this system.
#[cfg(not(unix))]
pub fn permissions(_: &File) -> io::Result<u32> {
    Ok(0o700)
}

/// Sets the permissions of a file or directory.
///
/// # Errors
/// The error of the system.
#[cfg(unix)]
pub fn set_permissions(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// Sets the permissions of a file or directory.
///
/// # Errors
/// Never on this system.
#[cfg(not(unix))]
pub fn set_permissions(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}
