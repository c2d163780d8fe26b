//! The multiplexer: the interface for readers and writers of streams, and for the task that transports messages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use super::buffer::Buffer;
use super::flow_control::{Window, WindowMemory};
use super::limits::{Limits, MIN_WINDOW};
use super::message::{LONGEST_TARGET, Refusal};
use super::stream_scheduler::{SchedulerList, StreamScheduler};
use super::stream_state::{Inbound, OpenState, Outbound, SendQueue, StreamState};
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
pub struct StreamKey(pub(super) u64);

/// An event for the users of the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer opens a stream.
    Offered(StreamKey),
    /// A stream may have become readable, writable or open, or has ended.
    Changed(StreamKey),
    /// A stream number may be free.
    StreamNumberFree,
}

/// All stream numbers are in use, or the association has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoFreeStream;

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
    /// One end refused the stream.
    Refused(Refusal),
    /// The stream was reset, or the connection has ended.
    Reset,
    /// The writer has already finished the stream.
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
    pub(super) window_memory: WindowMemory,
    pub(super) streams: BTreeMap<StreamKey, StreamState>,
    /// The stream that uses each number.
    pub(super) by_id: Vec<Option<StreamKey>>,
    /// Free numbers of this end.
    free: BTreeSet<u16>,
    next_key: u64,
    /// Number of streams that the peer has opened.
    pub(super) peers: usize,
    pub(super) control: VecDeque<(StreamKey, Control)>,
    pub(super) scheduler: StreamScheduler,
    pub(super) events: VecDeque<Event>,
    ended: bool,
}

impl Mux {
    /// A multiplexer for an association with `streams` streams in each direction.
    pub fn new(role: Role, limits: Limits, streams: u16) -> Self {
        Self {
            role,
            limits,
            window_memory: WindowMemory::new(&limits),
            streams: BTreeMap::new(),
            by_id: vec![None; streams.into()],
            free: (0..streams).filter(|id| role.owns(*id)).collect(),
            next_key: 0,
            peers: 0,
            control: VecDeque::new(),
            scheduler: StreamScheduler::default(),
            events: VecDeque::new(),
            ended: false,
        }
    }

    /// Opens a stream. Bytes may be written immediately.
    ///
    /// # Errors
    /// [`NoFreeStream`]. Try again after [`Event::StreamNumberFree`], unless the association [has
    /// ended](Mux::has_ended).
    ///
    /// # Panics
    /// If the target has more than 512 bytes.
    pub fn open(&mut self, target: Bytes) -> Result<StreamKey, NoFreeStream> {
        assert!(target.len() <= LONGEST_TARGET, "a target of {} bytes", target.len());
        let id = self.free.pop_first().ok_or(NoFreeStream)?;
        let size = self.window_memory.initial_window(self.limits.first_window);
        let sending = SendQueue { credit: MIN_WINDOW, ..SendQueue::default() };
        let key = self.insert(StreamState {
            id,
            is_local: true,
            has_handle: true,
            open_state: OpenState::Opening,
            outbound: Outbound::Open(sending),
            inbound: Inbound::Open { buffer: Buffer::default(), window: Window::new(size, size) },
            scheduler_list: SchedulerList::Idle,
        });
        self.control.push_back((key, Control::Open(target)));
        Ok(key)
    }

    pub(super) fn insert(&mut self, stream: StreamState) -> StreamKey {
        let key = StreamKey(self.next_key);
        self.next_key += 1;
        self.by_id[usize::from(stream.id)] = Some(key);
        self.peers += usize::from(!stream.is_local);
        self.streams.insert(key, stream);
        key
    }

    /// The target of an offered stream.
    pub fn target(&self, key: StreamKey) -> Option<Bytes> {
        match &self.streams.get(&key)?.open_state {
            OpenState::Offered(target) => Some(target.clone()),
            _ => None,
        }
    }

    /// Accepts an offered stream. Returns false if the peer has cancelled it.
    pub fn accept(&mut self, key: StreamKey) -> bool {
        let Some(stream) = self.streams.get_mut(&key) else { return false };
        if !matches!(stream.open_state, OpenState::Offered(_)) {
            return false;
        }
        stream.open_state = OpenState::Open;
        if let Inbound::Open { window, .. } = &mut stream.inbound {
            window.open();
        }
        self.control.push_back((key, Control::Opened));
        true
    }

    /// Refuses an offered stream and releases it.
    pub fn refuse(&mut self, key: StreamKey, refusal: Refusal) {
        if let Some(stream) = self.streams.get_mut(&key) {
            if matches!(stream.open_state, OpenState::Offered(_)) {
                stream.open_state = OpenState::Refused(refusal);
                stream.stop_writing();
                stream.stop_reading(Inbound::Ended, &mut self.window_memory);
                self.control.push_back((key, Control::Refused));
            }
            stream.has_handle = false;
        }
        self.remove_if_ended(key);
    }

    /// Whether the peer has accepted the stream. An error if it never will.
    ///
    /// # Errors
    /// [`StreamError`].
    pub fn is_open(&self, key: StreamKey) -> Result<bool, StreamError> {
        match self.streams.get(&key).map(|stream| &stream.open_state) {
            Some(OpenState::Opening | OpenState::Offered(_)) => Ok(false),
            Some(OpenState::Open) => Ok(true),
            Some(OpenState::Refused(refusal)) => Err(StreamError::Refused(refusal.clone())),
            Some(OpenState::Reset) | None => Err(StreamError::Reset),
        }
    }

    /// Queues as many bytes as there is room for. Returns their number; if 0, wait for [`Event::Changed`].
    ///
    /// # Errors
    /// [`StreamError`].
    pub fn write(&mut self, key: StreamKey, bytes: &[u8]) -> Result<usize, StreamError> {
        let limit = self.limits.send_queue;
        let stream = self.streams.get_mut(&key).ok_or(StreamError::Reset)?;
        let Outbound::Open(sending) = &mut stream.outbound else {
            return Err(stream.why_not_written());
        };
        let n = bytes.len().min(limit.saturating_sub(sending.queue.len()));
        sending.queue.push(&bytes[..n]);
        if stream.has_data_to_send() {
            self.scheduler.enqueue(key, &mut stream.scheduler_list);
        }
        Ok(n)
    }

    /// Ends writing. The peer's bytes can still be read.
    ///
    /// # Errors
    /// [`StreamError`], if the written bytes will not arrive.
    pub fn finish(&mut self, key: StreamKey) -> Result<(), StreamError> {
        let stream = self.streams.get_mut(&key).ok_or(StreamError::Reset)?;
        match std::mem::replace(&mut stream.outbound, Outbound::Ended) {
            Outbound::Open(sending) => stream.outbound = Outbound::Finishing(sending),
            before => {
                stream.outbound = before;
                return match stream.why_not_written() {
                    StreamError::Finished => Ok(()),
                    error => Err(error),
                };
            }
        }
        if stream.has_data_to_send() {
            self.scheduler.enqueue(key, &mut stream.scheduler_list);
        }
        Ok(())
    }

    /// Reads as many bytes as are available and fit.
    ///
    /// # Errors
    /// [`StreamError`], except for [`StreamError::Finished`].
    pub fn read(&mut self, key: StreamKey, out: &mut [u8]) -> Result<Read, StreamError> {
        let largest = self.limits.largest_window;
        let stream = self.streams.get_mut(&key).ok_or(StreamError::Reset)?;
        match &mut stream.inbound {
            Inbound::Open { buffer, .. } if buffer.is_empty() => Ok(Read::Nothing),
            Inbound::Open { buffer, window } => {
                let n = buffer.read(out);
                if window.consume(n as u64, largest, &mut self.window_memory) {
                    self.control.push_back((key, Control::Credit));
                }
                Ok(Read::Bytes(n))
            }
            Inbound::Finished { buffer, .. } if buffer.is_empty() => Ok(Read::End),
            Inbound::Finished { buffer, shared } => {
                let n = buffer.read(out);
                let left = (*shared).min(buffer.len() as u64);
                self.window_memory.release(std::mem::replace(shared, left) - left);
                Ok(Read::Bytes(n))
            }
            Inbound::Discarding | Inbound::Ended => Err(stream.why_ended()),
        }
    }

    /// Releases the handle of a stream. If it was finished, its written bytes still arrive; otherwise it is reset.
    pub fn release(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        if matches!(stream.open_state, OpenState::Offered(_)) {
            let nobody = Refusal::new(Refusal::CANCELLED, "nobody took it");
            return self.refuse(key, nobody);
        }
        stream.has_handle = false;
        let unread = matches!(stream.inbound, Inbound::Open { .. });
        let then = if unread { Inbound::Discarding } else { Inbound::Ended };
        if !matches!(stream.inbound, Inbound::Discarding) {
            stream.stop_reading(then, &mut self.window_memory);
        }
        let finishes = matches!(stream.outbound, Outbound::Finishing(_));
        // If the FIN was already sent, a RESET tells the peer that there is no reader. Otherwise the RESET follows
        // the FIN.
        let must_reset = if finishes { false } else { stream.stop_writing() || unread };
        if must_reset {
            self.control.push_back((key, Control::Reset));
        }
        self.remove_if_ended(key);
    }

    /// Ends all streams because the association has ended.
    pub fn end(&mut self) {
        self.ended = true;
        self.control.clear();
        self.scheduler = StreamScheduler::default();
        self.by_id.fill(None);
        self.free.clear();
        let window_memory = &mut self.window_memory;
        self.streams.retain(|key, stream| {
            stream.outbound = Outbound::Ended;
            if !matches!(stream.inbound, Inbound::Finished { .. }) || !stream.has_handle {
                stream.stop_reading(Inbound::Ended, window_memory);
            }
            if !matches!(stream.open_state, OpenState::Refused(_)) {
                stream.open_state = OpenState::Reset;
            }
            self.events.push_back(Event::Changed(*key));
            stream.has_handle
        });
        self.peers = self.streams.values().filter(|stream| !stream.is_local).count();
        self.events.push_back(Event::StreamNumberFree);
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
        self.streams.len()
    }

    /// Whether there are no streams.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Shared memory reserved for bytes that may arrive or are unread, bytes.
    pub const fn reserved(&self) -> u64 {
        self.window_memory.reserved()
    }

    /// Frees the number once both ends have finished, and removes the stream once no handle exists.
    pub(super) fn remove_if_ended(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get(&key) else { return };
        if !stream.has_ended() {
            return;
        }
        let (id, is_local, has_handle) = (stream.id, stream.is_local, stream.has_handle);
        let place = &mut self.by_id[usize::from(id)];
        if *place == Some(key) {
            *place = None;
            if is_local {
                self.free.insert(id);
                self.events.push_back(Event::StreamNumberFree);
            }
        }
        if !has_handle && let Some(mut stream) = self.streams.remove(&key) {
            stream.stop_reading(Inbound::Ended, &mut self.window_memory);
            self.peers -= usize::from(!stream.is_local);
        }
    }
}

impl StreamState {
    fn why_not_written(&self) -> StreamError {
        match &self.open_state {
            OpenState::Refused(_) | OpenState::Reset => self.why_ended(),
            OpenState::Opening | OpenState::Offered(_) | OpenState::Open => StreamError::Finished,
        }
    }

    fn why_ended(&self) -> StreamError {
        match &self.open_state {
            OpenState::Refused(refusal) => StreamError::Refused(refusal.clone()),
            _ => StreamError::Reset,
        }
    }
}
