//! The part of a [`Store`] that one sender may see and change.
//!
//! About an existing file, a sender only learns that its name is taken. Contents are compared only if the sender
//! may replace the file anyway, or if the file has the size and modification time that the sender lists, as files
//! from this sender have. Unfinished files belong to the key that sent them.

use std::collections::BTreeSet;
use std::fs::{File, FileTimes};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cap_std::fs::{DirBuilder, Metadata, OpenOptions};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::folder_check::FolderCheck;
use super::part::Part;
use super::store::{Rules, Store};
use super::workdir::{dir_mode, open_folder, open_regular, set_permissions};
use crate::files::names::{Name, shown};
use crate::files::peer::Peer;
use crate::files::sender::reader::hash_beginning;
use crate::files::wire::{Entry, Hash, Kind, Stamp};

/// Number of characters of a file's name that the name of its unfinished file contains.
const OWN_NAME: usize = 150;
const TAKEN: &str = "this name is taken (the receiver replaces files with --overwrite)";

/// A sender's access to a store.
#[derive(Debug)]
pub struct Inbox {
    store: Arc<Store>,
    peer: Peer,
    rules: Rules,
    /// Bytes of planned entries that have not begun.
    planned: Mutex<u64>,
    folder_check: Mutex<FolderCheck>,
}

/// The existing part of an entry.
#[derive(Debug)]
pub enum ExistingEntry {
    /// Nothing.
    Nothing,
    /// A folder, which needs no data.
    Ready,
    /// The beginning of a file: its length, and a hasher that has processed it.
    Part(u64, Box<blake3::Hasher>),
    /// A file that may be identical.
    Exists,
    /// An obstacle, or a rule that forbids the entry.
    Obstacle(String),
}

impl Inbox {
    /// Access of this peer to the store, by these rules.
    ///
    /// # Errors
    /// If the directory cannot be measured.
    pub fn new(store: Arc<Store>, peer: Peer, rules: Rules) -> io::Result<Self> {
        if rules.quota_bytes.is_some() {
            store.usage.measure_if_due(&store.root, Instant::now)?;
        }
        let (planned, folder_check) = (Mutex::default(), Mutex::default());
        Ok(Self { store, peer, rules, planned, folder_check })
    }

    /// The sender.
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The directory.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Examines what exists of an entry. Creates it if it is a folder.
    pub fn inspect(&self, entry: &Entry) -> ExistingEntry {
        let result = match entry.kind {
            Kind::Folder => self.inspect_folder(entry),
            Kind::File(size) => self.inspect_file(entry, size),
        };
        result.unwrap_or_else(|error| ExistingEntry::Obstacle(describe(&error)))
    }

    fn inspect_folder(&self, entry: &Entry) -> io::Result<ExistingEntry> {
        let path = entry.name.path();
        match self.store.root.symlink_metadata(&path) {
            Ok(there) if there.is_dir() => {
                self.reopen_folder(entry, &there)?;
                return Ok(ExistingEntry::Ready);
            }
            Ok(_) => {
                return Ok(ExistingEntry::Obstacle(
                    "this name exists and is not a folder".to_owned(),
                ));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if let Some(why) = self.obstacle_beside(&path)? {
            return Ok(ExistingEntry::Obstacle(why.to_owned()));
        }
        self.make_parents(&path)?;
        let mut builder = DirBuilder::new();
        if let Some(mode) = self.exact_mode(entry) {
            dir_mode(&mut builder, mode | 0o700);
        }
        self.make_folder(&path, &builder)?;
        self.store.add_made(&entry.name);
        Ok(ExistingEntry::Ready)
    }

    /// Makes a read-only folder writable until the end of the transfer, which sets the sender's permissions.
    fn reopen_folder(&self, entry: &Entry, there: &Metadata) -> io::Result<()> {
        let is_open = mode_of(there).is_none_or(|mode| mode & 0o700 == 0o700);
        let (true, Some(mode)) = (self.rules.overwrite && !is_open, self.exact_mode(entry)) else {
            return Ok(());
        };
        // A folder of another user keeps its permissions, which decide what may be written.
        if let Ok(folder) = self.open_folder(&entry.name.path())
            && set_permissions(&folder, mode | 0o700).is_ok()
        {
            self.store.add_made(&entry.name);
        }
        Ok(())
    }

    fn inspect_file(&self, entry: &Entry, size: u64) -> io::Result<ExistingEntry> {
        if let Some(limit) = self.rules.max_file_bytes.filter(|limit| size > *limit) {
            return Ok(ExistingEntry::Obstacle(format!("larger than the limit of {limit} bytes")));
        }
        let path = entry.name.path();
        let there = self.store.root.symlink_metadata(&path);
        // A file of this sender counts as sent even in a folder that has become read-only since.
        if there.as_ref().is_ok_and(|there| is_from_sender(entry, there)) {
            return Ok(ExistingEntry::Exists);
        }
        if let Some(why) = self.obstacle_beside(&path)? {
            return Ok(ExistingEntry::Obstacle(why.to_owned()));
        }
        match there {
            Ok(there) if there.is_dir() => {
                return Ok(ExistingEntry::Obstacle("a folder of this name exists".to_owned()));
            }
            Ok(there) if self.rules.overwrite && has_size(entry, &there) => {
                return Ok(ExistingEntry::Exists);
            }
            Ok(_) if !self.rules.overwrite => return Ok(ExistingEntry::Obstacle(TAKEN.to_owned())),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.inspect_part(&entry.name, size)
    }

    fn inspect_part(&self, name: &Name, size: u64) -> io::Result<ExistingEntry> {
        self.plan(name, size)?;
        let file = self.store.work.read(&self.part_name(name))?;
        let len = file.as_ref().map_or(Ok(0), |file| file.metadata().map(|found| found.len()))?;
        let Some(file) = file.filter(|_| len > 0 && len <= size) else {
            return Ok(ExistingEntry::Nothing);
        };
        let (hasher, seen) = hash_beginning(file, len)?;
        Ok(if seen == len {
            ExistingEntry::Part(len, Box::new(hasher))
        } else {
            ExistingEntry::Nothing
        })
    }

    /// Why nothing may be created in the folder of `path`.
    fn obstacle_beside(&self, path: &Path) -> io::Result<Option<&'static str>> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut check = self.folder_check.lock();
        check.obstacle(&self.store.root, folder, self.rules.quota_bytes.is_some())
    }

    /// Plans a file that replaces one with different contents.
    ///
    /// # Errors
    /// If its folder is not writable, or if the file does not fit.
    pub fn plan_replacement(&self, entry: &Entry) -> io::Result<()> {
        if let Some(why) = self.obstacle_beside(&entry.name.path())? {
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        self.plan(&entry.name, entry.size())
    }

    /// Plans a file of this size.
    ///
    /// # Errors
    /// If the file does not fit in addition to everything planned before.
    pub fn plan(&self, name: &Name, size: u64) -> io::Result<()> {
        let Some(limit) = self.rules.quota_bytes else { return Ok(()) };
        let growth = self.growth(name, size);
        let mut planned = self.planned.lock();
        let sum = planned.saturating_add(growth);
        if !self.store.usage.has_room(sum, limit) {
            return Err(self.over_quota());
        }
        *planned = sum;
        Ok(())
    }

    fn growth(&self, name: &Name, size: u64) -> u64 {
        self.store.usage.growth(&self.store.work, &self.part_name(name), size)
    }

    fn over_quota(&self) -> io::Error {
        io::Error::other(OverQuota(self.rules.quota_bytes.unwrap_or(u64::MAX)))
    }

    fn exact_mode(&self, entry: &Entry) -> Option<u32> {
        entry.exact_mode().filter(|_| self.rules.exact_modes)
    }

    /// Whether the existing file has this hash.
    ///
    /// # Errors
    /// The error of the system.
    pub fn compare(&self, entry: &Entry, hash: &Hash, read: impl Fn(u64)) -> io::Result<bool> {
        let path = entry.name.path();
        let file = open_regular(&self.store.root, &path, OpenOptions::new().read(true))?;
        let size = entry.size();
        if file.metadata()?.len() != size {
            return Ok(false);
        }
        let (hasher, seen) = hash_beginning(Counted { file, read }, size)?;
        Ok(seen == size && hasher.finalize() == *hash)
    }

    /// Whether files that differ are replaced.
    pub const fn replaces(&self) -> bool {
        self.rules.overwrite
    }

    /// Opens the unfinished file of an entry for writing at an offset.
    ///
    /// # Errors
    /// The error of the system, or that the quota is exceeded.
    pub fn begin(&self, entry: &Entry, offset: u64) -> io::Result<Part> {
        let (name, size, limit) = (&entry.name, entry.size(), self.rules.quota_bytes);
        if limit.is_some() {
            let mut planned = self.planned.lock();
            *planned = planned.saturating_sub(self.growth(name, size));
        }
        Part::open(&self.store, self.part_name(name), offset, size, limit)?
            .ok_or_else(|| self.over_quota())
    }

    /// Sets the permissions and the time of a complete file, syncs it to disk, and then gives it its name.
    ///
    /// # Errors
    /// The error of the system. The file stays unfinished.
    pub fn finish(&self, entry: &Entry, part: Part) -> io::Result<()> {
        let path = entry.name.path();
        set_permissions(part.file(), self.mode_of(entry, &path))?;
        if let Some(time) = time_of(entry.modified) {
            part.file().set_times(FileTimes::new().set_modified(time))?;
        }
        part.file().sync_all()?;
        self.make_parents(&path)?;
        part.publish(&path, entry.size(), |part| self.rename(part, &path))
    }

    /// Renames an unfinished file. Returns the size of the file that it replaces, if there is one.
    fn rename(&self, part: &str, path: &Path) -> io::Result<Option<u64>> {
        let parts = self.store.work.dir()?;
        if self.rules.overwrite {
            let before = self.store.root.symlink_metadata(path).ok();
            parts.rename(part, &self.store.root, path)?;
            return Ok(before.map(|before| if before.is_file() { before.len() } else { 0 }));
        }
        // A hard link fails if another process has created the name in the meantime.
        match parts.hard_link(part, &self.store.root, path) {
            // The file has its name. If the other name remains, it is charged as well.
            Ok(()) => {
                let _ = parts.remove_file(part);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Err(io::Error::new(
                ErrorKind::NotFound,
                "its unfinished part was deleted from the receiver's directory `.ropewalk`",
            )),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
            // Some file systems have no hard links.
            Err(_) if self.store.root.symlink_metadata(path).is_ok() => {
                Err(ErrorKind::AlreadyExists.into())
            }
            Err(_) => parts.rename(part, &self.store.root, path),
        }
        .map(|()| None)
    }

    /// The sender's permissions if both ends request that. Otherwise those of the replaced file, or those that
    /// the umask leaves.
    fn mode_of(&self, entry: &Entry, path: &Path) -> u32 {
        if let Some(mode) = self.exact_mode(entry) {
            return mode | self.store.own_access.file;
        }
        let before = self.store.root.symlink_metadata(path).ok().filter(Metadata::is_file);
        if let Some(mode) = before.and_then(|before| mode_of(&before)) {
            return mode;
        }
        self.store.granted & if entry.is_executable() { 0o777 } else { 0o666 }
    }

    fn make_parents(&self, path: &Path) -> io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new(""));
        if parent.as_os_str().is_empty() || self.store.root.is_dir(parent) {
            return Ok(());
        }
        let mut outermost_first: Vec<_> = parent.ancestors().collect();
        outermost_first.reverse();
        for folder in outermost_first.into_iter().filter(|path| !path.as_os_str().is_empty()) {
            match self.store.root.metadata(folder) {
                Ok(there) if there.is_dir() => continue,
                Ok(_) => return Err(ErrorKind::NotADirectory.into()),
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                Err(_) => {}
            }
            match self.make_folder(folder, &DirBuilder::new()) {
                // Another sender may have created it meanwhile.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                result => result?,
            }
        }
        Ok(())
    }

    fn make_folder(&self, path: &Path, builder: &DirBuilder) -> io::Result<()> {
        let make = || self.store.root.create_dir_with(path, builder);
        match self.store.usage.make_folder(path, self.rules.quota_bytes, make)? {
            true => Ok(()),
            false => Err(self.over_quota()),
        }
    }

    /// Syncs the names of these files to disk. Sets the times and, if requested, the permissions of folders that this
    /// transfer created. Returns the failures, with the index of the entry.
    pub fn settle(&self, entries: &[Entry], written: &BTreeSet<u32>) -> Vec<(u32, String)> {
        let mut failed = self.sync_names(entries, written);
        // Innermost folders first: the permissions of an outer folder can make an inner one unreachable.
        for (place, entry) in entries.iter().enumerate().rev() {
            if entry.kind == Kind::Folder
                && let Err(error) = self.finalise_folder(entry)
            {
                failed.push((place as u32, describe(&error)));
            }
        }
        failed
    }

    /// Syncs the names of these files to disk. Returns the failures, with the index of an entry.
    pub fn sync_names(&self, entries: &[Entry], written: &BTreeSet<u32>) -> Vec<(u32, String)> {
        let mut failed = Vec::new();
        let mut synced = BTreeSet::new();
        for place in written {
            let path = entries[*place as usize].name.path();
            let parent = path.parent().unwrap_or(Path::new(""));
            if synced.insert(parent.to_owned())
                && let Err(error) = self.sync(parent)
            {
                failed.push((*place, describe(&error)));
            }
        }
        failed
    }

    fn sync(&self, folder: &Path) -> io::Result<()> {
        match self.open_folder(folder) {
            Ok(folder) => folder.sync_all(),
            // Some systems cannot open a folder as a file. A folder that is writable but not readable cannot be
            // synced either. The file system syncs these later.
            Err(_) if !cfg!(unix) => Ok(()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn finalise_folder(&self, entry: &Entry) -> io::Result<()> {
        let made = self.store.take_made(&entry.name);
        if !cfg!(unix) || !(made || self.rules.overwrite) {
            return Ok(());
        }
        let folder = match self.open_folder(&entry.name.path()) {
            Ok(folder) => folder,
            // It could not be created, which was already reported.
            Err(_) if !made => return Ok(()),
            Err(error) => return Err(error),
        };
        if let Some(time) = time_of(entry.modified) {
            folder.set_times(FileTimes::new().set_modified(time))?;
        }
        match self.exact_mode(entry) {
            // The quota counts only the contents of folders that the receiver can read.
            Some(mode) if self.rules.quota_bytes.is_some() => {
                set_permissions(&folder, mode | 0o500)
            }
            Some(mode) => set_permissions(&folder, mode | self.store.own_access.folder),
            None => Ok(()),
        }
    }

    /// Opens a folder as a file, to set its time and permissions and to sync it.
    fn open_folder(&self, path: &Path) -> io::Result<File> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        open_folder(&self.store.root, path)
    }

    /// The name of an unfinished file: the beginning of the file's name, for users, then a hash of the sender's key
    /// and the name.
    fn part_name(&self, name: &Name) -> String {
        let own: String = shown(name.last_part()).chars().take(OWN_NAME).collect();
        let own = own.replace(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)), "_");
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.peer.tag()).update(b"\0").update(name.bytes());
        format!("{own}.{}.part", &hasher.finalize().to_hex()[..16])
    }
}

/// The directory would exceed its limit, this number of bytes.
#[derive(Debug, thiserror::Error)]
#[error("over the quota of {0} bytes")]
struct OverQuota(u64);

/// A reader that reports the number of bytes read.
struct Counted<F> {
    file: File,
    read: F,
}

impl<F: Fn(u64)> io::Read for Counted<F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read(out)?;
        (self.read)(got as u64);
        Ok(got)
    }
}

/// Describes a failure for the sender, which knows the name of the entry.
pub fn describe(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AlreadyExists => {
            "another program has created a file of this name meanwhile".to_owned()
        }
        ErrorKind::NotADirectory => "a folder of its path exists as a file".to_owned(),
        ErrorKind::PermissionDenied if error.get_ref().is_some() => error.to_string(),
        _ if error.get_ref().is_some_and(|own| own.is::<OverQuota>()) => error.to_string(),
        _ => format!("could not write it: {error}"),
    }
}

fn has_size(entry: &Entry, there: &Metadata) -> bool {
    there.is_file() && there.len() == entry.size()
}

/// Whether the sender may learn that the existing file has the hash that it sent, because it knows the file's time.
fn is_from_sender(entry: &Entry, there: &Metadata) -> bool {
    has_size(entry, there) && has_time(there, entry.modified)
}

/// Whether a file has the sender's modification time. File systems without nanoseconds are compared by seconds.
fn has_time(there: &Metadata, stamp: Stamp) -> bool {
    let Ok(modified) = there.modified() else { return false };
    let Some(wanted) = time_of(stamp) else { return false };
    let modified = modified.into_std();
    let coarse = wanted.checked_sub(Duration::from_nanos(u64::from(stamp.nanoseconds)));
    modified == wanted || Some(modified) == coarse
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
fn mode_of(metadata: &Metadata) -> Option<u32> {
    use cap_std::fs::PermissionsExt;
    Some(metadata.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode_of(_: &Metadata) -> Option<u32> {
    None
}
