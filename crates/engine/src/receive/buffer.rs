//! The shared, bounded receive buffer: reassembly and release in order (RFC 9260, 6.2, 6.5, 6.9).

mod partial;
mod runs;

use std::collections::VecDeque;

use ropewalk_base::{StreamId, Time};

use self::partial::Begun;
use super::gaps::Gaps;
use super::stats::ReceiveStats;
use super::stream::InStream;
use crate::payload::Payload;
use crate::sctp::{Data, DataFlags};

/// How much of a message one [`Message`] is. Between the parts of one others may come, but whole
/// ones alone: at most one is delivered in parts at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// Its beginning: it is longer than the receive buffer (RFC 9260, 6.9).
    First,
    /// What follows the part before.
    Middle,
    /// Its end.
    Last,
}

/// A message for the user, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// On which stream.
    pub stream: StreamId,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// The user's data.
    pub payload: Payload,
    /// Whether that is all.
    pub part: Part,
    /// Whether it was sent unordered (U, RFC 9260, 3.3.1).
    pub unordered: bool,
    /// What it takes of the buffer until it is read, bytes.
    charge: u64,
}

impl Message {
    /// To be filled in where it lies: see [`Data::BLANK`].
    const BLANK: Self = Self {
        stream: StreamId(0),
        ppid: 0,
        payload: Payload::Length(0),
        part: Part::Whole,
        unordered: false,
        charge: 0,
    };
}

/// What became of an arriving chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// New and next in order.
    InOrder,
    /// New, but something before it is missing.
    OutOfOrder,
    /// Had come before.
    Duplicate,
    /// No room: not acknowledged.
    Refused,
    /// It contradicts its neighbours or its stream: fragments of a message have consecutive TSNs,
    /// one stream and one number, and no number comes twice (RFC 9260, 3.3.1, 6.6, 6.9).
    Violation,
}

#[derive(Clone, Debug)]
enum Slot {
    Missing,
    /// `run`: at either end of a run of fragments of one message, the TSN of the other end.
    Held {
        data: Data,
        arrived: Time,
        run: u64,
    },
    Released,
}

/// Receive buffer of one association.
#[derive(Clone, Debug)]
pub struct ReceiveBuffer {
    capacity: u64,
    /// Highest TSN received in sequence, and those received beyond it.
    gaps: Gaps,
    /// Slots from TSN `base` on.
    slots: VecDeque<Slot>,
    base: u64,
    streams: Vec<InStream>,
    held_bytes: u64,
    ready: VecDeque<Message>,
    ready_bytes: u64,
    /// The message that is being delivered in parts; its next TSN is `base`.
    begun: Option<Begun>,
    /// Largest chunk so far, bytes.
    largest: u64,
    /// What is measured.
    pub stats: ReceiveStats,
}

/// A gap block reaches no further (RFC 9260, 3.3.4: 16-bit offsets), and no chunk that could not be
/// acknowledged is kept.
const REACH: u64 = u16::MAX as u64;

fn charge_of(data: &Data) -> u64 {
    Data::wire_len_of(data.payload.len()) as u64
}

impl ReceiveBuffer {
    /// An empty buffer of `capacity` bytes that expects TSN `first` (unwrapped) on `streams` streams.
    pub fn new(capacity: u64, first: u64, streams: u16) -> Self {
        Self {
            capacity,
            gaps: Gaps::new(first - 1),
            slots: VecDeque::new(),
            base: first,
            streams: vec![InStream::default(); streams as usize],
            held_bytes: 0,
            ready: VecDeque::new(),
            ready_bytes: 0,
            begun: None,
            largest: 0,
            stats: ReceiveStats::default(),
        }
    }

    /// Expects TSN `first` (unwrapped) next; what the user has not read yet stays.
    pub fn start_over(&mut self, first: u64, streams: u16) {
        *self = Self {
            ready: std::mem::take(&mut self.ready),
            ready_bytes: self.ready_bytes,
            stats: std::mem::take(&mut self.stats),
            ..Self::new(self.capacity, first, streams)
        };
    }

    /// Drops what is held out of order: it will never be complete.
    pub fn forget(&mut self, now: Time) {
        self.held_bytes = 0;
        self.slots.clear();
        self.gaps.clear();
        self.stats.held_changed(now, 0);
    }

    /// Highest TSN received in sequence, unwrapped.
    #[inline]
    pub const fn cumulative(&self) -> u64 {
        self.gaps.cumulative()
    }

    /// TSNs received beyond the cumulative one.
    #[inline]
    pub const fn beyond(&self) -> &Gaps {
        &self.gaps
    }

    /// Bytes free: what is advertised.
    #[inline]
    pub const fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.held_bytes + self.ready_bytes)
    }

    /// Bytes held because something before them is missing.
    #[inline]
    pub const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Bytes that could be read.
    #[inline]
    pub const fn ready_bytes(&self) -> u64 {
        self.ready_bytes
    }

    /// All of it, bytes.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Takes the next message, and its room in the buffer with it.
    #[inline]
    pub fn read(&mut self) -> Option<Message> {
        let message = self.ready.pop_front()?;
        if self.ready.is_empty() {
            // Goes back to where it began, which is in the cache.
            self.ready.clear();
        }
        self.ready_bytes -= message.charge;
        Some(message)
    }

    /// As [`Self::read`], for who wants to know no more than the length of its data, bytes.
    #[inline]
    pub fn skip(&mut self) -> Option<u32> {
        let message = self.ready.front()?;
        let (length, charge) = (message.payload.len(), message.charge);
        if self.ready.len() == 1 {
            // Dropped where it lies: it has just been written, and to read it in one piece would wait
            // for that. And the next goes where it was, which is in the cache.
            self.ready.clear();
        } else {
            self.ready.pop_front();
        }
        self.ready_bytes -= charge;
        Some(length)
    }

    /// Takes a DATA chunk with unwrapped number `tsn`.
    pub fn on_data(&mut self, now: Time, tsn: u64, data: Data) -> Arrival {
        if tsn <= self.cumulative() || self.gaps.contains(tsn) {
            self.stats.duplicates += 1;
            return Arrival::Duplicate;
        }
        let charge = charge_of(&data);
        let out_of_reach = tsn - self.cumulative() > REACH;
        if out_of_reach || charge > self.free() && !self.make_room(now, tsn, charge) {
            self.stats.refused += 1;
            if tsn == self.cumulative() + 1 {
                self.offer_part(now);
            }
            return Arrival::Refused;
        }
        if !self.fits(tsn, &data) {
            return Arrival::Violation;
        }
        self.largest = self.largest.max(charge);
        self.stats.received += 1;
        let in_order = tsn == self.cumulative() + 1;
        if in_order {
            self.gaps.advance();
        } else {
            self.gaps.insert(tsn);
            self.stats.stored += 1;
        }
        if !self.keep_or_release(now, tsn, data) {
            return Arrival::Violation;
        }
        self.drop_released();
        if in_order && self.gaps.is_empty() {
            self.offer_part(now);
        }
        self.stats.held_changed(now, self.held_bytes);
        if in_order { Arrival::InOrder } else { Arrival::OutOfOrder }
    }

    /// Takes a chunk with unwrapped number `tsn` for received, without anything of it.
    #[cold]
    pub fn on_unwanted(&mut self, now: Time, tsn: u64) {
        let known = tsn <= self.cumulative() || self.gaps.contains(tsn);
        if known || tsn - self.cumulative() > REACH {
            return;
        }
        if tsn == self.cumulative() + 1 {
            self.gaps.advance();
        } else {
            self.gaps.insert(tsn);
        }
        self.mark_released(tsn);
        self.drop_released();
        self.stats.held_changed(now, self.held_bytes);
    }

    /// RFC 9260, 6.2: with the buffer full, the highest TSNs go to make room for lower ones; what
    /// is covered by the cumulative TSN never goes.
    #[cold]
    fn make_room(&mut self, now: Time, tsn: u64, charge: u64) -> bool {
        while charge > self.free() {
            let Some(last) = self.gaps.last().filter(|last| *last > tsn) else {
                return false;
            };
            let at = (last - self.base) as usize;
            self.cut_run(last);
            if !matches!(self.slots[at], Slot::Held { .. }) {
                // Already with the user: cannot be taken back.
                return false;
            }
            if let Slot::Held { data, .. } = std::mem::replace(&mut self.slots[at], Slot::Missing) {
                self.held_bytes -= charge_of(&data);
                if !data.flags.has(DataFlags::UNORDERED) {
                    self.streams[data.stream.0 as usize].forget(data.ssn);
                }
            }
            self.gaps.drop_last();
        }
        self.stats.held_changed(now, self.held_bytes);
        true
    }

    /// False if the number of the message makes no sense on its stream.
    #[inline]
    fn keep_or_release(&mut self, now: Time, tsn: u64, data: Data) -> bool {
        let whole = data.flags.has(DataFlags::WHOLE);
        let unordered = data.flags.has(DataFlags::UNORDERED);
        let stream = data.stream.0 as usize;
        if whole && (unordered || self.streams[stream].is_next(data.ssn)) {
            self.mark_released(tsn);
            self.deliver(now, now, data);
            if !unordered {
                self.streams[stream].advance();
                self.release_waiting(now, stream);
            }
            return true;
        }
        self.held_bytes += charge_of(&data);
        let ssn = data.ssn;
        self.fill(tsn, Slot::Held { data, arrived: now, run: tsn });
        // A whole message is a run of its own.
        let (first, last) = if whole { (tsn, tsn) } else { self.join(tsn) };
        if first == self.base && self.begun.is_some() {
            self.continue_part(now, last);
            return true;
        }
        if !whole && !self.is_complete(first, last) {
            return true;
        }
        if unordered {
            self.release_message(now, first, last, Part::Whole);
            return true;
        }
        let kept = self.streams[stream].keep(ssn, first..=last);
        if kept {
            self.release_waiting(now, stream);
        }
        kept
    }

    fn release_waiting(&mut self, now: Time, stream: usize) {
        while let Some(tsns) = self.streams[stream].take_next() {
            self.release_message(now, *tsns.start(), *tsns.end(), Part::Whole);
        }
    }

    /// Puts `slot` in the place of `tsn`, which is made if need be.
    #[inline]
    fn fill(&mut self, tsn: u64, slot: Slot) {
        let at = (tsn - self.base) as usize;
        if at < self.slots.len() {
            self.slots[at] = slot;
            return;
        }
        while self.slots.len() < at {
            self.slots.push_back(Slot::Missing);
        }
        self.slots.push_back(slot);
    }

    #[inline]
    fn mark_released(&mut self, tsn: u64) {
        if tsn == self.base && self.slots.is_empty() {
            self.base += 1;
            return;
        }
        self.fill(tsn, Slot::Released);
    }

    #[inline]
    fn drop_released(&mut self) {
        while self.base <= self.cumulative() && matches!(self.slots.front(), Some(Slot::Released)) {
            self.slots.pop_front();
            self.base += 1;
        }
    }

    fn held(&self, tsn: u64) -> Option<&Data> {
        match self.slots.get(tsn.checked_sub(self.base)? as usize)? {
            Slot::Held { data, .. } => Some(data),
            _ => None,
        }
    }

    fn release_message(&mut self, now: Time, first: u64, last: u64, part: Part) {
        if first == last && part == Part::Whole {
            if let Some((data, arrived)) = self.take_held(first) {
                self.deliver(now, arrived, data);
            }
            return;
        }
        let mut pieces = Vec::with_capacity((last - first + 1) as usize);
        let (mut charge, mut whole) = (0, None);
        for tsn in first..=last {
            let Some((data, arrived)) = self.take_held(tsn) else { continue };
            self.stats.delivered(now, arrived, data.first_sent, data.payload.len());
            charge += charge_of(&data);
            let unordered = data.flags.has(DataFlags::UNORDERED);
            whole.get_or_insert((data.stream, data.ppid, unordered));
            pieces.push(data.payload);
        }
        if let Some((stream, ppid, unordered)) = whole {
            self.ready_bytes += charge;
            let payload = Payload::concat(&pieces);
            self.ready.push_back(Message { stream, ppid, payload, part, unordered, charge });
        }
    }

    fn take_held(&mut self, tsn: u64) -> Option<(Data, Time)> {
        let slot = self.slots.get_mut((tsn - self.base) as usize)?;
        match std::mem::replace(slot, Slot::Released) {
            Slot::Held { data, arrived, .. } => {
                self.held_bytes -= charge_of(&data);
                Some((data, arrived))
            }
            other => {
                *slot = other;
                None
            }
        }
    }

    #[inline]
    fn deliver(&mut self, now: Time, arrived: Time, data: Data) {
        self.stats.delivered(now, arrived, data.first_sent, data.payload.len());
        let charge = charge_of(&data);
        self.ready_bytes += charge;
        self.ready.push_back(Message::BLANK);
        let Some(message) = self.ready.back_mut() else { return };
        (message.stream, message.ppid, message.charge) = (data.stream, data.ppid, charge);
        message.unordered = data.flags.has(DataFlags::UNORDERED);
        match data.payload {
            Payload::Length(n) => message.payload = Payload::Length(n),
            bytes @ Payload::Bytes(_) => message.payload = bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk_base::{Seed, Serial16, Serial32};

    fn piece(tsn: u64, stream: u16, ssn: u16, flags: DataFlags) -> Data {
        Data {
            tsn: Serial32::wrap(tsn),
            stream: StreamId(stream),
            ssn: Serial16(ssn),
            ppid: 0,
            flags,
            payload: Payload::Length(100),
            first_sent: Time::ZERO,
        }
    }

    fn whole(tsn: u64) -> Data {
        piece(tsn, 0, (tsn - 1) as u16, DataFlags::WHOLE)
    }

    #[test]
    fn what_waits_for_a_hole_is_held_and_released_with_it() {
        let mut buffer = ReceiveBuffer::new(10_000, 1, 1);
        assert_eq!(buffer.on_data(Time::from_millis(1), 2, whole(2)), Arrival::OutOfOrder);
        assert_eq!(buffer.on_data(Time::from_millis(2), 3, whole(3)), Arrival::OutOfOrder);
        assert_eq!(buffer.held_bytes(), 2 * 116);
        assert!(buffer.read().is_none());
        assert_eq!(buffer.on_data(Time::from_millis(5), 1, whole(1)), Arrival::InOrder);
        assert_eq!((buffer.cumulative(), buffer.held_bytes()), (3, 0));
        assert_eq!(std::iter::from_fn(|| buffer.read()).count(), 3);
        assert_eq!(buffer.free(), 10_000);
        assert_eq!(buffer.stats.blocking.max(), 4_000_000);
        assert_eq!(buffer.stats.stored, 2);
        assert_eq!(buffer.on_data(Time::from_millis(6), 2, whole(2)), Arrival::Duplicate);
    }

    #[test]
    fn a_hole_in_one_stream_does_not_hold_up_another() {
        let mut buffer = ReceiveBuffer::new(10_000, 1, 2);
        buffer.on_data(Time::ZERO, 2, piece(2, 1, 0, DataFlags::WHOLE));
        assert_eq!(buffer.read().map(|m| m.stream), Some(StreamId(1)));
        assert_eq!(buffer.held_bytes(), 0);
    }

    #[test]
    fn fragments_come_together_in_any_order() {
        let mut buffer = ReceiveBuffer::new(10_000, 1, 1);
        buffer.on_data(Time::ZERO, 3, piece(3, 0, 0, DataFlags::END));
        buffer.on_data(Time::ZERO, 1, piece(1, 0, 0, DataFlags::BEGIN));
        assert!(buffer.read().is_none());
        buffer.on_data(Time::ZERO, 2, piece(2, 0, 0, DataFlags::default()));
        assert_eq!(buffer.read().map(|m| m.payload.len()), Some(300));
    }

    #[test]
    fn a_full_buffer_gives_up_its_highest_chunk_for_the_hole_before_it() {
        let mut buffer = ReceiveBuffer::new(3 * 116, 1, 1);
        for tsn in 2..=4 {
            assert_eq!(buffer.on_data(Time::ZERO, tsn, whole(tsn)), Arrival::OutOfOrder);
        }
        assert_eq!(buffer.on_data(Time::ZERO, 5, whole(5)), Arrival::Refused);
        assert_eq!(buffer.on_data(Time::ZERO, 1, whole(1)), Arrival::InOrder);
        assert_eq!(buffer.cumulative(), 3);
    }

    #[test]
    fn random_orders_deliver_everything_once_and_in_order() {
        for case in 0..300 {
            let mut rng = Seed::root(case).child("order").rng();
            let n = 1 + rng.below(40);
            let mut tsns: Vec<u64> =
                (1..=n).chain((0..rng.below(10)).map(|_| 1 + rng.below(n))).collect();
            for i in (1..tsns.len()).rev() {
                tsns.swap(i, rng.below(i as u64 + 1) as usize);
            }
            let mut buffer = ReceiveBuffer::new(1 << 20, 1, 1);
            let mut out = 0;
            for tsn in &tsns {
                let mut data = whole(*tsn);
                data.ppid = *tsn as u32;
                buffer.on_data(Time::ZERO, *tsn, data);
                while let Some(message) = buffer.read() {
                    out += 1;
                    assert_eq!(message.ppid, out, "case {case}");
                }
            }
            assert_eq!((out as u64, buffer.cumulative(), buffer.held_bytes()), (n, n, 0));
            assert_eq!(buffer.free(), 1 << 20);
        }
    }

    #[test]
    fn long_messages_come_together_in_any_order_of_their_fragments() {
        for case in 0..200 {
            let mut rng = Seed::root(case).child("fragments").rng();
            let mut chunks = Vec::new();
            for ssn in 0..1 + rng.below(4) as u16 {
                let n = 1 + rng.below(30);
                for i in 0..n {
                    let begin = if i == 0 { DataFlags::BEGIN } else { DataFlags::default() };
                    let end = if i + 1 == n { DataFlags::END } else { DataFlags::default() };
                    chunks.push(piece(1 + chunks.len() as u64, 0, ssn, begin.and(end)));
                }
            }
            // Some come twice, and a small buffer gives some up again.
            let n = chunks.len();
            let mut order: Vec<usize> = (0..n).collect();
            for i in (1..n).rev() {
                order.swap(i, rng.below(i as u64 + 1) as usize);
            }
            let capacity = 116 * (1 + rng.below(2 * n as u64));
            let mut buffer = ReceiveBuffer::new(capacity, 1, 1);
            let mut bytes = 0;
            while buffer.cumulative() < n as u64 {
                let before = buffer.cumulative();
                for at in &order {
                    let verdict = buffer.on_data(Time::ZERO, 1 + *at as u64, chunks[*at].clone());
                    assert_ne!(verdict, Arrival::Violation, "case {case}");
                    while let Some(message) = buffer.read() {
                        bytes += u64::from(message.payload.len());
                    }
                    buffer.offer_part(Time::ZERO);
                }
                let moves = buffer.cumulative() > before || !buffer.ready.is_empty();
                assert!(moves, "case {case}: stuck at {before} of {n}, {capacity} B");
            }
            bytes +=
                std::iter::from_fn(|| buffer.read()).map(|m| m.payload.len() as u64).sum::<u64>();
            assert_eq!(bytes, 100 * n as u64, "case {case}");
            assert_eq!((buffer.held_bytes(), buffer.free()), (0, capacity), "case {case}");
        }
    }
}
