//! Queue management.

pub(super) mod backlog;
mod codel;
pub(super) mod drop_tail;
mod dualpi2;
mod fifo;
pub(super) mod managed;
pub(super) mod red;

pub use codel::CoDel;
pub use drop_tail::Limit;
pub use dualpi2::DualPi2;
pub use red::Red;

/// Queue management of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueModel {
    /// Drops packets that do not fit (drop-tail).
    DropTail(Limit),
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    CoDel(CoDel),
    /// Two coupled queues, one of them for low-latency traffic.
    DualPi2(DualPi2),
}

impl Default for QueueModel {
    fn default() -> Self {
        Self::DropTail(Limit::Unlimited)
    }
}
