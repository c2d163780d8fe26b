//! The file that is being written.

use std::io::{self, ErrorKind, Write};

use super::part::Part;
use crate::files::wire::Hash;

/// Bytes that are hashed and written at once: enough for disks, small enough for a core's cache.
const CHUNK: usize = 256 << 10;

/// An open file and what is on its way into it.
pub struct OpenFile {
    /// The place of its entry.
    pub place: u32,
    part: Part,
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
    /// Bytes that are still to come.
    left: u64,
}

impl OpenFile {
    /// A file from an offset on, `left` bytes before its end; the hasher has seen what is before. The buffer is an old one.
    pub fn new(
        place: u32,
        part: Part,
        hasher: blake3::Hasher,
        left: u64,
        mut buffer: Vec<u8>,
    ) -> Self {
        buffer.clear();
        Self { place, part, hasher, buffer, left }
    }

    /// Bytes that are still to come.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Takes bytes; no more than are still to come.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.left -= bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            if self.buffer.len() == CHUNK {
                self.flush()?;
            }
            bytes = later;
        }
        Ok(())
    }

    /// Hashes and writes what there is.
    ///
    /// # Errors
    /// If it cannot be written; as much of it as fits is in the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.hasher.update(&self.buffer);
        let result = self.part.write_all(&self.buffer);
        self.buffer.clear();
        result
    }

    /// The whole file, if its hash is this one, and the buffer.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn complete(mut self, hash: &Hash) -> io::Result<(Option<Part>, Vec<u8>)> {
        self.flush()?;
        let good = self.hasher.finalize() == *hash;
        Ok((good.then_some(self.part), self.buffer))
    }

    /// The buffer.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }
}

/// Whether there is no room: every other file of the sender would meet the same, and what has come is worth keeping.
pub fn is_full(error: &io::Error) -> bool {
    [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&error.kind())
}
