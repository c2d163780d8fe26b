//! Limits how much senders may store on disk.
//!
//! The account of a directory is measured at its first use and then updated: each change by a sender is charged while
//! the ledger is locked. A crash therefore loses nothing, and a transfer of a few files does not wait for a
//! measurement. A file with several names is charged for each of them, and a sparse file is charged its length.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::walk::{BOUNDS, walk};
use super::workdir::WorkDir;
use crate::files::names::HIDDEN;

/// Assumed cost of an entry in the file system in addition to its content, and the unit to which content is
/// rounded up, bytes.
const ENTRY_COST: u64 = 4096;
/// Minimum interval between two measurements of a directory, as a multiple of the duration of the last one.
const MEASURING_PAUSE: u32 = 20;

/// Bytes that are charged for a file of this size.
const fn cost(size: u64) -> u64 {
    size.saturating_add(ENTRY_COST - 1) / ENTRY_COST * ENTRY_COST + ENTRY_COST
}

/// The directories that a receiver serves, and their usage. A directory may lie in another one, and then counts as
/// part of it.
///
/// All senders share the ledger. Nothing is written without a reservation, so that simultaneous senders cannot use
/// the same space twice.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The measured directories, by canonical path.
    accounts: BTreeMap<PathBuf, Account>,
    /// Open unfinished files, by path.
    open: BTreeMap<PathBuf, Reservation>,
}

/// The usage of a directory.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// Bytes on disk, plus the rest of all reservations.
    used: u64,
    /// Earliest time of the next measurement.
    due: Instant,
}

#[derive(Debug)]
struct Reservation {
    bytes: u64,
    lease: Arc<Lease>,
}

/// The right to write to an unfinished file. A sender that connects again may start a file before its earlier
/// association has ended: the newer transfer takes the file over, and the older one can no longer change it.
#[derive(Debug, Default)]
pub struct Lease {
    is_revoked: Mutex<bool>,
}

impl Lease {
    /// Calls `act` unless another transfer has taken the file over. A takeover waits until `act` has returned.
    ///
    /// # Errors
    /// That the file was taken over, or those of `act`.
    pub fn while_held<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let is_revoked = self.is_revoked.lock();
        if *is_revoked {
            return Err(io::Error::other("a newer transfer sends the same file"));
        }
        act()
    }

    fn revoke(&self) {
        *self.is_revoked.lock() = true;
    }
}

impl Inner {
    /// Changes the accounts of the directories that contain this entry. A link in its path may lead into another
    /// directory, whose account misses the entry until its next measurement.
    fn around(&mut self, entry: &Path, change: impl Fn(&mut Account)) {
        for folder in entry.ancestors().skip(1) {
            if let Some(account) = self.accounts.get_mut(folder) {
                change(account);
            }
        }
    }

    fn add(&mut self, entry: &Path, bytes: u64) {
        self.around(entry, |account| account.used = account.used.saturating_add(bytes));
    }

    fn remove(&mut self, entry: &Path, bytes: u64) {
        // Saturating, because other programs may have deleted charged files.
        self.around(entry, |account| account.used = account.used.saturating_sub(bytes));
    }

    /// Whether this number of additional bytes fits into the directory.
    fn fits(&self, directory: &Path, bytes: u64, limit: Option<u64>) -> bool {
        let used = self.accounts.get(directory).map_or(0, |account| account.used);
        bytes == 0 || limit.is_none_or(|limit| used.saturating_add(bytes) <= limit)
    }

    /// Whether this lease is the current one of the file.
    fn holds(&self, part: &Path, lease: &Arc<Lease>) -> bool {
        self.open.get(part).is_some_and(|open| Arc::ptr_eq(&open.lease, lease))
    }

    /// Ends a reservation and its charge. Returns false if another transfer has taken the file over.
    fn release(&mut self, part: &Path, lease: &Arc<Lease>) -> bool {
        let held = self.holds(part, lease);
        if held && let Some(open) = self.open.remove(part) {
            self.remove(part, open.bytes);
        }
        held
    }

    /// Bytes in a directory, including files of other programs.
    fn measure(&self, directory: &Path, root: &Dir) -> io::Result<u64> {
        let reserved = self.open.iter().filter(|(part, _)| part.starts_with(directory));
        let mut used = reserved.map(|(_, open)| open.bytes).fold(0, u64::saturating_add);
        walk(root, BOUNDS, &mut |folder, name, found| {
            // An open file is charged its reservation, regardless of how much of it is written.
            let is_open = || self.open.contains_key(&directory.join(folder).join(name));
            if !(folder.ends_with(HIDDEN) && is_open()) {
                used = used.saturating_add(cost(if found.is_file() { found.len() } else { 0 }));
            }
        })?;
        Ok(used)
    }
}

/// The share of one directory in a [`Ledger`].
#[derive(Debug)]
pub struct Usage {
    ledger: Arc<Ledger>,
    /// Canonical path of the directory.
    directory: PathBuf,
}

impl Usage {
    /// The share of the directory with this canonical path. It has no account until it is measured.
    pub const fn new(ledger: Arc<Ledger>, directory: PathBuf) -> Self {
        Self { ledger, directory }
    }

    /// The ledger, for directories below this one.
    pub const fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    fn path_of(&self, part: &str) -> PathBuf {
        self.directory.join(HIDDEN).join(part)
    }

    /// Measures the directory for the first time, or again if that is due. Other programs may have changed it, while
    /// changes by senders are charged when they are made. If a measurement fails, an existing account stays in
    /// force.
    ///
    /// # Errors
    /// The directory has no account yet, and cannot be read.
    pub fn measure_if_due(&self, root: &Dir, now: impl Fn() -> Instant) -> io::Result<()> {
        let mut inner = self.ledger.0.lock();
        let (start, before) = (now(), inner.accounts.get(&self.directory).copied());
        if before.is_some_and(|before| start < before.due) {
            return Ok(());
        }
        let used = match (inner.measure(&self.directory, root), before) {
            (Ok(used), _) => used,
            (Err(_), Some(before)) => before.used,
            (Err(error), None) => return Err(error),
        };
        let end = now();
        let due = end + (end - start) * MEASURING_PAUSE;
        inner.accounts.insert(self.directory.clone(), Account { used, due });
        Ok(())
    }

    /// Makes the next measurement of the enclosing directories due: this one was created without a charge.
    pub fn expire_outer(&self, now: Instant) {
        self.ledger.0.lock().around(&self.directory, |account| account.due = now);
    }

    /// Bytes that the directory is charged, and all open unfinished files with their reservations.
    #[cfg(test)]
    pub fn account(&self) -> (Option<u64>, Vec<(PathBuf, u64)>) {
        let inner = self.ledger.0.lock();
        let open = inner.open.iter().map(|(path, open)| (path.clone(), open.bytes)).collect();
        (inner.accounts.get(&self.directory).map(|account| account.used), open)
    }

    /// Bytes that an unfinished file is charged: its reservation or its size on disk.
    fn charged(&self, inner: &Inner, work: &WorkDir, part: &str) -> u64 {
        let open = inner.open.get(&self.path_of(part));
        open.map_or_else(|| on_disk(work, part), |open| open.bytes)
    }

    /// Additional charge if an unfinished file grew to this size, bytes.
    pub fn growth(&self, work: &WorkDir, part: &str, size: u64) -> u64 {
        cost(size).saturating_sub(self.charged(&self.ledger.0.lock(), work, part))
    }

    /// Whether this number of additional bytes fits within the limit.
    pub fn has_room(&self, bytes: u64, limit: u64) -> bool {
        self.ledger.0.lock().fits(&self.directory, bytes, Some(limit))
    }

    /// Creates a directory by calling `make`. Returns false if that would exceed the limit.
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn make_folder(
        &self,
        path: &Path,
        limit: Option<u64>,
        make: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<bool> {
        let mut inner = self.ledger.0.lock();
        if !inner.fits(&self.directory, cost(0), limit) {
            return Ok(false);
        }
        make()?;
        inner.add(&self.directory.join(path), cost(0));
        Ok(true)
    }

    /// Reserves the space that an unfinished file of this final size may need, and takes the file over from a
    /// transfer that has it open. `None` if the reservation exceeds the limit.
    pub fn open(
        &self,
        work: &WorkDir,
        part: &str,
        size: u64,
        limit: Option<u64>,
    ) -> Option<Arc<Lease>> {
        let mut inner = self.ledger.0.lock();
        let before = self.charged(&inner, work, part);
        let bytes = before.max(cost(size));
        if !inner.fits(&self.directory, bytes - before, limit) {
            return None;
        }
        let path = self.path_of(part);
        inner.add(&path, bytes - before);
        let lease = Arc::<Lease>::default();
        let reservation = Reservation { bytes, lease: lease.clone() };
        if let Some(older) = inner.open.insert(path, reservation) {
            older.lease.revoke();
        }
        Some(lease)
    }

    /// Ends a reservation of an unfinished file. Its bytes on disk remain charged.
    pub fn close(&self, work: &WorkDir, part: &str, lease: &Arc<Lease>) {
        let (mut inner, path) = (self.ledger.0.lock(), self.path_of(part));
        if inner.release(&path, lease) {
            inner.add(&path, on_disk(work, part));
        }
    }

    /// Removes an unfinished file unless another transfer has taken it over. It stays charged until it is closed.
    pub fn discard(&self, work: &WorkDir, part: &str, lease: &Arc<Lease>) {
        let inner = self.ledger.0.lock();
        if inner.holds(&self.path_of(part), lease) {
            work.remove(part);
        }
    }

    /// Gives an unfinished file of this size its path by calling `rename`, which returns the size of the replaced file.
    /// The reservation ends if that succeeds.
    ///
    /// # Errors
    /// The errors of `rename`, or another transfer has taken the file over.
    pub fn publish(
        &self,
        work: &WorkDir,
        part: &str,
        lease: &Arc<Lease>,
        path: &Path,
        size: u64,
        rename: impl FnOnce() -> io::Result<Option<u64>>,
    ) -> io::Result<()> {
        let (mut inner, from, to) =
            (self.ledger.0.lock(), self.path_of(part), self.directory.join(path));
        let replaced = lease.while_held(rename)?;
        inner.release(&from, lease);
        // The file may still have the name of the unfinished file as well.
        inner.add(&from, on_disk(work, part));
        inner.remove(&to, replaced.map_or(0, cost));
        inner.add(&to, cost(size));
        Ok(())
    }
}

fn on_disk(work: &WorkDir, part: &str) -> u64 {
    work.size(part).map_or(0, cost)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::files::receiver::Store;
    use crate::files::test_support::TempDir;

    #[test]
    fn a_measurement_takes_at_most_a_twentieth_of_the_time() {
        let dir = TempDir::new("due");
        dir.write("in/first", b"1");
        let store = Store::open(&dir.path("in")).expect("a directory");
        // Each reading of this clock takes a second, and so does a measurement.
        let time = Cell::new(Instant::now());
        let measured = |pause: u64| {
            time.set(time.get() + Duration::from_secs(pause));
            let now = || time.replace(time.get() + Duration::from_secs(1));
            store.usage.measure_if_due(&store.root, now).expect("readable");
            store.account().0.expect("measured") / ENTRY_COST
        };
        // Two of the entries are the hidden directory and its lock.
        assert_eq!(measured(0), 4);
        dir.write("in/second", b"2");
        assert_eq!(measured(0), 4);
        // 19 s, then 20 s after the end of the first measurement.
        assert_eq!(measured(17), 4);
        assert_eq!(measured(0), 6);
        dir.write("in/third", b"3");
        assert_eq!(measured(0), 6);
    }
}
