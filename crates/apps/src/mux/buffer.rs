//! Bytes that wait for a reader, or for their turn.

use bytes::{Buf, Bytes, BytesMut};

/// An emptied buffer larger than this is given back.
const KEPT: usize = 256 << 10;

/// A queue of bytes.
///
/// What arrives is copied into it: a peer that sends single bytes would otherwise have us keep a
/// datagram for each of them.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: BytesMut,
}

impl Buffer {
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next `n` bytes as one piece, not copied.
    pub fn take(&mut self, n: usize) -> Bytes {
        self.bytes.split_to(n).freeze()
    }

    /// Moves as many bytes into `out` as fit; how many.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let n = out.len().min(self.bytes.len());
        out[..n].copy_from_slice(&self.bytes[..n]);
        self.bytes.advance(n);
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = BytesMut::new();
        }
        n
    }
}
