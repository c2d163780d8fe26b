//! Counters of one end.

use ropewalk_base::Duration;

use crate::tunnel::Class;

/// Counters of one class at the sending side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClassCounters {
    /// Packets that were queued.
    pub queued: u64,
    /// Packets that left the queue for the association.
    pub sent: u64,
    /// Inner bytes of these.
    pub sent_bytes: u64,
    /// Packets dropped by CoDel.
    pub dropped_by_delay: u64,
    /// Packets dropped because the queues were full.
    pub dropped_by_limit: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// Packets sent on two paths.
    pub copied: u64,
    /// The longest time that a sent packet has waited in its queue.
    pub longest_wait: Duration,
}

/// Counters of the receiving side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiveCounters {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Packets that had arrived before; dropped.
    pub duplicates: u64,
    /// Packets delivered after later ones of their flow.
    pub late: u64,
    /// Packets that waited for an earlier one of their flow.
    pub held: u64,
    /// Gaps that were given up when the wait for them ended.
    pub gaps_given_up: u64,
    /// The longest wait.
    pub longest_hold: Duration,
    /// Maximum number of bytes that waited at the same time.
    pub held_bytes_max: u64,
}

/// Counters of one end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Sending side, in the order of [`Class`].
    pub classes: [ClassCounters; 3],
    /// Receiving side.
    pub receive: ReceiveCounters,
}

impl Counters {
    /// The counters of a class.
    pub const fn class(&self, class: Class) -> &ClassCounters {
        &self.classes[class as usize]
    }

    pub(crate) const fn class_mut(&mut self, class: Class) -> &mut ClassCounters {
        &mut self.classes[class as usize]
    }
}
