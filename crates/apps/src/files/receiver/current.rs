//! The file that is currently being written.

use std::io::{self, ErrorKind, Write};

use super::part::Part;
use crate::files::wire::Hash;

/// Bytes that are hashed and written at a time: large enough for disks, and small enough for a core's cache.
const CHUNK: usize = 256 << 10;

/// An open file, with the data that is not written yet.
pub struct OpenFile {
    /// Index of its entry.
    pub place: u32,
    part: Part,
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
    /// Bytes that have yet to arrive.
    left: u64,
}

impl OpenFile {
    /// A file whose last `left` bytes have yet to arrive. The hasher has processed the part before. The buffer is
    /// reused.
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

    /// Bytes that have yet to arrive.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Appends bytes, at most as many as have yet to arrive.
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

    /// Hashes and writes the buffered bytes.
    ///
    /// # Errors
    /// If they cannot be written. The file contains as many of them as fit.
    pub fn flush(&mut self) -> io::Result<()> {
        self.hasher.update(&self.buffer);
        let result = self.part.write_all(&self.buffer);
        self.buffer.clear();
        result
    }

    /// Writes the rest. Returns the complete file if it has this hash, and the buffer. A file with another hash is
    /// removed.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn complete(mut self, hash: &Hash) -> io::Result<(Option<Part>, Vec<u8>)> {
        self.flush()?;
        if self.hasher.finalize() == *hash {
            return Ok((Some(self.part), self.buffer));
        }
        self.part.discard();
        Ok((None, self.buffer))
    }

    /// The buffer, for reuse.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }
}

/// Whether the disk is full. All other files would fail as well, but the data that has arrived is worth keeping.
pub fn is_full(error: &io::Error) -> bool {
    [ErrorKind::StorageFull, ErrorKind::QuotaExceeded].contains(&error.kind())
}
