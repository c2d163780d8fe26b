//! Self-identifying messages: each contains its number and bytes derived from it.

use bytes::Bytes;

/// Number of streams with ordered messages. The next stream carries unordered ones.
pub const ORDERED_STREAMS: u16 = 4;
/// One of this many messages is larger than a packet.
const LARGE_EVERY: u64 = 16;
const HEADER: usize = 16;

/// Number and connection of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    pub connection: u64,
    pub number: u64,
}

/// The next value of a pseudo-random sequence (SplitMix64).
const fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Label {
    /// The stream of the message, and whether it is unordered.
    pub const fn stream(self) -> (u16, bool) {
        let at = (self.number % (ORDERED_STREAMS as u64 + 1)) as u16;
        (at, at == ORDERED_STREAMS)
    }

    pub fn message(self) -> Bytes {
        let draw = mix(self.number ^ self.connection.rotate_left(32));
        let most = if self.number.is_multiple_of(LARGE_EVERY) { 60_000 } else { 1800 };
        let size = HEADER + (draw % most) as usize;
        let mut bytes = Vec::with_capacity(size + 8);
        bytes.extend(self.connection.to_be_bytes());
        bytes.extend(self.number.to_be_bytes());
        let mut state = draw;
        while bytes.len() < size {
            state = mix(state);
            bytes.extend(state.to_be_bytes());
        }
        bytes.truncate(size);
        bytes.into()
    }

    /// The label that a message carries.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (connection, rest) = bytes.split_first_chunk()?;
        let number = rest.first_chunk()?;
        let [connection, number] = [connection, number].map(|part| u64::from_be_bytes(*part));
        Some(Self { connection, number })
    }
}
