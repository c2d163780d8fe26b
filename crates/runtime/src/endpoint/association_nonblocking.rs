//! Non-blocking calls of an association, for callers outside a tokio runtime, and the futures that signal
//! readiness.

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::Delivery;
use ropewalk_engine::sctp::association::{CloseReason, SendError as Refusal, State};

use super::association::{Association, Received, SendError, received};
use super::peer::Peer;

/// Why a message was not queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrySendError {
    /// The send buffer is full. [`Association::writable`] waits until it has room.
    Full,
    /// The message cannot be sent.
    Refused(SendError),
}

/// The status of an association as defined in RFC 9260, 11.1.8.
#[derive(Clone, PartialEq, Debug)]
pub struct AssociationStatus {
    /// State of the association.
    pub state: State,
    /// The peer's last advertised receive window, bytes.
    pub peer_window_bytes: u64,
    /// DATA chunks in flight.
    pub chunks_in_flight: usize,
    /// Bytes that wait for a path.
    pub waiting_bytes: u64,
    /// Free bytes of the own receive buffer.
    pub receive_free_bytes: u64,
    /// Number of outbound streams.
    pub streams: u16,
    /// Size of the largest message that fits into one packet, bytes.
    pub message_size: u32,
    /// Index of the primary path.
    pub primary: usize,
}

/// HEARTBEATs, retransmission timeout and failures of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathTimers {
    /// Retransmission timeout.
    pub rto: Duration,
    /// Interval of HEARTBEATs while the path is idle. `None` if they are disabled.
    pub heartbeat_interval: Option<Duration>,
    /// With more consecutive errors than this, the path is inactive (Path.Max.Retrans).
    pub max_retrans: u32,
    /// With more consecutive errors than this, the path is potentially failed (RFC 7829).
    pub potentially_failed: u32,
}

/// Appends messages that a peer has sent, until `most` bytes or more are appended or `stops` returns true.
pub(super) fn take_messages(
    peer: &mut Peer,
    now: Time,
    into: &mut Vec<Received>,
    most: usize,
    stops: impl Fn(&Peer) -> bool,
) {
    let mut bytes = 0;
    while bytes < most
        && !stops(peer)
        && let Some(message) = peer.read(now)
    {
        let message = received(&peer.machine, message);
        bytes += message.bytes.len();
        into.push(message);
    }
}

impl Association {
    /// Queues a message if the send buffer has room. Returns the remaining room, bytes. Messages are accepted before
    /// the association is established, and sent once it is.
    ///
    /// # Errors
    /// [`TrySendError`]; in that case nothing is queued.
    pub fn try_send(
        &self,
        stream: u16,
        ppid: u32,
        bytes: Bytes,
        delivery: Delivery,
    ) -> Result<u64, TrySendError> {
        let sent = self.with(|peer, now| {
            if let Some(reason) = peer.ended {
                return Err(TrySendError::Refused(SendError::Closed(Some(reason))));
            }
            let (stream, payload) = (StreamId(stream), Payload::from(bytes));
            match peer.machine.send_message(now, stream, ppid, payload, delivery) {
                Ok(()) => Ok(peer.machine.send_room()),
                Err(Refusal::Full) => Err(TrySendError::Full),
                Err(Refusal::Closing) => Err(TrySendError::Refused(SendError::Closed(None))),
                Err(misuse) => Err(TrySendError::Refused(SendError::Misuse(misuse))),
            }
        });
        sent.unwrap_or(Err(TrySendError::Refused(SendError::Closed(None))))
    }

    /// Appends the messages that have arrived, until `most` bytes or more are appended. Returns whether more can be
    /// read.
    pub fn try_receive(&self, into: &mut Vec<Received>, most: usize) -> bool {
        let before = into.len();
        let more = self.with_if_needed(|peer, now| {
            take_messages(peer, now, into, most, |_| false);
            (peer.machine.can_read(), into.len() > before)
        });
        more == Some(true)
    }

    /// Whether a message can be read.
    pub fn can_receive(&self) -> bool {
        self.inspect(|peer, _| peer.machine.can_read()).unwrap_or(false)
    }

    /// Waits until a message or an event about streams can be taken, or the association has ended. Takes nothing.
    pub async fn readable(&self) {
        loop {
            let readable = self.signals().readable.notified();
            tokio::pin!(readable);
            readable.as_mut().enable();
            let waits = self.inspect(|peer, _| !peer.has_input() && peer.ended.is_none());
            if waits != Some(true) {
                return;
            }
            readable.await;
        }
    }

    /// Whether the send buffer is full. [`Association::writable`] waits until it has room. False after the end.
    pub fn is_full(&self) -> bool {
        let is_full = |peer: &mut Peer| peer.ended.is_none() && !peer.machine.await_room();
        self.with_if_needed(|peer, _| (is_full(peer), false)).unwrap_or(false)
    }

    /// Waits until the send buffer has room and fewer than `below` bytes wait for a path, or the association has ended.
    pub async fn writable(&self, below: u64) {
        loop {
            self.waits_below(below).await;
            let writable = self.signals().writable.notified();
            tokio::pin!(writable);
            writable.as_mut().enable();
            if !self.is_full() {
                return;
            }
            writable.await;
        }
    }

    /// Waits until the association is established.
    ///
    /// # Errors
    /// The reason, if it has ended.
    pub async fn established(&self) -> Result<(), CloseReason> {
        self.up().await
    }

    /// Starts the shutdown: queued data is still sent, and nothing more can be queued.
    pub fn start_shutdown(&self) {
        self.with(|peer, now| {
            if peer.ended.is_none() {
                peer.machine.shutdown(now);
            }
        });
    }

    /// Waits until the peer's SHUTDOWN has arrived: the peer sends no more data, and nothing more can be queued.
    /// Queued data is still sent. Returns false if the association has ended without a SHUTDOWN.
    pub async fn shut_down_by_peer(&self) -> bool {
        self.after_changes(|| match self.inspect(|peer, _| (peer.shut_down_by_peer, peer.ended)) {
            Some((false, None)) => None,
            Some((arrived, _)) => Some(arrived),
            None => Some(false),
        })
        .await
    }

    /// Whether nothing waits to be sent or acknowledged.
    pub fn is_flushed(&self) -> bool {
        self.inspect(|peer, _| peer.machine.is_flushed()).unwrap_or(true)
    }

    /// Why the association has ended. `None` if it has not.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.inspect(|peer, _| peer.ended).unwrap_or(Some(CloseReason::Shutdown))
    }

    /// The status of the association. `None` once it is gone.
    pub fn status(&self) -> Option<AssociationStatus> {
        self.inspect(|peer, _| {
            let machine = &peer.machine;
            AssociationStatus {
                state: machine.state().clone(),
                peer_window_bytes: machine.peer_window(),
                chunks_in_flight: machine.chunks_in_flight(),
                waiting_bytes: machine.waiting_bytes(),
                receive_free_bytes: machine.receive_occupancy().1,
                streams: machine.outbound_streams(),
                message_size: machine.largest_payload(),
                primary: machine.primary().index(),
            }
        })
    }

    /// Timers of a path. `None` if there is no such path.
    pub fn path_timers(&self, path: usize) -> Option<PathTimers> {
        self.inspect(|peer, _| {
            let machine = &peer.machine;
            let id = PathId::from_index(path);
            (path < machine.path_count()).then(|| {
                let failure = machine.path_failure(id);
                PathTimers {
                    rto: machine.path_rto(id),
                    heartbeat_interval: machine.heartbeats_of(id),
                    max_retrans: failure.path_max_retrans,
                    potentially_failed: failure.potentially_failed,
                }
            })
        })?
    }
}
