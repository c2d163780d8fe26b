//! Runs the multiplexer over an association: one task receives messages, another one sends them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use parking_lot::Mutex;
use ropewalk_base::PeerText;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::limits::Limits;
use super::machine::{Event, Mux, Role, StreamError, StreamKey};
use super::message::{Refusal, Violation};
use super::stream::Stream;
use super::transport::{MessageTransport, TransportEnded};

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The association ended.
    Association(PeerText),
    /// The peer violated the protocol, and this end ended the connection.
    Violation(Violation),
    /// This end closed the connection.
    Closed,
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Association(why) => why.fmt(f),
            Self::Violation(violation) => violation.fmt(f),
            Self::Closed => f.write_str("closed"),
        }
    }
}

/// Why a stream could not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The other end refused it.
    Refused(Refusal),
    /// The connection has ended.
    Ended,
}

/// Wakers of the tasks that wait for a stream.
#[derive(Debug, Default)]
pub struct Wakers {
    pub read: Option<Waker>,
    pub write: Option<Waker>,
    pub open: Option<Waker>,
}

#[derive(Debug)]
pub struct State {
    pub mux: Mux,
    pub wakers: BTreeMap<StreamKey, Wakers>,
    offered: VecDeque<StreamKey>,
    ended: Option<EndReason>,
}

/// Shared by the tasks and all streams.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    /// Signalled when there is a message to send.
    outgoing: Notify,
    offered: Notify,
    room: Notify,
    ended: Notify,
}

impl Shared {
    /// Calls `work` on the state, then wakes the tasks that its events concern.
    pub fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let result = work(&mut state);
        while let Some(event) = state.mux.poll_event() {
            match event {
                Event::Offered(key) => {
                    state.offered.push_back(key);
                    self.offered.notify_waiters();
                }
                Event::Changed(key) => {
                    if let Some(Wakers { read, write, open }) = state.wakers.get_mut(&key) {
                        let woken = [read.take(), write.take(), open.take()];
                        woken.into_iter().flatten().for_each(Waker::wake);
                    }
                }
                Event::StreamNumberFree => self.room.notify_waiters(),
            }
        }
        if state.mux.has_messages() {
            self.outgoing.notify_one();
        }
        result
    }

    fn end(&self, reason: EndReason) {
        self.with(|state| {
            state.ended.get_or_insert(reason);
            state.offered.clear();
            state.mux.end();
        });
        self.offered.notify_waiters();
        self.ended.notify_waiters();
    }
}

/// An association whose streams are byte streams. Dropping it resets all of them.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

impl Connection {
    /// Starts a connection, which ends with the association.
    ///
    /// # Panics
    /// If called outside a tokio runtime.
    pub fn start(carrier: impl MessageTransport, role: Role, limits: Limits) -> Self {
        let carrier = Arc::new(carrier);
        let state = State {
            mux: Mux::new(role, limits, carrier.streams()),
            wakers: BTreeMap::new(),
            offered: VecDeque::new(),
            ended: None,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            outgoing: Notify::new(),
            offered: Notify::new(),
            room: Notify::new(),
            ended: Notify::new(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(take(carrier.clone(), shared.clone()));
        tasks.spawn(send(carrier, shared.clone()));
        Self { shared, tasks }
    }

    /// Opens a stream to `target`. Waits while all stream numbers are in use. Bytes may be written
    /// immediately; [`Stream::opened`] returns whether the peer accepts the stream.
    ///
    /// # Errors
    /// [`OpenError::Ended`].
    pub async fn open(&self, target: Bytes) -> Result<Stream, OpenError> {
        loop {
            let room = self.shared.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            let opened = self.shared.with(|state| {
                if state.mux.has_ended() {
                    return Err(OpenError::Ended);
                }
                Ok(state.mux.open(target.clone()).ok())
            })?;
            if let Some(key) = opened {
                return Ok(Stream::new(self.shared.clone(), key));
            }
            room.await;
        }
    }

    /// Waits for the next stream that the peer opens. `None` if the connection has ended.
    pub async fn accept(&self) -> Option<Incoming> {
        loop {
            let offered = self.shared.offered.notified();
            tokio::pin!(offered);
            offered.as_mut().enable();
            let next = self.shared.with(|state| {
                let key = state.offered.pop_front();
                (key.map(|key| (key, state.mux.target(key))), state.ended.is_some())
            });
            match next {
                (Some((key, target)), _) => {
                    let stream = Stream::new(self.shared.clone(), key);
                    // The peer has cancelled it meanwhile: `stream` is dropped here and the multiplexer forgets it.
                    if let Some(target) = target {
                        return Some(Incoming { target, stream });
                    }
                }
                (None, true) => return None,
                (None, false) => offered.await,
            }
        }
    }

    /// Waits until the connection has ended.
    pub async fn ended(&self) -> EndReason {
        loop {
            let ended = self.shared.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if let Some(reason) = self.shared.state.lock().ended.clone() {
                return reason;
            }
            ended.await;
        }
    }

    /// Number of current streams.
    pub fn streams(&self) -> usize {
        self.shared.state.lock().mux.len()
    }

    /// Memory reserved for unread bytes of all streams, beyond the fixed part of each stream.
    pub fn reserved(&self) -> u64 {
        self.shared.state.lock().mux.reserved()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tasks.abort_all();
        self.shared.end(EndReason::Closed);
    }
}

/// Receives messages immediately, whether or not their streams are read.
async fn take(carrier: Arc<impl MessageTransport>, shared: Arc<Shared>) {
    let mut arrived = Vec::new();
    let reason = loop {
        if let Err(TransportEnded(why)) = carrier.receive(&mut arrived).await {
            break EndReason::Association(why);
        }
        let taken = shared.with(|state| {
            let mut all = arrived.drain(..);
            all.try_for_each(|m| state.mux.handle(m.stream, m.ppid, m.bytes))
        });
        if let Err(violation) = taken {
            carrier.abort();
            break EndReason::Violation(violation);
        }
    };
    shared.end(reason);
}

/// Sends messages separately. Each is chosen only when the association can accept it.
async fn send(carrier: Arc<impl MessageTransport>, shared: Arc<Shared>) {
    let most = carrier.message_size();
    loop {
        let due = shared.outgoing.notified();
        tokio::pin!(due);
        due.as_mut().enable();
        let next = shared.with(|state| state.mux.poll_transmit(most));
        let Some((stream, message)) = next else {
            due.await;
            continue;
        };
        let (ppid, bytes) = message.encode();
        if let Err(TransportEnded(why)) = carrier.send(stream, ppid, bytes).await {
            return shared.end(EndReason::Association(why));
        }
    }
}

/// A stream that the peer wants to open. Dropping it refuses the stream.
#[derive(Debug)]
pub struct Incoming {
    /// The target, as the peer encoded it.
    pub target: Bytes,
    stream: Stream,
}

impl Incoming {
    /// Accepts the stream. `None` if the peer has cancelled it.
    pub fn accept(self) -> Option<Stream> {
        self.stream.accept().then_some(self.stream)
    }

    /// Refuses the stream.
    pub fn refuse(self, refusal: Refusal) {
        self.stream.refuse(refusal);
    }

    /// Waits until the peer cancels the stream, so that work for it can be stopped.
    pub async fn given_up(&self) {
        let _: Result<(), StreamError> = self.stream.answered().await;
    }
}
