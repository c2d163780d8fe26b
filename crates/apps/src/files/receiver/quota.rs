//! Limits how much senders may store on disk.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_std::fs::Dir;

use super::workdir::WorkDir;

/// Assumed cost of an entry in the file system besides its content, and the unit that content is rounded up to,
/// bytes.
const ENTRY_COST: u64 = 4096;
/// Deepest directory that is measured: the maximum depth of a name.
const DEPTH: usize = 2048;

/// Bytes that a file of this size is charged.
const fn cost(size: u64) -> u64 {
    size.saturating_add(ENTRY_COST - 1) / ENTRY_COST * ENTRY_COST + ENTRY_COST
}

/// Bytes that a directory holds, plus those that open files may still add.
///
/// All senders to a directory share it. Nothing is written without a reservation, so that simultaneous senders cannot
/// use the same space twice.
#[derive(Debug, Default)]
pub struct Usage(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Bytes on disk, plus the rest of all reservations.
    used: u64,
    /// Open unfinished files, by name.
    open: BTreeMap<String, Reservation>,
}

#[derive(Debug)]
struct Reservation {
    bytes: u64,
    lease: Arc<Lease>,
}

/// The right to write to an unfinished file. A sender that connects again may begin a file before its earlier
/// association has ended: the newer transfer takes the file over, and the older one can no longer change it.
#[derive(Debug, Default)]
pub struct Lease {
    is_revoked: Mutex<bool>,
}

impl Lease {
    /// Calls `act` unless another transfer has taken the file over, which waits until `act` has returned.
    ///
    /// # Errors
    /// That the file was taken over, or those of `act`.
    pub fn while_held<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let is_revoked = self.is_revoked.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_revoked {
            return Err(io::Error::other("a newer transfer sends the same file"));
        }
        act()
    }

    fn revoke(&self) {
        *self.is_revoked.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

impl Inner {
    fn add(&mut self, bytes: u64, limit: Option<u64>) -> bool {
        let sum = self.used.saturating_add(bytes);
        let fits = bytes == 0 || limit.is_none_or(|limit| sum <= limit);
        if fits {
            self.used = sum;
        }
        fits
    }

    fn remove(&mut self, bytes: u64) {
        // Saturating, because other programs may have deleted charged files.
        self.used = self.used.saturating_sub(bytes);
    }

    /// Bytes that an unfinished file is charged: its reservation or its size on disk.
    fn charged(&self, work: &WorkDir, part: &str) -> u64 {
        self.open.get(part).map_or_else(|| on_disk(work, part), |open| open.bytes)
    }

    /// Whether this lease is the current one of the file.
    fn holds(&self, part: &str, lease: &Arc<Lease>) -> bool {
        self.open.get(part).is_some_and(|open| Arc::ptr_eq(&open.lease, lease))
    }

    /// Ends a reservation. Returns the reserved bytes; none if another transfer has taken the file over.
    fn release(&mut self, part: &str, lease: &Arc<Lease>) -> Option<u64> {
        if !self.holds(part, lease) {
            return None;
        }
        self.open.remove(part).map(|open| open.bytes)
    }
}

impl Usage {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Measures everything in the directory, including files of other programs.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn measure(&self, root: &Dir, work: &WorkDir) -> io::Result<()> {
        let mut inner = self.lock();
        // Files grow meanwhile: their sizes are taken first, so that no byte is missed.
        let rest =
            |(part, open): (&String, &Reservation)| open.bytes.saturating_sub(on_disk(work, part));
        let rest: u64 = inner.open.iter().map(rest).fold(0, u64::saturating_add);
        inner.used = measure(root)?.saturating_add(rest);
        Ok(())
    }

    /// Additional charge if an unfinished file grew to this size, bytes.
    pub fn growth(&self, work: &WorkDir, part: &str, size: u64) -> u64 {
        cost(size).saturating_sub(self.lock().charged(work, part))
    }

    /// Whether so many more bytes fit within the limit.
    pub fn has_room(&self, bytes: u64, limit: u64) -> bool {
        bytes == 0 || self.lock().used.saturating_add(bytes) <= limit
    }

    /// Charges a directory that will be created. Returns false if it exceeds the limit.
    pub fn add_folder(&self, limit: Option<u64>) -> bool {
        self.lock().add(cost(0), limit)
    }

    /// Reverses the charge of a directory that was not created.
    pub fn remove_folder(&self) {
        self.lock().remove(cost(0));
    }

    /// Reserves the space that an unfinished file of this final size may need, and takes the file over from a
    /// transfer that has it open. None if the reservation exceeds the limit.
    pub fn open(
        &self,
        work: &WorkDir,
        part: &str,
        size: u64,
        limit: Option<u64>,
    ) -> Option<Arc<Lease>> {
        let mut inner = self.lock();
        let before = inner.charged(work, part);
        let bytes = before.max(cost(size));
        if !inner.add(bytes - before, limit) {
            return None;
        }
        let lease = Arc::<Lease>::default();
        let reservation = Reservation { bytes, lease: lease.clone() };
        if let Some(older) = inner.open.insert(part.to_owned(), reservation) {
            older.lease.revoke();
        }
        Some(lease)
    }

    /// Ends a reservation of an unfinished file. Its bytes on disk remain charged.
    pub fn close(&self, work: &WorkDir, part: &str, lease: &Arc<Lease>) {
        let mut inner = self.lock();
        if let Some(bytes) = inner.release(part, lease) {
            inner.remove(bytes);
            inner.add(on_disk(work, part), None);
        }
    }

    /// Removes an unfinished file unless another transfer has taken it over. It stays charged until it is closed.
    pub fn discard(&self, work: &WorkDir, part: &str, lease: &Arc<Lease>) {
        if self.lock().holds(part, lease) {
            work.remove(part);
        }
    }

    /// Gives an unfinished file its name by calling `rename`, which returns the size of the replaced file. The
    /// reservation ends if that succeeds.
    ///
    /// # Errors
    /// Those of `rename`, and that another transfer has taken the file over.
    pub fn publish(
        &self,
        part: &str,
        lease: &Arc<Lease>,
        size: u64,
        rename: impl FnOnce() -> io::Result<Option<u64>>,
    ) -> io::Result<()> {
        let mut inner = self.lock();
        let replaced = lease.while_held(rename)?;
        let reserved = inner.release(part, lease).unwrap_or(0);
        inner.remove(reserved.saturating_add(replaced.map_or(0, cost)));
        inner.add(cost(size), None);
        Ok(())
    }
}

fn on_disk(work: &WorkDir, part: &str) -> u64 {
    work.size(part).map_or(0, cost)
}

fn measure(root: &Dir) -> io::Result<u64> {
    let mut sum: u64 = 0;
    let mut pending = vec![root.try_clone()?];
    while let Some(dir) = pending.pop() {
        for entry in dir.entries()? {
            let entry = entry?;
            let found = entry.metadata()?;
            sum = sum.saturating_add(cost(if found.is_file() { found.len() } else { 0 }));
            if found.is_dir() && pending.len() < DEPTH {
                pending.push(entry.open_dir()?);
            }
        }
    }
    Ok(sum)
}
