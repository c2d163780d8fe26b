//! Payload of a chunk or segment: real bytes, or only their number in a simulation.

use std::sync::Arc;

use bytes::Bytes;

/// User data. A simulation copies and encodes no bytes, but moves many payloads, so the type is at most two
/// words long.
#[derive(Debug, PartialEq, Eq)]
pub enum Payload {
    /// This number of unspecified bytes.
    Length(u32),
    /// These bytes.
    Bytes(Arc<Bytes>),
}

impl Clone for Payload {
    #[inline]
    fn clone(&self) -> Self {
        match self {
            Self::Length(n) => Self::Length(*n),
            Self::Bytes(bytes) => Self::Bytes(bytes.clone()),
        }
    }

    /// Copies a length as a number, without the other variant's data.
    #[inline]
    fn clone_from(&mut self, other: &Self) {
        match other {
            Self::Length(n) => *self = Self::Length(*n),
            Self::Bytes(bytes) => *self = Self::Bytes(bytes.clone()),
        }
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(Arc::new(bytes))
    }
}

impl Payload {
    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> u32 {
        match self {
            Self::Length(n) => *n,
            Self::Bytes(b) => b.len() as u32,
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part from `at`, `len` bytes long. Bytes are shared, not copied.
    ///
    /// # Panics
    /// If the part exceeds the payload.
    #[inline]
    #[must_use]
    pub fn slice(&self, at: u32, len: u32) -> Self {
        assert!(at as u64 + len as u64 <= self.len() as u64, "piece beyond the payload");
        match self {
            Self::Length(_) => Self::Length(len),
            // Complete messages are the most common case.
            Self::Bytes(b) if len as usize == b.len() => Self::Bytes(b.clone()),
            Self::Bytes(b) => b.slice(at as usize..(at + len) as usize).into(),
        }
    }

    /// Copies the bytes, so that they do not keep a longer allocation alive.
    #[inline]
    pub fn own(&mut self) {
        if let Self::Bytes(bytes) = self {
            *self = Bytes::copy_from_slice(bytes).into();
        }
    }

    /// The bytes, or zeros if only the length is known.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Length(n) => vec![0; n as usize].into(),
            Self::Bytes(bytes) => Arc::unwrap_or_clone(bytes),
        }
    }

    /// Joins several payloads. If any of them is only a length, so is the result.
    #[must_use]
    pub fn concat(pieces: &[Self]) -> Self {
        if let [only] = pieces {
            return only.clone();
        }
        if pieces.iter().any(|p| matches!(p, Self::Length(_))) {
            return Self::Length(pieces.iter().map(Self::len).sum());
        }
        let mut all = Vec::with_capacity(pieces.iter().map(|p| p.len() as usize).sum());
        for piece in pieces {
            if let Self::Bytes(b) = piece {
                all.extend_from_slice(b);
            }
        }
        Bytes::from(all).into()
    }
}

/// Memory that Linux uses for a packet of `bytes` bytes from a virtual device: an allocation of a power
/// of two for the packet and a `struct skb_shared_info` (320), and a `struct sk_buff` (256). Drivers of
/// network cards may use more.
pub(crate) const fn packet_memory(bytes: u64) -> u64 {
    256 + (bytes + 320).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_no_longer_than_two_words() {
        assert!(size_of::<Payload>() <= 16, "{} B", size_of::<Payload>());
    }

    #[test]
    fn a_full_packet_takes_a_part_of_its_memory_that_depends_on_its_size() {
        // Measured: skmem of ss, for packets of 1500 B from a tun device with Linux 6.18.
        assert_eq!(packet_memory(1500), 2304);
        assert_eq!(packet_memory(9000), 16_640);
    }

    #[test]
    fn pieces_share_the_bytes_they_are_cut_from() {
        let all = Bytes::from_static(b"abcdef");
        let payload = Payload::from(all.clone());
        for (at, len) in [(0, 6), (2, 3), (1, 5)] {
            let piece = payload.slice(at, len).into_bytes();
            assert_eq!(piece, all[at as usize..(at + len) as usize]);
            assert_eq!(piece.as_ptr(), all[at as usize..].as_ptr());
        }
        assert_eq!(Payload::Length(3).into_bytes(), [0; 3][..]);
    }
}
