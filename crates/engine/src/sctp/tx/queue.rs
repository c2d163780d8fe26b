//! Queue of messages to send, and their fragmentation into chunks (RFC 9260, 6.9).

mod scheduling;

use std::collections::{BTreeMap, VecDeque};

use ropewalk_base::{Duration, Serial16, StreamId, Time};

use self::scheduling::Scheduling;
use super::undelivered::Rest;
use crate::payload::Payload;
use crate::sctp::chunk::{Data, DataFlags};
use crate::sctp::extensions::partial_reliability::Limit;

/// Time after which a partially sent message is checked again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A queued message, or a run of equal ones.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub stream: StreamId,
    ssn: Serial16,
    ppid: u32,
    unordered: bool,
    /// The limits of [`Limit`], flat, because this takes less space.
    twice: bool,
    retransmissions: u8,
    immediate: bool,
    context: u32,
    /// One more than the priority, or 0 without one, because this takes less space. The two lowest
    /// priorities count as one.
    priority: u32,
    expires: Time,
    payload: Payload,
    /// Bytes of the message that have been cut into chunks.
    taken: u32,
    /// Number of further messages in the run, which are identical except for their SSNs. A bulk transfer
    /// is one long run.
    pub more: u32,
}

impl Waiting {
    /// Whether `other` can be counted as further messages of this run.
    #[inline]
    pub fn is_like(&self, other: &Self) -> bool {
        let same = matches!(
            (&self.payload, &other.payload),
            (Payload::Length(a), Payload::Length(b)) if a == b
        );
        let labels = self.stream == other.stream
            && self.ppid == other.ppid
            && self.unordered == other.unordered;
        same && labels && self.limit() == other.limit() && self.more < u32::MAX - other.more
    }

    /// User data of the run that has not been cut into chunks yet, bytes.
    pub fn bytes_left(&self) -> u64 {
        let len = u64::from(self.payload.len());
        len * (u64::from(self.more) + 1) - u64::from(self.taken)
    }

    #[inline]
    const fn limit(&self) -> Limit {
        let Self { expires, retransmissions, twice, immediate, context, .. } = *self;
        let priority = self.priority.checked_sub(1);
        Limit { expires, retransmissions, priority, twice, urgent: false, immediate, context }
    }

    /// The messages of the run, the first one without its part that has been cut.
    pub fn rests(&self) -> impl Iterator<Item = Rest> {
        let Self { stream, ssn, ppid, unordered, context, more, .. } = *self;
        (0..=more).map(move |at| {
            let taken = if at == 0 { self.taken } else { 0 };
            let ssn = if unordered { ssn } else { ssn.plus(at as u16) };
            let payload = self.payload.slice(taken, self.payload.len() - taken);
            Rest { stream, ssn, ppid, unordered, payload, whole: taken == 0, context }
        })
    }
}

/// The largest chunks that fit into a packet of every path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSizes {
    /// Maximum user data of a chunk of any message, bytes.
    pub payload: u32,
    /// Maximum user data of a datagram, bytes; at least `payload`.
    pub datagram: u32,
    /// Header of a chunk of any message, bytes.
    pub header: u32,
    /// Header of a datagram's chunk, bytes.
    pub datagram_header: u32,
}

impl ChunkSizes {
    /// The same chunks with the header of I-DATA or of DATA. `plain_datagrams`: datagrams are always
    /// DATA.
    pub const fn interleaved(self, interleaved: bool, plain_datagrams: bool) -> Self {
        let header = if interleaved { Data::INTERLEAVED_HEADER } else { Data::HEADER };
        let payload = self.payload + self.header - header;
        if plain_datagrams {
            return Self { payload, header, ..self };
        }
        Self { payload, header, datagram: payload, datagram_header: header }
    }

    /// Size of the largest chunk, bytes: that of a datagram, if it may be longer than others.
    #[inline]
    pub const fn full(self) -> u32 {
        self.datagram_header + self.datagram.next_multiple_of(4)
    }

    /// Size of a chunk with `payload` bytes of user data, bytes. An upper bound if it is a datagram.
    #[inline]
    pub const fn chunk_of(self, payload: u32) -> u32 {
        self.header + payload.next_multiple_of(4)
    }

    /// Maximum user data of the next chunk of a message with `left` unsent bytes, bytes.
    #[inline]
    fn most(self, message: &Waiting, left: u32) -> u32 {
        let is_datagram = message.unordered
            && left <= self.datagram
            && left == message.payload.len()
            && Data::is_datagram_stream(message.stream, message.ppid);
        if is_datagram { self.datagram } else { self.payload }
    }

    /// Number of chunks for the last `left` bytes of a message.
    #[inline]
    fn pieces(self, message: &Waiting, left: u32) -> u64 {
        // Without a division in the usual case.
        let most = self.most(message, left);
        if left != 0 && left <= most { 1 } else { left.div_ceil(most) as u64 }
    }
}

/// Messages in the order of submission. Each stream numbers its own.
///
/// With a stream scheduler, only the message to cut next is here, and the others are in its lanes.
///
/// `repr(C)` keeps the order of the fields, with those that every input accesses first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct SendQueue {
    chunks: u64,
    bytes: u64,
    /// Number of chunks that are delivered only after earlier ones: all except unordered unfragmented
    /// messages.
    waiting: u64,
    sizes: ChunkSizes,
    messages: VecDeque<Waiting>,
    /// Stream scheduler and interleaving. `None`: first come, first served, and DATA.
    scheduling: Option<Box<Scheduling>>,
    /// Whether no message expires before an earlier one.
    in_order_of_expiry: bool,
    next_ssn: Vec<Serial16>,
}

impl SendQueue {
    pub fn new(streams: u16, sizes: ChunkSizes) -> Self {
        Self {
            messages: VecDeque::new(),
            scheduling: None,
            in_order_of_expiry: true,
            next_ssn: vec![Serial16(0); streams as usize],
            bytes: 0,
            chunks: 0,
            waiting: 0,
            sizes,
        }
    }

    /// Queued user data, bytes.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of chunks that the queue will be cut into.
    #[inline]
    pub const fn chunks(&self) -> u64 {
        self.chunks
    }

    /// The largest chunks.
    #[inline]
    pub const fn sizes(&self) -> ChunkSizes {
        self.sizes
    }

    /// Sets the largest chunks from now on.
    pub fn cut_for(&mut self, sizes: ChunkSizes) {
        self.sizes = sizes;
        let mut counts = (0, 0);
        for message in self.messages.iter().chain(self.lanes()) {
            let len = message.payload.len();
            let whole = sizes.pieces(message, len);
            let rest = sizes.pieces(message, len - message.taken);
            let chunks = rest + u64::from(message.more) * whole;
            counts.0 += chunks;
            if !message.unordered || whole > 1 {
                counts.1 += chunks;
            } else if message.taken > 0 {
                counts.1 += rest;
            }
        }
        (self.chunks, self.waiting) = counts;
    }

    /// Whether the next chunk is an unordered unfragmented message.
    pub fn next_is_unordered_unfragmented(&self) -> bool {
        self.messages.front().is_some_and(|message| {
            let len = message.payload.len();
            let whole = message.taken == 0 && len <= self.sizes.most(message, len);
            whole && message.unordered
        })
    }

    /// Whether the queue contains only unordered unfragmented messages, which the peer delivers on
    /// arrival.
    #[inline]
    pub const fn is_all_unordered_unfragmented(&self) -> bool {
        self.waiting == 0
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Queues a message and `more` further ones like it.
    #[inline]
    pub fn push(
        &mut self,
        stream: StreamId,
        ppid: u32,
        payload: Payload,
        unordered: bool,
        more: u32,
        limit: Limit,
    ) {
        let count = u64::from(more) + 1;
        let next = &mut self.next_ssn[stream.0 as usize];
        let ssn = *next;
        if !unordered {
            *next = ssn.plus(count as u16);
        }
        self.bytes += count * payload.len() as u64;
        let Limit { expires, retransmissions, priority, twice, immediate, context, .. } = limit;
        let waiting = Waiting {
            stream,
            ssn,
            ppid,
            unordered,
            twice,
            retransmissions,
            immediate,
            context,
            priority: priority.map_or(0, |priority| priority.saturating_add(1)),
            expires,
            payload,
            taken: 0,
            more,
        };
        let pieces = self.sizes.pieces(&waiting, waiting.payload.len()).max(1);
        self.chunks += count * pieces;
        if !unordered || pieces > 1 {
            self.waiting += count * pieces;
        }
        if self.scheduling.is_some() {
            return self.push_to_lane(waiting);
        }
        self.push_last(waiting);
    }

    /// Adds a message at the end.
    #[inline(always)]
    fn push_last(&mut self, waiting: Waiting) {
        let (expires, more) = (waiting.expires, waiting.more);
        let last = self.messages.back();
        self.in_order_of_expiry = match last {
            Some(last) => self.in_order_of_expiry && last.expires <= expires,
            None => true,
        };
        match self.messages.back_mut() {
            Some(last) if last.is_like(&waiting) => last.more += more + 1,
            _ => self.messages.push_back(waiting),
        }
    }

    /// The queued messages, individually.
    pub fn rests(&self) -> impl Iterator<Item = Rest> {
        self.messages.iter().chain(self.lanes()).flat_map(Waiting::rests)
    }

    /// The rest of the next chunk's message.
    pub fn front_rest(&self) -> Option<Rest> {
        self.messages.front()?.rests().next()
    }

    /// The limits of the next chunk's message, `None` if the queue is empty.
    pub fn front_limit(&self) -> Option<Limit> {
        self.messages.front().map(Waiting::limit)
    }

    /// Whether the next chunk continues a message.
    pub fn is_within_message(&self) -> bool {
        self.messages.front().is_some_and(|message| message.taken > 0)
    }

    /// Drops the messages without a TSN whose lifetime is over (RFC 3758, 4.1, TR3). Later messages of
    /// their streams get the SSNs of the dropped ones, so the peer does not wait for these. Returns the
    /// number of dropped messages, and the earliest expiry of the remaining ones. Calls `told` with each
    /// run of dropped messages and their number.
    pub(super) fn drop_expired(
        &mut self,
        now: Time,
        mut told: impl FnMut(&Waiting, u64),
    ) -> (u64, Time) {
        let is_over = |message: &Waiting| message.expires <= now && message.taken == 0;
        let mut dropped = 0;
        while !self.has_lanes()
            && self.messages.front().is_some_and(|m| is_over(m) && m.unordered)
            && let Some(message) = self.messages.pop_front()
        {
            let count = u64::from(message.more) + 1;
            dropped += count;
            told(&message, count);
            self.discount(&message, message.payload.len(), count);
        }
        match self.messages.front() {
            None if !self.has_lanes() => return (dropped, Time::FAR_FUTURE),
            Some(first) if !self.has_lanes() && self.in_order_of_expiry && first.expires > now => {
                return (dropped, first.expires);
            }
            _ => {}
        }
        let mut next = Time::FAR_FUTURE;
        let all = self.drop_where(told, |message| {
            if is_over(message) {
                return u64::MAX;
            }
            // The first message of a run may have been sent in part; the others expire after it is gone.
            let least = if message.taken > 0 { now + LOOK_AGAIN } else { now };
            next = next.min(message.expires.max(least));
            0
        });
        (dropped + all, next)
    }

    /// User data of the messages that have a priority but no TSN, with this priority, bytes.
    pub fn priorities(&self) -> impl Iterator<Item = (u32, u64)> {
        let whole = self.messages.iter().chain(self.lanes()).filter(|message| message.taken == 0);
        whole.filter_map(|message| Some((message.limit().priority?, message.bytes_left())))
    }

    /// Drops messages that have no TSN. `count_of` returns how many of a run to drop, given their
    /// priority, length and number; otherwise like [`Self::drop_expired`]. Returns the number of dropped
    /// messages.
    pub(super) fn drop_messages(
        &mut self,
        mut count_of: impl FnMut(Option<u32>, u32, u64) -> u64,
        told: impl FnMut(&Waiting, u64),
    ) -> u64 {
        self.drop_where(told, |message| match message.taken {
            0 => {
                let count = u64::from(message.more) + 1;
                count_of(message.limit().priority, message.payload.len(), count)
            }
            _ => 0,
        })
    }

    #[cold]
    fn drop_where(
        &mut self,
        mut told: impl FnMut(&Waiting, u64),
        mut count_of: impl FnMut(&Waiting) -> u64,
    ) -> u64 {
        let (mut dropped, mut missing) = (0, BTreeMap::<u16, u16>::new());
        for mut message in self.take_all() {
            let before = missing.get(&message.stream.0).copied().unwrap_or(0);
            message.ssn = message.ssn.plus(before.wrapping_neg());
            let whole = u64::from(message.more) + 1;
            let count = count_of(&message).min(whole);
            if count > 0 {
                dropped += count;
                told(&message, count);
                self.discount(&message, message.payload.len(), count);
                if !message.unordered {
                    let missing = missing.entry(message.stream.0).or_default();
                    *missing = missing.wrapping_add(count as u16);
                }
            }
            if count < whole {
                message.more -= count as u32;
                self.put_anywhere(message);
            }
        }
        for (stream, missing) in missing {
            let next = &mut self.next_ssn[stream as usize];
            *next = next.plus(missing.wrapping_neg());
        }
        self.choose_stream();
        dropped
    }

    /// Drops the rest of the message that has TSNs in part, except for its next chunk, which becomes the
    /// last one.
    pub fn drop_rest(&mut self) {
        let Some(message) = self.messages.front_mut() else { return };
        let (taken, left) = (message.taken, message.payload.len() - message.taken);
        let size = left.min(self.sizes.most(message, left));
        let pieces = self.sizes.pieces(message, left) - 1;
        self.bytes -= u64::from(left - size);
        self.chunks -= pieces;
        self.waiting -= pieces;
        let mut others = message.clone();
        let more = std::mem::take(&mut message.more);
        message.payload = message.payload.slice(0, taken + size);
        if let Some(more) = more.checked_sub(1) {
            let ssn = if others.unordered { others.ssn } else { others.ssn.plus(1) };
            (others.more, others.ssn, others.taken) = (more, ssn, 0);
            self.put_second(others);
        }
    }

    /// Subtracts `count` messages of `bytes` bytes from the sums.
    fn discount(&mut self, message: &Waiting, bytes: u32, count: u64) {
        let pieces = self.sizes.pieces(message, bytes);
        self.count_watched(message.stream, |known| known - count);
        self.bytes -= count * u64::from(bytes);
        self.chunks -= count * pieces;
        if !message.unordered || pieces > 1 {
            self.waiting -= count * pieces;
        }
    }

    /// Size of the next chunk on the wire, bytes.
    #[inline(always)]
    pub fn next_bytes(&self) -> Option<u32> {
        let message = self.messages.front()?;
        let left = message.payload.len() - message.taken;
        Some(self.sizes.chunk_of(left.min(self.sizes.most(message, left))))
    }

    /// Length of the next chunk's user data if it is a datagram, bytes.
    pub fn next_datagram(&self) -> Option<u32> {
        let message = self.messages.front()?;
        let stream = Data::is_datagram_stream(message.stream, message.ppid);
        (stream && self.next_is_unordered_unfragmented()).then(|| message.payload.len())
    }

    /// Cuts the next chunk to fill `room` bytes, less than its full size. Must not be used if
    /// [`SendQueue::next_is_unordered_unfragmented`]: fragments of such a message would have to wait for
    /// each other at the peer.
    pub fn next_chunk_within(&mut self, room: u32, chunk: &mut Data) {
        let Some(message) = self.messages.front() else { return };
        let left = message.payload.len() - message.taken;
        let size = (room - self.sizes.header) / 4 * 4;
        // As many chunks as before, or one more.
        let pieces = |bytes| self.sizes.pieces(message, bytes);
        let more = pieces(left - size) + 1 - pieces(left);
        self.chunks += more;
        self.waiting += more;
        self.cut(size, chunk);
    }

    /// Cuts the next chunk into `chunk`, if the queue is not empty. The caller fills in its TSN and
    /// transmission time.
    #[inline(always)]
    pub fn next_chunk(&mut self, chunk: &mut Data) {
        let Some(message) = self.messages.front() else { return };
        let most = self.sizes.most(message, message.payload.len() - message.taken);
        self.cut(most, chunk);
    }

    /// Cuts the next chunk, of at most `most` bytes of user data.
    // Inlined by force, so that the chunk is written in place.
    #[inline(always)]
    fn cut(&mut self, most: u32, chunk: &mut Data) {
        let Some(message) = self.messages.front_mut() else { return };
        let left = message.payload.len() - message.taken;
        let size = left.min(most);
        let mut flags = DataFlags::default();
        if message.taken == 0 {
            flags = flags.and(DataFlags::BEGIN);
        }
        if size == left {
            flags = flags.and(DataFlags::END);
            // RFC 7053, 7.1: the I bit is set on the last chunk of the message.
            if message.immediate {
                flags = flags.and(DataFlags::IMMEDIATE);
            }
        }
        if message.unordered {
            flags = flags.and(DataFlags::UNORDERED);
        }
        chunk.stream = message.stream;
        chunk.ssn = message.ssn;
        chunk.ppid = message.ppid;
        chunk.flags = flags;
        match &message.payload {
            Payload::Length(_) => chunk.payload = Payload::Length(size),
            bytes @ Payload::Bytes(_) => chunk.payload = bytes.slice(message.taken, size),
        }
        message.taken += size;
        self.bytes -= size as u64;
        self.chunks -= 1;
        self.waiting -= !chunk.is_unordered_unfragmented() as u64;
        if size == left {
            match message.more.checked_sub(1) {
                None => {
                    self.messages.pop_front();
                }
                Some(more) => {
                    let ssn = if message.unordered { message.ssn } else { message.ssn.plus(1) };
                    (message.more, message.ssn, message.taken) = (more, ssn, 0);
                }
            }
        }
        if self.scheduling.is_some() {
            self.after_cut(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn sizes(chunk: u32) -> ChunkSizes {
        let payload = chunk - Data::HEADER;
        let header = Data::HEADER;
        ChunkSizes { payload, datagram: payload + 13, header, datagram_header: header }
    }

    fn next_of(queue: &mut SendQueue) -> Option<Data> {
        let mut chunk = Data::BLANK;
        let there = !queue.is_empty();
        queue.next_chunk(&mut chunk);
        there.then_some(chunk)
    }

    /// Number of chunks that the queue is cut into, and how many of them must wait at the peer.
    fn count(queue: &SendQueue) -> (u64, u64) {
        let mut rest = queue.clone();
        let next = || next_of(&mut rest);
        let all: Vec<_> = std::iter::from_fn(next).collect();
        let waiting = all.iter().filter(|chunk| !chunk.is_unordered_unfragmented()).count();
        (all.len() as u64, waiting as u64)
    }

    #[test]
    fn what_is_counted_is_what_comes_out_however_long_chunks_become_meanwhile() {
        let mut queue = SendQueue::new(1, sizes(1_216));
        for step in 0..3_000_u32 {
            let size = 1 + step * 389 % 4_001;
            let run = step % 3 + 1;
            for _ in 0..run {
                let (unordered, more) = (step % 2 == 0, step % 4);
                let limit = Limit { expires: Time::from_millis(step.into()), ..Limit::NONE };
                let ppid = step / 2 % 2;
                queue.push(StreamId(0), ppid, Payload::Length(size), unordered, more, limit);
            }
            match step % 7 {
                0 => queue.cut_for(sizes([616, 1_216, 1_436, 8_936][step as usize / 7 % 4])),
                1 | 2 => {
                    let next = queue.next_bytes().expect("there is something");
                    if next > 160 && !queue.next_is_unordered_unfragmented() {
                        let mut chunk = Data::BLANK;
                        queue.next_chunk_within(next - 8 - step % 100, &mut chunk);
                    }
                }
                3 if queue.is_within_message() => queue.drop_rest(),
                3 => {
                    let now = Time::from_millis(step.saturating_sub(400).into());
                    let (_, next) = queue.drop_expired(now, |_, _| {});
                    assert!(next > now);
                }
                _ => drop(next_of(&mut queue)),
            }
            if step % 50 == 0 {
                assert_eq!((queue.chunks, queue.waiting), count(&queue), "step {step}");
            }
        }
    }
}
