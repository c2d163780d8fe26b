//! A step counter and deliberate defects, for tests that bound the engines' memory and work.
//!
//! Both exist in builds with debug assertions only; elsewhere every function here is empty and is
//! optimised away. They are per thread, and nothing in an engine depends on the counter.

/// A limit that a test disables, to show that the test would detect it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// Waiting messages of a stream take one slot per number, starting at the next one.
    DenseStreams,
    /// Held chunks take one slot per TSN, starting at the cumulative one.
    DenseTsns,
    /// Each fragment of a chunk takes as much work as a full chunk.
    QuadraticPieces,
    /// Chunks are charged by their length on the wire alone.
    UncountedBookkeeping,
    /// Replies to the peer queue without limit.
    UnboundedControl,
    /// Out-of-order segments of a byte stream are charged by their length alone.
    UncountedSegments,
    /// A subflow keeps any number of ranges received out of order.
    UnboundedRanges,
}

#[cfg(debug_assertions)]
mod counting {
    use std::cell::Cell;

    use super::Defect;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
        static DEFECT: Cell<Option<Defect>> = const { Cell::new(None) };
    }

    /// Counts `steps` elements read or moved.
    #[inline]
    pub fn count(steps: usize) {
        STEPS.set(STEPS.get() + steps as u64);
    }

    /// Returns the steps counted on this thread since the last call, and resets the counter.
    pub fn take() -> u64 {
        STEPS.take()
    }

    /// Enables a defect in all engines of this thread, or disables it.
    pub fn set_defect(defect: Option<Defect>) {
        DEFECT.set(defect);
    }

    /// Whether this defect is enabled.
    #[inline]
    pub fn has(defect: Defect) -> bool {
        DEFECT.get() == Some(defect)
    }
}

#[cfg(not(debug_assertions))]
mod counting {
    use super::Defect;

    /// Counts nothing in this build.
    #[inline(always)]
    pub const fn count(_: usize) {}

    /// Always 0 in this build.
    pub const fn take() -> u64 {
        0
    }

    /// Does nothing in this build.
    pub const fn set_defect(_: Option<Defect>) {}

    /// Never true in this build.
    #[inline(always)]
    pub const fn has(_: Defect) -> bool {
        false
    }
}

pub use counting::{count, has, set_defect, take};

/// Steps for moving this number of bytes within memory: moving 512 bytes takes about as long as reading an
/// element.
#[inline]
pub const fn moved(bytes: usize) -> usize {
    bytes / 512
}
