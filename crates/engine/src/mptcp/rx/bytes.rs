//! The shared, bounded receive buffer of a byte stream: reassembly by data sequence numbers and
//! release in order (RFC 8684, 3.3.1 and 3.3.5).

use std::collections::VecDeque;

use bytes::Bytes;
use ropewalk_base::Time;

use super::out_of_order::{Held, OutOfOrderSegments};
use crate::meter::{self, Defect};
use crate::payload::Payload;
use crate::receive::{Arrival, ReceiveStats};

/// Bookkeeping of out-of-order data that is not charged, bytes.
const FREE_BOOKKEEPING: u64 = 16 << 10;
/// When more than `CROWDED` payloads wait to be read, payloads shorter than `SHORT` bytes are joined up to
/// `JOINED` bytes: each payload costs about 150 bytes in addition to its data.
const CROWDED: usize = 64;
const SHORT: usize = 512;
const JOINED: usize = 4096;

/// Receive buffer of one connection. Data sequence numbers are unwrapped and begin at 0.
#[derive(Clone, Debug)]
pub struct ByteBuffer {
    capacity: u64,
    /// The next byte in order (RCV.NXT at data level).
    next: u64,
    held: OutOfOrderSegments,
    held_bytes: u64,
    ready: VecDeque<Payload>,
    /// Joined short payloads, which follow those of `ready`.
    short: Vec<u8>,
    ready_bytes: u64,
    /// Measurements. A chunk is the payload of one segment.
    pub stats: ReceiveStats,
}

impl ByteBuffer {
    /// An empty buffer of `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            next: 0,
            held: OutOfOrderSegments::default(),
            held_bytes: 0,
            ready: VecDeque::new(),
            short: Vec::new(),
            ready_bytes: 0,
            stats: ReceiveStats::default(),
        }
    }

    /// The data-level acknowledgement: all data before it has arrived.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes held out of order.
    #[inline]
    pub const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Bytes in the buffer: held out of order, or not read yet.
    #[inline]
    pub const fn waiting(&self) -> u64 {
        self.held_bytes + self.ready_bytes
    }

    /// The receive window to offer, counted from [`Self::next`]. Out-of-order data lies within the window;
    /// only data that the application has not read reduces it.
    #[inline]
    pub const fn window(&self) -> u64 {
        self.capacity.saturating_sub(self.ready_bytes)
    }

    /// Stores data that begins at `dsn`. Only the new part is kept.
    pub fn insert(&mut self, now: Time, dsn: u64, payload: Payload, first_sent: Time) -> Arrival {
        let end = dsn + payload.len() as u64;
        if end <= self.next || payload.is_empty() {
            self.stats.duplicates += 1;
            return Arrival::Duplicate;
        }
        if end > self.next + self.window() {
            self.stats.refused += 1;
            return Arrival::Refused;
        }
        if dsn == self.next && self.held.is_empty() {
            // The usual case needs no access to the held data.
            self.stats.received += 1;
            self.release(now, now, first_sent, payload);
            return Arrival::InOrder;
        }
        let Some((dsn, payload)) = self.new_part(dsn, payload) else {
            self.stats.duplicates += 1;
            return Arrival::Duplicate;
        };
        if dsn > self.next && self.is_crowded() {
            self.stats.refused += 1;
            return Arrival::Refused;
        }
        self.stats.received += 1;
        if dsn > self.next {
            self.stats.stored += 1;
            self.held_bytes += payload.len() as u64;
            self.held.insert(self.next, Held { dsn, payload, arrived: now, first_sent });
            self.stats.held_changed(now, self.held_bytes);
            return Arrival::OutOfOrder;
        }
        self.release(now, now, first_sent, payload);
        self.release_held(now);
        Arrival::InOrder
    }

    /// The part of a segment that is new, in one piece. For a peer that keeps its segment boundaries,
    /// that is the complete segment or nothing.
    fn new_part(&self, dsn: u64, payload: Payload) -> Option<(u64, Payload)> {
        let from = dsn.max(self.next);
        let start = from.max(self.held.end_before(from));
        let end = self.held.start_within(start, dsn + payload.len() as u64);
        if start >= end {
            return None;
        }
        let whole = start == dsn && end - dsn == payload.len() as u64;
        if whole {
            return Some((start, payload));
        }
        let mut part = payload.slice((start - dsn) as u32, (end - start) as u32);
        // A few new bytes must not keep a long segment in memory.
        part.own();
        Some((start, part))
    }

    #[inline]
    fn release(&mut self, now: Time, arrived: Time, first_sent: Time, payload: Payload) {
        self.next += payload.len() as u64;
        self.ready_bytes += payload.len() as u64;
        self.stats.delivered(now, arrived, first_sent, payload.len());
        match payload {
            Payload::Bytes(bytes) if self.ready.len() >= CROWDED && bytes.len() < SHORT => {
                self.short.extend_from_slice(&bytes);
                if self.short.len() >= JOINED {
                    self.finish_short();
                }
            }
            payload => {
                self.finish_short();
                self.ready.push_back(payload);
            }
        }
    }

    /// Turns the joined short payloads into one payload.
    #[inline]
    fn finish_short(&mut self) {
        if !self.short.is_empty() {
            let joined = std::mem::take(&mut self.short).into_boxed_slice();
            self.ready.push_back(Bytes::from(joined).into());
        }
    }

    /// Whether the bookkeeping of out-of-order data is too large to accept more. Segments of several hundred
    /// bytes never reach this limit.
    #[inline]
    fn is_crowded(&self) -> bool {
        let most = FREE_BOOKKEEPING + self.capacity / 8 * 5;
        self.held.cost() > most && !meter::has(Defect::UncountedSegments)
    }

    fn release_held(&mut self, now: Time) {
        while let Some(held) = self.held.take(self.next) {
            self.held_bytes -= held.payload.len() as u64;
            self.release(now, held.arrived, held.first_sent, held.payload);
        }
        self.stats.held_changed(now, self.held_bytes);
    }

    /// The next bytes for the application.
    #[inline]
    pub fn read(&mut self) -> Option<Payload> {
        if self.ready.is_empty() {
            self.finish_short();
        }
        let payload = self.ready.pop_front()?;
        self.ready_bytes -= payload.len() as u64;
        Some(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Payload {
        Payload::from(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn all(buffer: &mut ByteBuffer) -> Vec<u8> {
        let mut out = Vec::new();
        while let Some(Payload::Bytes(part)) = buffer.read() {
            out.extend_from_slice(&part);
        }
        out
    }

    #[test]
    fn early_bytes_wait_for_those_before_them_and_overlaps_are_cut() {
        let mut buffer = ByteBuffer::new(100);
        let mut insert = |dsn, text| buffer.insert(Time::ZERO, dsn, bytes(text), Time::ZERO);
        assert_eq!(insert(3, "def"), Arrival::OutOfOrder);
        assert_eq!(insert(8, "i"), Arrival::OutOfOrder);
        assert_eq!(insert(4, "ef"), Arrival::Duplicate);
        assert_eq!(insert(5, "fgh"), Arrival::OutOfOrder, "gh is new");
        assert_eq!(buffer.held_bytes(), 6);
        assert_eq!(buffer.insert(Time::ZERO, 0, bytes("abcd"), Time::ZERO), Arrival::InOrder);
        assert_eq!(all(&mut buffer), b"abcdefghi");
        assert_eq!((buffer.next(), buffer.held_bytes(), buffer.window()), (9, 0, 100));
        assert_eq!((buffer.stats.received, buffer.stats.stored), (4, 3));
    }

    #[test]
    fn what_lies_beyond_the_window_is_refused_and_unread_data_makes_the_window_smaller() {
        let mut buffer = ByteBuffer::new(4);
        assert_eq!(buffer.insert(Time::ZERO, 1, bytes("bcde"), Time::ZERO), Arrival::Refused);
        assert_eq!(buffer.insert(Time::ZERO, 0, bytes("abc"), Time::ZERO), Arrival::InOrder);
        assert_eq!(buffer.window(), 1);
        assert_eq!(buffer.insert(Time::ZERO, 3, bytes("de"), Time::ZERO), Arrival::Refused);
        all(&mut buffer);
        assert_eq!(buffer.insert(Time::ZERO, 3, bytes("de"), Time::ZERO), Arrival::InOrder);
    }
}
