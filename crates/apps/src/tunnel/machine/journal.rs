//! The journal: the changes that a tunnel has made to its machine, so that everything can be undone.
//!
//! Each change is written before it is made. After `kill -9` the next start of the tunnel finds the journal and
//! undoes its changes. Devices with their addresses and routes end with the process, so the journal does not list
//! them.
//!
//! The journal is on disk, because files that a tunnel replaces also survive a reboot. Kernel state is undone only
//! where it was changed: in the same boot and network namespace.
//!
//! Several tunnels may need the same value of the system. Each has it in its journal, with the value before the first
//! of them. The last one that ends restores it.

mod closing;
mod origin;
mod replace;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ropewalk_runtime::system::firewall;
use ropewalk_runtime::system::routes::{self, Route};
use ropewalk_runtime::system::rules::{self, RoutingRule};
use serde::{Deserialize, Serialize};

pub use self::closing::CLOSED_TABLE;
use self::origin::{Origin, namespace};
use self::replace::put;
pub use self::replace::{Before, Content};
use self::values::read_value;
use super::name_servers::remove_record;

/// Maximum size of a journal, bytes. The rest is not read.
const LARGEST: u64 = 1 << 20;
/// File name extension of a journal.
pub const EXTENSION: &str = "journal";
/// The same for a journal that is about to replace another.
const DRAFT: &str = "journal-new";
/// The file whose lock a tunnel holds while it changes values that others may need.
const LOCK: &str = "lock";

/// A change, and the previous state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A route that does not end with the tunnel's interface. It names interfaces by their index, which they keep when
    /// they are renamed.
    Route(Route),
    /// A table of the packet filter.
    Firewall {
        /// Its name.
        table: String,
    },
    /// A file that holds one value, such as those below `/proc/sys`.
    Value {
        /// The file.
        file: PathBuf,
        /// The value before the change.
        before: String,
        /// The value after the change.
        after: String,
        /// A switch that also sets this value, and what it held. If it holds a different value at the end, another
        /// program needs the value as it is.
        #[serde(default)]
        switch: Option<(PathBuf, String)>,
        /// The network namespace, whose value it is.
        #[serde(default)]
        namespace: Option<PathBuf>,
    },
    /// A file that was replaced.
    File {
        /// The file.
        file: PathBuf,
        /// The previous content.
        before: Before,
        /// The text that is there now.
        after: Content,
    },
    /// A table of the packet filter that closes the machine.
    Closed {
        /// Its name.
        table: String,
    },
    /// The routing table that closes the machine.
    ClosedRouting,
    /// A rule of policy routing that closes the machine.
    Rule(RoutingRule),
    /// The machine stays closed when the tunnel ends.
    Held,
    /// Name servers that were passed to openresolv.
    NameServers {
        /// The record in which it keeps them.
        record: String,
    },
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process uses the journal: the tunnel is running.
    #[error("the tunnel {0} is running")]
    Running(String),
    /// The journal cannot be read or written.
    #[error("{file}: {1}", file = .0.display())]
    Io(PathBuf, io::Error),
    /// A change failed.
    #[error("cannot {0}: {1}")]
    Change(Box<Change>, io::Error),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Route(route) => write!(f, "add a route to {}", route.to),
            Self::Firewall { table } | Self::Closed { table } => {
                write!(f, "install the nftables table {table}")
            }
            Self::ClosedRouting | Self::Rule(_) => {
                write!(f, "add rules of policy routing (`ip rule`)")
            }
            Self::Held => write!(f, "keep the machine closed"),
            Self::Value { file, .. } | Self::File { file, .. } => {
                write!(f, "write {}", file.display())
            }
            Self::NameServers { record } => {
                write!(f, "give resolvconf the name servers of {record}")
            }
        }
    }
}

/// The journal of a running tunnel.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    origin: Origin,
    changes: Vec<Change>,
    /// Whether changes that close the machine stay when the journal is dropped.
    stays_closed: bool,
    /// Keep other programs from changing tables of the packet filter, by their names.
    owners: BTreeMap<String, firewall::Owner>,
}

impl Journal {
    /// Opens the journal of the tunnel `name`, and undoes the changes that an earlier process has left. Changes that
    /// close the machine stay if `stays_closed` is set, or if the machine is held closed. Returns the journal and how
    /// many changes were undone.
    ///
    /// # Errors
    /// The tunnel is running, or the journal cannot be opened.
    pub fn open(
        directory: &Path,
        name: &str,
        stays_closed: bool,
    ) -> Result<(Self, usize), JournalError> {
        let (mut journal, left) = Self::take(directory, name)?;
        let _lock = lock(directory).map_err(|error| JournalError::Io(directory.into(), error))?;
        journal.undo_locked(stays_closed || journal.is_held());
        let undone = left - journal.changes.len();
        Ok((journal, undone))
    }

    /// Opens the journal, including the changes that an earlier process has left, and returns how
    /// many they are.
    fn take(directory: &Path, name: &str) -> Result<(Self, usize), JournalError> {
        let path = path_of(directory, name);
        let failed = |error| JournalError::Io(path.clone(), error);
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let _lock = lock(directory).map_err(failed)?;
        let file = loop {
            let file = open_file(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(JournalError::Running(name.to_owned()));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // A running tunnel may have replaced the file after it was opened here.
            if is_at(&file, &path).map_err(failed)? {
                break file;
            }
        };
        let (origin, changes) = read_changes(&file).map_err(failed)?;
        let here = Origin::here();
        let is_here = origin.is_none_or(|origin| origin == here);
        let changes: Vec<Change> =
            changes.into_iter().filter(|change| is_here || change.lasts()).collect();
        let left = changes.len();
        drop(file);
        // The following changes belong to this boot and namespace. On a full disk the old journal stays, and
        // nothing is undone.
        let file = write_anew(&path, &here, &changes).map_err(failed)?;
        let journal = Self {
            path,
            file,
            origin: here,
            changes,
            stays_closed: false,
            owners: BTreeMap::new(),
        };
        Ok((journal, left))
    }

    /// Adds a route, even if it was added before and the system has removed it. Does nothing if it exists.
    ///
    /// # Errors
    /// The error of the system.
    pub fn add_route(&mut self, route: &Route) -> Result<(), JournalError> {
        let change = Change::Route(route.clone());
        let recorded = self.changes.contains(&change);
        if !recorded {
            self.write(&change)?;
        }
        match routes::add_route(route) {
            Ok(true) => Ok(()),
            Ok(false) if recorded => Ok(()),
            // The route belongs to another program and must stay.
            Ok(false) => self.forget(&change),
            Err(error) => {
                self.forget(&change)?;
                Err(JournalError::Change(Box::new(change), error))
            }
        }
    }

    /// Removes a route that was added.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn remove_route(&mut self, route: &Route) -> Result<(), JournalError> {
        let change = Change::Route(route.clone());
        change.undo();
        self.forget(&change)
    }

    /// The routes that were added.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.changes.iter().filter_map(|change| match change {
            Change::Route(route) => Some(route),
            _ => None,
        })
    }

    /// Installs a table of the packet filter. One of the same name is replaced in the same transaction.
    ///
    /// # Errors
    /// The error of the system.
    pub fn install(&mut self, table: &firewall::Table) -> Result<(), JournalError> {
        self.install_by(Change::Firewall { table: table.name.clone() }, table)
    }

    fn install_by(&mut self, change: Change, table: &firewall::Table) -> Result<(), JournalError> {
        if !self.changes.contains(&change) {
            self.write(&change)?;
        }
        let installed = match self.owners.get_mut(&table.name) {
            Some(owner) => owner.install(table),
            None => firewall::Owner::new().and_then(|owner| {
                self.owners.entry(table.name.clone()).or_insert(owner).install(table)
            }),
        };
        installed.map_err(|error| JournalError::Change(Box::new(change), error))
    }

    /// Replaces a file whose previous content was `before`.
    ///
    /// # Errors
    /// The error of the system.
    pub fn replace(
        &mut self,
        file: &Path,
        before: Before,
        text: &[u8],
    ) -> Result<(), JournalError> {
        let failed = |error| JournalError::Io(file.to_owned(), error);
        // Another process may undo the change, in another directory.
        let file = &std::path::absolute(file).map_err(failed)?;
        let after = Content(text.to_owned());
        let change = Change::File { file: file.to_owned(), before, after };
        self.write(&change)?;
        put(file, text).map_err(|error| JournalError::Change(Box::new(change), error))?;
        self.join_replacements(file);
        Ok(())
    }

    /// Passes name servers to openresolv by `add`, even if the record is known.
    ///
    /// # Errors
    /// The errors of `add`, or the journal cannot be written.
    pub fn add_name_servers(
        &mut self,
        record: &str,
        add: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), JournalError> {
        let change = Change::NameServers { record: record.to_owned() };
        if !self.changes.contains(&change) {
            self.write(&change)?;
        }
        add().map_err(|error| JournalError::Change(Box::new(change), error))
    }

    /// Joins two replacements of a file: only its first previous content and its current one are needed. If another
    /// program has changed the file in between, that program's content is restored.
    fn join_replacements(&mut self, file: &Path) {
        let of = |change: &Change| matches!(change, Change::File { file: one, .. } if one == file);
        let all = self.changes.iter().enumerate();
        let places: Vec<usize> = all.filter(|(_, one)| of(one)).map(|(place, _)| place).collect();
        let [.., first, last] = places[..] else { return };
        let mut latest = self.changes.remove(last);
        if let Change::File { before: between, .. } = &mut latest
            && let Change::File { before: at_first, after, .. } = &self.changes[first]
            && *between == Before::Text(after.clone())
        {
            *between = at_first.clone();
        }
        self.changes[first] = latest;
        let _ = self.rewrite();
    }

    /// Undoes all changes, the latest first. Changes by other programs stay, and so does everything that another
    /// running tunnel needs.
    pub fn undo(&mut self) {
        let _lock = lock(self.directory());
        let stays_closed = self.stays_closed || self.is_held() || std::thread::panicking();
        self.undo_locked(stays_closed);
    }

    fn undo_locked(&mut self, stays_closed: bool) {
        // Their tables stay, and can be removed.
        self.owners.clear();
        let running = self.others().filter(|(is_running, _)| *is_running);
        let needed: Vec<Change> = running.flat_map(|(_, all)| all).collect();
        let mut kept = Vec::new();
        while let Some(change) = self.changes.pop() {
            if stays_closed && change.closes() {
                kept.push(change);
            } else if !matches!(change, Change::Value { .. }) || !needed.contains(&change) {
                change.undo();
            }
        }
        kept.reverse();
        self.changes = kept;
        let _ = self.rewrite();
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or_else(|| Path::new("."))
    }

    /// Whether each of the other tunnels is running, and what it has changed. Needs the lock of the directory.
    fn others(&self) -> impl Iterator<Item = (bool, Vec<Change>)> {
        let entries = fs::read_dir(self.directory()).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let is_other = |path: &PathBuf| {
            path.extension().is_some_and(|it| it == EXTENSION) && *path != self.path
        };
        paths.filter(is_other).filter_map(|path| {
            let file = File::open(path).ok()?;
            let is_running = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            Some((is_running, read_changes(&file).ok()?.1))
        })
    }

    fn write(&mut self, change: &Change) -> Result<(), JournalError> {
        let failed = |error| JournalError::Io(self.path.clone(), error);
        let mut line = serde_json::to_string(change).map_err(|error| failed(error.into()))?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(failed)?;
        self.changes.push(change.clone());
        Ok(())
    }

    fn forget(&mut self, change: &Change) -> Result<(), JournalError> {
        self.changes.retain(|other| other != change);
        self.rewrite().map_err(|error| JournalError::Io(self.path.clone(), error))
    }

    fn rewrite(&mut self) -> io::Result<()> {
        self.file = write_anew(&self.path, &self.origin, &self.changes)?;
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.undo();
    }
}

impl Change {
    /// Undoes the change. Errors are ignored: a change that is gone needs no undoing, and the other changes must be
    /// undone in any case.
    fn undo(&self) {
        match self {
            Self::Route(route) => {
                let _ = routes::remove_route(route);
            }
            Self::Firewall { table } | Self::Closed { table } => {
                let _ = firewall::remove(table);
            }
            Self::ClosedRouting => closing::open_routing(),
            Self::Rule(rule) => {
                let _ = rules::remove(rule);
            }
            Self::Held => {}
            Self::Value { file, before, after, switch, namespace: place } => {
                let is_here = place.is_none() || *place == namespace();
                let is_held = |(switch, held): &(PathBuf, String)| {
                    read_value(switch).is_ok_and(|now| now == *held)
                };
                if is_here
                    && switch.as_ref().is_none_or(is_held)
                    && read_value(file).is_ok_and(|now| now == *after)
                {
                    let _ = fs::write(file, before);
                }
            }
            Self::File { file, before, after } => {
                if fs::read(file).is_ok_and(|now| now == after.0) {
                    let _ = before.restore(file);
                }
            }
            Self::NameServers { record } => {
                let _ = remove_record(record);
            }
        }
    }

    /// Whether this closes the machine.
    const fn closes(&self) -> bool {
        matches!(self, Self::Closed { .. } | Self::ClosedRouting | Self::Rule(_) | Self::Held)
    }

    /// Whether this outlives the boot and the network namespace.
    const fn lasts(&self) -> bool {
        matches!(self, Self::File { .. } | Self::NameServers { .. })
    }
}

/// Undoes the changes that a killed tunnel has left, and opens the machine. Returns how many changes there were, and
/// creates nothing.
///
/// # Errors
/// The tunnel is running, or its journal cannot be opened.
pub fn undo(directory: &Path, name: &str) -> Result<usize, JournalError> {
    if !path_of(directory, name).exists() {
        return Ok(0);
    }
    let (mut journal, left) = Journal::take(directory, name)?;
    let _lock = lock(directory).map_err(|error| JournalError::Io(directory.into(), error))?;
    journal.undo_locked(false);
    Ok(left)
}

/// The tunnels whose processes have ended without undoing their changes, with the number of changes. Empty if this
/// process lacks permission.
pub fn left_behind(directory: &Path) -> Vec<(String, usize)> {
    // A tunnel that starts now waits for this lock, and does not mistake its own journal for one in use.
    let Ok(_lock) = lock(directory) else { return Vec::new() };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let left = |path: PathBuf| {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        path.extension().filter(|it| *it == EXTENSION)?;
        let file = File::open(&path).ok()?;
        file.try_lock_shared().ok()?;
        let changes = read_changes(&file).ok()?.1.len();
        (changes > 0).then_some((name, changes))
    };
    let mut found: Vec<_> = entries.filter_map(|entry| left(entry.path())).collect();
    found.sort_unstable();
    found
}

/// Whether the tunnel has a journal, so that it runs or its changes are known.
pub fn is_known(directory: &Path, name: &str) -> bool {
    let read = File::open(path_of(directory, name)).and_then(|file| {
        let is_running = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        Ok(is_running || !read_changes(&file)?.1.is_empty())
    });
    read.unwrap_or_default()
}

fn path_of(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.{EXTENSION}"))
}

/// Waits until no other tunnel changes values that several may need.
fn lock(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(directory.join(LOCK))?;
    file.lock()?;
    Ok(file)
}

/// Opens a journal, or creates it.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    options.open(path)
}

/// Replaces a journal, and returns the new one, locked. If the process is killed here, the old or the new journal
/// remains.
fn write_anew(path: &Path, origin: &Origin, changes: &[Change]) -> io::Result<File> {
    let mut text = serde_json::to_string(origin)?;
    text.push('\n');
    for change in changes {
        text += &serde_json::to_string(change)?;
        text.push('\n');
    }
    let draft = path.with_extension(DRAFT);
    let mut file = open_file(&draft)?;
    file.try_lock()?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&draft, path)?;
    Ok(file)
}

/// Whether this file is the one with the name.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match fs::metadata(path) {
        Ok(named) => Ok(id(named) == id(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Where the changes of a journal were made, and the changes. If the process was killed while it wrote the last line,
/// that change was not made.
fn read_changes(file: &File) -> io::Result<(Option<Origin>, Vec<Change>)> {
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    let lines = || bytes.split(|byte| *byte == b'\n');
    let origin = lines().next().and_then(|line| serde_json::from_slice(line).ok());
    Ok((origin, lines().filter_map(|line| serde_json::from_slice(line).ok()).collect()))
}
