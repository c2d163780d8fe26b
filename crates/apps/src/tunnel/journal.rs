//! The journal: what a tunnel has changed on its machine, so that everything can be undone.
//!
//! Each change is written before it is made. After `kill -9` the next start of the tunnel finds the journal and undoes
//! what is in it. Devices and their addresses and routes end with the process, so that the journal does not name them.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use ropewalk_runtime::system::firewall;
use ropewalk_runtime::system::routes::{self, Route};
use serde::{Deserialize, Serialize};

/// Most bytes that are read of a journal.
const LARGEST: u64 = 1 << 20;

/// A change, and what was there before.
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
        /// What it held.
        before: String,
        /// What it holds now.
        after: String,
    },
    /// A file that was replaced.
    File {
        /// The file.
        file: PathBuf,
        /// What was there.
        before: Before,
        /// The text that is there now.
        after: String,
    },
}

/// What was there before a file was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Before {
    /// Nothing.
    Nothing,
    /// A file with this text.
    Text(String),
    /// A symbolic link to this place.
    Link(PathBuf),
}

/// Why a journal cannot be used.
#[derive(Debug)]
pub enum JournalError {
    /// Another process uses it: the tunnel is running.
    Running(String),
    /// It cannot be read or written.
    Io(PathBuf, io::Error),
    /// A change failed.
    Change(Change, io::Error),
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running(name) => write!(f, "the tunnel {name} is running"),
            Self::Io(file, error) => write!(f, "{}: {error}", file.display()),
            Self::Change(change, error) => write!(f, "cannot {change}: {error}"),
        }
    }
}

impl std::error::Error for JournalError {}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Route(route) => write!(f, "add a route to {}", route.to),
            Self::Firewall { table } => write!(f, "install the nftables table {table}"),
            Self::Value { file, .. } | Self::File { file, .. } => {
                write!(f, "write {}", file.display())
            }
        }
    }
}

/// The journal of a running tunnel.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    changes: Vec<Change>,
}

impl Journal {
    /// Opens the journal of the tunnel `name`, and undoes what an earlier process has left. Returns the journal and
    /// how much was undone.
    ///
    /// # Errors
    /// The tunnel is running, or the journal cannot be opened.
    pub fn open(directory: &Path, name: &str) -> Result<(Self, usize), JournalError> {
        let path = directory.join(format!("{name}.journal"));
        let failed = |error| JournalError::Io(path.clone(), error);
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Running(name.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut text = String::new();
        (&file).take(LARGEST).read_to_string(&mut text).map_err(failed)?;
        // The process may have been killed while it wrote the last line: that change was not made.
        let changes = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut journal = Self { path, file, changes };
        let left = journal.changes.len();
        journal.undo();
        Ok((journal, left))
    }

    /// Adds a route, also if it was added before and the system has removed it. Does nothing if it exists.
    ///
    /// # Errors
    /// As the system says.
    pub fn add_route(&mut self, route: &Route) -> Result<(), JournalError> {
        let change = Change::Route(route.clone());
        let recorded = self.changes.contains(&change);
        if !recorded {
            self.write(&change)?;
        }
        match routes::add_route(route) {
            Ok(true) => Ok(()),
            Ok(false) if recorded => Ok(()),
            // Somebody else's, which must stay.
            Ok(false) => self.forget(&change),
            Err(error) => {
                self.forget(&change)?;
                Err(JournalError::Change(change, error))
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

    /// Installs a table of the packet filter.
    ///
    /// # Errors
    /// As the system says.
    pub fn install(&mut self, table: &firewall::Table) -> Result<(), JournalError> {
        let change = Change::Firewall { table: table.name.clone() };
        if !self.changes.contains(&change) {
            self.write(&change)?;
        }
        firewall::install(table).map_err(|error| JournalError::Change(change, error))
    }

    /// Writes a value of the system, unless it is set.
    ///
    /// # Errors
    /// As the system says.
    pub fn set(&mut self, file: &Path, value: &str) -> Result<(), JournalError> {
        let failed = |error| JournalError::Io(file.to_owned(), error);
        let before = fs::read_to_string(file).map_err(failed)?.trim().to_owned();
        if before == value {
            return Ok(());
        }
        let change = Change::Value { file: file.to_owned(), before, after: value.to_owned() };
        self.write(&change)?;
        fs::write(file, value).map_err(|error| JournalError::Change(change, error))
    }

    /// Replaces a file.
    ///
    /// # Errors
    /// As the system says.
    pub fn replace(&mut self, file: &Path, text: &str) -> Result<(), JournalError> {
        let failed = |error| JournalError::Io(file.to_owned(), error);
        let before = match fs::read_link(file) {
            Ok(target) => Before::Link(target),
            Err(_) => match fs::read_to_string(file) {
                Ok(text) => Before::Text(text),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Before::Nothing,
                Err(error) => return Err(failed(error)),
            },
        };
        let change = Change::File { file: file.to_owned(), before, after: text.to_owned() };
        self.write(&change)?;
        put(file, text).map_err(|error| JournalError::Change(change, error))?;
        self.join_replacements(file);
        Ok(())
    }

    /// Of a file that was replaced twice, only what was there at first and what is there now is needed, unless somebody
    /// else has changed it in between.
    fn join_replacements(&mut self, file: &Path) {
        let of = |change: &Change| matches!(change, Change::File { file: one, .. } if one == file);
        let all = self.changes.iter().enumerate();
        let places: Vec<usize> = all.filter(|(_, one)| of(one)).map(|(place, _)| place).collect();
        let [.., first, last] = places[..] else { return };
        let Change::File { before: Before::Text(between), after: now, .. } = &self.changes[last]
        else {
            return;
        };
        let (between, now) = (between.clone(), now.clone());
        match &mut self.changes[first] {
            Change::File { after, .. } if *after == between => *after = now,
            _ => return,
        }
        self.changes.remove(last);
        let _ = self.rewrite();
    }

    /// Undoes all changes, the latest first. What others have changed meanwhile stays as it is.
    pub fn undo(&mut self) {
        while let Some(change) = self.changes.pop() {
            change.undo();
        }
        let _ = self.rewrite();
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
        let mut text = String::new();
        for change in &self.changes {
            text += &serde_json::to_string(change)?;
            text.push('\n');
        }
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.undo();
    }
}

impl Change {
    /// Undoes the change. Errors are ignored: what is gone needs no undoing, and the other changes must be undone in any
    /// case.
    fn undo(&self) {
        match self {
            Self::Route(route) => {
                let _ = routes::remove_route(route);
            }
            Self::Firewall { table } => {
                let _ = firewall::remove(table);
            }
            Self::Value { file, before, after } => {
                if fs::read_to_string(file).is_ok_and(|now| now.trim() == after) {
                    let _ = fs::write(file, before);
                }
            }
            Self::File { file, before, after } => {
                if fs::read_to_string(file).is_ok_and(|now| now == *after) {
                    let _ = restore(file, before);
                }
            }
        }
    }
}

/// Replaces a file at once, so that no reader sees half of it.
fn put(file: &Path, text: &str) -> io::Result<()> {
    let aside = file.with_extension("ropewalk-new");
    fs::write(&aside, text)?;
    let renamed = fs::rename(&aside, file);
    if renamed.is_err() {
        let _ = fs::remove_file(&aside);
        // A file that is mounted, as in containers, cannot be replaced.
        return fs::write(file, text);
    }
    renamed
}

fn restore(file: &Path, before: &Before) -> io::Result<()> {
    match before {
        Before::Nothing => fs::remove_file(file),
        Before::Text(text) => put(file, text),
        Before::Link(target) => {
            fs::remove_file(file)?;
            symlink(target, file)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("ropewalk-journal-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).expect("a new directory");
            Self(path)
        }

        fn open(&self) -> (Journal, usize) {
            Journal::open(&self.0.join("run"), "home").expect("nobody has it open")
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// What `kill -9` leaves: the file as it is, without its lock.
    fn kill(journal: Journal) {
        let journal = std::mem::ManuallyDrop::new(journal);
        journal.file.unlock().expect("it was locked");
    }

    #[test]
    fn files_and_values_are_restored_at_the_end_and_after_a_kill() {
        let place = Place::new("restore");
        let [value, text, link, target] =
            ["value", "text", "link", "target"].map(|name| place.0.join(name));
        fs::write(&value, "0\n").expect("written");
        fs::write(&text, "before").expect("written");
        fs::write(&target, "target").expect("written");
        symlink("target", &link).expect("a link");
        for killed in [false, true] {
            let (mut journal, left) = place.open();
            assert_eq!(left, 0);
            journal.set(&value, "1").expect("set");
            journal.replace(&text, "after").expect("replaced");
            journal.replace(&link, "own").expect("replaced");
            journal.replace(&place.0.join("new"), "own").expect("created");
            assert_eq!(fs::read_to_string(&link).expect("a file"), "own");
            assert_eq!(fs::read_to_string(&target).expect("a file"), "target");
            if killed {
                kill(journal);
                assert_eq!(place.open().1, 4, "all changes were found");
            } else {
                drop(journal);
            }
            assert_eq!(fs::read_to_string(&value).expect("a file"), "0");
            assert_eq!(fs::read_to_string(&text).expect("a file"), "before");
            assert_eq!(fs::read_link(&link).expect("a link"), Path::new("target"));
            assert!(!place.0.join("new").exists());
        }
    }

    #[test]
    fn what_others_have_changed_meanwhile_stays() {
        let place = Place::new("others");
        let file = place.0.join("resolv.conf");
        let (mut journal, _) = place.open();
        journal.replace(&file, "own").expect("replaced");
        fs::write(&file, "theirs").expect("written");
        drop(journal);
        assert_eq!(fs::read_to_string(&file).expect("a file"), "theirs");
    }

    #[test]
    fn a_file_that_is_replaced_many_times_takes_one_line_and_gets_its_first_text_back() {
        let place = Place::new("often");
        let file = place.0.join("resolv.conf");
        for killed in [false, true] {
            fs::write(&file, "before").expect("written");
            let (mut journal, _) = place.open();
            for text in ["one", "two", "one", "three"] {
                journal.replace(&file, text).expect("replaced");
                assert_eq!(journal.changes.len(), 1);
            }
            if killed {
                kill(journal);
                assert_eq!(place.open().1, 1);
            } else {
                drop(journal);
            }
            assert_eq!(fs::read_to_string(&file).expect("a file"), "before");
        }
        let (mut journal, _) = place.open();
        journal.replace(&file, "one").expect("replaced");
        fs::write(&file, "theirs").expect("written");
        journal.replace(&file, "two").expect("replaced");
        drop(journal);
        assert_eq!(fs::read_to_string(&file).expect("a file"), "theirs");
    }

    #[test]
    fn a_tunnel_runs_once() {
        let place = Place::new("once");
        let (_journal, _) = place.open();
        let second = Journal::open(&place.0.join("run"), "home").expect_err("it is running");
        assert_eq!(second.to_string(), "the tunnel home is running");
    }

    #[test]
    fn a_line_that_was_cut_off_is_ignored() {
        let place = Place::new("cut");
        let (mut journal, _) = place.open();
        journal.replace(&place.0.join("new"), "own").expect("created");
        journal.file.write_all(b"{\"firewall\":{\"ta").expect("written");
        kill(journal);
        assert_eq!(place.open().1, 1);
        assert!(!place.0.join("new").exists());
    }
}
