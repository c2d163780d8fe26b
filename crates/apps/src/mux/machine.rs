//! The multiplexer: the interface for readers and writers of streams, and for the task that transports messages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::buffer::Buffer;
use super::credit::{Budget, Window};
use super::entry::{Entry, Inbound, Outbound, Phase, Sending};
use super::limits::{EARLY, Limits};
use super::message::{LONGEST_TARGET, Refusal};
use super::ring::{StreamScheduler, Turn};
use super::transmit::Control;

/// The role of this end, which decides the stream numbers that it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that opened the association; its streams have even numbers.
    Connector,
    /// The other end; its streams have odd numbers.
    Acceptor,
}

impl Role {
    /// Whether this end may open streams of this number.
    pub const fn owns(self, id: u16) -> bool {
        let even = id.is_multiple_of(2);
        match self {
            Self::Connector => even,
            Self::Acceptor => !even,
        }
    }
}

/// Identifies a byte stream. Unlike a stream number, it is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(pub(super) u64);

/// An event for the users of the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer opens a stream.
    Offered(Key),
    /// A stream may have become readable, writable or open, or has ended.
    Changed(Key),
    /// A stream number may be free.
    Room,
}

/// All stream numbers are in use, or the association has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// Result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// This number of bytes was read.
    Bytes(usize),
    /// There are no bytes yet.
    Nothing,
    /// All bytes were read; the stream has ended.
    End,
}

/// Why a stream cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// One end refused it.
    Refused(Refusal),
    /// It was reset, or the connection has ended.
    Reset,
    /// The writer has already ended it.
    Finished,
}

/// The byte streams of one association, at one end.
///
/// **One input, then drain**: after each call, call [`Mux::poll_event`] until it returns none, and
/// [`Mux::poll_transmit`] as long as messages can be sent.
#[derive(Debug)]
pub struct Mux {
    pub(super) role: Role,
    pub(super) limits: Limits,
    pub(super) budget: Budget,
    pub(super) entries: BTreeMap<Key, Entry>,
    /// The stream that uses each number.
    pub(super) by_id: Vec<Option<Key>>,
    /// Free numbers of this end.
    free: BTreeSet<u16>,
    next_key: u64,
    /// Number of streams that the peer has opened.
    pub(super) peers: usize,
    pub(super) control: VecDeque<(Key, Control)>,
    pub(super) ring: StreamScheduler,
    pub(super) events: VecDeque<Event>,
    ended: bool,
}

impl Mux {
    /// A multiplexer for an association with `streams` streams in each direction.
    pub fn new(role: Role, limits: Limits, streams: u16) -> Self {
        Self {
            role,
            limits,
            budget: Budget::new(&limits),
            entries: BTreeMap::new(),
            by_id: vec![None; streams.into()],
            free: (0..streams).filter(|id| role.owns(*id)).collect(),
            next_key: 0,
            peers: 0,
            control: VecDeque::new(),
            ring: StreamScheduler::default(),
            events: VecDeque::new(),
            ended: false,
        }
    }

    /// Opens a stream. Bytes may be written at once.
    ///
    /// # Errors
    /// [`NoRoom`]. Try again after [`Event::Room`], unless the association [has ended](Mux::has_ended).
    ///
    /// # Panics
    /// If the target has more than 512 bytes.
    pub fn open(&mut self, target: Bytes) -> Result<Key, NoRoom> {
        assert!(target.len() <= LONGEST_TARGET, "a target of {} bytes", target.len());
        let id = self.free.pop_first().ok_or(NoRoom)?;
        let size = self.budget.first(self.limits.first_window);
        let sending = Sending { credit: EARLY, ..Sending::default() };
        let key = self.insert(Entry {
            id,
            ours: true,
            held: true,
            phase: Phase::Opening,
            outbound: Outbound::Open(sending),
            inbound: Inbound::Open { buffer: Buffer::default(), window: Window::new(size, size) },
            turn: Turn::Idle,
        });
        self.control.push_back((key, Control::Open(target)));
        Ok(key)
    }

    pub(super) fn insert(&mut self, entry: Entry) -> Key {
        let key = Key(self.next_key);
        self.next_key += 1;
        self.by_id[usize::from(entry.id)] = Some(key);
        self.peers += usize::from(!entry.ours);
        self.entries.insert(key, entry);
        key
    }

    /// The target of an offered stream.
    pub fn target(&self, key: Key) -> Option<Bytes> {
        match &self.entries.get(&key)?.phase {
            Phase::Offered(target) => Some(target.clone()),
            _ => None,
        }
    }

    /// Accepts an offered stream. Returns false if the peer has cancelled it.
    pub fn accept(&mut self, key: Key) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        if !matches!(entry.phase, Phase::Offered(_)) {
            return false;
        }
        entry.phase = Phase::Open;
        if let Inbound::Open { window, .. } = &mut entry.inbound {
            window.open();
        }
        self.control.push_back((key, Control::Opened));
        true
    }

    /// Refuses an offered stream and releases it.
    pub fn refuse(&mut self, key: Key, refusal: Refusal) {
        if let Some(entry) = self.entries.get_mut(&key) {
            if matches!(entry.phase, Phase::Offered(_)) {
                entry.phase = Phase::Refused(refusal);
                entry.stop_writing();
                entry.stop_reading(Inbound::Ended, &mut self.budget);
                self.control.push_back((key, Control::Refused));
            }
            entry.held = false;
        }
        self.settle(key);
    }

    /// Whether the peer has accepted the stream. An error if it never will.
    ///
    /// # Errors
    /// [`StreamError`].
    pub fn is_open(&self, key: Key) -> Result<bool, StreamError> {
        match self.entries.get(&key).map(|entry| &entry.phase) {
            Some(Phase::Opening | Phase::Offered(_)) => Ok(false),
            Some(Phase::Open) => Ok(true),
            Some(Phase::Refused(refusal)) => Err(StreamError::Refused(refusal.clone())),
            Some(Phase::Reset) | None => Err(StreamError::Reset),
        }
    }

    /// Queues as many bytes as there is room for. Returns their number; if 0, wait for [`Event::Changed`].
    ///
    /// # Errors
    /// [`StreamError`].
    pub fn write(&mut self, key: Key, bytes: &[u8]) -> Result<usize, StreamError> {
        let limit = self.limits.send_queue;
        let entry = self.entries.get_mut(&key).ok_or(StreamError::Reset)?;
        let Outbound::Open(sending) = &mut entry.outbound else {
            return Err(entry.why_not_written());
        };
        let n = bytes.len().min(limit.saturating_sub(sending.queue.len()));
        sending.queue.push(&bytes[..n]);
        if entry.has_turn() {
            self.ring.enter(key, &mut entry.turn);
        }
        Ok(n)
    }

    /// Ends writing. The peer's bytes can still be read.
    ///
    /// # Errors
    /// [`StreamError`], if the written bytes will not arrive.
    pub fn finish(&mut self, key: Key) -> Result<(), StreamError> {
        let entry = self.entries.get_mut(&key).ok_or(StreamError::Reset)?;
        match std::mem::replace(&mut entry.outbound, Outbound::Ended) {
            Outbound::Open(sending) => entry.outbound = Outbound::Finishing(sending),
            before => {
                entry.outbound = before;
                return match entry.why_not_written() {
                    StreamError::Finished => Ok(()),
                    error => Err(error),
                };
            }
        }
        if entry.has_turn() {
            self.ring.enter(key, &mut entry.turn);
        }
        Ok(())
    }

    /// Reads as many bytes as are available and fit.
    ///
    /// # Errors
    /// [`StreamError`], except for [`StreamError::Finished`].
    pub fn read(&mut self, key: Key, out: &mut [u8]) -> Result<Read, StreamError> {
        let largest = self.limits.largest_window;
        let entry = self.entries.get_mut(&key).ok_or(StreamError::Reset)?;
        match &mut entry.inbound {
            Inbound::Open { buffer, .. } if buffer.is_empty() => Ok(Read::Nothing),
            Inbound::Open { buffer, window } => {
                let n = buffer.read(out);
                if window.consume(n as u64, largest, &mut self.budget) {
                    self.control.push_back((key, Control::Credit));
                }
                Ok(Read::Bytes(n))
            }
            Inbound::Finished { buffer, .. } if buffer.is_empty() => Ok(Read::End),
            Inbound::Finished { buffer, shared } => {
                let n = buffer.read(out);
                let left = (*shared).min(buffer.len() as u64);
                self.budget.give(std::mem::replace(shared, left) - left);
                Ok(Read::Bytes(n))
            }
            Inbound::Discarding | Inbound::Ended => Err(entry.why_ended()),
        }
    }

    /// Releases the handle of a stream. If it was finished, its written bytes still arrive; otherwise it is reset.
    pub fn release(&mut self, key: Key) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if matches!(entry.phase, Phase::Offered(_)) {
            let nobody = Refusal::new(Refusal::CANCELLED, "nobody took it");
            return self.refuse(key, nobody);
        }
        entry.held = false;
        let unread = matches!(entry.inbound, Inbound::Open { .. });
        let then = if unread { Inbound::Discarding } else { Inbound::Ended };
        if !matches!(entry.inbound, Inbound::Discarding) {
            entry.stop_reading(then, &mut self.budget);
        }
        let finishes = matches!(entry.outbound, Outbound::Finishing(_));
        // If the FIN was already sent, a RESET tells the peer that nobody reads. Otherwise the RESET follows the FIN.
        let told = if finishes { false } else { entry.stop_writing() || unread };
        if told {
            self.control.push_back((key, Control::Reset));
        }
        self.settle(key);
    }

    /// The association has ended, and with it all streams.
    pub fn end(&mut self) {
        self.ended = true;
        self.control.clear();
        self.ring = StreamScheduler::default();
        self.by_id.fill(None);
        self.free.clear();
        let budget = &mut self.budget;
        self.entries.retain(|key, entry| {
            entry.outbound = Outbound::Ended;
            if !matches!(entry.inbound, Inbound::Finished { .. }) || !entry.held {
                entry.stop_reading(Inbound::Ended, budget);
            }
            if !matches!(entry.phase, Phase::Refused(_)) {
                entry.phase = Phase::Reset;
            }
            self.events.push_back(Event::Changed(*key));
            entry.held
        });
        self.peers = self.entries.values().filter(|entry| !entry.ours).count();
        self.events.push_back(Event::Room);
    }

    /// Whether the association has ended.
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Number of streams, including those that one end has finished.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no streams.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Shared memory reserved for bytes that may arrive or are unread, bytes.
    pub const fn reserved(&self) -> u64 {
        self.budget.taken()
    }

    /// Frees the number once both ends have finished, and removes the stream once no handle exists.
    pub(super) fn settle(&mut self, key: Key) {
        let Some(entry) = self.entries.get(&key) else { return };
        if !entry.is_settled() {
            return;
        }
        let (id, ours, held) = (entry.id, entry.ours, entry.held);
        let place = &mut self.by_id[usize::from(id)];
        if *place == Some(key) {
            *place = None;
            if ours {
                self.free.insert(id);
                self.events.push_back(Event::Room);
            }
        }
        if !held && let Some(mut entry) = self.entries.remove(&key) {
            entry.stop_reading(Inbound::Ended, &mut self.budget);
            self.peers -= usize::from(!entry.ours);
        }
    }
}

impl Entry {
    fn why_not_written(&self) -> StreamError {
        match &self.phase {
            Phase::Refused(_) | Phase::Reset => self.why_ended(),
            Phase::Opening | Phase::Offered(_) | Phase::Open => StreamError::Finished,
        }
    }

    fn why_ended(&self) -> StreamError {
        match &self.phase {
            Phase::Refused(refusal) => StreamError::Refused(refusal.clone()),
            _ => StreamError::Reset,
        }
    }
}
