//! Queue management.

pub(super) mod backlog;
pub(super) mod codel;
pub(super) mod drop_tail;
pub(super) mod red;

pub use codel::CoDel;
pub use drop_tail::Limit;
pub use red::Red;

/// Queue management of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueModel {
    /// Drops what does not fit (drop-tail).
    DropTail(Limit),
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    CoDel(CoDel),
}

impl Default for QueueModel {
    fn default() -> Self {
        Self::DropTail(Limit::Unlimited)
    }
}
