//! Receives the sender's list. A hostile sender cannot fill the memory.

use crate::files::error::TransferError;
use crate::files::manifest::{ENTRY_COST, ENTRY_LIMIT, LIST_LIMIT};
use crate::files::wire::Entry;

/// The list so far.
#[derive(Debug, Default)]
pub struct List {
    entries: Vec<Entry>,
    /// Memory of the entries, bytes.
    memory: usize,
    bytes: u64,
}

impl List {
    /// Adds entries.
    ///
    /// # Errors
    /// [`TransferError::Violation`]: the list is too long, or not in the order of names.
    pub fn add(&mut self, entries: Vec<Entry>) -> Result<(), TransferError> {
        for entry in entries {
            if self.entries.last().is_some_and(|last| last.name >= entry.name) {
                return Err(TransferError::Violation("its list is not in the order of names"));
            }
            self.memory += ENTRY_COST + entry.name.bytes().len();
            let sum = self.bytes.checked_add(entry.size());
            self.bytes = sum.ok_or(TransferError::Violation("more bytes than possible"))?;
            if self.entries.len() == ENTRY_LIMIT || self.memory > LIST_LIMIT {
                return Err(TransferError::Violation("its list is too long"));
            }
            self.entries.push(entry);
        }
        Ok(())
    }

    /// Returns the complete list.
    ///
    /// # Errors
    /// [`TransferError::Violation`]: the list does not match the sender's count or sum.
    pub fn complete(self, count: u32, bytes: u64) -> Result<Vec<Entry>, TransferError> {
        if self.entries.len() != count as usize || self.bytes != bytes {
            return Err(TransferError::Violation("its list differs from its stated length"));
        }
        Ok(self.entries)
    }
}
