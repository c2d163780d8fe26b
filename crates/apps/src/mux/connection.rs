//! The machine over an association: one task takes what comes, one sends what is due.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::Bytes;
use ropewalk_base::PeerText;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::carrier::{CarrierEnded, MessageTransport};
use super::limits::Limits;
use super::machine::{Event, Key, Mux, Role, StreamError};
use super::message::{Refusal, Violation};
use super::stream::Stream;

/// Why a connection has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The association has.
    Association(PeerText),
    /// The peer broke the rules, and we ended it.
    Violation(Violation),
    /// We wanted it so.
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

/// Why no stream could be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The other end does not want it.
    Refused(Refusal),
    /// The connection has ended.
    Ended,
}

/// Whom to wake.
#[derive(Debug, Default)]
pub struct Wakers {
    pub read: Option<Waker>,
    pub write: Option<Waker>,
    pub open: Option<Waker>,
}

#[derive(Debug)]
pub struct State {
    pub mux: Mux,
    pub wakers: BTreeMap<Key, Wakers>,
    offered: VecDeque<Key>,
    ended: Option<EndReason>,
}

/// What the tasks and all streams hold.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    /// There is something to send.
    outgoing: Notify,
    offered: Notify,
    room: Notify,
    ended: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the machine, then wakes whom it concerns.
    pub fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
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
                Event::Room => self.room.notify_waiters(),
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

/// An association whose streams are byte streams. Dropping it breaks them all off.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

impl Connection {
    /// Begins. The connection ends with the association.
    ///
    /// # Panics
    /// Outside a tokio runtime.
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

    /// Opens a stream to `target`; waits while all numbers are in use. Bytes may be written at once;
    /// [`Stream::opened`] tells whether the other end takes it.
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

    /// The next stream that the peer wants. None: the connection has ended.
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
                    // Given up meanwhile: `stream` is dropped here, and the machine forgets it.
                    if let Some(target) = target {
                        return Some(Incoming { target, stream });
                    }
                }
                (None, true) => return None,
                (None, false) => offered.await,
            }
        }
    }

    /// Waits until it has ended.
    pub async fn ended(&self) -> EndReason {
        loop {
            let ended = self.shared.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if let Some(reason) = self.shared.lock().ended.clone() {
                return reason;
            }
            ended.await;
        }
    }

    /// Streams that there are now.
    pub fn streams(&self) -> usize {
        self.shared.lock().mux.len()
    }

    /// Memory that is reserved for what all streams may have unread, beyond what each has of its own.
    pub fn reserved(&self) -> u64 {
        self.shared.lock().mux.reserved()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tasks.abort_all();
        self.shared.end(EndReason::Closed);
    }
}

/// Takes what comes, at once, whoever reads it and when.
async fn take(carrier: Arc<impl MessageTransport>, shared: Arc<Shared>) {
    let mut arrived = Vec::new();
    let reason = loop {
        if let Err(CarrierEnded(why)) = carrier.receive(&mut arrived).await {
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

/// Sends one message after the other, each chosen only when the association takes it.
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
        if let Err(CarrierEnded(why)) = carrier.send(stream, ppid, bytes).await {
            return shared.end(EndReason::Association(why));
        }
    }
}

/// A stream that the peer wants. Dropping it refuses.
#[derive(Debug)]
pub struct Incoming {
    /// Where to, in the peer's words.
    pub target: Bytes,
    stream: Stream,
}

impl Incoming {
    /// Takes it. None: the peer has given it up.
    pub fn accept(self) -> Option<Stream> {
        self.stream.accept().then_some(self.stream)
    }

    /// Does not take it.
    pub fn refuse(self, refusal: Refusal) {
        self.stream.refuse(refusal);
    }

    /// Waits until the peer has given it up: what was begun for it is in vain.
    pub async fn given_up(&self) {
        let _: Result<(), StreamError> = self.stream.answered().await;
    }
}
