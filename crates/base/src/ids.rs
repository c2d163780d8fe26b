//! Small identifiers.

use core::fmt;

/// Index of a path within one association or session, in the order of the scenario file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PathId(pub u8);

impl PathId {
    /// Maximum number of paths of one association.
    pub const LIMIT: usize = 64;

    /// The index as `usize`, for slices.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The identifier of a slice index.
    ///
    /// # Panics
    /// If `index` is not below [`PathId::LIMIT`].
    #[inline]
    pub const fn from_index(index: usize) -> Self {
        assert!(index < Self::LIMIT, "more paths than an association may have");
        Self(index as u8)
    }
}

impl fmt::Debug for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path{}", self.0)
    }
}

/// A stream of an association (RFC 9260, 1.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct StreamId(pub u16);
