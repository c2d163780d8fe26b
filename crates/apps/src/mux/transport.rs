//! The transport of messages: an association, or in tests a pair of queues.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use ropewalk_base::PeerText;
use tokio::sync::Notify;

/// A received message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportMessage {
    /// The stream it arrived on.
    pub stream: u16,
    /// Its payload protocol identifier.
    pub ppid: u32,
    /// Its bytes.
    pub bytes: Bytes,
}

/// The association has ended, for this reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportEnded(pub PeerText);

/// Transports messages in both directions, on numbered streams, in order on each stream.
pub trait MessageTransport: Send + Sync + 'static {
    /// Queues a message. Waits while the queue is full. Queued messages cannot be overtaken by urgent ones, so the
    /// queue should be no longer than the network needs.
    fn send(
        &self,
        stream: u16,
        ppid: u32,
        bytes: Bytes,
    ) -> impl Future<Output = Result<(), TransportEnded>> + Send;

    /// Waits for messages. Returns at least one.
    fn receive(
        &self,
        into: &mut Vec<TransportMessage>,
    ) -> impl Future<Output = Result<(), TransportEnded>> + Send;

    /// Number of outbound streams.
    fn streams(&self) -> u16;

    /// Size of the largest message that fits into one packet, bytes.
    fn message_size(&self) -> usize;

    /// Ends the association immediately, for both ends.
    fn abort(&self);
}

/// Two connected transports in memory, with queues of at most `queue` messages.
pub fn pair(
    streams: u16,
    message_size: usize,
    queue: usize,
) -> (impl MessageTransport, impl MessageTransport) {
    let forth = Arc::new(MessageQueue::new(queue));
    let back = Arc::new(MessageQueue::new(queue));
    let first = MemoryTransport { out: forth.clone(), into: back.clone(), streams, message_size };
    let second = MemoryTransport { out: back, into: forth, streams, message_size };
    (first, second)
}

struct MemoryTransport {
    out: Arc<MessageQueue>,
    into: Arc<MessageQueue>,
    streams: u16,
    message_size: usize,
}

/// One direction.
struct MessageQueue {
    inner: Mutex<Inner>,
    limit: usize,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    messages: VecDeque<TransportMessage>,
    ended: bool,
}

impl MessageQueue {
    fn new(limit: usize) -> Self {
        Self { inner: Mutex::default(), limit, changed: Notify::new() }
    }

    /// Waits until `attempt` returns a result.
    async fn until<T>(&self, mut attempt: impl FnMut(&mut Inner) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let result = attempt(&mut self.inner.lock());
            if let Some(result) = result {
                self.changed.notify_waiters();
                return result;
            }
            changed.await;
        }
    }

    fn end(&self) {
        self.inner.lock().ended = true;
        self.changed.notify_waiters();
    }
}

impl MessageTransport for MemoryTransport {
    async fn send(&self, stream: u16, ppid: u32, bytes: Bytes) -> Result<(), TransportEnded> {
        let mut message = Some(TransportMessage { stream, ppid, bytes });
        let limit = self.out.limit;
        let attempt = move |inner: &mut Inner| {
            if inner.ended {
                return Some(Err(TransportEnded("it was ended".into())));
            }
            (inner.messages.len() < limit).then(|| {
                inner.messages.extend(message.take());
                Ok(())
            })
        };
        self.out.until(attempt).await
    }

    async fn receive(&self, into: &mut Vec<TransportMessage>) -> Result<(), TransportEnded> {
        let attempt = |inner: &mut Inner| {
            if inner.messages.is_empty() {
                return inner.ended.then(|| Err(TransportEnded("it was ended".into())));
            }
            into.extend(inner.messages.drain(..));
            Some(Ok(()))
        };
        self.into.until(attempt).await
    }

    fn streams(&self) -> u16 {
        self.streams
    }

    fn message_size(&self) -> usize {
        self.message_size
    }

    fn abort(&self) {
        self.out.end();
        self.into.end();
    }
}

impl Drop for MemoryTransport {
    fn drop(&mut self) {
        self.abort();
    }
}
