//! How much a sender may put on disk.

use std::io;
use std::sync::{Mutex, PoisonError};

use cap_std::fs::Dir;

/// What the file system is taken to keep per entry besides its content, and the unit that content is rounded to, bytes.
pub const ENTRY_COST: u64 = 4096;
/// Deepest directory that is measured: as deep as a name can be.
const DEPTH: usize = 2048;

/// Bytes on disk that a file of this size is charged.
pub const fn cost(size: u64) -> u64 {
    size.saturating_add(ENTRY_COST - 1) / ENTRY_COST * ENTRY_COST + ENTRY_COST
}

/// Room in a directory. It is measured when a sender comes, so that it holds across restarts.
#[derive(Debug)]
pub struct Quota {
    limit: u64,
    used: Mutex<u64>,
}

impl Quota {
    /// Measures everything in the directory, including what other programs put there.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn measure(root: &Dir, limit: u64) -> io::Result<Self> {
        Ok(Self { limit, used: Mutex::new(measure(root)?) })
    }

    /// Reserves room. False: there is too little.
    pub fn reserve(&self, bytes: u64) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        match used.checked_add(bytes) {
            Some(sum) if sum <= self.limit => {
                *used = sum;
                true
            }
            _ => false,
        }
    }

    /// The limit, bytes.
    pub const fn limit(&self) -> u64 {
        self.limit
    }
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
