//! An open unfinished file, and the quota reserved for it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::quota::Lease;
use super::store::Store;

/// An open unfinished file. Dropping it releases the rest of its reservation.
#[derive(Debug)]
pub struct Part {
    file: Option<File>,
    name: String,
    lease: Arc<Lease>,
    store: Arc<Store>,
}

impl Part {
    /// Opens the unfinished file of this name for writing from an offset up to a size. A transfer that has it open
    /// can no longer change it. `None` if the quota does not suffice.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(
        store: &Arc<Store>,
        name: String,
        offset: u64,
        size: u64,
        limit: Option<u64>,
    ) -> io::Result<Option<Self>> {
        let Some(lease) = store.usage.open(&store.work, &name, size, limit) else {
            return Ok(None);
        };
        let mut part = Self { file: None, name, lease, store: store.clone() };
        part.file = Some(part.store.work.write(&part.name, offset)?);
        Ok(Some(part))
    }

    /// The open file.
    pub fn file(&self) -> &File {
        self.file.as_ref().expect("it is open until it is published")
    }

    /// Closes the file of this size and gives it its path by calling `rename`, which receives the name of the
    /// unfinished file and returns the size of the replaced file.
    ///
    /// # Errors
    /// The errors of `rename`, or a newer transfer sends the same file; the file stays unfinished.
    pub fn publish(
        mut self,
        path: &Path,
        size: u64,
        rename: impl FnOnce(&str) -> io::Result<Option<u64>>,
    ) -> io::Result<()> {
        self.file = None;
        let (Store { usage, work, .. }, name) = (&*self.store, &self.name);
        usage.publish(work, name, &self.lease, path, size, || rename(name))?;
        self.name.clear();
        Ok(())
    }

    /// Removes the unfinished file.
    pub fn discard(mut self) {
        self.file = None;
        self.store.usage.discard(&self.store.work, &self.name, &self.lease);
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lease.while_held(|| self.file().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // An empty name means that the file was published.
        if !self.name.is_empty() {
            self.file = None;
            self.store.usage.close(&self.store.work, &self.name, &self.lease);
        }
    }
}
