//! Common parts of receivers: results of arrivals, and measurements of buffer occupancy, blocking time and
//! application delay.

use ropewalk_base::{Duration, Histogram, Time};

/// Result of an arriving chunk or segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// New and next in order.
    InOrder,
    /// New, but earlier data is missing.
    OutOfOrder,
    /// Already received.
    Duplicate,
    /// No space in the buffer: not acknowledged.
    Refused,
    /// Inconsistent with its neighbours or its stream. RFC 9260, 3.3.1, 6.6, 6.9: fragments of a message have
    /// consecutive TSNs, one stream and one number, and no number occurs twice.
    Violation,
}

/// Measurements since the last reset. Bytes are chunks with their headers unless stated otherwise.
///
/// `repr(C)` keeps the order of the fields, with those that every input accesses first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct ReceiveStats {
    /// Chunks received, without duplicates.
    pub received: u64,
    /// Of those, chunks stored because earlier data was missing.
    pub stored: u64,
    held_bytes: u64,
    held_since: Time,
    /// User data delivered in order, bytes.
    pub delivered_bytes: u64,
    /// Chunks delivered in order.
    pub delivered_chunks: u64,
    /// Nanoseconds from arrival to in-order delivery, per chunk.
    pub blocking: Histogram,
    /// Nanoseconds from first transmission to in-order delivery, per chunk.
    pub app_delay: Histogram,
    /// Bytes held out of order, weighted by time in nanoseconds.
    pub occupancy: Histogram,
    /// Chunks received again: their retransmission was spurious.
    pub duplicates: u64,
    /// Chunks dropped because the buffer was full.
    pub refused: u64,
    /// Stored chunks that were dropped to make room for earlier data.
    pub reneged: u64,
}

impl ReceiveStats {
    /// Resets the measurements. Data that is held now stays counted.
    pub fn reset(&mut self, now: Time) {
        *self = Self { held_bytes: self.held_bytes, held_since: now, ..Self::default() };
    }

    /// Adds the time since the last change with the current occupancy.
    pub fn settle(&mut self, now: Time) {
        let lasted = now.since(self.held_since).as_nanos();
        self.occupancy.add_weighted(self.held_bytes, lasted);
        self.held_since = now;
    }

    #[inline]
    pub(crate) fn held_changed(&mut self, now: Time, bytes: u64) {
        if bytes != self.held_bytes {
            if now != self.held_since {
                self.settle(now);
            }
            self.held_bytes = bytes;
        }
    }

    #[inline]
    pub(crate) fn delivered(&mut self, now: Time, arrived: Time, first_sent: Time, payload: u32) {
        let waited: Duration = now.since(arrived);
        self.blocking.add(waited.as_nanos());
        self.app_delay.add(now.since(first_sent).as_nanos());
        self.delivered_bytes += payload as u64;
        self.delivered_chunks += 1;
    }
}
