//! What a chunk carries: real bytes, or in a simulation their number alone.

use bytes::Bytes;

/// User data. A simulation copies and encodes no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// So many bytes of no matter what.
    Length(u32),
    /// These bytes.
    Bytes(Bytes),
}

impl Payload {
    /// How many bytes.
    #[inline]
    pub fn len(&self) -> u32 {
        match self {
            Self::Length(n) => *n,
            Self::Bytes(b) => b.len() as u32,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The piece from `at`, `len` bytes long; bytes are shared, not copied.
    ///
    /// # Panics
    /// If the piece does not lie within.
    #[inline]
    #[must_use]
    pub fn slice(&self, at: u32, len: u32) -> Self {
        assert!(at as u64 + len as u64 <= self.len() as u64, "piece beyond the payload");
        match self {
            Self::Length(_) => Self::Length(len),
            Self::Bytes(b) => Self::Bytes(b.slice(at as usize..(at + len) as usize)),
        }
    }

    /// Several pieces as one; lengths alone stay lengths.
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
        Self::Bytes(all.into())
    }
}
