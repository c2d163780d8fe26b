//! Interleaved messages (RFC 8260, 2.2.3): their fragments that have arrived, and the parts that may be
//! delivered.
//!
//! ```text
//!   (stream, order, message identifier) --> fragment sequence number --> TSN --> the chunk, in `Slots`
//! ```
//!
//! Memory is proportional to the waiting fragments, whichever numbers the peer chooses.

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_base::{Serial32, StreamId};

use crate::meter;
use crate::sctp::{Data, DataFlags};

/// Bookkeeping of a message, bytes: entries of trees whose nodes are at least half full.
const MESSAGE_COST: u64 = 2 * size_of::<(Key, Assembly)>() as u64 + 64;
/// Additional bookkeeping of a fragmented message, bytes: its own tree, and an entry of `heads`.
const TREE_COST: u64 = 192;
/// Bookkeeping of each fragment, bytes.
const FRAGMENT_COST: u64 = 48;
/// Maximum bookkeeping of a chunk, bytes: it is the only fragment of its message.
pub(super) const CHUNK_COST: u64 = MESSAGE_COST + TREE_COST + FRAGMENT_COST;
/// Bookkeeping of a stream with unordered messages that were skipped or delivered in part, and of a way
/// with a part to deliver, bytes.
const WAY_COST: u64 = 32;

/// A *way*: a stream, and whether its unordered messages are meant.
pub(super) type Way = (u16, bool);

/// A message: its way, and its identifier.
pub(super) type Key = (Way, u32);

/// The received part of a message.
#[derive(Clone, Debug, Default)]
struct Assembly {
    /// The TSN of a message in one chunk, or 0 if it consists of fragments.
    whole: u64,
    /// The TSN of each fragment.
    fragments: BTreeMap<u32, u64>,
    /// Number of the last fragment, once it has arrived.
    end: Option<u32>,
    /// Fragments before this one have been delivered.
    delivered: u32,
    /// Payload protocol identifier, kept for further parts once the first one has been delivered.
    ppid: u32,
}

impl Assembly {
    /// Whether all undelivered fragments have arrived.
    fn is_complete(&self) -> bool {
        let count = self.fragments.len() as u64;
        self.whole > 0 || self.end.is_some_and(|end| count == u64::from(end - self.delivered) + 1)
    }

    /// Whether nothing of the message has arrived.
    fn is_empty(&self) -> bool {
        self.whole == 0 && self.fragments.is_empty() && self.delivered == 0
    }

    /// Whether the next fragment to be delivered has arrived.
    fn has_next(&self) -> bool {
        self.fragments.contains_key(&self.delivered)
    }

    /// Whether a fragment contradicts those that have arrived.
    fn contradicts(&self, fragment: u32, ends: bool) -> bool {
        let beyond = match self.end {
            Some(end) => ends || fragment > end,
            None => ends && self.fragments.last_key_value().is_some_and(|(at, _)| *at > fragment),
        };
        beyond
            || self.whole > 0
            || fragment < self.delivered
            || self.fragments.contains_key(&fragment)
    }
}

/// Classification of an arriving chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fit {
    /// A new part of a message.
    Fresh,
    /// A part of a message that the sender has abandoned.
    Late,
    /// It contradicts received data.
    Violation,
}

/// A part of a message to deliver.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    /// The TSNs of its fragments, in the order of the message.
    pub tsns: Vec<u64>,
    /// Payload protocol identifier. `None`: that of the first fragment.
    pub ppid: Option<u32>,
    /// Whether it is the beginning of the message, and its end.
    pub begins: bool,
    pub ends: bool,
}

/// The interleaved messages of an association.
#[derive(Clone, Debug)]
pub(super) struct Messages {
    /// Whether datagrams arrive as DATA.
    pub takes_datagrams: bool,
    /// Identifier of the next ordered message of each stream, 0 beyond the end.
    next: Vec<Serial32>,
    waiting: BTreeMap<Key, Assembly>,
    /// Number of fragments of all waiting messages, and of messages with fragments.
    fragments: u64,
    trees: u64,
    /// Unordered messages whose first fragment has arrived and that have not been delivered even in part.
    heads: BTreeSet<(u16, u32)>,
    /// Unordered messages that have been delivered in part, at most one per stream.
    begun: BTreeMap<u16, u32>,
    /// The ways that have an incomplete message to deliver in part.
    offers: BTreeSet<Way>,
    /// Whether the sender has abandoned any ordered message, so that parts of it may arrive late.
    skipped: bool,
    /// The last abandoned unordered message of each stream.
    skipped_unordered: BTreeMap<u16, Serial32>,
}

/// The way of a chunk.
pub(super) const fn way_of(data: &Data) -> Way {
    (data.stream.0, data.flags.has(DataFlags::UNORDERED))
}

const fn key_of(data: &Data) -> Key {
    (way_of(data), data.message().0)
}

impl Messages {
    pub const fn new(takes_datagrams: bool) -> Self {
        Self {
            takes_datagrams,
            next: Vec::new(),
            waiting: BTreeMap::new(),
            fragments: 0,
            trees: 0,
            heads: BTreeSet::new(),
            begun: BTreeMap::new(),
            offers: BTreeSet::new(),
            skipped: false,
            skipped_unordered: BTreeMap::new(),
        }
    }

    /// Upper bound of the memory in addition to the chunks, bytes.
    pub fn cost(&self) -> u64 {
        let ways = self.skipped_unordered.len() + self.begun.len() + self.offers.len();
        self.waiting.len() as u64 * MESSAGE_COST
            + self.trees * TREE_COST
            + self.fragments * FRAGMENT_COST
            + ways as u64 * WAY_COST
    }

    /// Identifier of the next ordered message of a stream.
    pub fn next_of(&self, stream: u16) -> Serial32 {
        self.next.get(usize::from(stream)).copied().unwrap_or(Serial32(0))
    }

    fn set_next(&mut self, stream: u16, next: Serial32) {
        let at = usize::from(stream);
        if self.next.len() <= at {
            self.next.resize(at + 1, Serial32(0));
        }
        self.next[at] = next;
    }

    /// Whether this message is delivered without waiting for others: it is unordered, or the next one.
    fn has_turn(&self, ((stream, unordered), message): Key) -> bool {
        unordered || Serial32(message) == self.next_of(stream)
    }

    /// Whether a complete message can be delivered on arrival.
    pub fn passes(&self, data: &Data) -> bool {
        data.flags.has(DataFlags::WHOLE) && self.has_turn(key_of(data))
    }

    /// Classifies an arriving chunk.
    pub fn fit(&self, data: &Data) -> Fit {
        let (way, message) = key_of(data);
        let fragment = data.fragment();
        if !data.flags.has(DataFlags::BEGIN) && fragment == 0 {
            return Fit::Violation;
        }
        let behind = match way {
            (stream, false) => data.message().distance_from(self.next_of(stream)) < 0,
            (stream, true) => {
                let skipped = self.skipped_unordered.get(&stream);
                let passed = |last: &Serial32| last.distance_from(data.message()) >= 0;
                !data.flags.has(DataFlags::WHOLE) && skipped.is_some_and(passed)
            }
        };
        if behind {
            return if way.1 || self.skipped { Fit::Late } else { Fit::Violation };
        }
        let ends = data.flags.has(DataFlags::END);
        match self.waiting.get(&(way, message)) {
            Some(known) if known.contradicts(fragment, ends) => Fit::Violation,
            _ => Fit::Fresh,
        }
    }

    /// Records the delivery of a complete message that did not wait.
    pub fn pass(&mut self, (stream, unordered): Way) {
        if !unordered {
            let next = self.next_of(stream).plus(1);
            self.set_next(stream, next);
            self.update_offer((stream, false));
        }
    }

    /// Adds a fragment that fits, or a complete message that waits for its turn.
    pub fn keep(&mut self, data: &Data, tsn: u64) {
        let (key, fragment) = (key_of(data), data.fragment());
        let assembly = self.waiting.entry(key).or_default();
        if data.flags.has(DataFlags::WHOLE) {
            assembly.whole = tsn;
            return;
        }
        self.trees += u64::from(assembly.is_empty());
        assembly.fragments.insert(fragment, tsn);
        if data.flags.has(DataFlags::END) {
            assembly.end = Some(fragment);
        }
        let ((stream, unordered), message) = key;
        if unordered && fragment == 0 {
            self.heads.insert((stream, message));
        }
        self.fragments += 1;
        self.update_offer(key.0);
    }

    /// Removes a fragment that was dropped as if it had never arrived.
    pub fn forget(&mut self, data: &Data) {
        let (key, fragment) = (key_of(data), data.fragment());
        let Some(assembly) = self.waiting.get_mut(&key) else { return };
        if data.flags.has(DataFlags::WHOLE) {
            self.waiting.remove(&key);
            return;
        }
        if assembly.fragments.remove(&fragment).is_none() {
            return;
        }
        self.fragments -= 1;
        assembly.end = assembly.end.filter(|end| *end != fragment);
        if assembly.is_empty() {
            self.waiting.remove(&key);
            self.trees -= 1;
        }
        if fragment == 0 {
            self.heads.remove(&(key.0.0, key.1));
        }
        self.update_offer(key.0);
    }

    /// The message on this way that can be delivered in part.
    fn candidate(&self, way: Way) -> Option<u32> {
        let (stream, unordered) = way;
        if !unordered {
            return Some(self.next_of(stream).0);
        }
        let first = || self.heads.range((stream, 0)..=(stream, u32::MAX)).next();
        self.begun.get(&stream).copied().or_else(|| first().map(|(_, message)| *message))
    }

    fn update_offer(&mut self, way: Way) {
        let can = self.candidate(way).is_some_and(|message| {
            self.waiting.get(&(way, message)).is_some_and(Assembly::has_next)
        });
        if can {
            self.offers.insert(way);
        } else {
            self.offers.remove(&way);
        }
    }

    /// Takes the message of `data` if it is next in order and complete, or the part that follows a
    /// delivered part.
    pub fn take_completed(&mut self, data: &Data) -> Option<Delivery> {
        let key = key_of(data);
        let assembly = self.waiting.get(&key).filter(|_| self.has_turn(key))?;
        let ready = assembly.is_complete() || assembly.delivered > 0 && assembly.has_next();
        ready.then(|| self.take(key))?
    }

    /// Takes the next ordered message of a stream if it is complete.
    pub fn take_next(&mut self, stream: u16) -> Option<Delivery> {
        let key = ((stream, false), self.next_of(stream).0);
        let complete = self.waiting.get(&key).is_some_and(Assembly::is_complete);
        complete.then(|| self.take(key))?
    }

    /// Takes a part of an incomplete message, if there is one.
    pub fn take_offer(&mut self) -> Option<(Way, Delivery)> {
        let way = self.offers.pop_first()?;
        let message = self.candidate(way)?;
        if way.1 {
            self.begun.insert(way.0, message);
            self.heads.remove(&(way.0, message));
        }
        self.take((way, message)).map(|delivery| (way, delivery))
    }

    /// Takes the fragments of a message that follow the delivered ones.
    fn take(&mut self, key: Key) -> Option<Delivery> {
        let assembly = self.waiting.get_mut(&key)?;
        if assembly.whole > 0 {
            let tsns = vec![assembly.whole];
            self.end(key);
            return Some(Delivery { tsns, ppid: None, begins: true, ends: true });
        }
        let (from, mut tsns) = (assembly.delivered, Vec::new());
        while let Some(tsn) = assembly.fragments.remove(&assembly.delivered) {
            meter::count(1);
            tsns.push(tsn);
            assembly.delivered = assembly.delivered.wrapping_add(1);
        }
        let ends = assembly.end.is_some_and(|end| assembly.delivered == end.wrapping_add(1));
        let ppid = (from > 0).then_some(assembly.ppid);
        self.fragments -= tsns.len() as u64;
        if ends {
            self.end(key);
        } else {
            self.update_offer(key.0);
        }
        Some(Delivery { tsns, ppid, begins: from == 0, ends })
    }

    /// Stores the payload protocol identifier of a message whose first part has been delivered.
    pub fn note_ppid(&mut self, data: &Data, ppid: u32) {
        if let Some(assembly) = self.waiting.get_mut(&key_of(data)) {
            assembly.ppid = ppid;
        }
    }

    /// Ends a message. The next one of its stream may follow.
    fn end(&mut self, key: Key) {
        let ((stream, unordered), message) = key;
        let ended = self.waiting.remove(&key);
        self.trees -= u64::from(ended.is_some_and(|assembly| assembly.whole == 0));
        if unordered {
            self.heads.remove(&(stream, message));
            if self.begun.get(&stream) == Some(&message) {
                self.begun.remove(&stream);
            }
        } else {
            self.set_next(stream, Serial32(message).plus(1));
        }
        self.update_offer(key.0);
    }

    /// Skips all messages of a way up to `last` (RFC 8260, 2.3.1). Returns the parts of them to deliver
    /// and the TSNs of fragments to drop, in order.
    pub fn skip(&mut self, way: Way, last: Serial32) -> Vec<Passed> {
        let (stream, unordered) = way;
        let next = self.next_of(stream);
        if !unordered && last.distance_from(next) < 0 {
            return Vec::new();
        }
        let of_way = self.waiting.range((way, 0)..=(way, u32::MAX)).map(|(key, _)| *key);
        let mut keys: Vec<Key> = of_way
            .inspect(|_| meter::count(1))
            .filter(|(_, message)| last.distance_from(Serial32(*message)) >= 0)
            .collect();
        keys.sort_by_key(|(_, message)| Serial32(*message).distance_from(last));
        let passed = keys.into_iter().map(|key| self.pass_over(key)).collect();
        if unordered {
            let known = self.skipped_unordered.entry(stream).or_insert(last);
            if last.distance_from(*known) > 0 {
                *known = last;
            }
        } else {
            self.skipped = true;
            self.set_next(stream, last.plus(1));
        }
        self.update_offer(way);
        passed
    }

    /// Starts a stream over: its next messages are the first ones. Returns the result of [`Self::skip`]
    /// for the waiting ones.
    pub fn restart(&mut self, stream: u16) -> Vec<(Way, Passed)> {
        let mut passed = Vec::new();
        for way in [(stream, false), (stream, true)] {
            let waiting = self.waiting.range((way, 0)..=(way, u32::MAX)).map(|(key, _)| *key);
            let mut keys: Vec<Key> = waiting.inspect(|_| meter::count(1)).collect();
            let next = self.next_of(stream);
            keys.sort_by_key(|(_, message)| Serial32(*message).distance_from(next));
            passed.extend(keys.into_iter().map(|key| (way, self.pass_over(key))));
        }
        self.skipped_unordered.remove(&stream);
        if let Some(next) = self.next.get_mut(usize::from(stream)) {
            *next = Serial32(0);
        }
        self.update_offer((stream, false));
        self.update_offer((stream, true));
        passed
    }

    /// The streams with waiting messages.
    pub fn waiting_streams(&self) -> Vec<StreamId> {
        let mut streams: Vec<_> = self.waiting.keys().map(|((stream, _), _)| *stream).collect();
        streams.dedup();
        streams.into_iter().map(StreamId).collect()
    }

    /// Starts over all streams without waiting messages.
    pub fn restart_idle(&mut self) {
        self.next.clear();
        self.skipped_unordered.clear();
    }

    fn pass_over(&mut self, key: Key) -> Passed {
        let complete = self.waiting.get(&key).is_some_and(Assembly::is_complete);
        if complete && let Some(delivery) = self.take(key) {
            return Passed::Complete(delivery);
        }
        let assembly = self.waiting.get(&key).cloned().unwrap_or_default();
        self.fragments -= assembly.fragments.len() as u64;
        self.end(key);
        let tsns = assembly.fragments.into_values().collect();
        Passed::Dropped { tsns, begun: (assembly.delivered > 0).then_some(key.1) }
    }
}

/// The result for a skipped message.
#[derive(Clone, Debug)]
pub(super) enum Passed {
    /// It is complete and delivered.
    Complete(Delivery),
    /// These fragments are dropped. `begun`: the identifier of the message, if a part has been delivered.
    Dropped { tsns: Vec<u64>, begun: Option<u32> },
}

/// The stream of a way.
pub(super) const fn stream_of(way: Way) -> StreamId {
    StreamId(way.0)
}
