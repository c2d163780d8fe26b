//! Bytes from the application that have no sequence numbers yet.

use std::collections::VecDeque;

use crate::payload::Payload;

/// The unnumbered end of the stream.
#[derive(Clone, Debug, Default)]
pub struct ByteQueue {
    pieces: VecDeque<Payload>,
    bytes: u64,
}

impl ByteQueue {
    /// Number of bytes.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the queue is empty.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Adds bytes at the end.
    pub fn push(&mut self, payload: Payload) {
        self.bytes += payload.len() as u64;
        self.pieces.push_back(payload);
    }

    /// Takes up to `most` bytes from the front.
    pub fn take(&mut self, most: u32) -> Payload {
        let want = (most as u64).min(self.bytes) as u32;
        self.bytes -= want as u64;
        if self.pieces.front().is_some_and(|piece| piece.len() == want)
            && let Some(whole) = self.pieces.pop_front()
        {
            return whole;
        }
        let (mut parts, mut left) = (Vec::new(), want);
        while left > 0 {
            let Some(piece) = self.pieces.front_mut() else { break };
            let part = piece.len().min(left);
            parts.push(piece.slice(0, part));
            if part == piece.len() {
                self.pieces.pop_front();
            } else {
                *piece = piece.slice(part, piece.len() - part);
            }
            left -= part;
        }
        Payload::concat(&parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_and_joined_as_segments_want_them() {
        let mut queue = ByteQueue::default();
        for text in ["abcd", "e", "fghij"] {
            queue.push(Payload::from(bytes::Bytes::from_static(text.as_bytes())));
        }
        for (most, expected) in [(2, "ab"), (2, "cd"), (4, "efgh"), (9, "ij"), (9, "")] {
            let taken = queue.take(most);
            match &taken {
                Payload::Bytes(bytes) => assert_eq!(bytes[..], *expected.as_bytes()),
                Payload::Length(length) => assert_eq!((*length, expected), (0, "")),
            }
        }
        assert!(queue.is_empty());
    }
}
