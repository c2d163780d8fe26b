//! The sender's list, as it comes. A hostile one cannot fill the memory.

use crate::files::broken::Broken;
use crate::files::manifest::{ENTRY_COST, ENTRY_LIMIT, LIST_LIMIT};
use crate::files::wire::Entry;

/// What has come of it.
#[derive(Debug, Default)]
pub struct List {
    entries: Vec<Entry>,
    /// What the entries take, bytes.
    memory: usize,
    bytes: u64,
}

impl List {
    /// Takes more of it.
    ///
    /// # Errors
    /// [`Broken::Violation`]: too much, or not in the order of names.
    pub fn add(&mut self, entries: Vec<Entry>) -> Result<(), Broken> {
        for entry in entries {
            if self.entries.last().is_some_and(|last| last.name >= entry.name) {
                return Err(Broken::Violation("its list is not in the order of names"));
            }
            self.memory += ENTRY_COST + entry.name.bytes().len();
            let sum = self.bytes.checked_add(entry.size());
            self.bytes = sum.ok_or(Broken::Violation("more bytes than there can be"))?;
            if self.entries.len() == ENTRY_LIMIT || self.memory > LIST_LIMIT {
                return Err(Broken::Violation("its list is too long"));
            }
            self.entries.push(entry);
        }
        Ok(())
    }

    /// All of it.
    ///
    /// # Errors
    /// [`Broken::Violation`]: that is not what the sender has counted.
    pub fn complete(self, count: u32, bytes: u64) -> Result<Vec<Entry>, Broken> {
        if self.entries.len() != count as usize || self.bytes != bytes {
            return Err(Broken::Violation("its list is not as long as it says"));
        }
        Ok(self.entries)
    }
}
