//! The application's handle of an association.

use std::sync::Arc;

use bytes::Bytes;
use ropewalk_base::{Histogram, PathId, PeerText, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::association::{CloseReason, SendError as Refusal};
use ropewalk_engine::sctp::{Association as Machine, Delivery, Message, Part};

use super::connect::ConnectError;
use super::encapsulation::Encapsulation;
use super::peer::{PathEvent, Peer, Signals};
use super::state::{AssociationKey, EndpointState, Shared};
use super::stats::Stats;
use crate::seal::PublicKey;

/// How unordered messages are delivered.
const UNORDERED: Delivery = Delivery { ordered: false, ..Delivery::RELIABLE };

/// An established association, or one that has ended. Dropping the handle shuts the association down in the
/// background: data sent before still arrives.
#[derive(Debug)]
pub struct Association {
    shared: Arc<Shared>,
    key: AssociationKey,
    signals: Arc<Signals>,
}

/// A received message, or a part of one that is longer than the receive buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The stream it arrived on.
    pub stream: u16,
    /// Payload protocol identifier, as the sender set it.
    pub ppid: u32,
    /// Its bytes.
    pub bytes: Bytes,
    /// Whether this is a complete message. A message longer than the receive buffer is delivered in parts.
    pub part: Part,
    /// Whether it was sent unordered.
    pub unordered: bool,
    /// Its stream sequence number, as the sender set it; with interleaving, the lower half of its message identifier.
    pub ssn: u16,
    /// TSN of one of its DATA chunks.
    pub tsn: u32,
    /// The cumulative TSN when it was taken from the association.
    pub cumulative_tsn: u32,
}

/// Why a message could not be queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// The association has no such stream, or the message has no bytes.
    Misuse(Refusal),
    /// The association is shutting down (`None`), or has ended for this reason.
    Closed(Option<CloseReason>),
}

impl std::fmt::Display for SendError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Misuse(refusal) => refusal.fmt(f),
            Self::Closed(None) => f.write_str("the association is shutting down"),
            Self::Closed(Some(reason)) => write!(f, "the association has ended: {reason}"),
        }
    }
}

impl Association {
    pub(super) const fn new(
        shared: Arc<Shared>,
        key: AssociationKey,
        signals: Arc<Signals>,
    ) -> Self {
        Self { shared, key, signals }
    }

    /// Calls `work` on the peer under the lock, then wakes the driver for it. `None` if the association is gone.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&mut Peer, ropewalk_base::Time) -> T,
    ) -> Option<T> {
        let mut core = self.shared.lock();
        let now = core.clock.now();
        let result = work(core.peer(self.key)?, now);
        core.mark_ready(self.key);
        core.wake();
        Some(result)
    }

    /// Wakes the driver to process this association.
    pub(super) fn wake_driver(&self) {
        let mut core = self.shared.lock();
        core.mark_ready(self.key);
        core.wake();
    }

    /// Like [`Association::with`], but wakes the driver only if `work` also returns true: otherwise the peer has
    /// nothing new to send.
    pub(super) fn with_if_needed<T>(
        &self,
        work: impl FnOnce(&mut Peer, ropewalk_base::Time) -> (T, bool),
    ) -> Option<T> {
        let mut core = self.shared.lock();
        let now = core.clock.now();
        let (result, needed) = work(core.peer(self.key)?, now);
        if needed {
            core.mark_ready(self.key);
            core.wake();
        }
        Some(result)
    }

    /// Calls `work` on the endpoint's state and the peer under the lock. `None` if the association is gone.
    pub(super) fn with_state<T>(
        &self,
        work: impl FnOnce(&mut EndpointState, &mut Peer) -> T,
    ) -> Option<T> {
        let mut state = self.shared.lock();
        let mut peer = state.take_out(self.key)?;
        let result = work(&mut state, &mut peer);
        state.put_back(self.key, peer);
        Some(result)
    }

    /// Calls `inspect` on the endpoint's state under the lock.
    pub(super) fn with_endpoint<T>(&self, inspect: impl FnOnce(&EndpointState) -> T) -> T {
        inspect(&self.shared.lock())
    }

    pub(super) fn signals(&self) -> &Signals {
        &self.signals
    }

    pub(super) fn inspect<T>(
        &self,
        inspect: impl FnOnce(&Peer, ropewalk_base::Time) -> T,
    ) -> Option<T> {
        let core = self.shared.lock();
        let now = core.clock.now();
        core.known(self.key).map(|peer| inspect(peer, now))
    }

    /// The SCTP ports of this end and of the peer, which distinguish services. `None` for a sealed association, and
    /// once the association is gone.
    pub fn sctp_ports(&self) -> Option<(u16, u16)> {
        self.inspect(|peer, _| match &peer.encapsulation {
            Encapsulation::Plain(ports) => Some((ports.source, ports.destination)),
            Encapsulation::HandshakeInProgress(_) | Encapsulation::Sealed(_) => None,
        })?
    }

    /// Queues a message. Waits while the send buffer is full.
    ///
    /// # Errors
    /// [`SendError`]; in that case nothing is queued.
    pub async fn send(&self, stream: u16, ppid: u32, bytes: Bytes) -> Result<(), SendError> {
        let mut one = Some(bytes);
        self.send_all(stream, ppid, &mut std::iter::from_fn(|| one.take())).await
    }

    /// Queues all messages of an iterator. Waits while the send buffer is full. One call for many messages costs less
    /// than many calls.
    ///
    /// # Errors
    /// [`SendError`]; messages before the failing one are queued.
    pub async fn send_all(
        &self,
        stream: u16,
        ppid: u32,
        messages: &mut (dyn Iterator<Item = Bytes> + Send),
    ) -> Result<(), SendError> {
        self.queue(stream, &mut messages.map(|bytes| (ppid, bytes)), Delivery::RELIABLE).await
    }

    /// Like [`Association::send_all`], for messages with the properties in `delivery`, each with its own payload
    /// protocol identifier.
    ///
    /// # Errors
    /// [`SendError`]; messages before the failing one are queued.
    pub async fn send_all_with(
        &self,
        stream: u16,
        messages: &mut (dyn Iterator<Item = (u32, Bytes)> + Send),
        delivery: Delivery,
    ) -> Result<(), SendError> {
        self.queue(stream, messages, delivery).await
    }

    /// Queues a message for unordered delivery: the peer's application receives it as soon as it arrives.
    ///
    /// # Errors
    /// [`SendError`]; in that case nothing is queued.
    pub async fn send_unordered(
        &self,
        stream: u16,
        ppid: u32,
        bytes: Bytes,
    ) -> Result<(), SendError> {
        let mut one = Some((ppid, bytes));
        self.queue(stream, &mut std::iter::from_fn(|| one.take()), UNORDERED).await
    }

    /// Like [`Association::send_all`], for unordered messages, each with its own payload protocol identifier. A
    /// message that fits into one packet ([`Association::message_size`]) never waits in the peer's receive buffer,
    /// which may therefore be small even if the paths are very unequal.
    ///
    /// # Errors
    /// [`SendError`]; messages before the failing one are queued.
    pub async fn send_all_unordered(
        &self,
        stream: u16,
        messages: &mut (dyn Iterator<Item = (u32, Bytes)> + Send),
    ) -> Result<(), SendError> {
        self.queue(stream, messages, UNORDERED).await
    }

    async fn queue(
        &self,
        stream: u16,
        messages: &mut (dyn Iterator<Item = (u32, Bytes)> + Send),
        delivery: Delivery,
    ) -> Result<(), SendError> {
        let mut kept = None;
        loop {
            let room = self.signals.writable.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            let done = self.with(|peer, now| {
                if let Some(reason) = peer.ended {
                    return Err(SendError::Closed(Some(reason)));
                }
                while let Some((ppid, bytes)) = kept.take().or_else(|| messages.next()) {
                    let payload = Payload::from(bytes.clone());
                    let stream = StreamId(stream);
                    match peer.machine.send_message(now, stream, ppid, payload, delivery) {
                        Ok(()) => {}
                        Err(Refusal::Full) => {
                            kept = Some((ppid, bytes));
                            return Ok(false);
                        }
                        Err(Refusal::Closing) => return Err(SendError::Closed(None)),
                        Err(misuse) => return Err(SendError::Misuse(misuse)),
                    }
                }
                Ok(true)
            });
            match done {
                None => return Err(SendError::Closed(None)),
                Some(Err(error)) => return Err(error),
                Some(Ok(true)) => return Ok(()),
                Some(Ok(false)) => room.await,
            }
        }
    }

    /// Waits for messages and appends all that are available, at least one. Appends nothing if the association has
    /// ended and everything was read.
    pub async fn receive_all(&self, into: &mut Vec<Received>) {
        loop {
            let readable = self.signals.readable.notified();
            tokio::pin!(readable);
            readable.as_mut().enable();
            let before = into.len();
            let ended = self.with_if_needed(|peer, now| {
                while let Some(message) = peer.read(now) {
                    into.push(received(&peer.machine, message));
                }
                // Reading frees space in the receive buffer. The peer may need a window update.
                (peer.ended.is_some(), into.len() > before)
            });
            if into.len() > before || ended != Some(false) {
                return;
            }
            self.signals.wait_readable(readable).await;
        }
    }

    /// Waits for the next message. `None` if the association has ended and everything was read.
    pub async fn receive(&self) -> Option<Received> {
        loop {
            let readable = self.signals.readable.notified();
            tokio::pin!(readable);
            readable.as_mut().enable();
            let next = self.with(|peer, now| {
                let message = peer.read(now);
                let message = message.map(|message| received(&peer.machine, message));
                (message, peer.ended.is_some())
            })?;
            match next {
                (Some(message), _) => return Some(message),
                (None, true) => return None,
                (None, false) => self.signals.wait_readable(readable).await,
            }
        }
    }

    /// Waits for the next event of a path. `None` if the association has ended.
    pub async fn next_path_event(&self) -> Option<PathEvent> {
        self.after_changes(|| {
            let news = |peer: &mut Peer| (peer.path_events.pop_front(), peer.ended.is_some());
            match self.with(|peer, _| news(peer)) {
                Some((None, false)) => None,
                Some((news, _)) => Some(news),
                None => Some(None),
            }
        })
        .await
    }

    /// Calls `look` now and after each change of the association, until it returns a value.
    pub(super) async fn after_changes<T>(&self, look: impl Fn() -> Option<T>) -> T {
        loop {
            let changed = self.signals.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = look() {
                return found;
            }
            changed.await;
        }
    }

    /// Starts the shutdown and waits until all sent data is acknowledged and the association has ended.
    ///
    /// # Errors
    /// The reason, if the association ended in another way. Some of the sent data may not have arrived then.
    pub async fn shutdown(&self) -> Result<(), CloseReason> {
        self.with(|peer, now| peer.machine.shutdown(now));
        match self.ended().await {
            None | Some(CloseReason::Shutdown) => Ok(()),
            Some(reason) => Err(reason),
        }
    }

    /// Waits until the association is established.
    pub(super) async fn up(&self) -> Result<(), CloseReason> {
        self.after_changes(|| match self.inspect(|peer, _| (peer.connected, peer.ended)) {
            Some((true, _)) => Some(Ok(())),
            Some((false, None)) => None,
            Some((false, Some(reason))) => Some(Err(reason)),
            None => Some(Err(CloseReason::NoAnswer)),
        })
        .await
    }

    /// Waits until the association has ended.
    pub async fn ended(&self) -> Option<CloseReason> {
        self.after_changes(|| match self.inspect(|peer, _| peer.ended) {
            Some(None) => None,
            Some(reason) => Some(reason),
            None => Some(None),
        })
        .await
    }

    /// Waits until the peer has acknowledged everything that was sent, or the association has ended.
    pub async fn flushed(&self) {
        loop {
            let flushed = self.signals.flushed.notified();
            tokio::pin!(flushed);
            flushed.as_mut().enable();
            let waits = self.with(|peer, _| {
                let waits = !peer.machine.is_flushed() && peer.ended.is_none();
                peer.flushing |= waits;
                waits
            });
            if waits != Some(true) {
                return;
            }
            flushed.await;
        }
    }

    /// Ends the association immediately. Unacknowledged data is lost.
    pub fn abort(&self) {
        self.with(|peer, _| peer.machine.abort());
    }

    /// Like [`Association::abort`], with a reason for the peer's application. Its first 400 bytes are sent.
    pub fn abort_because(&self, reason: &str) {
        self.abort_because_bytes(reason.as_bytes());
    }

    /// Like [`Association::abort_because`], with a reason that need not be text.
    pub fn abort_because_bytes(&self, reason: &[u8]) {
        self.with(|peer, _| peer.abort_because(reason));
    }

    /// The reason that the peer's application gave for an abort, as text.
    pub fn abort_reason(&self) -> Option<PeerText> {
        self.abort_reason_bytes().map(|reason| PeerText::from_bytes(&reason))
    }

    /// The reason that the peer's application gave for an abort, as it was sent. It need not be text.
    pub fn abort_reason_bytes(&self) -> Option<Bytes> {
        self.inspect(|peer, _| peer.machine.peer_abort_reason().cloned()).flatten()
    }

    /// Makes `path` the primary path, which carries all data if only one path is used (RFC 9260, 6.4). Returns
    /// whether the path exists.
    pub fn set_primary(&self, path: usize) -> bool {
        let set = self.with(|peer, _| {
            let known = path < peer.machine.path_count();
            if known {
                peer.machine.set_primary(PathId::from_index(path));
            }
            known
        });
        set.unwrap_or(false)
    }

    /// Signals that no more data follows for now, so that the scheduler can optimize the tail of the transfer.
    pub fn end_of_data(&self) {
        self.with(|peer, _| peer.machine.end_of_data());
    }

    /// Number of outbound streams.
    pub fn streams(&self) -> u16 {
        self.inspect(|peer, _| peer.machine.outbound_streams()).unwrap_or(0)
    }

    /// Size in bytes of the largest message that fits into one packet. It changes with the known path MTUs. Messages
    /// of another size cost a little more processing, but no capacity of the paths.
    pub fn message_size(&self) -> usize {
        self.inspect(|peer, _| peer.machine.largest_payload() as usize).unwrap_or(1)
    }

    /// Size in bytes of the largest datagram that fits into one packet. A datagram is an unordered message on stream
    /// 0 with payload protocol identifier 0, which has a shorter header if the association is sealed.
    pub fn datagram_size(&self) -> usize {
        self.inspect(|peer, _| peer.machine.largest_datagram() as usize).unwrap_or(1)
    }

    /// Status of each path.
    pub fn paths(&self) -> Vec<PathStatus> {
        let all = |peer: &Peer| {
            let ids = (0..peer.machine.path_count()).map(PathId::from_index);
            ids.map(|id| peer.machine.path_status(id)).collect()
        };
        self.inspect(|peer, _| all(peer)).unwrap_or_default()
    }

    /// The peer's public key, proved in the handshake. `None` without sealing, and once the association is gone.
    pub fn peer_key(&self) -> Option<PublicKey> {
        self.inspect(|peer, _| peer.public_key())?
    }

    /// Why a handshake has produced no session yet. `None` if there is a session or no sealing.
    pub(super) fn failed_handshake(&self) -> Option<ConnectError> {
        self.inspect(|peer, _| match &peer.encapsulation {
            Encapsulation::HandshakeInProgress(handshake) => Some(handshake.refusal().map_or_else(
                || ConnectError::NoSession(handshake.silence()),
                ConnectError::OldDate,
            )),
            Encapsulation::Plain(_) | Encapsulation::Sealed(_) => None,
        })?
    }

    /// Starts to measure how long user data takes from its first transmission to its delivery in order.
    /// Each call starts a new measurement.
    pub fn measure_delivery_delays(&self) {
        self.with(|peer, _| peer.machine.measure_delivery_delays());
    }

    /// The measured delays, nanoseconds. `None` unless they are measured, and once the association is gone.
    pub fn delivery_delays(&self) -> Option<Histogram> {
        self.inspect(|peer, _| peer.machine.delivery_delays().cloned()).flatten()
    }

    /// Statistics since the association began. `None` once the association is gone. Reading them does not wake
    /// the driver.
    pub fn stats(&self) -> Option<Stats> {
        self.with_state(Stats::of)
    }
}

/// Converts a message of this association for the application.
pub(super) fn received(machine: &Machine, message: Message) -> Received {
    let Message { stream, ppid, ssn, tsn, payload, part, unordered, .. } = message;
    Received {
        stream: stream.0,
        ppid,
        bytes: payload.into_bytes(),
        part,
        unordered,
        ssn: ssn.0,
        tsn: tsn.0,
        cumulative_tsn: machine.cumulative_tsn().0,
    }
}

impl Drop for Association {
    fn drop(&mut self) {
        self.with(|peer, now| {
            peer.abandoned = true;
            if peer.ended.is_none() {
                peer.machine.shutdown(now);
            }
        });
    }
}
