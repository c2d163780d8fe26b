//! Self-identifying messages with contents that both ends know. `usrsctp/pattern.h` implements the
//! same.
//!
//! A message has a header of 16 bytes in network order (magic, stream, 0, number within the stream,
//! length of the message). Its body comes from one table of pseudo-random bytes, from an offset that
//! depends on stream and number. This reveals lost, duplicated, truncated and wrongly reassembled
//! messages.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use bytes::Bytes;

/// Minimum length of a message, bytes.
pub const HEADER: usize = 16;
const MAGIC: u32 = 0x5257_4c4b;
/// A prime, so that neighbours never have the same offset.
const OFFSETS: u64 = 65_521;
const LONGEST: usize = 1 << 20;

fn table() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut bytes = Vec::with_capacity(OFFSETS as usize + LONGEST + 8);
        // Marsaglia's xorshift, little-endian.
        while bytes.len() < OFFSETS as usize + LONGEST {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend(state.to_le_bytes());
        }
        bytes
    })
}

/// Message `number` of `stream`, of `length` bytes.
///
/// # Panics
/// If it is shorter than its header, or longer than 1 MiB.
pub fn message(stream: u16, number: u32, length: usize) -> Bytes {
    assert!((HEADER..=LONGEST).contains(&length), "{length}");
    let from = ((u64::from(stream) * 7919 + u64::from(number) * 104_729) % OFFSETS) as usize;
    let mut bytes = Vec::with_capacity(length);
    for word in [MAGIC, u32::from(stream) << 16, number, length as u32] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(&table()[from..from + length - HEADER]);
    bytes.into()
}

/// The messages of a transfer: at least `total` bytes, over the streams in turn.
pub fn messages(total: usize, length: usize, streams: u16) -> impl Iterator<Item = (u16, Bytes)> {
    let count = total.div_ceil(length) as u32;
    let streams = u32::from(streams);
    (0..count)
        .map(move |i| ((i % streams) as u16, message((i % streams) as u16, i / streams, length)))
}

/// Compares received messages with the expected ones.
#[derive(Debug, Default)]
pub struct Checker {
    next: BTreeMap<u16, u32>,
    /// Received bytes.
    pub bytes: usize,
    /// Received messages.
    pub messages: usize,
}

impl Checker {
    /// Checks a complete message of an ordered stream.
    ///
    /// # Panics
    /// If it is not the next one, or differs from it.
    pub fn take(&mut self, stream: u16, bytes: &[u8]) {
        let number = self.next.entry(stream).or_default();
        let expected = message(stream, *number, bytes.len());
        assert!(
            bytes == expected,
            "stream {stream}, message {number}: {} bytes, begins {:?} instead of {:?}",
            bytes.len(),
            &bytes[..HEADER],
            &expected[..HEADER]
        );
        *number += 1;
        self.messages += 1;
        self.bytes += bytes.len();
    }

    /// Both ends restart their counters.
    pub fn restart(&mut self) {
        self.next.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_differs_a_message_that_is_missing_and_one_that_comes_twice_are_found() {
        let good: Vec<_> = messages(10_000, 1000, 2).collect();
        assert_eq!(good.len(), 10);
        let mut checker = Checker::default();
        good.iter().for_each(|(stream, bytes)| checker.take(*stream, bytes));
        assert_eq!((checker.messages, checker.bytes), (10, 10_000));
        let mut flipped = good[0].1.to_vec();
        flipped[999] ^= 1;
        let bad = [vec![flipped.into()], vec![good[2].1.clone()], vec![good[0].1.clone(); 2]];
        for messages in bad {
            let taken = std::panic::catch_unwind(|| {
                let mut checker = Checker::default();
                messages.iter().for_each(|bytes: &Bytes| checker.take(0, bytes));
            });
            assert!(taken.is_err());
        }
    }
}
