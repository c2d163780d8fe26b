//! The parts of the queue for a stream scheduler and interleaving.

use std::collections::BTreeMap;

use ropewalk_base::{Serial16, StreamId, Time};

use super::{SendQueue, Waiting};
use crate::sctp::chunk::{Data, DataFlags};
use crate::sctp::extensions::interleaving::StreamScheduler;
use crate::sctp::extensions::stream_reconfiguration::Streams;
use crate::sctp::tx::held::Held;
use crate::sctp::tx::message_ids::MessageIds;
use crate::sctp::tx::stream_order::StreamOrder;

/// The order of streams, and the numbers of interleaved messages.
#[derive(Clone, Debug)]
pub(super) struct Scheduling {
    pub order: StreamOrder,
    /// `None`: messages are sent as DATA, without interleaving.
    ids: Option<MessageIds>,
    /// Number of messages of each watched stream whose last chunk has not been cut.
    watched: BTreeMap<u16, u64>,
    /// Messages that wait for a reset of their streams.
    held: Held,
}

impl Scheduling {
    fn new() -> Self {
        let order = StreamOrder::new(StreamScheduler::FirstCome);
        Self { order, ids: None, watched: BTreeMap::new(), held: Held::default() }
    }

    /// Whether the queue is equivalent to one without scheduling.
    fn is_plain(&self) -> bool {
        let first_come = self.order.scheduler() == StreamScheduler::FirstCome;
        let plain = first_come && self.order.values().next().is_none();
        plain && self.ids.is_none() && self.watched.is_empty() && self.held.is_idle()
    }
}

impl SendQueue {
    fn scheduling_mut(&mut self) -> &mut Scheduling {
        self.scheduling.get_or_insert_with(|| Box::new(Scheduling::new()))
    }

    /// Sends messages as I-DATA or as DATA from now on. Called before anything has been sent.
    /// `plain_datagrams`: datagrams are always sent as DATA.
    pub fn interleave(&mut self, interleaved: bool, plain_datagrams: bool) {
        if interleaved || self.is_interleaved() {
            let ids = interleaved.then(|| MessageIds::new(plain_datagrams));
            self.scheduling_mut().ids = ids;
        }
    }

    /// Whether messages are sent as I-DATA.
    pub fn is_interleaved(&self) -> bool {
        self.scheduling.as_ref().is_some_and(|scheduling| scheduling.ids.is_some())
    }

    /// The stream scheduler.
    pub fn stream_scheduler(&self) -> StreamScheduler {
        let scheduling = self.scheduling.as_ref();
        scheduling.map_or(StreamScheduler::FirstCome, |scheduling| scheduling.order.scheduler())
    }

    /// Changes the stream scheduler. Priorities and weights are kept.
    pub fn set_stream_scheduler(&mut self, scheduler: StreamScheduler) {
        if scheduler == self.stream_scheduler() {
            return;
        }
        let waiting = self.take_all();
        let mut order = StreamOrder::new(scheduler);
        let scheduling = self.scheduling_mut();
        scheduling.order.values().for_each(|(stream, value)| order.set_value(stream, value));
        scheduling.order = order;
        waiting.into_iter().for_each(|message| self.put_anywhere(message));
        self.choose_stream();
    }

    /// Sets priority or weight of a stream (RFC 8260, 4.3.3).
    pub fn set_stream_value(&mut self, stream: StreamId, value: u16) {
        self.scheduling_mut().order.set_value(stream, value);
        self.choose_stream();
    }

    /// The values that were set.
    pub fn stream_values(&self) -> Vec<(StreamId, u16)> {
        let scheduling = self.scheduling.as_ref();
        scheduling.map_or_else(Vec::new, |scheduling| scheduling.order.values().collect())
    }

    /// User data of a stream that has not been cut into chunks yet, bytes. Constant time with a stream
    /// scheduler; otherwise the queue is searched.
    pub fn bytes_of(&self, stream: StreamId) -> u64 {
        let front = self.messages.iter().filter(|message| message.stream == stream);
        let lane =
            self.scheduling.as_ref().map_or(0, |scheduling| scheduling.order.bytes_of(stream));
        front.map(Waiting::bytes_left).sum::<u64>() + lane
    }

    /// The messages in lanes.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Waiting> {
        self.scheduling.iter().flat_map(|scheduling| scheduling.order.messages())
    }

    /// Whether there are messages in lanes.
    pub(super) fn has_lanes(&self) -> bool {
        self.stream_scheduler() != StreamScheduler::FirstCome
    }

    /// Takes all messages, the partially fragmented one first.
    pub(super) fn take_all(&mut self) -> Vec<Waiting> {
        let mut all: Vec<Waiting> = std::mem::take(&mut self.messages).into();
        if let Some(scheduling) = &mut self.scheduling {
            all.extend(scheduling.order.drain());
        }
        all
    }

    /// Puts back a message that was taken by [`Self::take_all`], in the same order. [`Self::choose_stream`] follows.
    pub(super) fn put_anywhere(&mut self, message: Waiting) {
        match &mut self.scheduling {
            // RFC 9260, 6.9: the fragments of a message sent as DATA have consecutive TSNs.
            Some(scheduling) if scheduling.order.scheduler() != StreamScheduler::FirstCome => {
                let stays = message.taken > 0 && scheduling.ids.is_none();
                if let Some(front) = scheduling.order.push(message, stays) {
                    self.messages.push_front(front);
                }
            }
            _ => self.messages.push_back(message),
        }
    }

    /// Puts a message after the one in front, which is of the same stream.
    pub(super) fn put_second(&mut self, message: Waiting) {
        match &mut self.scheduling {
            Some(scheduling) if scheduling.order.scheduler() != StreamScheduler::FirstCome => {
                scheduling.order.put_back(message);
            }
            _ => self.messages.insert(1, message),
        }
    }

    /// Adds a message to its lane, or at the end.
    #[cold]
    pub(super) fn push_to_lane(&mut self, message: Waiting) {
        self.count_watched(message.stream, |count| count + u64::from(message.more) + 1);
        if !self.has_lanes() {
            return self.push_last(message);
        }
        if let Some(scheduling) = &mut self.scheduling {
            scheduling.order.push(message, false);
        }
        self.choose_stream();
    }

    /// Numbers a chunk that was cut, and lets the scheduler choose the next stream.
    #[cold]
    pub(super) fn after_cut(&mut self, chunk: &mut Data) {
        let Some(scheduling) = &mut self.scheduling else { return };
        // RFC 8260, 3: interleaving lets a scheduler switch streams within a message.
        let ends_message = chunk.flags.has(DataFlags::END);
        if let Some(count) = scheduling.watched.get_mut(&chunk.stream.0) {
            *count -= u64::from(ends_message);
        }
        let ends = scheduling.ids.is_some() || ends_message;
        if let Some(ids) = &mut scheduling.ids {
            ids.label(chunk);
        }
        if scheduling.order.scheduler() != StreamScheduler::FirstCome {
            let left = !self.messages.is_empty();
            scheduling.order.served(chunk.stream, chunk.payload.len(), ends, left);
            self.choose_stream();
        }
    }

    /// Messages that wait for a reset of their streams, `None` if no stream is held.
    #[inline]
    pub fn held(&self) -> Option<&Held> {
        self.scheduling.as_ref().map(|scheduling| &scheduling.held)
    }

    /// Like [`Self::held`], mutable.
    pub fn held_mut(&mut self) -> &mut Held {
        &mut self.scheduling_mut().held
    }

    /// Whether a reset of streams waits for the acknowledgement of data that has been cut into chunks
    /// completely. RFC 7053: a sender that cannot continue without a SACK requests it immediately.
    #[inline]
    pub fn is_drained_for_reset(&self) -> bool {
        self.messages.is_empty() && self.held().is_some_and(|held| !held.is_idle())
    }

    /// Whether messages of `stream` are held.
    #[inline]
    pub fn is_held(&self, stream: StreamId) -> bool {
        self.held().is_some_and(|held| held.has(stream))
    }

    /// User data of held messages, bytes.
    pub fn held_bytes(&self) -> u64 {
        self.held().map_or(0, Held::bytes)
    }

    /// Counts the queued messages of these streams from now on.
    #[cold]
    pub fn watch(&mut self, streams: &[StreamId]) {
        for stream in streams {
            self.scheduling_mut().watched.insert(stream.0, 0);
        }
        let queued = self.messages.iter().chain(self.lanes());
        let counts: Vec<_> = queued.map(|one| (one.stream, u64::from(one.more) + 1)).collect();
        for (stream, more) in counts.into_iter().filter(|(stream, _)| streams.contains(stream)) {
            self.count_watched(stream, |count| count + more);
        }
    }

    /// Number of messages in the queue, with runs of equal ones counted once: the work of
    /// [`Self::watch`].
    pub fn entries(&self) -> usize {
        let order = self.scheduling.as_ref().map(|scheduling| &scheduling.order);
        self.messages.len() + order.map_or(0, StreamOrder::len)
    }

    /// Stops counting.
    #[cold]
    pub fn unwatch(&mut self, streams: &[StreamId]) {
        if let Some(scheduling) = &mut self.scheduling {
            scheduling.watched.retain(|stream, _| !streams.contains(&StreamId(*stream)));
        }
        self.scheduling.take_if(|scheduling| scheduling.is_plain());
    }

    /// Whether a watched stream has messages in the queue.
    pub fn has_watched(&self, stream: StreamId) -> bool {
        let scheduling = self.scheduling.as_ref();
        scheduling.and_then(|one| one.watched.get(&stream.0)).is_some_and(|count| *count > 0)
    }

    pub(super) fn count_watched(&mut self, stream: StreamId, count: impl FnOnce(u64) -> u64) {
        if let Some(scheduling) = &mut self.scheduling
            && let Some(known) = scheduling.watched.get_mut(&stream.0)
        {
            *known = count(*known);
        }
    }

    /// Numbers the messages of these streams from 0. None of their messages is queued. RFC 8260, 2.3.2:
    /// applies to the message identifiers of ordered and of unordered messages.
    #[cold]
    pub fn restart_streams(&mut self, streams: &Streams) {
        match streams {
            Streams::All => self.next_ssn.fill(Serial16(0)),
            Streams::Listed(each) => each.iter().for_each(|stream| {
                if let Some(next) = self.next_ssn.get_mut(usize::from(stream.0)) {
                    *next = Serial16(0);
                }
            }),
        }
        if let Some(ids) = self.scheduling.as_mut().and_then(|one| one.ids.as_mut()) {
            ids.restart(streams);
        }
    }

    /// Adds streams, up to `count`.
    pub fn add_streams(&mut self, count: u16) {
        self.next_ssn.resize(usize::from(count).max(self.next_ssn.len()), Serial16(0));
    }

    /// If messages are interleaved, turns an unordered message in one chunk that was not in the queue
    /// into I-DATA.
    pub fn label_whole(&mut self, chunk: &mut Data) {
        if let Some(ids) = self.scheduling.as_mut().and_then(|scheduling| scheduling.ids.as_mut()) {
            ids.label_whole(chunk);
        }
    }

    /// Puts a message of the stream to be served next in front.
    pub(super) fn choose_stream(&mut self) {
        let Some(scheduling) = &self.scheduling else { return };
        let next = scheduling.order.next().filter(|_| self.has_lanes() && self.may_overtake());
        if let Some(stream) = next {
            self.bring_to_front(stream);
        }
    }

    /// Puts the first message of a stream in front. A message of another stream returns to its lane.
    fn bring_to_front(&mut self, stream: StreamId) {
        let Some(scheduling) = &mut self.scheduling else { return };
        if self.messages.front().is_some_and(|front| front.stream == stream) {
            return;
        }
        if let Some(front) = self.messages.pop_front() {
            scheduling.order.put_back(front);
        }
        self.messages.extend(scheduling.order.take(stream));
    }

    /// Whether a chunk may be sent separately, although a message has been cut in part.
    pub fn may_overtake(&self) -> bool {
        self.is_interleaved() || !self.is_within_message()
    }

    /// Puts the partially fragmented message of this stream and order in front, if there is one. Returns
    /// whether it is in front.
    pub fn bring_rest_to_front(&mut self, stream: StreamId, unordered: bool) -> bool {
        let is_rest = |message: &Waiting| {
            message.taken > 0 && message.stream == stream && message.unordered == unordered
        };
        if self.messages.front().is_some_and(is_rest) {
            return true;
        }
        let found = self.lanes().any(is_rest);
        if found {
            self.bring_to_front(stream);
        }
        found
    }

    /// Puts a partially fragmented message whose lifetime is over in front. Returns whether there is one.
    pub fn bring_expired_rest_to_front(&mut self, now: Time) -> bool {
        let is_over = |message: &&Waiting| message.taken > 0 && message.expires <= now;
        if self.messages.front().as_ref().is_some_and(is_over) {
            return true;
        }
        let found = self.lanes().find(is_over).map(|message| message.stream);
        if let Some(stream) = found {
            self.bring_to_front(stream);
        }
        found.is_some()
    }

    /// Whether the next chunk may be added to the packet that is being filled.
    #[inline]
    pub fn may_join_packet(&self) -> bool {
        self.scheduling.is_none() || self.front_may_join()
    }

    #[cold]
    fn front_may_join(&self) -> bool {
        let (Some(scheduling), Some(front)) = (&self.scheduling, self.messages.front()) else {
            return true;
        };
        scheduling.order.may_join(front.stream)
    }

    /// Ends a packet: the next one may hold chunks of another stream.
    #[inline]
    pub fn end_packet(&mut self) {
        if self.scheduling.is_some() {
            self.end_packet_of_stream();
        }
    }

    #[cold]
    fn end_packet_of_stream(&mut self) {
        if let Some(scheduling) = &mut self.scheduling {
            scheduling.order.end_packet();
        }
        self.choose_stream();
    }
}
