//! The receive buffer of an association: bounded, shared by all streams and paths, with reassembly and
//! in-order delivery (RFC 9260, 6.2, 6.5, 6.9).

mod charge;
mod interleaved;
mod messages;
mod partial;
mod promises;
mod ready;
mod restart;
mod runs;
mod skip;
mod slots;
#[cfg(test)]
mod tests;

use ropewalk_base::{Serial16, Serial32, StreamId, Time};

use self::messages::Messages;
use self::partial::PartialDelivery;
use self::ready::Ready;
pub use self::ready::{Message, Part};
use self::slots::{Held, Slots};
use super::gaps::Gaps;
use super::stream::InStreams;
use crate::meter;
use crate::payload::Payload;
use crate::receive::{Arrival, ReceiveStats};
use crate::sctp::{Data, DataFlags};

/// Receive buffer of one association.
///
/// `repr(C)` keeps the order of the fields, with those that every input accesses first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct ReceiveBuffer {
    capacity: u64,
    held_bytes: u64,
    /// Bytes kept elsewhere that count as bookkeeping of this buffer.
    reserved: u64,
    /// Whether any fragment of a message has arrived. Neighbouring chunks must then be checked for
    /// consistency, and there may be parts to deliver.
    fragmented: bool,
    /// Whether any chunk has been reported as non-renegable.
    promises: bool,
    /// Bytes that are not advertised, so that data before the received data finds room.
    headroom: u32,
    /// Largest chunk received so far, bytes.
    largest: u32,
    /// The highest TSN up to which waiting chunks are no longer dropped, if there are promises.
    promised: Serial32,
    /// Highest TSN that the sender has abandoned, 0 before the first.
    skipped_to: u64,
    /// The message that is being delivered in parts; its next TSN is the base of `slots`.
    begun: Option<PartialDelivery>,
    /// Highest TSN received in sequence, and the TSNs received beyond it.
    gaps: Gaps,
    /// Chunks that wait for earlier ones.
    slots: Slots,
    ready: Ready,
    streams: InStreams,
    /// Interleaved messages. `None`: chunks are DATA.
    messages: Option<Box<Messages>>,
    /// Bookkeeping of `messages`, bytes.
    message_cost: u64,
    /// Measurements.
    pub stats: ReceiveStats,
}

/// Highest TSN that is accepted, counted from the cumulative TSN. RFC 9260, 3.3.4: gap ack blocks have
/// 16-bit offsets, so a chunk beyond it could not be acknowledged.
const REACH: u64 = u16::MAX as u64;

/// Minimum part of the buffer that is freed when chunks to drop must be searched for.
const SEARCH_PART: u64 = 16;

#[inline]
fn charge_of(data: &Data) -> u64 {
    data.wire_len() as u64
}

/// The charge of a DATA chunk with `length` bytes of user data.
#[inline]
const fn charge_of_length(length: u32) -> u64 {
    Data::wire_len_of(length) as u64
}

impl ReceiveBuffer {
    /// Creates an empty buffer of `capacity` bytes that expects TSN `first` (unwrapped). `headroom`:
    /// bytes of it that are not advertised, at most half of the buffer.
    pub fn new(capacity: u64, headroom: u32, first: u64) -> Self {
        Self {
            capacity,
            headroom: u64::from(headroom).min(capacity / 2) as u32,
            gaps: Gaps::new(first - 1),
            slots: Slots::new(first),
            streams: InStreams::default(),
            messages: None,
            message_cost: 0,
            held_bytes: 0,
            ready: Ready::default(),
            begun: None,
            largest: 0,
            reserved: 0,
            fragmented: false,
            promises: false,
            skipped_to: 0,
            promised: Serial32(0),
            stats: ReceiveStats::default(),
        }
    }

    /// Expects TSN `first` (unwrapped) next. Unread messages are kept.
    pub fn start_over(&mut self, first: u64) {
        *self = Self {
            ready: std::mem::take(&mut self.ready),
            stats: std::mem::take(&mut self.stats),
            ..Self::new(self.capacity, self.headroom, first)
        };
    }

    /// Drops all out-of-order data, because the missing data will not arrive.
    pub fn forget(&mut self, now: Time) {
        self.held_bytes = 0;
        self.promises = false;
        self.slots.clear();
        self.gaps.clear();
        if let Some(messages) = &mut self.messages {
            **messages = Messages::new(messages.takes_datagrams);
            self.message_cost = 0;
        }
        self.stats.held_changed(now, 0);
    }

    /// Drops everything, including messages that could be read.
    pub fn discard(&mut self, now: Time) {
        self.forget(now);
        self.ready = Ready::default();
        self.begun = None;
    }

    /// Upper bound of the memory that the content occupies, bookkeeping included, bytes.
    pub fn occupied(&self) -> u64 {
        self.chunk_bytes() + self.bookkeeping()
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

    /// Bytes of out-of-order data.
    #[inline]
    pub const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// SSN of the next message of a stream.
    pub(crate) fn next_on(&self, stream: StreamId) -> Serial16 {
        self.streams.next_of(stream)
    }

    /// Number of messages that can be read.
    pub fn ready_count(&self) -> usize {
        self.ready.len()
    }

    /// Bytes of messages that can be read.
    #[inline]
    pub const fn ready_bytes(&self) -> u64 {
        self.ready.bytes()
    }

    /// Size of the buffer, bytes.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Takes the next message and frees its room in the buffer.
    #[inline]
    pub fn read(&mut self) -> Option<Message> {
        self.ready.pop()
    }

    /// Like [`Self::read`], but returns only the length of the data, bytes.
    #[inline]
    pub fn skip(&mut self) -> Option<u32> {
        self.ready.skip()
    }

    /// Processes a DATA chunk with unwrapped TSN `tsn`.
    pub fn on_data(&mut self, now: Time, tsn: u64, data: Data) -> Arrival {
        if self.messages.is_some() || data.is_interleaved() {
            return self.on_i_data(now, tsn, data);
        }
        let charge = charge_of_length(data.payload.len());
        if let Some(refused) = self.refuse(now, tsn, &data, charge) {
            return refused;
        }
        self.fragmented |= !data.flags.has(DataFlags::WHOLE);
        if !self.fits(tsn, &data) {
            return Arrival::Violation;
        }
        self.note_size(charge);
        self.stats.received += 1;
        self.take(now, tsn, data, charge)
    }

    /// The reason for refusing a chunk, `None` if it is new and there is room for it.
    #[inline(always)]
    fn refuse(&mut self, now: Time, tsn: u64, data: &Data, charge: u64) -> Option<Arrival> {
        if tsn <= self.cumulative() || self.gaps.contains(tsn) {
            self.stats.duplicates += 1;
            return Some(Arrival::Duplicate);
        }
        let out_of_reach = tsn - self.cumulative() > REACH;
        if out_of_reach || charge > self.free() && !self.make_room(now, tsn, data) {
            self.stats.refused += 1;
            if tsn == self.cumulative() + 1 {
                self.note_size(charge);
                self.offer_part(now);
            }
            return Some(Arrival::Refused);
        }
        None
    }

    #[inline(always)]
    const fn note_size(&mut self, charge: u64) {
        if charge > self.largest as u64 {
            self.largest = charge as u32;
        }
    }

    /// Accepts a chunk for which there is room.
    #[inline(always)]
    fn take(&mut self, now: Time, tsn: u64, data: Data, charge: u64) -> Arrival {
        let in_order = tsn == self.cumulative() + 1;
        if in_order && self.passes(&data) {
            self.pass_through(now, data);
            return Arrival::InOrder;
        }
        if in_order {
            self.gaps.advance();
        } else {
            self.gaps.insert(tsn);
            self.stats.stored += 1;
        }
        if !self.keep_or_release(now, tsn, data, charge) {
            return Arrival::Violation;
        }
        self.finish_take(now, in_order)
    }

    /// Finishes the arrival of a chunk that is stored or delivered.
    #[inline(always)]
    fn finish_take(&mut self, now: Time, in_order: bool) -> Arrival {
        self.slots.drop_released(self.gaps.cumulative());
        if in_order && self.gaps.is_empty() {
            self.offer_part(now);
        }
        self.stats.held_changed(now, self.held_bytes);
        if in_order { Arrival::InOrder } else { Arrival::OutOfOrder }
    }

    /// Whether a chunk in sequence can be delivered directly, with no other chunk waiting.
    #[inline(always)]
    fn passes(&self, data: &Data) -> bool {
        let first = self.held_bytes == 0 && self.gaps.is_empty() && self.slots.is_empty();
        first && data.flags.has(DataFlags::WHOLE) && {
            data.flags.has(DataFlags::UNORDERED) || self.streams.passes(data.stream, data.ssn)
        }
    }

    /// Delivers a chunk in sequence directly.
    #[inline(always)]
    fn pass_through(&mut self, now: Time, mut data: Data) {
        self.gaps.advance();
        self.slots.pass_first();
        debug_assert_eq!(self.slots.base(), self.gaps.cumulative() + 1, "nothing waits");
        if !data.flags.has(DataFlags::UNORDERED) {
            self.streams.advance(data.stream);
        }
        self.deliver(now, now, &mut data);
        self.stats.held_changed(now, 0);
    }

    /// Marks unwrapped `tsn` as received and discards its chunk.
    #[cold]
    pub fn on_unwanted(&mut self, now: Time, tsn: u64) {
        let known = tsn <= self.cumulative() || self.gaps.contains(tsn);
        if known || tsn - self.cumulative() > REACH {
            return;
        }
        if tsn == self.cumulative() + 1 {
            self.gaps.advance();
        } else if self.free() > 0 {
            self.gaps.insert(tsn);
        } else {
            return;
        }
        self.slots.mark_released(tsn, &self.gaps);
        self.slots.drop_released(self.gaps.cumulative());
        self.stats.held_changed(now, self.held_bytes);
    }

    /// RFC 9260, 6.2: if the buffer is full, chunks with the highest TSNs may be dropped to make room for
    /// lower ones. TSNs covered by the cumulative TSN, delivered chunks, and those reported as
    /// non-renegable are never dropped.
    #[cold]
    fn make_room(&mut self, now: Time, tsn: u64, new: &Data) -> bool {
        let charge = charge_of(new);
        let mut goal = charge;
        let mut end = self.gaps.last().map_or(0, |last| last + 1);
        while self.free() < goal {
            let from = tsn.max(self.promised()) + 1;
            let Some(last) = self.slots.last_held_within(from, end) else {
                break;
            };
            self.renege(last);
            if last + 1 < end {
                // Chunks beyond it were delivered. Freeing more at a time amortizes the search.
                goal = charge + self.most_free() / SEARCH_PART;
                self.slots.trim();
            }
            end = last;
        }
        self.stats.held_changed(now, self.held_bytes);
        charge <= self.free() || self.is_owed(tsn, new)
    }

    /// Drops the waiting chunk `tsn`, the highest one that waits, as if it had never arrived.
    fn renege(&mut self, tsn: u64) {
        if self.messages.is_none() {
            self.cut_run(tsn);
        }
        let Some(Held { data, .. }) = self.slots.drop_held(tsn) else { return };
        self.held_bytes -= charge_of(&data);
        if let Some(messages) = &mut self.messages {
            messages.forget(&data);
            self.message_cost = messages.cost();
        } else if !data.flags.has(DataFlags::UNORDERED) {
            self.streams.forget(data.stream, data.ssn);
        }
        self.gaps.remove(tsn);
        self.stats.reneged += 1;
        meter::count(1);
    }

    /// Stores a chunk, or delivers the message that it completes. Returns false if its SSN is invalid on
    /// its stream.
    #[inline(always)]
    fn keep_or_release(&mut self, now: Time, tsn: u64, mut data: Data, charge: u64) -> bool {
        let whole = data.flags.has(DataFlags::WHOLE);
        let unordered = data.flags.has(DataFlags::UNORDERED);
        let stream = data.stream;
        if whole && (unordered || self.streams.is_next(stream, data.ssn)) {
            if tsn == self.slots.base() {
                self.slots.pass_first();
            } else {
                self.slots.mark_released(tsn, &self.gaps);
            }
            self.deliver(now, now, &mut data);
            if !unordered {
                self.streams.advance(stream);
                self.release_waiting(now, stream);
            }
            return true;
        }
        self.held_bytes += charge;
        let ssn = data.ssn;
        self.slots.keep(tsn, Held { data, arrived: now, run: tsn }, &self.gaps);
        // A complete message is a run of its own.
        let (first, last) = if whole { (tsn, tsn) } else { self.join(tsn) };
        if !whole && first == self.skipped_to + 1 && self.drop_orphans(first, last) {
            return true;
        }
        if first == self.slots.base() && self.begun.is_some() {
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
        let kept = self.streams.keep(stream, ssn, first..=last);
        if kept && ssn == self.streams.next_of(stream) {
            self.release_waiting(now, stream);
        }
        kept
    }

    #[inline]
    fn release_waiting(&mut self, now: Time, stream: StreamId) {
        if self.streams.has_waiting(stream) {
            self.release_all_waiting(now, stream);
        }
    }

    fn release_all_waiting(&mut self, now: Time, stream: StreamId) {
        while let Some(tsns) = self.streams.take_next(stream) {
            let (first, last) = (*tsns.start(), *tsns.end());
            if first == last {
                self.release_chunk(now, first);
            } else {
                self.release_message(now, first, last, Part::Whole);
            }
        }
    }

    /// Delivers a waiting message that consists of one chunk.
    #[inline(always)]
    fn release_chunk(&mut self, now: Time, tsn: u64) {
        meter::count(1);
        let Some(Held { data, arrived, .. }) = self.slots.near_mut(tsn) else {
            return self.release_far_chunk(now, tsn);
        };
        let length = data.payload.len();
        let charge = charge_of_length(length);
        self.held_bytes -= charge;
        self.stats.delivered(now, *arrived, data.first_sent, length);
        self.ready.push_chunk(data, charge);
        self.slots.drop_handed_over(tsn);
    }

    #[cold]
    fn release_far_chunk(&mut self, now: Time, tsn: u64) {
        let Some(Held { mut data, arrived, .. }) = self.slots.take(tsn) else { return };
        self.held_bytes -= charge_of(&data);
        self.deliver(now, arrived, &mut data);
    }

    fn release_message(&mut self, now: Time, first: u64, last: u64, part: Part) {
        if first == last && part == Part::Whole {
            return self.release_chunk(now, first);
        }
        let mut payloads = Vec::with_capacity((last - first + 1) as usize);
        let (mut charge, mut whole) = (0, None);
        for tsn in first..=last {
            meter::count(1);
            let Some(Held { data, arrived, .. }) = self.slots.take(tsn) else { continue };
            self.held_bytes -= charge_of(&data);
            self.stats.delivered(now, arrived, data.first_sent, data.payload.len());
            charge += charge_of(&data);
            let unordered = data.flags.has(DataFlags::UNORDERED);
            whole.get_or_insert((data.stream, data.ppid, unordered, data.ssn, data.tsn));
            payloads.push(data.payload);
        }
        if let Some((stream, ppid, unordered, ssn, tsn)) = whole {
            let payload = Payload::concat(&payloads);
            self.ready.push(Message { stream, ppid, ssn, tsn, payload, part, unordered, charge });
        }
    }

    /// Delivers a message that consists of one chunk.
    #[inline]
    fn deliver(&mut self, now: Time, arrived: Time, data: &mut Data) {
        let length = data.payload.len();
        self.stats.delivered(now, arrived, data.first_sent, length);
        self.ready.push_chunk(data, charge_of_length(length));
    }
}
