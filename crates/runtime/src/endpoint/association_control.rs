//! Requests and settings that the application of an association may make (RFC 9260, 11.1.9 to 11.1.15).

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, StreamId, Time};
use ropewalk_engine::sctp::association::{self, ParameterError, Parameters};
use ropewalk_engine::sctp::{AbandonedMessages, ReliabilityPolicy, StreamScheduler};

use super::association::Association;
use super::peer::Peer;

/// A message whose end the peer has not acknowledged, or the rest of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// The stream it was sent on.
    pub stream: u16,
    /// Payload protocol identifier, as set when it was sent.
    pub ppid: u32,
    /// Whether it was sent unordered.
    pub unordered: bool,
    /// Its bytes, without the beginning that the peer has acknowledged.
    pub bytes: Bytes,
    /// Whether `bytes` is the entire message.
    pub whole: bool,
    /// Whether any of the message was ever sent.
    pub sent: bool,
    /// How many of `bytes` the peer has reported in gap ack blocks: they arrived while earlier data is missing.
    pub reported: usize,
    /// The application's number, from [`Delivery::context`](super::Delivery::context).
    pub context: u32,
}

impl From<association::Undelivered> for Undelivered {
    fn from(message: association::Undelivered) -> Self {
        Self {
            sent: !message.never_left(),
            stream: message.stream.0,
            ppid: message.ppid,
            unordered: message.unordered,
            bytes: message.payload.into_bytes(),
            whole: message.from_beginning,
            reported: message.reported as usize,
            context: message.context,
        }
    }
}

impl Association {
    /// Calls `work` on a path. `None` if the path does not exist.
    fn on_path<T>(
        &self,
        path: usize,
        work: impl FnOnce(&mut Peer, Time, PathId) -> T,
    ) -> Option<T> {
        self.with(|peer, now| {
            let known = path < peer.machine.path_count();
            known.then(|| work(peer, now, PathId::from_index(path)))
        })?
    }

    /// Enables or disables HEARTBEATs on an idle path and sets their interval. `None` selects the association's
    /// interval. Without HEARTBEATs an idle path is not detected as failed, a failed path is not detected as
    /// recovered, and an association that is idle on all paths does not end when its peer disappears. Unconfirmed
    /// addresses, paths suspected of failure, and paths whose address changes are always probed. Returns whether the
    /// path exists.
    pub fn set_heartbeats(&self, path: usize, enabled: bool, interval: Option<Duration>) -> bool {
        let set = self.on_path(path, |peer, now, path| {
            peer.machine.set_heartbeats(now, path, enabled, interval);
            peer.liveness.on_heartbeat_settings(now, &peer.machine);
        });
        set.is_some()
    }

    /// Sends a HEARTBEAT on a path now. The path's round-trip time and status show whether it was answered. Returns
    /// whether it could be sent: the association must be established and not shutting down, and the path confirmed.
    pub fn request_heartbeat(&self, path: usize) -> bool {
        let asked = self.on_path(path, |peer, now, path| peer.machine.request_heartbeat(now, path));
        asked.unwrap_or(false)
    }

    /// Sets how many consecutive errors a path may have before it counts as failed (Path.Max.Retrans). `None`
    /// selects the association's value. Returns whether the path exists.
    pub fn set_path_max_retrans(&self, path: usize, most: Option<u32>) -> bool {
        let set = self.on_path(path, |peer, _, path| peer.machine.set_path_max_retrans(path, most));
        set.is_some()
    }

    /// Sets after how many consecutive errors a path counts as potentially failed (RFC 7829). `None` selects the
    /// association's value. Returns whether the path exists.
    pub fn set_path_potentially_failed(&self, path: usize, errors: Option<u32>) -> bool {
        let set = self
            .on_path(path, |peer, _, path| peer.machine.set_path_potentially_failed(path, errors));
        set.is_some()
    }

    /// The protocol parameters. `None` once the association is gone.
    pub fn parameters(&self) -> Option<Parameters> {
        self.inspect(|peer, _| peer.machine.parameters())
    }

    /// Changes the protocol parameters from now on.
    ///
    /// # Errors
    /// [`ParameterError`]; in that case nothing changes.
    pub fn set_parameters(&self, parameters: Parameters) -> Result<(), ParameterError> {
        let set = self.with(|peer, now| {
            peer.machine.set_parameters(now, parameters)?;
            peer.liveness.on_heartbeat_settings(now, &peer.machine);
            Ok(())
        });
        set.unwrap_or(Ok(()))
    }

    /// Whether messages of different streams are interleaved: both ends requested it. False before the handshake.
    pub fn interleaves(&self) -> bool {
        self.inspect(|peer, _| peer.machine.interleaves()).unwrap_or(false)
    }

    /// Whether both ends report non-renegable data (NR-SACK): both requested it. False before the handshake.
    pub fn reports_non_renegable(&self) -> bool {
        self.inspect(|peer, _| peer.machine.reports_non_renegable()).unwrap_or(false)
    }

    /// Changes the order in which messages of different streams are sent. Messages of one stream keep their order.
    pub fn set_stream_scheduler(&self, scheduler: StreamScheduler) {
        self.with(|peer, _| peer.machine.set_stream_scheduler(scheduler));
    }

    /// Sets the priority of a stream (lowest first) or its weight, depending on the stream scheduler. Returns whether
    /// the stream exists.
    pub fn set_stream_value(&self, stream: u16, value: u16) -> bool {
        let set = self.with(|peer, _| peer.machine.set_stream_value(StreamId(stream), value));
        set.is_some_and(|set| set.is_ok())
    }

    /// Number of abandoned messages of a stream, or of all streams, by one policy, or by any (RFC 7496, 4.3 and 4.4).
    pub fn abandoned_messages(
        &self,
        stream: Option<u16>,
        policy: Option<ReliabilityPolicy>,
    ) -> AbandonedMessages {
        let stream = stream.map(StreamId);
        let counts = |peer: &Peer| peer.machine.abandoned_messages(stream, policy);
        self.inspect(|peer, _| counts(peer)).unwrap_or_default()
    }

    /// Waits until messages are abandoned. Returns them, oldest first. `None` if the association has ended and all
    /// were taken. Requires [`Transport::reports_abandoned`](super::Transport::reports_abandoned).
    pub async fn next_abandoned(&self) -> Option<Vec<Undelivered>> {
        self.after_changes(|| {
            let take = |peer: &mut Peer| (peer.machine.take_abandoned(), peer.ended.is_some());
            let taken = self.with_if_needed(|peer, _| (take(peer), false));
            let Some((messages, ended)) = taken else { return Some(None) };
            match messages.is_empty() {
                true => ended.then_some(None),
                false => Some(Some(messages.into_iter().map(Into::into).collect())),
            }
        })
        .await
    }

    /// Messages that were never sent, not even in part, oldest first. Meant for use after the association
    /// has ended.
    pub fn unsent(&self) -> Vec<Undelivered> {
        self.inspect(|peer, _| peer.machine.unsent().map(Into::into).collect()).unwrap_or_default()
    }

    /// Messages that were sent, wholly or in part, and whose end the peer has not acknowledged, oldest first. Meant
    /// for use after the association has ended. The peer may or may not have received them.
    pub fn unacknowledged(&self) -> Vec<Undelivered> {
        let all = |peer: &Peer| peer.machine.unacknowledged().map(Into::into).collect();
        self.inspect(|peer, _| all(peer)).unwrap_or_default()
    }
}
