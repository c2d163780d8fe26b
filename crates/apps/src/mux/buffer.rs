//! A buffer for bytes that wait for a reader or for transmission.

use bytes::{Buf, Bytes, BytesMut};

/// A larger buffer is freed when it is empty.
const KEPT: usize = 256 << 10;

/// A queue of bytes.
///
/// Received bytes are copied into the buffer: otherwise a peer that sends single bytes would make this end keep a
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

    /// The next `n` bytes, without copying.
    pub fn take(&mut self, n: usize) -> Bytes {
        self.bytes.split_to(n).freeze()
    }

    /// Moves as many bytes into `out` as fit. Returns their number.
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
